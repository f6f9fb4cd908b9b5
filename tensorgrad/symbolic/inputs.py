"""Inputs of graphs."""
from __future__ import annotations

from copy import deepcopy
from math import prod
from typing import Any

from .. import api as tg
from .data import SymbolicCallable, SymbolicData, SymbolicTensor, class_for
from .fake_tensors import SIZES, fake, fake_like

LARGEST = 1 << 28       # elements of an example


def Input(shape: Any = (), batch_size: int | None = None, batch_shape: Any = None, dtype: Any = None,
          min_value: float = 0.0, max_value: float = 1.0, *, batched: bool = True, custom_tensor: Any = None,
          custom_name: str | None = None) -> Any:
    """A tensor that is an input of a graph.

    `shape` is the shape of an example, and the size of the batch is `batch_size`, or unknown. `batch_shape`, or `shape`
    with `batched=False`, includes the size of the batch. Any size may be None: unknown. `custom_tensor` supplies shape
    and dtype, and is the example value (`.v`); other examples are uniform between `min_value` and `max_value`, of a
    `dtype` that is float32 by default. Global random generators do not advance.

    >>> from tensorgrad.symbolic import Input
    >>> Input((3, 4)).shape, Input(batch_shape=(2, 3)).shape, Input((2, 3), batched=False).shape
    ((None, 3, 4), torch.Size([2, 3]), torch.Size([2, 3]))
    """
    if custom_tensor is not None:
        if not isinstance(custom_tensor, tg.Tensor):
            raise TypeError(f"Input: custom_tensor must be a Tensor, not {type(custom_tensor).__name__}")
        return root(SymbolicTensor, [fake_like(custom_tensor)], lambda world: custom_tensor, custom_name)
    if batch_shape is not None:
        sizes = _sizes(batch_shape, "batch_shape")
    elif batched:
        sizes = (_size(batch_size, "batch_size"), *_sizes(shape, "shape"))
    else:
        sizes = _sizes(shape, "shape")
        if not sizes:
            raise ValueError("Input: a shape is needed where batched=False")
    return unknown_tensor(SymbolicTensor, sizes, dtype, min_value, max_value, custom_name)


def CustomInput(data: Any, custom_name: str | None = None) -> Any:
    """An input of a graph that may be any Python object: a list, set, dict, array, number, string, function.

    `data` is an example. The graph uses a copy of it; all its sizes count as known.

    >>> from tensorgrad.symbolic import CustomInput, SymbolicModel
    >>> x, y = CustomInput({1, 2}), CustomInput({2, 3})
    >>> SymbolicModel((x, y), (x | y, x - y))({5}, {6})
    ({5, 6}, {5})
    """
    kind = (SymbolicTensor if isinstance(data, tg.Tensor) else SymbolicCallable if callable(data)
            else class_for(type(data)))
    value = fake_like(data) if isinstance(data, tg.Tensor) else _copied(data)
    return root(kind, [fake_like(value)], lambda world: _copied(data), custom_name)


def unknown_tensor(kind: type[SymbolicTensor], sizes: tuple[int | None, ...], dtype: Any = None, low: float = 0.0,
                   high: float = 1.0,
                   name: str | None = None) -> Any:
    """Return a node without parents for a tensor with these sizes."""
    dtype = tg.float32 if dtype is None else dtype

    def draw(world: int) -> Any:
        shape = [SIZES[world] if n is None else n for n in sizes]
        if prod(shape) > LARGEST:
            raise RuntimeError(f"a step reads values, and an example of an input of the shape {tuple(shape)} is too "
                               f"large to be made")
        return (tg.rand(shape, generator=tg.Generator().manual_seed(0)) * (high - low) + low).to(dtype)
    return root(kind, [fake(sizes, dtype, world) for world in range(3 if None in sizes else 1)], draw, name)


def root(kind: type[SymbolicData], values: list[Any], example: Any, name: str | None = None) -> Any:
    """Return a node without parents, with a value for each of the three worlds, or one for all."""
    known = len(values) == 1
    node = kind._made(None, (), known, values * 3 if known else values, name, kind)
    node._root = example
    return node


def _copied(data: Any) -> Any:
    try:
        return deepcopy(data)
    except Exception:           # use an object that cannot be copied itself
        return data


def _sizes(shape: Any, what: str) -> tuple[int | None, ...]:
    return tuple(_size(n, what) for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))


def _size(n: Any, what: str) -> int | None:
    if n is not None and (isinstance(n, bool) or not hasattr(n, "__index__") or n < 0):
        raise (TypeError if isinstance(n, bool) or not hasattr(n, "__index__")
               else ValueError)(f"Input: {what} must hold sizes, or None, not {n!r}")
    return None if n is None else int(n)


__all__ = ["CustomInput", "Input"]
