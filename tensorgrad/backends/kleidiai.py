"""torch.backends.kleidiai: not used. https://pytorch.org/docs → torch.backends.kleidiai"""


def is_available() -> bool:
    """Whether the library is there: no."""
    return False
