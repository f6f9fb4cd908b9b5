"""Copies of views: `f_copy(x, …)` is `f(x, …)` in new memory. Functions that repeat or combine elements."""
from __future__ import annotations

from collections.abc import Sequence
from math import comb, prod
from typing import Any

import numpy as np

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, fresh, xp
from ..core.tape import TensorBase
from ..storage.out_of_memory import check_room
from ._arguments import check_long, check_tensor, each_example, in_batch, integer, is_hollow, normalize_dim
from ._kinds import Dtype, Index, Ints, Ints1
from ._register import FUNCTIONS, public


def _itself(input: Tensor) -> Tensor:
    return input


def _expand(input: Tensor, size: Ints, *, implicit: bool = False) -> Tensor:
    return input.expand(size)


def _slice(input: Tensor, dim: int = 0, start: Index | None = None, end: Index | None = None,
           step: Index = 1) -> Tensor:
    check_long(*(n for n in (start, end) if n is not None), step := integer(step, "step"))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return input[(slice(None),) * normalize_dim(dim, input.dim()) + (slice(start, end, step),)]


def _view(input: Tensor, size: Ints | Dtype | None = None, dtype: Dtype | None = None) -> Tensor:
    if dtype is None and not isinstance(size, dtypes.dtype):
        return input.reshape(size)
    return input.view(size if dtype is None else dtype)


def _split(input: Tensor, split_size: Index, dim: int = 0) -> tuple[Tensor, ...]:
    return input.split(split_size, dim)


VIEWS = {"alias": _itself, "as_strided": Tensor.as_strided, "detach": _itself, "diagonal": Tensor.diagonal,
         "expand": _expand, "permute": Tensor.permute, "select": Tensor.select, "slice": _slice,
         "squeeze": Tensor.squeeze, "t": Tensor.t, "transpose": Tensor.transpose, "unfold": Tensor.unfold,
         "unsqueeze": Tensor.unsqueeze, "view": _view, "unbind": Tensor.unbind, "split": _split,
         "split_with_sizes": Tensor.split_with_sizes,
         "view_as_real": FUNCTIONS["view_as_real"], "view_as_complex": FUNCTIONS["view_as_complex"]}


def _in_rows(x: Any) -> Any:
    """Return a contiguous copy."""
    return xp.clone(x) if x.array.flags.c_contiguous else xp.contiguous(x)


def copier(name: str, look: Any) -> None:
    """Attach `name_copy`, which copies the result of the view `look`."""
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_tensor(input, f"{name}_copy", "input", 1)
        found = look(input, *args, **kwargs)
        return tuple(map(_in_rows, found)) if isinstance(found, tuple) else _in_rows(found)
    function.__name__ = function.__qualname__ = f"{name}_copy"
    function.like = look  # type: ignore[attr-defined]
    function.__doc__ = f"`{name}`, in memory of its own. https://pytorch.org/docs → torch.{name}_copy"
    public(method=False, out="same")(function)


for _name, _look in VIEWS.items():
    copier(_name, _look)


@public(function=False, name="repeat_interleave")
def _repeated(input: Tensor, repeats: Ints1, dim: Ints1 | None = None, *, output_size: Ints1 | None = None) -> Tensor:
    """`repeat_interleave` of this tensor; here the tensor cannot be the `repeats`.

    https://pytorch.org/docs → torch.repeat_interleave
    """
    return repeat_interleave(input, repeats, dim, output_size=output_size)


