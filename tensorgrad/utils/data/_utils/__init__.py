"""Parts of ``DataLoader``: collating, fetching, workers."""
from . import collate, fetch, worker

__all__ = ['collate', 'fetch', 'worker']
