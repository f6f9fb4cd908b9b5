"""Whether something can be compiled: nothing can."""

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type):
    """Whether functions can be compiled for a device."""
    return False
