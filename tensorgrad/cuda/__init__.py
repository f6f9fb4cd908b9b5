"""CUDA devices: CuPy's, or simulated ones (TENSORGRAD_SIMULATED_CUDA=2). https://pytorch.org/docs/stable/cuda.html

Without CuPy, a driver or a GPU, `is_available()` is False and functions that need a device raise an error that says
what is missing.

>>> import tensorgrad as torch
>>> torch.cuda.is_available() == (torch.cuda.device_count() > 0)
True
"""
from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from ..storage.out_of_memory import OutOfMemoryError
from . import devices as _devices
from . import memory, nvtx, random, streams
from .devices import *  # noqa: F403
from .devices import _CudaDeviceProperties as _CudaDeviceProperties
from .memory import *  # noqa: F403
from .random import *  # noqa: F403
from .streams import *  # noqa: F403

__all__ = ["OutOfMemoryError", "has_half", "has_magma", "memory", "nvtx", "random", "streams", "transfers",
           *_devices.__all__, *memory.__all__, *random.__all__, *streams.__all__]

has_half, has_magma = True, False
GRAPHS = ("CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables")


def __getattr__(name: str) -> Any:
    """Make tensor types, generators and submodules when they are first accessed."""
    if name in ("amp", "comm"):
        return _import_module(f"{__name__}.{name}")
    if name in GRAPHS:
        return getattr(_import_module(f"{__name__}.graphs"), name)
    if name == "_initialized":
        return _devices.is_initialized()
    if name == "default_generators":
        return tuple(random._generator(i) for i in range(_devices.device_count()))
    if name.endswith("Tensor"):
        from ..api.tensor_types import typed
        if (found := typed(f"torch.cuda.{name}")) is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from ..api.tensor_types import DTYPES
    return sorted({*globals(), *DTYPES, *GRAPHS, "amp", "comm", "default_generators"})


def transfers() -> dict[str, int]:
    """Return how many copies the simulated devices have made: to a device, to the host, between devices."""
    from ..storage import simulated
    return dict(simulated.transfers)
