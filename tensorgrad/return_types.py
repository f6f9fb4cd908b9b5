"""The named tuples that functions with several results return. https://pytorch.org/docs → torch.return_types"""
from .api import return_types as _return_types

globals().update({name: getattr(_return_types, name) for name in _return_types.FIELDS})


def __getattr__(name: str) -> object:
    """The classes of results with `out=`, such as `max_out`."""
    found: object = getattr(_return_types, name)
    return found


__all__ = list(_return_types.FIELDS)
