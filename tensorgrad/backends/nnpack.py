"""torch.backends.nnpack: not used. https://pytorch.org/docs → torch.backends.nnpack"""
from ._switches import flags_of

enabled = True
set_flags, flags = flags_of(__name__, enabled=False)


def is_available() -> bool:
    """Return False: NNPACK is not used."""
    return False


_nnpack_available = is_available
