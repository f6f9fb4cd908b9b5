"""Shapes: views and rearrangements. https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops"""
from __future__ import annotations

from math import prod
from operator import index
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor, _row_major
from ..autograd import inplace as _inplace
from ..autograd.inplace import address
from ..autograd.mode import mode
from ..autograd.tape import Leaf, TensorBase, node_of
from ..dispatch import SCALAR_TYPES, explained, shared, view, wrap, xp
from ..ops.base import OPS
from ..size import Size
from ._arguments import check_elements, check_list, normalize_dim, normalize_dims, warn
from ._register import FUNCTIONS, public
from .creation import shape_of

# ── the same elements in another shape ────────────────────────────────────────────────────────────────────────────────


def resolved(shape: Any, size: int) -> tuple[int, ...]:
    """A shape whose -1, if there is one, is worked out from the number of elements."""
    if -1 in shape:
        if shape.count(-1) > 1:
            raise RuntimeError("only one dimension can be inferred")
        known = prod(n for n in shape if n != -1)
        if known == 0:
            raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 can be "
                               "any value and is ambiguous")
        if size % known:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
        return tuple(size // known if n == -1 else n for n in shape)
    if any(n < 0 for n in shape):
        raise RuntimeError(f"invalid shape dimension {min(shape)} at index {shape.index(min(shape))} of shape {list(shape)}")
    if prod(shape) != size:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return tuple(shape)


def _sizes(shape: Any) -> tuple[int, ...]:
    shape = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
    return tuple(n if type(n) is int else n.__index__() for n in shape)


def _given(numbers: Any, function: str, argument: str, keywords: Any) -> Any:
    """The numbers that were given one by one, or what was given by name in their place."""
    if not keywords and numbers:
        return numbers
    if argument not in keywords and not numbers:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{argument}"')
    if numbers or len(keywords) > 1:
        raise TypeError(f"{function}() got an unexpected keyword argument '{next((k for k in keywords if k != argument), argument)}'")
    return (keywords[argument],)


@public(method=False)
def reshape(input: Any, shape: Any) -> Any:
    """The same elements in another shape: a view where possible. https://pytorch.org/docs → torch.reshape

    >>> import tensorgrad as torch
    >>> torch.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    return xp.reshape(input, shape=resolved(_sizes((shape,)), input.array.size))


def _reshape(self: Any, *shape: Any, **keywords: Any) -> Any:
    """The same elements in another shape. https://pytorch.org/docs → torch.Tensor.reshape"""
    return xp.reshape(self, shape=resolved(_sizes(_given(shape, "reshape", "shape", keywords)), self.array.size))


def _view(self: Any, *shape: Any, **keywords: Any) -> Any:
    """The same memory in another shape, or, given a dtype, read as that dtype. https://pytorch.org/docs → torch.Tensor.view"""
    given = _given(shape, "view", "dtype" if "dtype" in keywords else "size", keywords)
    if len(given) == 1 and isinstance(given[0], dtypes.dtype):
        return _view_as_dtype(self, given[0])
    out = xp.reshape(self, shape=resolved(_sizes(given), self.array.size))
    if out.origin is None and self.array.size and out is not self:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
                           "subspaces). Use .reshape(...) instead.")
    return out


def _view_as_dtype(self: Any, dtype: dtypes.dtype) -> Any:
    try:
        array = self.array.view(dtype.numpy)
    except ValueError:
        raise RuntimeError(f"self.size(-1) must be divisible by {dtype.itemsize // self.array.itemsize} to view {self.dtype} as {dtype} (different "
                           f"element sizes), but got {self.array.shape[-1] if self.array.ndim else 1}") from None
    return wrap(array, shared(self))


Tensor.reshape, Tensor.view = _reshape, _view  # type: ignore[attr-defined]


@public(function=False)
def view_as(input: Any, other: Any) -> Any:
    """A view in the shape of another tensor. https://pytorch.org/docs → torch.Tensor.view_as"""
    return _view(input, other.array.shape)


