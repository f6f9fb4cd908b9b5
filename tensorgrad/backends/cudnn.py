"""torch.backends.cudnn: switches for a library that is not used. https://pytorch.org/docs → torch.backends.cudnn"""
from typing import Any

from ._switches import flags_of

enabled, benchmark, deterministic, allow_tf32 = True, False, False, True
benchmark_limit, fp32_precision = None, "none"
set_flags, flags = flags_of(__name__, enabled=False, benchmark=False, benchmark_limit=10, deterministic=False,
                            allow_tf32=True, fp32_precision="none")


def is_available() -> bool:
    """Return False: cuDNN is not used."""
    return False


def version() -> None:
    """Return None: cuDNN is not used."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Return False: no tensor is computed with cuDNN."""
    return False
