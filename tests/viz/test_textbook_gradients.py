"""Rules as courses write them: each has the numbers of the engine's gradient, and no op is without one."""
import re

import numpy as np
import pytest
from samples import SAMPLES
from sampling import Values
from support import cpu_only

import tensorgrad as torch
from tensorgrad.core.dispatch import xp as of_tensors
from tensorgrad.ops.base import OPS, Composite, arguments, input_name
from tensorgrad.storage.cpu import NumpyStorage
from tensorgrad.viz import explain, formulas
from tensorgrad.viz.formulas import BY_DEFINITION, ELSEWHERE
from tensorgrad.viz.textbook_gradients import RULES, WORDS, Words

pytestmark = cpu_only
F, xp = torch.nn.functional, NumpyStorage.xp
OWN = {name: op for name, op in OPS.items() if op.__module__.startswith("tensorgrad.")}


def engine(name, drawn, params):
    """The results of an op, a gradient for the first of them, and the gradients of the inputs that it gives, by their
    names.
    """
    op = OPS[name]
    inputs = [torch.tensor(a).requires_grad_(a.dtype.kind == "f") if isinstance(a, np.ndarray) else a for a in drawn]
    found = getattr(of_tensors, name)(*inputs, **params)
    out = found[0] if op.several else found
    g = torch.tensor(np.random.default_rng(3).normal(size=tuple(out.shape)))
    leaves = {input_name(op, i): a for i, a in enumerate(inputs) if isinstance(a, torch.Tensor) and a.requires_grad}
    gradients = torch.autograd.grad(out, list(leaves.values()), g, allow_unused=True)
    return out.detach().numpy(), g.numpy(), {name: h.numpy() for name, h in zip(leaves, gradients, strict=True)
                                             if h is not None}


def evaluated(name, which, g, drawn, params, out):
    rule = RULES[name][which]
    asked = arguments(rule)[0][2:]
    values = dict(zip(OPS[name].inputs, drawn, strict=True)) | params | {"out": out}
    return rule(xp, (g,) if OPS[name].several else g, *(values[each] for each in asked))


UNUSUAL = {        # beside the samples: several places, classes along axis 1, broadcasts, what is masked
    "cross_entropy": [((2, 3, 4), "target", None, {"reduction": "mean", "ignore_index": -100}),
                      ((2, 3, 4), "target", (3,), {"reduction": "sum", "ignore_index": 2}),
                      ((5, 3), "ignored", (3,), {"reduction": "mean", "ignore_index": -100}),
                      ((5, 3), "ignored", None, {"reduction": "mean", "ignore_index": -100})],
    "native_layer_norm": [((2, 3, 4), (3, 4), None, {"ndim": 2, "eps": 1e-3}),
                          ((2, 3), None, (3,), {"ndim": 1, "eps": 1e-3}),
                          ((9, 5), None, (5,), {"ndim": 1, "eps": 1e-3})],
    "native_group_norm": [((2, 6, 2, 3), (6,), (6,), {"groups": 3, "eps": 1e-3})],
    "native_batch_norm": [((3, 2, 4, 2), (2,), (2,), {"eps": 1e-3})],
    "rms_norm": [((2, 3, 4), (3, 4), {"ndim": 2, "eps": 1e-3})],
    "attention": [((2, 3, 2), (1, 4, 2), (2, 4, 3), (3, 4), {"causal": False, "scale": 0.6}),
                  ((2, 3, 2), (2, 3, 2), (2, 3, 3), "masked", {"causal": False, "scale": 0.6}),
                  ((3, 2), (3, 2), (3, 3), (3, 3), {"causal": True, "scale": 0.6})],
}


