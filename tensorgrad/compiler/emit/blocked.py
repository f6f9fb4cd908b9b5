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
    WinogradWeight,
)
from ..packed import following
from . import emits

KINDS = {"depthwise": 0, "window_sum": 1, "max_pool": 2}


def result(build: Any, node: Any, like: Any) -> Any:
    return build.new(node.meta["shape"], like.dtype)


def followed(build: Any, node: Any, x: Any, rest: tuple[Any, ...], over: bool = True) -> tuple[Any, Any, Any]:
    """Return bias, residual and result of a kernel; with `over`, the result may be written over the residual."""
    following: Following = node.target.following
    bias, residual = (None if operand is None else build.whole(operand)
                      for operand in (following.bias_of(rest), following.residual_of(rest)))
    reused = over and residual is not None
    out = build.reuse(residual, node.meta["shape"], x.dtype) if reused else result(build, node, x)
    return bias, residual, out


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
    bias, residual, out = followed(build, node, x, rest)
    kernel, sizes = packed.shape[2:4], (*x.shape[:4], packed.shape[0])
    how = *kernel, *target.size, *target.stride, *target.padding, *target.dilation
    if target.first:
        build.call("blocked_first", x, packed, bias, residual, out, *sizes, *how, target.channels, *after)
    else:
        build.call("blocked_convolution", x, packed, bias, residual, out, *sizes, *how, target.groups,
                   target.channels, int(target.transposed), *after)
    return out


@emits(WinogradWeight)
def winograd_weight(build: Any, node: Any, w: Any, scale: Any = None) -> Any:
    out = result(build, node, w)
    build.call("blocked_winograd_weight", build.whole(w), None if scale is None else build.whole(scale), out,
               *w.shape[:2])
    return out


def winograd(build: Any, node: Any, x: Any, points: Any, rest: tuple[Any, ...], after: Any) -> Any:
    """Call Winograd's kernel, which reads the residual again if a result is not finite: that is not written over."""
    target: BlockedConvolution = node.target
    bias, residual, out = followed(build, node, x, rest, over=False)
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
    bias, residual, out = followed(build, node, x, rest)
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
