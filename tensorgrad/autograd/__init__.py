"""torch.autograd: the public interface of the tape in `core/`. https://pytorch.org/docs/stable/autograd.html

Names are imported when they are first used, to keep the import of the package fast.
"""
from importlib import import_module as _import_module
from typing import Any as _Any

from ..messages.missing_names import MissingName as _MissingName

_HOME = {
    "backward": "core.engine", "grad": "core.engine",
    "Function": "autograd.function", "FunctionCtx": "autograd.function",
    "enable_grad": "core.mode", "inference_mode": "core.mode", "no_grad": "core.mode", "set_grad_enabled": "core.mode",
    "set_multithreading_enabled": "autograd.grad_mode", "is_multithreading_enabled": "autograd.grad_mode",
    "SavedTensor": "core.step",
    "_unsafe_preserve_version_counter": "autograd.grad_mode",
    "detect_anomaly": "core.anomaly", "set_detect_anomaly": "core.anomaly",
    "Variable": "autograd.variable", "kineto_available": "autograd.profiler",
    "_record_function_with_args_enter": "autograd.profiler",
    "_record_function_with_args_exit": "autograd.profiler", "_calculate_shape": "core.engine",
    "gradcheck": "autograd.gradcheck", "gradgradcheck": "autograd.gradcheck", "GradcheckError": "autograd.gradcheck",
}
_MODULES = ("function", "graph", "variable", "functional", "forward_ad", "profiler", "grad_mode", "anomaly_mode")


def __getattr__(name: str) -> _Any:
    if name in _HOME:
        module = _import_module(f"..{_HOME[name]}", __name__)
        found = getattr(module, name)
        globals()[name] = found
        return found
    if name in _MODULES or name == "_functions":
        return _import_module(f"{__name__}.{name}")
    raise _MissingName(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})


_PUBLIC = [*(name for name in _HOME if not name.startswith("_")), *_MODULES]
__all__ = [*_PUBLIC]  # noqa: PLE0604