@public(function=False)
def reshape_as(input: Any, other: Any) -> Any:
    """Reshaped to the shape of another tensor. https://pytorch.org/docs → torch.Tensor.reshape_as"""
    return _reshape(input, other.array.shape)


@public()
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Axes start_dim to end_dim made one. https://pytorch.org/docs → torch.flatten"""
    shape = input.array.shape
    start, end = normalize_dim(start_dim, len(shape)), normalize_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return xp.reshape(input, shape=(1,))
    return input if start == end else xp.reshape(input, shape=(*shape[:start], prod(shape[start:end + 1]), *shape[end + 1:]))


@public()
def ravel(input: Any) -> Any:
    """All elements along one axis. https://pytorch.org/docs → torch.ravel"""
    return xp.reshape(input, shape=(input.array.size,))


@public()
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """One axis made several. https://pytorch.org/docs → torch.unflatten"""
    shape = input.array.shape
    d = normalize_dim(dim, len(shape))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    sizes = tuple(map(index, sizes))
    if not shape:
        raise RuntimeError("unflatten got an unexpected error:")
    try:
        inner = resolved(sizes, shape[d])
    except RuntimeError:
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({shape[d]}) in the input "
                           "tensor") from None
    return xp.reshape(input, shape=(*shape[:d], *inner, *shape[d + 1:]))


@public(inplace=True)
def unsqueeze(input: Any, dim: int) -> Any:
    """A new axis of length 1. https://pytorch.org/docs → torch.unsqueeze"""
    return xp.expand_dims(input, axis=normalize_dim(dim, input.array.ndim + 1))


@public(inplace=True)
def squeeze(input: Any, dim: Any = None) -> Any:
    """Axes of length 1 left out: all, or those named. https://pytorch.org/docs → torch.squeeze"""
    shape = input.array.shape
    dims = range(len(shape)) if dim is None else normalize_dims(dim, len(shape)) if shape else ()
    return xp.squeeze(input, axis=tuple(d for d in dims if shape[d] == 1))


@public("swapdims", inplace=True)
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Two axes exchanged. https://pytorch.org/docs → torch.transpose"""
    ndim = input.array.ndim
    a, b = normalize_dim(dim0, ndim), normalize_dim(dim1, ndim)
    return xp.swapaxes(input, axis1=a, axis2=b) if ndim else alias(input)


@public(inplace=True)
def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """Two axes exchanged: NumPy's name of transpose. https://pytorch.org/docs → torch.swapaxes"""
    return transpose(input, axis0, axis1)


@public(inplace=True)
def t(input: Any) -> Any:
    """The transpose of a matrix; a vector as it is. https://pytorch.org/docs → torch.t"""
    if input.array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.array.ndim}D")
    return xp.t(input)


@public(method=False)
def permute(input: Any, dims: Any) -> Any:
    """Axes in another order. https://pytorch.org/docs → torch.permute"""
    ndim = input.array.ndim
    if len(dims) != ndim:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
                           f"dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}")
    axes = tuple(normalize_dim(d, ndim) for d in dims)
    if len(set(axes)) != len(axes):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return xp.permute_dims(input, axes=axes)


def _permute(self: Any, *dims: Any, **keywords: Any) -> Any:
    """Axes in another order. https://pytorch.org/docs → torch.Tensor.permute"""
    return permute(self, _sizes(_given(dims, "permute", "dims", keywords)))


Tensor.permute = _permute  # type: ignore[attr-defined]


@public("moveaxis")
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Axes moved to other places, the rest in order. https://pytorch.org/docs → torch.movedim"""
    ndim = input.array.ndim
    sources, targets = normalize_dims(source, ndim), normalize_dims(destination, ndim)
    if len(sources) != len(targets):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should contain the same number of dims as "
                           f"destination ({list(targets)} dims)")
    rest = iter(d for d in range(ndim) if d not in sources)
    placed = dict(zip(targets, sources, strict=True))
    return xp.permute_dims(input, axes=tuple(placed[d] if d in placed else next(rest) for d in range(ndim)))


