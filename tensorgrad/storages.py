"""The place of functions that pickled storages name. They are now in `storage/typed.py`."""
from .storage.typed import _typed, _unpickled

__all__ = ["_typed", "_unpickled"]
