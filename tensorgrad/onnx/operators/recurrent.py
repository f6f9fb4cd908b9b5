"""Recurrent layers and attention. https://onnx.ai/onnx/operators/"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any

from ... import _VF
from ... import api as torch
from ...nn import functional as F
from ._table import operator

Function = Callable[[Any], Any]
# name → (function of x, alpha and beta; their defaults)
ACTIVATIONS: dict[str, tuple[Any, float, float]] = {
    "relu": (lambda x, a, b: torch.relu(x), 0, 0), "tanh": (lambda x, a, b: torch.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: torch.sigmoid(x), 0, 0), "affine": (lambda x, a, b: a * x + b, 1, 0),
    "leakyrelu": (lambda x, a, b: F.leaky_relu(x, a), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: torch.where(x > a, x, torch.zeros_like(x)), 1, 0),
    "scaledtanh": (lambda x, a, b: a * torch.tanh(b * x), 1, 1),
    "hardsigmoid": (lambda x, a, b: torch.clamp(a * x + b, 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: F.elu(x, a), 1, 0), "softsign": (lambda x, a, b: F.softsign(x), 0, 0),
    "softplus": (lambda x, a, b: F.softplus(x), 0, 0)}


def _functions(names: Any, alphas: Any, betas: Any, usual: list[str], directions: int) -> list[list[Function]]:
    """Return the activations of each direction. Each function with a parameter takes the next given one."""
    chosen = list(names) if names else usual * directions
    first, second = iter(alphas or ()), iter(betas or ())
    found: list[Function] = []
    for name in chosen:
        compute, alpha, beta = ACTIVATIONS[name.lower()]
        found.append(partial(lambda x, compute, a, b: compute(x, a, b), compute=compute,
                             a=next(first, alpha) if alpha or name.lower() == "affine" else alpha,
                             b=next(second, beta) if name.lower() in ("affine", "scaledtanh", "hardsigmoid") else beta))
    return [found[i * len(usual):(i + 1) * len(usual)] for i in range(directions)]


def _clipped(limit: float | None) -> Function:
    return (lambda x: x) if not limit else lambda x: torch.clamp(x, -limit, limit)


Step = Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]


def _run(x: Any, states: tuple[Any, ...], step: Step, lengths: Any, backward: bool) -> tuple[Any, tuple[Any, ...]]:
    """Run a step over time. Where a sequence has ended, its states stay and its outputs are 0."""
    outs: list[Any] = [None] * x.shape[0]
    for t in reversed(range(x.shape[0])) if backward else range(x.shape[0]):
        new = step(x[t], states)
        if lengths is None:
            states, outs[t] = new, new[0]
            continue
        going = (lengths > t).unsqueeze(1)
        states = tuple(torch.where(going, a, b) for a, b in zip(new, states, strict=True))
        outs[t] = torch.where(going, new[0], torch.zeros_like(new[0]))
    return torch.stack(outs), states


def _recurrent(x: Any, w: Any, lengths: Any, initial: tuple[Any, ...], hidden: int, direction: str, layout: int,
               make: Callable[[int], tuple[Any, Step]], outputs: int) -> Any:
    """Run a layer in its directions, and return (all outputs, the last states)."""
    x = x.transpose(0, 1) if layout else x
    initial = tuple(s.transpose(0, 1) if layout and s is not None else s for s in initial)
    directions = w.shape[0]
    outs, ends = [], []
    for d in range(directions):
        states = tuple(torch.zeros(x.shape[1], hidden, dtype=x.dtype) if s is None else s[d] for s in initial)
        project, step = make(d)
        y, last = _run(project(x), states, step, lengths, direction == "reverse" or d == 1)
        outs.append(y)
        ends.append(last)
    y = torch.stack(outs, 1)
    lasts = [torch.stack(part) for part in zip(*ends, strict=True)]
    if layout:
        y, lasts = y.permute(2, 0, 1, 3), [s.transpose(0, 1) for s in lasts]
    return (y, *lasts)[:max(outputs, 1)] if outputs > 1 else y


def _biases(b: Any, d: int, rows: int) -> tuple[Any, Any]:
    return (0, 0) if b is None else (b[d, :rows], b[d, rows:])


@operator("RNN", fixed=(5,), outputs=True)
def rnn(x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None, *, activations: Any = None,
        activation_alpha: Any = None, activation_beta: Any = None, clip: float | None = None,
        direction: str = "forward", hidden_size: int | None = None, layout: int = 0, output_sequence: int = 0,
        outputs: int) -> Any:
    """h' = f(W x + R h + b)"""
    hidden, bound = r.shape[-1], _clipped(clip)
    functions = _functions(activations, activation_alpha, activation_beta, ["tanh"], w.shape[0])

    def make(d: int) -> tuple[Any, Step]:
        (f,), (wb, rb) = functions[d], _biases(b, d, hidden)
        return (lambda x: torch.matmul(x, w[d].t()) + wb + rb,
                lambda row, s: (f(bound(row + torch.matmul(s[0], r[d].t()))),))
    return _recurrent(x, w, lengths, (initial,), hidden, direction, layout, make, outputs)


