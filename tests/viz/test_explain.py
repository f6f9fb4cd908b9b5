"""viz.explain: its numbers equal those of backward, its text tells their origin, and it changes nothing."""
import re

import numpy as np
import pytest
from samples import SAMPLES

import tensorgrad as torch
from tensorgrad.core.dispatch import xp
from tensorgrad.ops.base import OPS
from tensorgrad.viz import explain
from tensorgrad.viz.text import Value
from tensorgrad.viz.torch_names import PUBLIC, SLIDING, public, title

nn, F = torch.nn, torch.nn.functional


def kept(g):
    """The part of an array that a Value keeps."""
    return Value.of(g).kept


def same_as_backward(loss, leaves, gradient=None):
    """The explanation, whose gradients are those of backward to the last bit."""
    before = [leaf.grad for leaf in leaves]
    found = explain(loss, gradient, names={f"leaf_{i}": leaf for i, leaf in enumerate(leaves)})
    assert all(leaf.grad is g for leaf, g in zip(leaves, before))
    got = {leaf.name: leaf.gradient for leaf in found.leaves}
    loss.backward(gradient)
    for i, leaf in enumerate(leaves):
        if leaf.grad is None:
            assert f"leaf_{i}" not in got
        else:
            np.testing.assert_array_equal(got[f"leaf_{i}"].kept, kept(leaf.grad), strict=leaf.dtype != torch.bfloat16)
    return found


def leaf(*shape, seed=0, **kinds):
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"), **kinds).requires_grad_()


# ── the numbers ───────────────────────────────────────────────────────────────────────────────────────────────────────


INTERNAL = {*PUBLIC, *SLIDING} - {*map(public, (*PUBLIC, *SLIDING))}      # names that users of PyTorch do not know
DIFFERENTIABLE = [name for name in SAMPLES if OPS[name].differentiable or OPS[name].composite]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_every_op(name):
    """Each step's shares add up to what reaches the leaves, in the engine's order."""
    op = OPS[name]
    for row in SAMPLES[name]:
        drawn = row.draw("float32")
        inputs = [torch.tensor(a).requires_grad_(a.dtype.kind == "f") if isinstance(a, np.ndarray) else a
                  for a in drawn]
        leaves = [a for a in inputs if isinstance(a, torch.Tensor) and a.requires_grad]
        if not leaves:
            continue
        given = row.prepared(inputs)
        out = getattr(xp, name)(*([given] if op.sequence else given), **row.params)
        outs = [o for o in (out if op.several else [out]) if o.requires_grad]
        if not outs:
            continue
        weighted = [(o.real * torch.arange(1, o.numel() + 1, device=o.device).reshape(o.shape) * 0.1).sum()
                    for o in outs]
        loss = sum(weighted[1:], weighted[0])
        try:
            torch.autograd.grad(loss, leaves, retain_graph=True, allow_unused=True)
        except RuntimeError as error:       # no formula for this input, or these options: the same is said here
            with pytest.raises(type(error), match=re.escape(str(error)[:40])):
                explain(loss)
            continue
        found = same_as_backward(loss, leaves)
        text = str(found)
        # a write
        assert (title(name, row.params) in text or op.composite
                or any(" = " in step.op or " += " in step.op for step in found.forward))
        assert not [word for word in re.findall(r"([a-z_0-9]+)\(", text) if word in INTERNAL], text
        assert not {step.op for step in found.forward} & INTERNAL
        assert not {node.title for node in found.model.nodes if node.kind == "step"} & INTERNAL
        assert max(map(len, text.splitlines())) <= 100


def shared(T):
    x = leaf(3, 4)
    y = x * x + x.exp()
    return (y * y + x).sum(), [x]


def broadcast(T):
    a, b, c = leaf(3, 1), leaf(2, 1, 4, seed=1), leaf(seed=2)
    return (a * b - c / (b * b + 1)).sum(), [a, b, c]


def several(T):
    x = leaf(4, 6)
    a, b = x.split(3, dim=1)
    values, _ = (a * b).max(1)
    p, q, *_ = x.unbind(0)
    return (values * (p * q).sum()).sum(), [x]


