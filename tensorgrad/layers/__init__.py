"""Layers that infer the sizes of their input from the first call, and tell the shape of their output before it;
networks as functions of placeholders.

`Module` adds common helpers to modules, `device_scope` sets the device and precision in which they run. Helpers for
shapes and nested structures are in `layers.utils`.
"""
from typing import Any

from . import (
    activation,
    attention,
    containers,
    convolution,
    dense,
    dropout,
    embedding,
    functional,
    initializers,
    merge,
    module,
    normalization,
    padding,
    parallel,
    placeholder,
    pooling,
    recurrent,
    resampling,
    schedule,
    scope,
    shaping,
    structures,
    tensors,
    utils,
)
from .base import Layer
from .spec import SpecError, from_json, from_yaml, to_json, to_yaml
from .structures import StructureMismatch

_PARTS = (activation, attention, containers, convolution, dense, dropout, embedding, functional, merge, module,
          normalization, padding, parallel, placeholder, pooling, recurrent, resampling, shaping, scope, initializers,
          schedule, tensors)
__all__ = ["DistributedManager", "Layer", "SpecError", "StructureMismatch", "from_json", "from_yaml", "structures",
           "to_json", "to_yaml", "utils",
           *(name for part in _PARTS for name in part.__all__)]
globals().update((name, getattr(part, name)) for part in _PARTS for name in part.__all__)


def __getattr__(name: str) -> Any:
    if name == "DistributedManager":        # imported lazily: few programs need processes and command lines
        from .manager import DistributedManager
        return DistributedManager
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
