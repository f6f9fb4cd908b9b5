"""Tensors put together, repeated and turned around.

https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops
"""
from __future__ import annotations

from operator import index
from typing import Any

from .._tensor import Tensor
from ..advice import misfit
from ..core.dispatch import xp
from ..core.tape import TensorBase
from ..size import whole
from ._arguments import check_elements, check_list, check_long, normalize_dim, normalize_dims, refuse_complex32
from ._kinds import Index, Ints, Ints1, Tensors
from ._register import FUNCTIONS, public
from .shape import _given, _sizes, ravel


@public("concat", "concatenate", method=False, out="apart")
def cat(tensors: Tensors, dim: int = 0) -> Tensor:
    """Concatenate tensors along an axis.

    Input: a list of (*, n_i, *), n_i at dim, of any dtypes; tensors of shape (0,) are passed over
    Output: (*, Σ n_i, *), of the promoted dtype
    Errors: ValueError if the list is empty; TypeError if it is no list of tensors; RuntimeError if the shapes differ
        elsewhere, or a tensor is 0-d; IndexError if dim is out of range
    https://pytorch.org/docs → torch.cat

    >>> import tensorgrad as torch
    >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    """
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
        if not any(shape != (0,) for shape in shapes):
            dim = 0
        kept = [t for t in tensors if t.array.shape != (0,)] or list(tensors)
        shapes = [t.array.shape for t in kept]
    shape, *others = shapes
    d = normalize_dim(dim, len(shape))
    for i, s in enumerate(others, 1):
        if len(s) != len(shape):
            raise misfit(f"Tensors must have same number of dimensions: got {len(shape)} and {len(s)}")
        if s[:d] != shape[:d] or s[d + 1:] != shape[d + 1:]:
            axis = next(k for k in range(len(shape)) if k != d and s[k] != shape[k])
            raise misfit(f"Sizes of tensors must match except in dimension {d}. Expected size {shape[axis]} but got "
                               f"size {s[axis]} for tensor number {i} in the list.")
    if len(kept) < len(tensors):
        kept.append(xp.reshape(_empty_rest(tensors), shape=(*shape[:d], 0, *shape[d + 1:]))
                    if 0 not in shape[:d] + shape[d + 1:] else kept[0])
        kept = kept[:-1] if kept[-1] is kept[0] else kept
    return xp.concat(kept, axis=d)


def _empty_rest(tensors: Any) -> Any:
    return next(t for t in tensors if t.array.shape == (0,))


@public(method=False, out="apart")
def stack(tensors: Tensors, dim: int = 0) -> Tensor:
    """Tensors of one shape along a new axis.

    Input: a list of k tensors (*)
    Output: (*, k, *), k at dim
    Errors: RuntimeError if the list is empty or the shapes differ; TypeError if it is no list of tensors; IndexError if
        dim is out of range
    https://pytorch.org/docs → torch.stack

    >>> import tensorgrad as torch
    >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    check_list(tensors, "stack")
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    for i, t in enumerate(tensors):
        if not isinstance(t, TensorBase):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
        if t.array.shape != tensors[0].array.shape:
            raise misfit(f"stack expects each tensor to be equal size, but got {list(tensors[0].array.shape)} at entry "
                               f"0 and {list(t.array.shape)} at entry {i}")
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
    f.__doc__ = f"""With axes of length 1 added up to {n}.

    Input: a tensor (*), or several
    Output: a view of at least {n} axes, or a tuple of views; a tensor with as many axes as it is
    https://pytorch.org/docs → torch.atleast_{n}d

    >>> import tensorgrad as torch
    >>> torch.atleast_{n}d(torch.tensor(5)).shape
    torch.Size({[1] * n})
    """
    return public(method=False)(f)


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


@public(method=False, out=True)
def hstack(tensors: Tensors) -> Tensor:
    """Side by side.

    `cat` along the second axis, or along the first if the tensors have only one.

    Input: a list of (n, m_i, *), or (m_i); a 0-d tensor counts as (1)
    Output: (n, Σ m_i, *), or (Σ m_i)
    Errors: RuntimeError if the list is empty or the shapes differ elsewhere
    https://pytorch.org/docs → torch.hstack

    >>> import tensorgrad as torch
    >>> torch.hstack([torch.tensor([[1], [2]]), torch.tensor([[3], [4]])])
    tensor([[1, 3],
            [2, 4]])
    """
    check_list(tensors, "hstack")
    if not len(tensors):
        raise RuntimeError("hstack expects a non-empty TensorList")
    tensors = atleast_1d(*tensors) if len(tensors) > 1 else (atleast_1d(tensors[0]),)
    return cat(tensors, 0 if tensors[0].array.ndim == 1 else 1)


@public("row_stack", method=False, out=True)
def vstack(tensors: Tensors) -> Tensor:
    """Stack along the first axis; tensors of fewer than two axes are rows.

    Input: a list of (n_i, *), or of rows (m)
    Output: (Σ n_i, *), or (the number of rows, m)
    Errors: RuntimeError if the list is empty or the shapes differ elsewhere
    https://pytorch.org/docs → torch.vstack

    >>> import tensorgrad as torch
    >>> torch.vstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    check_list(tensors, "vstack")
    if not len(tensors):
        raise RuntimeError("vstack expects a non-empty TensorList")
    return cat([atleast_2d(t) for t in tensors], 0)