@public(function=True)
def adjoint(input: Any) -> Any:
    """Matrices transposed and conjugated. https://pytorch.org/docs → torch.adjoint"""
    out = transpose(input, -2, -1)
    return xp.conj(out) if out.array.dtype.kind == "c" else out


def _reversed(self: Any) -> Any:
    """The axes in reverse order. https://pytorch.org/docs → torch.Tensor.T"""
    if (ndim := self.array.ndim) != 2:
        warn("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an error in a future release. "
             "Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
             if ndim else "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    return xp.permute_dims(self, axes=tuple(range(ndim))[::-1])


def _matrix_property(name: str, form: Any, doc: str, most: Any = None) -> Any:
    def attribute(self: Any) -> Any:
        ndim = self.array.ndim
        if ndim == 1 or most and ndim > most:
            raise RuntimeError(f"tensor.{name} is only supported on matrices {'(2-D tensors)' if most else 'or batches of matrices'}. Got {ndim}-D tensor.")
        if not ndim:
            warn(f"Tensor.{name} is deprecated on 0-D tensors. This function is the identity in these cases.")
            return self
        return form(self)
    attribute.__name__ = name
    return property(attribute, doc=f"{doc} https://pytorch.org/docs → torch.Tensor.{name}")


Tensor.T = property(_reversed)  # type: ignore[attr-defined]
Tensor.mT = _matrix_property("mT", lambda self: transpose(self, -2, -1), "Matrices transposed.")  # type: ignore[attr-defined]
Tensor.mH = _matrix_property("mH", adjoint, "Matrices transposed and conjugated.")  # type: ignore[attr-defined]
Tensor.H = _matrix_property("H", adjoint, "A matrix transposed and conjugated.", 2)  # type: ignore[attr-defined]


@public(function=False)
def expand(input: Any, *size: Any, implicit: bool = False, **keywords: Any) -> Any:
    """Axes of length 1, and new ones in front, repeated without copying. https://pytorch.org/docs → torch.Tensor.expand"""
    sizes, shape = _sizes(_given(size, "expand", "size", keywords)), input.array.shape
    lead = len(sizes) - len(shape)
    if lead < 0:
        raise RuntimeError(f"expand({input.type()}{{{list(shape)}}}, size={list(sizes)}): the number of sizes provided ({len(sizes)}) "
                           "must be greater "
                           f"or equal to the number of dimensions in the tensor ({len(shape)})")
    full = []
    for i, n in reversed(tuple(enumerate(sizes))):
        own = shape[i - lead] if i >= lead else None
        if n == -1 and own is None:
            raise RuntimeError(f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {i}")
        if own not in (None, 1, n) and n != -1:
            raise RuntimeError(f"The expanded size of the tensor ({n}) must match the existing size ({own}) at non-singleton dimension {i}.  Target "
                               f"sizes: {list(sizes)}.  Tensor sizes: {list(shape)}")
        full.append(own if n == -1 else n)
    return xp.broadcast_to(input, shape=tuple(reversed(full)))


@public(function=False)
def expand_as(input: Any, other: Any) -> Any:
    """Expanded to the shape of another tensor. https://pytorch.org/docs → torch.Tensor.expand_as"""
    return expand(input, other.array.shape)


@public()
def broadcast_to(input: Any, size: Any) -> Any:
    """Expanded to a shape. https://pytorch.org/docs → torch.broadcast_to"""
    return expand(input, tuple(size))


@public(method=False)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that shapes broadcast to. https://pytorch.org/docs → torch.broadcast_shapes"""
    shapes = tuple((s,) if isinstance(s, int) else s for s in shapes)
    out = [1] * max(map(len, shapes), default=0)
    for position, shape in enumerate(shapes):
        for i in range(-1, -len(shape) - 1, -1):
            n = shape[i]
            if n in (1, out[i]):
                continue
            if out[i] != 1:
                raise RuntimeError(f"Attempting to broadcast a dimension of length {n} at {i}! Mismatching argument at index {position} had {shape}; "
                                   f"but expected shape should be broadcastable to {out}")
            if n < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            out[i] = n
    return Size(out)


@public(method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Tensors expanded to their common shape. https://pytorch.org/docs → torch.broadcast_tensors"""
    try:
        shape = broadcast_shapes(*[t.array.shape for t in tensors])
    except RuntimeError as error:
        raise explained(OPS["add"], [t.array for t in tensors], error) from None  # type: ignore[arg-type]
    return tuple(t if t.array.shape == shape else expand(t, shape) for t in tensors)


def alias(input: Any) -> Any:
    """A view of all of a tensor."""
    return xp.reshape(input, shape=input.array.shape)


@public(function=False)
def contiguous(input: Any, memory_format: Any = dtypes.contiguous_format) -> Any:
    """The tensor, copied if its elements do not lie in order. https://pytorch.org/docs → torch.Tensor.contiguous"""
    if memory_format in (dtypes.channels_last, dtypes.channels_last_3d):
        ndim = input.array.ndim
        if input.is_contiguous(memory_format=memory_format):
            return input
        moved = xp.clone(contiguous(xp.permute_dims(input, axes=(0, *range(2, ndim), 1))))
        return xp.permute_dims(moved, axes=(0, ndim - 1, *range(1, ndim - 1)))
    return input if input.array.flags.c_contiguous else xp.contiguous(input)


# ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@public()
def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """The slices along an axis. https://pytorch.org/docs → torch.unbind"""
    if not input.array.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return tuple(xp.unbind(input, axis=normalize_dim(dim, input.array.ndim)))


def _check_has_dims(input: Any, name: str) -> None:
    if not input.array.ndim:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")


@public()
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Pieces of one size, or of given sizes, along an axis. https://pytorch.org/docs → torch.split"""
    size = split_size_or_sections
    _check_has_dims(tensor, "split")
    d = normalize_dim(dim, tensor.array.ndim)
    n = tensor.array.shape[d]
    if isinstance(size, (list, tuple)):
        if sum(size) != n or any(s < 0 for s in size):
            raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {d}), but got "
                               f"split_sizes={list(size)}")
        return tuple(xp.split_with_sizes(tensor, sizes=tuple(size), axis=d))
    else:
        if isinstance(size, TensorBase):
            size = int(size.item())  # type: ignore[attr-defined]
        if type(size) is not int:
            raise TypeError(f"split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not {type(size).__name__}")
        if size < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
        if size == 0 and n:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
        sizes = tuple(min(size, n - i) for i in range(0, n, size)) if n else (0,)
    return tuple(xp.split_sizes(tensor, sizes=sizes, axis=d))


def _split_method(self: Any, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    """Pieces of one size, or of given sizes, along an axis. https://pytorch.org/docs → torch.Tensor.split"""
    return split(self, split_size, dim)


_split_method.__name__, _split_method.__qualname__ = "split", "Tensor.split"
Tensor.split = _split_method  # type: ignore[attr-defined]


@public()
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """Pieces of given sizes. https://pytorch.org/docs → torch.split_with_sizes"""
    return split(input, list(split_sizes), dim)


@public()
def unsafe_split(tensor: Any, split_size: int, dim: int = 0) -> tuple[Any, ...]:
    """As split. https://pytorch.org/docs → torch.unsafe_split"""
    return split(tensor, split_size, dim)


@public()
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """About equal pieces. https://pytorch.org/docs → torch.chunk"""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    _check_has_dims(input, "chunk")
    n = input.array.shape[normalize_dim(dim, input.array.ndim)]
    size = -(-n // chunks)
    return split(input, [0] * chunks if n == 0 else size, dim)


@public()
def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """As chunk. https://pytorch.org/docs → torch.unsafe_chunk"""
    return chunk(input, chunks, dim)


@public()
def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0, *, indices: Any = None, sections: Any = None) -> tuple[Any, ...]:
    """Nearly equal sections, or pieces between given indices. https://pytorch.org/docs → torch.tensor_split"""
    where = indices_or_sections if indices_or_sections is not None else indices if indices is not None else sections
    _check_has_dims(input, "tensor_split")
    d = normalize_dim(dim, input.array.ndim)
    n = input.array.shape[d]
    if isinstance(where, TensorBase):
        if where.array.dtype.name != "int64":
            raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {SCALAR_TYPES[where.dtype.name]}")  # type: ignore[attr-defined]
        where = where.tolist()  # type: ignore[attr-defined]
    if isinstance(where, int):
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        ends = [sum(n // where + (j < n % where) for j in range(i + 1)) for i in range(where - 1)]
    else:
        ends = list(where)
    starts = [0, *ends]
    return tuple(_narrowed(input, d, s, e) for s, e in zip(starts, [*ends, n], strict=True))


def _narrowed(input: Any, d: int, start: int, end: int) -> Any:
    return xp.get_slice(input, index=(slice(None),) * d + (slice(start, end),))


def _splitter(name: str, axis: Any) -> None:
    def f(input: Any, sections: Any = None, *, indices: Any = None) -> tuple[Any, ...]:
        where = sections if indices is None else indices
        if not isinstance(where, (tuple, list, TensorBase)):
            where = index(where)
        needed = {"hsplit": 1, "vsplit": 2, "dsplit": 3}[name]
        ndim = input.array.ndim
        if ndim < needed:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {needed} dimension{'s' * (needed > 1)}, but got a tensor with {ndim} "
                               f"dimension{'s' * (ndim != 1)}!")
        d = axis(ndim)
        n = input.array.shape[d]
        if isinstance(where, int) and (where == 0 or n % where):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {d}, but the size of the dimension {n} is not divisible by the "
                               f"split_size {where}!")
        return tensor_split(input, where, d)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"tensor_split along one fixed axis. https://pytorch.org/docs → torch.{name}"
    public()(f)


_splitter("hsplit", lambda ndim: 0 if ndim == 1 else 1)
_splitter("vsplit", lambda ndim: 0)
_splitter("dsplit", lambda ndim: 2)


@public()
def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """The part of an axis from start on, of a length. https://pytorch.org/docs → torch.narrow"""
    if isinstance(start, TensorBase):
        if start.array.ndim or start.array.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = start.item()
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
def narrow_copy(input: Any, dim: int, start: int, length: int) -> Any:
    """A copy of `narrow`. https://pytorch.org/docs → torch.narrow_copy"""
    if dim >= input.array.ndim > 0:
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.")
    return xp.clone(narrow(input, dim, start, length))


@public()
def select(input: Any, dim: int, index: Any) -> Any:
    """One index of an axis. https://pytorch.org/docs → torch.select"""
    if not input.array.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d, i = normalize_dim(dim, input.array.ndim), int(index)
    n = input.array.shape[d]
    if not -n <= i < n:
        raise IndexError(f"select(): index {i} out of range for tensor of size {list(input.array.shape)} at dimension {d}")
    return xp.get_item(input, index=(slice(None),) * d + (i,))


@public()
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonals of matrices. https://pytorch.org/docs → torch.diagonal"""
    ndim = input.array.ndim
    a, b = normalize_dim(dim1, ndim), normalize_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return xp.diagonal(input, offset=offset, axis1=a, axis2=b)


@public(out="same")
def diag(input: Any, diagonal: int = 0) -> Any:
    """A vector as a diagonal matrix, or the diagonal of a matrix. https://pytorch.org/docs → torch.diag"""
    if input.array.ndim == 1:
        return diag_embed(input, diagonal)
    if input.array.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.array.ndim}D")
    return xp.clone(FUNCTIONS["diagonal"](input, diagonal))


@public()
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Vectors as the diagonals of matrices. https://pytorch.org/docs → torch.diag_embed"""
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
def diagflat(input: Any, offset: int = 0) -> Any:
    """All elements on the diagonal of a matrix. https://pytorch.org/docs → torch.diagflat"""
    return diag_embed(ravel(input), offset)


@public(function=False)
def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """Windows along an axis, as a new last axis. https://pytorch.org/docs → torch.Tensor.unfold"""
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


@public(inplace=True)
def as_strided(input: Any, size: Any, stride: Any = None, storage_offset: Any = None) -> Any:
    """Any view of the memory. https://pytorch.org/docs → torch.as_strided"""
    size = tuple(size)
    stride = _row_major(size) if stride is None else tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    storage = shared(input)
    memory = storage.memory
    here = (address(input.array) - address(memory)) // memory.itemsize if memory.size else 0
    offset = here if storage_offset is None else storage_offset
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if all(size) and not (0 <= offset and last < memory.size):
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize "
                           f"{memory.itemsize} requiring a "
                           f"storage size of {(last + 1) * memory.itemsize} are out of bounds for storage of size {memory.nbytes}")
    params = {"size": size, "stride": stride, "offset": offset, "layout": (tuple(input.array.shape), input.stride(), here), "length": memory.size}
    op, node = OPS["as_strided"], node_of(input)
    array = op.forward(type(storage).xp, input.array, memory=memory, **params)
    return view(op, (input,), (node,), int(node is not None), params, array)


