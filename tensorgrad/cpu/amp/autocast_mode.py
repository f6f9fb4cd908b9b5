"""torch.cpu.amp.autocast_mode: autocast under the older name. https://pytorch.org/docs → torch.cpu.amp"""
from __future__ import annotations

import warnings
from typing import Any

from ... import amp as _amp
from ...dtype import bfloat16

__all__ = ["autocast"]


class autocast(_amp.autocast):
    """`torch.amp.autocast("cpu", ...)`."""

    def __init__(self, enabled: bool = True, dtype: Any = bfloat16, cache_enabled: bool = True) -> None:
        warnings.warn("`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', "
                      "args...)` instead.", FutureWarning,
                      stacklevel=2)
        super().__init__("cpu", dtype, enabled, cache_enabled)
