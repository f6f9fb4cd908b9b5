"""torch.backends.mha: the inference path of attention and encoder layers.

https://pytorch.org/docs → torch.backends.mha
"""
from ..nn._functions import native_attention


def get_fastpath_enabled() -> bool:
    """Return True if attention modules and encoder layers may take the inference path."""
    return native_attention.enabled


def set_fastpath_enabled(value: bool) -> None:
    """Turn the inference path of attention modules and encoder layers on or off."""
    native_attention.enabled = value
