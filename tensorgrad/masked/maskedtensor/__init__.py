"""PyTorch's package of the class MaskedTensor."""
from . import operations  # noqa: F401
from .core import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
