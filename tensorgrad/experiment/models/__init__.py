"""Models by name: `@register(name)` enters a class, `make(spec)` builds what a spec `{name, args}` describes. Training
wrappers share this registry.

>>> import tensorgrad as torch
>>> from tensorgrad.experiment import models
>>> spec = {"name": "mlp", "args": {"in_dim": 4, "out_dim": 3, "hidden_list": [5]}}
>>> models.make(spec, args={"out_dim": 2})(torch.ones(7, 4)).shape
torch.Size([7, 2])
"""

from __future__ import annotations

from typing import Any

from ... import nn
from ..registry import Registry

_WRAPPERS = f"{__name__.rpartition('.')[0]}.wrappers"
registry = Registry(
    "model",
    *(f"{__name__}.{module}" for module in ("mlp", "resnet", "described")),
    f"{_WRAPPERS}.base",
    f"{_WRAPPERS}.gan",
)
register, make, names = registry.register, registry.make, registry.names

__all__ = ["freeze", "make", "make_lr_scheduler", "names", "register", "registry"]


def freeze(model: nn.Module) -> None:
    """Let no parameter of a model require a gradient.

    >>> import tensorgrad as torch
    >>> layer = torch.nn.Linear(2, 3)
    >>> freeze(layer)
    >>> any(p.requires_grad for p in layer.parameters())
    False
    """
    for parameter in model.parameters():
        parameter.requires_grad_(False)


def __getattr__(name: str) -> Any:
    """Import `make_lr_scheduler` from `schedules` on access."""
    if name == "make_lr_scheduler":
        from ..schedules import make_lr_scheduler

        return make_lr_scheduler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
