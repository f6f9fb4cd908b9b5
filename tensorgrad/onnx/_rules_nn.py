"""Layers: products, convolutions, pooling, normalisation, recurrence."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..ops.windows import input_length, output_length
from ._graph import INT, Graph, Refused, Term
from ._sizes import Varying
from ._table import rule

# ── products ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@rule("linear linear_without_bias")
def linear(g: Graph, x: Any, w: Any, b: Any = None) -> Any:
    if x.ndim == 2:
        return g.Gemm(x, w, b, transB=1)
    product = g.MatMul(x, g.Transpose(w, perm=[1, 0]))
    return product if b is None else g.Add(product, b)


@rule("matmul")
def matmul(g: Graph, a: Any, b: Any) -> Any:
    return g.MatMul(a, b)


@rule("resample average")
def resample(g: Graph, x: Any, m: Any, *, axis: int) -> Any:
    """Resample an axis by a matrix of weights."""
    axis %= x.ndim
    if axis == x.ndim - 1:
        return g.MatMul(x, g.Transpose(m, perm=[1, 0]))
    if axis == x.ndim - 2:
        return g.MatMul(m, x)
    order = [*(d for d in range(x.ndim) if d != axis), axis]
    product = g.MatMul(g.Transpose(x, perm=order), g.Transpose(m, perm=[1, 0]))
    return g.Transpose(product, perm=[order.index(d) for d in range(x.ndim)])


@rule("add_axis")
def add_axis(g: Graph, x: Any, index: Any, *, size: int, axis: int) -> Any:
    places = g.Unsqueeze(g.Range(g.constant(0), g.scalar(size), g.constant(1)), [1])
    return resample(g, x, g.cast(g.Equal(places, g.cast(index, INT)), x.dtype), axis=axis)


# ── windows ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@rule("convolution")
def convolution(g: Graph, x: Any, w: Any, b: Any, *, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    return g.Conv(x, w, b, kernel_shape=list(w.shape[2:]), strides=list(stride), pads=[*padding, *padding],
                  dilations=list(dilation), group=groups)


@rule("convolution_input")
def convolution_input(g: Graph, y: Any, w: Any, b: Any, *, size: Any, stride: Any, padding: Any, dilation: Any,
                      groups: int = 1) -> Any:
    """Add a transposed convolution; a size beyond the shortest one is output padding."""
    least = input_length(y.shape[2:], w.shape[2:], stride, padding, dilation)
    more = [n - m for n, m in zip(size, least, strict=True)]
    if any(isinstance(m, Varying) for m in more):
        raise Refused("to a size that varies")
    shape = {"kernel_shape": list(w.shape[2:]), "strides": list(stride), "dilations": list(dilation), "group": groups}
    if any(m >= max(s, d) for m, s, d in zip(more, stride, dilation, strict=True)):
        raise Refused("with more padding of the result than the stride")
    return g.ConvTranspose(y, w, b, pads=[*padding, *padding], output_padding=more if any(more) else None, **shape)


def _pads(g: Graph, x: Any, widths: Any, kernel: Any, stride: Any, dilation: Any) -> list[int]:
    """Return the padding, equal on both sides if that gives the same number of windows."""
    n = len(kernel)
    alike = output_length(x.shape[-n:], kernel, stride, [a for a, _ in widths], dilation)
    ends = [a if count == length else b for (a, b), count, length in zip(widths, alike, g.out[0].shape[-n:],
                                                                         strict=True)]
    if any(isinstance(end, Varying) for end in ends):
        raise Refused("over a dynamic axis, whose border depends on its size")
    return [*(a for a, _ in widths), *ends]


def _pooled(g: Graph, x: Any, ndim: int, pool: Any) -> Any:
    """Pool x, with a batch axis added if needed."""
    if x.ndim == ndim + 2:
        return pool(x)
    lead = x.shape[:-ndim]
    flat = g.reshape(x, (1, prod(lead), *x.shape[-ndim:]))
    outs = pool(flat)
    many = isinstance(outs, list)
    outs = [g.reshape(Term(o.name), shape.shape) for o, shape in zip(outs if many else [outs], g.out, strict=False)]
    return outs if many else outs[0]


@rule("max_pool")
def max_pool(g: Graph, x: Any, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    values, pads = x if x.dtype.kind == "f" else g.cast(x, "float64"), _pads(g, x, widths, kernel, stride, dilation)
    out = _pooled(g, values, len(kernel), lambda x: g.MaxPool(x, kernel_shape=list(kernel), strides=list(stride),
                                                              pads=pads, dilations=list(dilation)))
    return g.cast(out, x.dtype) if x.dtype.kind != "f" else out


@rule("window_max")
def window_max(g: Graph, x: Any, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    """Add a max pooling. Indices count within a plane; ONNX's count through all planes, hence the Mod."""
    plane, pads = prod(x.shape[-len(kernel):]), _pads(g, x, widths, kernel, stride, dilation)

    def pool(x: Any) -> Any:
        return g.MaxPool(x, kernel_shape=list(kernel), strides=list(stride), pads=pads, dilations=list(dilation),
                         outputs=2)
    values, places = _pooled(g, x, len(kernel), pool)
    return [values, g.Mod(places, g.size(plane, x))]


