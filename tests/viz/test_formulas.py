"""Formulas of ops as plain text: right, with few parentheses, for every op of the table."""
import ast
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from steady import steady
from support import ROOT

import tensorgrad as torch
from tensorgrad.ops.base import OPS, Op
from tensorgrad.viz import formulas
from tensorgrad.viz.formulas import ELSEWHERE, LONGEST, formula
from tensorgrad.viz.notation import notation
from tensorgrad.viz.textbook_gradients import RULES, WORDS, Words
from tensorgrad.viz.torch_names import public

OWN = {name: op for name, op in OPS.items() if op.__module__.startswith("tensorgrad.")}

EXPECTED = {
    "add": ("a + b", {"a": "g", "b": "g"}),
    "subtract": ("a − b", {"a": "g", "b": "−g"}),
    "multiply": ("a · b", {"a": "g · b", "b": "g · a"}),
    "divide": ("a / b", {"a": "g / b", "b": "−g · a / b²"}),
    "negative": ("−x", {"x": "−g"}),
    "reciprocal": ("1 / x", {"x": "−g · out²"}),
    "power": ("a^b", {"a": "0 where b = 0, else g · b · a^(b − 1)",
                      "b": "0 where a = 0 and b ≥ 0, else g · out · log(a)"}),
    "square": ("x²", {"x": "2 · g · x"}),
    "sqrt": ("√x", {"x": "g / (2 · out)"}),
    "rsqrt": ("1 / √x", {"x": "−0.5 · g · out³"}),
    "absolute": ("|x|", {"x": "g · sgn(x)"}),
    "floor": ("⌊x⌋", {"x": "0"}),
    "maximum": ("max(a, b)", {"a": "0 where a < b, else 0.5 · g where a = b, else g",
                              "b": "0 where a > b, else 0.5 · g where a = b, else g"}),
    "clamp": ("min(max(x, lo), hi)", {"x": "g where x ≥ lo and x ≤ hi, else 0",
                                      "lo": "g where x < lo and lo < hi, else 0",
                                      "hi": "g where x > hi or lo > hi, else 0"}),
    "where": ("a where condition, else b", {"a": "g where condition, else 0", "b": "0 where condition, else g"}),
    "conj": ("x\u0304", {"x": "g\u0304"}),
    "imag": ("Im(x)", {"x": "g · i"}),
    "exp": ("exp(x)", {"x": "g · out"}),
    "log": ("log(x)", {"x": "g / x"}),
    "log1p": ("log(1 + x)", {"x": "g / (x + 1)"}),
    "expm1": ("exp(x) − 1", {"x": "g · (out + 1)"}),
    "exp2": ("2^x", {"x": "g · out · log(2)"}),
    "sin": ("sin(x)", {"x": "g · cos(x)"}),
    "cos": ("cos(x)", {"x": "−g · sin(x)"}),
    "tan": ("tan(x)", {"x": "g · (out² + 1)"}),
    "arccosh": ("arccosh(x)", {"x": "g / √(x² − 1)"}),
    "tanh": ("tanh(x)", {"x": "g · (1 − out²)"}),
    "sigmoid": ("1 / (exp(−x) + 1)", {"x": "g · out · (1 − out)"}),
    "relu": ("max(x, 0)", {"x": "0 where out ≤ 0, else g"}),
    "leaky_relu": ("x where x > 0, else x · slope", {"x": "g where x > 0, else g · slope"}),
    "silu": ("x · σ(x)", {"x": "g · σ(x) · (x · (1 − σ(x)) + 1)"}),
    "gelu": ("0.5 · x · (erf(x · √0.5) + 1)", {"x": "g · (0.5 · (erf(x · √0.5) + 1) + x · exp(−0.5 · x²) / √(2 · π))"}),
    "softmax": ("e / Σ(e), with e = exp(x − max(x))", {"x": "out · (g − Σ(g · out))"}),
    "log_softmax": ("shifted − log(Σ(exp(shifted))), with shifted = x − max(x)", {"x": "g − exp(out) · Σ(g)"}),
    "sum": ("Σ(x)", {"x": "broadcast_to(g, shape(x))"}),
    "mean": ("Σ(x) / n", {"x": "broadcast_to(g / n, shape(x))"}),
    "amax": ("max(x)", {"x": "(g where x = out, else 0) / Σ(x = out)"}),
    "variance": ("Σ((x − mean(x))²) / (n − correction)", {"x": "2 · g · (x − mean(x)) / (n − correction)"}),
    "matmul": ("a @ b", {"a": "g @ bᵀ", "b": "aᵀ @ g"}),
    "linear": ("x @ wᵀ + b", {"x": "g @ w", "w": "gᵀ @ x", "b": "Σ(g, axis=0)"}),
    "t": ("xᵀ", {"x": "gᵀ"}),
    "reshape": ("reshape(x, shape)", {"x": "reshape(g, shape(x))"}),
    "permute_dims": ("permute(x, axes)", {"x": "permute(g, inverse(axes))"}),
    "roll": ("roll(x, shift, axis)", {"x": "roll(g, shift=−shift)"}),
    "max_dim": ("(max(x), argmax(x))", {"x": "g₀ at indices, 0 elsewhere"}),
    "inverse_matrix": ("A⁻¹, and info as of `solve_linear`", {"a": "−(inverseᵀ @ g₀ @ inverseᵀ)"}),
    "cross_entropy": ("nll_loss(log_softmax(x, axis=1), target, w)",
                      {"x": "(softmax(x) − onehot(target)) · (g · w[target] / Σ(w[target]) if reduction = mean, else g "
                            "· w[target])"}),
    "mse_loss": ("reduction((x − y)²)", {"x": "2 · (x − y) · (g / n if reduction = mean, else g)",
                                         "y": "2 · (y − x) · (g / n if reduction = mean, else g)"}),
    "native_layer_norm": ("centred · w / √(mean(centred²) + ε) + b, with centred = x − mean(x)",
                          {"x": "(g · w − mean(g · w) − centred · mean(g · w · centred / std) / std) / std, "
                                "with centred = x − mean(x), std = √(mean(centred²) + ε)",
                           "w": "Σ(g · centred / √(mean(centred²) + ε)), with centred = x − mean(x)", "b": "Σ(g)"}),
    "convolution": ("y[n, o] = b[o] + Σ_c x[n, c] ⋆ w[o, c]",
                    {"x": "each g[n, o] · w[o, c], added to the window of x[n, c] that it came from: Σ_o g[n, o] ∗ "
                          "w[o, c], a full convolution",
                     "w": "Σ_n x[n, c] ⋆ g[n, o]: each window of x times its g, over all places and the batch",
                     "b": "Σ of g[n, o] over the batch n and all places, for each channel o"}),
    "glu": ("a · σ(b), with a and b the halves of x along an axis. Y. N. Dauphin et al. (2017)",
            {"x": "cat((g · σ(b), g · a · σ(b) · (1 − σ(b)))), with a, b = halves(x, axis)"}),
    "concat": ("cat(xs, axis)", {"xs": "g[⋯]"}),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_formula_reads_as_one_would_write_it(name):
    found = formulas(OPS[name])
    assert (found.forward, found.rules) == EXPECTED[name]


WRITTEN = sorted(name for name, op in OPS.items() if "{}" in op.notation)


@pytest.mark.parametrize("name", WRITTEN)
def test_an_op_is_written_as_its_record_says(name):
    op, call = OPS[name], ast.parse(f"xp.{name}({', '.join(OPS[name].inputs)})", mode="eval").body
    assert op.notation.count("{}") == len(op.inputs)
    expected = (op.notation.format(*op.inputs).replace(" ^ ", "^") if op.notation != "{}"
                else f"{public(name)}({op.inputs[0]})")
    assert notation(call) == expected


def test_gather_and_its_adjoint():
    assert formulas(OPS["take_along_axis"]).rules == {"x": "scatter_add(zeros(shape(x)), g, index)"}
    assert formulas(OPS["scatter_add"]).rules == {"x": "g", "value": "gather(g, index)"}


@pytest.mark.parametrize("name", OWN)
def test_every_op_has_formulas_that_are_whole(name):
    found = formulas(OWN[name])
    taught = {**RULES.get(name, {}), **WORDS.get(name, {})}
    assert set(found.rules) == {i for i in OWN[name].inputs if i in taught or hasattr(OWN[name], f"grad_{i}")}
    for text in (found.forward, *found.rules.values()):
        assert text and text == text.strip() and "\n" not in text
        assert balanced(text), text
        assert len(text) <= (2 * LONGEST if isinstance(text, Words) else LONGEST)
        assert not re.search(r"\bxp\b|keepdims|dtype=| object at |isinstance|hasattr", text), text
    path, line = found.source
    assert (ROOT / path).read_text(encoding="utf-8").splitlines()[line - 1].startswith(f"class {OWN[name].__name__}(")


def balanced(text):
    text = re.sub(r"`[^`]*`", "", text)
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "⌊⌋", "⌈⌉"))


