"""torch.backends.kleidiai: not used. https://pytorch.org/docs → torch.backends.kleidiai"""


def is_available() -> bool:
    """Return False: KleidiAI is not used."""
    return False
