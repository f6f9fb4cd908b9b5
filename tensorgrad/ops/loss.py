"""Losses: how far predictions are from targets. `reduction` is 'none', 'mean' or 'sum'."""
from __future__ import annotations

from math import prod

from .base import Composite, Op


def reduced(xp, losses, reduction):
    return losses if reduction == "none" else xp.mean(losses) if reduction == "mean" else xp.sum(losses)


def spread(g, shape, reduction):
    """The gradient of each of the losses that were reduced, as a number or array to multiply by."""
    return g / prod(shape) if reduction == "mean" and prod(shape) else g


class Loss(Op):
    """A loss of predictions x and targets y of one shape."""

    __slots__ = ()
    onnx = "definition"
    casts = "promote"
    kinds = "f"
    batch = "defined"


# ── distances ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class MseLoss(Loss):
    """(x − y)²"""

    kernel_name = "mse_cpu"
    kinds = "fc"

    def forward(xp, x, y, *, reduction):
        d = x - y
        return reduced(xp, d * d, reduction)

    def grad_x(xp, g, x, y, reduction):    return (x - y) * (spread(g, x.shape, reduction) * 2)
    def grad_y(xp, g, x, y, reduction):    return (y - x) * (spread(g, x.shape, reduction) * 2)


class SmoothL1Loss(Loss):
    """(x − y)² / 2β where |x − y| < β, |x − y| − β/2 elsewhere"""

    kernel_name = "smooth_l1_cpu"

    def forward(xp, x, y, *, reduction, beta):
        d = xp.absolute(x - y)
        return reduced(xp, xp.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta), reduction)

    def grad_x(xp, g, x, y, reduction, beta):    return xp.clamp((x - y) / beta, -1, 1) * spread(g, x.shape, reduction)
    def grad_y(xp, g, x, y, reduction, beta):    return xp.clamp((y - x) / beta, -1, 1) * spread(g, x.shape, reduction)


class HuberLoss(Loss):
    """(x − y)² / 2 where |x − y| ≤ δ, δ (|x − y| − δ/2) elsewhere"""

    kernel_name = "huber_cpu"

    def forward(xp, x, y, *, reduction, delta):
        d = xp.absolute(x - y)
        return reduced(xp, xp.where(d <= delta, d * d * 0.5, (d - 0.5 * delta) * delta), reduction)

    def grad_x(xp, g, x, y, reduction, delta):    return xp.clamp(x - y, -delta, delta) * spread(g, x.shape, reduction)
    def grad_y(xp, g, x, y, reduction, delta):    return xp.clamp(y - x, -delta, delta) * spread(g, x.shape, reduction)


class SoftMarginLoss(Loss):
    """log(1 + exp(−x y)), for y of 1 or −1"""

    def forward(xp, x, y, *, reduction):
        z = -x * y
        return reduced(xp, xp.maximum(z, 0) + xp.log1p(xp.exp(-xp.absolute(z))), reduction)

    def grad_x(xp, g, x, y, reduction):    return -y * xp.sigmoid(-x * y) * spread(g, x.shape, reduction)
    def grad_y(xp, g, x, y, reduction):    return -x * xp.sigmoid(-x * y) * spread(g, x.shape, reduction)


# ── yes or no ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def weighed(x, w):
    return x if w is None else x * w


class BinaryCrossEntropy(Loss):
    """−w (y log x + (1 − y) log(1 − x)), with the logarithms no smaller than −100"""

    kernel_name = "binary_cross_entropy"

    def check(xp, x, y, w, *, reduction):
        for values, name in ((x, "input"), (y, "target")):
            if not xp.all((values >= 0) & (values <= 1)):
                raise RuntimeError(f"all elements of {name} should be between 0 and 1")

    def forward(xp, x, y, w, *, reduction):
        losses = (y - 1) * xp.maximum(xp.log1p(-x), -100) - y * xp.maximum(xp.log(x), -100)
        return reduced(xp, weighed(losses, w), reduction)

    def grad_x(xp, g, x, y, w, reduction):
        return weighed((x - y) / xp.maximum((1 - x) * x, 1e-12), w) * spread(g, x.shape, reduction)

    def grad_y(xp, g, x, w, reduction):
        return weighed(xp.log1p(-x) - xp.log(x), w) * spread(g, x.shape, reduction)


