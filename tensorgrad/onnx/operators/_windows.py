"""Sliding windows over images: their padding, and the elements that each covers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph.records import Record
from ...nn import functional as F


class Window(Record):
    """The window of a convolution or of pooling, for each axis of space.

    `after` pads so far that the last window fits; `given` is the padding that the model asks for.
    """

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]
    given: list[int]

    @property
    def even(self) -> bool:
        """True if PyTorch's pooling takes this padding: both sides alike, and at most half of the window."""
        return self.before == self.after and all(2 * b <= k for b, k in zip(self.before, self.kernel, strict=True))

    def moved(self) -> Window:
        """Return the window over an image that has its padding: `before` and `given`."""
        zero = [0] * len(self.kernel)
        rest = [a - g for a, g in zip(self.after, self.given, strict=True)]
        return self.but(before=zero, given=zero, after=rest)


def window(x: Any, kernel: Sequence[int], strides: Any, dilations: Any, pads: Any, auto_pad: str,
           ceil: bool = False) -> Window:
    """Return the window over an image of ONNX's attributes."""
    n, sizes = x.ndim - 2, x.shape[2:]
    strides, dilations = list(strides or [1] * n), list(dilations or [1] * n)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        total = [max((-(-size // s) - 1) * s + span - size, 0)
                 for size, s, span in zip(sizes, strides, spans, strict=True)]
        before = [t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in total]
        after = [t - b for t, b in zip(total, before, strict=True)]
    else:
        given = [0] * 2 * n if pads is None or auto_pad == "VALID" else list(pads)
        before, after = given[:n], given[n:]
    given = after
    if ceil:        # a window that begins in the padding at the end is left out
        counts = [-(-(size + b + a - span) // s) + 1
                  for size, b, a, span, s in zip(sizes, before, after, spans, strides, strict=True)]
        counts = [c - 1 if (c - 1) * s >= size + b else c
                  for c, s, size, b in zip(counts, strides, sizes, before, strict=True)]
        after = [max((c - 1) * s + span - size - b, a)
                 for c, s, span, size, b, a in zip(counts, strides, spans, sizes, before, after, strict=True)]
    return Window(list(kernel), strides, dilations, before, after, given)


def padded(x: Any, space: Window, value: float = 0) -> tuple[Any, list[int]]:
    """Return (x, the padding that a function of the package may add itself): x is padded if the sides differ."""
    if space.before == space.after:
        return x, space.before
    return _pad(x, space, value), [0] * len(space.before)


def _pad(x: Any, space: Window, value: float) -> Any:
    flat = [p for b, a in zip(reversed(space.before), reversed(space.after), strict=True) for p in (b, a)]
    return F.pad(x, flat, value=value) if any(flat) else x


def windows(x: Any, space: Window, value: float) -> Any:
    """Return the elements of each window, (N, C, windows …, elements), with `value` for those outside of x."""
    x = _pad(x, space, value)
    n = len(space.kernel)
    for i in range(n):
        span = (space.kernel[i] - 1) * space.dilations[i] + 1
        x = x.unfold(2 + i, span, space.strides[i])[..., ::space.dilations[i]]
    return x.flatten(2 + n)
