"""Precision of a training: 32 or 64 bits, or mixed with 16."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from .. import api as tg
from .batches import mapped

__all__ = ["Precision"]

NAMES = {
    "32": "32",
    "32-true": "32",
    "64": "64",
    "64-true": "64",
    "16": "16-mixed",
    "16-mixed": "16-mixed",
    "bf16": "bf16-mixed",
    "bf16-mixed": "bf16-mixed",
}


class Precision:
    """Applies "32", "64", "16-mixed" or "bf16-mixed" to a module, its batches, its steps and its gradients."""

    def __init__(self, name: str | int, device: Any) -> None:
        self.name = NAMES[str(name)]
        self.scaler: Any = None
        self._device, self._dtype = device.type, {"16-mixed": tg.float16, "bf16-mixed": tg.bfloat16}.get(self.name)
        if self.name == "16-mixed":
            from ..amp import GradScaler

            self.scaler = GradScaler(self._device)

    @staticmethod
    def checked(name: Any) -> str:
        """The name of a precision, or ValueError."""
        if str(name) not in NAMES:
            raise ValueError(f"precision is one of {', '.join(map(repr, dict.fromkeys(NAMES.values())))}, not {name!r}")
        return NAMES[str(name)]

    @property
    def mixed(self) -> bool:
        """True if steps run under autocast."""
        return self._dtype is not None

    def converted(self, module: Any) -> None:
        """Put the module's numbers into this precision."""
        if self.name == "64":
            module.double()

    def batch(self, batch: Any) -> Any:
        """The batch in this precision."""
        if self.name != "64":
            return batch
        return mapped(lambda x: x.double() if isinstance(x, tg.Tensor) and x.is_floating_point() else x, batch)

    def forward(self) -> Any:
        """The context in which a step computes."""
        if self._dtype is None:
            return nullcontext()
        from ..amp import autocast

        return autocast(self._device, dtype=self._dtype)
