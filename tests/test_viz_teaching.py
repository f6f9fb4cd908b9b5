"""The rules that courses derive, evaluated as they are written, beside the engine's gradients."""
import numpy as np
import pytest

import tensorgrad as torch
from tensorgrad.core.dispatch import apply
from tensorgrad.ops.base import OPS
from tensorgrad.viz.formulas import ELSEWHERE, formulas
from tensorgrad.viz.teaching import RULES
from tensorgrad.viz.telling import WHOLE

F = torch.nn.functional
EPS = 1e-5


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def back(y, *leaves):
    """A gradient for y, and what arrives at the leaves."""
    g = torch.randn(tuple(y.shape), dtype=y.dtype)
    return g.numpy(), [found.numpy() for found in torch.autograd.grad(y, leaves, g)]


def numbers(*tensors):
    return [t.detach().numpy() for t in tensors]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def rule(y, name):
    step = y.grad_fn
    return formulas(type(step), step.params).rules[name]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_every_differentiable_op_has_its_rules():
    count = 0
    for name, op in OPS.items():
        written = [i for i in op.inputs if hasattr(op, f"grad_{i}")]
        rules = formulas(op).rules
        if op.composite:
            assert rules, name
        for i in written:
            assert rules[i] not in (ELSEWHERE, WHOLE, "") and "convolution_" not in rules[i], (name, i)
            count += 1
    assert count > 300


def test_rules_are_of_inputs_that_there_are():
    for name, told in RULES.items():
        inputs = set(OPS[name].inputs)
        for options in ({}, {"w": None, "mask": None, "w_hr": None}, {"reduction": "none", "reduce": "prod", "relu": True, "p": 2, "causal": True}):
            for i, text in told(options).items():
                assert i in inputs, (name, i)
                assert text.count("(") == text.count(")") and text.count("[") == text.count("]"), text


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(weighted, reduction):
    x, target = drawn(5, 3), torch.tensor([0, 2, -100, 1, 2])
    w = torch.rand(3, dtype=torch.float64) + 0.5 if weighted else None
    loss = F.cross_entropy(x, target, w, reduction=reduction)
    g, (found,) = back(loss, x)
    t, (z,) = target.numpy(), numbers(x)
    counted = t != -100
    of = (w.numpy() if weighted else np.ones(3))[np.where(counted, t, 0)] * counted
    n = of.sum() if reduction == "mean" else 1
    close(found, (softmax(z) - np.eye(3)[np.where(counted, t, 0)]) * (of * g / n)[:, None])
    if not weighted:
        assert rule(loss, "x").startswith("(softmax(x) − onehot(target)) · g" + " / n, with n = count(target ≠ −100)" * (reduction == "mean"))


@pytest.mark.parametrize("kind", ["layer", "group", "batch"])
def test_normalization(kind):
    x, w, b = drawn(4, 6, 5), drawn(5 if kind == "layer" else 6), drawn(5 if kind == "layer" else 6)
    if kind == "layer":
        y = F.layer_norm(x, (5,), w, b, EPS)
    elif kind == "group":
        y = F.group_norm(x, 2, w, b, EPS)
    else:
        y = F.batch_norm(x, None, None, w, b, True, 0.1, EPS)
    g, (gx, gw, gb) = back(y, x, w, b)
    xs, ws = numbers(x, w)
    ws = ws if kind == "layer" else ws[:, None]
    shape, axes = {"layer": ((4, 6, 5), -1), "group": ((4, 2, 15), -1), "batch": ((4, 6, 5), (0, 2))}[kind]

    def mean(value):
        return np.broadcast_to(value.reshape(shape).mean(axes, keepdims=True), shape).reshape(4, 6, 5)
    sd = np.sqrt(mean((xs - mean(xs)) ** 2) + EPS)
    z, h = (xs - mean(xs)) / sd, g * ws
    close(gx, (h - mean(h) - z * mean(h * z)) / sd)
    others = (0, 1) if kind == "layer" else (0, 2)
    close(gw, (g * z).sum(others))
    close(gb, g.sum(others))


def test_what_comes_back_to_the_mean_and_variance_of_a_batch():
    x = drawn(4, 3)
    _, mean, variance = apply(OPS["native_batch_norm"], x, None, None, eps=EPS)
    g1, g2 = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])
    found, = torch.autograd.grad((mean * torch.tensor(g1) + variance * torch.tensor(g2)).sum(), x)
    xs, = numbers(x)
    close(found.numpy(), (g1 + 2 * (xs - xs.mean(0)) * g2) / 4)


def test_batch_norm_after_training():
    x, w, b, mean = drawn(4, 3), drawn(3), drawn(3), torch.randn(3, dtype=torch.float64)
    variance = torch.rand(3, dtype=torch.float64) + 0.5
    y = F.batch_norm(x, mean, variance, w, b, False, 0.1, EPS)
    g, (gx, gw, gb) = back(y, x, w, b)
    xs, ws, m, v = numbers(x, w, mean, variance)
    sd = np.sqrt(v + EPS)
    close(gx, g * ws / sd)
    close(gw, (g * (xs - m)).sum(0) / sd)
    close(gb, g.sum(0))


def test_rms_norm():
    x, w = drawn(4, 5), drawn(5)
    g, (gx, gw) = back(F.rms_norm(x, (5,), w, EPS), x, w)
    xs, ws = numbers(x, w)
    r = np.sqrt((xs ** 2).mean(-1, keepdims=True) + EPS)
    z, h = xs / r, g * ws
    close(gx, (h - z * (h * z).mean(-1, keepdims=True)) / r)
    close(gw, (g * z).sum(0))


