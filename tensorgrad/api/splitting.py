"""Tensors taken apart: slices, pieces, diagonals.

https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops
"""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from ..core.tape import TensorBase
from ..size import whole
from ..storage.out_of_memory import check_room
from ..storage.sparse import Coo, pattern_of
from ._arguments import check_long, integer, normalize_dim
from ._kinds import Index, Ints, Ints1
from ._register import FUNCTIONS, public
from .shape import ravel

PIECE = 400         # bytes that a view takes at least


@public()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis.

    Input: (*, n, *), n at dim
    Output: n views (*, *)
    Errors: IndexError if dim is out of range or the tensor is 0-d
    https://pytorch.org/docs → torch.unbind

    >>> import tensorgrad as torch
    >>> torch.tensor([[1, 2], [3, 4]]).unbind()
    (tensor([1, 2]), tensor([3, 4]))
    """
    if not input.array.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = normalize_dim(dim, input.array.ndim)
    return tuple(xp.unbind(input, axis=d)) if input.array.shape[d] else ()


def _check_has_dims(input: Any, name: str) -> None:
    if not input.array.ndim:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")


@public()
def split(tensor: Tensor, split_size_or_sections: Ints1, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of one size, or of given sizes, along an axis.

    Input: (*, n, *), n at dim
    Output: ⌈n / size⌉ views of that size, the last may be shorter; or a view for each given size
    Errors: RuntimeError if a size is negative, the given sizes do not add up to n, the one size is 0 and n is not, or
        the tensor is 0-d; IndexError if dim is out of range; TypeError if the size is no integer
    https://pytorch.org/docs → torch.split

    >>> import tensorgrad as torch
    >>> torch.split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> torch.split(torch.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    size = split_size_or_sections
    _check_has_dims(tensor, "split")
    d = normalize_dim(dim, tensor.array.ndim)
    n = tensor.array.shape[d]
    if isinstance(size, (list, tuple)):
        size = tuple(map(whole, size))
        if sum(size) == n and any(s < 0 for s in size):
            raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got "
                               f"split_sizes={list(size)}")
        if sum(size) != n or any(s < 0 for s in size):
            raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at "
                               f"dimension {d}), but got split_sizes={list(size)}")
        return tuple(xp.split_with_sizes(tensor, sizes=tuple(size), axis=d))
    else:
        if isinstance(size, TensorBase) and size.array.size == 1:  # type: ignore[attr-defined]
            size = int(size.item())  # type: ignore[attr-defined]
        if size.__class__ is not int:
            raise TypeError(f"split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not "
                            f"{type(size).__name__}")
        if size < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
        if size == 0 and n:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
        sizes = tuple(min(size, n - i * size) for i in range(-(-n // size))) if n else (0,)
    return tuple(xp.split_sizes(tensor, sizes=sizes, axis=d))


def _split_method(self: Tensor, split_size: Ints1, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of one size, or of given sizes, along an axis.

    Input: (*, n, *), n at dim
    Output: ⌈n / size⌉ views of that size, the last may be shorter; or a view for each given size
    Errors: RuntimeError if a size is negative, the given sizes do not add up to n, the one size is 0 and n is not, or
        the tensor is 0-d; IndexError if dim is out of range; TypeError if the size is no integer
    https://pytorch.org/docs → torch.Tensor.split

    >>> import tensorgrad as torch
    >>> torch.arange(5).split(2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    return split(self, split_size, dim)


_split_method.__name__, _split_method.__qualname__ = "split", "Tensor.split"
Tensor.split = _split_method  # type: ignore[attr-defined]


@public()
def split_with_sizes(input: Tensor, split_sizes: Ints, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of given sizes.

    Input: (*, n, *), n at dim
    Output: a view (*, size, *) for each size
    Errors: RuntimeError if a size is negative, the sizes do not add up to n, or the tensor is 0-d; IndexError if dim is
        out of range
    https://pytorch.org/docs → torch.split_with_sizes

    >>> import tensorgrad as torch
    >>> torch.arange(5).split_with_sizes([2, 3])
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    return split(input, list(split_sizes), dim)


def apart(pieces: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give the pieces separate storages and no base: autograd does not see that writes to one affect the others."""
    for piece in pieces:
        piece._storage, piece.origin = piece._storage.another(), None
    return pieces


