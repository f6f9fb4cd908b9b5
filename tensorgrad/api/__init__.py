"""PyTorch's spelling: every function of the root package, and the methods of Tensor.

Each file has one family. Its functions define signature, checks and docstring; `_register.public` attaches all their
forms.
"""
from importlib import import_module as _import_module
from typing import Any

from .. import dtype as _dtypes
from .._tensor import Tensor
from .._tensor.printing import get_printoptions, printoptions, set_printoptions
from ..core.casting import result_type
from ..core.mode import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from ..device import device, get_default_device, set_default_device
from ..dtype import (
    can_cast,
    dtype,
    finfo,
    get_default_dtype,
    iinfo,
    layout,
    memory_format,
    promote_types,
    set_default_dtype,
)
from ..generator import Generator, default_generator
from ..nominal_dtypes import NOMINAL
from ..runtime.threads import get_num_interop_threads, get_num_threads, set_num_interop_threads, set_num_threads
from ..size import Size
from ._register import FUNCTIONS, explain_methods

FAMILIES = ("creation", "sequences", "conversion", "pointwise", "math", "comparison", "matrix", "einsum",
            "factorizations", "elimination", "solving", "linalg", "special", "operators", "reduction", "norms",
            "statistics", "cumulative", "sorting", "shape", "splitting", "joining", "indexing", "masks", "copies",
            "random", "lowrank", "stft", "windows", "linear", "activation", "convolution", "pooling", "normalization",
            "distance", "shuffle", "sampling", "segments", "loss", "sparse", "sparse_methods", "sparse_conversions",
            "sparse_products", "integer_products", "miscellaneous", "removed", "first_version")
for _family in FAMILIES:
    _import_module(f"{__name__}.{_family}")
explain_methods()

DTYPES: dict[str, Any] = {name: value for name, value in vars(_dtypes).items()
                          if isinstance(value, (dtype, layout, memory_format))} | NOMINAL | {
                              "bit": NOMINAL["uint1"]}
globals().update(FUNCTIONS)
globals().update(DTYPES)


def __getattr__(name: str) -> Any:
    """Import a submodule with further namespaces on first access."""
    if name in ("fft", "linalg", "special", "signal"):
        return _import_module(f"tensorgrad.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["get_num_interop_threads", "get_num_threads", "set_num_interop_threads", "set_num_threads",
           "FUNCTIONS", "Generator", "Size", "Tensor", "can_cast", "default_generator", "device", "dtype",
           "enable_grad", "finfo", "get_default_device", "get_default_dtype",
           "get_printoptions", "iinfo", "inference_mode", "is_anomaly_check_nan_enabled", "is_anomaly_enabled",
           "is_grad_enabled", "is_inference_mode_enabled", "layout", "memory_format", "no_grad",
           "printoptions", "promote_types", "result_type", "set_default_device", "set_default_dtype",
           "set_grad_enabled", "set_printoptions",
           *FUNCTIONS, *DTYPES]
