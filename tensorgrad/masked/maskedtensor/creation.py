"""PyTorch's import path of the functions that make MaskedTensors."""
from .core import as_masked_tensor, masked_tensor

__all__ = ["as_masked_tensor", "masked_tensor"]