# ── joining and repeating ─────────────────────────────────────────────────────────────────────────────────────────────


@public("concat", "concatenate", method=False, out="apart")
def cat(tensors: Any, dim: Any = 0) -> Any:
    """Tensors one after the other along an axis. https://pytorch.org/docs → torch.cat"""
    check_list(tensors, "cat")
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, t in enumerate(tensors):
        if not isinstance(t, TensorBase):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
        if not t.array.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    kept = [t for t in tensors if t.array.shape != (0,)] or list(tensors)       # PyTorch lets the old empty tensor pass
    shape = kept[0].array.shape
    d = normalize_dim(dim, len(shape))
    for i, t in enumerate(kept[1:], 1):
        if t.array.ndim != len(shape):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(shape)} and {t.array.ndim}")
        if t.array.shape[:d] != shape[:d] or t.array.shape[d + 1:] != shape[d + 1:]:
            axis = next(k for k in range(len(shape)) if k != d and t.array.shape[k] != shape[k])
            raise RuntimeError(f"Sizes of tensors must match except in dimension {d}. Expected size {shape[axis]} but got size {t.array.shape[axis]} "
                               f"for tensor number {i} in the list.")
    if len(kept) < len(tensors):
        kept.append(xp.reshape(_empty_rest(tensors), shape=(*shape[:d], 0, *shape[d + 1:])) if 0 not in shape[:d] + shape[d + 1:] else kept[0])
        kept = kept[:-1] if kept[-1] is kept[0] else kept
    return xp.concat(kept, axis=d)


