"""The class of nested tensors. https://pytorch.org/docs/stable/nested.html

A NestedTensor is the tensor of its components' values, joined along one axis, with their history, and two attributes: a
Ragged, the offsets of the components, and the number of the ragged axis. `operations` has the rules of functions.
"""
from __future__ import annotations

from typing import Any

from .. import api as tg
from .._tensor.torch_function import DisableTorchFunctionSubclass
from ..core.dispatch import apply as apply_op
from ..core.tape import Origin
from ..size import Size, new_size
from .base import Nested, plain
from .ragged import Ragged, shared


class NestedTensor(Nested):
    """Tensors of different lengths in one: made by `torch.nested.nested_tensor` and its like.

    >>> import tensorgrad as torch
    >>> x = torch.nested.nested_tensor([torch.ones(1, 2), torch.zeros(3, 2)], layout=torch.jagged)
    >>> [part.shape[0] for part in (x + 1).unbind()]
    [1, 3]
    """

    rules = []
    _ragged: Ragged
    _ragged_idx: int

    def __new__(cls, values: Any, offsets: Any = None, *, lengths: Any = None, _ragged_idx: int = 1,
                **metadata: Any) -> Any:
        """Join values, offsets and lengths, as `torch.nested.nested_tensor_from_jagged` does."""
        return view_of(values, shared(offsets, lengths), _ragged_idx)

    # ── the shape ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def shape(self) -> Size:
        """The number of components, then the lengths of the axes, of which one is a NestedInt."""
        return outer_shape(self)

    @property
    def ndim(self) -> int:
        """The number of axes, with that of the components."""
        return self.array.ndim + 1  # type: ignore[no-any-return]

    def dim(self) -> int:
        """The number of axes, with that of the components."""
        return self.ndim

    ndimension = dim
    layout = property(lambda self: tg.jagged)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one axis."""
        if dim is None:
            return self.shape
        shape = outer_shape(self)
        if not -len(shape) <= dim < len(shape):
            raise IndexError(f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], "
                             f"but got {dim})")
        return shape[dim]

    def numel(self) -> int:
        """The number of elements of all components."""
        rest = self.array.size // max(self.array.shape[self._ragged_idx - 1], 1)
        return int(self._ragged.counts.sum()) * rest

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """The steps in memory along the axes, in elements; a ragged length is a factor of the first one."""
        steps = plain(self).stride()
        found = (self._ragged.size * steps[self._ragged_idx - 1], *steps)
        return found if dim is None else found[dim]

    def __len__(self) -> int:
        return self._ragged.batch

    def is_contiguous(self, *args: Any, **kwargs: Any) -> bool:  # type: ignore[override]
        """Return True if the components follow each other without holes, row by row."""
        return self._ragged.lengths is None and bool(self.array.flags.c_contiguous)

    # ── the parts ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def values(self) -> Any:
        """Return the values of all components, joined along the ragged axis, with their history."""
        return plain(self)

    def offsets(self) -> Any:
        """Return where each component begins along the ragged axis, and where the last one ends."""
        return self._ragged.offsets

    def lengths(self) -> Any:
        """Return the lengths of the components, if there are holes between them; else None."""
        return self._ragged.lengths

    def _view_func(self, new_base: Any) -> Any:
        """Return this view of another tensor than its base."""
        return like(self, replayed(self, new_base))

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Any:
        """Return the components in one dense tensor. https://pytorch.org/docs → torch.nested.to_padded_tensor"""
        ragged, place = self._ragged, self._ragged_idx
        if ragged.lengths is not None:
            raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
        if output_size is None:
            return ragged.padded(plain(self), place - 1, padding)
        length = int(output_size[place])
        return ragged.padded(plain(self), place - 1, padding, length)

    def _nested_tensor_size(self) -> Any:
        """Return the shape of each component, as rows of a tensor."""
        sizes = tg.tensor(self.array.shape, dtype=tg.int64).repeat(self._ragged.batch, 1)
        sizes[:, self._ragged_idx - 1] = self._ragged.index(self._ragged.counts)
        return sizes

    @property
    def _max_seqlen(self) -> int:
        """The length of the longest component, which is known from now on."""
        return self._ragged.known.setdefault("max_seqlen", self._ragged.longest)

    @property
    def _min_seqlen(self) -> int:
        """The length of the shortest component, which is known from now on."""
        return self._ragged.known.setdefault("min_seqlen", self._ragged.shortest)

    def _get_max_seqlen(self) -> int:
        return self._max_seqlen

    def _get_min_seqlen(self) -> int:
        return self._min_seqlen

    _max_seqlen_tensor, _min_seqlen_tensor = (property(lambda self, name=name: tg.zeros(getattr(self, name), 0))
                                              for name in ("_max_seqlen", "_min_seqlen"))
    _metadata_cache = property(lambda self: {key: tg.zeros(n, 0) for key, n in self._ragged.known.items()})
    _lengths, _offsets, _values = (property(lambda self, name=name: getattr(self, name)())
                                   for name in ("lengths", "offsets", "values"))

    def __repr__(self) -> str:  # type: ignore[override]
        return (f"NestedTensor(size={tuple(self.shape)}, offsets={self.offsets()}{self._notes()}, "
                f"contiguous={self.is_contiguous()})")

    def _notes(self) -> str:
        if self.grad_fn is not None:
            return f", grad_fn={self.grad_fn}"
        return ", requires_grad=True" if self.requires_grad else ""

    def __reduce_ex__(self, protocol: Any) -> Any:
        ragged = self._ragged
        return _rebuilt, (plain(self).detach(), ragged.offsets, ragged.lengths, self._ragged_idx, self.requires_grad)

    def _of_gradient(self, values: Any) -> Any:
        return nested(values, self._ragged, self._ragged_idx)

    def __copy__(self) -> Any:
        return like(self, plain(self).detach()).requires_grad_(self.requires_grad)