def test_attention():
    query, key, value, mask = drawn(4, 3), drawn(5, 3), drawn(5, 2), drawn(4, 5)
    y = F.scaled_dot_product_attention(query, key, value, mask, scale=0.7)
    g, found = back(y, query, key, value, mask)
    q, k, v, m = numbers(query, key, value, mask)
    p = softmax(0.7 * q @ k.T + m)
    s = p * (g @ v.T - (p * (g @ v.T)).sum(-1, keepdims=True))
    for got, expected in zip(found, (0.7 * s @ k, 0.7 * s.T @ q, p.T @ g, s)):
        close(got, expected)


def layers(cls, **options):
    """A recurrent layer on 4 steps of one sample: its numbers, the gradients given to its outputs, and what arrives."""
    layer = cls(3, 2, **options).double()
    x, h = drawn(4, 3), drawn(1, 1 if options.get("proj_size") else 2)
    c = drawn(1, 2)
    y, state = layer(x, (h, c)) if cls is torch.nn.LSTM else layer(x, h)
    g = torch.randn(*y.shape, dtype=torch.float64)
    leaves = [x, h, *([c] if cls is torch.nn.LSTM else []), *layer.parameters()]
    found = torch.autograd.grad(y, leaves, g)
    return numbers(*leaves), numbers(y)[0], g.numpy(), numbers(*found)


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_rnn(nonlinearity):
    (x, h, w, u, b, _), y, g, found = layers(torch.nn.RNN, nonlinearity=nonlinearity)
    d = np.zeros((5, 2))
    for t in range(3, -1, -1):
        d[t] = (g[t] + d[t + 1] @ u) * (y[t] > 0 if nonlinearity == "relu" else 1 - y[t] ** 2)
    d, before = d[:4], np.concatenate([h, y[:3]])
    for got, expected in zip(found, (d @ w, d[:1] @ u, d.T @ x, d.T @ before, d.sum(0), d.sum(0)), strict=True):
        close(got, expected)


@pytest.mark.parametrize("projected", [False, True])
def test_lstm(projected):
    (x, h, c0, w, u, b, b2, *r), y, g, found = layers(torch.nn.LSTM, **{"proj_size": 1} if projected else {})
    cells, gates, prior = [c0[0]], [], np.concatenate([h, y[:3]])
    for t in range(4):
        i, f, v, o = np.split(x[t] @ w.T + b + b2 + prior[t] @ u.T, 4)
        i, f, v, o = sigmoid(i), sigmoid(f), np.tanh(v), sigmoid(o)
        gates.append((i, f, v, o))
        cells.append(f * cells[-1] + i * v)
    d, e, sent, forget = np.zeros((5, 8)), np.zeros((5, 2)), np.zeros((5, y.shape[1])), np.zeros(2)
    for t in range(3, -1, -1):
        (i, f, v, o), c, before = gates[t], cells[t + 1], cells[t]
        sent[t] = g[t] + d[t + 1] @ u
        s = sent[t] @ r[0] if projected else sent[t]
        e[t] = s * o * (1 - np.tanh(c) ** 2) + e[t + 1] * forget
        forget = f
        d[t] = np.concatenate([e[t] * v * i * (1 - i), e[t] * before * f * (1 - f), e[t] * i * (1 - v ** 2), s * np.tanh(c) * o * (1 - o)])
    d, shown = d[:4], np.stack([gates[t][3] * np.tanh(cells[t + 1]) for t in range(4)])
    expected = [d @ w, d[:1] @ u, e[:1] * gates[0][1], d.T @ x, d.T @ prior, d.sum(0), d.sum(0), *([sent[:4].T @ shown] if projected else [])]
    for got, told in zip(found, expected, strict=True):
        close(got, told)


def test_gru():
    (x, h, w, u, b, b2), y, g, found = layers(torch.nn.GRU)
    prior, d, k, s = np.concatenate([h, y[:3]]), np.zeros((4, 6)), np.zeros((5, 6)), np.zeros((5, 2))
    kept = np.zeros(2)
    for t in range(3, -1, -1):
        (xr, xz, xn), (hr, hz, m) = np.split(x[t] @ w.T + b, 3), np.split(prior[t] @ u.T + b2, 3)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        n = np.tanh(xn + r * m)
        s[t] = g[t] + s[t + 1] * kept + k[t + 1] @ u
        kept = z
        q = s[t] * (1 - z) * (1 - n ** 2)
        d[t] = np.concatenate([q * m * r * (1 - r), s[t] * (prior[t] - n) * z * (1 - z), q])
        k[t] = np.concatenate([d[t][:4], q * r])
    expected = (d @ w, s[:1] * kept + k[:1] @ u, d.T @ x, k[:4].T @ prior, d.sum(0), k.sum(0))
    for got, told in zip(found, expected, strict=True):
        close(got, told)


def test_a_step_defines_its_letters_once():
    x = torch.randn(1, 2, 3, requires_grad=True)
    y, _ = torch.nn.LSTM(3, 2)(x)
    text = str(torch.viz.explain(y.sum()))
    assert text.count("of gates i, f, u, o") == 1 and WHOLE not in text


def test_no_weight_no_letter_for_it():
    x, w = torch.randn(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    step, = torch.viz.explain(F.layer_norm(x, (3,)), torch.ones(2, 3))
    assert step.gives[0].rule.startswith("(g − mean(g) − z · mean(g · z)) / σ, with z =")
    step, = torch.viz.explain(F.layer_norm(x, (3,), w), torch.ones(2, 3))
    assert step.gives[0].rule.startswith("(h − mean(h) − z · mean(h · z)) / σ, with h = g · w, z =")
