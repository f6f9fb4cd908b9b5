"""torch.distributed.elastic.multiprocessing: what workers tell of their errors.

https://pytorch.org/docs/stable/elastic/multiprocessing.html
"""
from .errors import ChildFailedError, ProcessFailure, record

__all__ = ["ChildFailedError", "ProcessFailure", "record"]
