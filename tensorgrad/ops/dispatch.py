"""`OpDispatch`, where the first version of this project had it."""
from ..dispatch import OpDispatch

__all__ = ["OpDispatch"]
