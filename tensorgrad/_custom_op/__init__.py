"""torch._custom_op: PyTorch 2.1's way to define operators. New programs use `torch.library.custom_op`."""
from importlib import import_module as _import_module
from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    """Submodules are imported when they are first used."""
    if name not in ("autograd", "impl"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module(f"{__name__}.{name}")