@public()
def unsafe_split(input: Tensor, split_size: Index, dim: int = 0) -> tuple[Tensor, ...]:
    """`split` with pieces that may be written to if the whole is not used any more.

    Input: (*, n, *), n at dim
    Output: as `split`
    Errors: as `split`
    https://pytorch.org/docs → torch.unsafe_split

    >>> import tensorgrad as torch
    >>> torch.unsafe_split(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return apart(split(input, split_size, dim))


@public()
def unsafe_split_with_sizes(input: Tensor, split_sizes: Ints, dim: int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes`, likewise.

    Input: (*, n, *), n at dim
    Output: as `split_with_sizes`
    Errors: as `split_with_sizes`
    https://pytorch.org/docs → torch.unsafe_split

    >>> import tensorgrad as torch
    >>> torch.unsafe_split_with_sizes(torch.arange(4), [1, 3])
    (tensor([0]), tensor([1, 2, 3]))
    """
    return apart(split_with_sizes(input, split_sizes, dim))


@public()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """About equal pieces.

    Input: (*, n, *), n at dim
    Output: at most `chunks` views of length ⌈n / chunks⌉, the last may be shorter
    Errors: RuntimeError if chunks is not positive or the tensor is 0-d; IndexError if dim is out of range
    https://pytorch.org/docs → torch.chunk

    >>> import tensorgrad as torch
    >>> torch.arange(5).chunk(2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    _check_has_dims(input, "chunk")
    n = input.array.shape[normalize_dim(dim, input.array.ndim)]
    size = -(-n // chunks)
    return split(input, [0] * chunks if n == 0 else size, dim)


@public()
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk`, likewise.

    Input: (*, n, *), n at dim
    Output: as `chunk`
    Errors: as `chunk`
    https://pytorch.org/docs → torch.unsafe_chunk

    >>> import tensorgrad as torch
    >>> torch.unsafe_chunk(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return apart(chunk(input, chunks, dim))


@public()
def tensor_split(input: Tensor, indices_or_sections: Tensor | int | Ints | None = None, dim: int = 0, *,
                 indices: Ints | None = None, sections: Index | None = None,
                 tensor_indices_or_sections: Tensor | None = None) -> tuple[Tensor, ...]:
    """Nearly equal sections, or pieces between given indices.

    Input: (*, n, *), n at dim
    Output: k views, of which the first n mod k are one longer; or k + 1 views between k indices, empty past the end
    Errors: RuntimeError if the number of sections is not positive, a tensor of indices is not int64, or the input is
        0-d; IndexError if dim is out of range
    https://pytorch.org/docs → torch.tensor_split

    >>> import tensorgrad as torch
    >>> torch.arange(5).tensor_split(2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> torch.arange(5).tensor_split((1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    given = [value for value in (indices_or_sections, indices, sections, tensor_indices_or_sections)
             if value is not None]
    if len(given) != 1:
        raise TypeError("tensor_split() takes the sections or the indices, once")
    where: Any = given[0]
    if not input.array.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = normalize_dim(dim, input.array.ndim)
    n = input.array.shape[d]
    if isinstance(where, TensorBase):
        if where.array.dtype.name != "int64":
            raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                               f"{SCALAR_TYPES[where.dtype.name]}")  # type: ignore[attr-defined]
        if where.array.ndim > 1:
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                               f"one-dimensional tensor, but got a tensor with {where.array.ndim} dims")
        where = where.tolist()  # type: ignore[attr-defined]
    if isinstance(where, bool):
        raise TypeError("tensor_split() received an invalid combination of arguments")
    if isinstance(where, int):
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        check_room((where,), PIECE, "tensor_split")
        ends = [i * (n // where) + min(i, n % where) for i in range(1, where)]
    else:
        ends = list(map(whole, where))
    starts = [0, *ends]
    return tuple(_narrowed(input, d, s, e) for s, e in zip(starts, [*ends, n], strict=True))


def _narrowed(input: Any, d: int, start: int, end: int) -> Any:
    return xp.get_slice(input, index=(slice(None),) * d + (slice(start, end),))


def _splitter(name: str, axis: Any) -> None:
    def f(input: Tensor, sections: int | None = None, *, indices: Ints | None = None) -> tuple[Tensor, ...]:
        where = sections if indices is None else indices
        if not isinstance(where, (tuple, list)) and not (isinstance(where, TensorBase) and where.array.ndim):
            where = whole(where)
        needed = {"hsplit": 1, "vsplit": 2, "dsplit": 3}[name]
        ndim = input.array.ndim
        if ndim < needed:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {needed} dimension, but got a tensor "
                               f"with {ndim} dimensions!")
        d = axis(ndim)
        n = input.array.shape[d]
        if isinstance(where, int) and (where == 0 or n % where):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {d}, but the size of the dimension "
                               f"{n} is not divisible by the split_size {where}!")
        return tensor_split(input, where, d)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"""tensor_split along one fixed axis.

    Input: (*); hsplit splits the second axis, or the only one of a vector, vsplit the first, dsplit the third
    Output: as `tensor_split`
    Errors: RuntimeError if there are fewer axes than 1 (hsplit), 2 (vsplit) or 3 (dsplit), or the number of sections
        does not divide the length
    https://pytorch.org/docs → torch.{name}

    >>> import tensorgrad as torch
    >>> len(torch.{name}(torch.ones(4, 4, 4), 2))
    2
    """
    public()(f)


_splitter("hsplit", lambda ndim: 0 if ndim == 1 else 1)
_splitter("vsplit", lambda ndim: 0)
_splitter("dsplit", lambda ndim: 2)


@public()
def narrow(input: Tensor, dim: int, start: Tensor | Index, length: Index) -> Tensor:
    """The part of an axis from start on, of a length.

    Input: (*, n, *), n at dim
    Output: (*, length, *), a view; a negative start counts from the end
    Errors: IndexError if dim is out of range, or start is not in −n … n; RuntimeError if length is negative, start +
        length > n, start is a tensor but no 0-d integer, or the input is 0-d
    https://pytorch.org/docs → torch.narrow

    >>> import tensorgrad as torch
    >>> torch.arange(5).narrow(0, 1, 3)
    tensor([1, 2, 3])
    """
    if isinstance(start, TensorBase):
        if start.array.ndim or start.array.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = start.item()
    start = integer(start, "start")
    if not input.array.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    d = normalize_dim(dim, input.array.ndim)
    n = input.array.shape[d]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    start += n * (start < 0)
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return _narrowed(input, d, start, start + length)


@public(out=True)
def narrow_copy(input: Tensor, dim: int, start: Index, length: Index) -> Tensor:
    """A copy of `narrow`.

    Input: (*, n, *), n at dim
    Output: (*, length, *)
    Errors: RuntimeError if dim is too large, length is negative, start + length > n, or the input is 0-d; IndexError if
        dim is too small, or start is not in −n … n
    https://pytorch.org/docs → torch.narrow_copy

    >>> import tensorgrad as torch
    >>> torch.narrow_copy(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    if isinstance(pattern_of(input), Coo):
        from .sparse_methods import narrowed_copy
        return narrowed_copy(input, dim, start, length)
    if dim >= input.array.ndim > 0:
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.")
    return xp.clone(narrow(input, dim, start, length))


@public()
def select(input: Tensor, dim: int, index: Index) -> Tensor:
    """The slice at one index of an axis, as a view.

    Input: (*, n, *), n at dim
    Output: (*, *)
    Errors: IndexError if dim or index is out of range, or the tensor is 0-d
    https://pytorch.org/docs → torch.select

    >>> import tensorgrad as torch
    >>> torch.tensor([[1, 2], [3, 4]]).select(1, 0)
    tensor([1, 3])
    """
    if not input.array.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d, i = normalize_dim(dim, input.array.ndim), integer(index, "index")
    n = input.array.shape[d]
    if not -n <= i < n:
        raise IndexError(f"select(): index {i} out of range for tensor of size {list(input.array.shape)} at dimension "
                         f"{d}")
    return xp.get_item(input, index=(slice(None),) * d + (i,))


@public()
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonals of matrices.

    out[…, i] = input[…, i, i + offset], or input[…, i − offset, i] for a negative offset.

    Input: (*, n, *, m, *), n and m at dim1 and dim2
    Output: (*, length of the diagonal), a view; length 0 if the offset passes the edge
    Errors: IndexError if an axis is out of range; RuntimeError if they are equal
    https://pytorch.org/docs → torch.diagonal

    >>> import tensorgrad as torch
    >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    ndim = input.array.ndim
    a, b = normalize_dim(dim1, ndim), normalize_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    check_long(offset)
    offset = min(max(offset, -input.array.shape[a]), input.array.shape[b])
    return xp.diagonal(input, offset=offset, axis1=a, axis2=b)


@public(out="same")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A vector as a diagonal matrix, or the diagonal of a matrix.

    Input: (n), or (n, m)
    Output: (n + |diagonal|, n + |diagonal|), or the length of the diagonal; a copy
    Errors: RuntimeError if the tensor is neither a vector nor a matrix
    https://pytorch.org/docs → torch.diag

    >>> import tensorgrad as torch
    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    >>> torch.diag(torch.tensor([[1, 2], [3, 4]]), 1)
    tensor([2])
    """
    if input.array.ndim == 1:
        return diag_embed(input, diagonal)
    if input.array.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.array.ndim}D")
    return xp.clone(FUNCTIONS["diagonal"](input, diagonal))