def test_most_rules_are_formulas():
    """Only loops and lists of cases are described in words, and few rules are; none refers to the source."""
    rules = [(name, rule) for name, op in OWN.items() for rule in formulas(op).rules.values()]
    assert not [name for name, rule in rules if rule == ELSEWHERE]
    assert sum(isinstance(rule, Words) for _, rule in rules) < len(rules) / 5


# ── the case at hand ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_options_choose_the_case():
    loss = OPS["mse_loss"]
    assert formulas(loss, {"reduction": "mean"}).rules["x"] == "2 · (x − y) · g / n"
    assert formulas(loss, {"reduction": "sum"}) == ("Σ((x − y)²)", {"x": "2 · (x − y) · g", "y": "2 · (y − x) · g"},
                                                    formulas(loss).source)
    norm = OPS["vector_norm"]
    assert formulas(norm, {"ord": 1}).rules["x"] == "g · sgn(x)"
    assert formulas(norm, {"ord": 2, "axis": (0, 1)}).rules["x"] == "g · (0 where out = 0, else x / out)"
    assert formulas(norm, {"ord": 3}).rules["x"] == "x · |x|^(ord − 2) · (0 where out = 0, else g / out^(ord − 1))"
    assert (formulas(OPS["power"], {"b": 3}).rules["a"] == "g · b · a^(b − 1)"
            and formulas(OPS["power"], {"b": 2}).rules["a"] == "g · b · a")
    product = OPS["prod"]
    assert "reshape(x, −1)" in formulas(product).rules["x"]                 # of all elements, where no axis is given
    for axis in (0, (0,)):
        assert ("reshape(x, −1)" not in formulas(product, {"axis": axis}).rules["x"]
                and "cumprod(" in formulas(product, {"axis": axis}).rules["x"])
    bce = OPS["binary_cross_entropy_with_logits"]
    assert formulas(bce, {"reduction": "sum", "w": None, "p": None}).rules["x"] == "(σ(x) − y) · g"
    assert formulas(OPS["embedding"], {}).rules["x"] == "g added at rows index, 0 elsewhere"
    assert (formulas(OPS["attention"], {"causal": False, "mask": None}).forward
            == "softmax((query · scale) @ keyᵀ, axis=−1) @ value")


