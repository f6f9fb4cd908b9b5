"""Emitters of products and recurrent layers with packed weights (native/packed.inc, packed_recurrent.inc)."""
from __future__ import annotations

from typing import Any

from ..packed import PackedLinear, following
from ..recurrent import GruSteps, LstmSteps
from . import emits


def step_of_rows(x: Any) -> int | None:
    """Return the stride between rows, with all leading axes joined; None if rows are not evenly spaced."""
    axes = [(n, step) for n, step in zip(x.shape[:-1], x.strides[:-1], strict=True) if n != 1]
    if x.shape[-1] != 1 and x.strides[-1] != 1:
        return None
    if any(outer[1] != inner[0] * inner[1] for outer, inner in zip(axes, axes[1:], strict=False)):
        return None
    return int(axes[-1][1]) if axes else int(x.shape[-1])


def in_rows(build: Any, x: Any) -> tuple[Any, int]:
    """Return a value, or a copy, whose rows are evenly spaced, and the stride between them."""
    step = step_of_rows(x)
    return (build.whole(x), x.shape[-1]) if step is None else (x, step)


@emits(PackedLinear)
def packed_linear(build: Any, node: Any, x: Any, packed: Any, *rest: Any) -> Any:
    target: PackedLinear = node.target
    bias = build.whole(rest[0]) if target.bias else None
    residual = build.whole(rest[-1]) if target.residual else None
    after = following(target.activation)
    if after is None:
        return NotImplemented
    x, step = in_rows(build, x)
    out, k = build.new((*x.shape[:-1], target.n), x.dtype), x.shape[-1]
    build.call("packed_linear", x, packed, bias, residual, out, x.size // k, target.n, k, step, *after)
    return out


@emits(LstmSteps)
def lstm_steps(build: Any, node: Any, z: Any, packed: Any, h: Any, c: Any) -> Any:
    (steps, batch, _), width = z.shape, h.shape[-1]
    y, last_h, last_c = (build.new(shape, z.dtype) for shape in ((steps, batch, width), h.shape, c.shape))
    build.call("packed_lstm", build.whole(z), packed, build.whole(h), build.whole(c), y, last_h, last_c, steps, batch,
               width, int(node.target.reverse))
    return y, last_h, last_c


@emits(GruSteps)
def gru_steps(build: Any, node: Any, z: Any, packed: Any, bias: Any, h: Any) -> Any:
    (steps, batch, _), width = z.shape, h.shape[-1]
    y, last = build.new((steps, batch, width), z.dtype), build.new(h.shape, z.dtype)
    build.call("packed_gru", build.whole(z), packed, bias, build.whole(h), y, last, steps, batch, width,
               int(node.target.reverse))
    return y, last