def _empty_rest(tensors: Any) -> Any:
    return next(t for t in tensors if t.array.shape == (0,))


@public(method=False, out="apart")
def stack(tensors: Any, dim: int = 0) -> Any:
    """Tensors of one shape along a new axis. https://pytorch.org/docs → torch.stack"""
    check_list(tensors, "stack")
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    for i, t in enumerate(tensors):
        if not isinstance(t, TensorBase):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
        if t.array.shape != tensors[0].array.shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(tensors[0].array.shape)} at entry 0 and "
                               f"{list(t.array.shape)} at entry {i}")
    return xp.stack(tensors, axis=normalize_dim(dim, tensors[0].array.ndim + 1))


def _at_least(n: int) -> Any:
    def f(*tensors: Any) -> Any:
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
def hstack(tensors: Any) -> Any:
    """Side by side. https://pytorch.org/docs → torch.hstack"""
    if not len(tensors):
        raise RuntimeError("hstack expects a non-empty TensorList")
    tensors = atleast_1d(*tensors) if len(tensors) > 1 else (atleast_1d(tensors[0]),)
    return cat(tensors, 0 if tensors[0].array.ndim == 1 else 1)


@public("row_stack", method=False, out=True)
def vstack(tensors: Any) -> Any:
    """One below the other. https://pytorch.org/docs → torch.vstack"""
    if not len(tensors):
        raise RuntimeError("vstack expects a non-empty TensorList")
    return cat([atleast_2d(t) for t in tensors], 0)