def test_a_step_of_the_tape_says_its_formula():
    x = torch.ones(3, requires_grad=True)
    node = (x * x).grad_fn
    assert formulas(type(node)) == formulas(OPS["multiply"])
    assert formulas(type(node), node.params) == formulas(OPS["multiply"])


def test_rules_that_ops_share_are_read_from_where_they_stand():
    assert OPS["split_with_sizes"].forward is OPS["split_sizes"].forward
    assert formulas(OPS["split_with_sizes"]).rules == formulas(OPS["split_sizes"]).rules == {"x": "cat(g)"}
    assert formulas(OPS["median_dim"]).rules == formulas(OPS["max_dim"]).rules


def test_what_is_no_op():
    for wrong in (3, int, OPS["add"].forward, torch.ones(1)):
        with pytest.raises(TypeError, match="class of an op"):
            formulas(wrong)
    assert formulas(Op).forward == "An operation. See the module's docstring."
    with pytest.raises(ValueError, match="there is no op 'tanhh': did you mean 'tanh'"):
        formulas("tanhh")


def test_an_op_by_its_name():
    assert formulas("tanh") == formulas(OPS["tanh"]) and formulas("unsqueeze") == formulas(OPS["expand_dims"])


def test_ops_of_programs(tmp_path):
    """An op that a program defines has formulas, too; one whose source is nowhere has its description."""
    (tmp_path / "program.py").write_text('''
from tensorgrad.ops.base import OPS, Op
from tensorgrad.viz import formulas

class Swing(Op):
    """x swung"""
    def forward(xp, x): return xp.sin(x) * swing(xp, x)
    def grad_x(xp, g, x):
        out = g
        for _ in range(3):
            out = out * x
        return out

def swing(xp, x):
    return x - 1

exec("class Hidden(Op):\\n    'x hidden'\\n    def forward(xp, x): return x\\n    def grad_x(xp, g): return g")
print(formulas(Swing).forward, formulas(Swing).rules["x"], *formulas(Hidden)[:2], formulas(Swing).source[1], sep="|")
''', encoding="utf-8")
    out = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, check=True,
                         cwd=ROOT, encoding="utf-8",
                         env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    assert out.stdout.strip() == "sin(x) · (x − 1)|see the source|x hidden|{'x': 'see the source'}|5"


# ── what is printed means what was written ────────────────────────────────────────────────────────────────────────────


def in_ascii(text):
    """Signs and superscripts as Python writes them."""
    text = text.replace("·", "*").replace("−", "-").replace("^", "**")
    return re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda found: "**"
                  + found[0].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")), text)


