"""x[index] and x[index] = value.

https://pytorch.org/docs/stable/tensor_view.html, https://numpy.org/doc/stable/user/basics.indexing.html

An index is read from left to right. Numbers, slices, None and … make a view; index tensors and masks are collected per
axis of that view, and applied to it together.
"""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtype as dtypes
from .._tensor import Tensor
from ..advice import misfit
from ..core import inplace as _inplace
from ..core.casting import is_half, number_array
from ..core.class_hooks import CLASSES, among
from ..core.class_hooks import hooks as class_hooks
from ..core.dispatch import SCALAR_TYPES, apply, fresh, move, xp
from ..core.mode import mode
from ..core.tape import TensorBase, node_of
from ..ops.base import OPS
from ..ops.indexing import ARRAY, filled, indexed_shape
from ..size import shape_together, whole
from ..storage.base import NoValues
from ._arguments import converted, is_batched, is_hollow, is_unknown
from .conversion import cast
from .creation import _host_array

FULL = slice(None)
LONGEST = 32                  # a list of this many parts is never taken for a tuple
INVALID_SCALAR = ("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                  "convert a 0-dim tensor to a number")

# ── parsing of an index ───────────────────────────────────────────────────────────────────────────────────────────────


def split_index(x: Any, index: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Split an index: return the basic index of a view, and for each axis of the view an index tensor or None."""
    ndim, shape = x.array.ndim, x.array.shape
    if not ndim and not isinstance(index, tuple):
        _check_scalar(index)
    parts = _as_tuple(index)
    room = ndim - sum(map(_axes_of, parts))
    if room < 0:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    basic: list[Any] = []
    waiting: list[Any] = []
    axis, dots = 0, 0
    for position, part in enumerate(parts):
        p = _part(x, part)
        if p is Ellipsis:
            dots += 1
            if dots == 1:
                basic += [FULL] * room
                waiting += [None] * room
                axis += room
        elif dots > 1 and room:                      # a second … leads past the last axis
            raise _no_axis(axis + room, ndim)
        elif p is None:
            basic.append(None)
            waiting.append(None)
        elif isinstance(p, bool):                    # x[True]: a new axis of length 1, or 0 for False
            basic.append(None)
            waiting.append(fresh(type(x._storage).xp.zeros((int(p),), dtype="int64"), type(x._storage)))
        elif isinstance(p, TensorBase):
            n = p.array.ndim if _is_mask(p) else 1
            basic += [FULL] * n
            waiting.append(p)
            axis += n
        elif axis >= ndim:
            raise _no_axis(axis, ndim)
        else:
            if isinstance(p, slice):
                waiting.append(None)
            elif not -shape[axis] <= p < shape[axis]:
                raise IndexError(f"index {p} is out of bounds for dimension {position} with size {shape[axis]}")
            basic.append(p)
            axis += 1
    if axis > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim} (got {axis})")
    while waiting and waiting[-1] is None:
        waiting.pop()
    return tuple(basic), waiting


def _no_axis(axis: int, ndim: int) -> IndexError:
    return IndexError(f"Dimension out of range (expected to be in range of [{-max(ndim, 1)}, {max(ndim, 1) - 1}], but "
                      f"got {axis})")


def _as_tuple(index: Any) -> tuple[Any, ...]:
    """The parts of an index. A short list of more than numbers counts as a tuple, as it did in NumPy once."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, (list, str)) and len(index) < LONGEST and any(
            p is None or p is Ellipsis or isinstance(p, (TensorBase, Sequence, np.ndarray, slice)) for p in index):
        warnings.warn("Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in "
                      "pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as "
                      "tensor index, x[torch.tensor(seq)], which will result either in an error or a different result",
                      UserWarning,
                      stacklevel=4)
        return tuple(index)
    return (index,)


def _axes_of(p: Any) -> int:
    """Return how many axes a part takes, as far as is known before lists become tensors."""
    if p is None or p is Ellipsis or type(p) is bool:
        return 0
    return p.array.ndim if isinstance(p, TensorBase) and _is_mask(p) else 1


def _is_mask(t: Any) -> bool:
    return t.array.dtype.kind == "b" or t.array.dtype == np.uint8


def _check_scalar(index: Any) -> None:
    """PyTorch's errors for a number or slice as the index of a 0-d tensor."""
    if isinstance(index, slice) and _slice(index):
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size 0" if index else INVALID_SCALAR)


def _part(x: Any, p: Any) -> Any:
    """Normalize one part of an index: to an int, a slice, None, Ellipsis, a bool or an index tensor."""
    if p is None or p is Ellipsis or type(p) is bool:
        return p
    if isinstance(p, TensorBase):
        return _index_tensor(x, p)
    if isinstance(p, (int, np.integer)):
        if not -1 << 63 <= p < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        return int(p)
    if isinstance(p, slice):
        return _slice(p)
    if isinstance(p, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(p).__name__}'")
    if isinstance(p, (Sequence, np.ndarray)):
        array = _host_array(p, None)
        backend = type(x._storage)
        numbers = array if array.dtype in (np.bool_, np.uint8) else array.astype(np.int64)
        return _index_tensor(x, fresh(backend.asarray(numbers), backend))
    if hasattr(p, "__index__") and not isinstance(p, np.generic):
        return whole(p)
    raise IndexError(f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
                     f"indices (got {_type_name(p)})")


def _type_name(value: Any) -> str:
    kind = type(value)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def _slice(p: slice) -> slice:
    if not all(b is None or hasattr(b, "__index__") for b in (p.start, p.stop, p.step)):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    start, stop = (None if b is None else whole(b) for b in (p.start, p.stop))
    step = 1 if p.step is None else whole(p.step)
    if step <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    return slice(start, stop, step)


def _index_tensor(x: Any, p: Any) -> Any:
    """An index tensor on the device of x; a number if it has no axes."""
    if not p.array.ndim and p.array.dtype.kind in "iub" and not is_batched(p) and (_is_mask(p) or not is_unknown(p)):
        return bool(p.item()) if _is_mask(p) else int(p.item())
    return in_backend(x, p)


def in_backend(x: Any, p: Any) -> Any:
    """An index tensor on the device of x."""
    backend = type(x._storage)
    if p._storage.device != x._storage.device and not p.is_cpu:
        raise RuntimeError(f"indices should be either on cpu or on the same device as the indexed tensor ({x.device})")
    if type(p._storage) is backend or p._storage.device == x._storage.device:
        return p
    return move(p, getattr(backend, "inner", backend))


def as_template(view: Any, waiting: Any, inside: bool = True) -> tuple[tuple[Any, ...], list[Any]]:
    """Convert index tensors per axis of a view to a template of full slices and ARRAY, and the index arrays, with masks
    converted.

    Indices are checked against the shape if `inside`; otherwise the caller must do so.
    """
    shape = view.array.shape
    if len(waiting) > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)} (got {len(waiting)})")
    if any(t is not None and t.array.dtype not in (np.int64, np.int32, np.uint8, np.bool_) for t in waiting):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    template: list[Any] = []
    tensors: list[Any] = []
    for t in waiting:
        if t is None:
            template.append(FULL)
            continue
        found = _places(t, shape, len(template)) if _is_mask(t) else (t,)
        template += [ARRAY] * len(found)
        tensors += found
    if inside and tensors and _check_places(shape, template, tensors):
        tensors = [xp.zeros_like(t) for t in tensors]            # nothing will be read: any index is fine
    return tuple(template), tensors