@public(method=False, out=True)
def dstack(tensors: Tensors) -> Tensor:
    """Stack along the third axis, which is added where it is missing.

    Input: a list of (n, m, k_i, *); (n, m) counts as (n, m, 1), and (m) as (1, m, 1)
    Output: (n, m, Σ k_i, *)
    Errors: RuntimeError if the list is empty or the shapes differ elsewhere
    https://pytorch.org/docs → torch.dstack

    >>> import tensorgrad as torch
    >>> torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    check_list(tensors, "dstack")
    if not len(tensors):
        raise RuntimeError("dstack expects a non-empty TensorList")
    return cat([atleast_3d(t) for t in tensors], 2)


@public(method=False, out=True)
def column_stack(tensors: Tensors) -> Tensor:
    """Vectors as columns, matrices side by side.

    Input: a list of (n) and (n, m_i, *)
    Output: (n, Σ m_i, *), where a vector counts as (n, 1)
    Errors: RuntimeError if the list is empty or the shapes differ elsewhere
    https://pytorch.org/docs → torch.column_stack

    >>> import tensorgrad as torch
    >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    check_list(tensors, "column_stack")
    return hstack([xp.reshape(t, shape=(t.array.size, 1)) if t.array.ndim <= 1 else t for t in tensors])


@public(method=False)
def block_diag(*tensors: Tensor | Tensors) -> Tensor:
    """Put matrices along the diagonal of a matrix of zeros.

    Input: any number of (n_i, m_i); a vector (m) counts as (1, m)
    Output: (Σ n_i, Σ m_i)
    Errors: RuntimeError if a tensor has more than two axes
    https://pytorch.org/docs → torch.block_diag

    >>> import tensorgrad as torch
    >>> torch.block_diag(torch.tensor([[1, 2]]), torch.tensor([[3]]))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    if not tensors:
        return FUNCTIONS["empty"](1, 0)
    for i, t in enumerate(tensors):
        if t.array.ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has "
                               f"{t.array.ndim} dimensions")
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
    """Copies side by side along each axis.

    Input: (*), aligned with repeats at the right
    Output: each length times its number of repeats; a copy
    Errors: RuntimeError if there are fewer repeats than axes, or one is negative
    https://pytorch.org/docs → torch.Tensor.repeat

    >>> import tensorgrad as torch
    >>> torch.tensor([[1, 2]]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts, shape = _sizes(_given(repeats, "repeat", "repeats", keywords)), input.array.shape
    lead = len(counts) - len(shape)
    if lead < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(c < 0 for c in counts):
        sizes = [n * m for n, m in zip(counts, (*(1,) * lead, *shape), strict=True)]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {sizes}")
    full = (1,) * lead + tuple(shape)
    spread = tuple(n for pair in zip(counts, full, strict=True) for n in pair)
    single = tuple(n for size in full for n in (1, size))
    out = xp.broadcast_to(xp.reshape(input, shape=single), shape=spread)
    out = xp.reshape(out, shape=tuple(c * n for c, n in zip(counts, full, strict=True)))
    return (xp.clone(out) if out.is_contiguous() else out.contiguous()) if out._storage is input._storage else out


@public(method=False)
def tile(input: Tensor, dims: Ints) -> Tensor:
    """`repeat`, with missing counts taken as 1.

    Input: (*)
    Output: each length times its count; a copy
    Errors: RuntimeError if a count is negative
    https://pytorch.org/docs → torch.tile

    >>> import tensorgrad as torch
    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    dims = tuple(dims)
    return repeat(input, (1,) * (input.array.ndim - len(dims)) + dims)


@public(function=False, name="tile")
def _tile(self: Tensor, *dims: Ints1, **keywords: Any) -> Tensor:
    """`repeat`, with missing counts taken as 1.

    Input: (*)
    Output: each length times its count; a copy
    Errors: RuntimeError if a count is negative
    https://pytorch.org/docs → torch.Tensor.tile

    >>> import tensorgrad as torch
    >>> torch.tensor([[1, 2]]).tile(2)
    tensor([[1, 2, 1, 2]])
    """
    return tile(self, _sizes(_given(dims, "tile", "dims", keywords)))


@public(method=False)
def meshgrid(*tensors: Tensor | Tensors, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid, one tensor an axis.

    Input: tensors (n_1), …, (n_k), or 0-d, of one dtype
    Output: k tensors (n_1, …, n_k); indexing='xy' exchanges the first two axes
    Errors: RuntimeError if there are no tensors, one has more than one axis, the dtypes differ, or indexing is neither
        'ij' nor 'xy'
    https://pytorch.org/docs → torch.meshgrid

    >>> import tensorgrad as torch
    >>> x, y = torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing='ij')
    >>> x
    tensor([[1, 1],
            [2, 2]])
    """
    tensors = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        import warnings
        warnings.warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
                      UserWarning, stacklevel=2)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if any(t.array.ndim > 1 for t in tensors):
        raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                           f"{next(t for t in tensors if t.array.ndim > 1)}")
    if any(t.array.dtype != tensors[0].array.dtype for t in tensors):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if any(t.device != tensors[0].device for t in tensors):
        raise RuntimeError("meshgrid expects all tensors to have the same device")
    swap = indexing == "xy" and len(tensors) >= 2
    order = (1, 0, *range(2, len(tensors))) if swap else tuple(range(len(tensors)))
    shape = tuple(tensors[i].array.size for i in order)
    grids = []
    for i, t in enumerate(tensors):
        axis = order.index(i)
        grids.append(xp.broadcast_to(xp.reshape(t, shape=(1,) * axis + (t.array.size,) + (1,)
                                                * (len(shape) - axis - 1)), shape=shape))
    return tuple(grids)


