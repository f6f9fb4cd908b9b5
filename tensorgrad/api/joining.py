"""Tensors put together, repeated and turned around. https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops"""
from __future__ import annotations

from operator import index
from typing import Any

from .._tensor import Tensor
from ..advice import misfit
from ..core.dispatch import xp
from ..core.tape import TensorBase
from ._arguments import check_elements, check_list, check_long, normalize_dim, normalize_dims
from ._kinds import Index, Ints, Ints1, Tensors
from ._register import FUNCTIONS, public
from .shape import _given, _sizes, ravel


@public("concat", "concatenate", method=False, out="apart")
def cat(tensors: Tensors, dim: int = 0) -> Tensor:
    """Concatenate tensors along an axis. https://pytorch.org/docs → torch.cat"""
    check_list(tensors, "cat")
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    shapes = []
    for i, t in enumerate(tensors):
        if not isinstance(t, TensorBase):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
        if not (shape := t.array.shape):
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        shapes.append(shape)
    kept = tensors
    if (0,) in shapes:       # PyTorch lets the old empty tensor pass
        kept = [t for t in tensors if t.array.shape != (0,)] or list(tensors)
        shapes = [t.array.shape for t in kept]
    shape, *others = shapes
    d = normalize_dim(dim, len(shape))
    for i, s in enumerate(others, 1):
        if len(s) != len(shape):
            raise misfit(f"Tensors must have same number of dimensions: got {len(shape)} and {len(s)}")
        if s[:d] != shape[:d] or s[d + 1:] != shape[d + 1:]:
            axis = next(k for k in range(len(shape)) if k != d and s[k] != shape[k])
            raise misfit(f"Sizes of tensors must match except in dimension {d}. Expected size {shape[axis]} but got size {s[axis]} "
                               f"for tensor number {i} in the list.")
    if len(kept) < len(tensors):
        kept.append(xp.reshape(_empty_rest(tensors), shape=(*shape[:d], 0, *shape[d + 1:])) if 0 not in shape[:d] + shape[d + 1:] else kept[0])
        kept = kept[:-1] if kept[-1] is kept[0] else kept
    return xp.concat(kept, axis=d)


def _empty_rest(tensors: Any) -> Any:
    return next(t for t in tensors if t.array.shape == (0,))


@public(method=False, out="apart")
def stack(tensors: Tensors, dim: int = 0) -> Tensor:
    """Tensors of one shape along a new axis. https://pytorch.org/docs → torch.stack"""
    check_list(tensors, "stack")
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    for i, t in enumerate(tensors):
        if not isinstance(t, TensorBase):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
        if t.array.shape != tensors[0].array.shape:
            raise misfit(f"stack expects each tensor to be equal size, but got {list(tensors[0].array.shape)} at entry 0 and "
                               f"{list(t.array.shape)} at entry {i}")
    return xp.stack(tensors, axis=normalize_dim(dim, tensors[0].array.ndim + 1))


def _at_least(n: int) -> Any:
    def f(*tensors: Tensor | Tensors) -> Tensor | tuple[Tensor, ...]:
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            return tuple(f(t) for t in tensors[0])
        if len(tensors) != 1:
            return tuple(f(t) for t in tensors)
        (x,) = tensors
        shape = x.array.shape
        if len(shape) >= n:
            return x
        padded = {1: lambda: (1,), 2: lambda: (1, *shape) if shape else (1, 1),
                  3: lambda: (1, 1, 1) if not shape else (1, *shape, 1) if len(shape) == 1 else (*shape, 1)}[n]()
        return xp.reshape(x, shape=padded)
    f.__name__ = f.__qualname__ = f"atleast_{n}d"
    f.__doc__ = f"With axes of length 1 added up to {n}. https://pytorch.org/docs → torch.atleast_{n}d"
    return public(method=False)(f)


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


@public(method=False, out=True)
def hstack(tensors: Tensors) -> Tensor:
    """Side by side. https://pytorch.org/docs → torch.hstack"""
    if not len(tensors):
        raise RuntimeError("hstack expects a non-empty TensorList")
    tensors = atleast_1d(*tensors) if len(tensors) > 1 else (atleast_1d(tensors[0]),)
    return cat(tensors, 0 if tensors[0].array.ndim == 1 else 1)


