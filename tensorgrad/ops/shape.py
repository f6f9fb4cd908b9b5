"""Shapes: views of the same memory, and rearrangements that copy."""
from __future__ import annotations

from numpy import result_type

from .base import Op

ANY = "biufcV"


class Movement(Op):
    """Ops that move elements, of any dtype, without computing. kernels/shape_arrays.py has their definitions by methods
    of arrays.
    """

    __slots__ = ()
    kinds = ANY


def as_first(x, *rest, **params):
    """`infer` for ops whose result has the first input's shape and dtype."""
    return x.shape, x.dtype


class Placing(Movement):
    """Movements into zeros of a `shape`: the adjoints of views and of choices."""

    __slots__ = ()
    batch = "shaped"
    linear = ("x",)

    def infer(x, *rest, shape, **params):
        return tuple(shape), x.dtype


class Viewing(Movement):
    """Movements whose result shares its input's memory."""

    __slots__ = ()
    view = "always"


class Reshape(Viewing):
    """The elements, in order, in another shape."""

    torch_name = "View"
    view = "maybe"

    def batch(lot, kernel, x, *, shape):
        return x.reshape(shape)

    def forward(xp, x, *, shape):   return xp.reshape(x, shape)
    def grad_x(xp, g, x_shape):     return xp.reshape(g, x_shape)


class PermuteDims(Viewing):
    """out[i_axes[0], i_axes[1], …] = x[i₀, i₁, …]"""

    torch_name = "Permute"
    former = "PERMUTE"

    def batch(lot, kernel, x, *, axes):
        return lot.whole(kernel(x.values, axes=(*range(lot.rank), *lot.axes(axes, x.ndim))))

    def forward(xp, x, *, axes):    return xp.permute_dims(x, axes)
    def grad_x(xp, g, axes):        return xp.permute_dims(g, inverse(axes))


class Swapaxes(Viewing):
    """Two axes exchanged."""

    torch_name = "Transpose"
    batch = "along"
    axes = ("axis1", "axis2")

    def forward(xp, x, *, axis1, axis2):  return xp.swapaxes(x, axis1, axis2)
    def grad_x(xp, g, axis1, axis2):      return xp.swapaxes(g, axis1, axis2)


class T(Viewing):
    """The transpose of a matrix."""

    notation = "{}ᵀ"

    def batch(lot, kernel, x):
        return x.transpose()

    def forward(xp, x):  return xp.t(x)
    def grad_x(xp, g):   return xp.t(g)


class ExpandDims(Viewing):
    """A new axis of length 1."""

    torch_name = "Unsqueeze"
    former = "UNSQUEEZE"

    def batch(lot, kernel, x, *, axis):
        return lot.whole(kernel(x.values, axis=lot.axes(axis, x.ndim + (len(axis) if isinstance(axis, tuple) else 1))))

    def forward(xp, x, *, axis):    return xp.expand_dims(x, axis)
    def grad_x(xp, g, x_shape):     return xp.reshape(g, x_shape)


class Squeeze(Viewing):
    """Axes of length 1 left out."""


    def batch(lot, kernel, x, *, axis):
        return lot.whole(kernel(x.values, axis=lot.axes(axis, x.ndim)) if x.ndim else x.values)

    def forward(xp, x, *, axis):    return xp.squeeze(x, axis=axis)
    def grad_x(xp, g, x_shape):     return xp.reshape(g, x_shape)


class BroadcastTo(Viewing):
    """x repeated along new axes and those of length 1; the engine sums the gradient back."""

    torch_name = "Expand"

    def batch(lot, kernel, x, *, shape):
        values = x.values.reshape(*x.hidden, *(1,) * (len(shape) - x.ndim), *x.shape)
        return lot.whole(kernel(values, shape=(*x.hidden, *shape)))

    def forward(xp, x, *, shape):   return xp.broadcast_to(x, shape)
    def grad_x(xp, g):              return g


class GetItem(Viewing):
    """x[…, i, …]: one index of one axis or more, which disappear."""

    torch_name = "Select"
    batch = "defined"
    former = "SELECT"

    def forward(xp, x, *, index):         return x[(*index, ...)]      # the dots keep a single element a view
    def grad_x(xp, g, x_shape, index):    return xp.place_slice(g, shape=x_shape, index=index)


