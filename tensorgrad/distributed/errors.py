"""Errors of ranks that work together. https://pytorch.org/docs → torch.distributed"""
from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError", "TimedOut"]


class DistError(RuntimeError):
    """An error of processes that work together. https://pytorch.org/docs → torch.distributed.DistError"""


class DistBackendError(DistError):
    """A backend could not do its part: a rank died, or ranks disagree.

    https://pytorch.org/docs → torch.distributed.DistBackendError
    """


class DistNetworkError(DistError):
    """A connection could not be made, or was lost. https://pytorch.org/docs → torch.distributed.DistNetworkError"""


class DistStoreError(DistError):
    """A store did not answer, or a value did not come in time.

    https://pytorch.org/docs → torch.distributed.DistStoreError
    """


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing to pop. https://pytorch.org/docs → torch.distributed.QueueEmptyError"""


class TimedOut(DistBackendError):
    """A collective or a message took longer than the group allows.

    `logged` says that the group's log was printed for it.
    """

    logged = False
