"""Common parts of test_ops, test_nn, test_optim and test_train: both engines side by side, on the device under test.

    DEVICE=cpu|cuda   where tensorgrad computes (PyTorch stays on the CPU)
    VERBOSE=1         prints the losses of every training step
    SHOW_DIFF=1       prints the elements that differ
"""
import os
import unittest

import numpy as np
from support import CHOICES, DEVICE

if DEVICE not in CHOICES:
    raise ValueError(f"DEVICE={DEVICE}: choose one of {', '.join(CHOICES)}")

import tensorgrad

try:
    import torch
except ImportError:
    torch = None

VERBOSE, SHOW_DIFF = (os.environ.get(name) == "1" for name in ("VERBOSE", "SHOW_DIFF"))
needs_torch = unittest.skipIf(torch is None, "PyTorch, the oracle, is not installed")


def ours(array, requires_grad=False):
    """A tensor of ours, on the device under test, with a copy of the values."""
    return tensorgrad.tensor(np.array(array), device=DEVICE).requires_grad_(requires_grad)


def theirs(array, requires_grad=False):
    """Return PyTorch's tensor of an array."""
    return torch.tensor(np.array(array)).requires_grad_(requires_grad)


def values(tensor):
    return tensor.detach().cpu().numpy()


def close(mine, reference, tolerance, what=""):
    """Assert that a tensor of ours has the shape, dtype and values of PyTorch's."""
    a, b = values(mine), values(reference)
    assert a.shape == b.shape, f"{what}: shape {a.shape}, PyTorch {b.shape}"
    assert a.dtype == b.dtype, f"{what}: dtype {a.dtype}, PyTorch {b.dtype}"
    different = ~np.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    if SHOW_DIFF and different.any():
        for place in np.argwhere(different)[:20]:
            print(f"{what} {tuple(map(int, place))}: {a[tuple(place)]} PyTorch: {b[tuple(place)]}")
    assert not different.any(), (f"{what}: {different.sum()} of {a.size} values differ, at most by "
                                 f"{np.abs(a - b).max():.3g}")


def weighted(output):
    """Return a loss that weights all elements differently, so that a wrong sum over broadcast axes shows."""
    count = output.numel()
    weights = np.arange(count).reshape(tuple(output.shape)) + 1.0
    engine = torch if torch is not None and isinstance(output, torch.Tensor) else tensorgrad
    return (output * engine.tensor(weights / count, dtype=output.dtype, device=output.device)).sum()


def alike(function, *arrays, tolerance=1e-5):
    """Assert that `function(engine, *tensors)` and the gradients of its floating point inputs are those of PyTorch.

    The function gives a tensor, or several; the gradients are those of a weighted sum.
    """
    runs = []
    for engine, make in ((tensorgrad, ours), (torch, theirs)):
        inputs = [make(array, np.asarray(array).dtype.kind == "f") for array in arrays]
        outputs = function(engine, *inputs)
        outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
        roots = [out for out in outputs if out.requires_grad]
        if roots:
            sum(weighted(out) for out in roots).backward()
        runs.append((outputs, [x.grad for x in inputs]))
    (mine, my_grads), (reference, their_grads) = runs
    for place, (a, b) in enumerate(zip(mine, reference, strict=True)):
        assert a.requires_grad is b.requires_grad
        close(a, b, tolerance, f"result {place}")
    for place, (a, b) in enumerate(zip(my_grads, their_grads, strict=True)):
        assert (a is None) is (b is None), f"gradient {place}: {a}, PyTorch {b}"
        if a is not None:
            close(a, b, tolerance, f"gradient {place}")


def copied(module, source):
    """The module, on the device under test, with the state of PyTorch's."""
    return module.to(DEVICE).init_from_torch(source).train(source.training)


def normal(*shape, seed=0):
    """Numbers from the normal distribution, float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def uniform(*shape, low=0.0, high=1.0, seed=0):
    """Numbers in (low, high), float32."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)
