"""Whether a program is being traced: it never is."""
from ..._unsupported import unsupported

_NAMES = "make_fx"
__all__ = ["get_proxy_mode", *_NAMES.split()]


def get_proxy_mode():
    """The mode in which a program is traced: None."""
    return None


globals().update(unsupported(_NAMES, "torch.fx.experimental.proxy_tensor", "programs are not traced into graphs"))