@operator("GRU", fixed=(5,), outputs=True)
def gru(x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None, *, activations: Any = None,
        activation_alpha: Any = None, activation_beta: Any = None, clip: float | None = None,
        direction: str = "forward", hidden_size: int | None = None, layout: int = 0, linear_before_reset: int = 0,
        output_sequence: int = 0, outputs: int) -> Any:
    """z, r = f(…);  n = g(W x + R (r · h) + b), or g(W x + b + r · (R h + b)) with `linear_before_reset`;
    h' = (1 − z) n + z h
    """
    hidden, bound = r.shape[-1], _clipped(clip)
    functions = _functions(activations, activation_alpha, activation_beta, ["sigmoid", "tanh"], w.shape[0])

    def make(d: int) -> tuple[Any, Step]:
        (f, g), (wb, rb) = functions[d], _biases(b, d, 3 * hidden)
        gates, new = r[d, :2 * hidden].t(), r[d, 2 * hidden:].t()
        gate_bias, new_bias = (rb[:2 * hidden], rb[2 * hidden:]) if b is not None else (0, 0)

        def step(row: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
            h, = states
            z, reset = f(bound(row[:, :2 * hidden] + torch.matmul(h, gates) + gate_bias)).chunk(2, 1)
            inner = (reset * (torch.matmul(h, new) + new_bias) if linear_before_reset
                     else torch.matmul(reset * h, new) + new_bias)
            n = g(bound(row[:, 2 * hidden:] + inner))
            return ((1 - z) * n + z * h,)
        return lambda x: torch.matmul(x, w[d].t()) + wb, step
    return _recurrent(x, w, lengths, (initial,), hidden, direction, layout, make, outputs)


@operator("LSTM", fixed=(5, 6), outputs=True)
def lstm(x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None, cell: Any = None,
         peephole: Any = None, *, activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None,
         clip: float | None = None, direction: str = "forward", hidden_size: int | None = None, input_forget: int = 0,
         layout: int = 0, output_sequence: int = 0, outputs: int) -> Any:
    """i, o, f, c = W x + R h + b in this order;  c' = f c + i g(c);  h' = o h(c')"""
    plain = not (activations or clip or input_forget or layout) and lengths is None and peephole is None
    if plain and direction != "reverse" and (initial is None) == (cell is None):
        return _whole_lstm(x, w, r, b, initial, cell, outputs)
    hidden, bound = r.shape[-1], _clipped(clip)
    functions = _functions(activations, activation_alpha, activation_beta, ["sigmoid", "tanh", "tanh"], w.shape[0])

    def make(d: int) -> tuple[Any, Step]:
        (f, g, h), (wb, rb) = functions[d], _biases(b, d, 4 * hidden)
        pi, po, pf = peephole[d].chunk(3) if peephole is not None else (0, 0, 0)

        def step(row: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
            i, o, forget, c = (row + torch.matmul(states[0], r[d].t())).chunk(4, 1)
            old = states[1]
            i = f(bound(i + pi * old))
            forget = 1 - i if input_forget else f(bound(forget + pf * old))
            c = forget * old + i * g(bound(c))
            return f(bound(o + po * c)) * h(c), c
        return lambda x: torch.matmul(x, w[d].t()) + wb + rb, step
    return _recurrent(x, w, lengths, (initial, cell), hidden, direction, layout, make, outputs)


def _whole_lstm(x: Any, w: Any, r: Any, b: Any, initial: Any, cell: Any, outputs: int) -> Any:
    """Return an LSTM's results by the package's own layer, whose gates are in the order i, f, c, o."""
    hidden, directions = r.shape[-1], w.shape[0]
    flat = []
    for d in range(directions):
        flat += [_in_order(w[d], hidden), _in_order(r[d], hidden)]
        if b is not None:
            flat += [_in_order(b[d, :4 * hidden], hidden), _in_order(b[d, 4 * hidden:], hidden)]
    zero = torch.zeros(directions, x.shape[1], hidden, dtype=x.dtype) if initial is None else None
    y, h, c = _VF.lstm(x, (zero, zero) if zero is not None else (initial, cell), flat, b is not None, 1, 0.0, False,
                         directions == 2, False)
    y = y.reshape(y.shape[0], y.shape[1], directions, hidden).transpose(1, 2)
    return (y, h, c)[:max(outputs, 1)] if outputs > 1 else y


def _in_order(rows: Any, hidden: int) -> Any:
    i, o, f, c = rows.split(hidden)
    return torch.cat([i, f, c, o])


# ── attention ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _heads(x: Any, count: int) -> Any:
    return x.reshape(x.shape[0], x.shape[1], count, -1).transpose(1, 2) if x.ndim == 3 else x


@operator("Attention", fixed=(3,), outputs=True)
def attention(q: Any, k: Any, v: Any, mask: Any = None, past_k: Any = None, past_v: Any = None, lengths: Any = None, *,
              is_causal: int = 0, kv_num_heads: int | None = None, q_num_heads: int | None = None,
              qk_matmul_output_mode: int = 0, scale: float | None = None, softcap: float = 0.0,
              softmax_precision: int | None = None, outputs: int) -> Any:
    """softmax(q kᵀ · scale + mask) v, with groups of query heads that share keys and values."""
    flat = q.ndim == 3
    q, k, v = _heads(q, q_num_heads or 0), _heads(k, kv_num_heads or 0), _heads(v, kv_num_heads or 0)
    k = k if past_k is None else torch.cat([past_k, k], 2)
    v = v if past_v is None else torch.cat([past_v, v], 2)
    shared = q.shape[1] // k.shape[1]
    keys, values = (t.repeat_interleave(shared, 1) if shared > 1 else t for t in (k, v))
    factor = sqrt(1 / sqrt(q.shape[-1]) if scale is None else scale)
    raw = torch.matmul(q * factor, (keys * factor).transpose(-1, -2))
    bias = _bias(q, keys, mask, is_causal, 0 if past_k is None else past_k.shape[2], lengths)
    masked = raw if bias is None else raw + bias
    capped = softcap * torch.tanh(masked / softcap) if softcap else masked
    wide = capped.float() if softmax_precision == 1 else capped
    weights = torch.softmax(wide, -1).to(q.dtype)
    weights = torch.where(torch.isnan(weights), torch.zeros_like(weights), weights)
    y = torch.matmul(weights, values)
    y = y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1) if flat else y
    if outputs < 2:
        return y
    return (y, k, v, (raw, masked, capped, weights)[qk_matmul_output_mode])[:outputs]


def _bias(q: Any, keys: Any, mask: Any, causal: int, past: int, lengths: Any) -> Any:
    """Return what is added to the products: −∞ where a key must not be seen."""
    rows, columns = q.shape[2], keys.shape[2]
    bias = None
    if mask is not None:
        bias = mask if mask.dtype != torch.bool else torch.zeros(mask.shape, dtype=q.dtype).masked_fill(
            ~mask, float("-inf"))
        if bias.shape[-1] < columns:
            bias = F.pad(bias, [0, columns - bias.shape[-1]], value=float("-inf"))
    if lengths is not None:
        beyond = torch.arange(columns) >= lengths.reshape(-1, 1, 1, 1)
        more = torch.zeros(beyond.shape, dtype=q.dtype).masked_fill(beyond, float("-inf"))
        bias = more if bias is None else bias + more
    if causal:
        first = past if lengths is None else (lengths.reshape(-1, 1, 1, 1) - rows)
        seen = torch.arange(columns) <= torch.arange(rows).unsqueeze(1) + first
        more = torch.zeros(seen.shape, dtype=q.dtype).masked_fill(~seen, float("-inf"))
        bias = more if bias is None else bias + more
    return bias


@operator("RotaryEmbedding", fixed=(1, 2))
def rotary_embedding(x: Any, cos: Any, sin: Any, places: Any = None, *, interleaved: int = 0, num_heads: int = 0,
                     rotary_embedding_dim: int = 0) -> Any:
    """Turn pairs of features by the angle of their place."""
    shape = x.shape
    heads = x.reshape(shape[0], shape[1], num_heads, -1) if x.ndim == 3 else x.transpose(1, 2)
    turned = rotary_embedding_dim or heads.shape[-1]
    part, rest = heads[..., :turned], heads[..., turned:]
    if places is not None:
        cos, sin = cos[places], sin[places]
    cos, sin = cos[..., :turned // 2].unsqueeze(2), sin[..., :turned // 2].unsqueeze(2)
    a, b = (part[..., ::2], part[..., 1::2]) if interleaved else part.chunk(2, -1)
    real, imaginary = a * cos - b * sin, a * sin + b * cos
    part = torch.stack([real, imaginary], -1).flatten(-2) if interleaved else torch.cat([real, imaginary], -1)
    found = torch.cat([part, rest], -1)
    return found.reshape(shape) if x.ndim == 3 else found.transpose(1, 2)
