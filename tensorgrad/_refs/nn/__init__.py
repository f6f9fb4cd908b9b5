"""torch._refs.nn: the functions of `torch.nn.functional`."""
from ...nn import functional

__all__ = ["functional"]
