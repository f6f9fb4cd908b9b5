"""Nested tensors of the layout torch.strided: components of any sizes. https://pytorch.org/docs/stable/nested.html

A StridedNested is the one-dimensional tensor of a buffer, with its history, and three arrays: the sizes, the strides
and the offset of each component in the buffer. Components may be views that overlap or leave gaps, such as those of a
transposed nested tensor or of its chunks. `strided_rules` says what functions do with it.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import api as tg
from .._tensor.torch_function import DisableTorchFunctionSubclass
from ..core.tape import Origin
from .base import Nested
from .base import plain as buffer

NO_SIZES = "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue."
NO_STRIDES = NO_SIZES.replace("sizes", "strides")
Numbers = np.ndarray[Any, Any]


class StridedNested(Nested):
    """Tensors of different sizes in one: made by `torch.nested.nested_tensor` and its like.

    >>> import tensorgrad as torch
    >>> x = torch.nested.nested_tensor([torch.ones(1, 2), torch.zeros(3, 1)])
    >>> [tuple(part.shape) for part in (x + 1).unbind()]
    [(1, 2), (3, 1)]
    """

    rules = []
    _sizes: Numbers
    _steps: Numbers
    _starts: Numbers

    # ── the shape ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def shape(self) -> Any:
        """No shape: components differ in their sizes."""
        raise RuntimeError(NO_SIZES)

    ndim = property(lambda self: self._sizes.shape[1] + 1)
    layout = property(lambda self: tg.strided)

    def dim(self) -> int:
        """The number of axes, with that of the components."""
        return int(self.ndim)

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        """The number of components, or the length of an axis in which all components agree."""
        if dim is None:
            raise RuntimeError(NO_SIZES)
        axis = axis_of(self, dim)
        if axis == 0:
            return len(self._sizes)
        lengths = set(self._sizes[:, axis - 1].tolist())
        if len(lengths) != 1:
            raise RuntimeError(f"Given dimension {axis} is irregular and does not have a size.")
        return lengths.pop()

    def stride(self, dim: int | None = None) -> Any:
        """No strides: components differ in them."""
        raise RuntimeError(NO_STRIDES)

    def numel(self) -> int:
        """The number of elements of all components."""
        return int(counts(self._sizes).sum())

    nelement = numel

    def __len__(self) -> int:
        raise RuntimeError(NO_SIZES)

    def is_contiguous(self, *args: Any, **kwargs: Any) -> bool:  # type: ignore[override]
        """Return True if the components follow each other in the buffer, row by row."""
        steps, starts = rows(self._sizes)
        return bool((self._steps == steps).all() and (self._starts == starts).all())

    # ── the parts ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def values(self) -> Any:
        """Return the buffer, with its history."""
        return buffer(self)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Any:
        """Return the components in one dense tensor. https://pytorch.org/docs → torch.nested.to_padded_tensor"""
        if not self.is_contiguous():
            raise RuntimeError("for now to_padded_tensor only supports contiguous nested tensor")
        sizes, flat = self._sizes, content(self)
        if not len(sizes):
            return flat.clone()
        if not flat.shape[0]:
            raise RuntimeError("to_padded_tensor: at least one constituent tensor should have non-zero numel")
        shape = (len(sizes), *sizes.max(axis=0).tolist())
        if output_size is not None:
            wanted = tuple(map(int, output_size))
            if len(wanted) != len(shape):
                raise RuntimeError("Length of output_size does not match NestedTensor dims. Broadcasting is not "
                                   "supported.")
            if any(n < least for n, least in zip(wanted[1:], shape[1:])):
                raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not "
                                   "supported.")
            shape = (len(sizes), *wanted[1:])
        places = tg.from_numpy(padded_places(sizes, shape)).to(device=flat.device)
        out = flat.new_full((tg.Size(shape).numel(),), padding)
        return out.index_copy(0, places, flat).reshape(shape)

    def _nested_tensor_size(self) -> Any:
        """Return the sizes of each component, as rows of a tensor."""
        return tg.from_numpy(self._sizes.copy())

    def _nested_tensor_strides(self) -> Any:
        """Return the steps of each component in the buffer, as rows of a tensor."""
        return tg.from_numpy(self._steps.copy())

    def _nested_tensor_storage_offsets(self) -> Any:
        """Return where each component begins in the buffer."""
        return tg.from_numpy(self._starts.copy())

    def __repr__(self) -> str:  # type: ignore[override]
        parts = [repr(part.requires_grad_(self.requires_grad)) for part in self.detach().unbind()]
        text = ",\n".join("  " + part.replace("\n", "\n  ") for part in parts)
        note = ", requires_grad=True" if self.requires_grad else ""
        note = note if self.grad_fn is None else f", grad_fn=<{self.grad_fn.name()}>"
        return f"nested_tensor([\n{text}\n]{note})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .._utils import _rebuild_nested_tensor
        state = (buffer(self).detach().requires_grad_(self.requires_grad), self._nested_tensor_size(),
                 self._nested_tensor_strides(), self._nested_tensor_storage_offsets())
        return _rebuild_nested_tensor, state

    def _of_gradient(self, flat: Any) -> Any:
        return alike(self, flat)

    def __copy__(self) -> Any:
        return alike(self, buffer(self).detach()).requires_grad_(self.requires_grad)


