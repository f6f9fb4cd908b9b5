"""torch.backends.openmp: not used. https://pytorch.org/docs → torch.backends.openmp"""


def is_available() -> bool:
    """Whether the library is there: no."""
    return False