def made(shape, first):
    rng = np.random.default_rng(sum(map(ord, str(shape))))
    if shape in ("target", "ignored"):
        target = rng.integers(0, first[1], (first[0], *first[2:]))
        return np.where(np.arange(len(target)) == 1, -100, target) if shape == "ignored" else target
    if shape == "masked":
        return np.array([[0, -np.inf, 0], [-np.inf] * 3, [0.5, 0, 0]])
    return None if shape is None else rng.normal(size=shape)


CASES = [(name, row.draw(), row.params) for name in RULES for row in SAMPLES[name]]
CASES += [(name, [made(shape, shapes[0]) for shape in shapes], params) for name, rows in UNUSUAL.items()
          for *shapes, params in rows]


@pytest.mark.parametrize(("name", "drawn", "params"), CASES)
def test_a_rule_has_the_numbers_of_the_engine(name, drawn, params):
    out, g, gradients = engine(name, drawn, params)
    taught = RULES[name]
    assert gradients.keys() <= taught.keys() and gradients
    for which, expected in gradients.items():
        found = np.asarray(evaluated(name, which, g, drawn, params, out))
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=which)


def test_no_rule_is_missing():
    """Of each input that gets a gradient, for each op of the table."""
    counted = set()
    for name in SAMPLES:
        op = OPS[name]
        if name not in OWN or not (op.differentiable or op.composite):
            continue
        rules = formulas(op).rules
        for row in SAMPLES[name]:
            for i, each in enumerate(row.inputs):
                if (isinstance(each, Values) and each.learnt and each.kind in "fc"
                        and (op.composite or hasattr(op, f"grad_{input_name(op, i)}"))):
                    rule = rules[input_name(op, i)]
                    assert rule and rule not in (ELSEWHERE, BY_DEFINITION), (name, rule)
                    counted.add((name, input_name(op, i)))
    assert {name for name, _ in counted} >= {name for name, op in OWN.items() if op.composite} and len(counted) > 300


def test_every_rule_says_what_it_computes():
    rules = [(name, which, rule) for name, op in OWN.items() if op.differentiable or op.composite
             for which, rule in formulas(op).rules.items()]
    assert {name for name, _, _ in rules} == {name for name, op in OWN.items() if op.differentiable or op.composite}
    for name, which, rule in rules:
        assert rule != ELSEWHERE and rule != BY_DEFINITION and "one kernel" not in rule, (name, which)
        assert not re.search(r"convolution_(input|weight)|sum_of_channels|window_spread|window_sum", rule), (name,
                                                                                                             which)


def test_tables_are_of_ops_and_their_inputs():
    for table in (RULES, WORDS):
        for name, taught in table.items():
            assert set(taught) <= set(OPS[name].inputs), name
    assert not RULES.keys() & WORDS.keys()
    for name, op in OWN.items():
        if op.composite:
            assert (set(RULES.get(name, WORDS.get(name))) == set(op.inputs)
                    - ({"target", "w"} if name == "cross_entropy" else set()))


PRINTED = {
    "cross_entropy": ({"w": None, "reduction": "mean", "ignore_index": -100}, "x",
                      "(softmax(x) − onehot(target)) · g / n"),
    "native_layer_norm": ({"w": None}, "x", "(g − mean(g) − centred · mean(g · centred / std) / std) / std, "
                          "with centred = x − mean(x), std = √(mean(centred²) + ε)"),
    "rms_norm": ({}, "w", "Σ(g · x / √(mean(x²) + ε))"),
    "affine_by_channel": ({}, "x", "g · w / √(variance + ε)"),
    "attention": ({"mask": None, "causal": False}, "value", "softmax((query @ keyᵀ) · scale)ᵀ @ g"),
}


@pytest.mark.parametrize("name", PRINTED)
def test_a_rule_is_printed_as_courses_write_it(name):
    options, which, text = PRINTED[name]
    assert formulas(OPS[name], options).rules[which] == text