def _places(mask: Any, shape: Any, axis: int) -> tuple[Any, ...]:
    """Return the positions where a mask is true, an index tensor for each of its axes."""
    if is_batched(mask):
        raise RuntimeError("vmap: We do not support batching operators that can support dynamic shape. Attempting to "
                           "batch over indexing with a boolean mask.")
    if mask.array.dtype == np.uint8:
        warnings.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                      UserWarning, stacklevel=5)
        mask = cast(mask, dtypes.bool)
    if not mask.array.ndim:
        return ()
    own, there = mask.array.shape, shape[axis:axis + mask.array.ndim]
    if own != there:
        bad = next((i for i, (n, m) in enumerate(zip(own, there, strict=False)) if n != m), len(there))
        if axis + bad >= len(shape):
            raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
        raise IndexError(f"The shape of the mask {list(own)} at index {bad} does not match the shape of the indexed "
                         f"tensor {list(shape)} at index {axis + bad}")
    return tuple(fresh(i, type(mask._storage)) for i in mask.array.nonzero())


def _together(tensors: Any) -> tuple[int, ...]:
    """The shape that index tensors have in common; IndexError if they have none."""
    shapes = [t.array.shape for t in tensors]
    try:
        return shape_together(*shapes)
    except ValueError:
        raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                         f"{', '.join(str(list(s)) for s in shapes)}") from None


