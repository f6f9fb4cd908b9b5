"""Shapes: views and rearrangements. https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops"""
from __future__ import annotations

from math import prod
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..advice import misfit
from ..core import inplace as _inplace
from ..core.dispatch import SCALAR_TYPES, explained, shared, view, wrap, xp
from ..core.inplace import address
from ..core.mode import mode
from ..core.step_names import called, naming
from ..core.tape import Leaf, TensorBase, node_of, renew_leaf
from ..ops.base import OPS
from ..size import Size, whole
from ..storage.out_of_memory import overflowed
from ..storage.sparse import Coo, pattern_of
from . import creation
from ._arguments import check_format, normalize_dim, normalize_dims, warn
from ._kinds import Dtype, Index, Ints, Ints1, MemoryFormat, Tensors
from ._register import FUNCTIONS, public
from .creation import shape_of

# ── other shapes of the elements ──────────────────────────────────────────────────────────────────────────────────────


def resolved(shape: Any, size: int) -> tuple[int, ...]:
    """Return a shape whose -1, if any, is replaced by the length that fits the number of elements."""
    for n in shape:                             # `min` would compare sizes that may be symbolic
        if n < -1:
            where = shape.index(n)
            if shape[:where].count(-1) < 2:
                raise RuntimeError(f"invalid shape dimension {n} at index {where} of shape {list(shape)}")
            break
    if -1 in shape:
        if shape.count(-1) > 1:
            raise RuntimeError("only one dimension can be inferred")
        known = -prod(shape)
        if known == 0:
            raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
                               "dimension size -1 can be any value and is ambiguous")
        if size % known:
            raise misfit(f"shape '{list(shape)}' is invalid for input of size {size}")
        return tuple([size // known if n == -1 else n for n in shape])
    if prod(shape) != size:
        raise misfit(f"shape '{list(shape)}' is invalid for input of size {size}")
    return tuple(shape)


def _sizes(shape: Any) -> tuple[int, ...]:
    shape = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
    return tuple([n if type(n) is int else whole(n) for n in shape])


def _wanted(x: Any, sizes: Any, function: str, argument: str, keywords: Any) -> tuple[int, ...]:
    """Return the requested shape, with -1 resolved. Plain numbers, the common case, take a fast path."""
    given = sizes[0] if len(sizes) == 1 and type(sizes[0]) in SEQUENCES else sizes
    if keywords or not given or not PLAIN.issuperset(map(type, given)):
        given = _sizes(_given(sizes, function, argument, keywords))
    return resolved(given, x.array.size)


SEQUENCES = (tuple, list, Size)
PLAIN = frozenset((int,))


def _given(numbers: Any, function: str, argument: str, keywords: Any) -> Any:
    """Return the numbers that were given separately, or the value given by name instead."""
    if not keywords and numbers:
        return numbers
    if argument not in keywords and not numbers:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{argument}"')
    if numbers or len(keywords) > 1:
        raise TypeError(f"{function}() got an unexpected keyword argument "
                        f"'{next((k for k in keywords if k != argument), argument)}'")
    return (keywords[argument],)


@public(method=False)
def reshape(input: Tensor, shape: Ints) -> Tensor:
    """The elements in another shape: a view where possible.

    Input: (*), n elements
    Output: shape, whose product is n; one length may be -1 and is worked out
    Errors: RuntimeError if the product is not n, several lengths are -1, or one is less than -1
    https://pytorch.org/docs → torch.reshape

    >>> import tensorgrad as torch
    >>> torch.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    return xp.reshape(input, shape=_wanted(input, (shape,), "reshape", "shape", {}))


def _reshape(self: Tensor, *shape: Ints1, **keywords: Any) -> Tensor:
    """The elements in another shape.

    Output: as `torch.reshape`
    Errors: as `torch.reshape`
    https://pytorch.org/docs → torch.Tensor.reshape
    """
    return xp.reshape(self, shape=_wanted(self, shape, "reshape", "shape", keywords))


def _view(self: Tensor, *shape: Ints1 | Dtype, **keywords: Any) -> Tensor:
    """A view in another shape, or, given a dtype, the memory read as that dtype.

    Input: (*), n elements
    Output: shape, whose product is n; with a dtype, the last axis in proportion to the sizes of the two dtypes
    Errors: RuntimeError if the product is not n, or the memory is in another order than a view in that shape needs;
        with a dtype of another size, if the last axis does not divide, is not contiguous, or is missing
    https://pytorch.org/docs → torch.Tensor.view

    >>> import tensorgrad as torch
    >>> torch.arange(4).view(2, 2).shape, torch.arange(4).view(torch.int32).shape
    (torch.Size([2, 2]), torch.Size([8]))
    """
    if "dtype" in keywords or len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        return _view_as_dtype(self, *_given(shape, "view", "dtype", keywords))
    out = xp.reshape(self, shape=_wanted(self, shape, "view", "size", keywords))
    if out.origin is None and self.array.size and out is not self:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension "
                           "spans across two contiguous subspaces). Use .reshape(...) instead.")
    return out


def _view_as_dtype(self: Tensor, dtype: dtypes.dtype) -> Any:
    was, asked, larger = SCALAR_TYPES[self.dtype.name], SCALAR_TYPES[dtype.name], dtype.itemsize // self.array.itemsize
    try:
        array = self.array.view(type(self._storage).held(dtype.numpy))
    except ValueError:
        if not self.array.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 to view {was} as {asked} (different element sizes)") from None
        if self.stride(-1) != 1 and not (larger > 1 and self.array.shape[-1] % larger):
            raise RuntimeError(f"self.stride(-1) must be 1 to view {was} as {asked} (different element sizes), but got "
                               f"{self.stride(-1)}") from None
        raise RuntimeError(f"self.size(-1) must be divisible by {larger} to view {was} as {asked} (different element "
                           f"sizes), but got {self.array.shape[-1]}") from None
    if larger > 1:      # NumPy reads misaligned numbers, too; nothing else does
        for what, n in (("storage_offset()", self.storage_offset()),
                        *((f"stride({i})", s) for i, s in enumerate(self.stride()[:-1]))):
            if n % larger:
                raise RuntimeError(f"self.{what} must be divisible by {larger} to view {was} as {asked} (different "
                                   f"element sizes), but got {n}")
    return wrap(array, shared(self))


Tensor.reshape, Tensor.view = _reshape, _view  # type: ignore[attr-defined]


@public(function=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of another tensor.

    Input: (*) and other, with as many elements
    Output: other's shape
    Errors: RuntimeError if the numbers of elements differ, or the memory is in another order than the view needs
    https://pytorch.org/docs → torch.Tensor.view_as
    """
    return _view(input, other.array.shape)


@public(function=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Reshaped to the shape of another tensor.

    Input: (*) and other, with as many elements
    Output: other's shape
    Errors: RuntimeError if the numbers of elements differ
    https://pytorch.org/docs → torch.Tensor.reshape_as
    """
    return _reshape(input, other.array.shape)


@public()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Axes start_dim to end_dim merged.

    Input: (*, start, …, end, *)
    Output: (*, start · … · end, *); (1) for a 0-d tensor
    Errors: IndexError if an axis is out of range; RuntimeError if start_dim comes after end_dim
    https://pytorch.org/docs → torch.flatten

    >>> import tensorgrad as torch
    >>> torch.ones(2, 3, 4).flatten(1).shape
    torch.Size([2, 12])
    """
    shape = input.array.shape
    start, end = normalize_dim(start_dim, len(shape)), normalize_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return xp.reshape(input, shape=(1,))
    return (input if start == end
            else xp.reshape(input, shape=(*shape[:start], prod(shape[start:end + 1]), *shape[end + 1:])))


@public()
def ravel(input: Tensor) -> Tensor:
    """All elements along one axis.

    Input: (*), n elements
    Output: (n), a view where possible
    https://pytorch.org/docs → torch.ravel

    >>> import tensorgrad as torch
    >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    flat = xp.reshape(input, shape=(input.array.size,))
    return flat if flat.array.flags.c_contiguous else xp.contiguous(flat)


@public()
def unflatten(input: Tensor, dim: int, sizes: Ints) -> Tensor:
    """An axis split into several.

    Input: (*, n, *), n at dim
    Output: (*, *sizes, *), whose product is n; one of them may be -1 and is worked out
    Errors: IndexError if dim is out of range; RuntimeError if the product is not n or the tensor is 0-d
    https://pytorch.org/docs → torch.unflatten

    >>> import tensorgrad as torch
    >>> torch.ones(2, 6).unflatten(1, (3, -1)).shape
    torch.Size([2, 3, 2])
    """
    shape = input.array.shape
    d = normalize_dim(dim, len(shape))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    sizes = tuple([n if type(n) is int else whole(n) for n in sizes])
    if not shape:
        raise RuntimeError("unflatten got an unexpected error:")
    try:
        inner = resolved(sizes, shape[d])
    except RuntimeError:
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} "
                           f"({shape[d]}) in the input tensor") from None
    return xp.reshape(input, shape=(*shape[:d], *inner, *shape[d + 1:]))


@public(inplace=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A new axis of length 1.

    Input: (*), d axes
    Output: the shape with 1 at dim, from -d - 1 to d
    Errors: IndexError if dim is out of that range
    https://pytorch.org/docs → torch.unsqueeze

    >>> import tensorgrad as torch
    >>> torch.ones(2).unsqueeze(1).shape
    torch.Size([2, 1])
    """
    return xp.expand_dims(input, axis=normalize_dim(dim, input.array.ndim + 1))


@public(inplace=True)
def squeeze(input: Tensor, dim: int | Ints | None = None) -> Tensor:
    """Axes of length 1 left out: all, or those named.

    Input: (*)
    Output: the shape without them; axes that are named and longer than 1 stay
    Errors: IndexError if dim is out of range; RuntimeError if it names an axis twice
    https://pytorch.org/docs → torch.squeeze

    >>> import tensorgrad as torch
    >>> torch.ones(1, 2, 1).squeeze().shape, torch.ones(1, 2, 1).squeeze(0).shape
    (torch.Size([2]), torch.Size([2, 1]))
    """
    shape = input.array.shape
    dims = range(len(shape)) if dim is None else normalize_dims(dim, len(shape))
    out = xp.squeeze(input, axis=tuple(d for d in dims if shape[d] == 1) if shape else ())
    if dim is not None and out.requires_grad:
        called(out, "SqueezeBackward1" if isinstance(dim, int) else "SqueezeBackward2")
    return out


@public("swapdims", inplace=True)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged.

    Input: (*, n, *, m, *), n and m at dim0 and dim1
    Output: (*, m, *, n, *), a view
    Errors: IndexError if an axis is out of range
    https://pytorch.org/docs → torch.transpose

    >>> import tensorgrad as torch
    >>> torch.ones(2, 3, 4).transpose(0, 2).shape
    torch.Size([4, 3, 2])
    """
    ndim = input.array.ndim
    a, b = normalize_dim(dim0, ndim), normalize_dim(dim1, ndim)
    return xp.swapaxes(input, axis1=a, axis2=b) if ndim else alias(input)


@public(inplace=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two axes exchanged: NumPy's name of transpose.

    Output: as `transpose`
    Errors: as `transpose`
    https://pytorch.org/docs → torch.swapaxes
    """
    return transpose(input, axis0, axis1)


@public(inplace=True)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a vector as it is.

    Input: (n, m), (n) or ()
    Output: (m, n), (n) or (), a view
    Errors: RuntimeError if there are more than two axes
    https://pytorch.org/docs → torch.t

    >>> import tensorgrad as torch
    >>> torch.ones(2, 3).t().shape
    torch.Size([3, 2])
    """
    if input.array.ndim > 2:
        if input.layout is dtypes.sparse_coo:
            found = f"{input.sparse_dim()} sparse and {input.dense_dim()} dense"  # type: ignore[attr-defined]
            raise RuntimeError("t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
                               f"{found} dimensions")
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.array.ndim}D")
    return xp.t(input)


@public(method=False)
def permute(input: Tensor, dims: Ints) -> Tensor:
    """Axes in another order.

    Input: (*), d axes
    Output: out.shape[i] = input.shape[dims[i]], a view
    Errors: RuntimeError if dims are not d different axes; IndexError if one is out of range
    https://pytorch.org/docs → torch.permute

    >>> import tensorgrad as torch
    >>> torch.permute(torch.ones(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    ndim = input.array.ndim
    if len(dims) != ndim:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length "
                           f"of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) "
                           f"= {len(dims)}")
    axes = tuple([normalize_dim(d, ndim) for d in dims])
    if len(set(axes)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return xp.permute_dims(input, axes=axes)


def _permute(self: Tensor, *dims: Ints1, **keywords: Any) -> Tensor:
    """Axes in another order.

    Output: as `torch.permute`
    Errors: as `torch.permute`
    https://pytorch.org/docs → torch.Tensor.permute
    """
    return permute(self, dims if dims and not keywords and PLAIN.issuperset(map(type, dims))
                   else _sizes(_given(dims, "permute", "dims", keywords)))


Tensor.permute = _permute  # type: ignore[attr-defined]


@public("moveaxis")
def movedim(input: Tensor, source: int | Ints, destination: int | Ints) -> Tensor:
    """Axes moved to other places, the rest in order.

    Input: (*)
    Output: the lengths in the new order, a view
    Errors: RuntimeError if they differ in number or name an axis twice; IndexError if an axis is out of range
    https://pytorch.org/docs → torch.movedim

    >>> import tensorgrad as torch
    >>> torch.ones(2, 3, 4).movedim(0, 2).shape
    torch.Size([3, 4, 2])
    """
    ndim = input.array.ndim
    for name, given in (("source", source), ("destination", destination)):
        places = [normalize_dim(d, ndim) for d in given] if isinstance(given, (tuple, list)) else []
        if len(set(places)) < len(places):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    sources, targets = normalize_dims(source, ndim), normalize_dims(destination, ndim)
    if len(sources) != len(targets):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should contain "
                           f"the same number of dims as destination ({list(targets)} dims)")
    rest = iter(d for d in range(ndim) if d not in sources)
    placed = dict(zip(targets, sources, strict=True))
    return xp.permute_dims(input, axes=tuple(placed[d] if d in placed else next(rest) for d in range(ndim)))


@public(function=True)
def adjoint(input: Tensor) -> Tensor:
    """Matrices transposed and conjugated.

    Input: (*, n, m) or ()
    Output: (*, m, n) or (), a view if the numbers are real
    Errors: RuntimeError if the tensor is 1-d
    https://pytorch.org/docs → torch.adjoint

    >>> import tensorgrad as torch
    >>> torch.adjoint(torch.tensor([[1j, 2j]]))
    tensor([[0.-1.j],
            [0.-2.j]])
    """
    if input.array.ndim == 1:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    if not input.array.ndim:
        return xp.conj(input)
    out = transpose(input, -2, -1)
    return xp.conj(out) if out.dtype.is_complex else out


def _reversed(self: Tensor) -> Any:
    """The axes in reverse order. https://pytorch.org/docs → torch.Tensor.T"""
    if (ndim := self.array.ndim) != 2:
        warn("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
             "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
             "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
             if ndim else "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    return xp.permute_dims(self, axes=tuple(range(ndim))[::-1])


def _matrix_property(name: str, form: Any, doc: str, most: Any = None) -> Any:
    def attribute(self: Tensor) -> Any:
        ndim = self.array.ndim
        if ndim == 1 or most and ndim > most:
            raise RuntimeError(f"tensor.{name} is only supported on matrices "
                               f"{'(2-D tensors)' if most else 'or batches of matrices'}. Got {ndim}-D tensor."
                               + " For batches of matrices, consider using tensor.mH" * (name == "H" and ndim > 2))
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
def expand(input: Tensor, *size: Ints1, implicit: bool = False, **keywords: Any) -> Tensor:
    """Axes of length 1, and new ones in front, repeated without copying.

    Input: (*), aligned with size at the right
    Output: size, where -1 keeps a length; a view
    Errors: RuntimeError if size is shorter than the shape, changes a length other than 1, or is negative where the
        tensor has no axis
    https://pytorch.org/docs → torch.Tensor.expand

    >>> import tensorgrad as torch
    >>> torch.ones(2, 1).expand(2, 3).shape
    torch.Size([2, 3])
    """
    sizes, shape = _sizes(_given(size, "expand", "size", keywords)), input.array.shape
    lead = len(sizes) - len(shape)
    if lead < 0:
        raise RuntimeError(f"expand({input.type()}{{{list(shape)}}}, size={list(sizes)}): the number of sizes provided "
                           f"({len(sizes)}) must be greater "
                           f"or equal to the number of dimensions in the tensor ({len(shape)})")
    full = []
    for i, n in reversed(tuple(enumerate(sizes))):
        own = shape[i - lead] if i >= lead else None
        if n == -1 and own is None:
            raise RuntimeError(f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing "
                               f"dimension {i}")
        if own not in (None, 1, n) and n != -1:
            raise misfit(f"The expanded size of the tensor ({n}) must match the existing size ({own}) at non-singleton "
                               f"dimension {i}.  Target sizes: {list(sizes)}.  Tensor sizes: {list(shape)}")
        if n < -1:
            raise RuntimeError(f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing "
                               f"dimension {i}")
        full.append(own if n == -1 else n)
    return xp.broadcast_to(input, shape=tuple(reversed(full)))


@public(function=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Expanded to the shape of another tensor.

    Input: (*) and other, to whose shape the tensor broadcasts
    Output: other's shape, a view
    Errors: RuntimeError if other has fewer axes, or another length where the tensor's is not 1
    https://pytorch.org/docs → torch.Tensor.expand_as
    """
    return expand(input, other.array.shape)


@public()
def broadcast_to(input: Tensor, size: Ints) -> Tensor:
    """Expanded to a shape.

    Input: (*)
    Output: size, a view
    Errors: RuntimeError if the tensor does not broadcast to size
    https://pytorch.org/docs → torch.broadcast_to

    >>> import tensorgrad as torch
    >>> torch.broadcast_to(torch.ones(2), (3, 2)).shape
    torch.Size([3, 2])
    """
    return expand(input, tuple(size))


@public(method=False)
def broadcast_shapes(*shapes: Ints1) -> Size:
    """The shape that shapes broadcast to.

    Aligned at the right, lengths must be equal or 1.

    Errors: RuntimeError if the shapes do not broadcast, or one is a tensor; ValueError if a length is negative
    https://pytorch.org/docs → torch.broadcast_shapes

    >>> import tensorgrad as torch
    >>> torch.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    for s in shapes:
        if isinstance(s, TensorBase):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {s}")
    shapes = tuple((s,) if isinstance(s, int) else s for s in shapes)
    out = [1] * max(map(len, shapes), default=0)
    for position, shape in enumerate(shapes):
        for i in range(-1, -len(shape) - 1, -1):
            n = shape[i]
            if n in (1, out[i]):
                continue
            if out[i] != 1:
                raise RuntimeError(f"Attempting to broadcast a dimension of length {n} at {i}! Mismatching argument at "
                                   f"index {position} had {shape}; but expected shape should be broadcastable to {out}")
            if n < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            out[i] = n
    return Size(out)


@public(method=False)
def broadcast_tensors(*tensors: Tensors) -> tuple[Tensor, ...]:
    """Tensors expanded to their common shape.

    Input: any number of tensors (*)
    Output: as many views of one shape
    Errors: RuntimeError if the shapes do not broadcast
    https://pytorch.org/docs → torch.broadcast_tensors

    >>> import tensorgrad as torch
    >>> torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))[0].shape
    torch.Size([2, 3])
    """
    try:
        shape = broadcast_shapes(*[t.array.shape for t in tensors])
    except RuntimeError as error:
        raise explained(OPS["add"], [t.array for t in tensors], error) from None  # type: ignore[arg-type]
    return tuple(t if t.array.shape == shape else expand(t, shape) for t in tensors)


def alias(input: Any) -> Any:
    """A view of all of a tensor."""
    return xp.reshape(input, shape=input.array.shape)


def channels_last(input: Any, memory_format: Any) -> Any:
    """Return a copy of images with their channels innermost in memory; RuntimeError for the format of others."""
    check_format(input.array.ndim, memory_format)
    if type(input._storage).ordered is not None:
        return xp.channels_last(input)
    ndim = input.array.ndim
    moved = xp.clone(contiguous(xp.permute_dims(input, axes=(0, *range(2, ndim), 1))))
    return xp.permute_dims(moved, axes=(0, ndim - 1, *range(1, ndim - 1)))


@public(function=False)
def contiguous(input: Tensor, *, memory_format: MemoryFormat = dtypes.contiguous_format) -> Tensor:
    """The tensor, copied if it is not contiguous.

    Input: (*), any strides
    Output: (*), the elements in memory in the order of memory_format
    https://pytorch.org/docs → torch.Tensor.contiguous

    >>> import tensorgrad as torch
    >>> torch.ones(2, 3).t().contiguous().is_contiguous()
    True
    """
    if memory_format in (dtypes.channels_last, dtypes.channels_last_3d):
        return input if input.is_contiguous(memory_format=memory_format) else channels_last(input, memory_format)
    return input if input.array.flags.c_contiguous else xp.contiguous(input)


@public(inplace=True)
def as_strided(input: Tensor, size: Ints, stride: Ints, storage_offset: Index | None = None) -> Tensor:
    """Any view of the memory.

    out[i, j, …] = memory[storage_offset + i · stride[0] + j · stride[1] + …], counted in elements.

    Input: (*)
    Output: size, a view; storage_offset is the tensor's by default
    Errors: RuntimeError if size and stride differ in number, an entry is negative, or the view leaves the memory
    https://pytorch.org/docs → torch.as_strided

    >>> import tensorgrad as torch
    >>> torch.arange(4).as_strided((3,), (1,), 1)
    tensor([1, 2, 3])
    """
    # Python's integers, whose sums do not wrap around
    size, stride = (tuple([n if type(n) is int else whole(n) for n in each]) for each in (size, stride))
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(n < 0 for n in size):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    storage = shared(input)
    memory = storage.memory
    here = (address(input.array) - address(memory)) // memory.itemsize if memory.size else 0
    offset = here if storage_offset is None else whole(storage_offset)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if all(size) and not (0 <= offset and last < memory.size):
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and "
                           f"itemsize {memory.itemsize} requiring a "
                           f"storage size of {(last + 1) * memory.itemsize} are out of bounds for storage of size "
                           f"{memory.nbytes}")
    params = {"size": size, "stride": stride, "offset": offset,
              "layout": (tuple(input.array.shape), input.stride(), here), "length": memory.size}
    op, node = OPS["as_strided"], node_of(input)
    array = op.kernels[type(storage)](input.array, memory=memory, **params)
    return view(op, (input,), (node,), int(node is not None), params, array)


@public(function=False)
def sum_to_size(input: Tensor, *size: Ints1, **keywords: Any) -> Tensor:
    """Summed over the axes that broadcasting from `size` would have repeated.

    Input: (*)
    Output: size, whose lengths are the tensor's or 1
    Errors: RuntimeError if size does not broadcast to the tensor's shape
    https://pytorch.org/docs → torch.Tensor.sum_to_size

    >>> import tensorgrad as torch
    >>> torch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    from ..core.unbroadcast import sum_to
    shape, own = shape_of(_given(size, "sum_to_size", "size", keywords)), input.array.shape
    if len(shape) > len(own) or any(n not in (1, m) for n, m in zip(reversed(shape), reversed(own), strict=False)):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(own)}}}.")
    return sum_to(xp, input, shape) if shape else input.sum()


def _changing_geometry(name: str) -> None:
    """The twins in place of view ops: the tensor itself becomes the view."""
    form = FUNCTIONS[name]

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        node, before = node_of(self), mode.grad
        if mode.record and node is not None:
            _inplace.check(self)
        _inplace.check_mode(self)
        old = wrap(self.array, self._storage, node)
        old.origin = self.origin
        # the recorded node must know the new shape
        mode.set_grad(before or (node is not None and type(node) is not Leaf))
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
    method.__wrapped__ = form  # type: ignore[attr-defined]
    method.__doc__ = f"`{name}`, of the tensor itself. https://pytorch.org/docs → torch.Tensor.{name}_"
    setattr(Tensor, f"{name}_", naming(method, f"{name}_"))


for _name in ("unsqueeze", "squeeze", "transpose", "swapaxes", "swapdims", "t", "as_strided"):
    _changing_geometry(_name)


@public(function=False)
def resize_(input: Tensor, *size: Ints1, memory_format: MemoryFormat | None = None, **keywords: Any) -> Tensor:
    """Change the shape, keeping elements in order; new ones are uninitialized.

    Views of memory that has to grow keep the old memory.

    Output: size
    Errors: RuntimeError if the tensor requires grad, a size is negative, or memory that NumPy or a buffer holds is too
        small
    https://pytorch.org/docs → torch.Tensor.resize_

    >>> import tensorgrad as torch
    >>> torch.arange(6).resize_(2, 2).shape
    torch.Size([2, 2])
    """
    node = node_of(input)
    if node is not None and not mode.inference:
        raise RuntimeError("cannot resize variables that require grad")
    _inplace.check_mode(input)
    shape = _sizes(_given(size, "resize_", "size", keywords))
    if input._storage.dense is not None:
        from .sparse_methods import resized_rows
        return resized_rows(input, shape)  # type: ignore[no-any-return]
    _check_size(shape, input.array.itemsize)
    if memory_format is dtypes.preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    check_format(len(shape), memory_format)
    if shape == input.array.shape and memory_format is None:
        return input
    backend, storage, count = type(input._storage), shared(input), prod(shape)
    start = input.storage_offset()
    memory = storage.memory.ravel("K")
    if start + count > memory.size:
        if storage.fixed:
            raise RuntimeError("Trying to resize storage that is not resizable")
        grown = backend.xp.zeros(start + count, dtype=memory.dtype)
        grown[:memory.size] = memory
        if creation.fill_memory:
            backend.assign(grown[memory.size:], creation.unlikely(input.dtype))
        memory, input._storage = grown, backend()
        input._storage.memory, input._storage.version = memory, storage.version
        input._storage.inference = storage.inference
    flat = memory[start:start + count]
    if memory_format in (dtypes.channels_last, dtypes.channels_last_3d):
        rows, channels, *rest = shape
        input.array = flat.reshape(rows, *rest, channels).transpose(0, -1, *range(1, len(shape) - 1))
    else:
        input.array = flat.reshape(shape)
    input._storage.wrote()
    if type(node) is Leaf:
        renew_leaf(input)
    return input


def _check_size(shape: tuple[int, ...], itemsize: int) -> None:
    """Raise PyTorch's errors for sizes that are negative, or whose product no number holds."""
    if any(n < 0 for n in shape) or prod(shape) >= 2 ** 63:
        raise RuntimeError("numel: integer multiplication overflow")
    if prod(max(n, 1) for n in shape[1:]) >= 2 ** 63:
        raise RuntimeError("Stride calculation overflowed")
    if prod(shape) * itemsize >= 2 ** 63:
        raise overflowed(shape)


@public()
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """`resize_` to the shape of another tensor.

    Output: the shape of the_template
    Errors: RuntimeError if the tensor requires grad, or if a size is negative
    https://pytorch.org/docs → torch.Tensor.resize_as_
    """
    if isinstance(pattern_of(input), Coo) and isinstance(pattern_of(the_template), Coo):
        return input.resize_as_sparse_(the_template)  # type: ignore[attr-defined, no-any-return]
    if memory_format is dtypes.preserve_format:
        memory_format = next((kind for kind, ndim in ((dtypes.channels_last, 4), (dtypes.channels_last_3d, 5))
                              if the_template.dim() == ndim and not the_template.is_contiguous()
                              and the_template.is_contiguous(memory_format=kind)), None)
    return resize_(input, the_template.array.shape, memory_format=memory_format)


