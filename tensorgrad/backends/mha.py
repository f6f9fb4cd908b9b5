"""torch.backends.mha: the fast path of attention and Transformer layers, a switch without effect. https://pytorch.org/docs → torch.backends.mha"""
_is_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """What was set."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Allow the fast path; there is but one here."""
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