def softplus_of_minus(xp, x):
    """log(1 + exp(−x)) = −log σ(x)"""
    return xp.maximum(-x, 0) + xp.log1p(xp.exp(-xp.absolute(x)))


class BinaryCrossEntropyWithLogits(Loss):
    """−w (p y log σ(x) + (1 − y) log(1 − σ(x))), stable for any x; p weighs the positive targets"""

    def forward(xp, x, y, w, p, *, reduction):
        soft = softplus_of_minus(xp, x)
        losses = (1 - y) * x + weighed(soft, None if p is None else (p - 1) * y + 1)
        return reduced(xp, weighed(losses, w), reduction)

    def grad_x(xp, g, x, y, w, p, reduction):
        s = xp.sigmoid(x)
        return weighed(s - y if p is None else (p * y + 1 - y) * s - p * y, w) * spread(g, x.shape, reduction)

    def grad_y(xp, g, x, w, p, reduction):
        slope = -x if p is None else (p - 1) * softplus_of_minus(xp, x) - x
        return weighed(slope, w) * spread(g, x.shape, reduction)

    def grad_w(xp, g, x, y, p, reduction):
        soft = softplus_of_minus(xp, x)
        losses = (1 - y) * x + weighed(soft, None if p is None else (p - 1) * y + 1)
        return losses * spread(g, x.shape, reduction)

    def grad_p(xp, g, x, y, w, reduction):
        return weighed(y * softplus_of_minus(xp, x), w) * spread(g, x.shape, reduction)


# ── one of several classes ────────────────────────────────────────────────────────────────────────────────────────────


def check_classes(xp, target, count, ignored=None):
    """Refuse a target that is no class."""
    wrong = (target < 0) | (target >= count)
    wrong = wrong if ignored is None else wrong & (target != ignored)
    if xp.any(wrong):
        raise IndexError(f"Target {int(target[wrong][0])} is out of bounds.")


def class_weights(xp, like, target, w, ignore_index):
    """Return each target's weight, 0 for ignored ones, and the targets as an index along axis 1."""
    kept = target != ignore_index
    target = xp.where(kept, target, 0)
    weights = xp.ones(target.shape, dtype=like.dtype) if w is None else xp.embedding(w, target)
    return xp.where(kept, weights, 0), xp.expand_dims(target, axis=1)


class NllLoss(Op):
    """−w[t] · x[t] for the target class t along axis 1; 'mean' divides by the sum of the weights"""

    kernel_name = "nll_loss_out_frame"
    flat = True
    batch = "defined"
    onnx = "definition"

    def name(self):
        return f"NllLoss{'2D' if len(self.edges[0].shape) > 2 else ''}Backward0"

    def check(xp, x, target, w, *, reduction, ignore_index):
        check_classes(xp, target, x.shape[1], ignore_index)

    def forward(xp, x, target, w, *, reduction, ignore_index):
        weights, at = class_weights(xp, x, target, w, ignore_index)
        losses = xp.squeeze(xp.take_along_axis(x, at, axis=1), axis=1)
        losses = xp.where(weights == 0, 0, -losses * weights)
        return (losses if reduction == "none" else xp.sum(losses) / xp.sum(weights) if reduction == "mean"
                else xp.sum(losses))

    def grad_x(xp, g, target, w, x_shape, reduction, ignore_index):
        weights, at = class_weights(xp, g, target, w, ignore_index)
        values = -g * weights / xp.sum(weights) if reduction == "mean" else -g * weights
        return xp.place_along_axis(xp.expand_dims(values, axis=1), at, shape=x_shape, axis=1)


