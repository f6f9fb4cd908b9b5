"""torch._refs.fft: the functions of `torch.fft`."""
from ..fft import *  # noqa: F403
from ..fft import __all__ as __all__
