"""Join several axes into one, and split one into several."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .utils import Functional, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["Flatten", "Unflatten"]


class Flatten(Functional):
    """Joins adjacent axes, by default all but the first (torch.nn.Flatten).

    Parameters:
        start_dim: int: 1
        end_dim: int: -1
    Input: (*)
    Output: (*), with one axis in the place of start_dim to end_dim
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Flatten()(torch.ones(32, 1, 5, 5)).shape
    torch.Size([32, 25])
    """

    __init__ = settings(start_dim=1, end_dim=-1)

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Functional):
    """Splits an axis into several (torch.nn.Unflatten).

    Parameters:
        dim: int: required
        unflattened_size: tuple: required, at most one -1, which is inferred
    Input: (*)
    Output: (*), with axes of these sizes in the place of dim
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Unflatten(1, (2, -1))(torch.ones(3, 50)).shape
    torch.Size([3, 2, 25])
    """

    __init__ = settings("dim", "unflattened_size")

    def _keep(self, dim, unflattened_size):
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(f"unflattened_size must be a tuple of ints, "
                            f"but found type {type(unflattened_size).__name__}")
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(f"unflattened_size must be tuple of ints, "
                                f"but found element of type {type(size).__name__} at pos {i}")
        super()._keep(dim=dim, unflattened_size=unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)
