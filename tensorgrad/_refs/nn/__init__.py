"""torch._refs.nn: the functions of `torch.nn.functional`."""
from . import functional

__all__ = ["functional"]
