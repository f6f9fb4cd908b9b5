"""Mixed precision: products in half precision, sums and losses in full, and gradients scaled out of its underflow.

https://pytorch.org/docs/stable/amp.html

>>> import tensorgrad as torch
>>> x = torch.ones(2, 2)
>>> with torch.autocast("cpu", dtype=torch.float16):
...     (x @ x).dtype, (x + x).dtype
(torch.float16, torch.float32)
"""
from . import autocast_mode, grad_scaler
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "autocast_mode", "custom_bwd", "custom_fwd", "grad_scaler",
           "is_autocast_available"]
