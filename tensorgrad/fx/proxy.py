"""PyTorch's class of traced values, under its name."""
__all__ = ["Proxy"]


class Proxy:
    """PyTorch's class of traced values; no object is an instance."""
