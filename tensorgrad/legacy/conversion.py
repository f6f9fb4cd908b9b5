"""Convert legacy modules to present ones."""
from __future__ import annotations

from typing import Any

from .. import api as tg
from .. import nn as today
from . import nn

__all__ = ["convert"]

NAMES = {"weight": "weight", "bias": "bias", "running_mean": "running_mean", "running_var": "running_var"}


class Both(today.Module):
    """Applies modules to an input and concatenates their outputs along an axis: the present form of
    `legacy.nn.Concat`.
    """

    def __init__(self, dim: int, modules: Any) -> None:
        super().__init__()
        self.dim, self.branches = dim, today.ModuleList(modules)

    def forward(self, input: Any) -> Any:
        return tg.cat([branch(input) for branch in self.branches], self.dim)


def convert(module: Any) -> Any:
    """Return the present module that is equivalent to a legacy one, with copies of its weights, in the same mode.

    Errors: TypeError for a class without one; the message describes its computation.

    >>> import tensorgrad as torch
    >>> from tensorgrad.legacy import convert, nn
    >>> old = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> new, x = convert(old), torch.ones(1, 2)
    >>> new, torch.equal(new(x), old.forward(x))
    (Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    ), True)
    """
    made = _made(module)
    for name in NAMES:
        value = getattr(module, name, None)
        if isinstance(value, tg.Tensor) and getattr(made, name, None) is not None:
            with tg.no_grad():
                kept = getattr(made, name)
                kept.data = value.detach().clone().view(kept.shape)
    return made.train(module.train)


def _made(module: Any) -> Any:
    if isinstance(module, nn.Sequential):
        return today.Sequential(*map(convert, module.modules))
    if type(module) is nn.Concat:
        return Both(module.dimension, map(convert, module.modules))
    row = getattr(module, "row", None)
    if row is None or row.today is None:
        says = f": {row.says}" if row is not None else ""
        raise TypeError(f"legacy.nn.{type(module).__name__} has no module of today{says}")
    return row.today(module)
