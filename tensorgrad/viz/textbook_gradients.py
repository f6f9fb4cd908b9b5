"""Gradients of ops that the engine computes with one kernel, as courses write them.

The op table has no `grad_*` of such an op: its kernel has a way back of its own, or its definition is differentiated.
    `RULES[op][input]` is the gradient as
a function of the same form as a `grad_*`; `reading` reads it, and tests compare its numbers with those of the engine.
`WORDS[op][input]` says what a gradient is where a loop or a case list computes it.

Formulas are of the ordinary case, as all are that `reading` reads: no target of a cross entropy is one that is ignored.
The functions count these, too.
"""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

Rule = Callable[..., Any]


class Words(str):
    """A rule in words: no names and no numbers are put in it."""

    __slots__ = ()


# ── helpers that are known by their names, and those that arrange axes, which formulas leave out ──────────────────────


def softmax(xp: Any, x: Any, axis: int = 1) -> Any:
    """Probabilities, of classes along axis 1 if no axis is given; zeros where all of x is −∞."""
    some = xp.max(x, axis=axis, keepdims=True) != float("-inf")
    return xp.where(some, xp.softmax(xp.where(some, x, 0.0), axis=axis), 0.0)


def only_earlier(xp: Any, scores: Any) -> Any:
    """Scores of the places that a place sees if it does not look ahead."""
    rows, seen = scores.shape[-2:]
    return xp.where(xp.expand_dims(xp.arange(rows), 1) >= xp.arange(seen), scores, float("-inf"))


def onehot(xp: Any, target: Any, x: Any) -> Any:
    """1 at the target class of each example, 0 elsewhere, in the shape of x."""
    classes = xp.reshape(xp.arange(x.shape[1]), (-1, *(1,) * (len(x.shape) - 2)))
    return xp.where(xp.expand_dims(target, axis=1) == classes, xp.ones_like(x), 0)


def of_kept(xp: Any, values: Any, target: Any, ignore_index: int) -> Any:
    """Values of the targets, with 0 for those that are ignored."""
    return xp.where(target != ignore_index, values, 0)


def targets_counted(xp: Any, target: Any, ignore_index: int) -> Any:
    return xp.sum(of_kept(xp, xp.ones(target.shape, dtype="float64"), target, ignore_index))


def per_class(xp: Any, values: Any) -> Any:
    """Numbers of the targets as factors of all their classes."""
    return xp.expand_dims(values, axis=1)


def per_channel(xp: Any, w: Any, x: Any) -> Any:
    """Numbers of the channels, axis 1, as factors of x."""
    return xp.reshape(w, (-1, *(1,) * (len(x.shape) - 2)))


def but_channels(x: Any) -> tuple[int, ...]:
    return (0, *range(2, len(x.shape)))


def before_last(x: Any, ndim: int) -> tuple[int, ...]:
    return tuple(range(len(x.shape) - ndim))


def last_axes(x: Any, ndim: int) -> tuple[int, ...]:
    return tuple(range(len(x.shape) - ndim, len(x.shape)))


