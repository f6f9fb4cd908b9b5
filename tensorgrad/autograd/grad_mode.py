"""Whether gradients are recorded, under the name of PyTorch's module."""
from .mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
