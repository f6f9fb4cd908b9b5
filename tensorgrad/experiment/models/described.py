"""Networks described in the configuration, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import nn
from . import register


@register("symbolic")
@register("layers")
class Described(nn.Module):
    """The network that a spec of `tensorgrad.layers` describes, as `layers.to_yaml` writes it, models of `symbolic`
    included.

    input: the key under which a batch that is a dictionary holds the network's input. SpecError (a ValueError) names
    the path of a mistake.

    >>> import tensorgrad as torch
    >>> spec = {"type": "Sequential", "layers": [{"type": "Linear", "null": [3]}, {"type": "ReLU"}]}
    >>> Described(spec)(torch.ones(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(self, spec: dict, input: str = "img") -> None:
        super().__init__()
        from ...layers.spec import build

        self.model, self.input = build(spec), input

    def forward(self, batch: Any) -> Any:
        """Return the output for a tensor, or for a dictionary that contains it."""
        return self.model(batch[self.input] if isinstance(batch, Mapping) else batch)
