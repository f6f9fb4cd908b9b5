"""PyTorch's queries about compilation; nothing can be compiled here."""

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type):
    """Return False: functions cannot be compiled for any device."""
    return False
