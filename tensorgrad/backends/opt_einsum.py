"""torch.backends.opt_einsum: the order of the products in an einsum is chosen without that package.

https://pytorch.org/docs → torch.backends.opt_einsum
"""
from ._switches import flags_of

enabled, strategy = False, None
set_flags, flags = flags_of(__name__, enabled=False, strategy=None)


def is_available() -> bool:
    """Return False: the package opt_einsum is not used."""
    return False


def get_opt_einsum() -> None:
    """The package: none."""
    return None