def _rebuilt(values: Any, offsets: Any, lengths: Any, ragged_idx: int, requires_grad: bool) -> Any:
    return nested(values, shared(offsets, lengths), ragged_idx).requires_grad_(requires_grad)


def outer_shape(x: Any) -> Size:
    """Return the number of components and the lengths of their axes."""
    shape = list(x.array.shape)
    shape[x._ragged_idx - 1] = x._ragged.size
    return new_size(Size, (x._ragged.batch, *shape))


def nested(values: Any, ragged: Ragged, ragged_idx: int = 1) -> Any:
    """Return a nested tensor on values, with their memory and history."""
    with DisableTorchFunctionSubclass():
        made = values.as_subclass(NestedTensor)
    made.origin = values.origin                         # a view stays a view
    made._ragged, made._ragged_idx = ragged, ragged_idx
    return made


def replayed(x: Any, base: Any) -> Any:
    """Return the values as the same view of another base."""
    if x.origin is None:
        return base
    return apply_op(x.origin.op, replayed(x.origin.parent, base), *x.origin.args, **x.origin.params)


def view_of(values: Any, ragged: Ragged, ragged_idx: int = 1) -> Any:
    """Return a nested tensor that is a view of its values."""
    return nested(values.view(values.shape), ragged, ragged_idx)


def like(x: Any, values: Any, ragged_idx: int | None = None) -> Any:
    """Return a nested tensor with the lengths of x and other values; a view of x, if the values are a view of its
    values.
    """
    made, origin = nested(values, x._ragged, x._ragged_idx if ragged_idx is None else ragged_idx), values.origin
    if origin is not None and x.origin is None and origin.parent.array is x.array:
        made.origin = Origin(x, origin.op, origin.args, origin.params, origin.kind)
    return made


def is_nested(x: Any) -> bool:
    return isinstance(x, NestedTensor)
