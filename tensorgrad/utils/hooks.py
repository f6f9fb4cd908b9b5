"""Handles of hooks (PyTorch: ``torch.utils.hooks``)."""
from ..autograd.tape import RemovableHandle

__all__ = ['RemovableHandle']
