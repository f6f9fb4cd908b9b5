"""The place of functions that pickled storages name. They are now in `api/storage_objects.py`."""
from .api.storage_objects import _typed, _unpickled

__all__ = ["_typed", "_unpickled"]
