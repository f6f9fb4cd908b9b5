"""Frozen parameters cost nothing in backward: their gradients are not computed, and backward ends where nothing is
left to train."""
from collections import Counter

import pytest
from support import DEVICE

import tensorgrad as tg
from tensorgrad import nn
from tensorgrad.ops.base import OPS, Pair


def mlp():
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)), (2, 6)


def cnn():
    return (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(20, 2)),
            (2, 3, 6, 6))


def convs(inputs, weights):
    return {"convolution_input": inputs, "convolution_weight": weights}


# model; the parameters that are frozen; whether its input wants a gradient; the products that backward makes then
CASES = {
    "all of it": (mlp, [], False, {"matmul": 5}),
    "and the input": (mlp, [], True, {"matmul": 6}),
    "the first layer": (mlp, ["0.weight", "0.bias"], False, {"matmul": 3}),
    "two layers": (mlp, ["0.weight", "0.bias", "2.weight", "2.bias"], False, {"matmul": 1}),
    "all but a bias": (mlp, ["0.weight", "0.bias", "2.weight", "4.weight", "4.bias"], False, {"matmul": 1}),
    "a weight in the middle": (mlp, ["2.weight"], False, {"matmul": 4}),
    "all weights": (mlp, ["0.weight", "2.weight", "4.weight"], True, {"matmul": 3}),
    "convolutions": (cnn, [], False, {"matmul": 2, **convs(1, 2)}),
    "the first convolution": (cnn, ["0.weight", "0.bias"], False, {"matmul": 2, **convs(0, 1)}),
    "all but the head": (cnn, ["0.weight", "0.bias", "2.weight", "2.bias"], False, {"matmul": 1, **convs(0, 0)}),
    "convolutions between an input and a head": (cnn, ["0.weight", "0.bias", "2.weight", "2.bias"], True,
                                                 {"matmul": 2, **convs(2, 0)}),
}


@pytest.mark.parametrize("case", CASES)
def test_products_of_a_backward(case, device, monkeypatch):
    build, frozen, wanted, expected = CASES[case]
    model, shape = build()
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    x = tg.randn(shape, requires_grad=wanted)
    loss = (model(x) ** 2).sum()
    table, made = type(x._storage).xp, Counter()

    def counting(name, run):
        def counted(*args, **params):
            made[name] += 1
            return run(*args, **params)
        return counted
    for name in expected:
        monkeypatch.setattr(table, name, counting(name, getattr(table, name)))
    loss.backward()
    assert {name: made[name] for name in expected} == expected
    assert all((p.grad is None) == (name in frozen) for name, p in model.named_parameters())


LAYERS = {
    "layer_norm": (lambda: nn.LayerNorm(4), (3, 4)), "group_norm": (lambda: nn.GroupNorm(2, 4), (3, 4, 2)),
    "rms_norm": (lambda: nn.RMSNorm(4), (3, 4)),
    "batch_norm": (lambda: nn.BatchNorm1d(4), (3, 4)), "batch_norm in eval": (lambda: nn.BatchNorm1d(4).eval(), (3, 4)),
    "lstm": (lambda: nn.LSTM(4, 3), (5, 2, 4)), "gru": (lambda: nn.GRU(4, 3), (5, 2, 4)),
    "rnn": (lambda: nn.RNN(4, 3), (5, 2, 4))}


@pytest.mark.skipif(DEVICE != "cpu", reason="about the kernels of NumPy")
@pytest.mark.parametrize("layer", LAYERS)
def test_kernels_leave_out_frozen_gradients(layer, monkeypatch):
    """A kernel's own backward computes gradients only for inputs that require one."""
    build, shape = LAYERS[layer]
    names = [name for name, _ in build().named_parameters()] + ["x"]
    asked = []
    for op in OPS.values():
        pair = op.kernels[type(tg.ones(1)._storage)]
        if isinstance(pair, Pair):
            def watched(g, residual, needs, _run=pair.backward):
                gradients = _run(g, residual, needs)
                asked.append((needs, [ge is not None for ge in gradients]))
                return gradients
            monkeypatch.setattr(pair, "backward", watched)
    for wanted in names:
        model, x = build().requires_grad_(False), tg.randn(shape)
        leaf = x if wanted == "x" else model.get_parameter(wanted)
        leaf.requires_grad_()
        out = model(x)
        asked.clear()
        (out[0] if isinstance(out, tuple) else out).square().sum().backward()
        assert leaf.grad is not None and asked
        # recurrent kernels find those of their states on their way
        hidden = 0 if "norm" in layer else 2 if layer == "lstm" else 1
        for needs, given in asked:
            assert sum(given) - sum(needs) <= hidden and all(g for n, g in zip(needs, given) if n)
