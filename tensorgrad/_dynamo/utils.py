"""PyTorch's queries about compilation; nothing can be compiled here."""
import warnings

__all__ = ["is_compile_supported", "warn_once"]


def is_compile_supported(device_type):
    """Return False: functions cannot be compiled for any device."""
    return False


def warn_once(msg, stacklevel=1):
    """Warn, unless this function has warned with the message before."""
    if msg not in _WARNED:
        _WARNED.add(msg)
        warnings.warn(msg, stacklevel=stacklevel + 1)


_WARNED = set()