def views_and_writes(T):
    x, y = leaf(3, 4), leaf(4, seed=1)
    z = x * 2
    z[1] = y * 3
    z.t()[0].mul_(x[:, 1])
    z.add_(1)
    return (z.reshape(2, 6) ** 2).mean(), [x, y]


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x ** 3 * y, x + y

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return 3 * x ** 2 * y * g + h, (x ** 3 * g + h)


def function(T):
    x, y = leaf(3), leaf(3, seed=1)
    a, b = Cube.apply(x, y)
    return (a * b + a).sum(), [x, y]


def perceptron(T):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3, bias=False), nn.BatchNorm1d(3))
    return F.cross_entropy(model(torch.randn(6, 3)), torch.tensor([0, 1, 2, 0, 1, 2])), list(model.parameters())


def recurrent(T):
    torch.manual_seed(0)
    model = nn.LSTM(2, 3, num_layers=2)
    y, (h, c) = model(torch.randn(4, 2, 2))
    return (y.sum() + (h * c).sum()), list(model.parameters())


def attention(T):
    q, k, v = (leaf(1, 2, 5, 4, seed=i) for i in range(3))
    return (F.scaled_dot_product_attention(q, k, v, is_causal=True) ** 2).sum(), [q, k, v]


def convolution(T):
    x, w, b = leaf(1, 2, 6, 6), leaf(3, 2, 3, 3, seed=1), leaf(3, seed=2)
    return F.max_pool2d(F.conv2d(x, w, b).relu(), 2).sum(), [x, w, b]


def complex_numbers(T):
    x = torch.tensor([1 + 2j, 0.5 - 1j], requires_grad=True)
    return (x * x.conj() * torch.tensor(2 - 1j)).abs().sum(), [x]


def bfloat16(T):
    x = leaf(4).detach().bfloat16().requires_grad_()
    return (x * x).sum(), [x]


def bfloat16_writes(T):
    """Writes whose value is computed from what they write to, so that its gradient is a sum."""
    x = leaf(4).detach().bfloat16().requires_grad_()
    y = x * 1
    y[1:] = y[1:] * 3
    y[0] += y[0].exp()
    y.mul_(2)
    return (y * x).sum(), [x]


def checkpointed(T):
    from tensorgrad.utils.checkpoint import checkpoint
    x, w = leaf(3), leaf(3, seed=1)
    return checkpoint(lambda x: (x * w).tanh() * x, x, use_reentrant=False).sum(), [x, w]


def a_leaf_alone(T):
    x = leaf()
    return x, [x]


def twice(T):
    x = leaf(3)
    g, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
    return (g * x).sum(), [x]


PROGRAMS = [shared, broadcast, several, views_and_writes, function, perceptron, recurrent, attention, convolution,
            complex_numbers, bfloat16, checkpointed, a_leaf_alone, twice, bfloat16_writes]


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.__name__ for p in PROGRAMS])
def test_programs(program):
    loss, leaves = program(torch)
    found = same_as_backward(loss, leaves)
    assert max(map(len, str(found).splitlines())) <= 100


def test_the_numbers_of_each_step():
    x, w, b = (torch.tensor(v, requires_grad=True) for v in (2.0, -3.0, 1.0))
    h = w * x + b
    loss = h ** 2 + x * x
    found = explain(loss)
    told = [(step.op, t.target, t.rule, t.worked, t.value.text(), t.before and t.before.text(), t.total.text())
            for step in found for t in step.gives]
    assert told == [
        ("add", "v2", "g", "", "1", None, "1"), ("add", "v3", "g", "", "1", None, "1"),
        ("multiply", "x", "g · b", "1 · 2", "2", None, "2"), ("multiply", "x", "g · a", "1 · 2", "2", "2", "4"),
        ("pow", "h", "g · b · a^(b − 1)", "1 · 2 · (−5)^(2 − 1)", "−10", None, "−10"),
        ("add", "v1", "g", "", "−10", None, "−10"), ("add", "b", "g", "", "−10", None, "−10"),
        ("multiply", "w", "g · b", "−10 · 2", "−20", None, "−20"),
        ("multiply", "x", "g · a", "−10 · (−3)", "30", "4", "34")]
    assert {leaf.name: leaf.gradient.text() for leaf in found.leaves} == {"x": "34", "w": "−20", "b": "−10"}
    forward = [(s.result, s.expression, s.worked, s.values[0].text()) for s in found.forward]
    assert forward == [("v1", "w · x", "−3 · 2", "−6"), ("h", "v1 + b", "−6 + 1", "−5"), ("v2", "h^2", "(−5)^2", "25"),
                       ("v3", "x · x", "2 · 2", "4"),
                       ("loss", "v2 + v3", "25 + 4", "29")]