@public(method=False)
def cartesian_prod(*tensors: Tensor | Tensors) -> Tensor:
    """All combinations of elements, a row each.

    Input: vectors (n_1), …, (n_k), of one dtype
    Output: (n_1 · … · n_k, k); a single vector as it is
    Errors: RuntimeError if there are no tensors, one is not a vector, or the dtypes differ
    https://pytorch.org/docs → torch.cartesian_prod

    >>> import tensorgrad as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    check_elements(tensors)
    for t in tensors:
        if t.array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([ravel(g) for g in meshgrid(*tensors, indexing="ij")], 1)


@public()
def flip(input: Tensor, dims: Ints) -> Tensor:
    """Axes run backwards.

    Input: (*)
    Output: (*), a copy
    Errors: IndexError if an axis is out of range; RuntimeError if one is named twice
    https://pytorch.org/docs → torch.flip

    >>> import tensorgrad as torch
    >>> torch.tensor([[1, 2], [3, 4]]).flip((0, 1))
    tensor([[4, 3],
            [2, 1]])
    """
    axes = normalize_dims(tuple(dims), input.array.ndim)
    if input.array.ndim - 1 in axes and input.array.shape[-1] > 1:
        refuse_complex32(input, "flip_cpu")         # PyTorch moves rows whole
    return xp.flip(input, axis=axes if input.array.ndim else ())


@public()
def fliplr(input: Tensor) -> Tensor:
    """Columns from right to left.

    Input: (n, m, *)
    Output: (n, m, *), a copy
    Errors: RuntimeError if there are fewer than two axes
    https://pytorch.org/docs → torch.fliplr

    >>> import tensorgrad as torch
    >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if input.array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return xp.flip(input, axis=(1,))