def evaluated(text, **values):
    """The value of a printed formula of arithmetic."""
    text = re.sub(r"√([\w.]+)", r"sqrt(\1)", in_ascii(text).replace("√(", "sqrt(").replace("π", "pi"))
    text = re.sub(r"\|([^|]*)\|", r"abs(\1)", text)
    if ", with " in text:
        text, _, rest = text.partition(", with ")
        for name, value in re.findall(r"(\w+) = (.*?)(?=, \w+ = |$)", rest):
            values[name] = eval(value, {**FUNCTIONS, **values})
    if " where " in text:
        assert text.count(" where ") == 1
        first, _, rest = text.partition(" where ")
        condition, _, other = rest.partition(", else ")
        condition = condition.replace("≤", "<=").replace("≥", ">=").replace(" = ", " == ").replace("≠", "!=")
        text = f"({first}) if ({condition}) else ({other})"
    return eval(text, {**FUNCTIONS, **values})


FUNCTIONS = {**vars(math), "abs": abs, "max": max, "min": min, "Σ": lambda x: x, "σ": lambda x: 1 / (1 + math.exp(-x)),
             "sgn": lambda x: math.copysign(1, x)}
SCALAR = """add subtract multiply divide negative reciprocal rsub square sqrt rsqrt hypot absolute exp exp2 expm1 log
log2 log10 log1p sigmoid sigmoid_gradient tanh_gradient sin cos tan tanh arctan arcsinh logaddexp sinh cosh erf erfc
relu silu gelu gelu_tanh
mish log_sigmoid power softplus
leaky_relu entr""".split()
PARAMS = {"leaky_relu": {"slope": 0.1}, "softplus": {"beta": 1.5, "threshold": 20.0}}
GREEK = {"alpha": "α", "beta": "β"}


@pytest.mark.parametrize("name", SCALAR)
def test_a_printed_rule_has_the_value_of_the_rule(name):
    from tensorgrad.storage.cpu import NumpyStorage
    xp, op = NumpyStorage.xp, OPS[name]
    inputs = dict(zip(op.inputs, (np.float64(0.7), np.float64(1.3)), strict=False))
    params = PARAMS.get(name, {})
    out = op.forward(xp, *inputs.values(), **params)
    values = {**inputs, **params, "out": out, "g": np.float64(-0.6)}
    for which in op.inputs:
        rule = getattr(op, f"grad_{which}")
        asked = rule.__code__.co_varnames[1:rule.__code__.co_argcount]
        expected = rule(xp, *(values[n] for n in asked))
        shown = {GREEK.get(k, k): float(v) for k, v in values.items()}
        assert evaluated(formulas(op).rules[which], **shown) == pytest.approx(float(expected), rel=1e-9), which


NAMES = ("a", "b", "c")
LEAVES = st.sampled_from([*NAMES, "2", "0.5", "3"])
EXPRESSIONS = st.recursive(LEAVES, lambda inner: st.one_of(
    st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
    st.builds("(-{})".format, inner),
    st.builds("({} ** 2)".format, inner),
    st.builds("xp.square({})".format, inner),
    st.builds("xp.absolute({})".format, inner),
    st.builds("xp.{}({}, {})".format, st.sampled_from(["add", "subtract", "multiply", "divide"]), inner, inner),
    st.builds("xp.where(a < b, {}, {})".format, inner, inner)), max_leaves=9)


@steady(max_examples=300)
@given(EXPRESSIONS)
@example("xp.divide(a, (a * a))")
@example("xp.divide((a * a), (a * b * a))")
@example("(a / xp.divide(a, (a - a)))")
def test_any_arithmetic_is_printed_with_its_value(source):
    values = {"a": 1.25, "b": 2.5, "c": -0.75}
    text = notation(ast.parse(source, mode="eval").body)
    try:
        # the text is evaluated without NumPy, whose quotients by 0 go on
        with np.errstate(divide="raise", invalid="raise"):
            expected = eval(source, {"xp": np, **values})
    except (ZeroDivisionError, FloatingPointError):
        return
    text = unbarred(in_ascii(text))
    text = re.sub(r" where (a < b), else ", r" if \1 else ", text)
    if np.isfinite(expected) and abs(expected) < 1e12:
        assert eval(text, values) == pytest.approx(expected, rel=1e-9), (source, text)


def unbarred(text):
    """|x| as abs(x): a bar opens where a value may begin."""
    out, last = "", ""
    for c in text:
        if c == "|":
            opening = last in ("", "(", "|(", " ", "-") or last == "o"
            c = "abs(" if opening else ")"
            last = "o" if opening else ")"
        else:
            last = c
        out += c
    return out


def test_a_formula_that_writes_in_place_is_not_guessed():
    def scatter(xp, g):
        g[0] = 1
        return g

    def loop(xp, g):
        for _ in range(2):
            g = g + 1
        return g
    assert formula(scatter, {}) is None and formula(loop, {}) is None
    assert formula(len, {}) is None
