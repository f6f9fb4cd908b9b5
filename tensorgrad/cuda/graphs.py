"""CUDA graphs, which are not supported: the names exist for annotations, and for conditions that are false here."""
from __future__ import annotations

from typing import Any

from ..messages.unsupported import unsupported

_REASON = "operators run one by one"
_NAMES = "graph_pool_handle make_graphed_callables"
__all__ = ["CUDAGraph", "graph", "is_current_stream_capturing", *_NAMES.split()]


class CUDAGraph:
    """A recording of a stream: NotImplementedError. https://pytorch.org/docs → torch.cuda.CUDAGraph"""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"tensorgrad has no torch.cuda.{type(self).__name__}: {_REASON}")


class graph(CUDAGraph):
    """A block that would record work: NotImplementedError. https://pytorch.org/docs → torch.cuda.graph"""


def is_current_stream_capturing() -> bool:
    """Return False: streams are never recorded. https://pytorch.org/docs → torch.cuda.is_current_stream_capturing"""
    return False


globals().update(unsupported(_NAMES, "torch.cuda", _REASON))
