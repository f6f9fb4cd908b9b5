"""torch._inductor: the settings of PyTorch's code generator, which programs change before they call `torch.compile`."""
from . import config

__all__ = ["config"]
