"""Emitters of pictures in blocks (native/blocked.inc, native/blocked_planes.inc)."""
from __future__ import annotations

from math import prod
from typing import Any

from ..blocked import (
    BLOCK,
    BlockedConvolution,
    BlockedDepthwise,
    BlockedMean,
    BlockedPool,
    BlockedScale,
    Following,
    FromBlocked,
    ToBlocked,
)
from ..packed import following
from . import emits

KINDS = {"depthwise": 0, "window_sum": 1, "max_pool": 2}


def result(build: Any, node: Any, like: Any) -> Any:
    return build.new(node.meta["shape"], like.dtype)


def followed(build: Any, what: Following, rest: tuple[Any, ...], node: Any, like: Any) -> tuple[Any, Any, Any]:
    """Return bias, residual and result of a kernel; the result may be written over the residual."""
    bias, residual = what.bias_of(rest), what.residual_of(rest)
    residual = None if residual is None else build.whole(residual)
    out = result(build, node, like) if residual is None else build.reuse(residual, node.meta["shape"], like.dtype)
    return None if bias is None else build.whole(bias), residual, out


@emits(ToBlocked)
def to_blocked(build: Any, node: Any, x: Any) -> Any:
    x, out = build.whole(x), result(build, node, x)
    build.call("to_blocked", x, out, *x.shape[:2], prod(x.shape[2:]))
    return out


@emits(FromBlocked)
def from_blocked(build: Any, node: Any, x: Any) -> Any:
    n, channels, h, w = shape = node.meta["shape"]
    x = build.whole(x)
    if h * w == 1:                              # one block after another: a view
        return build.view(x, shape, (x.shape[1] * BLOCK, 1, 1, 1))
    out = build.new(shape, x.dtype)
    build.call("from_blocked", x, out, n, channels, h * w)
    return out


@emits(BlockedConvolution)
def convolution(build: Any, node: Any, x: Any, packed: Any, *rest: Any) -> Any:
    target: BlockedConvolution = node.target
    after = following(target.following.activation)
    if after is None:
        return NotImplemented
    x, packed = build.whole(x), build.whole(packed)
    if target.winograd:
        return winograd(build, node, x, packed, rest, after)
    bias, residual, out = followed(build, target.following, rest, node, x)
    kernel, sizes = packed.shape[2:4], (*x.shape[:4], packed.shape[0])
    how = *kernel, *target.size, *target.stride, *target.padding, *target.dilation
    if target.first:
        build.call("blocked_first", x, packed, bias, residual, out, *sizes, *how, target.channels, *after)
    else:
        build.call("blocked_convolution", x, packed, bias, residual, out, *sizes, *how, target.groups,
                   target.channels, int(target.transposed), *after)
    return out


def winograd(build: Any, node: Any, x: Any, points: Any, rest: tuple[Any, ...], after: Any) -> Any:
    """A residual is read again if a result is not finite: the result is not written over it."""
    target: BlockedConvolution = node.target
    bias, residual = (None if each is None else build.whole(each)
                      for each in (target.following.bias_of(rest), target.following.residual_of(rest)))
    out = result(build, node, x)
    build.call("blocked_winograd", x, points, bias, residual, out, *x.shape[:4], points.shape[2], *target.size,
               *target.padding, target.channels, *after)
    return out


def windows(build: Any, x: Any, out: Any, kind: str, operands: Any, *numbers: Any, scale: float = 1.0,
            after: Any = (0, 0.0, 0.0, 0.0)) -> Any:
    """Call the kernel of windows; numbers: kernel, stride, padding before, dilation, of both axes each."""
    kernel, *others = numbers
    code, *params = after
    build.call("blocked_windows", x, *operands, out, *x.shape[:4], *kernel, *out.shape[2:4],
               *(n for pair in others for n in pair), KINDS[kind], code, float(scale), *params)
    return out


@emits(BlockedDepthwise)
def depthwise(build: Any, node: Any, x: Any, packed: Any, *rest: Any) -> Any:
    target: BlockedDepthwise = node.target
    after = following(target.following.activation)
    if after is None:
        return NotImplemented
    x, packed = build.whole(x), build.whole(packed)
    bias, residual, out = followed(build, target.following, rest, node, x)
    return windows(build, x, out, "depthwise", (packed, bias, residual), packed.shape[1:3], target.stride,
                   target.padding, target.dilation, after=after)


@emits(BlockedPool)
def pool(build: Any, node: Any, x: Any) -> Any:
    target: BlockedPool = node.target
    x = build.whole(x)
    before = [first for first, _ in target.widths]
    return windows(build, x, result(build, node, x), target.opname, (None, None, None), target.kernel, target.stride,
                   before, target.dilation, scale=target.scale)


@emits(BlockedMean)
def mean(build: Any, node: Any, x: Any) -> Any:
    x, out = build.whole(x), result(build, node, x)
    build.call("blocked_mean", x, out, *x.shape[:2], prod(x.shape[2:4]))
    return out


@emits(BlockedScale)
def scale(build: Any, node: Any, x: Any, factor: Any) -> Any:
    x, factor = build.whole(x), build.whole(factor)
    out = build.reuse(x, x.shape, x.dtype)
    build.call("blocked_scale", x, factor, out, *x.shape[:2], prod(x.shape[2:4]))
    return out
