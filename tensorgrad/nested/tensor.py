"""The class of nested tensors. https://pytorch.org/docs/stable/nested.html

A NestedTensor is the tensor of its components' values, joined along one axis, with their history; and two attributes
more: a Ragged, which says where each component is, and the number of the ragged axis. `operations` says what functions
do with it.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import api as tg
from .._tensor.torch_function import DisableTorchFunctionSubclass
from ..size import Size, new_size
from .ragged import Ragged

RULES: list[Callable[..., Any]] = []        # `operations` registers the function that answers for others
NO_SIZES = "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue."


class NestedTensor(tg.Tensor):
    """Tensors of different lengths in one: made by `torch.nested.nested_tensor` and its like.

    >>> import tensorgrad as torch
    >>> x = torch.nested.nested_tensor([torch.ones(1, 2), torch.zeros(3, 2)], layout=torch.jagged)
    >>> [part.shape[0] for part in (x + 1).unbind()]
    [1, 3]
    """

    _ragged: Ragged
    _ragged_idx: int
    _layout: Any

    def __new__(cls, values: Any, offsets: Any = None, *, lengths: Any = None, _ragged_idx: int = 1,
                **metadata: Any) -> Any:
        """Join values, offsets and lengths, as `torch.nested.nested_tensor_from_jagged` does."""
        return nested(values, Ragged(offsets, lengths), _ragged_idx)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with DisableTorchFunctionSubclass():
            return RULES[0](func, args, kwargs or {})

    # ── the shape ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def shape(self) -> Size:
        """The number of components, then the lengths of the axes, of which one is a NestedInt."""
        if self._layout is tg.strided:
            raise RuntimeError(NO_SIZES)
        return outer_shape(self)

    @property
    def ndim(self) -> int:
        """The number of axes, with that of the components."""
        return self.array.ndim + 1  # type: ignore[no-any-return]

    def dim(self) -> int:
        """The number of axes, with that of the components."""
        return self.ndim

    ndimension = dim
    is_nested = property(lambda self: True)
    layout = property(lambda self: self._layout)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one axis."""
        if dim is None:
            return self.shape
        shape = outer_shape(self)
        if not -len(shape) <= dim < len(shape):
            raise IndexError(f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], "
                             f"but got {dim})")
        found = shape[dim]
        if self._layout is tg.strided and found is self._ragged.size:
            if len({*self._ragged.counts.tolist()}) != 1:
                raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
            return int(self._ragged.counts[0])
        return found

    def numel(self) -> int:
        """The number of elements of all components."""
        rest = self.array.size // max(self.array.shape[self._ragged_idx - 1], 1)
        return int(self._ragged.counts.sum()) * rest

    nelement = numel

    def __len__(self) -> int:
        if self._layout is tg.strided:
            raise RuntimeError(NO_SIZES)
        return self._ragged.batch

    def is_contiguous(self, *args: Any, **kwargs: Any) -> bool:  # type: ignore[override]
        """Return True if the components follow each other without holes, row by row."""
        return self._ragged.lengths is None and self._ragged_idx == 1 and bool(self.array.flags.c_contiguous)

    # ── the parts ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def values(self) -> Any:
        """Return the values of all components, joined along the ragged axis, with their history."""
        found = plain(self)
        return found.flatten() if self._layout is tg.strided else found

    def offsets(self) -> Any:
        """Return where each component begins along the ragged axis, and where the last one ends."""
        self._check_jagged("offsets")
        return self._ragged.offsets

    def lengths(self) -> Any:
        """Return the lengths of the components, if there are holes between them; else None."""
        self._check_jagged("lengths")
        return self._ragged.lengths

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Any:
        """Return the components in one dense tensor. https://pytorch.org/docs → torch.nested.to_padded_tensor"""
        ragged, place = self._ragged, self._ragged_idx
        if ragged.lengths is not None:
            raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
        if output_size is None:
            return ragged.padded(plain(self), place - 1, padding)
        length = int(output_size[place])
        found = ragged.padded(plain(self), place - 1, padding, length)
        if self._layout is not tg.strided:
            return found
        if length < ragged.longest or any(n < size for n, size in zip(output_size, found.shape)):
            raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not "
                               "supported.")
        out = found.new_full(tuple(output_size), padding)
        out[tuple(map(slice, found.shape))] = found
        return out

    def _nested_tensor_size(self) -> Any:
        """Return the shape of each component, as rows of a tensor."""
        sizes = tg.tensor(self.array.shape, dtype=tg.int64).repeat(self._ragged.batch, 1)
        sizes[:, self._ragged_idx - 1] = self._ragged.index(self._ragged.counts)
        return sizes

    def _check_jagged(self, name: str) -> None:
        if self._layout is tg.strided:
            raise AttributeError(f"'Tensor' object has no attribute '{name}'")

    _max_seqlen = property(lambda self: self._ragged.longest)
    _min_seqlen = property(lambda self: int(self._ragged.counts.min(initial=self._ragged.longest)))
    _max_seqlen_tensor, _min_seqlen_tensor = (property(lambda self, name=name: tg.zeros(getattr(self, name), 0))
                                              for name in ("_max_seqlen", "_min_seqlen"))
    _lengths, _offsets, _values = (property(lambda self, name=name: getattr(self, name)())
                                   for name in ("lengths", "offsets", "values"))

    def __repr__(self) -> str:  # type: ignore[override]
        if self._layout is tg.strided:
            parts = [repr(part.requires_grad_(self.requires_grad)) for part in self.detach().unbind()]
            text = ",\n".join("  " + part.replace("\n", "\n  ") for part in parts)
            note = self._notes() if self.grad_fn is None else f", grad_fn=<{self.grad_fn.name()}>"
            return f"nested_tensor([\n{text}\n]{note})"
        return (f"NestedTensor(size={tuple(self.shape)}, offsets={self.offsets()}{self._notes()}, "
                f"contiguous={self._ragged.lengths is None})")

    def _notes(self) -> str:
        if self.grad_fn is not None:
            return f", grad_fn={self.grad_fn}"
        return ", requires_grad=True" if self.requires_grad else ""

    def __reduce_ex__(self, protocol: Any) -> Any:
        ragged = self._ragged
        return _rebuilt, (plain(self).detach(), ragged.offsets, ragged.lengths, self._ragged_idx, self._layout,
                          self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                                   "protocol at the moment.")
            copy = nested(plain(self).detach().clone(), self._ragged, self._ragged_idx, self._layout)
            memo[id(self)] = copy.requires_grad_(self.requires_grad)
        return memo[id(self)]