@public(method=False, out=True)
def dstack(tensors: Any) -> Any:
    """One behind the other. https://pytorch.org/docs → torch.dstack"""
    if not len(tensors):
        raise RuntimeError("dstack expects a non-empty TensorList")
    return cat([atleast_3d(t) for t in tensors], 2)


@public(method=False, out=True)
def column_stack(tensors: Any) -> Any:
    """Vectors as columns, matrices side by side. https://pytorch.org/docs → torch.column_stack"""
    return hstack([xp.reshape(t, shape=(t.array.size, 1)) if t.array.ndim <= 1 else t for t in tensors])


@public(method=False)
def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal of one. https://pytorch.org/docs → torch.block_diag"""
    if not tensors:
        return FUNCTIONS["empty"](1, 0)
    for t in tensors:
        if t.array.ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input has {t.array.ndim} dimensions")
    blocks = [atleast_2d(t) for t in tensors]
    rows, columns = sum(b.array.shape[0] for b in blocks), sum(b.array.shape[1] for b in blocks)
    done, lines = 0, []
    for b in blocks:
        width = b.array.shape[1]
        lines.append(xp.pad_constant(b, widths=((0, 0), (done, columns - done - width))))
        done += width
    return cat(lines, 0) if rows else blocks[0]


@public(function=False)
def repeat(input: Any, *repeats: Any, **keywords: Any) -> Any:
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
    return xp.clone(out) if out.storage is input.storage else out


