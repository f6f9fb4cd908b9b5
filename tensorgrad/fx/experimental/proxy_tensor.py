"""PyTorch's queries about tracing; no program is ever traced here."""
from ...messages.unsupported import unsupported

_NAMES = "make_fx"
__all__ = ["get_proxy_mode", *_NAMES.split()]


def get_proxy_mode():
    """Return None: no program is traced."""
    return None


globals().update(unsupported(_NAMES, "torch.fx.experimental.proxy_tensor", "programs are not traced into graphs"))
