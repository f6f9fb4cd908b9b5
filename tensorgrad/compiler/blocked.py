"""Pictures in blocks of 16 channels: targets of nodes whose arrays have the shape (N, ⌈C / 16⌉, H, W, 16).

Channels that fill the last block are zeros at first, and their weights are 0: later values in them stay finite and
reach no other channel. native/blocked.inc and native/blocked_planes.inc compute these nodes; `__call__` defines them.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..graph.records import Record
from ..ops.base import OPS
from ..ops.windows import output_length
from ..runtime.native import native
from .room import room
from .targets import Activation
from .values import computed

BLOCK = 16

Shape = tuple[int, ...]


def blocks(channels: int) -> int:
    """Return the number of blocks that hold so many channels."""
    return -(-channels // BLOCK)


def padded(x: Any, axis: int, size: int) -> Any:
    """Return an array, padded with zeros at the end of an axis if it is too short."""
    if x.shape[axis] == size:
        return x
    return np.pad(x, [(0, size - n if i == axis else 0) for i, n in enumerate(x.shape)])


def blocked(x: Any) -> Any:
    """Return pictures (N, C, H, W) in blocks."""
    n, c, h, w = x.shape
    whole = padded(x, 1, blocks(c) * BLOCK).reshape(n, blocks(c), BLOCK, h, w)
    return np.ascontiguousarray(whole.transpose(0, 1, 3, 4, 2))


def unblocked(x: Any, channels: int) -> Any:
    """Return pictures (N, C, H, W), given their blocks."""
    n, b, h, w, _ = x.shape
    return np.ascontiguousarray(x.transpose(0, 1, 4, 2, 3).reshape(n, b * BLOCK, h, w)[:, :channels])


class ToBlocked(Record):
    """Pictures (N, C, H, W), in blocks."""

    def __call__(self, x: Any) -> Any:
        return blocked(x)

    def shape(self, x: Shape) -> Shape:
        return x[0], blocks(x[1]), x[2], x[3], BLOCK

    __name__ = "to_blocked"


class FromBlocked(Record):
    """Pictures (N, C, H, W), from blocks."""

    channels: int

    def __call__(self, x: Any) -> Any:
        return unblocked(x, self.channels)

    def shape(self, x: Shape) -> Shape:
        return x[0], self.channels, x[2], x[3]

    __name__ = "from_blocked"


# ── weights ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class BlockedBias(Record):
    """A number for each channel, and zeros."""

    def __call__(self, b: Any) -> Any:
        return padded(b, 0, blocks(len(b)) * BLOCK)

    def shape(self, b: Shape) -> Shape:
        return (blocks(b[0]) * BLOCK,)

    __name__ = "blocked_bias"


class BlockedWeight(Record):
    """Weights (O, C, kh, kw) of a convolution, as (O / 16, C / 16, kh, kw, 16 of C, 16 of O).

    With `transposed`, weights are (C, O, kh, kw). For a `first` layer, whose pictures are not in blocks, the result is
    (O / 16, C, kh, kw, 16 of O). A second operand has factors of the weights for each output.
    """

    transposed: bool = False
    first: bool = False

    def __call__(self, w: Any, scale: Any = None) -> Any:
        if scale is not None and self.stays(w.shape):
            return self.into(room.empty(self.shape(w.shape), w.dtype), w, scale)
        w = w.swapaxes(0, 1) if self.transposed else w
        w = w if scale is None else w * scale.reshape(-1, 1, 1, 1)
        o, c, *kernel = w.shape
        w = padded(w, 0, blocks(o) * BLOCK).reshape(blocks(o), BLOCK, c, *kernel)
        if self.first:
            return np.ascontiguousarray(np.moveaxis(w, 1, -1))
        w = padded(w, 2, blocks(c) * BLOCK).reshape(blocks(o), BLOCK, blocks(c), BLOCK, *kernel)
        return room.copy(w.transpose(0, 2, 4, 5, 3, 1))

    def stays(self, shape: Shape) -> bool:
        """Return True if the weights of each 16 outputs are packed to where they are."""
        return not (self.transposed or self.first or shape[0] % BLOCK or shape[1] % BLOCK)

    def into(self, out: Any, w: Any, scale: Any) -> Any:
        """Pack such weights, times factors if there are any, into memory that may be theirs."""
        some = np.empty((BLOCK, *w.shape[1:]), w.dtype)
        factors = np.ones((len(out), 1, 1, 1, 1), w.dtype) if scale is None else scale.reshape(-1, BLOCK, 1, 1, 1)
        for part, weights, by in zip(out, w.reshape(-1, *some.shape), factors, strict=True):
            np.multiply(weights, by, out=some)
            part[...] = some.reshape(BLOCK, -1, BLOCK, *some.shape[2:]).transpose(1, 3, 4, 2, 0)
        return out

    def over(self, w: Any, scale: Any = None) -> Any:
        """Pack contiguous weights that stay, in their own memory."""
        return self.into(w.reshape(self.shape(w.shape)), w, scale)

    def plain(self, packed: Any) -> Any:
        """Return the weights with the channels of whole blocks."""
        if self.first:
            w = np.moveaxis(packed, -1, 1)
        else:
            w = packed.transpose(0, 5, 1, 4, 2, 3)
            w = w.reshape(*w.shape[:2], -1, *w.shape[4:])
        w = w.reshape(-1, *w.shape[2:])
        return w.swapaxes(0, 1) if self.transposed else w

    def shape(self, w: Shape, scale: Shape = ()) -> Shape:
        o, c = w[1::-1] if self.transposed else w[:2]
        return (blocks(o), c, *w[2:], BLOCK) if self.first else (blocks(o), blocks(c), *w[2:], BLOCK, BLOCK)

    __name__ = "blocked_weight"


# G of Winograd's F(2, 3), and a matrix that undoes it
POINTS = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
TAPS = np.array([[1, 0, 0, 0], [0, 1, -1, 0], [0, 0, 0, 1]])


class WinogradWeight(Record):
    """Weights w of 3 × 3 taps as the points G w Gᵀ of each tile: (4, 4, O / 16, C / 16, 16 of C, 16 of O).

    A second operand has factors of the weights for each output. Points that are made `late` are made in each run, in
    memory that later nodes use again, and not ahead.
    """

    late: bool = False

    def __call__(self, w: Any, scale: Any = None) -> Any:
        w, out = np.ascontiguousarray(w), room.empty(self.shape(w.shape), w.dtype)
        scale = None if scale is None else np.ascontiguousarray(scale).reshape(-1)
        if native is not None and native.blocked_winograd_weight(w, scale, out, *w.shape[:2]) is None:
            return out
        out[...] = self.both(POINTS, BlockedWeight()(w, scale).transpose(2, 3, 0, 1, 4, 5))
        return out

    def plain(self, points: Any) -> Any:
        """Return the weights with the channels of whole blocks."""
        return BlockedWeight().plain(self.both(TAPS, points).transpose(2, 3, 0, 1, 4, 5))

    def both(self, factor: Any, w: Any) -> Any:
        """Multiply the first two axes by a matrix each."""
        for _ in range(2):
            w = np.moveaxis((factor.astype(w.dtype) @ w.reshape(len(w), -1)).reshape(-1, *w.shape[1:]), 0, 1)
        return np.ascontiguousarray(w)

    def shape(self, w: Shape, scale: Shape = ()) -> Shape:
        return 4, 4, blocks(w[0]), blocks(w[1]), BLOCK, BLOCK

    __name__ = "winograd_weight"


class DepthwiseWeight(Record):
    """Weights (C, 1, kh, kw), as (C / 16, kh, kw, 16)."""

    def __call__(self, w: Any) -> Any:
        return blocked(w.swapaxes(0, 1))[0]

    def shape(self, w: Shape) -> Shape:
        return blocks(w[0]), w[2], w[3], BLOCK

    __name__ = "depthwise_weight"


# ── steps in blocks ────────────────────────────────────────────────────────────────────────────────────────


class Following(Record):
    """Steps that a kernel applies to its result y: activation(y + bias + residual). Flags say which operands there are.
    """

    bias: bool = False
    residual: bool = False
    activation: Activation | None = None

    def bias_of(self, rest: tuple[Any, ...]) -> Any:
        return rest[0] if self.bias else None

    def residual_of(self, rest: tuple[Any, ...]) -> Any:
        return rest[-1] if self.residual else None

    def __call__(self, y: Any, rest: tuple[Any, ...]) -> Any:
        """Add the residual to pictures that have their bias, and apply the activation."""
        y = y + self.residual_of(rest) if self.residual else y
        return y if self.activation is None else self.activation(y)

    def __str__(self) -> str:
        return "".join(f"_{name}" for name in (["residual"] * self.residual + [self.activation] *
                                               (self.activation is not None)))


class BlockedConvolution(Record):
    """A convolution. Operands: pictures, BlockedWeight, and the operands of `following`.

    `channels` and `size` are those of the result. With `transposed`, it is a transposed convolution; for a `first`
    layer the pictures are not in blocks; with `winograd`, the weights are WinogradWeight.
    """

    channels: int
    size: Shape
    stride: Shape
    padding: Shape
    dilation: Shape
    groups: int = 1
    transposed: bool = False
    first: bool = False
    winograd: bool = False
    following: Following = Following()

    def __call__(self, x: Any, packed: Any, *rest: Any) -> Any:
        w = self.weight.plain(packed)
        x = x if self.first else unblocked(x, x.shape[1] * BLOCK)
        how = {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}
        name = "convolution_input" if self.transposed else "convolution"
        y = computed(OPS[name], (x, w, self.following.bias_of(rest)),
                     {"size": self.size, **how} if self.transposed else how)
        return self.following(blocked(y[:, :self.channels]), rest)

    @property
    def weight(self) -> Any:
        """The target that packs the weights."""
        return WinogradWeight() if self.winograd else BlockedWeight(self.transposed, self.first)

    def shape(self, x: Shape, packed: Shape, *rest: Shape) -> Shape:
        return x[0], packed[2 if self.winograd else 0], *self.size, BLOCK

    @property
    def __name__(self) -> str:
        kind = "transposed_" * self.transposed + "first_" * self.first + "winograd_" * self.winograd
        return f"blocked_{kind}convolution{self.following}"


class BlockedDepthwise(Record):
    """A depthwise convolution. Operands: pictures, DepthwiseWeight, and the operands of `following`."""

    stride: Shape
    padding: Shape
    dilation: Shape
    following: Following = Following()

    def __call__(self, x: Any, packed: Any, *rest: Any) -> Any:
        w = unblocked(packed[None], packed.shape[0] * BLOCK).swapaxes(0, 1)
        y = computed(OPS["convolution"], (unblocked(x, len(w)), w, self.following.bias_of(rest)),
                     {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "groups": len(w)})
        return self.following(blocked(y), rest)

    def shape(self, x: Shape, packed: Shape, *rest: Shape) -> Shape:
        size: Shape = output_length(x[2:4], packed[1:3], self.stride,  # type: ignore[no-untyped-call]
                                    self.padding, self.dilation)
        return *x[:2], *size, BLOCK

    @property
    def __name__(self) -> str:
        return f"blocked_depthwise{self.following}"


class BlockedPool(Record):
    """`max_pool`, or `window_sum` with its scale; `size` is that of the result."""

    opname: str
    size: Shape
    kernel: Shape
    stride: Shape
    widths: tuple[Shape, ...]
    dilation: Shape = (1, 1)
    scale: float = 1.0

    def __call__(self, x: Any) -> Any:
        how: dict[str, Any] = {"kernel": self.kernel, "stride": self.stride, "widths": self.widths}
        how |= {"dilation": self.dilation} if self.opname == "max_pool" else {"scale": self.scale}
        return blocked(computed(OPS[self.opname], (unblocked(x, x.shape[1] * BLOCK),), how))

    def shape(self, x: Shape) -> Shape:
        return *x[:2], *self.size, BLOCK

    @property
    def __name__(self) -> str:
        return f"blocked_{self.opname}"


class BlockedMean(Record):
    """The mean of each channel over its places."""

    def __call__(self, x: Any) -> Any:
        return computed(OPS["mean"], (x,), {"axis": (2, 3), "keepdims": True})

    def shape(self, x: Shape) -> Shape:
        return *x[:2], 1, 1, BLOCK

    __name__ = "blocked_mean"


class BlockedScale(Record):
    """Pictures times a number for each image and channel, of shape (N, C / 16, 1, 1, 16)."""

    def __call__(self, x: Any, factor: Any) -> Any:
        return x * factor

    def shape(self, x: Shape, factor: Shape) -> Shape:
        return x

    __name__ = "blocked_scale"
