"""torch.backends.mha: the fast path of attention and Transformer layers, a switch without effect.

https://pytorch.org/docs → torch.backends.mha
"""
_is_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """Return the switch's value."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Set the switch, which has no effect: there is one implementation of attention layers."""
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