def counts(sizes: Numbers) -> Numbers:
    """The number of elements of each component."""
    return sizes.prod(axis=1)


def rows(sizes: Numbers) -> tuple[Numbers, Numbers]:
    """Return the strides and offsets of contiguous components, one after another."""
    steps = np.ones_like(sizes)
    steps[:, :-1] = sizes[:, :0:-1].cumprod(axis=1)[:, ::-1]
    ends = counts(sizes).cumsum()
    return steps, np.concatenate([[0], ends])[:-1].astype("int64")


def padded_places(sizes: Numbers, shape: Any) -> Numbers:
    """Return the index of each element, in the components' order, in a flattened dense tensor of this shape."""
    sizes = np.concatenate([np.ones((len(sizes), 1), dtype="int64"), sizes], axis=1)
    found, dense = np.arange(len(sizes)) * int(np.prod(shape[1:])), np.asarray(shape)
    for axis in range(1, sizes.shape[1]):       # expand each index by one more axis
        lengths = np.repeat(sizes[:, axis], sizes[:, :axis].prod(axis=1))
        within = np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)
        found = np.repeat(found, lengths) + within * int(dense[axis + 1:].prod())
    return found


def axis_of(x: Any, dim: int, extra: int = 0) -> int:
    """Return the number of an axis, counted from the front; IndexError if it is out of range."""
    ndim = x.ndim + extra
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return int(dim) % int(ndim)


def content(x: Any) -> Any:
    """Return the values of a contiguous nested tensor: the buffer up to the end of the last component."""
    flat, count = buffer(x), x.numel()
    return flat if flat.array.size == count else flat[:count]


def strided(flat: Any, sizes: Numbers, steps: Numbers | None = None, starts: Numbers | None = None) -> Any:
    """Return a nested tensor on a buffer, with its history: contiguous, unless strides and offsets are given."""
    with DisableTorchFunctionSubclass():
        made = flat.as_subclass(StridedNested)
    made.origin, made._sizes = flat.origin, sizes
    own = rows(sizes)
    made._steps, made._starts = own[0] if steps is None else steps, own[1] if starts is None else starts
    return made


def view_of(x: Any, sizes: Numbers, steps: Numbers, starts: Numbers) -> Any:
    """Return a view of a nested tensor: other components in its buffer."""
    flat = buffer(x)
    made = strided(flat.view(flat.shape), sizes, steps, starts)
    origin = made.origin
    if x.origin is None:
        made.origin = Origin(x, origin.op, origin.args, origin.params, origin.kind)
    return made


def alike(x: Any, flat: Any) -> Any:
    """Return a nested tensor with the components of x in another buffer."""
    return strided(flat, x._sizes, x._steps, x._starts)


def joined(parts: Any, **options: Any) -> Any:
    """Return the nested tensor of some components, with their history; the options are for a tensor of none."""
    if not parts:
        return strided(tg.zeros(0, **options), np.zeros((0, 0), dtype="int64"))
    sizes = np.asarray([part.shape for part in parts], dtype="int64").reshape(len(parts), parts[0].ndim)
    return strided(tg.cat([part.reshape(-1) for part in parts]), sizes)


def components(x: Any) -> list[Any]:
    """Return the components, as views of the buffer."""
    sizes = x._sizes
    if x.is_contiguous():
        parts = content(x).split(counts(sizes).tolist()) if len(sizes) else []
        return [part.view(size) for part, size in zip(parts, sizes.tolist(), strict=True)]
    return [component(x, number) for number in range(len(sizes))]


def component(x: Any, number: int) -> Any:
    """Return a component, as a view of the buffer."""
    size, step, start = (list(part[number].tolist()) if part.ndim == 2 else int(part[number])
                         for part in (x._sizes, x._steps, x._starts))
    span = 1 + sum((n - 1) * s for n, s in zip(size, step)) if all(size) else 0  # type: ignore[arg-type]
    return buffer(x)[start:start + span].as_strided(size, step)


def is_strided(x: Any) -> bool:
    return isinstance(x, StridedNested)