class GetSlice(Viewing):
    """x[…, start:stop:step, …]"""

    torch_name = "Slice"
    batch = "defined"

    def forward(xp, x, *, index):         return x[index if ... in index else (*index, ...)]
    def grad_x(xp, g, x_shape, index):    return xp.place_slice(g, shape=x_shape, index=index)


    def name(self):
        """Return the name of the last of the steps that PyTorch records for such an index."""
        index = self.params["index"]
        steps = ["Unsqueeze" if part is None else "Slice" if isinstance(part, slice) else "Select" for part in index
                 if part is not Ellipsis and (part != slice(None) or len(index) == 1)]
        return f"{steps[-1] if steps else 'Alias'}Backward0"


class PlaceSlice(Placing):
    """Zeros of a shape, with x at a basic index: the adjoint of `get_slice`."""

    def forward(xp, x, *, shape, index):  return xp.place_slice(x, shape=shape, index=index)
    def grad_x(xp, g, index):             return xp.get_slice(g, index=index)


class Diagonal(Viewing):
    """out[…, i] = x[…, i, i + offset]"""

    batch = "along"
    axes = ("axis1", "axis2")

    def forward(xp, x, *, offset=0, axis1=0, axis2=1):
        return xp.diagonal(x, offset, axis1, axis2)

    def grad_x(xp, g, x_shape, offset=0, axis1=0, axis2=1):
        return xp.diagonal_place(g, shape=x_shape, offset=offset, axis1=axis1, axis2=axis2)


class DiagonalPlace(Placing):
    """Zeros of a shape with x on a diagonal: the adjoint of `diagonal`."""

    torch_name = "DiagEmbed"
    axes = ("axis1", "axis2")

    def forward(xp, x, *, shape, offset=0, axis1=0, axis2=1):
        return xp.diagonal_place(x, shape=shape, offset=offset, axis1=axis1, axis2=axis2)

    def grad_x(xp, g, offset=0, axis1=0, axis2=1):
        return xp.diagonal(g, offset=offset, axis1=axis1, axis2=axis2)


class Unfold(Viewing):
    """Windows along an axis: out[…, k, …, j] = x[…, k·step + j, …]"""

    batch = "along"
    axes = ("axis",)

    def forward(xp, x, *, axis, size, step):
        return xp.unfold(x, axis=axis, size=size, step=step)

    def grad_x(xp, g, x_shape, axis, size, step):
        return xp.unfold_add(g, shape=x_shape, axis=axis, size=size, step=step)


class UnfoldAdd(Placing):
    """Windows added up where they came from: the adjoint of `unfold`."""

    complex32 = True
    kinds = Op.kinds
    axes = ("axis",)

    def forward(xp, x, *, shape, axis, size, step):
        return xp.unfold_add(x, shape=shape, axis=axis, size=size, step=step)

    def grad_x(xp, g, axis, size, step):
        return xp.unfold(g, axis=axis, size=size, step=step)


class AsStrided(Viewing):
    """Any view of the memory that x lies in: sizes, steps and the place of the first element, in elements.

    `memory` is the array that spans it (x itself if not given), `layout` the (size, stride, offset) of x in it,
    `length` its size.
    """

    by_memory = True

    def batch(lot, kernel, x, *, size, stride, offset, memory=None, **layout):
        line = (x if memory is None else memory).ravel("K").values
        shape, strides = (*line.shape[:-1], *size), (*line.strides[:-1], *(s * line.itemsize for s in stride))
        return lot.whole(lot.strided(line[..., offset:], shape, strides))

    def forward(xp, x, *, size, stride, offset, layout, length, memory=None):
        return xp.as_strided(x, size=size, stride=stride, offset=offset, layout=layout, length=length, memory=memory)

    def grad_x(xp, g, size, stride, offset, layout, length):
        out = xp.restride(g, source=(size, stride, offset), target=layout, length=length)
        if not overlapping(*layout[:2]):
            return out
        times = xp.restride(xp.ones(layout[0], dtype=g.dtype), source=layout, target=layout, length=length)
        return out / times          # elements of x in one place of memory share its gradient


