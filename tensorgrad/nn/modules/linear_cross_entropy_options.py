"""How `linear_cross_entropy` may trade memory for time."""
from __future__ import annotations

from dataclasses import dataclass

from ... import api as tg

__all__ = ["LinearCrossEntropyOptions"]

POLICIES = ("auto", "accurate", "balanced", "compact")


@dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How to compute a linear cross entropy chunk by chunk (torch.nn.LinearCrossEntropyOptions).

    Parameters:
        allow_retain_graph: bool: False, let backward run twice
        batch_chunk_size: int: None, samples per chunk
        chunking_method: str: 'auto', 'aspect_ratio' or 'aspect_ratio:N', N dividing the chunk's size, or None
        acc_policy: str: 'auto', 'accurate', 'balanced' or 'compact'
        acc_dtype: dtype: None, of sums; a floating point one
    Input: none
    Output: none
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.LinearCrossEntropyOptions(batch_chunk_size=128).batch_chunk_size
    128
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: tg.dtype | None = None

    def __post_init__(self) -> None:
        size, dtype = self.batch_chunk_size, self.acc_dtype
        if self.acc_policy not in POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto") and not _is_aspect_ratio(self.chunking_method):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if dtype not in (None, tg.float16, tg.bfloat16, tg.float32, tg.float64):
            raise ValueError("acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, "
                             f"torch.float64}}, got {dtype!r}. Pass acc_dtype=None to let the op pick automatically.")


def _is_aspect_ratio(method):
    name, colon, factor = method.partition(":")
    return name == "aspect_ratio" and (not colon or factor.isdigit() and int(factor) > 0)
