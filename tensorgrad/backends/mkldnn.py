"""torch.backends.mkldnn: oneDNN, which is not used. https://pytorch.org/docs → torch.backends.mkldnn"""
from ._switches import flags_of
from .mkl import VERBOSE_OFF, VERBOSE_ON, verbose  # noqa: F401

VERBOSE_ON_CREATION = 2
enabled, deterministic, allow_tf32, fp32_precision = True, False, True, "none"
set_flags, flags = flags_of(__name__, enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none")


def is_available() -> bool:
    """Return False: oneDNN is not used."""
    return False


is_acl_available = is_available