def group_mean(xp: Any, x: Any, groups: int) -> Any:
    """The mean over the group of channels that an element is in, in the shape of x."""
    grouped = xp.reshape(x, (x.shape[0], groups, prod(x.shape[1:]) // groups))
    return xp.reshape(xp.broadcast_to(xp.mean(grouped, axis=2, keepdims=True), grouped.shape), x.shape)


def as_given(xp: Any, gradient: Any, like: Any) -> Any:
    """The gradient of what was broadcast: summed over what it was broadcast along."""
    extra = len(gradient.shape) - len(like.shape)
    gradient = xp.sum(gradient, axis=tuple(range(extra)))
    return xp.sum(gradient, axis=tuple([i for i, n in enumerate(like.shape) if n == 1 != gradient.shape[i]]),
                  keepdims=True)


# ── losses ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def cross_entropy_x(xp: Any, g: Any, x: Any, target: Any, w: Any, reduction: str, ignore_index: int) -> Any:
    if w is None:
        share = g / targets_counted(xp, target, ignore_index) if reduction == "mean" else g
        return (softmax(xp, x) - onehot(xp, target, x)) * per_class(xp, of_kept(xp, share, target, ignore_index))
    weights = of_kept(xp, w[of_kept(xp, target, target, ignore_index)], target, ignore_index)
    return ((softmax(xp, x) - onehot(xp, target, x)) * per_class(xp,
                                                                 g * weights / xp.sum(weights) if reduction == "mean"
                                                                 else g * weights))


def nll_loss_x(xp: Any, g: Any, x: Any, target: Any, w: Any, reduction: str, ignore_index: int) -> Any:
    if w is None:
        share = g / targets_counted(xp, target, ignore_index) if reduction == "mean" else g
        return -onehot(xp, target, x) * per_class(xp, of_kept(xp, share, target, ignore_index))
    weights = of_kept(xp, w[of_kept(xp, target, target, ignore_index)], target, ignore_index)
    return -onehot(xp, target, x) * per_class(xp, g * weights / xp.sum(weights) if reduction == "mean" else g * weights)


# ── normalisations ────────────────────────────────────────────────────────────────────────────────────────────────────


def layer_norm_x(xp: Any, g: Any, x: Any, w: Any, ndim: int, eps: float) -> Any:
    axes = last_axes(x, ndim)
    centred = x - xp.mean(x, axis=axes, keepdims=True)
    std = xp.sqrt(xp.mean(centred * centred, axis=axes, keepdims=True) + eps)
    normed = centred / std
    gw = g if w is None else g * w
    return (gw - xp.mean(gw, axis=axes, keepdims=True) - normed * xp.mean(gw * normed, axis=axes, keepdims=True)) / std


def layer_norm_w(xp: Any, g: Any, x: Any, ndim: int, eps: float) -> Any:
    axes = last_axes(x, ndim)
    centred = x - xp.mean(x, axis=axes, keepdims=True)
    return xp.sum(g * centred / xp.sqrt(xp.mean(centred * centred, axis=axes, keepdims=True) + eps),
                  axis=before_last(x, ndim))


def layer_norm_b(xp: Any, g: Any, x: Any, ndim: int) -> Any:
    return xp.sum(g, axis=before_last(x, ndim))


def rms_norm_x(xp: Any, g: Any, x: Any, w: Any, ndim: int, eps: float) -> Any:
    axes = last_axes(x, ndim)
    rms = xp.sqrt(xp.mean(x * x, axis=axes, keepdims=True) + eps)
    normed = x / rms
    gw = g if w is None else g * w
    return (gw - normed * xp.mean(gw * normed, axis=axes, keepdims=True)) / rms


def rms_norm_w(xp: Any, g: Any, x: Any, ndim: int, eps: float) -> Any:
    return xp.sum(g * x / xp.sqrt(xp.mean(x * x, axis=last_axes(x, ndim), keepdims=True) + eps),
                  axis=before_last(x, ndim))


def group_norm_x(xp: Any, g: Any, x: Any, w: Any, groups: int, eps: float) -> Any:
    centred = x - group_mean(xp, x, groups)
    std = xp.sqrt(group_mean(xp, centred * centred, groups) + eps)
    normed = centred / std
    gw = g if w is None else g * per_channel(xp, w, x)
    return (gw - group_mean(xp, gw, groups) - normed * group_mean(xp, gw * normed, groups)) / std


def group_norm_w(xp: Any, g: Any, x: Any, groups: int, eps: float) -> Any:
    centred = x - group_mean(xp, x, groups)
    return xp.sum(g * centred / xp.sqrt(group_mean(xp, centred * centred, groups) + eps), axis=but_channels(x))


def of_channels(xp: Any, g: Any) -> Any:
    return xp.sum(g, axis=but_channels(g))


def batch_norm_x(xp: Any, g: Any, x: Any, w: Any, eps: float) -> Any:
    axes = but_channels(x)
    centred = x - xp.mean(x, axis=axes, keepdims=True)
    std = xp.sqrt(xp.mean(centred * centred, axis=axes, keepdims=True) + eps)
    normed = centred / std
    gw = g[0] if w is None else g[0] * per_channel(xp, w, x)
    return (gw - xp.mean(gw, axis=axes, keepdims=True) - normed * xp.mean(gw * normed, axis=axes, keepdims=True)) / std


def batch_norm_w(xp: Any, g: Any, x: Any, eps: float) -> Any:
    axes = but_channels(x)
    centred = x - xp.mean(x, axis=axes, keepdims=True)
    return xp.sum(g[0] * centred / xp.sqrt(xp.mean(centred * centred, axis=axes, keepdims=True) + eps), axis=axes)


def batch_norm_b(xp: Any, g: Any) -> Any:
    return xp.sum(g[0], axis=but_channels(g[0]))


def affine_x(xp: Any, g: Any, x: Any, w: Any, variance: Any, eps: float) -> Any:
    gw = g if w is None else g * per_channel(xp, w, x)
    return gw / xp.sqrt(per_channel(xp, variance, x) + eps)


def affine_w(xp: Any, g: Any, x: Any, mean: Any, variance: Any, eps: float) -> Any:
    return xp.sum(g * (x - per_channel(xp, mean, x)) / xp.sqrt(per_channel(xp, variance, x) + eps),
                  axis=but_channels(x))


def affine_mean(xp: Any, g: Any, x: Any, w: Any, variance: Any, eps: float) -> Any:
    gw = g if w is None else g * per_channel(xp, w, x)
    return -xp.sum(gw, axis=but_channels(x)) / xp.sqrt(variance + eps)


def affine_variance(xp: Any, g: Any, x: Any, w: Any, mean: Any, variance: Any, eps: float) -> Any:
    gw = g if w is None else g * per_channel(xp, w, x)
    return (-xp.sum(gw * (x - per_channel(xp, mean, x)), axis=but_channels(x))
            / (2 * (variance + eps) * xp.sqrt(variance + eps)))


# ── attention ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def weights_of(xp: Any, query: Any, key: Any, mask: Any, causal: bool, scale: float) -> Any:
    scores = query @ xp.swapaxes(key, -1, -2) * scale
    scores = scores if mask is None else scores + mask
    return softmax(xp, only_earlier(xp, scores) if causal else scores, axis=-1)


def to_scores(xp: Any, g: Any, value: Any, weights: Any) -> Any:
    gw = g @ xp.swapaxes(value, -1, -2)
    return weights * (gw - xp.sum(gw * weights, axis=(len(gw.shape) - 1,), keepdims=True))


def attention_query(xp: Any, g: Any, query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float) -> Any:
    weights = weights_of(xp, query, key, mask, causal, scale)
    return as_given(xp, to_scores(xp, g, value, weights) @ key * scale, query)


def attention_key(xp: Any, g: Any, query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float) -> Any:
    weights = weights_of(xp, query, key, mask, causal, scale)
    return as_given(xp, xp.swapaxes(to_scores(xp, g, value, weights), -1, -2) @ query * scale, key)


def attention_value(xp: Any, g: Any, query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float) -> Any:
    return as_given(xp, xp.swapaxes(weights_of(xp, query, key, mask, causal, scale), -1, -2) @ g, value)


def attention_mask(xp: Any, g: Any, query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float) -> Any:
    weights = weights_of(xp, query, key, mask, causal, scale)
    return as_given(xp, to_scores(xp, g, value, weights), mask)


RULES: dict[str, dict[str, Rule]] = {
    "cross_entropy": {"x": cross_entropy_x},
    "nll_loss": {"x": nll_loss_x},
    "native_layer_norm": {"x": layer_norm_x, "w": layer_norm_w, "b": layer_norm_b},
    "rms_norm": {"x": rms_norm_x, "w": rms_norm_w},
    "native_group_norm": {"x": group_norm_x, "w": group_norm_w, "b": of_channels},
    "native_batch_norm": {"x": batch_norm_x, "w": batch_norm_w, "b": batch_norm_b},
    "affine_by_channel": {"x": affine_x, "w": affine_w, "b": of_channels, "mean": affine_mean,
                          "variance": affine_variance},
    "attention": {"query": attention_query, "key": attention_key, "value": attention_value, "mask": attention_mask},
}


# ── definitions by simpler ops, where the op's own says less ──────────────────────────────────────────────────────────


def cross_entropy(xp: Any, x: Any, target: Any, w: Any, *, reduction: str, ignore_index: int) -> Any:
    """−log softmax(x) at the targets; those that are ignored count nothing, others as their class is weighted."""
    log_p = xp.log_softmax(x, axis=1)
    counted = target != ignore_index
    target = target * counted
    picked = xp.squeeze(xp.take_along_axis(log_p, xp.expand_dims(target, axis=1), axis=1), axis=1)
    if w is None and bool(counted.all()):
        return -picked if reduction == "none" else -xp.mean(picked) if reduction == "mean" else -xp.sum(picked)
    weights = xp.where(counted, xp.ones_like(picked) if w is None else xp.embedding(w, target), 0)
    kept = xp.where(weights == 0, 0, picked)
    losses = -kept * weights
    return (losses if reduction == "none" else xp.sum(losses) / xp.sum(weights) if reduction == "mean"
            else xp.sum(losses))


def max_pool(xp: Any, x: Any, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    """The windows side by side, and of each the first of its largest elements."""
    lead = len(x.shape) - len(kernel)
    if any(map(any, widths)):
        x = xp.pad_constant(x, widths=((0, 0),) * lead + tuple(map(tuple, widths)), value=float("-inf"))
    for i, (n, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        x = xp.unfold(x, axis=lead + i, size=d * (n - 1) + 1, step=s)
        x = x if d == 1 else xp.get_slice(x, index=(Ellipsis, slice(None, None, d)))
    windows = xp.reshape(x, (*x.shape[:lead + len(kernel)], prod(kernel)))
    largest = xp.expand_dims(xp.argmax(windows, axis=-1), -1)
    return xp.squeeze(xp.take_along_axis(windows, largest, axis=-1), axis=-1)


def variance(xp: Any, x: Any, *, axis: Any = None, correction: float = 1, keepdims: bool = False) -> Any:
    """Σ(x − mean)² / (n − correction)"""
    axes = tuple(range(len(x.shape))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    centred = x - xp.mean(x, axis=axes, keepdims=True)
    return xp.sum(centred * centred, axis=axes, keepdims=keepdims) / max(prod(x.shape[a] for a in axes) - correction, 0)


def deviation(xp: Any, x: Any, *, axis: Any = None, correction: float = 1, keepdims: bool = False) -> Any:
    return xp.sqrt(variance(xp, x, axis=axis, correction=correction, keepdims=keepdims))


DEFINITIONS: dict[str, Any] = {"cross_entropy": cross_entropy, "max_pool": max_pool, "variance": variance,
                               "deviation": deviation}


# ── what loops and lists of cases compute, in words ───────────────────────────────────────────────────────────────────

TO_LARGEST = ("each g goes to the place of the largest element of its window (the first one of equals); places in "
              "several windows add theirs up, others get 0")
OVER_PLACES = "Σ of g[n, o] over the batch n and all places, for each channel o"
REFUSED = "no formula is known: backward raises NotImplementedError"
EXTREME = ("amax and amin: g shared equally by the elements of x and value that equal out; prod: g · the product of "
           "the other factors; 0 for what was not reduced")
RNN = "δ[t] = (g[t] + δ[t + 1] @ w_hh) · (1 − h[t]²) for tanh, · 1 where h[t] > 0 for relu"
LSTM = ("δ[t] the gates' (dc · c̃ · i · (1 − i), dc · c[t − 1] · f · (1 − f), dc · i · (1 − c̃²), dh · tanh(c) · o · "
        "(1 − o)), c̃ = tanh(…), dh = g[t] + δ[t + 1] @ w_hh, dc = dh · o · (1 − tanh(c)²) + dc[t + 1] · f[t + 1]; dh "
        "passes w_hr if there is one")
GRU = ("δ[t] the gates' (δn · hn · r · (1 − r), dh · (h[t − 1] − n) · z · (1 − z), δn), δn = dh · (1 − z) · (1 − n²), "
       "dh = g[t] + dh[t + 1] · z[t + 1] + δʰ[t + 1] @ w_hh; δʰ is δ with δn · r for δn, hn = W_hn h[t − 1] + b_hn")


def through_time(steps: str, hidden: str = "δ", **more: str) -> dict[str, str]:
    """The gradients of a recurrent layer: of each step's gates, what a linear layer gives, summed over the steps."""
    return {"x": f"δ[t] @ w_ih at each step t, from the last to the first, with {steps}", **more,
            "w_ih": f"Σ of δ[t]ᵀ @ x[t] over the steps t, with {steps}",
            "w_hh": f"Σ of {hidden}[t]ᵀ @ h[t − 1] over the steps t, with {steps}",
            "b_ih": f"Σ of δ[t] over the steps t and the batch, with {steps}",
            "b_hh": f"Σ of {hidden}[t] over the steps t and the batch, with {steps}"}


WORDS: dict[str, dict[str, str]] = {
    "max_pool": {"x": TO_LARGEST},
    "window_max": {"x": TO_LARGEST},
    "region_max": {"x": "each g goes to the place of the largest element of its region; places in several regions add "
                        "theirs up, others get 0"},
    "window_sum": {"x": "scale · each g, added to all places of its window"},
    "window_spread": {"x": "scale · Σ of g over each window"},
    "convolution": {"x": "each g[n, o] · w[o, c], added to the window of x[n, c] that it came from: Σ_o g[n, o] ∗ w[o, "
                         "c], a full convolution",
                    "w": "Σ_n x[n, c] ⋆ g[n, o]: each window of x times its g, over all places and the batch",
                    "b": OVER_PLACES},
    "convolution_input": {"y": "Σ_c g[n, c] ⋆ w[o, c]: each window of g times w",
                          "w": "Σ_n g[n, c] ⋆ y[n, o]: each window of g times its y, over all places and the batch",
                          "b": OVER_PLACES},
    "convolution_weight": {"y": "Σ_c x[n, c] ⋆ g[o, c]: each window of x times g",
                           "x": "each y[n, o] · g[o, c], added to the window of x[n, c] that it was multiplied with"},
    "rnn_layer": through_time(RNN, h=f"δ[t] @ w_hh of the first step, with {RNN}"),
    "lstm_layer": through_time(LSTM, h=f"δ[t] @ w_hh of the first step, with {LSTM}",
                               c=f"dc · f of the first step, with {LSTM}",
                               w_hr="Σ of (dh before w_hr)ᵀ @ (o · tanh(c)) over the steps t"),
    "gru_layer": through_time(GRU, hidden="δʰ", h=f"dh · z + δʰ @ w_hh of the first step, with {GRU}"),
    "logcumsumexp": {"x": "at each j, Σ of g[i] · exp(x[j] − out[i]) over i ≥ j along the axis"},
    "as_strided": {"x": "each g added to the place in memory that its element was read from; elements of x that share "
                        "a place share the sum"},
    "scatter_extreme": {"x": EXTREME, "value": EXTREME},
    "one_zero": {"x": "g, if no number in `zeros` exceeds 1; else backward raises RuntimeError"},
    "qr_factor": {"a": "(g₀ + Q @ (M + Mᴴ)) @ R⁻ᴴ, with M the lower half (half the diagonal) of R @ g₁ᴴ − g₀ᴴ @ Q; "
                       "further columns of a wide A add Q @ their g₁"},
    "eig_pairs": {"a": "V⁻ᴴ @ (diag(g₀) + what is free in Vᴴ @ g₁ to turn the columns of V, divided by the conjugate "
                       "of λⱼ − λᵢ) @ Vᴴ"},
    "svd_factor": {"a": "U @ (diag(g₁) + what turns the columns of U and V, from g₀ and g₂, divided by Sⱼ² − Sᵢ²) @ "
                        "Vᴴ, and what is at right angles to U and V, divided by S"},
    "ctc_loss": {"x": "(exp(x) − how likely each class is read at each time, given the labels) · g, for x of "
                      "log_softmax; 0 after the last step"},
    "sparse_tensor": {"values": "g at the places of the values"},
    "sparse_values": {"x": "a sparse array of g at the places of the values, 0 elsewhere"},
    "sparse_to_dense": {"x": "g at the places of x, 0 elsewhere; all of g if not masked"},
    "embedding_sparse": {"x": "a sparse array of g in the rows that were taken, 0 elsewhere; parts of one row add up"},
    "gather_sparse": {"x": "a sparse array of g at the places that were taken, 0 elsewhere; parts of one place add up"},
    "sparse_matmul": {"values": "(g @ bᵀ) at the places of the values in the sparse matrix A; (b @ gᵀ) there if A is "
                                "transposed",
                      "b": "Aᵀ @ g, with A the sparse matrix of the values; A @ g if A is transposed"},
    "sampled_matmul": {"a": "G @ b, with G the sparse matrix of g at its places",
                       "b": "Gᵀ @ a, with G the sparse matrix of g at its places"},
    "count_norm": {"x": "0: a count has no slope"},
    "igamma": {"a": REFUSED},
    "igammac": {"a": REFUSED},
    "standard_gamma_grad": {"alpha": REFUSED, "x": REFUSED},
    "multi_margin_loss": {"x": "p · w[target] · short^(p − 1) · g / classes at each class that is short of the margin, "
                               "and minus their sum at the target, with short = margin − x[target] + x; the mean also "
                               "divides by the batch"},
    "multilabel_margin_loss": {"x": "for each target t and other class i with x[t] < x[i] + 1: g / classes at i, and "
                                    "−g / classes at t; the mean also divides by the batch"},
}
