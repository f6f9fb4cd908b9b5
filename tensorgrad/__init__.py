"""tensorgrad: an autograd engine with PyTorch's API, on NumPy and CuPy.

>>> import tensorgrad as torch
>>> x = torch.tensor([1., 2., 3.], requires_grad=True)
>>> (x ** 2).sum().backward()
>>> x.grad
tensor([2., 4., 6.])
"""
from importlib import import_module as _import_module
from typing import Any as _Any

from . import api as _api
from . import autograd
from . import kernels as _kernels
from ._overriding import namespaced as _namespaced
from .api import *  # noqa: F403

__version__ = "0.1.0"
globals().update(_namespaced(_api.FUNCTIONS, __name__))

_LAZY = ("nn", "optim", "utils", "linalg", "fft", "special", "signal", "func", "distributions", "cuda", "random", "const", "viz", "backends", "storage", "ops",
         "kernels", "dispatch", "testing", "return_types", "amp", "jit", "version", "multiprocessing", "overrides", "_C")


def __getattr__(name: str) -> _Any:
    """Larger parts of the package are loaded when they are first used."""
    if name in _LAZY:
        try:
            return _import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    elif name in ("OP", "DEVICE", "DTYPE"):
        return getattr(_import_module(f"{__name__}.const"), name)
    elif name == "is_cuda_available":
        return _import_module(f"{__name__}.cuda").is_available
    elif name == "OpDispatch":
        return _import_module(f"{__name__}.dispatch").OpDispatch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [*_api.__all__, "autograd"]
