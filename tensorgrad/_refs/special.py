"""torch._refs.special: the functions of `torch.special`."""
from ..special import *  # noqa: F403
from ..special import __all__ as __all__