def test_explain_prints_them():
    x = torch.tensor([[0.5, -1.0, 2.0]], requires_grad=True)
    target = torch.tensor([2])
    step = explain(F.cross_entropy(x, target), names={"x": x, "target": target}).steps[0]
    assert step.gives[0].rule == "(softmax(x) − onehot(target)) · g / n" == step.gives[0].named
    assert "(softmax(x) − onehot(target)) · g / n" in explain(F.cross_entropy(x, target)).text(width=160)
    step = explain(F.max_pool1d(x, 3), torch.ones(1, 1), names={"a": x}).steps[0]
    # no name in the place of the article
    assert isinstance(step.gives[0].named, Words) and "largest element of its window" in step.gives[0].named


def test_an_op_of_a_program_that_is_its_definition():
    class ProgramsOwn(Composite):
        """x twice"""

        def forward(xp, x):
            return x + x
    try:
        assert formulas(ProgramsOwn).rules == {"x": BY_DEFINITION}
    finally:
        del OPS[ProgramsOwn.opname]


# ── rules in words: what they say, computed as they say it ────────────────────────────────────────────────────────────


def same(found, gradients):
    assert found.keys() == gradients.keys()
    for which, value in found.items():
        np.testing.assert_allclose(value, gradients[which], rtol=1e-9, atol=1e-9, err_msg=which)


def drawn_of(*shapes):
    rng = np.random.default_rng(7)
    return [None if shape is None else rng.normal(size=shape) for shape in shapes]


def test_convolution():
    x, w, b = drawn_of((2, 3, 7), (4, 3, 2), (4,))
    _, g, gradients = engine("convolution", [x, w, b], {"stride": (2,), "padding": (0,), "dilation": (1,)})
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for place in range(g.shape[2]):
        window = slice(2 * place, 2 * place + 2)
        dx[:, :, window] += np.einsum("no,ock->nck", g[:, :, place], w)
        dw += np.einsum("no,nck->ock", g[:, :, place], x[:, :, window])
    same({"x": dx, "w": dw, "b": g.sum((0, 2))}, gradients)


def test_max_pool():
    x, = drawn_of((2, 3, 7))
    _, g, gradients = engine("max_pool", [x], {"kernel": (3,), "stride": (2,), "widths": ((0, 0),), "dilation": (1,)})
    dx = np.zeros_like(x)
    for place in range(g.shape[2]):
        window = x[:, :, 2 * place:2 * place + 3]
        dx[:, :, 2 * place:2 * place + 3] += (window == window.max(-1, keepdims=True)) * g[:, :, place, None]
    same({"x": dx}, gradients)


def test_logcumsumexp():
    x, = drawn_of((3, 5))
    out, g, gradients = engine("logcumsumexp", [x], {"axis": 1})
    later = np.arange(5)[:, None] <= np.arange(5)
    same({"x": (g[:, None] * np.exp(x[:, :, None] - out[:, None]) * later).sum(-1)}, gradients)


def test_qr():
    a, = drawn_of((4, 3))
    q = torch.tensor(a, requires_grad=True)
    factors = torch.linalg.qr(q)
    Q, R = (f.detach().numpy() for f in factors)
    g = drawn_of((4, 3), (3, 3))
    found, = torch.autograd.grad(factors, [q], [torch.tensor(each) for each in g])
    M = R @ g[1].T - g[0].T @ Q
    M = np.tril(M) - np.diag(np.diag(M)) / 2
    np.testing.assert_allclose((g[0] + Q @ (M + M.T)) @ np.linalg.inv(R).T, found.numpy(), rtol=1e-9, atol=1e-9)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def through_time(x, w_ih, w_hh, before, deltas, hidden):
    """Compute the gradients as the words for recurrent layers describe them."""
    return {"x": np.stack([d @ w_ih for d in deltas]), "w_ih": sum(d.T @ v for d, v in zip(deltas, x, strict=True)),
            "w_hh": sum(d.T @ h for d, h in zip(hidden, before, strict=True)), "b_ih": sum(d.sum(0) for d in deltas),
            "b_hh": sum(d.sum(0) for d in hidden)}


