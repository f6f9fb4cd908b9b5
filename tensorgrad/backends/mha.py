"""torch.backends.mha: the path of attention and encoder layers that evaluation takes when nothing is recorded.

https://pytorch.org/docs → torch.backends.mha
"""
from ..nn._functions import native_attention


def get_fastpath_enabled() -> bool:
    """Return True if attention modules and encoder layers may take the path of inference."""
    return native_attention.enabled


def set_fastpath_enabled(value: bool) -> None:
    """Let attention modules and encoder layers take the path of inference, or always that of training."""
    native_attention.enabled = value
