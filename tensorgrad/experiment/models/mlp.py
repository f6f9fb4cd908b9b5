"""A multi-layer perceptron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import nn
from . import register


@register("mlp")
class MLP(nn.Module):
    """Linear layers with ReLU between them, applied to the last dimension: (*, in_dim) → (*, out_dim).

    hidden_list: the sizes of the layers between; input: the key under which a batch that is a dictionary holds the
    input.

    >>> import tensorgrad as torch
    >>> MLP(4, 3, [5])(torch.ones(2, 5, 4)).shape
    torch.Size([2, 5, 3])
    """

    def __init__(self, in_dim: int, out_dim: int, hidden_list: list[int], input: str = "img") -> None:
        super().__init__()
        sizes = [in_dim, *hidden_list, out_dim]
        layers: list[nn.Module] = []
        for before, after in zip(sizes, sizes[1:]):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])
        self.input = input

    def forward(self, batch: Any) -> Any:
        """Return the output for a tensor, or for a dictionary that contains it."""
        return self.layers(batch[self.input] if isinstance(batch, Mapping) else batch)