def test_a_gradient_to_start_with():
    x = leaf(2, 3)
    g = torch.arange(6.0).reshape(2, 3)
    found = same_as_backward(x * x, [x], g)
    np.testing.assert_array_equal(found.start.kept, g.numpy())
    np.testing.assert_array_equal(found[0].incoming[0][1].kept, g.numpy())


def test_values_of_the_forward():
    """Values come from the tape, or are computed from it; never from memory that was overwritten."""
    x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    y = ((x * w) + w).sum()
    values = [step.values[0].text() for step in explain(y).forward]
    assert values == ["[3, 8]", "[6, 12]", "18"]
    z = (x * w).exp()
    total = (z + 1).sum()
    with torch.no_grad():
        z.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        explain(total)
    p = x + w
    q = p.sum()
    with torch.no_grad():
        x.fill_(9)
    found = explain(q, names={"x": x})
    assert found.forward[0].values == (None,) and found.given[0][1] is None


def expressions(loss, **names):
    return [step.expression for step in explain(loss, names=names).forward]


def test_terms_that_sums_do_not_keep():
    """Constants are shown by name, or as the simplest number, if result and other term determine them."""
    x, target, other = leaf(4), torch.tensor([0.5, -1.0, 2.0, 0.25]), torch.tensor([0.5, -1.0, 2.0, 0.5])
    for loss, expression in [(((x - target) ** 2).sum(), "x − target"), (((target - x) ** 2).sum(), "target − x"),
                             (((x + target) ** 2).sum(), "x + target"),
                             (((x - target[0]) ** 2).sum(), "x − 0.5"), (((x + 0.1) ** 2).sum(), "x + 0.1"),
                             (((3 - x) ** 2).sum(), "3 − x")]:
        assert expressions(loss, x=x, target=target, other=other)[0] == expression
    y = x - torch.tensor([0.123, 0.5, 0.7, 0.9])
    assert expressions((y ** 2).sum(), x=x, target=target)[0] == "x − …"
    assert expressions(((x - target) ** 2).sum(), x=x, one=target, two=target.clone())[0] == "x − …"
    assert "stands for what the tape had no need to keep" in str(explain((y ** 2).sum()))


def test_names_in_expressions():
    x, w = leaf(2, 3), leaf(2, 3, seed=1)
    assert expressions(torch.cat([x, w, x]).sum(), x=x, w=w) == ["cat([x, w, x], 0)", "Σ(v1)"]
    assert expressions(x.reshape(3, 2).t().sum(), x=x)[0] == "reshape(x, (3, 2))"


# ── nothing changes ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_changes():
    calls = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.grad = torch.tensor([5.0, 5.0])
    h = x * 2
    h.retain_grad()
    h.register_hook(lambda g: calls.append(g) or g * 100)
    loss = (h * h).sum()
    loss.grad_fn.register_hook(lambda *g: calls.append(g))
    saved = [t.clone() for t in (h, x)]
    state = torch.get_rng_state()
    first, second = str(explain(loss)), str(explain(loss))
    assert first == second and not calls and h.grad is None
    assert x.grad.tolist() == [5, 5] and torch.equal(h, saved[0]) and torch.equal(x, saved[1])
    assert torch.equal(torch.get_rng_state(), state) and torch.is_grad_enabled()
    assert "to be added to [5, 5]" in first and "hooks" in first
    loss.backward()
    assert len(calls) == 2 and x.grad.tolist() == [5 + 800, 5 + 1600]


