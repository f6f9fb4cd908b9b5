"""Losses by name. A loss is called as `loss(pred, batch, **kwargs)` and returns a dictionary with `loss` and any named
terms, each of which is logged.

>>> import tensorgrad as torch
>>> from tensorgrad.experiment import losses
>>> terms = losses.make({"name": "mnist_ce"})(torch.eye(10)[:2] * 9, {"label": torch.tensor([0, 3])})
>>> sorted(terms), terms["accuracy"].item()
(['accuracy', 'loss'], 0.5)
"""

from __future__ import annotations

from ..registry import Registry

registry = Registry("loss", f"{__name__}.classification", f"{__name__}.regression")
register, make, names = registry.register, registry.make, registry.names

__all__ = ["make", "names", "register", "registry"]