class CrossEntropy(Composite):
    """−w[t] · log softmax(x)[t] for the target class t along axis 1"""

    torch_name = "NllLoss"
    kinds = "f"
    batch = "defined"
    onnx = "definition"

    def forward(xp, x, target, w, *, reduction, ignore_index):
        return xp.nll_loss(xp.log_softmax(x, axis=1), target, w, reduction=reduction, ignore_index=ignore_index)


class MultiMarginLoss(Op):
    """Σᵢ w[t] max(0, margin − x[t] + x[i])^p / n over the classes i ≠ t, for each row"""

    kernel_name = "multi_margin_loss_cpu_kernel"
    kinds = "f"
    batch = "defined"
    onnx = "definition"

    def check(xp, x, target, w, *, p, margin, reduction):
        check_classes(xp, target, x.shape[1])

    def forward(xp, x, target, w, *, p, margin, reduction):
        short, _ = shortfalls(xp, x, target, margin)
        losses = weighed(xp.sum(short if p == 1 else short * short, axis=1) / x.shape[1],
                         None if w is None else xp.embedding(w, target))
        return reduced(xp, losses, reduction)

    def grad_x(xp, g, x, target, w, p, margin, reduction):
        short, at = shortfalls(xp, x, target, margin)
        slope = (short > 0) * (xp.ones_like(short) if p == 1 else short * 2)
        slope = weighed(slope, None if w is None else xp.expand_dims(xp.embedding(w, target), axis=1))
        to_target = xp.place_along_axis(xp.sum(slope, axis=1, keepdims=True), at, shape=x.shape, axis=1)
        g = spread(g, target.shape, reduction) / x.shape[1]
        return (slope - to_target) * (xp.expand_dims(g, axis=1) if len(g.shape) else g)


def shortfalls(xp, x, target, margin):
    """Return by how much each class but the target violates the margin, and the targets as an index along axis 1."""
    at = xp.expand_dims(target, axis=1)
    short = xp.maximum(x - xp.take_along_axis(x, at, axis=1) + margin, 0)
    others = xp.place_along_axis(xp.ones(at.shape, dtype=x.dtype), at, shape=x.shape, axis=1) == 0
    return short * others, at


class MultilabelMarginLoss(Op):
    """Σ max(0, 1 − x[t] + x[i]) / n over the classes t that a row of targets lists, up to the first −1, and the classes
    i that it does not
    """

    kernel_name = "multilabel_margin_loss_forward_out_frame"
    kinds = "f"

    def check(xp, x, target, *, reduction):
        if xp.any((target < -1) | (target >= x.shape[1])):
            raise RuntimeError("argument #2 'target' is out of range")

    def forward(xp, x, target, *, reduction):
        short, _, _ = pairs_too_near(xp, x, target)
        return reduced(xp, xp.sum(short, axis=(1, 2)) / x.shape[1], reduction)

    def grad_x(xp, g, x, target, reduction):
        short, at, listed = pairs_too_near(xp, x, target)
        near = (short > 0) * xp.ones_like(short)
        to_listed = xp.scatter_add(xp.zeros_like(x), xp.sum(near, axis=2) * listed, at, axis=1)
        g = spread(g, target.shape[:1], reduction) / x.shape[1]
        return (xp.sum(near, axis=1) - to_listed) * (xp.expand_dims(g, axis=1) if len(g.shape) else g)


def pairs_too_near(xp, x, target):
    """max(0, 1 − x[t] + x[i]) for each place t of the targets and each class i; the targets, and which of their places
    count.
    """
    listed = xp.cumsum((target < 0) * xp.ones(target.shape, dtype="int64"), axis=1) == 0
    at = xp.where(listed, target, 0)
    count = xp.scatter_add(xp.zeros_like(x), listed * xp.ones(x.shape, dtype=x.dtype), at, axis=1)
    short = xp.maximum(xp.expand_dims(x, axis=1) - xp.expand_dims(xp.take_along_axis(x, at, axis=1), axis=2) + 1, 0)
    return short * (xp.expand_dims(listed, axis=2) & xp.expand_dims(count == 0, axis=1)), at, listed
