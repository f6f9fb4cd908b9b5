"""Experiments: from one configuration to a run that is logged, resumed and compared with others.

Each part serves any training loop: `Run` keeps metrics, `Checkpointer` saves and restores everything a loop needs to
resume, registries and `config` turn a YAML file into objects, `Trainer` runs the loop of a `Module`. `python -m
tensorgrad.experiment` starts new projects, runs, sweeps and shows them.

Names are imported on first access, so that importing this package costs nothing.
"""
from __future__ import annotations

import importlib
from typing import Any

from ..messages.missing_names import MissingName as _MissingName

_MODULES = ("callbacks", "checking", "config", "datasets", "losses", "models", "schedules", "show", "streams", "utils",
            "wrappers")
_HOMES = {
    "Run": "run", "init": "shim", "log": "shim", "finish": "shim",
    "Checkpointer": "checkpoint",
    "Registry": "registry", "UnknownName": "registry", "ConfigError": "config", "Mistake": "config",
    "Module": "module", "LightningModule": "module", "DataModule": "datamodule", "LightningDataModule": "datamodule",
    "Trainer": "trainer", "rank_zero_only": "parallel", "seed_everything": "seeding",
    "Callback": "callbacks", "ModelCheckpoint": "callbacks", "EarlyStopping": "callbacks",
    "BaseWrapper": "wrappers", "GANWrapper": "wrappers",
}
__all__ = [*_MODULES, *_HOMES]      # pyright: ignore


def __getattr__(name: str) -> Any:
    """Import the submodule of this name, or the submodule that defines it."""
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOMES:
        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value
    raise _MissingName(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
