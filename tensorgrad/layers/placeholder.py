"""Placeholders: the inputs of networks that are written as functions, and values computed from them."""
from __future__ import annotations

from typing import Any

from ..symbolic.calls import Method
from ..symbolic.data import SymbolicTensor, index_of_call, join
from ..symbolic.inputs import unknown_tensor

__all__ = ["Placeholder"]


class Placeholder(SymbolicTensor):
    """A tensor that is not computed yet. Its shape, including the batch, is known; sizes may be None.

    Layers, operators, methods and functions of the package return further placeholders. Placeholders are nodes of
    `tensorgrad.symbolic`: a SymbolicModel takes placeholders, and a Functional takes nodes of symbolic.Input.

    >>> import tensorgrad as torch
    >>> x = torch.layers.Placeholder((8, 3, 32, 32))
    >>> x, torch.layers.Conv2d(16, 3)(x), (2 * x + 1).flatten()
    (P(8, 3, 32, 32), P(8, 16, 30, 30), P(8, 3072))

    `flatten()` keeps the batch, as `layers.Flatten` does: `x.flatten(0)` corresponds to a tensor's `flatten()`.
    """

    __slots__ = ()

    def __new__(cls, shape: Any, dtype: Any = None) -> Any:
        sizes = tuple(shape) if isinstance(shape, (tuple, list)) else ()
        assert sizes and all(n is None or type(n) is int and n > 0 for n in sizes), \
            f"the shape of a Placeholder has positive sizes, or None where they are not known: {shape!r}"
        return unknown_tensor(cls, sizes, dtype)

    @property
    def inbound_layer(self) -> Any:
        """The layer or function that computes it; None for an input."""
        return self.layer

    @property
    def node_index(self) -> int | None:
        """The index among the live results of its layer, by age; None for an input."""
        return index_of_call(self)

    @property
    def tensor(self) -> None:
        """None: a placeholder never holds a tensor, also while a network runs."""
        return None

    def flatten(self, start_dim: int = 1, end_dim: int = -1) -> Any:
        """Join all axes from `start_dim` on; the first axis is the batch. IndexError if there is no such axis."""
        return join(Method("flatten"), self, start_dim, end_dim)

    def __repr__(self) -> str:
        return f"P({', '.join(map(str, self.shape))})"