class Restride(Movement):
    """x added up in zeros where the geometry `source` says, then read as `target` says: the adjoint of `as_strided`,
    and its own.
    """

    complex32 = True
    kinds = Op.kinds
    torch_name = "AsStrided"

    def forward(xp, x, *, source, target, length):
        return xp.restride(x, source=source, target=target, length=length)

    def infer(x, *, source, target, length):
        return tuple(target[0]), x.dtype

    def grad_x(xp, g, source, target, length):
        return xp.restride(g, source=target, target=source, length=length)


def overlapping(size, stride):
    """Return True if several elements of a geometry may share memory."""
    reach = 0
    for step, count in sorted((step, count) for count, step in zip(size, stride) if count > 1):
        if step <= reach:
            return True
        reach += step * (count - 1)
    return False


class Unbind(Viewing):
    """The slices along an axis, each without it."""

    several = True
    batch = "along"
    axes = ("axis",)

    def forward(xp, x, *, axis):
        return tuple(x[(slice(None),) * axis + (i, ...)] for i in range(x.shape[axis]))

    def grad_x(xp, g, axis):
        return xp.stack(g, axis=axis)


class SplitSizes(Viewing):
    """Consecutive pieces along an axis."""

    torch_name = "Split"
    several = True
    batch = "along"
    axes = ("axis",)

    def forward(xp, x, *, sizes, axis):
        ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
        return tuple(x[(slice(None),) * axis + (slice(end - n, end),)] for n, end in zip(sizes, ends, strict=True))

    def grad_x(xp, g, axis):
        return xp.concat(g, axis=axis)


class SplitWithSizes(Viewing):
    """`split_sizes` for sizes that were listed"""

    several = True
    batch = "along"
    axes = ("axis",)
    forward, grad_x = SplitSizes.forward, SplitSizes.grad_x


def together(xs):
    """The dtype that arrays have side by side."""
    dtypes = {x.dtype for x in xs}
    return dtypes.pop() if len(dtypes) == 1 else result_type(*dtypes)


class Concat(Movement):
    """Tensors one after the other along an axis."""

    images = "xs"
    row_major = True
    torch_name = "Cat"
    sequence = True
    casts = "promote"
    batch = "joined"
    linear = ("xs",)

    def forward(xp, xs, *, axis=0):
        return xp.concat(xs, axis)

    def infer(xs, *, axis=0):
        (first, *others), dtype = [x.shape for x in xs], together(xs)
        axis = axis % len(first) if first else 0
        if not first or any(s[:axis] != first[:axis] or s[axis + 1:] != first[axis + 1:] for s in others):
            raise ValueError(f"arrays of the shapes {', '.join(str(x.shape) for x in xs)} cannot be put one after the "
                             f"other along axis {axis}")
        return (*first[:axis], sum(x.shape[axis] for x in xs), *first[axis + 1:]), dtype

    def grad_xs(xp, g, position, xs_shapes, axis=0):
        start = sum(shape[axis] for shape in xs_shapes[:position])
        return xp.get_slice(g, index=(slice(None),) * axis + (slice(start, start + xs_shapes[position][axis]),))


class Stack(Movement):
    """Tensors side by side along a new axis."""

    row_major = True
    sequence = True
    casts = "promote"
    batch = "joined"
    linear = ("xs",)

    def forward(xp, xs, *, axis=0):           return xp.stack(xs, axis)

    def infer(xs, *, axis=0):
        shape = xs[0].shape
        if any(x.shape != shape for x in xs):
            raise ValueError("all input arrays must have the same shape")
        axis %= len(shape) + 1
        return (*shape[:axis], len(xs), *shape[axis:]), together(xs)

    def grad_xs(xp, g, position, axis=0):     return xp.get_item(g, index=(slice(None),) * axis + (position,))


class Flip(Movement):
    """Axes run backwards."""

    in_order = True
    batch = "along"
    axes = ("axis",)
    linear = ("x",)

    infer = as_first

    def forward(xp, x, *, axis):   return xp.flip(x, axis)
    def grad_x(xp, g, axis):       return xp.flip(g, axis)