@public("row_stack", method=False, out=True)
def vstack(tensors: Tensors) -> Tensor:
    """Stack along the first axis; tensors of fewer than two axes are rows. https://pytorch.org/docs → torch.vstack"""
    if not len(tensors):
        raise RuntimeError("vstack expects a non-empty TensorList")
    return cat([atleast_2d(t) for t in tensors], 0)


@public(method=False, out=True)
def dstack(tensors: Tensors) -> Tensor:
    """Stack along the third axis, which is added where it is missing. https://pytorch.org/docs → torch.dstack"""
    check_list(tensors, "dstack")
    if not len(tensors):
        raise RuntimeError("dstack expects a non-empty TensorList")
    return cat([atleast_3d(t) for t in tensors], 2)


@public(method=False, out=True)
def column_stack(tensors: Tensors) -> Tensor:
    """Vectors as columns, matrices side by side. https://pytorch.org/docs → torch.column_stack"""
    return hstack([xp.reshape(t, shape=(t.array.size, 1)) if t.array.ndim <= 1 else t for t in tensors])


@public(method=False)
def block_diag(*tensors: Tensor | Tensors) -> Tensor:
    """Put matrices along the diagonal of a matrix of zeros. https://pytorch.org/docs → torch.block_diag"""
    if not tensors:
        return FUNCTIONS["empty"](1, 0)
    for i, t in enumerate(tensors):
        if t.array.ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.array.ndim} dimensions")
    blocks = [atleast_2d(t) for t in tensors]
    rows, columns = sum(b.array.shape[0] for b in blocks), sum(b.array.shape[1] for b in blocks)
    done, lines = 0, []
    for b in blocks:
        width = b.array.shape[1]
        lines.append(xp.pad_constant(b, widths=((0, 0), (done, columns - done - width))))
        done += width
    return cat(lines, 0) if rows else blocks[0]


@public(function=False)
def repeat(input: Tensor, *repeats: Ints1, **keywords: Any) -> Tensor:
    """Copies side by side along each axis. https://pytorch.org/docs → torch.Tensor.repeat"""
    counts, shape = _sizes(_given(repeats, "repeat", "repeats", keywords)), input.array.shape
    lead = len(counts) - len(shape)
    if lead < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(c < 0 for c in counts):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(counts)}: {list(counts)}")
    full = (1,) * lead + tuple(shape)
    spread = tuple(n for pair in zip(counts, full, strict=True) for n in pair)
    single = tuple(n for size in full for n in (1, size))
    out = xp.broadcast_to(xp.reshape(input, shape=single), shape=spread)
    out = xp.reshape(out, shape=tuple(c * n for c, n in zip(counts, full, strict=True)))
    return (xp.clone(out) if out.is_contiguous() else out.contiguous()) if out._storage is input._storage else out


@public(method=False)
def tile(input: Tensor, dims: Ints) -> Tensor:
    """`repeat`, with missing counts taken as 1. https://pytorch.org/docs → torch.tile"""
    dims = tuple(dims)
    return repeat(input, (1,) * (input.array.ndim - len(dims)) + dims)


@public(function=False, name="tile")
def _tile(self: Tensor, *dims: Ints1, **keywords: Any) -> Tensor:
    """`repeat`, with missing counts taken as 1. https://pytorch.org/docs → torch.Tensor.tile"""
    return tile(self, _sizes(_given(dims, "tile", "dims", keywords)))


