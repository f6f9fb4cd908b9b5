"""Shapes: views of the same memory, and rearrangements that copy."""
from __future__ import annotations

from .base import Op

ANY = "biufcV"


class Movement(Op):
    """Ops that move elements and do not compute: every dtype will do."""

    __slots__ = ()
    kinds = ANY


class Viewing(Movement):
    """Movements whose result shares its input's memory."""

    __slots__ = ()
    view = "always"


class Reshape(Viewing):
    """The same elements, in order, in another shape."""

    torch_name = "View"
    view = "maybe"
    batch = "defined"

    def forward(xp, x, *, shape):   return x.reshape(shape)       # the method: half of the time of the function, and programs reshape a lot
    def grad_x(xp, g, x_shape):     return xp.reshape(g, x_shape)


class PermuteDims(Viewing):
    """out[i_axes[0], i_axes[1], …] = x[i₀, i₁, …]"""

    torch_name = "Permute"
    batch = "defined"

    def forward(xp, x, *, axes):    return x.transpose(axes)
    def grad_x(xp, g, axes):        return xp.permute_dims(g, inverse(axes))


class Swapaxes(Viewing):
    """Two axes exchanged."""

    torch_name = "Transpose"
    batch = "along"
    axes = ("axis1", "axis2")

    def forward(xp, x, *, axis1, axis2):  return x.swapaxes(axis1, axis2)
    def grad_x(xp, g, axis1, axis2):      return xp.swapaxes(g, axis1, axis2)


class T(Viewing):
    """The transpose of a matrix."""

    def forward(xp, x):  return x.T
    def grad_x(xp, g):   return xp.t(g)


class ExpandDims(Viewing):
    """A new axis of length 1."""

    torch_name = "Unsqueeze"
    batch = "along"
    axes = ("axis",)

    def forward(xp, x, *, axis):    return xp.expand_dims(x, axis)
    def grad_x(xp, g, x_shape):     return xp.reshape(g, x_shape)


class Squeeze(Viewing):
    """Axes of length 1 left out."""

    batch = "along"
    axes = ("axis",)

    def forward(xp, x, *, axis):    return xp.squeeze(x, axis=axis)
    def grad_x(xp, g, x_shape):     return xp.reshape(g, x_shape)


class BroadcastTo(Viewing):
    """x repeated along new axes and those of length 1; the engine sums the gradient back."""

    torch_name = "Expand"
    batch = "defined"

    def forward(xp, x, *, shape):   return writeable(xp.broadcast_to(x, shape))
    def grad_x(xp, g):              return g


class GetItem(Viewing):
    """x[…, i, …]: one index of one axis or more, which disappear."""

    torch_name = "Select"
    batch = "defined"

    def forward(xp, x, *, index):         return x[(*index, ...)]      # the dots keep a single element a view
    def grad_x(xp, g, x_shape, index):    return xp.place_slice(g, shape=x_shape, index=index)


class GetSlice(Viewing):
    """x[…, start:stop:step, …]"""

    torch_name = "Slice"
    batch = "defined"

    def forward(xp, x, *, index):         return x[index if ... in index else (*index, ...)]
    def grad_x(xp, g, x_shape, index):    return xp.place_slice(g, shape=x_shape, index=index)


    def name(self):
        """That of the last of the steps that PyTorch takes for such an index."""
        index = self.params["index"]
        steps = ["Unsqueeze" if part is None else "Slice" if isinstance(part, slice) else "Select" for part in index
                 if part is not Ellipsis and (part != slice(None) or len(index) == 1)]
        return f"{steps[-1] if steps else 'Alias'}Backward0"


class PlaceSlice(Movement):
    """Zeros of a shape, with x at a basic index: the adjoint of `get_slice`."""

    batch = "shaped"
    linear = ("x",)

    def forward(xp, x, *, shape, index):
        out = xp.zeros(shape, dtype=x.dtype)
        out[index] = x
        return out

    def grad_x(xp, g, index):             return xp.get_slice(g, index=index)


class Diagonal(Viewing):
    """out[…, i] = x[…, i, i + offset]"""

    batch = "along"
    axes = ("axis1", "axis2")

    def forward(xp, x, *, offset=0, axis1=0, axis2=1):
        return writeable(xp.diagonal(x, offset, axis1, axis2))

    def grad_x(xp, g, x_shape, offset=0, axis1=0, axis2=1):
        return xp.diagonal_place(g, shape=x_shape, offset=offset, axis1=axis1, axis2=axis2)


