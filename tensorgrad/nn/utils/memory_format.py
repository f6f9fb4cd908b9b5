"""Conversions of memory formats, accepted without effect: there is a single format here, and formats do not change
results."""

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module, memory_format):
    """Return the module unchanged."""
    return module


def convert_conv3d_weight_memory_format(module, memory_format):
    """Return the module unchanged."""
    return module