def test_explanations_are_of_the_moment():
    """Later steps of training do not change what was explained."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = (w * w).sum()
    found = explain(loss)
    before = str(found)
    loss.backward()
    with torch.no_grad():
        w.sub_(w.grad)
    assert str(found) == before


def test_a_reentrant_checkpoint_would_write_to_grad():
    from tensorgrad.utils.checkpoint import checkpoint
    w = leaf(3)
    y = checkpoint(lambda x: x * w, leaf(3, seed=1), use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match="use_reentrant"):
        explain(y)
    assert w.grad is None and torch.is_grad_enabled()


# ── what cannot be explained ──────────────────────────────────────────────────────────────────────────────────────────


def test_errors():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="^grad can be implicitly created only for scalar outputs"):
        explain(x * 2)
    with pytest.raises(RuntimeError, match="^element 0 of tensors does not require grad and does not have a grad_fn"):
        explain(torch.ones(()))
    with pytest.raises(RuntimeError, match="^Mismatch in shape"):
        explain(x * 2, torch.ones(3))
    with pytest.raises(TypeError, match=r"explain\(\): argument 'loss' \(position 1\) must be Tensor, not float"):
        explain(2.0)
    with pytest.raises(TypeError, match="gradients can be either Tensors or None"):
        explain(x * 2, 1.0)
    loss = (x * x).sum()
    with pytest.raises(TypeError, match="names: 'n' is a int, not a tensor"):
        explain(loss, names={"n": 3})
    with pytest.raises(TypeError, match="module: expected a Module, not Tensor"):
        explain(loss, module=x)
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        explain(loss)


def test_inside_vmap():
    x = torch.ones(3, requires_grad=True)

    def f(row):
        y = (row * x).sum()
        explain(y)
        return y
    with pytest.raises(RuntimeError, match="inside vmap"):
        torch.func.vmap(f)(torch.ones(2, 3))


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_text():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    assert str(explain(y)) == """\
Backprop of y = 9 in 1 step

Forward
     x = 3
  1  y = x · x = 3 · 3 = 9

Back, from ∂L/∂y = 1, with L = y
  1  multiply:  y = x · x
     g       = 1
     x       = 3
     ∂L/∂x   = g · x = 1 · 3 = 3
     ∂L/∂x + = g · x = 1 · 3 = 3
             = 3 + 3 = 6

Arrived
     x.grad = 6"""


def test_colour_is_asked_for():
    loss, _ = perceptron(torch)
    found = explain(loss)
    plain, colour = found.text(), found.text(colour=True)
    assert "\033" not in plain and "\033" in colour
    assert re.sub(r"\033\[\d+m", "", colour) == plain


@pytest.mark.parametrize("width", [40, 60, 100, 160])
def test_width(width):
    loss, _ = perceptron(torch)
    assert max(map(len, explain(loss).text(width=width).splitlines())) <= width


def test_names():
    model = nn.Linear(2, 1)
    x = torch.ones(3, 2)
    loss = model(x).sum()
    assert {leaf.name for leaf in explain(loss).leaves} == {"model.weight", "model.bias"}
    assert {leaf.name for leaf in explain(loss, module=model).leaves} == {"weight", "bias"}
    # the module that ran has it
    assert {leaf.name for leaf in explain(loss, names={"w": model.weight}).leaves} == {"w", "bias"}
    model.weight.name = "mine"
    assert "mine" in {leaf.name for leaf in explain(loss).leaves}


def test_rules_in_the_names_of_tensors():
    """Formulas are unambiguous for any names of a program's tensors."""
    a, b, g = (torch.tensor(v, requires_grad=True) for v in (2.0, 3.0, 5.0))
    step, = explain(b * a, names={"a": a, "b": b})
    assert ([(t.target, t.rule, t.named) for t in step.gives] == [("b", "g · b", "g · a"), ("a", "g · a", "g · b")]
            and dict(step.rows).keys() == {"a", "b"})
    step, = explain(g * a, names={"a": a, "g": g})
    assert ([(t.target, t.named) for t in step.gives] == [("g′", "g · a"), ("a", "g · g′")]
            and dict(step.rows).keys() == {"a", "g′"})
    step, = explain(a * 4, names={"a": a})
    assert step.gives[0].named == "g · 4" and not step.rows
    step, = explain(F.layer_norm(leaf(1, 3), (3,)), torch.ones(1, 3), names={})
    assert step.gives[0].named.startswith("(g − mean(g) − centred · mean(g · centred / std) / std) / std, with centred "
                                          "= ")


