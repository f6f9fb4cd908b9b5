"""`OpDispatch`, where the first version of this project had it."""
from ..core.dispatch import OpDispatch

__all__ = ["OpDispatch"]
