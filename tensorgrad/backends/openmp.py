"""torch.backends.openmp: not used. https://pytorch.org/docs → torch.backends.openmp"""


def is_available() -> bool:
    """Return False: OpenMP is not used."""
    return False