def _check_places(shape: Any, template: Any, tensors: Any) -> bool:
    """Raise IndexError for index tensors that are out of range; return True if there is nothing to read."""
    together = _together(tensors)
    sizes = [n for n, p in zip(shape, template, strict=False) if p is ARRAY]
    if 0 in together:
        return False
    if 0 in sizes:
        raise IndexError("index is out of bounds for dimension with size 0")
    if 0 in shape:
        return True
    if any(int(t.array.min()) < -n or int(t.array.max()) >= n for n, t in zip(sizes, tensors, strict=True)):
        places = np.broadcast_arrays(*(np.zeros(t.array.shape, int) if is_hollow(t) else type(t._storage).host(t.array)
                                       for t in tensors))
        outside = np.stack([((i < -n) | (i >= n)).reshape(-1) for i, n in zip(places, sizes, strict=True)], 1)
        first, which = divmod(int(outside.argmax()), len(tensors))
        raise IndexError(f"index {places[which].reshape(-1)[first]} is out of bounds for dimension {which} with size "
                         f"{sizes[which]}")
    return False


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def getitem(self: Tensor, index: Any) -> Tensor:
    """x[index]: a view for numbers, slices, None and …; a copy for index tensors and masks."""
    if type(index) is int and self.array.ndim:                       # the most common index, on a fast path
        n = self.array.shape[0]
        if -n <= index < n:
            return xp.get_item(self, index=(index,))
    elif (found := _plain(self.array.shape, index)) is not None:
        return found[0](self, index=found[1])
    basic, waiting = split_index(self, index)
    if not waiting:
        return _viewed(self, basic)
    view = self if _is_trivial(basic) else _viewed(self, basic)
    template, tensors = as_template(view, waiting)
    return xp.index(view, *tensors, template=template)


def _plain(shape: tuple[int, ...], index: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """Return the op and arguments for the most common index, numbers in range and slices without steps; else None."""
    parts = index if type(index) is tuple else (index,)
    if not 0 < len(parts) <= len(shape):
        return None
    basic, last, op = [], 0, None
    for i, (p, n) in enumerate(zip(parts, shape)):
        if p.__class__ is int and -n <= p < n:
            last, op = i, op or xp.get_item
        elif type(p) is not slice or p.step is not None:
            return None
        elif p.start is None and p.stop is None:
            p = FULL
        else:
            last, op, p = i, xp.get_slice, _slice(p)
        basic.append(p)
    return op or xp.get_slice, tuple(basic[:last + 1])


def _is_trivial(basic: Any) -> bool:
    return all(p is FULL or type(p) is slice and p in (FULL, slice(None, None, 1)) for p in basic)


def _viewed(x: Any, basic: Any) -> Any:
    """The view that a basic index shows."""
    op = (xp.get_item if any(p.__class__ is int for p in basic) and all(p.__class__ is int or p == FULL for p in basic)
          else xp.get_slice)
    while basic and type(basic[-1]) is slice and basic[-1] == FULL:
        basic = basic[:-1]
    return op(x, index=basic)


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """x[index] = value, recorded."""
    number = isinstance(value, (int, float, complex, np.integer))
    if not number and not isinstance(value, TensorBase):
        raise TypeError(f"can't assign a {_type_name(value)} to a {self.type()}")
    if self._storage.dense is not None:
        raise TypeError("Cannot assign to a sparse tensor")
    if isinstance(index, bool):
        if not index:
            return
        index = None
    basic, waiting = split_index(self, index)
    view = self if _is_trivial(basic) and (waiting or not basic) else _viewed(self, basic)
    if number and len(waiting) == 1 and waiting[0].array.dtype == np.uint8:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
    if waiting:
        put(view, waiting, as_value(view, value) if number else without_ones(value))
    elif number:
        _inplace.check_writeable(view)
        view.fill_(value.item() if isinstance(value, np.integer) else value)
    else:
        _assign(view, value)


def as_value(target: Any, value: Any) -> Any:
    """A number as a 0-d tensor like the target; a tensor as it is."""
    if isinstance(value, TensorBase):
        return value
    backend = target._storage.beside()
    return fresh(number_array(converted(value, target.dtype), target.array.dtype, backend), backend)


def without_ones(value: Any) -> Any:
    """A value without its leading axes of length 1."""
    shape = value.array.shape
    lead = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return xp.reshape(value, shape=shape[lead:]) if lead else value


def _fits(shape: Any, target: Any) -> bool:
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(shape[::-1], target[::-1], strict=False))


def delitem(self: Tensor, index: Any) -> None:
    """Refuse `del x[index]`: a tensor has all of its elements."""
    raise TypeError("Tensor does not support deleting items")


def _assign(target: Any, value: Any) -> None:
    """Copy a value, broadcast, leading axes of length 1 left out, into a view."""
    if value.array.shape != target.array.shape:
        value = without_ones(value)
    a, b = target.array.shape, value.array.shape
    if not _fits(b, a):
        bad = next((len(a) - k for k in range(1, min(len(a), len(b)) + 1) if b[-k] not in (1, a[-k])), None)
        if bad is None or len(b) > len(a):
            raise RuntimeError(f"expand({value.type()}{{{list(b)}}}, size={list(a)}): the number of sizes provided "
                               f"({len(a)}) must be greater or equal to the number of dimensions in the tensor "
                               f"({len(b)})")
        raise misfit(f"The expanded size of the tensor ({a[bad]}) must match the existing size "
                           f"({b[len(b) - len(a) + bad]}) at non-singleton dimension {bad}.  Target sizes: {list(a)}.  "
                           f"Tensor sizes: {list(b)}")
    target.copy_(value)


