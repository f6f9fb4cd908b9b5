"""torch._refs.linalg: the functions of `torch.linalg`."""
from ..linalg import *  # noqa: F403
from ..linalg import __all__ as __all__
