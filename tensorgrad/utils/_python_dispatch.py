"""PyTorch's modes that intercept operators below autograd.

There is no such layer here: `torch.overrides` intercepts functions.
"""
from __future__ import annotations

from typing import Any

__all__ = ["TorchDispatchMode", "is_in_torch_dispatch_mode", "is_traceable_wrapper_subclass"]


class TorchDispatchMode:
    """A mode with `__torch_dispatch__`, which can be constructed but not entered.
    https://pytorch.org/docs/stable/notes/extending.html
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __torch_dispatch__")

    def __enter__(self) -> Any:
        raise NotImplementedError(f"tensorgrad has no torch dispatch modes, and {type(self).__name__} is one: "
                                  "operators below autograd are not seen one by one; torch.overrides.TorchFunctionMode "
                                  "sees functions")

    def __exit__(self, *raised: Any) -> None:
        """Do nothing, because the mode cannot be entered."""


BaseTorchDispatchMode = TorchDispatchMode


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Return False: no mode can be active."""
    return False


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Return False: no tensor wraps others for PyTorch's compiler."""
    return False


is_traceable_wrapper_subclass_type = is_traceable_wrapper_subclass


def _get_current_dispatch_mode() -> None:
    return None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return []
