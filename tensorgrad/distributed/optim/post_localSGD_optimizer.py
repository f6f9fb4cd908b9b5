"""An optimizer that averages the parameters of all processes now and then, instead of their gradients at every step."""
from __future__ import annotations

import warnings
from typing import Any

from ...optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Step with `optim`, then let `averager` average the parameters of all processes, if it is their turn.

    https://pytorch.org/docs → torch.distributed.optim.PostLocalSGDOptimizer

    `averager.average_parameters(params)` counts the steps and decides: `PeriodicModelAverager(period, warmup_steps)`
    averages every `period` steps.
    """

    def __init__(self, optim: Optimizer, averager: Any) -> None:
        self.optim, self.averager, self.defaults = optim, averager, optim.defaults
        self.param_groups = optim.param_groups
        self._prepare_hooks()

    @property
    def state(self) -> Any:                             # type: ignore[override]
        """Return the state of the inner optimizer."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """Return the inner optimizer's state, and under "step" how many steps the averager has counted."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; without "step" the averager begins anew, with a warning."""
        self.optim.load_state_dict({name: value for name, value in state_dict.items() if name != "step"})
        self.param_groups = self.optim.param_groups
        if "step" not in state_dict:
            warnings.warn("Loaded state dict does not contain a step counter for an averager. Setting step counter to "
                          "0.", stacklevel=2)
        self.averager.step = state_dict.get("step", 0)

    def step(self, closure: Any = None) -> Any:
        """Update the parameters once, then average them if it is time."""
        loss = self.optim.step() if closure is None else self.optim.step(closure)
        self.averager.average_parameters(params=self.param_groups)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters to the inner optimizer."""
        self.optim.add_param_group(param_group)
