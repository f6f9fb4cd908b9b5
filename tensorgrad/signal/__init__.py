"""Tools for signals: `torch.signal.windows`. https://pytorch.org/docs/stable/signal.html"""
from . import windows

__all__ = ["windows"]