def test_rnn():
    drawn = x, h, w_ih, w_hh, _, _ = drawn_of((4, 2, 3), (2, 2), (2, 3), (2, 2), (2,), (2,))
    y, g, gradients = engine("rnn_layer", drawn, {})
    deltas, later = [], np.zeros((2, 2))
    for t in range(3, -1, -1):
        later = (g[t] + later @ w_hh) * (1 - y[t] ** 2)
        deltas.insert(0, later)
    same(through_time(x, w_ih, w_hh, [h, *y[:-1]], deltas, deltas) | {"h": later @ w_hh}, gradients)


@pytest.mark.parametrize("projected", [False, True])
def test_lstm(projected):
    size = 1 if projected else 2
    drawn = x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr = drawn_of((4, 2, 3), (2, size), (2, 2), (8, 3), (8, size), (8,),
                                                             (8,), (1, 2) if projected else None)
    y, g, gradients = engine("lstm_layer", drawn, {})
    before, cells, gates = [h, *y[:-1]], [c], []
    for t in range(4):
        i, f, cell, o = np.split(x[t] @ w_ih.T + b_ih + before[t] @ w_hh.T + b_hh, 4, axis=1)
        gates.append((sigmoid(i), sigmoid(f), np.tanh(cell), sigmoid(o)))
        cells.append(gates[t][1] * cells[t] + gates[t][0] * gates[t][2])
    deltas, outside, from_later, later = [], [], np.zeros((2, size)), np.zeros((2, 2))
    for t in range(3, -1, -1):
        i, f, cell, o = gates[t]
        dh = g[t] + from_later
        outside.insert(0, dh)
        dh = dh @ w_hr if projected else dh
        dc = dh * o * (1 - np.tanh(cells[t + 1]) ** 2) + later
        deltas.insert(0, np.concatenate([dc * cell * i * (1 - i), dc * cells[t] * f * (1 - f), dc * i * (1 - cell ** 2),
                                         dh * np.tanh(cells[t + 1]) * o * (1 - o)], axis=1))
        from_later, later = deltas[0] @ w_hh, dc * f
    found = through_time(x, w_ih, w_hh, before, deltas, deltas) | {"h": from_later, "c": later}
    if projected:
        found["w_hr"] = sum(d.T @ (gate[3] * np.tanh(cell))
                            for d, gate, cell in zip(outside, gates, cells[1:], strict=True))
    same(found, gradients)


def test_gru():
    drawn = x, h, w_ih, w_hh, b_ih, b_hh = drawn_of((4, 2, 3), (2, 2), (6, 3), (6, 2), (6,), (6,))
    y, g, gradients = engine("gru_layer", drawn, {})
    before, deltas, hidden, later = [h, *y[:-1]], [], [], np.zeros((2, 2))
    for t in range(3, -1, -1):
        (xr, xz, xn), (hr, hz, hn) = (np.split(v, 3, axis=1) for v in (x[t] @ w_ih.T + b_ih, before[t] @ w_hh.T + b_hh))
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        n = np.tanh(xn + r * hn)
        dh = g[t] + later
        dn = dh * (1 - z) * (1 - n ** 2)
        gates = dn * hn * r * (1 - r), dh * (before[t] - n) * z * (1 - z)
        deltas.insert(0, np.concatenate([*gates, dn], axis=1))
        hidden.insert(0, np.concatenate([*gates, dn * r], axis=1))
        later = dh * z + hidden[0] @ w_hh
    same(through_time(x, w_ih, w_hh, before, deltas, hidden) | {"h": later}, gradients)


def test_a_step_defines_its_letters_once():
    x = torch.randn(1, 2, 3, requires_grad=True)
    y, _ = torch.nn.LSTM(3, 2)(x)
    assert str(torch.viz.explain(y.sum())).count("the gates'") == 1
