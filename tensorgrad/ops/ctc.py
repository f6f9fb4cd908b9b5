"""Connectionist temporal classification. A. Graves et al. (2006)

A sequence of labels, with a blank before, between and after them, is read from left to right while time goes on: each step stays, goes one
place on, or skips a blank between two different labels. α[t, s] is the log probability of all ways to stand at place s at time t, β[t, s] that
of all ways from there to an end, without the step at t itself.
"""
from __future__ import annotations

from .base import Op


class CtcLoss(Op):
    """−log of the summed probability of all ways to read the labels; x is (T, N, C), the labels are (N, S)"""

    kinds = "f"

    def forward(xp, x, labels, steps, counts, *, blank, zero_infinity):
        places, skips = path(xp, labels, blank)
        last = xp.maximum(steps - 1, 0)
        alpha = read(xp, emitted(xp, x, places), skips)[last, xp.arange(len(last))]
        loss = -total(xp, alpha, counts)
        loss = xp.where(steps == 0, xp.where(counts == 0, 0, float("inf")), loss).astype(x.dtype)
        return xp.where(xp.isinf(loss), 0, loss).astype(x.dtype) if zero_infinity else loss

    def grad_x(xp, g, x, labels, steps, counts, blank, zero_infinity):
        posterior, loss = xp.ctc_posterior(x, labels, steps, counts, blank=blank)
        slope = (xp.exp(x) - posterior) * xp.expand_dims(g, -1)      # as PyTorch has it: right for an x from log_softmax
        counts_ = xp.expand_dims(xp.arange(x.shape[0]), -1) < steps
        counts_ = counts_ & (loss != float("inf")) if zero_infinity else counts_
        return xp.where(xp.expand_dims(counts_, -1), slope, 0)


class CtcPosterior(Op):
    """How likely each class is read at each time, given that the labels are read; and −log of how likely that is"""

    outputs = ("posterior", "loss")
    kinds = "f"

    def forward(xp, x, labels, steps, counts, *, blank):
        places, skips = path(xp, labels, blank)
        lit = emitted(xp, x, places)
        alpha = read(xp, lit, skips)
        loss = -total(xp, alpha[xp.maximum(steps - 1, 0), xp.arange(len(steps))], counts)
        beta = read_backwards(xp, lit, skips, steps, counts)
        share = xp.exp(alpha + beta + loss.reshape(-1, 1))
        posterior = xp.zeros(x.shape, dtype=x.dtype)
        return xp.scatter_add(posterior, share, xp.broadcast_to(places, share.shape), axis=2), loss


def path(xp, labels, blank):
    """The places to read from, (N, 2S + 1), and which of them can be reached by a skip."""
    n, s = labels.shape
    places = xp.full((n, 2 * s + 1), blank, dtype=labels.dtype)
    places[:, 1::2] = labels
    skips = xp.zeros(places.shape, dtype=bool)
    skips[:, 2:] = (places[:, 2:] != blank) & (places[:, 2:] != places[:, :-2])
    return places, skips


def emitted(xp, x, places):
    """The log probability of each place's class, at each time."""
    return xp.take_along_axis(x, xp.broadcast_to(places, (x.shape[0], *places.shape)), axis=2)


def later(xp, a, by):
    """The value `by` places before each place; nothing comes from before the first."""
    out = xp.full(a.shape, -float("inf"), dtype=a.dtype)
    out[:, by:] = a[:, :-by]
    return out


def read(xp, lit, skips):
    """α"""
    alpha = xp.full(lit.shape, -float("inf"), dtype=lit.dtype)
    alpha[:1, :, :2] = lit[:1, :, :2]
    for t in range(1, len(lit)):
        a = alpha[t - 1]
        come = xp.logaddexp(a, later(xp, a, 1))
        come = xp.logaddexp(come, xp.where(skips, later(xp, a, 2), -float("inf")))
        alpha[t] = come.astype(lit.dtype) + lit[t]
    return alpha


def read_backwards(xp, lit, skips, steps, counts):
    """β: the same from the ends, which are the last label and the blank after it."""
    ends = xp.arange(lit.shape[2]).reshape(1, -1)
    ends = (ends == 2 * counts.reshape(-1, 1)) | (ends == 2 * counts.reshape(-1, 1) - 1)
    beta = xp.full(lit.shape, -float("inf"), dtype=lit.dtype)
    for t in range(len(lit) - 1, -1, -1):
        here = xp.full(lit.shape[1:], -float("inf"), dtype=lit.dtype)
        if t + 1 < len(lit):
            b = (beta[t + 1] + lit[t + 1])[:, ::-1]
            skipped = xp.where(skips, (beta[t + 1] + lit[t + 1]), -float("inf"))[:, ::-1]
            here = xp.logaddexp(xp.logaddexp(b, later(xp, b, 1)), later(xp, skipped, 2))[:, ::-1]
        at_end = (steps == t + 1).reshape(-1, 1)
        beta[t] = xp.where(at_end, xp.where(ends, 0, -float("inf")), here)
    return beta


def total(xp, alpha, counts):
    """The log probability of having come to an end."""
    rows = xp.arange(len(counts))
    whole, label = alpha[rows, 2 * counts], alpha[rows, xp.maximum(2 * counts - 1, 0)]
    return xp.where(counts == 0, whole, xp.logaddexp(whole, label)).astype(alpha.dtype)
