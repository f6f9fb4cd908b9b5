"""torch._refs.nn.functional: the functions of `torch.nn.functional`."""
from ...nn.functional import *  # noqa: F403
from ...nn.functional import __all__ as __all__
