"""torch.cuda.amp.common: whether there is anything to run in half precision on."""
from importlib.util import find_spec

from ..devices import is_available

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is neither a GPU nor a TPU."""
    return not (is_available() or find_spec("torch_xla"))
