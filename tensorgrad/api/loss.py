"""Losses that PyTorch has at its root, with the reduction as a number: 0 none (theirs, unless given), 1 mean, 2 sum.
nn.functional has them with names.

https://pytorch.org/docs/stable/nn.functional.html#loss-functions
"""
from __future__ import annotations

from math import pi
from typing import Any

from .._tensor import Tensor
from ..advice import misfit
from ..core.dispatch import SCALAR_TYPES, fresh, xp
from ..core.tape import TensorBase
from ._arguments import broadcast_shape, check_tensor, each_example, in_batch, in_dtype, integer, is_hollow
from ._halves import once_rounded
from ._kinds import Ints
from ._register import public
from .distance import pairwise_distance

NAMES = ("none", "mean", "sum")


def reduced(losses: Any, reduction: int) -> Any:
    """Return all losses, their mean or their sum."""
    if type(reduction) is not int:
        reduction = integer(reduction, "reduction")
    return losses.mean() if reduction == 1 else losses.sum() if reduction == 2 else losses


@public(method=False)
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     pos_weight: Tensor | None = None, reduction: int = 0) -> Tensor:
    """−w (p y log σ(x) + (1 − y) log(1 − σ(x))).

    Input: (*), floating point; target, weight and pos_weight p that broadcast with it
    Output: (), or the broadcast shape with reduction 0
    Errors: RuntimeError if the shapes do not broadcast, or for a target of bools or integers; NotImplementedError for
        an input that is not of floating point
    https://pytorch.org/docs → torch.nn.functional.binary_cross_entropy_with_logits

    >>> import tensorgrad as torch
    >>> torch.binary_cross_entropy_with_logits(torch.tensor([0., 1000.]), torch.tensor([1., 1.]))
    tensor([0.6931, 0.0000])
    """
    if input.array.dtype.kind in "biuc":
        raise NotImplementedError(f"\"log_sigmoid_cpu\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    if target.dtype.is_complex:
        raise RuntimeError(f"result type {SCALAR_TYPES[target.dtype.name]} can't be cast to the desired output type "
                           f"{SCALAR_TYPES[input.dtype.name]}")
    if target.array.dtype.kind == "b":
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                           "`logical_xor()` operator instead.")
    for t in (target, weight, pos_weight):
        if t is not None and t.array.shape != input.array.shape:
            broadcast_shape(input, t)
    if all(t is None or t.array.dtype == target.array.dtype for t in (input, weight, pos_weight)):
        return xp.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction=NAMES[reduction])
    if target.array.dtype.kind in "iu":
        raise RuntimeError(f"result type {SCALAR_TYPES[input.dtype.name]} can't be cast to the desired output type "
                           f"{SCALAR_TYPES[target.dtype.name]}")
    steep = xp.log_sigmoid(input)                       # in the dtype of the input
    if pos_weight is not None:
        steep = ((pos_weight - 1) * target + 1) * steep
    # PyTorch computes in the memory of 1 − target
    losses = in_dtype((1 - target) * input - steep, target.dtype)
    return reduced(losses if weight is None else in_dtype(losses * weight, target.dtype), reduction)


@public(method=False)
def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """y (log y − x), for log probabilities x and probabilities y.

    Input: (*), floating point; target that broadcasts with it, log probabilities with `log_target`
    Output: (), or the broadcast shape with reduction 0
    Errors: RuntimeError for other dtypes, or if the shapes do not broadcast
    https://pytorch.org/docs → torch.nn.functional.kl_div

    >>> import tensorgrad as torch
    >>> torch.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([1., 0.]), 2)
    tensor(0.6931)
    """
    if input.is_complex() or target.is_complex():
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if not (input.is_floating_point() and target.is_floating_point()):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    return _divergence(input, target, reduction, log_target)


@once_rounded
def _divergence(input: Any, target: Any, reduction: int, log_target: bool) -> Any:
    return reduced(target.exp() * (target - input) if log_target else target.xlogy(target) - target * input, reduction)


@public(method=False)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """exp x − y x, or x − y log(x + ε) if x is no logarithm; `full` adds Stirling's y log y − y + log(2π y) / 2 where y
    > 1.

    Input: (*), log of the rate, or the rate itself unless `log_input`; target, counts that broadcast with it
    Output: (), or the broadcast shape with reduction 0
    Errors: RuntimeError if the shapes do not broadcast
    https://pytorch.org/docs → torch.nn.functional.poisson_nll_loss

    >>> import tensorgrad as torch
    >>> torch.poisson_nll_loss(torch.tensor([0.]), torch.tensor([3.]), True, False, 1e-8, 0)
    tensor([1.])
    """
    check_tensor(target, "poisson_nll_loss", "target", 2)
    return _poisson(input, target, log_input, full, eps, integer(reduction, "reduction"))