def put(target: Any, waiting: Any, value: Any, accumulate: bool = False) -> None:
    """Write, or add, a value at index tensors, in place."""
    if value.array.size == 1 and (masks := [t for t in waiting if t is not None and is_hollow(t) and _is_mask(t)]):
        _inplace.overwrite(target, move(target, type(masks[0]._storage)))       # it fits, wherever the mask is true
        return
    if (value.array.size == 1 and not accumulate and is_unknown(waiting[-1]) and _is_mask(waiting[-1])
            and all(t is None for t in waiting[:-1])):
        _put_at_mask(target, waiting[-1], len(waiting) - 1, value)
        return
    if CLASSES and among((target, value, *waiting)):
        def index_put(x: Any, indices: Any, value: Any, accumulate: bool = False) -> Any:
            return apply(OPS["index_put"], x, value, *as_template(x, indices, inside=False)[1], template=as_template(
                x, indices, inside=False)[0], accumulate=accumulate)
        class_hooks.written(target, index_put, (list(waiting), value, *[True] * accumulate), {})
        return
    if mode.record and node_of(target) is not None:
        _inplace.check(target)
    template, tensors = as_template(target, waiting, inside=False)
    together = _together(tensors)
    if type(value._storage) is not type(target._storage):
        value = value.to(target.device)
        _inplace.check_room(target, value, name="index_put_")
    _inplace.check_room(target, *tensors, name="index_put_")
    shape = indexed_shape(target.array.shape, template, together)
    if not _fits(value.array.shape, shape):
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(value.array.shape)} cannot be broadcast to "
                           f"indexing result of shape {list(shape)}")
    chosen = [t for t in waiting if t is not None]
    if value.array.size != 1 or accumulate or len(chosen) > 1 or chosen[0].array.dtype.kind != "b":
        for other in (value, *chosen):
            if other._storage is target._storage:
                _inplace.check_overlap(target.array, other.array, apart=True)
    if value.array.dtype != target.array.dtype:
        # one value at a mask is cast
        if accumulate or value.array.size != 1 or len(chosen) > 1 or chosen[0].array.dtype.kind != "b":
            raise RuntimeError(f"Index put requires the source and destination dtypes match, got "
                               f"{SCALAR_TYPES[target.dtype.name]} for the destination and "
                               f"{SCALAR_TYPES[value.dtype.name]} for the source.")
        value = cast(value, target.dtype)
    if tensors and _check_places(target.array.shape, template, tensors):
        tensors = [xp.zeros_like(t) for t in tensors]
    if mode.record and (node_of(target) is not None or value._node is not None):
        _inplace.in_place(target, lambda x: apply(OPS["index_put"], x, value, *tensors, template=template,
                                                  accumulate=accumulate))
        return
    _inplace.check_mode(target)
    if _inplace.is_spread(target.array):
        _inplace.warn_of_spread("index_put", "indices] = tensor")
    else:
        _inplace.check_writeable(target)
    backend, array = type(target._storage), value.array
    places = [t.array for t in tensors]
    if backend.rank:      # operands of fewer levels
        array, *places = (backend.asarray(a) for a in (array, *places))
    where = filled(template, places)
    try:
        if accumulate and backend.rank:
            target.array.put(where, array, accumulate=True)
        elif accumulate and is_half(target.array):
            backend.assign(target.array, backend.xp.index_put(target.array, array, *places, template=template,
                                                              accumulate=True))
        elif accumulate:
            backend.xp.add.at(target.array, where, array)
        else:
            target.array[where] = array
    except NoValues:
        if not _inplace.is_dropped(target, array, *places):
            raise
        return
    target._storage.wrote()


def _put_at_mask(target: Any, mask: Any, axis: int, value: Any) -> None:
    """Write one value where a mask, starting at an axis, is true."""
    after = target.array.ndim - axis - mask.array.ndim
    mask, value = mask.reshape((*mask.shape, *(1,) * after)), cast(value, target.dtype).reshape(())
    _inplace.in_place(target, lambda x: apply(OPS["masked_fill"], x, value, mask))


Tensor.__getitem__ = getitem  # type: ignore[method-assign,attr-defined]
Tensor.__setitem__, Tensor.__delitem__ = setitem, delitem  # type: ignore[attr-defined]
