"""torch.cuda.amp.common: a check for devices that compute in half precision."""
from importlib.util import find_spec

from ..devices import is_available

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Return True if there is neither a GPU nor a TPU."""
    return not (is_available() or find_spec("torch_xla"))
