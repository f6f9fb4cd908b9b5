"""Switches for how modules are converted and loaded. https://pytorch.org/docs → torch.__future__

>>> import tensorgrad as torch
>>> layer = torch.nn.Linear(1, 1)
>>> before = layer.weight
>>> torch.__future__.set_overwrite_module_params_on_conversion(True)
>>> layer.double().weight is before
False
>>> torch.__future__.set_overwrite_module_params_on_conversion(False)
"""
from __future__ import annotations

from .nn.modules._convert import conversion

__all__ = ["get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
           "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion"]


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Let `Module.to`, and all that is like it, assign new parameters, rather than change the data of the old ones."""
    conversion.overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return True if converted modules have new parameters."""
    return conversion.overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Let `Module.to` and `load_state_dict` swap parameters with their new values, by `torch.utils.swap_tensors`.

    `load_state_dict` then asks `Tensor.module_load` for the value. This switch goes before that of overwriting.
    """
    conversion.swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Return True if converted and loaded parameters are swapped with their new values."""
    return conversion.swap
