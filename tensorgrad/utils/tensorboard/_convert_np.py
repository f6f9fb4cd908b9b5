"""PyTorch's place for `make_np`."""
from .summary import make_np

__all__ = ["make_np"]