@public()
def flipud(input: Tensor) -> Tensor:
    """Rows from the bottom to the top.

    Input: (n, *)
    Output: (n, *), a copy
    Errors: RuntimeError if the tensor is 0-d
    https://pytorch.org/docs → torch.flipud

    >>> import tensorgrad as torch
    >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if input.array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return xp.flip(input, axis=(0,))


@public()
def rot90(input: Tensor, k: int = 1, dims: Ints = (0, 1)) -> Tensor:
    """A quarter turn, k times, in the plane of two axes.

    The turn goes from the first of dims to the second; a negative k turns back.

    Input: (*, n, *, m, *)
    Output: (*, m, *, n, *) for odd k, (*, n, *, m, *) for even k
    Errors: RuntimeError if dims are not two different axes, or the tensor has fewer than two axes; IndexError if an
        axis is out of range
    https://pytorch.org/docs → torch.rot90

    >>> import tensorgrad as torch
    >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    ndim = input.array.ndim
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    a, b = (normalize_dim(d, ndim) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    k %= 4
    if k == 0:
        return xp.clone(input)
    if k == 2:
        return xp.flip(input, axis=(a, b))
    return (xp.swapaxes(xp.flip(input, axis=(b,)), axis1=a, axis2=b) if k == 1
            else xp.flip(xp.swapaxes(input, axis1=a, axis2=b), axis=(b,)))


@public()
def roll(input: Tensor, shifts: Ints1, dims: Ints1 | None = None) -> Tensor:
    """Elements pushed along axes, around the ends.

    Without dims the flattened tensor is rolled.

    Input: (*)
    Output: (*), where out[(i + shift) mod n] = input[i] along each axis
    Errors: RuntimeError if shifts and dims differ in number, or shifts is empty; IndexError if an axis is out of range
    https://pytorch.org/docs → torch.roll

    >>> import tensorgrad as torch
    >>> torch.roll(torch.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """
    if isinstance(shifts, (tuple, list)) and shifts and isinstance(shifts[0], bool):
        raise TypeError("roll(): argument 'shifts' (position 1) must be tuple of ints, but found element of type bool "
                        "at pos 0")
    shifts = tuple(map(whole, shifts)) if isinstance(shifts, (tuple, list)) else (whole(shifts),)
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
    """The part of matrices on and below a diagonal.

    out[i, j] = input[i, j] if j − i ≤ diagonal, and 0 elsewhere.

    Input: (*, n, m)
    Output: (*, n, m)
    Errors: RuntimeError if there are fewer than two axes
    https://pytorch.org/docs → torch.tril

    >>> import tensorgrad as torch
    >>> torch.tril(torch.tensor([[1, 2], [3, 4]]))
    tensor([[1, 0],
            [3, 4]])
    """
    if input.array.ndim < 2:
        raise RuntimeError("tril: input tensor must have at least 2 dimensions")
    check_long(diagonal := whole(diagonal))
    return xp.tril(input, k=diagonal)


@public(inplace=True, out="same")
def triu(input: Tensor, diagonal: Index = 0) -> Tensor:
    """The part of matrices on and above a diagonal.

    out[i, j] = input[i, j] if j − i ≥ diagonal, and 0 elsewhere.

    Input: (*, n, m)
    Output: (*, n, m)
    Errors: RuntimeError if there are fewer than two axes
    https://pytorch.org/docs → torch.triu

    >>> import tensorgrad as torch
    >>> torch.triu(torch.tensor([[1, 2], [3, 4]]))
    tensor([[1, 2],
            [0, 4]])
    """
    if input.array.ndim < 2:
        raise RuntimeError("triu: input tensor must have at least 2 dimensions")
    check_long(diagonal := whole(diagonal))
    return xp.triu(input, k=diagonal)