class DiagonalPlace(Movement):
    """Zeros of a shape with x on a diagonal: the adjoint of `diagonal`."""

    torch_name = "DiagEmbed"
    batch = "shaped"
    axes = ("axis1", "axis2")
    linear = ("x",)

    def forward(xp, x, *, shape, offset=0, axis1=0, axis2=1):
        out = xp.zeros(shape, dtype=x.dtype)
        writeable(xp.diagonal(out, offset, axis1, axis2))[...] = x
        return out

    def grad_x(xp, g, offset=0, axis1=0, axis2=1):
        return xp.diagonal(g, offset=offset, axis1=axis1, axis2=axis2)


class Unfold(Viewing):
    """Windows along an axis: out[…, k, …, j] = x[…, k·step + j, …]"""

    batch = "along"
    axes = ("axis",)

    def forward(xp, x, *, axis, size, step):
        count = (x.shape[axis] - size) // step + 1
        shape = (*x.shape[:axis], count, *x.shape[axis + 1:], size)
        strides = (*x.strides[:axis], x.strides[axis] * step, *x.strides[axis + 1:], x.strides[axis])
        return xp.lib.stride_tricks.as_strided(x, shape, strides)

    def grad_x(xp, g, x_shape, axis, size, step):
        return xp.unfold_add(g, shape=x_shape, axis=axis, size=size, step=step)