def test_odd_variables_beside():
    """Whatever else a program has in its variables is none of explain's business."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    base = x * 1
    lost, _ = base.unbind(0)
    base.mul_(2)
    with pytest.raises(RuntimeError, match="modified inplace"):
        lost.grad_fn
    lazy, whole, numbers = nn.LazyLinear(2), torch.ones(2, dtype=torch.int64), [x]
    assert "x.grad = [1, 1]" in str(explain(x.sum())) and lazy and whole is not None and numbers


def test_lines_of_the_program():
    x = torch.tensor(2.0, requires_grad=True)
    with torch.viz.watch():
        y = x * x            # here
    found = explain(y)
    assert found[0].source[2] == "y = x * x            # here" and "test_explain.py:" in str(found)


HOSTILE = ["<script>alert(1)</script>", "</script><b>", "x" * 10_000, "🦊" * 50, "עברית \u202egnp.exe",
           "a\0b\x1b[31m\r\n", '"&\'', "\ud800"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names(name):
    x = torch.tensor(2.0, requires_grad=True)
    found = explain(x * x, names={name: x})
    text, notebook = str(found), found._repr_html_()
    assert "<script" not in notebook and "</script" not in notebook and max(map(len, text.splitlines())) <= 100
    for page in (text, notebook):
        assert not re.search("[\0\x1b\r\u202e\ud800]", page)
        page.encode()


def test_long_graphs():
    """Some thousand steps: the text is of the first and last, and takes no time."""
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(2500):
        y = y * 1.001 + 0.1
    found = same_as_backward(y, [x])
    text = str(found)
    assert len(found) == 5000 and len(text.splitlines()) < 500 and "4940 more" in text
    assert found.text(most=None).count("multiply:") == 2500


def test_large_arrays_are_kept_in_part():
    x = torch.ones(1000, 1000, requires_grad=True)
    found = explain((x * 2).sum())
    assert found[1].gives[0].value.kept.size == 36 and found[1].gives[0].value.shape == (1000, 1000)
    assert "[2, 2, …, 2, 2]" in str(found)


@pytest.mark.parametrize("array, width, text", [
    (np.float32(1 / 3), 60, "0.3333"), (np.array([1.5, -2.0]), 60, "[1.5, −2]"),
    (np.arange(100.0), 60, "[0, 1, 2, …, 97, 98, 99]"), (np.arange(10000.0), 60, "[0, 1, 2, …, 9997, 9998, 9999]"),
    (np.zeros((0, 3)), 60, "[]"), (np.array([True, False]), 60, "[True, False]"), (np.array(1 + 2j), 60, "1+2j"),
    (np.array([np.nan, np.inf, -np.inf]), 60, "[nan, inf, −inf]"),
    (np.ones((9, 9)), 30, "[[1, …, 1], …, [1, …, 1]]"),
    (np.ones((9, 9)), 16, "[[1, …, 1]]"), (np.ones((9, 9, 9)), 16, "9 × 9 × 9 numbers")])
def test_numbers_are_short(array, width, text):
    assert Value(np.asarray(array)).text(width) == text


def test_names_that_end_in_txt_are_text(tmp_path):
    x = torch.ones(2, requires_grad=True)
    told = explain((x * 2).sum())
    assert told.save(tmp_path / "new" / "a.txt").read_text(encoding="utf-8") == told.text(most=None) + "\n"
    assert told.save(tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