class Roll(Movement):
    """Elements pushed along axes; those that leave come in again at the other end."""

    row_major = True
    images = "x"
    batch = "along"
    axes = ("axis",)
    linear = ("x",)

    infer = as_first

    def forward(xp, x, *, shift, axis):   return xp.roll(x, shift, axis)
    def grad_x(xp, g, shift, axis):       return xp.roll(g, shift=tuple(-s for s in shift), axis=axis)


class Tril(Movement):
    """The part of matrices on and below a diagonal."""

    row_major = True
    batch = "trailing"
    linear = ("x",)

    infer = as_first

    def forward(xp, x, *, k=0):    return xp.tril(x, k)
    def grad_x(xp, g, k=0):        return xp.tril(g, k=k)


class Triu(Movement):
    """The part of matrices on and above a diagonal."""

    row_major = True
    batch = "trailing"
    linear = ("x",)

    infer = as_first

    def forward(xp, x, *, k=0):    return xp.triu(x, k)
    def grad_x(xp, g, k=0):        return xp.triu(g, k=k)


class PadConstant(Movement):
    """A border of one value; `widths` are (before, after) for every axis, negative ones crop."""

    images = "x"
    torch_name = "ConstantPadNd"

    def batch(lot, kernel, x, *, widths, **params):
        return lot.whole(kernel(x.values, widths=(*((0, 0),) * lot.rank, *widths), **params))

    def forward(xp, x, *, widths, value=0):
        return xp.pad_constant(x, widths=widths, value=value)

    def infer(x, *, widths, value=0):
        cut = (max(0, min(n, n - max(0, -b)) - max(0, -a)) for n, (a, b) in zip(x.shape, widths, strict=True))
        return tuple(n + max(0, a) + max(0, b) for n, (a, b) in zip(cut, widths, strict=True)), x.dtype

    def grad_x(xp, g, widths):
        return xp.pad_constant(g, widths=tuple((-a, -b) for a, b in widths))


class ToDevice(Movement):
    """A copy on another device; `source` and `target` are storage classes."""

    torch_name = "ToCopy"

    def forward(xp, x, *, source, target):
        return xp.to_device(x, source=source, target=target)

    def grad_x(xp, g, source, target):
        return xp.to_device(g, source=target, target=source)


def inverse(axes):
    """The permutation that undoes `axes`."""
    out = [0] * len(axes)
    for i, a in enumerate(axes):
        out[a] = i
    return tuple(out)


class Copied(Movement):
    """`src` in place of x: the tape's op for an in-place copy."""

    torch_name = "CopyBackwards"
    lands = True

    def name(self):
        return "torch::autograd::CopyBackwards"

    def batch(lot, kernel, x, src):
        return lot.whole(lot.full(src, lot.hidden(x, src)).copy())

    def forward(xp, x, src):       return xp.contiguous(src)
    def grad_x(xp, g, x_shape):    return xp.zeros(x_shape, dtype=g.dtype)
    def grad_src(xp, g):           return g


class Filled(Movement):
    """A number in the place of each element of x."""

    torch_name = "Fill"
    batch = "trailing"

    def overload(self):
        return 2

    infer = as_first

    def forward(xp, x, *, value):    return xp.full(x.shape, value, dtype=x.dtype)
    def grad_x(xp, g):               return xp.zeros(g.shape, dtype=g.dtype)


class Contiguous(Movement):
    """A contiguous copy."""

    notation = "{}"
    torch_name = "Clone"
    batch = "trailing"
    linear = ("x",)
    zeros = "additive"

    infer = as_first

    def forward(xp, x):    return xp.contiguous(x)
    def grad_x(xp, g):     return g


class ChannelsLast(Movement):
    """A copy of images (N, C, …) with their channels innermost in memory."""

    notation = "{}"
    torch_name = "Clone"
    batch = "trailing"
    linear = ("x",)

    def forward(xp, x):    return xp.channels_last(x)
    def grad_x(xp, g):     return g
