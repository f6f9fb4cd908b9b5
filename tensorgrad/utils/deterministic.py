"""torch.utils.deterministic. https://pytorch.org/docs → torch.utils.deterministic"""
import sys
from types import ModuleType

from ..runtime import settings


class _Deterministic(ModuleType):
    """`fill_uninitialized_memory`: True lets `empty` fill its memory while deterministic algorithms are required."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        return settings.settings.fill_uninitialized_memory

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, fill: bool) -> None:
        if type(fill) is not bool:
            raise RuntimeError(f"expected a bool, but got {type(fill).__name__}")
        settings.settings.fill_uninitialized_memory = fill
        settings.fill_or_not()


sys.modules[__name__].__class__ = _Deterministic