@once_rounded
def _poisson(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * pi * target).log()
        losses = losses + stirling.masked_fill(target <= 1, 0)
    return reduced(losses, reduction)


# ── margins ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@public(method=False)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """x where y = 1, max(0, margin − x) where y = −1.

    Input: (*); target of 1 and −1 that broadcasts with it
    Output: (), or the broadcast shape with reduction 0
    Errors: RuntimeError if the shapes do not broadcast
    https://pytorch.org/docs → torch.nn.functional.hinge_embedding_loss

    >>> import tensorgrad as torch
    >>> torch.hinge_embedding_loss(torch.tensor([0.5, 0.25]), torch.tensor([1, -1]))
    tensor([0.5000, 0.7500])
    """
    check_tensor(target, "hinge_embedding_loss", "target", 2)
    far = ((int(margin) if input.array.dtype.kind in "iu" else float(margin)) - input).clamp(min=0)
    losses = xp.where(target != 1, far, far.new_zeros(())) + xp.where(target != -1, input, input.new_zeros(()))
    return reduced(losses, reduction)


@public(method=False)
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                        reduction: int = 0) -> Tensor:
    """max(0, margin − y (x₁ − x₂)).

    Input: input1, input2 and target, of 1 and −1, in shapes that broadcast
    Output: (), or the broadcast shape with reduction 0
    Errors: RuntimeError if the shapes do not broadcast
    https://pytorch.org/docs → torch.nn.functional.margin_ranking_loss

    >>> import tensorgrad as torch
    >>> torch.margin_ranking_loss(torch.tensor([1.]), torch.tensor([3.]), torch.tensor([1.]))
    tensor([2.])
    """
    return reduced((-target * (input1 - input2) + float(margin)).clamp(min=0), reduction)


@public(method=False)
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                          reduction: int = 0) -> Tensor:
    """1 − cos(x₁, x₂) where y = 1, max(0, cos(x₁, x₂) − margin) where y = −1.

    Input: input1 and input2 (N, D), target (N); or (D) and ()
    Output: (), or the target's shape with reduction 0
    Errors: RuntimeError for other numbers of dimensions or shapes that do not broadcast
    https://pytorch.org/docs → torch.nn.functional.cosine_embedding_loss

    >>> import tensorgrad as torch
    >>> torch.cosine_embedding_loss(torch.tensor([[1., 0.]]), torch.tensor([[0., 1.]]), torch.tensor([1.]))
    tensor([1.])
    """
    if target.ndim > 1:
        raise misfit("0D or 1D target tensor expected, multi-target not supported")
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError(f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs "
                           f"with sizes {list(input1.shape)} and {list(input2.shape)}.")
    squares = [(x * x).sum(-1) + 1e-12 for x in (input1, input2)]
    cosine = (input1 * input2).sum(-1) / (squares[0] * squares[1]).sqrt()
    zero = cosine.new_zeros(())
    losses = xp.where(target == 1, 1 - cosine, zero) + xp.where(target == -1, (cosine - margin).clamp(min=0), zero)
    return reduced(losses, reduction)


@public(method=False)
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False, reduction: int = 0) -> Tensor:
    """max(0, |a − p| − |a − n| + margin).

    |·| is the p-norm along the last axis; `swap` takes the lesser of |a − n| and |p − n|.

    Input: anchor, positive and negative (N, D) or (D), in shapes that broadcast
    Output: (), or (N) or () with reduction 0
    Errors: RuntimeError if the numbers of dimensions differ or the shapes do not broadcast
    https://pytorch.org/docs → torch.nn.functional.triplet_margin_loss

    >>> import tensorgrad as torch
    >>> torch.triplet_margin_loss(torch.tensor([[0.]]), torch.tensor([[2.]]), torch.tensor([[1.]]))
    tensor([2.])
    """
    check_triplet(anchor, positive, negative)
    return _triplet(anchor, positive, negative, margin, p, eps, swap, reduction)


@once_rounded
def _triplet(anchor: Any, positive: Any, negative: Any, margin: Any, p: Any, eps: float, swap: bool,
             reduction: int) -> Any:
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return reduced((margin + near - far).clamp(min=0), reduction)


def check_triplet(anchor: Any, positive: Any, negative: Any) -> None:
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of "
                           f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
                           f"{negative.ndim}D inputs")


# ── sequences ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CALLED = " (while checking arguments for ctc_loss_allocate_outputs)"


@public(method=False)
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Ints | Tensor, target_lengths: Ints | Tensor,
             blank: int = 0, reduction: int = 0, zero_infinity: bool = False) -> Tensor:
    """−log of the probability of all ways to read the labels: A. Graves et al. (2006).

    Input: log_probs (T, N, C) or (T, C), from log_softmax; targets (N, S), or all labels one after the other;
        input_lengths and target_lengths (N)
    Output: (), or (N) with reduction 0; the mean divides each loss by its target's length first
    Errors: RuntimeError for a blank outside of the classes, lengths that do not fit, or lengths that are not N;
        NotImplementedError unless log_probs is of floating point
    https://pytorch.org/docs → torch.nn.functional.ctc_loss

    >>> import tensorgrad as torch
    >>> x = torch.zeros(2, 1, 2).log_softmax(2)
    >>> torch.ctc_loss(x, torch.tensor([[1]]), (2,), (1,))        # -log(3/4): 11, 01 and 10 of the four ways
    tensor([0.2877])
    """
    if in_batch(targets, input_lengths, target_lengths):
        return each_example(ctc_loss, log_probs, targets, input_lengths, target_lengths, blank, reduction,
                            zero_infinity)
    for name, lengths in (("input", input_lengths), ("target", target_lengths)):
        if isinstance(lengths, TensorBase) and lengths.array.dtype.kind not in "iu":
            raise RuntimeError(f"{name}_lengths must be integral")
    if log_probs.array.dtype.kind in "biuc":
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{SCALAR_TYPES[log_probs.dtype.name]}'")
    batched = log_probs.ndim == 3
    if is_hollow(targets, input_lengths, target_lengths):
        return reduced(log_probs.new_zeros(log_probs.shape[1:2] if batched else ()), reduction)
    x = log_probs if batched else log_probs.unsqueeze(1)
    steps, counts = (_lengths(v, x, name) for v, name in ((input_lengths, "input"), (target_lengths, "target")))
    if not 0 <= blank < x.shape[2]:
        raise RuntimeError("blank must be in label range")
    labels = _rows(targets if batched or targets.ndim == 2 else targets.unsqueeze(0) if targets.ndim
                   else targets.reshape(1, 1), counts)
    _check_lengths(steps, x.shape[0])
    backend = type(x._storage)
    on_device = [fresh(backend.asarray(v), backend) for v in (labels, steps, counts)]
    losses = xp.ctc_loss(x, *on_device, blank=blank, zero_infinity=zero_infinity)
    losses = losses if batched else losses.squeeze(0)
    if reduction != 1:
        return reduced(losses, reduction)
    lengths = on_device[2].clamp(min=1).to(losses.dtype)
    return (losses / (lengths if batched else lengths.squeeze(0))).mean()


def _lengths(value: Any, x: Any, name: str) -> Any:
    """Lengths as an array of the host."""
    import numpy as np
    if hasattr(value, "_storage"):
        value = type(value._storage).host(value.array)
    elif isinstance(value, (tuple, list)):
        value = [int(v) for v in value]
    lengths = np.asarray(value, dtype=np.int64).reshape(-1)
    if len(lengths) != x.shape[1]:
        raise RuntimeError(f"{name}_lengths must be of size batch_size")
    return lengths


def _rows(targets: Any, counts: Any) -> Any:
    """Return the labels as a host array, a row per sequence."""
    import numpy as np
    labels = type(targets._storage).host(targets.array).astype(np.int64)
    if counts.size and counts.min() < 0:
        raise RuntimeError(f"Expected target_lengths to have value at least 0, but got value {counts.min()}{CALLED}")
    longest = int(counts.max(initial=0))
    if labels.ndim == 1:
        if len(labels) != counts.sum():
            raise RuntimeError(f"Expected tensor to have size {counts.sum()} at dimension 0, but got size "
                               f"{len(labels)} for argument #2 'targets'{CALLED}")
        rows = np.zeros((len(counts), longest), np.int64)
        rows[np.arange(longest) < counts[:, None]] = labels
        return rows
    if labels.ndim != 2:
        raise RuntimeError(f"Expected 1 to 2 dimensions, but got {labels.ndim}-dimensional tensor for argument #2 "
                           f"'targets'{CALLED}")
    if labels.shape[1] < longest:
        raise RuntimeError(f"Expected tensor to have size at least {longest} at dimension 1, but got size "
                           f"{labels.shape[1]} for argument #2 'targets'{CALLED}")
    return np.where(np.arange(labels.shape[1]) < counts[:, None], labels, 0)


def _check_lengths(steps: Any, most: int) -> None:
    if steps.size and steps.min() < 0:
        raise RuntimeError(f"Expected input_lengths to have value at least 0, but got value {steps.min()}{CALLED}")
    if steps.size and steps.max() > most:
        raise RuntimeError(f"Expected input_lengths to have value at most {most}, but got value {steps.max()}{CALLED}")
