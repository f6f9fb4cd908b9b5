"""Mixed precision on the CPU under the older names. https://pytorch.org/docs → torch.cpu.amp"""
from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