@public()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Vectors as the diagonals of matrices.

    Input: (*, n)
    Output: (*, n + |offset|, n + |offset|), the new axes at dim1 and dim2
    Errors: IndexError if an axis is out of range, or the tensor is 0-d; RuntimeError if they are equal
    https://pytorch.org/docs → torch.diag_embed

    >>> import tensorgrad as torch
    >>> torch.diag_embed(torch.tensor([1, 2]), 1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    shape = input.array.shape
    a, b = normalize_dim(dim1, len(shape) + 1), normalize_dim(dim2, len(shape) + 1)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = shape[-1] + abs(offset)
    full = list(shape[:-1])
    for d in sorted((a, b)):
        full.insert(d, n)
    return xp.diagonal_place(input, shape=tuple(full), offset=offset, axis1=a, axis2=b)


@public()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """All elements on the diagonal of a matrix.

    Input: (*), n elements
    Output: (n + |offset|, n + |offset|)
    https://pytorch.org/docs → torch.diagflat

    >>> import tensorgrad as torch
    >>> torch.diagflat(torch.tensor([[1, 2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(ravel(input), offset)


@public(function=False)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows along an axis, as a new last axis.

    Input: (*, n, *), n at dimension
    Output: (*, ⌊(n − size) / step⌋ + 1, *, size), a view
    Errors: RuntimeError if size is negative or exceeds n, or step is not positive; IndexError if dimension is out of
        range
    https://pytorch.org/docs → torch.Tensor.unfold

    >>> import tensorgrad as torch
    >>> torch.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    d = normalize_dim(dimension, input.array.ndim)
    n = input.array.shape[d] if input.array.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not input.array.ndim:
        return xp.reshape(input, shape=(1,))[:size]
    return xp.unfold(input, axis=d, size=size, step=step)
