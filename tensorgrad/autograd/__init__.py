"""The tape, and what programs do with it. https://pytorch.org/docs/stable/autograd.html

Names are looked up when they are first used: the dispatcher, which lies between the tape and the engine, imports from this package.
"""
from importlib import import_module as _import_module
from typing import Any as _Any

from .._missing import MissingName as _MissingName

_HOME = {
    "backward": "engine", "grad": "engine",
    "Function": "function", "FunctionCtx": "function",
    "enable_grad": "mode", "inference_mode": "mode", "no_grad": "mode", "set_grad_enabled": "mode",
    "set_multithreading_enabled": "grad_mode", "is_multithreading_enabled": "grad_mode", "_unsafe_preserve_version_counter": "grad_mode",
    "detect_anomaly": "anomaly", "set_detect_anomaly": "anomaly",
    "Variable": "variable",
    "gradcheck": "gradcheck", "gradgradcheck": "gradcheck", "GradcheckError": "gradcheck",
}
_MODULES = ("function", "graph", "anomaly", "variable", "functional", "forward_ad", "profiler", "grad_mode", "anomaly_mode")


def __getattr__(name: str) -> _Any:
    if name in _HOME:
        module = _import_module(f"{__name__}.{_HOME[name]}")
        found = getattr(module, name)
        globals()[name] = found
        return found
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    raise _MissingName(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})


_PUBLIC = [*(name for name in _HOME if not name.startswith("_")), *_MODULES]
__all__ = [*_PUBLIC]  # noqa: PLE0604
