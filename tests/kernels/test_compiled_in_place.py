"""Writes in place beside the functions that make new tensors: values, memory, gradients, and what an error leaves as it
was.
"""
import os
import subprocess
import sys

import numpy as np
import pytest

import tensorgrad as tg

SIZES = [(7,), (70, 300), (3, 70_000)]
WAYS = {
    "add_": lambda x, y: x.add_(y), "add_ scaled": lambda x, y: x.add_(y, alpha=0.3),
    "sub_ scaled": lambda x, y: x.sub_(y, alpha=-3),
    "mul_": lambda x, y: x.mul_(y), "div_": lambda x, y: x.div_(y), "add_ itself": lambda x, y: x.add_(x, alpha=2),
    "add_ a row": lambda x, y: x.add_(y[-1]),
    "add_ a number": lambda x, y: x.add_(2),
    "lerp_": lambda x, y: x.lerp_(y, 0.2), "lerp_ to the end": lambda x, y: x.lerp_(y, 0.8),
    "lerp_ by itself": lambda x, y: x.lerp_(y, x),
    "addcmul_": lambda x, y: x.addcmul_(y, y, value=2), "addcmul_ itself": lambda x, y: x.addcmul_(x, y),
    "addcdiv_": lambda x, y: x.addcdiv_(y, y + 9),
    "clamp_": lambda x, y: x.clamp_(-0.5, 0.5), "clamp_ upside down": lambda x, y: x.clamp_(0.5, -0.5),
    "clamp_ below": lambda x, y: x.clamp_(min=0.1),
    "clamp_ by tensors": lambda x, y: x.clamp_(y, y + 1), "relu_": lambda x, y: x.relu_(),
    "sigmoid_": lambda x, y: x.sigmoid_(),
    "exp_": lambda x, y: x.exp_(),
    "neg_": lambda x, y: x.neg_(), "abs_": lambda x, y: x.abs_(), "copy_": lambda x, y: x.copy_(y),
    "copy_ a row": lambda x, y: x.copy_(y[-1]),
    "copy_ turned": lambda x, y: x.copy_(x.flip(-1)), "a view": lambda x, y: x[..., 2:].relu_(),
    "a turned view": lambda x, y: x.mT.add_(y.mT) if x.ndim > 1 else x,
    "zero_": lambda x, y: x.zero_(), "relu6": lambda x, y: nn_of(x).functional.relu6(x, inplace=True),
    "hardtanh_": lambda x, y: nn_of(x).functional.hardtanh_(x, -0.25, 0.75),
}


def nn_of(x):
    """The `nn` of the library that a tensor is of."""
    return tg.nn if isinstance(x, tg.Tensor) else pytest.importorskip("torch").nn


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_values_are_as_pytorch_has_them(way, shape):
    torch = pytest.importorskip("torch")
    found = []
    for engine in (tg, torch):
        x, y = (engine.tensor(np.linspace(-k, k + 1, np.prod(shape), dtype="float32").reshape(shape)) for k in (2, 3))
        before = x.data_ptr()
        with engine.no_grad():
            WAYS[way](x, y)
        assert x.data_ptr() == before
        found.append(x.numpy())
    tg.testing.assert_close(tg.tensor(found[0]), tg.tensor(found[1]))


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("name", ["relu_", "sigmoid_", "tanh_", "exp_", "sqrt_", "neg_", "abs_"])
def test_gradients_are_those_of_the_functions(name, shape):
    def gradient(function):
        x = tg.linspace(0.1, 3, tg.Size(shape).numel()).reshape(shape).sub(1 if name in ("relu_", "abs_", "tanh_")
                                                                           else 0).requires_grad_()
        y = function(x * 1)
        (y * tg.linspace(1, 2, y.numel()).reshape(shape)).sum().backward()
        return x.grad
    tg.testing.assert_close(gradient(lambda y: getattr(y, name)()), gradient(lambda y: getattr(y, name[:-1])()))


def test_an_operand_may_take_the_gradient():
    x, y = tg.ones(3, 40_000), tg.full((3, 40_000), 2.0, requires_grad=True)
    x.add_(y).mul_(y)
    x.sum().backward()
    assert tg.equal(x, tg.full((3, 40_000), 6.0)) and tg.equal(y.grad, tg.full((3, 40_000), 5.0))


def test_an_error_leaves_everything_as_it_was():
    x = tg.rand(3, 40_000, requires_grad=True)
    before = x.detach().clone()
    for write in (lambda: x.relu_(), lambda: x.add_(1), lambda: x[0].exp_(), lambda: x.copy_(before * 2)):
        with pytest.raises(RuntimeError):
            write()
    z = tg.ones(40_000)
    with pytest.raises(RuntimeError):
        z.add_(before)
    assert tg.equal(x, before) and tg.equal(z, tg.ones(40_000))
    y = x * 1
    kept = y * y
    y.relu_()
    with pytest.raises(RuntimeError):
        kept.sum().backward()


@pytest.mark.skipif(os.environ.get("TENSORGRAD_PURE", "0") != "0", reason="is what this runs")
@pytest.mark.skipif("TENSORGRAD_INSTRUCTIONS" in os.environ, reason="is independent of instructions")
def test_all_of_it_without_compiled_kernels():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=os.environ | {"TENSORGRAD_PURE": "1"}, capture_output=True, text=True)
    assert not done.returncode and " passed" in done.stdout, done.stdout + done.stderr
