"""torch.backends.cusparselt: not used. https://pytorch.org/docs → torch.backends.cusparselt"""


def is_available() -> bool:
    """Return False: cuSPARSELt is not used."""
    return False


def version() -> None:
    """Return None: cuSPARSELt is not used."""
    return None
