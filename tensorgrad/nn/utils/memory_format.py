"""Memory formats do not change results, and there is only one here: accepted for programs that ask for others."""

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module, memory_format):
    """Returns the module as it is."""
    return module


def convert_conv3d_weight_memory_format(module, memory_format):
    """Returns the module as it is."""
    return module
