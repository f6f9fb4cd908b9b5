"""Buckets: the gradients of several parameters in one flat piece of memory, which travels between processes as one."""
from __future__ import annotations

from typing import Any

from ...core.dispatch import wrap
from ...dtype import FROM_NUMPY
from ...runtime.numpy_state import compute
from ...runtime.small_floats import computed

__all__ = ["Bucket", "GradBucket", "assigned"]


def assigned(parameters: Any, order: Any, limits: Any) -> Any:
    """Return lists of indices of parameters, one for each bucket, in the order in which buckets are full.

    Parameters are taken in `order`. Those of one dtype and device share a bucket until it has as many bytes as its
    limit; from the last of `limits` on, that is the limit of all.
    """
    filling, closed, full = {}, {}, []
    for index in order:
        parameter = parameters[index]
        kind = parameter.dtype, parameter.device
        indices, size = filling.pop(kind, ([], 0))
        indices.append(index)
        size += parameter.array.nbytes
        count = closed.get(kind, 0)
        if size >= limits[min(count, len(limits) - 1)]:
            closed[kind] = count + 1
            full.append(indices)
        else:
            filling[kind] = indices, size
    rank = {index: place for place, index in enumerate(order)}
    return sorted([*full, *(indices for indices, _ in filling.values())], key=lambda indices: rank[indices[-1]])


class Bucket:
    """Parameters whose gradients travel together, and the memory for these: `flat`, of which `views` are the pieces,
    each laid out as its parameter.

    A gradient moves into its view when it is complete, and has its memory there from then on. With `lasting` memory the
    next backward finds the views where they were, as `gradient_as_bucket_view` says; else it gets memory of its own,
    for programs may keep gradients.
    """

    __slots__ = ("indices", "parameters", "flat", "views", "lasting", "fresh", "pending", "copied", "work", "room",
                 "_storage")

    def __init__(self, indices: Any, parameters: Any, lasting: Any, room: Any = None) -> None:
        self.indices, self.parameters, self.lasting, self.room = indices, parameters, lasting, room
        # whose guard makes the device the current one, see core.sweep.on
        self._storage = parameters[0]._storage.nowhere
        self.flat, self.views, self.work = None, [None] * len(parameters), None
        self.fresh, self.copied, self.pending = False, [], len(parameters)

    def begin(self) -> None:
        """Get ready for another backward."""
        self.pending, self.copied, self.work, self.fresh = len(self.parameters), [], None, False

    def prepare(self) -> None:
        """Make the memory, unless all gradients are in it already, or it lasts: where the group reduces it fast, if it
        has such a place.
        """
        self.fresh = True
        if self.flat is not None and (self.lasting or all(p._grad is not None and p._grad.array is view
                                                          for p, view in zip(self.parameters, self.views,
                                                                             strict=True))):
            return
        arrays = [p.array for p in self.parameters]
        self.flat, self.views = None, [None] * len(arrays)          # memory that nobody else holds serves again
        size, dtype = sum(a.size for a in arrays), arrays[0].dtype
        room = (self.room(size * dtype.itemsize) if self.room is not None and self._storage.device.type == "cpu"
                else None)
        self.flat = compute(type(self._storage).xp.empty, size, dtype=dtype) if room is None else room.view(dtype)
        start = 0
        for place, array in enumerate(arrays):
            self.views[place] = laid_out(self.flat[start:start + array.size], array)
            start += array.size

    def take(self, place: Any, factor: Any, used: bool = True) -> None:
        """Move the gradient of a parameter into its view, times `factor`; zeros if there is none.

        A gradient whose memory belongs to something else, such as a buffer of the program's own, is copied, and copied
        back in the end.
        """
        if not self.fresh:
            self.prepare()
        grad, view = self.parameters[place]._grad, self.views[place]
        if grad is None:
            self._storage.assign(view, 0)
            return
        array = grad.array
        if array.dtype != view.dtype or type(array) is not type(view):
            raise RuntimeError(f"Expected {FROM_NUMPY[view.dtype]} on {self._storage.device}, got {grad.dtype} on "
                               f"{grad.device}: the dtype or device of parameters changed after "
                               f"DistributedDataParallel was made")
        if factor != 1:
            backend = type(self._storage)
            if view.dtype.kind == "V":
                view[...] = backend.cast(backend.cast(array, computed(array.dtype)) * factor, view.dtype)
            else:
                compute(backend.module.multiply, array, factor, view)
        elif array is not view:
            view[...] = array
        if array is view or not used:
            return
        if grad.origin is None and array.base is None:
            settle(grad, view)
        else:
            self.copied.append((grad, view))

    def release(self) -> None:
        """Give gradients memory of their own again."""
        for parameter, view in zip(self.parameters, self.views, strict=True):
            if parameter._grad is not None and parameter._grad.array is view:
                settle(parameter._grad, view.copy())

    def tensor(self) -> Any:
        """The whole memory as a tensor."""
        if not self.fresh:
            self.prepare()
        return wrap(self.flat, type(self._storage)())

    def finish(self) -> None:
        """Wait for the sum of all processes; gradients have it then."""
        work, self.work = self.work, None
        if work is not None:
            work.wait()
        for grad, view in self.copied:
            grad.array[...] = view
            grad._storage.wrote()
        self.copied = []


def settle(grad: Any, view: Any) -> None:
    """Let a gradient have its memory at a place in a bucket, where its values are."""
    grad.array, grad._storage = view, type(grad._storage)()


def laid_out(piece: Any, array: Any) -> Any:
    """A flat piece of memory in the shape of an array, its axes in the array's order if that fills its memory."""
    shape = array.shape
    if array.flags.c_contiguous or len(shape) < 2:
        return piece.reshape(shape)
    order = sorted(range(len(shape)), key=lambda axis: -array.strides[axis])
    if not array.transpose(order).flags.c_contiguous:
        return piece.reshape(shape)
    back = [order.index(axis) for axis in range(len(shape))]
    return piece.reshape([shape[axis] for axis in order]).transpose(back)


class GradBucket:
    """Argument of a communication hook: a bucket with the gradients of this process, which the hook reduces over all.

    https://pytorch.org/docs → torch.distributed.GradBucket
    """

    def __init__(self, bucket: Any, index: int, last: Any) -> None:
        self._bucket, self._index, self._last, self._buffer = bucket, index, last, bucket.tensor()

    def index(self) -> Any:
        """The number of the bucket, in the order in which they travel."""
        return self._index

    def buffer(self) -> Any:
        """The gradients as one flat tensor."""
        return self._buffer

    def set_buffer(self, buffer: Any) -> None:
        """Put another tensor in the place of the flat one."""
        self._buffer = buffer

    def gradients(self) -> Any:
        """The gradient of each parameter: views of the buffer."""
        found, start = [], 0
        for parameter, view in zip(self._bucket.parameters, self._bucket.views, strict=True):
            size = parameter.array.size
            if self._buffer.array is self._bucket.flat:
                found.append(wrap(view, type(self._bucket._storage)()))
            else:
                found.append(self._buffer[start:start + size].view(parameter.shape))
            start += size
        return found

    def parameters(self) -> Any:
        """The parameters, in the order of their gradients."""
        return list(self._bucket.parameters)

    def is_last(self) -> Any:
        """Return True if it is the last bucket of this backward."""
        return self._last