@rule("window_sum")
def window_sum(g: Graph, x: Any, *, kernel: Any, stride: Any, widths: Any, scale: Any = 1) -> Any:
    if isinstance(scale, Varying) or any(isinstance(k, Varying) for k in (*kernel, *stride)):
        raise Refused("over windows whose size depends on a dynamic axis")

    borders = _pads(g, x, widths, kernel, stride, (1,) * len(kernel))

    def pool(x: Any) -> Any:
        pads = borders
        if any(p >= k for p, k in zip(pads, (*kernel, *kernel), strict=True)):
            n = len(kernel)
            x, pads = g.Pad(x, [0, 0, *pads[:n], 0, 0, *pads[n:]], g.like(0, g.out[0].dtype)), [0] * (2 * n)
        return g.AveragePool(x, kernel_shape=list(kernel), strides=list(stride), pads=pads, count_include_pad=1)
    out = _pooled(g, g.cast(x, "float32") if x.dtype.kind != "f" else x, len(kernel), pool)
    factor = scale * prod(kernel)
    out = (out if abs(factor - 1) < 1e-12
           else g.Mul(out, g.like(factor, x if x.dtype.kind == "f" else np.dtype("float32"))))
    return g.cast(g.Round(out), x.dtype) if x.dtype.kind != "f" else out


@rule("region_max")
def region_max(g: Graph, x: Any, places: Any, *, ndim: int) -> Any:
    """Gather each region, and reduce the last axis by the maximum."""
    if places.ndim > ndim + 1:
        raise Refused("with regions of its own for each plane")
    flat = g.reshape(x, (*x.shape[:-ndim], prod(x.shape[-ndim:])))
    cells, last = g.Gather(flat, g.cast(places, INT), axis=x.ndim - ndim), x.ndim
    best = g.GatherElements(g.Expand(places, g.Shape(cells)), g.ArgMax(cells, axis=last, keepdims=1), axis=last)
    return [g.reduce("ReduceMax", cells, [last]), g.Squeeze(best, [last])]


