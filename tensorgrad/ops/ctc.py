"""Connectionist temporal classification. A. Graves et al. (2006)

A sequence of labels, with a blank before, between and after them, is read from left to right: each time step stays,
moves one place on, or skips a blank between two different labels. α[t, s] is the log probability of all paths to place
s at time t, β[t, s] that of all paths from there to an end, without the step at t itself.
"""
from __future__ import annotations

from math import inf

from .base import Op
from .indexing import ARRAY


class CtcLoss(Op):
    """−log of the summed probability of all ways to read the labels; x is (T, N, C), the labels are (N, S)"""

    kinds = "f"

    def infer(x, *others, **params):
        return x.shape[1:2], x.dtype

    def forward(xp, x, labels, steps, counts, *, blank, zero_infinity):
        places, skips = path(xp, labels, blank)
        loss = -total(xp, at_last_step(xp, read(xp, emitted(xp, x, places), skips), steps), counts)
        loss = xp.where(steps == 0, xp.where(counts == 0, xp.zeros_like(loss), inf), loss)
        return xp.where(xp.isinf(loss), 0, loss) if zero_infinity else loss

    def grad_x(xp, g, x, labels, steps, counts, blank, zero_infinity):
        posterior, loss = xp.ctc_posterior(x, labels, steps, counts, blank=blank)
        # as PyTorch has it: right for an x from log_softmax
        slope = (xp.exp(x) - posterior) * xp.expand_dims(g, -1)
        counts_ = xp.expand_dims(xp.arange(x.shape[0]), -1) < steps
        counts_ = counts_ & (loss != inf) if zero_infinity else counts_
        return xp.where(xp.expand_dims(counts_, -1), slope, 0)


class CtcPosterior(Op):
    """The probability of each class at each time, given that the labels are read; and −log of the probability of
    that
    """

    outputs = ("posterior", "loss")
    kinds = "f"

    def infer(x, *others, **params):
        return [(x.shape, x.dtype), (x.shape[1:2], x.dtype)]

    def forward(xp, x, labels, steps, counts, *, blank):
        places, skips = path(xp, labels, blank)
        lit = emitted(xp, x, places)
        alpha = read(xp, lit, skips)
        loss = -total(xp, at_last_step(xp, alpha, steps), counts)
        share = xp.permute_dims(xp.exp(alpha + read_backwards(xp, lit, skips, steps, counts) + loss), (0, 2, 1))
        return xp.scatter_add(xp.zeros_like(x), share, xp.broadcast_to(places, share.shape), axis=2), loss


def path(xp, labels, blank):
    """The places to read from, (N, 2S + 1), and which of them can be reached by a skip, (2S + 1, N)."""
    n, s = labels.shape
    pairs = xp.reshape(xp.stack([xp.full_like(labels, blank), labels], axis=2), (n, 2 * s))
    places = xp.concat([pairs, xp.full((n, 1), blank, dtype=labels.dtype)], axis=1)
    skips = (places[:, 2:] != blank) & (places[:, 2:] != places[:, :-2])
    skips = xp.concat([xp.zeros((n, min(2, 2 * s + 1)), dtype=bool), skips], axis=1)
    return places, xp.contiguous(xp.permute_dims(skips, (1, 0)))


def emitted(xp, x, places):
    """The log probability of each place's class, at each time: (T, 2S + 1, N), where places that follow each other are
    slices without gaps.
    """
    lit = xp.take_along_axis(x, xp.broadcast_to(places, (x.shape[0], *places.shape)), axis=2)
    return xp.contiguous(xp.permute_dims(lit, (0, 2, 1)))


def nowhere(xp, lit):
    """Two places beside the others, which nothing comes from."""
    return xp.full((2, lit.shape[2]), -inf, dtype=lit.dtype)


def read(xp, lit, skips):
    """α"""
    before = nowhere(xp, lit)
    alpha = [xp.concat([before, xp.where(xp.arange(lit.shape[1])[:, None] < 2, lit[0], -inf)], axis=0)]
    for t in range(1, lit.shape[0]):
        a = alpha[-1]
        come = xp.logaddexp(xp.logaddexp(a[2:], a[1:-1]), xp.where(skips, a[:-2], -inf))
        alpha.append(xp.concat([before, come + lit[t]], axis=0))
    return xp.stack(alpha, axis=0)[:, 2:]


def read_backwards(xp, lit, skips, steps, counts):
    """Return β, starting from the ends: the last label and the blank after it."""
    ends, last = xp.arange(lit.shape[1])[:, None], 2 * counts
    ends = xp.where((ends == last) | (ends == last - 1), xp.zeros(lit.shape[1:], dtype=lit.dtype), -inf)
    after = nowhere(xp, lit)
    skipped = xp.concat([skips, after > 0], axis=0)[2:]
    here, beta = xp.full(lit.shape[1:], -inf, dtype=lit.dtype), []
    for t in range(lit.shape[0] - 1, -1, -1):
        if beta:
            b = xp.concat([beta[-1] + lit[t + 1], after], axis=0)
            here = xp.logaddexp(xp.logaddexp(b[:-2], b[1:-1]), xp.where(skipped, b[2:], -inf))
        beta.append(xp.where(steps == t + 1, ends, here))
    return xp.stack(beta[::-1], axis=0)


def at_last_step(xp, alpha, steps):
    """α where each sequence ends in time: (N, 2S + 1)."""
    return xp.index(alpha, xp.maximum(steps - 1, 0), xp.arange(steps.shape[0]), template=(ARRAY, slice(None), ARRAY))


def total(xp, alpha, counts):
    """The log probability of having come to an end."""
    rows = xp.arange(counts.shape[0])
    whole, label = (xp.index(alpha, rows, at, template=(ARRAY, ARRAY))
                    for at in (2 * counts, xp.maximum(2 * counts - 1, 0)))
    return xp.where(counts == 0, whole, xp.logaddexp(whole, label))