@public(method=False)
def tile(input: Any, dims: Any) -> Any:
    """`repeat`, with missing counts taken as 1. https://pytorch.org/docs → torch.tile"""
    dims = tuple(dims)
    return repeat(input, (1,) * (input.array.ndim - len(dims)) + dims)


Tensor.tile = lambda self, *dims, **keywords: tile(self, _sizes(_given(dims, "tile", "dims", keywords)))  # type: ignore[attr-defined]


@public(method=False)
def meshgrid(*tensors: Any, indexing: Any = None) -> tuple[Any, ...]:
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
    swap = indexing == "xy" and len(tensors) >= 2
    order = (1, 0, *range(2, len(tensors))) if swap else tuple(range(len(tensors)))
    shape = tuple(tensors[i].array.size for i in order)
    grids = []
    for i, t in enumerate(tensors):
        axis = order.index(i)
        grids.append(xp.broadcast_to(xp.reshape(t, shape=(1,) * axis + (t.array.size,) + (1,) * (len(shape) - axis - 1)), shape=shape))
    return tuple(grids)


@public(method=False)
def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of elements, a row each. https://pytorch.org/docs → torch.cartesian_prod"""
    check_elements(tensors)
    if len(tensors) == 1:
        return tensors[0]
    return stack([ravel(g) for g in meshgrid(*tensors, indexing="ij")], 1)


@public(method=True)
def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """All selections of r elements. https://pytorch.org/docs → torch.combinations"""
    from itertools import combinations as pick
    from itertools import combinations_with_replacement as pick_again
    if input.array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    rows = list((pick_again if with_replacement else pick)(range(input.array.size), r))
    places = FUNCTIONS["tensor"](rows, dtype=dtypes.int64, device=input.device).reshape(len(rows), r)
    return xp.embedding(input, places)


@public()
def flip(input: Any, dims: Any) -> Any:
    """Axes run backwards. https://pytorch.org/docs → torch.flip"""
    return xp.flip(input, axis=normalize_dims(tuple(dims), input.array.ndim))


@public()
def fliplr(input: Any) -> Any:
    """Columns from right to left. https://pytorch.org/docs → torch.fliplr"""
    if input.array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return xp.flip(input, axis=(1,))