@rule("columns")
def columns(g: Graph, x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Gather all windows, (N, C, *K, *L), axis by axis."""
    n = len(kernel)
    if any(isinstance(d, Varying) for d in x.shape[2:]):
        raise Refused("over a dynamic axis")
    out = g.Pad(x, [0, 0, *padding, 0, 0, *padding], g.like(0, x)) if any(padding) else x
    length = output_length(x.shape[2:], kernel, stride, padding, dilation)
    for i in range(n):
        out = g.Gather(out, np.arange(kernel[i])[:, None] * dilation[i] + np.arange(length[i]) * stride[i],
                       axis=2 + 2 * i)
    return g.Transpose(out, perm=[0, 1, *range(2, 2 + 2 * n, 2), *range(3, 2 + 2 * n, 2)])


@rule("columns_added")
def columns_added(g: Graph, x: Any, *, size: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    n = len(stride)
    kernel = x.shape[2:2 + n]
    flat = g.reshape(x, (x.shape[0], x.shape[1] * prod(kernel), prod(x.shape[2 + n:])))
    return g.Col2Im(flat, g.sizes(size, x), list(kernel), strides=list(stride), pads=[*padding, *padding],
                    dilations=list(dilation))


# ── normalisation ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _ones(shape: Any, dtype: Any) -> Any:
    return np.ones(shape, dtype)


@rule("native_layer_norm")
def layer_norm(g: Graph, x: Any, w: Any, b: Any, *, ndim: int, eps: float) -> Any:
    if g.opset >= 17:
        scale = _ones(x.shape[-ndim:], x.dtype) if w is None else w
        return g.LayerNormalization(x, scale, b, axis=-ndim, epsilon=eps)
    axes = list(range(-ndim, 0))
    away = g.Sub(x, g.reduce("ReduceMean", x, axes, True))
    out = g.Div(away, g.Sqrt(g.Add(g.reduce("ReduceMean", g.Mul(away, away), axes, True), g.like(eps, x))))
    out = out if w is None else g.Mul(out, w)
    return out if b is None else g.Add(out, b)


@rule("native_group_norm")
def group_norm(g: Graph, x: Any, w: Any, b: Any, *, groups: int, eps: float) -> Any:
    rows = g.reshape(x, (x.shape[0], groups, prod(x.shape[1:]) // groups))
    rows = g.InstanceNormalization(rows, _ones(groups, x.dtype), np.zeros(groups, x.dtype), epsilon=eps)
    out = (g.reshape(Term(rows.name), x.shape) if not any(isinstance(n, Varying) for n in x.shape)
           else g.Reshape(rows, g.Shape(x)))
    last = list(range(1, x.ndim - 1))
    out = out if w is None else g.Mul(out, g.Unsqueeze(w, last) if last else w)
    return out if b is None else g.Add(out, g.Unsqueeze(b, last) if last else b)


@rule("affine_by_channel")
def affine_by_channel(g: Graph, x: Any, w: Any, b: Any, mean: Any, variance: Any, *, eps: float) -> Any:
    w = _ones(mean.shape, mean.dtype) if w is None else w
    b = np.zeros(mean.shape, mean.dtype) if b is None else b
    return g.BatchNormalization(x, w, b, mean, variance, epsilon=eps)


# ── recurrence ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _gates(g: Graph, w: Any, order: tuple[int, ...]) -> Any:
    """Return weights with their gates in ONNX's order, and an axis for the direction."""
    if w.data is not None:
        parts = np.split(w.data, len(order))
        return g.constant(np.concatenate([parts[k] for k in order])[None], name=f"{w.name}.onnx")
    parts = g.Split(w, [w.shape[0] // len(order)] * len(order), axis=0, outputs=len(order)) if len(order) > 1 else [w]
    return g.Unsqueeze(g.Concat(*[parts[k] for k in order], axis=0), [0])


def _recurrent(g: Graph, kind: str, order: tuple[int, ...], x: Any, state: Any, w: Any, r: Any, b: Any, c: Any,
               reverse: bool, **more: Any) -> Any:
    width = r.shape[-1]
    bias = None if b is None and c is None else g.Concat(*[
        np.zeros((1, len(order) * width), x.dtype) if part is None else _gates(g, part, order) for part in (b, c)],
                                                         axis=1)
    results = g.node(kind, x, _gates(g, w, order), _gates(g, r, order), bias, None,
                     *[g.Unsqueeze(s, [0]) for s in state], hidden_size=width,
                     direction="reverse" if reverse else "forward", outputs=1 + len(state), **more)
    return [g.Squeeze(results[0], [1]), *[g.Squeeze(s, [0]) for s in results[1:]]]


@rule("lstm_layer")
def lstm(g: Graph, x: Any, h: Any, c: Any, w: Any, r: Any, b: Any, b2: Any, projection: Any, *, reverse: bool = False,
         sizes: Any = None) -> Any:
    return _recurrent(g, "LSTM", (0, 3, 1, 2), x, (h, c), w, r, b, b2, reverse)


@rule("gru_layer")
def gru(g: Graph, x: Any, h: Any, w: Any, r: Any, b: Any, b2: Any, *, reverse: bool = False, sizes: Any = None) -> Any:
    return _recurrent(g, "GRU", (1, 0, 2), x, (h,), w, r, b, b2, reverse, linear_before_reset=1)


@rule("rnn_layer")
def rnn(g: Graph, x: Any, h: Any, w: Any, r: Any, b: Any, b2: Any, *, relu: bool = False, reverse: bool = False,
        sizes: Any = None) -> Any:
    return _recurrent(g, "RNN", (0,), x, (h,), w, r, b, b2, reverse, activations=["Relu" if relu else "Tanh"])