def _rebuilt(values: Any, offsets: Any, lengths: Any, ragged_idx: int, layout: Any, requires_grad: bool) -> Any:
    return nested(values, Ragged(offsets, lengths), ragged_idx, layout).requires_grad_(requires_grad)


def outer_shape(x: Any) -> Size:
    """The number of components and the lengths of their axes."""
    shape = list(x.array.shape)
    shape[x._ragged_idx - 1] = x._ragged.size
    return new_size(Size, (x._ragged.batch, *shape))


def plain(x: Any) -> Any:
    """The values as a tensor, with their history."""
    with DisableTorchFunctionSubclass():
        return x.as_subclass(tg.Tensor)


def nested(values: Any, ragged: Ragged, ragged_idx: int = 1, layout: Any = tg.jagged) -> Any:
    """A nested tensor that shares the memory and history of its values."""
    with DisableTorchFunctionSubclass():
        made = values.as_subclass(NestedTensor)
    made._ragged, made._ragged_idx, made._layout = ragged, ragged_idx, layout
    return made


def like(x: Any, values: Any, ragged_idx: int | None = None) -> Any:
    """A nested tensor with the components' lengths of x, and other values."""
    return nested(values, x._ragged, x._ragged_idx if ragged_idx is None else ragged_idx, x._layout)


def is_nested(x: Any) -> bool:
    return isinstance(x, NestedTensor)