@public(method=False)
def meshgrid(*tensors: Tensor | Tensors, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid, one tensor an axis. https://pytorch.org/docs → torch.meshgrid"""
    tensors = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        import warnings
        warnings.warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", UserWarning, stacklevel=2)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if any(t.array.ndim > 1 for t in tensors):
        raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                           f"{next(t for t in tensors if t.array.ndim > 1)}")
    if any(t.array.dtype != tensors[0].array.dtype for t in tensors):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(tensors) >= 2
    order = (1, 0, *range(2, len(tensors))) if swap else tuple(range(len(tensors)))
    shape = tuple(tensors[i].array.size for i in order)
    grids = []
    for i, t in enumerate(tensors):
        axis = order.index(i)
        grids.append(xp.broadcast_to(xp.reshape(t, shape=(1,) * axis + (t.array.size,) + (1,) * (len(shape) - axis - 1)), shape=shape))
    return tuple(grids)


@public(method=False)
def cartesian_prod(*tensors: Tensor | Tensors) -> Tensor:
    """All combinations of elements, a row each. https://pytorch.org/docs → torch.cartesian_prod"""
    check_elements(tensors)
    for t in tensors:
        if t.array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([ravel(g) for g in meshgrid(*tensors, indexing="ij")], 1)


@public()
def flip(input: Tensor, dims: Ints) -> Tensor:
    """Axes run backwards. https://pytorch.org/docs → torch.flip"""
    axes = normalize_dims(tuple(dims), input.array.ndim)
    return xp.flip(input, axis=axes if input.array.ndim else ())


@public()
def fliplr(input: Tensor) -> Tensor:
    """Columns from right to left. https://pytorch.org/docs → torch.fliplr"""
    if input.array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return xp.flip(input, axis=(1,))


@public()
def flipud(input: Tensor) -> Tensor:
    """Rows from the bottom to the top. https://pytorch.org/docs → torch.flipud"""
    if input.array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return xp.flip(input, axis=(0,))


@public()
def rot90(input: Tensor, k: int = 1, dims: Ints = (0, 1)) -> Tensor:
    """A quarter turn, k times, in the plane of two axes. https://pytorch.org/docs → torch.rot90"""
    ndim = input.array.ndim
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    a, b = (normalize_dim(d, ndim) for d in dims)
    k %= 4
    if k == 0:
        return xp.clone(input)
    if k == 2:
        return xp.flip(input, axis=(a, b))
    return xp.swapaxes(xp.flip(input, axis=(b,)), axis1=a, axis2=b) if k == 1 else xp.flip(xp.swapaxes(input, axis1=a, axis2=b), axis=(b,))


@public()
def roll(input: Tensor, shifts: Ints1, dims: Ints1 | None = None) -> Tensor:
    """Elements pushed along axes, around the ends. https://pytorch.org/docs → torch.roll"""
    if isinstance(shifts, (tuple, list)) and shifts and isinstance(shifts[0], bool):
        raise TypeError("roll(): argument 'shifts' (position 1) must be tuple of ints, but found element of type bool at pos 0")
    shifts = tuple(map(index, shifts)) if isinstance(shifts, (tuple, list)) else (index(shifts),)
    dims = () if dims is None else tuple(dims) if isinstance(dims, (tuple, list)) else (index(dims),)
    if not dims:
        if not shifts:
            raise RuntimeError("`shifts` required")
        if len(shifts) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:0")
        return xp.reshape(xp.roll(ravel(input), shift=shifts, axis=(0,)), shape=input.array.shape)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not input.array.size:
        return xp.clone(input)
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    return xp.roll(input, shift=shifts, axis=tuple(normalize_dim(d, input.array.ndim) for d in dims))


@public(inplace=True, out="same")
def tril(input: Tensor, diagonal: Index = 0) -> Tensor:
    """The part of matrices on and below a diagonal. https://pytorch.org/docs → torch.tril"""
    if input.array.ndim < 2:
        raise RuntimeError("tril: input tensor must have at least 2 dimensions")
    check_long(diagonal := index(diagonal))
    return xp.tril(input, k=diagonal)


@public(inplace=True, out="same")
def triu(input: Tensor, diagonal: Index = 0) -> Tensor:
    """The part of matrices on and above a diagonal. https://pytorch.org/docs → torch.triu"""
    if input.array.ndim < 2:
        raise RuntimeError("triu: input tensor must have at least 2 dimensions")
    check_long(diagonal := index(diagonal))
    return xp.triu(input, k=diagonal)
