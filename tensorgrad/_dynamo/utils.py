"""PyTorch's queries about compilation, and what was counted."""
import warnings

from ..compiler.stances import counters

__all__ = ["counters", "is_compile_supported", "warn_once"]


def is_compile_supported(device_type):
    """Return True for the CPU: functions of tensors elsewhere run as they are."""
    return str(device_type).partition(":")[0] == "cpu"


def warn_once(msg, stacklevel=1):
    """Warn, unless this function has warned with the message before."""
    if msg not in _WARNED:
        _WARNED.add(msg)
        warnings.warn(msg, stacklevel=stacklevel + 1)


_WARNED = set()