@public(method=False)
def repeat_interleave(input: Tensor, repeats: Tensor | Index | None = None, dim: int | None = None, *,
                      output_size: Index | None = None) -> Tensor:
    """Repeat each element, the copies side by side. https://pytorch.org/docs → torch.repeat_interleave

    >>> import tensorgrad as torch
    >>> torch.tensor([1, 2]).repeat_interleave(2)
    tensor([1, 1, 2, 2])
    """
    if in_batch(repeats):
        return each_example(repeat_interleave, input, repeats, dim)
    if repeats is None:                          # the numbers of the repeats: [2, 1] → [0, 0, 1]
        counts = input
        if counts.array.dtype not in (np.int64, np.int32):
            raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for "
                                      f"'{SCALAR_TYPES[counts.dtype.name]}'")
        if counts.array.ndim != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        if not is_hollow(counts) and counts.array.size and int(counts.array.min()) < 0:
            raise RuntimeError("repeats can not be negative")
        return fresh(type(counts._storage).xp.repeat(type(counts._storage).xp.arange(counts.array.size), counts.array),
                     type(counts._storage))
    x = input.reshape(-1) if dim is None else input
    d = normalize_dim(0 if dim is None else dim, x.array.ndim)
    if output_size is not None and is_hollow(repeats):
        backend = type(repeats._storage)
        return x.index_select(d, fresh(backend.xp.zeros(output_size, dtype=np.int64), backend))
    n = x.array.shape[d]
    counts = repeats.array.reshape(-1) if isinstance(repeats, TensorBase) else np.asarray(repeats).reshape(-1)
    if counts.dtype.kind not in "iu":
        raise RuntimeError("repeats has to be Long or Int tensor")
    if counts.size not in (1, n):
        raise RuntimeError(f"repeats must have the same size as input along dim, but got repeats.size(0) = "
                           f"{counts.size} and input.size({d}) = {n}")
    if counts.size and int(counts.min()) < 0:
        raise RuntimeError("repeats can not be negative" if isinstance(repeats, TensorBase)
                           else "Repeats must be non-negative")
    total = int(counts[0]) * n if counts.size == 1 else int(counts.sum())
    if output_size is not None and output_size != total:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {total} but got {output_size}")
    backend = type(x._storage)
    places = fresh(backend.xp.repeat(backend.xp.arange(n), int(counts[0]) if counts.size == 1 else counts), backend)
    return x.index_select(d, places)


@public(method=False)
def unravel_index(indices: Tensor, shape: Ints1) -> tuple[Tensor, ...]:
    """Numbers of elements as their coordinates. https://pytorch.org/docs → torch.unravel_index"""
    shape = (shape,) if isinstance(shape, int) else shape
    if not isinstance(shape, Sequence):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {_named(shape)}")
    for n in shape:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {_named(n)}")
    shape = tuple(shape)
    if indices.array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    if not shape:
        return ()
    steps = indices.new_tensor([prod(shape[i + 1:]) for i in range(len(shape))], dtype=dtypes.int64)
    return (indices.long().unsqueeze(-1) // steps % indices.new_tensor(shape, dtype=dtypes.int64)).unbind(-1)  # type: ignore[no-any-return]


def _named(value: Any) -> str:
    """Return the class of a value as PyTorch prints it."""
    return "<class 'torch.Tensor'>" if isinstance(value, Tensor) else str(type(value))


@public(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of the elements, side by side. https://pytorch.org/docs → torch.vander"""
    if x.array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.array.size if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    powers = FUNCTIONS["arange"](n, device=x.device)
    out = x.unsqueeze(-1) ** (powers if increasing else powers.flip(0))
    return out if x.array.dtype.kind in "fcV" else out.to(dtypes.int64)


@public(out=True)
def nonzero_static(input: Tensor, *, size: Index, fill_value: int = -1) -> Tensor:
    """`nonzero` cut or filled to a number of rows. https://pytorch.org/docs → torch.nonzero_static"""
    if in_batch(input):
        return each_example(nonzero_static, input, size=size, fill_value=fill_value)
    fill_value = integer(fill_value, "fill_value")
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = FUNCTIONS["nonzero"](input)[:size].contiguous()
    missing = size - found.array.shape[0]
    return FUNCTIONS["cat"]([found, found.new_full((missing, input.array.ndim), fill_value)]) if missing > 0 else found


@public(method=True)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All selections of r elements. https://pytorch.org/docs → torch.combinations"""
    from itertools import combinations as pick
    from itertools import combinations_with_replacement as pick_again
    if input.array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if not r:
        return input.new_empty(0)
    n = input.array.size + (r - 1 if with_replacement else 0)
    check_room((comb(n, r) if r <= n else 0, r), 8, "combinations")
    rows = list((pick_again if with_replacement else pick)(range(input.array.size), r))
    places = FUNCTIONS["tensor"](rows, dtype=dtypes.int64, device=input.device).reshape(len(rows), r)
    return xp.embedding(input, places)
