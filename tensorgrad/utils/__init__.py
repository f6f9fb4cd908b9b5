"""Helpers around training (PyTorch: ``torch.utils``): ``checkpoint``, ``data``, ``hooks``, …"""
from __future__ import annotations

import importlib
from typing import Any

from ..messages.missing_names import MissingName as _MissingName

__all__ = ['backcompat', 'benchmark', 'checkpoint', 'collect_env', 'cpp_extension', 'data', 'deterministic', 'dlpack',
           'hooks', 'model_zoo', 'npz',
           'safetensors', 'serialization', 'swap_tensors']
_UNLISTED = '_mode_utils', '_python_dispatch', '_pytree', 'tensorboard'


def __getattr__(name: str) -> Any:
    """Import a submodule when it is first asked for."""
    if name in __all__ and name != 'swap_tensors' or name in _UNLISTED:
        return importlib.import_module(f'{__name__}.{name}')
    if name == 'swap_tensors':
        from ._swapping import swap_tensors
        return swap_tensors
    if name == 'summary':
        from ._summary import summary
        return summary
    raise _MissingName(__name__, name)