@public()
def flipud(input: Any) -> Any:
    """Rows from the bottom to the top. https://pytorch.org/docs → torch.flipud"""
    if input.array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return xp.flip(input, axis=(0,))


@public()
def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
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
def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """Elements pushed along axes, around the ends. https://pytorch.org/docs → torch.roll"""
    shifts = tuple(shifts) if isinstance(shifts, (tuple, list)) else (index(shifts),)
    dims = () if dims is None else tuple(dims) if isinstance(dims, (tuple, list)) else (index(dims),)
    if not dims:
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
def tril(input: Any, diagonal: int = 0) -> Any:
    """The part of matrices on and below a diagonal. https://pytorch.org/docs → torch.tril"""
    if input.array.ndim < 2:
        raise RuntimeError("tril: input tensor must have at least 2 dimensions")
    return xp.tril(input, k=diagonal)


@public(inplace=True, out="same")
def triu(input: Any, diagonal: int = 0) -> Any:
    """The part of matrices on and above a diagonal. https://pytorch.org/docs → torch.triu"""
    if input.array.ndim < 2:
        raise RuntimeError("triu: input tensor must have at least 2 dimensions")
    return xp.triu(input, k=diagonal)


@public(function=False)
def sum_to_size(input: Any, *size: Any, **keywords: Any) -> Any:
    """Summed over the axes that broadcasting from `size` would have repeated. https://pytorch.org/docs → torch.Tensor.sum_to_size"""
    from ..autograd.engine import sum_to
    shape, own = shape_of(_given(size, "sum_to_size", "size", keywords)), input.array.shape
    if len(shape) > len(own) or any(n not in (1, m) for n, m in zip(reversed(shape), reversed(own), strict=False)):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(own)}}}.")
    return sum_to(xp, input, shape) if shape else input.sum()


def _changing_geometry(name: str) -> None:
    """The twins in place of view ops: the tensor itself becomes the view."""
    form = FUNCTIONS[name]

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        node, before = node_of(self), mode.grad
        if mode.record and node is not None:
            _inplace.check(self)
        old = wrap(self.array, self.storage, node)
        old.origin = self.origin
        mode.set_grad(before or (node is not None and type(node) is not Leaf))     # what was recorded must know of the new shape
        try:
            out = form(old, *args, **kwargs)
        finally:
            mode.set_grad(before)
        self.array = out.array
        if self.origin is not None:
            self.origin = out.origin
        self._node = Leaf(self) if type(node) is Leaf else out._node
        shared(self).wrote()
        return self
    method.__name__, method.__qualname__ = f"{name}_", f"Tensor.{name}_"
    method.__doc__ = f"`{name}`, of the tensor itself. https://pytorch.org/docs → torch.Tensor.{name}_"
    setattr(Tensor, f"{name}_", method)


for _name in ("unsqueeze", "squeeze", "transpose", "swapaxes", "swapdims", "t", "as_strided"):
    _changing_geometry(_name)


@public(function=False)
def resize_(input: Any, *sizes: Any, memory_format: Any = None, **keywords: Any) -> Any:
    """Another shape, with the elements that are there, in order; new ones are left unfilled. https://pytorch.org/docs → torch.Tensor.resize_"""
    if node_of(input) is not None:
        raise RuntimeError("cannot resize variables that require grad")
    shape = _sizes(_given(sizes, "resize_", "size", keywords))
    backend = type(input.storage)
    memory = input.storage.memory if input.storage.memory is not None else input.array
    flat = memory.ravel("K")[input.storage_offset():]
    if prod(shape) > flat.size:
        grown = backend.xp.zeros(prod(shape), dtype=flat.dtype)
        grown[:flat.size] = flat
        flat, input.storage = grown, backend()
        input.storage.memory = flat
    input.array = flat[:prod(shape)].reshape(shape)
    return input


@public()
def resize_as_(input: Any, other: Any, memory_format: Any = None) -> Any:
    """`resize_` to the shape of another tensor. https://pytorch.org/docs → torch.Tensor.resize_as_"""
    return resize_(input, other.array.shape)