class UnfoldAdd(Movement):
    """Windows added up where they came from: the adjoint of `unfold`."""

    batch = "shaped"
    axes = ("axis",)
    linear = ("x",)

    def forward(xp, x, *, shape, axis, size, step):
        count, spans, lead = x.shape[axis], -(-size // step), (slice(None),) * axis
        x = xp.moveaxis(x, -1, axis + 1)
        out = xp.zeros((*shape[:axis], count - 1 + spans, step, *shape[axis + 1:]), dtype=x.dtype)
        for k in range(spans):     # the k-th step of all windows at a time: each adds to distinct elements
            part = x[(*lead, slice(None), slice(k * step, (k + 1) * step))]
            out[(*lead, slice(k, k + count), slice(0, part.shape[axis + 1]))] += part
        line = out.reshape((*shape[:axis], (count - 1 + spans) * step, *shape[axis + 1:]))
        out = xp.zeros(shape, dtype=x.dtype)
        whole = (*lead, slice(0, min(shape[axis], line.shape[axis])))
        out[whole] = line[whole]
        return out

    def grad_x(xp, g, axis, size, step):
        return xp.unfold(g, axis=axis, size=size, step=step)


class AsStrided(Viewing):
    """Any view of the memory that x lies in: sizes, steps and the place of the first element, in elements.

    `memory` is the array that spans it (x itself if not given), `layout` the (size, stride, offset) of x in it, `length` its size.
    """

    batch = "defined"

    def forward(xp, x, *, size, stride, offset, layout, length, memory=None):
        return strided(xp, (x if memory is None else memory).ravel("K"), size, stride, offset)

    def grad_x(xp, g, size, stride, offset, layout, length):
        out = xp.restride(g, source=(size, stride, offset), target=layout, length=length)
        if not overlapping(*layout[:2]):
            return out
        times = xp.restride(xp.ones(layout[0], dtype=g.dtype), source=layout, target=layout, length=length)
        return out / times          # elements of x that share memory share what came to it


class Restride(Movement):
    """x added up in zeros where the geometry `source` says, then read as `target` says: the adjoint of `as_strided`, and its own."""

    torch_name = "AsStrided"
    batch = "defined"

    def forward(xp, x, *, source, target, length):
        out = xp.zeros(length, dtype=x.dtype)
        places = strided(xp, xp.arange(length), *source)
        xp.add.at(out, places.ravel(), x.ravel())
        return strided(xp, out, *target).copy()

    def grad_x(xp, g, source, target, length):
        return xp.restride(g, source=target, target=source, length=length)


def overlapping(size, stride):
    """Tell whether several elements of a geometry may share memory."""
    reach = 0
    for step, count in sorted((step, count) for count, step in zip(size, stride) if count > 1):
        if step <= reach:
            return True
        reach += step * (count - 1)
    return False


def strided(xp, flat, size, stride, offset):
    steps = tuple(s * flat.itemsize for s in stride)
    return xp.lib.stride_tricks.as_strided(flat[offset:], tuple(size), steps)


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
    forward, grad_x = SplitSizes.forward, SplitSizes.grad_x


class Concat(Movement):
    """Tensors one after the other along an axis."""

    row_major = True
    torch_name = "Cat"
    sequence = True
    casts = "promote"
    batch = "defined"
    linear = ("xs",)

    def forward(xp, xs, *, axis=0):
        return xp.concatenate(xs, axis)

    def grad_xs(xp, g, position, xs_shapes, axis=0):
        start = sum(shape[axis] for shape in xs_shapes[:position])
        return xp.get_slice(g, index=(slice(None),) * axis + (slice(start, start + xs_shapes[position][axis]),))


class Stack(Movement):
    """Tensors side by side along a new axis."""

    row_major = True
    sequence = True
    casts = "promote"
    batch = "defined"
    linear = ("xs",)

    def forward(xp, xs, *, axis=0):           return xp.stack(xs, axis)
    def grad_xs(xp, g, position, axis=0):     return xp.get_item(g, index=(slice(None),) * axis + (position,))


class Flip(Movement):
    """Axes run backwards."""

    in_order = True
    batch = "along"
    axes = ("axis",)
    linear = ("x",)

    def forward(xp, x, *, axis):   return xp.flip(x, axis).copy("K")
    def grad_x(xp, g, axis):       return xp.flip(g, axis)


class Roll(Movement):
    """Elements pushed along axes; those that leave come in again at the other end."""

    row_major = True
    batch = "along"
    axes = ("axis",)
    linear = ("x",)

    def forward(xp, x, *, shift, axis):   return xp.roll(x, shift, axis)
    def grad_x(xp, g, shift, axis):       return xp.roll(g, shift=tuple(-s for s in shift), axis=axis)


class Tril(Movement):
    """The part of matrices on and below a diagonal."""

    row_major = True
    batch = "trailing"
    linear = ("x",)

    def forward(xp, x, *, k=0):    return xp.tril(x, k)
    def grad_x(xp, g, k=0):        return xp.tril(g, k=k)


class Triu(Movement):
    """The part of matrices on and above a diagonal."""

    row_major = True
    batch = "trailing"
    linear = ("x",)

    def forward(xp, x, *, k=0):    return xp.triu(x, k)
    def grad_x(xp, g, k=0):        return xp.triu(g, k=k)


class PadConstant(Movement):
    """A border of one value; `widths` are (before, after) for every axis, negative ones crop."""

    torch_name = "ConstantPadNd"

    def forward(xp, x, *, widths, value=0):
        index = tuple(slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(x.shape, widths, strict=True))
        x = x[index]
        shape = tuple(n + max(0, a) + max(0, b) for n, (a, b) in zip(x.shape, widths, strict=True))
        out = xp.zeros(shape, dtype=x.dtype) if value == 0 else xp.full(shape, value, dtype=x.dtype)
        out[tuple(slice(max(0, a), max(0, a) + n) for n, (a, _) in zip(x.shape, widths, strict=True))] = x
        return out

    def grad_x(xp, g, widths):
        return xp.pad_constant(g, widths=tuple((-a, -b) for a, b in widths))


class ToDevice(Movement):
    """A copy on another device; `source` and `target` are storage classes."""

    torch_name = "ToCopy"

    def forward(xp, x, *, source, target):
        return target.asarray(x if source.device.type == target.device.type else source.host(x))

    def grad_x(xp, g, source, target):
        return xp.to_device(g, source=target, target=source)


def inverse(axes):
    """The permutation that undoes `axes`."""
    out = [0] * len(axes)
    for i, a in enumerate(axes):
        out[a] = i
    return tuple(out)


def writeable(array):
    """NumPy gives some views read-only; here the dispatcher's rules decide what may be written."""
    bare = getattr(array, "values", array)
    if not getattr(bare.flags, "writeable", True) and hasattr(bare, "setflags"):
        try:
            bare.setflags(write=True)
        except ValueError:       # the memory itself is read-only
            pass
    return array


class Copied(Movement):
    """`src` in the place of x: what a copy in place is on the tape."""

    torch_name = "CopyBackwards"

    def name(self):
        return "torch::autograd::CopyBackwards"

    def forward(xp, x, src):       return src.copy()
    def grad_x(xp, g, x_shape):    return xp.zeros(x_shape, dtype=g.dtype)
    def grad_src(xp, g):           return g


class Filled(Movement):
    """A number in the place of each element of x."""

    torch_name = "Fill"
    batch = "trailing"

    def overload(self):
        return 2

    def forward(xp, x, *, value):    return xp.full(x.shape, value, dtype=x.dtype)
    def grad_x(xp, g):               return xp.zeros(g.shape, dtype=g.dtype)


class Contiguous(Movement):
    """A copy whose elements lie in the order of their indices."""

    torch_name = "Clone"
    batch = "trailing"
    linear = ("x",)

    def forward(xp, x):    return x.copy(order="C")
    def grad_x(xp, g):     return g
