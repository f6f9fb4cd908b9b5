"""torch.backends.cusparselt: not used. https://pytorch.org/docs → torch.backends.cusparselt"""


def is_available() -> bool:
    """Whether the library is there: no."""
    return False


def version() -> None:
    """Its version: none."""
    return None
