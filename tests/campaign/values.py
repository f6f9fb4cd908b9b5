"""The parts that calls of the campaign are made of: arrays and tensors of any shape, dtype, layout and values, and how
a result is pulled back twice.

A call is a program in text whose names are those of this file, so that what a report prints can be run as it is.
"""
from math import prod

import numpy as np

import tensorgrad as tg
import tensorgrad.nn.functional as F
from tensorgrad.nn.utils import rnn
from tensorgrad.runtime.native import native

__all__ = ["np", "tg", "F", "rnn", "native", "array", "tensor", "pull", "trained"]
nn = tg.nn


def numbers(count, dtype, values):
    """`count` numbers in a row: small ones, or indices that a name such as "index 5" describes."""
    kind, _, n = values.partition(" ")
    if kind == "range":
        return (np.arange(count) % 7 - 3).astype(dtype)
    if kind == "index":                                     # of an axis of n, from either end
        return (np.arange(count) % max(int(n), 1)).astype(dtype)
    if kind == "outside":                                   # the last of them is not in an axis of n
        found = (np.arange(count) % max(int(n), 1)).astype(dtype)
        found[-1:] = int(n)
        return found
    if kind == "wild":
        return np.resize(np.array([2**62, -2**63, 2**31, -1, 0, 2**63 - 1]), count).astype(dtype)
    return np.full(count, {"nan": np.nan, "infinite": np.inf, "huge": 3e38, "zeros": 0, "ones": 1}[kind]).astype(dtype)


def array(shape, dtype="f4", layout="plain", values="range"):
    """An array.

    The last element of each layout ends where its memory ends, so that a sanitizer sees what goes beyond.
    """
    shape, count = tuple(shape), prod(shape)
    with np.errstate(all="ignore"):
        if layout == "expanded":                            # all rows, or all elements, are one
            return np.broadcast_to(numbers(prod(shape[1:]), dtype, values).reshape(shape[1:]), shape)
        if layout == "overlapping":
            memory = numbers(sum(n - 1 for n in shape) + 1, dtype, values)
            return (np.lib.stride_tricks.as_strided(memory, shape, (memory.itemsize,) * len(shape)) if count
                    else memory[:0].reshape(shape))
        if layout == "sliced" and shape:
            return numbers(count * 2, dtype, values).reshape(*shape[:-1], shape[-1] * 2)[..., 1::2]
        flat = numbers(count, dtype, values)
    if layout == "transposed":
        return flat.reshape(shape[::-1]).T
    if layout == "reversed":
        return flat.reshape(shape)[(slice(None, None, -1),) * len(shape)]
    if layout == "unaligned":
        memory = bytearray(flat.nbytes + 1)
        memory[1:] = flat.tobytes()
        return np.frombuffer(memory, np.uint8)[1:].view(flat.dtype).reshape(shape)
    if layout == "offset":
        return np.concatenate([flat[:0], numbers(1, dtype, "range"), flat])[1:].reshape(shape)
    if layout == "swapped":
        return flat.astype(flat.dtype.newbyteorder()).reshape(shape)
    if layout == "readonly":
        flat.flags.writeable = False
    return flat.reshape(shape)


def tensor(shape, dtype="float32", layout="plain", values="range", grad=False):
    """A tensor that shares the memory of such an array."""
    found = tg.from_numpy(array(shape, "float32" if dtype == "bfloat16" else dtype, layout, values))
    found = found.bfloat16() if dtype == "bfloat16" else found
    return found.requires_grad_() if grad else found


def floats(y):
    """The tensors in a result that have gradients."""
    if isinstance(y, tg.Tensor):
        return [y] if y.requires_grad else []
    if isinstance(y, dict):
        y = y.values()
    return [x for part in y for x in floats(part)] if isinstance(y, (tuple, list)) or hasattr(y, "__iter__") else []


def total(parts):
    return sum((x.abs() if x.is_complex() else x).sum() * (k + 2) for k, x in enumerate(parts))


def pull(y, *leaves):
    """First and second gradients of a result; what they are, as far as they are."""
    results, leaves = floats(y), [x for x in leaves if isinstance(x, tg.Tensor) and x.requires_grad]
    if not results or not leaves:
        return []
    first = tg.autograd.grad(total(results), leaves, create_graph=True, allow_unused=True)
    again = [g for g in first if g is not None and g.requires_grad]
    second = tg.autograd.grad(total([g * g for g in again]), leaves, allow_unused=True) if again else ()
    return [*first, *second]


def trained(optimizer, *parameters, steps=2):
    """Steps of an optimizer, with gradients of a sum."""
    for _ in range(steps):
        for p in parameters:
            try:
                p.grad = tg.ones_like(p)
            except MemoryError:
                raise
            except RuntimeError:                    # of a parameter that may have none any more
                pass
        optimizer.step()
    return optimizer
