"""Losses. https://pytorch.org/docs/stable/nn.functional.html#loss-functions"""
from __future__ import annotations

from collections.abc import Callable
from math import log, pi
from typing import Any

from ... import api as tg
from ..._tensor import Tensor
from ...advice import misfit
from ...api._arguments import anywhere, in_dtype
from ...api._halves import once_rounded
from ...api._kinds import Ints, Number
from ...api.linear import linear
from ...api.loss import check_triplet
from ...core.casting import result_type
from ...core.dispatch import SCALAR_TYPES, xp
from ...core.step_names import called
from ...messages.warn_once import warn
from .. import _reduction
from .distance import pairwise_distance

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
           "ctc_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
           "linear_cross_entropy", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
           "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss",
           "soft_margin_loss",
           "triplet_margin_loss", "triplet_margin_with_distance_loss"]


def reduction_of(reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    """Return the checked name of the reduction; the two deprecated flags override it."""
    if size_average is not None or reduce is not None:
        return _reduction.legacy_get_string(size_average, reduce)
    return reduction if reduction in _reduction.NUMBERS else ("none", "mean", "sum")[_reduction.get_enum(reduction)]


def number_of(reduction: str, size_average: Any = None, reduce: Any = None) -> int:
    return _reduction.NUMBERS[reduction_of(reduction, size_average, reduce)]


def reduced(losses: Any, reduction: str) -> Any:
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


# ── one of several classes ────────────────────────────────────────────────────────────────────────────────────────────


def _check_classes(input: Any, target: Any, weight: Any) -> None:
    """Raise PyTorch's errors for class indices that do not fit the input."""
    x, y = input.array.shape, target.array.shape
    if not x:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(x) != 1 and (not y or x[0] != y[0]):
        raise misfit(f"Expected input batch_size ({x[0]}) to match target batch_size ({y[0] if y else 0}).", ValueError)
    classes = x[1] if len(x) > 1 else x[0]
    if len(x) <= 2 and len(y) > 1:
        raise misfit("0D or 1D target tensor expected, multi-target not supported")
    if len(x) > 2 and y[1:] != x[2:]:
        if len(x) == 4 and len(y) == 3:
            raise RuntimeError(f"size mismatch (got input: {list(x)} , target: {list(y)}")
        raise misfit(f"Expected target size {[x[0], *x[2:]]}, got {list(y)}")
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {SCALAR_TYPES[target.dtype.name]}")
    if len(x) == len(y) == 1 and y[0] != 1:
        raise misfit(f"For 1D input, 1D target must have size 1, but got target size: {y[0]}", ValueError)
    if weight is not None and weight.array.shape != (classes,):
        raise RuntimeError("weight tensor should be defined either for all or no classes" if len(x) > 2 else
                           f"weight tensor should be defined either for all {classes} classes or no classes but got "
                           f"weight tensor of shape: {list(weight.shape)}")
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {SCALAR_TYPES[input.dtype.name]} but found "
                           f"{SCALAR_TYPES[weight.dtype.name]}")


def _by_class(op: Any, input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    """Run a loss of class indices; a sample without a batch becomes a batch of one."""
    _check_classes(input, target, weight)
    single = input.array.ndim == 1
    if single:
        input, target = input.unsqueeze(0), target.reshape(1)
    out = op(input, target, weight, reduction=reduction, ignore_index=ignore_index)
    return out.squeeze(0) if single and reduction == "none" else out


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
             ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """−w[y] x[y], for log probabilities x and classes y.

    Classes equal to ignore_index add nothing; 'mean' divides by the sum of the weights w[y].

    Input: (N, C, …) or (C), floating point; target (N, …) or (), int64 or uint8; weight (C)
    Output: (), or the target's shape with reduction='none'
    Errors: ValueError if the batch sizes differ or for another reduction; RuntimeError for a target or weight of
        another shape or dtype; IndexError for a class out of range; NotImplementedError for an input of integers
    https://pytorch.org/docs → torch.nn.functional.nll_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-1., -2.], [-3., -4.]]), torch.tensor([0, 1]))
    tensor(2.5000)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if not input.is_floating_point() and input.ndim:
        if target.dtype not in (tg.int64, tg.uint8):
            raise RuntimeError(f"expected target dtype to be Long or Byte, but got {SCALAR_TYPES[target.dtype.name]}")
        raise NotImplementedError(f"\"nll_loss_out_frame\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    return _by_class(xp.nll_loss, input, target, weight, ignore_index, reduction)


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """−w[y] log softmax(x)[y], for classes y, or −Σ w y log softmax(x), for probabilities y.

    Classes equal to ignore_index add nothing; 'mean' divides by the sum of the weights w[y], or by N for probabilities.

    Input: (N, C, …) or (C), floating point; target: class indices (N, …) or (), int64 or uint8, or probabilities in the
        input's shape; weight (C)
    Output: (), or the shape of the class indices with reduction='none'
    Errors: ValueError if the batch sizes differ, or for another reduction; RuntimeError
        for a target or weight of another shape or dtype, or unless 0 ≤ label_smoothing ≤ 1; IndexError for a class out
        of range; NotImplementedError for an input of integers
    https://pytorch.org/docs → torch.nn.functional.cross_entropy

    >>> import tensorgrad as torch
    >>> torch.nn.functional.cross_entropy(torch.tensor([[0., 1000.], [0., 0.]]), torch.tensor([1, 0]))
    tensor(0.3466)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if input.array.shape == target.array.shape:
        return _of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    if not input.is_floating_point():
        raise NotImplementedError(f"\"log_softmax_lastdim_kernel_impl\" not implemented for "
                                  f"'{SCALAR_TYPES[input.dtype.name]}'")
    if not label_smoothing:
        return _by_class(xp.cross_entropy, input, target, weight, ignore_index, reduction)
    return _smoothed(input, target, weight, ignore_index, reduction, label_smoothing)


def _of_probabilities(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str,
                      label_smoothing: float) -> Any:
    if not target.is_floating_point():
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got "
                           f"{SCALAR_TYPES[target.dtype.name]}")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    axis = 0 if input.ndim <= 1 else 1
    classes = input.shape[axis] if input.ndim else 1
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(f"cross_entropy: weight tensor should be defined either for all {classes} classes or no "
                           f"classes but got weight tensor of shape: {list(weight.shape)}")
    return _expected(input, target, weight, axis, classes, reduction, label_smoothing)


@once_rounded
def _expected(input: Any, target: Any, weight: Any, axis: int, classes: int, reduction: str,
              label_smoothing: float) -> Any:
    """−Σ w y log softmax(x) over the classes."""
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    weighed = tg.log_softmax(input, axis) * target
    if weight is not None:
        weighed = weighed * _along(weight, input, axis)
    if reduction == "mean":
        return called(-weighed.sum() / (input.numel() / classes), "DivBackward1")
    return -weighed.sum() if reduction == "sum" else -weighed.sum(axis)


def _along(weight: Any, input: Any, axis: int) -> Any:
    return weight.reshape([-1 if i == axis else 1 for i in range(input.ndim)])


def _smoothed(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str, share: float) -> Any:
    """(1 − share) of the loss of the target, and share of the mean of all classes'."""
    axis = 0 if input.ndim == 1 else 1
    logs = tg.log_softmax(input, axis)
    of_target = _by_class(xp.nll_loss, logs, target, weight, ignore_index, reduction)
    of_all = -(logs if weight is None else logs * _along(weight, input, axis)).sum(axis)
    kept = target.reshape(of_all.shape) != ignore_index
    of_all = xp.where(kept, of_all, of_all.new_zeros(()))
    if reduction == "mean":
        counts = (kept if weight is None
                  else weight[target.clamp(min=0, max=input.shape[axis] - 1).long()].reshape(kept.shape) * kept)
        of_all = of_all.sum() / counts.sum()
    elif reduction == "sum":
        of_all = of_all.sum()
    return of_target * (1 - share) + of_all * (share / input.shape[axis])


def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
                         weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options: Any = None) -> Tensor:
    """cross_entropy(linear(input)).

    The options select how PyTorch saves memory; the result does not depend on them.

    Input: (N, I) or (I); linear_weight (C, …, I); linear_bias (C, …); target (N, …), or probabilities (N, C, …)
    Output: (), or (N, …) with reduction='none'
    Errors: RuntimeError for other numbers of dimensions, sizes that do not fit, or ignore_index with probabilities;
        else as for cross_entropy
    https://pytorch.org/docs → torch.nn.functional.linear_cross_entropy

    >>> import tensorgrad as torch
    >>> torch.nn.functional.linear_cross_entropy(torch.ones(1, 2), torch.zeros(4, 2), torch.tensor([3]))
    tensor(1.3863)
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(f"expected equal input and linear_weight last dimensions (in_features), got "
                           f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively")
    outs = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != outs:
        raise RuntimeError(f"expected linear_bias shape {outs}, got {tuple(linear_bias.shape)}")
    if len(outs) > 1 and input.ndim == 1:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires "
                           f"batched input, (N, {input.shape[-1]}), got unbatched input with shape "
                           f"{tuple(input.shape)}")
    logits = (*input.shape[:-1], *outs)
    if tuple(target.shape) == logits and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if options is not None and (len(outs) > 1 or reduction not in _reduction.NUMBERS or label_smoothing
                                or target.dtype is not tg.int64):
        warn("linear_cross_entropy: ``options`` ignored; chunked path needs reduction in "
             "{'mean','sum','none'}, label_smoothing == 0, "
             f"target.dtype == int64, out_features == (). Got reduction={reduction!r}, "
             f"label_smoothing={label_smoothing}, target.dtype={target.dtype}, out_features={outs[1:]}, "
             f"tracing=False, linear_bias.shape={None if linear_bias is None else tuple(linear_bias.shape)}.",
             again=True)
    return _linear_cross_entropy(input, linear_weight.reshape(-1, linear_weight.shape[-1]),
                                 None if linear_bias is None else linear_bias.reshape(-1), logits, target, weight,
                                 -100 if ignore_index is None else ignore_index, reduction, label_smoothing)


@once_rounded
def _linear_cross_entropy(input: Any, linear_weight: Any, linear_bias: Any, logits: Any, target: Any, weight: Any,
                          ignore_index: int, reduction: str, label_smoothing: float) -> Any:
    return cross_entropy(linear(input, linear_weight, linear_bias).reshape(logits), target, weight,
                         ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)


def multi_margin_loss(input: Tensor, target: Tensor, p: Number = 1, margin: Number = 1.0, weight: Tensor | None = None,
                      size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Σᵢ w[y] max(0, margin − x[y] + x[i])ᵖ / C over the classes i ≠ y.

    Input: (N, C) or (C), floating point; target (N) or (), int64; weight (C)
    Output: (), or (N) with reduction='none'
    Errors: ValueError unless p is 1 or 2, for a weight that is not 1-dimensional, or another reduction; RuntimeError
        for a target or weight of another size or dtype, or a class out of range; NotImplementedError for an input that
        is not of floating point
    https://pytorch.org/docs → torch.nn.functional.multi_margin_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0., 0.5]]), torch.tensor([0]))
    tensor(0.7500)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    _check_rows(input)
    rows, classes = input.shape if input.ndim == 2 else (1, input.numel())
    if target.numel() != rows or target.ndim > 1:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
                           f"samples (batch size). Expected target size [{rows}], but got {list(target.shape)}. Input "
                           f"has shape {list(input.shape)}.")
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    _check_kernel(input, target, "multi_margin_loss_cpu_kernel")
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {SCALAR_TYPES[input.dtype.name]} but found "
                           f"{SCALAR_TYPES[weight.dtype.name]}")
    single = target.ndim == 0
    try:
        out = xp.multi_margin_loss(input.reshape(rows, classes), target.reshape(rows), weight, p=p, margin=margin,
                                   reduction=reduction)
    except IndexError:
        raise RuntimeError("target out of range") from None
    return out.squeeze(0) if single and reduction == "none" else out


def _check_kernel(input: Any, target: Any, kernel: str) -> None:
    """Raise the errors for a dtype that a kernel lacks, and for classes that are no int64."""
    if input.array.dtype.kind not in "fV":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    if target.dtype is not tg.int64:
        raise RuntimeError(f"expected scalar type Long but found {SCALAR_TYPES[target.dtype.name]}")


def _check_rows(input: Any) -> None:
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
                           f"{list(input.shape)}")


# ── several of several classes ────────────────────────────────────────────────────────────────────────────────────────


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                           reduction: str = "mean") -> Tensor:
    """Σ max(0, 1 − x[y] + x[i]) / C over the classes y that a row of targets lists, up to the first −1, and the others.

    Input: (N, C) or (C), floating point; target in the input's shape, int64
    Output: (), or (N) with reduction='none'
    Errors: RuntimeError for a target of another shape or dtype, or an input of more dimensions; ValueError for another
        reduction; NotImplementedError for an input that is not of floating point
    https://pytorch.org/docs → torch.nn.functional.multilabel_margin_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.multilabel_margin_loss(torch.tensor([[0., 0.5]]), torch.tensor([[0, -1]]))
    tensor(0.7500)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    _check_rows(input)
    if tuple(target.shape) != tuple(input.shape):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    _check_kernel(input, target, "multilabel_margin_loss_forward_out_frame")
    if input.ndim == 2:
        return xp.multilabel_margin_loss(input, target, reduction=reduction)
    out = xp.multilabel_margin_loss(input.reshape(1, -1), target.reshape(1, -1), reduction=reduction)
    return out.squeeze(0) if reduction == "none" else out


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: bool | None = None, reduce: bool | None = None,
                                reduction: str = "mean") -> Tensor:
    """The mean over classes of −w (y log σ(x) + (1 − y) log σ(−x)).

    Input: (N, C) or (C); target in the input's shape, of 0 and 1; weight that broadcasts to it
    Output: (), or (N) with reduction='none'
    Errors: RuntimeError if the shapes do not broadcast; ValueError for another reduction; NotImplementedError for an
        input of integers
    https://pytorch.org/docs → torch.nn.functional.multilabel_soft_margin_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.multilabel_soft_margin_loss(torch.tensor([[0., 1000.]]), torch.tensor([[1., 1.]]))
    tensor(0.3466)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    losses = -(target * xp.log_sigmoid(input) + (1 - target) * xp.log_sigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return reduced(losses.sum(-1) / input.shape[-1], reduction)


# ── yes or no ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _size(t: Any) -> str:
    return f"torch.Size({list(t.shape)})"


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """−w (y log x + (1 − y) log(1 − x)), with logarithms of at least −100.

    Input: (*), probabilities from 0 to 1; target in the input's shape and dtype; weight that broadcasts to it
    Output: (), or the input's shape with reduction='none'
    Errors: ValueError if the shapes differ or for another reduction; RuntimeError for an input outside of [0, 1], a
        target of another dtype, or a weight that does not broadcast
    https://pytorch.org/docs → torch.nn.functional.binary_cross_entropy

    >>> import tensorgrad as torch
    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5, 0.]), torch.tensor([1., 1.]))
    tensor(50.3466)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if target.size() != input.size():
        raise misfit(f"Using a target size ({_size(target)}) that is different to the input size ({_size(input)}) is "
                         "deprecated. Please ensure they "
                         "have the same size.", ValueError)
    if weight is not None:
        try:
            weight = weight.expand(tg.broadcast_shapes(target.shape, weight.shape))
        except RuntimeError:
            raise RuntimeError(f"Attempting to broadcast a dimension of length {weight.shape[-1]} at -1! Mismatching "
                               f"argument at index 1 had {_size(weight)};"
                               f" but expected shape should be broadcastable to {list(target.shape)}") from None
    if target.dtype is not input.dtype:
        raise RuntimeError(f"Found dtype {SCALAR_TYPES[target.dtype.name]} but expected "
                           f"{SCALAR_TYPES[input.dtype.name]}")
    return xp.binary_cross_entropy(input, target, weight, reduction=reduction)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: bool | None = None, reduce: bool | None = None,
                                     reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """−w (p y log σ(x) + (1 − y) log(1 − σ(x))), stable for any x.

    Input: (*), any numbers, floating point; target in the input's shape; weight and pos_weight p that broadcast to it
    Output: (), or the input's shape with reduction='none'
    Errors: ValueError if the shapes differ or for another reduction; RuntimeError for a target of integers, or weights
        that do not broadcast; NotImplementedError for an input that is not of floating point
    https://pytorch.org/docs → torch.nn.functional.binary_cross_entropy_with_logits

    >>> import tensorgrad as torch
    >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([0., 1000.]), torch.tensor([1., 0.]))
    tensor(500.3466)
    """
    number = number_of(reduction, size_average, reduce)
    if tuple(target.shape) != tuple(input.shape):
        raise misfit(f"Target size ({_size(target)}) must be the same as input size ({_size(input)})", ValueError)
    return tg.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:
    """log(1 + exp(−y x)), for y of 1 or −1.

    Input: (*), floating point; target of 1 and −1 that broadcasts to it
    Output: (), or the input's shape with reduction='none'
    Errors: RuntimeError if the shapes do not broadcast; ValueError for another reduction
    https://pytorch.org/docs → torch.nn.functional.soft_margin_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.soft_margin_loss(torch.tensor([0., -1000.]), torch.tensor([1., 1.]))
    tensor(500.3466)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if input.array.dtype.kind in "iu":
        raise RuntimeError(f"result type {SCALAR_TYPES[tg.get_default_dtype().name]} can't be cast to the desired "
                           f"output type {SCALAR_TYPES[input.dtype.name]}")
    _check_written(input, target)
    input, target = _broadcast(input, target)
    return in_dtype(xp.soft_margin_loss(input, target, reduction=reduction), input.dtype)


# ── distances ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_written(input: Any, target: Any) -> None:
    """Raise RuntimeError if the loss does not fit into memory like the input's, to which PyTorch writes it."""
    if input.dtype is not target.dtype or input.array.shape != target.array.shape:
        from ...api._parsing import does_not_fit
        if (refusal := does_not_fit(input, [target])) is not None:
            raise refusal.error


def _broadcast(input: Any, target: Any) -> Any:
    if input.shape == target.shape:
        return input, target
    shape = (input.detach() + target.detach()).shape if len({input.shape, target.shape}) > 1 else input.shape
    return input.expand(shape), target.expand(shape)


def _paired(input: Any, target: Any, weight: Any) -> Any:
    """Broadcast input and target; warn if their shapes differ."""
    if input.size() != target.size():
        warn(f"Using a target size ({_size(target)}) that is different to the input size ({_size(input)}). "
             "This will likely lead to incorrect "
             "results due to broadcasting. Please ensure they have the same size.", again=True)
        input, target = _broadcast(input, target)
    if weight is not None and weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    return input, target


def _weighed(losses: Any, weight: Any, reduction: str) -> Any:
    """Weight and reduce losses; the mean divides by the sum of the weights."""
    losses = losses * weight
    return losses.sum() / weight.sum() if reduction == "mean" else reduced(losses, reduction)


def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
             reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """w (x − y)².

    Input: (*), floating point; target in the input's shape; weight in the input's shape
    Output: (), or the input's shape with reduction='none'
    Errors: RuntimeError if the shapes do not broadcast; ValueError for a weight of another shape or another reduction;
        NotImplementedError for integers and complex numbers; UserWarning if the shapes differ
    https://pytorch.org/docs → torch.nn.functional.mse_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(2.)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    input, target = _paired(input, target, weight)
    if not (kind := result_type(input, target)).is_floating_point:
        raise NotImplementedError(f"\"mse_cpu\" not implemented for '{SCALAR_TYPES[kind.name]}'")
    if weight is None:
        return xp.mse_loss(input, target, reduction=reduction)
    return _weighed(xp.mse_loss(input, target, reduction="none"), weight, reduction)


def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
            reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """w |x − y|.

    Input: (*); target in the input's shape; weight in the input's shape
    Output: (), or the input's shape with reduction='none'
    Errors: RuntimeError if the shapes do not broadcast, or for the mean of integers; ValueError for a weight of another
        shape or another reduction; UserWarning if the shapes differ
    https://pytorch.org/docs → torch.nn.functional.l1_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.l1_loss(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(1.)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    input, target = _paired(input, target, weight)
    losses = (input - target).abs()
    return reduced(losses, reduction) if weight is None else _weighed(losses, weight, reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """(x − y)² / 2β where |x − y| < β, |x − y| − β/2 elsewhere.

    Input: (*), floating point; target in the input's shape
    Output: (), or the input's shape with reduction='none'
    Errors: RuntimeError if the shapes do not broadcast or for beta < 0; ValueError for another reduction; UserWarning
        if the shapes differ
    https://pytorch.org/docs → torch.nn.functional.smooth_l1_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([1., 2.]), torch.tensor([1.5, 4.]), reduction='none')
    tensor([0.1250, 1.5000])
    """
    reduction = reduction_of(reduction, size_average, reduce)
    input, target = _paired(input, target, None)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return reduced((input - target).abs(), reduction)
    return xp.smooth_l1_loss(input, target, reduction=reduction, beta=beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
    """w (x − y)² / 2 where |x − y| ≤ δ, w δ (|x − y| − δ/2) elsewhere.

    Input: (*), floating point; target in the input's shape; weight in the input's shape
    Output: (), or the input's shape with reduction='none'
    Errors: RuntimeError if the shapes do not broadcast or for delta ≤ 0; ValueError for a weight of another shape or
        another reduction; UserWarning if the shapes differ
    https://pytorch.org/docs → torch.nn.functional.huber_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.huber_loss(torch.tensor([1., 2.]), torch.tensor([1.5, 4.]), reduction='none')
    tensor([0.1250, 1.5000])
    """
    input, target = _paired(input, target, weight)
    reduction = reduction_of(reduction)
    _check_written(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is None:
        return in_dtype(xp.huber_loss(input, target, reduction=reduction, delta=delta), input.dtype)
    return reduced(xp.huber_loss(input, target, reduction="none", delta=delta) * weight, reduction)


# ── distributions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:
    """y (log y − x), for log probabilities x and probabilities y.

    Input: (*), floating point; target that broadcasts with it, log probabilities with `log_target`
    Output: (), or the broadcast shape with reduction='none'; 'batchmean' is the sum over the first size
    Errors: RuntimeError for other dtypes, or if the shapes do not broadcast; ValueError for another reduction;
        UserWarning for 'mean'
    https://pytorch.org/docs → torch.nn.functional.kl_div

    >>> import tensorgrad as torch
    >>> torch.nn.functional.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([1., 0.]), reduction='sum')
    tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        return tg.kl_div(input, target, number_of(reduction, size_average, reduce), log_target=log_target)
    if reduction == "mean":
        warn("reduction: 'mean' divides the total loss by both the batch size and the support "
             "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
             "definition.'mean' will be changed to behave the same as 'batchmean' in the next major release.",
             again=True)
    if reduction == "batchmean":
        out = tg.kl_div(input, target, _reduction.NUMBERS["sum"], log_target=log_target)
        return out / input.shape[0] if input.ndim else out
    return tg.kl_div(input, target, number_of(reduction), log_target=log_target)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:
    """exp x − y x, or x − y log(x + ε) if x is no logarithm.

    `full` adds Stirling's y log y − y + log(2π y) / 2 where y > 1.

    Input: (*), log of the rate, or the rate itself unless `log_input`; target, counts that broadcast with it
    Output: (), or the broadcast shape with reduction='none'
    Errors: RuntimeError if the shapes do not broadcast; ValueError for another reduction
    https://pytorch.org/docs → torch.nn.functional.poisson_nll_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.]), torch.tensor([3.]))
    tensor(1.)
    """
    return tg.poisson_nll_loss(input, target, log_input, full, eps, number_of(reduction, size_average, reduce))


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    """(log max(σ², ε) + (x − y)² / max(σ², ε)) / 2; `full` adds log(2π) / 2.

    Input: (*), the mean; target that broadcasts with it; var σ² in the input's shape, without its last dimension, with
        sizes of 1, or a float
    Output: (), or the broadcast shape with reduction='none'
    Errors: ValueError for a negative var, a var of another shape, or another reduction; RuntimeError if the shapes do
        not broadcast
    https://pytorch.org/docs → torch.nn.functional.gaussian_nll_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.gaussian_nll_loss(torch.tensor([1.]), torch.tensor([3.]), torch.tensor([1.]))
    tensor(2.)
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = tg.full_like(input, var)
    elif not isinstance(var, tg.Tensor):
        raise TypeError(f"any() received an invalid combination of arguments - got ({type(var < 0).__name__}), but "
                        "expected one of:\n * (Tensor input)\n * (Tensor input, int dim, bool keepdim = False)")
    elif anywhere(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.shape[:-1] != var.shape[:-1] or var.shape[-1] != 1:
            if not (input.ndim == var.ndim and any(n == 1 for n in var.shape)
                    and all(n in (1, m) for n, m in zip(var.shape, input.shape))):
                raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return _gaussian(input, target, var, full, eps, reduction)


@once_rounded
def _gaussian(input: Any, target: Any, var: Any, full: bool, eps: float, reduction: str) -> Any:
    floor = var.clone()
    with tg.no_grad():
        floor.clamp_(min=eps)
    losses = 0.5 * (floor.log() + (input - target) ** 2 / floor)
    return reduced(losses + 0.5 * log(2 * pi) if full else losses, reduction)


# ── margins ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """x where y = 1, max(0, margin − x) where y = −1.

    Input: (*); target of 1 and −1 that broadcasts with it
    Output: (), or the broadcast shape with reduction='none'
    Errors: RuntimeError if the shapes do not broadcast; ValueError for another reduction
    https://pytorch.org/docs → torch.nn.functional.hinge_embedding_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.hinge_embedding_loss(torch.tensor([0.5, 0.25]), torch.tensor([1, -1]))
    tensor(0.6250)
    """
    return tg.hinge_embedding_loss(input, target, margin, number_of(reduction, size_average, reduce))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:
    """max(0, margin − y (x₁ − x₂)).

    Input: input1, input2 and target, of 1 and −1, in shapes (*) of one number of dimensions that broadcast
    Output: (), or the broadcast shape with reduction='none'
    Errors: RuntimeError if the numbers of dimensions differ or the shapes do not broadcast; ValueError for another
        reduction
    https://pytorch.org/docs → torch.nn.functional.margin_ranking_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.margin_ranking_loss(torch.tensor([1.]), torch.tensor([3.]), torch.tensor([1.]))
    tensor(2.)
    """
    number = number_of(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
                           f"{_size(input1)}, input2: {_size(input2)}, target: {_size(target)} ")
    return tg.margin_ranking_loss(input1, input2, target, margin, number)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None,
                          reduction: str = "mean") -> Tensor:
    """1 − cos(x₁, x₂) where y = 1, max(0, cos(x₁, x₂) − margin) where y = −1.

    Input: input1 and input2 (N, D), target (N); or (D) and ()
    Output: (), or the target's shape with reduction='none'
    Errors: RuntimeError for other numbers of dimensions or shapes that do not broadcast; ValueError for another
        reduction
    https://pytorch.org/docs → torch.nn.functional.cosine_embedding_loss

    >>> import tensorgrad as torch
    >>> one, other = torch.tensor([[1., 0.]]), torch.tensor([[0., 1.]])
    >>> torch.nn.functional.cosine_embedding_loss(one, other, torch.tensor([1.]))
    tensor(1.)
    """
    return tg.cosine_embedding_loss(input1, input2, target, margin, number_of(reduction, size_average, reduce))


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
                        reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """max(0, |a − p| − |a − n| + margin).

    |·| is the p-norm along the last axis; `swap` takes the lesser of |a − n| and |p − n|.

    Input: anchor, positive and negative (N, D) or (D), in shapes that broadcast
    Output: (), or (N) or () with reduction='none'
    Errors: ValueError for margin ≤ 0 or another reduction; RuntimeError if the numbers of dimensions differ or the
        shapes do not broadcast
    https://pytorch.org/docs → torch.nn.functional.triplet_margin_loss

    >>> import tensorgrad as torch
    >>> torch.nn.functional.triplet_margin_loss(torch.tensor([[0.]]), torch.tensor([[2.]]), torch.tensor([[1.]]))
    tensor(2.)
    """
    number = number_of(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return tg.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
                                      margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Tensor:
    """max(0, d(a, p) − d(a, n) + margin).

    The distance d is pairwise_distance unless given; `swap` takes the lesser of d(a, n) and d(p, n).

    Input: anchor, positive and negative (N, D), of one number of dimensions
    Output: (), or the shape of the distances with reduction='none'
    Errors: ValueError for margin ≤ 0 or another reduction; RuntimeError if the numbers of dimensions differ
    https://pytorch.org/docs → torch.nn.functional.triplet_margin_with_distance_loss

    >>> import tensorgrad as torch
    >>> distance = lambda a, b: (a - b).abs().sum(-1)
    >>> torch.nn.functional.triplet_margin_with_distance_loss(
    ...     torch.tensor([[0.]]), torch.tensor([[2.]]), torch.tensor([[1.]]), distance_function=distance)
    tensor(2.)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    check_triplet(anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((margin + near - far).clamp(min=0), reduction)


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Ints | Tensor, target_lengths: Ints | Tensor,
             blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    """−log of the probability of all alignments of the labels.

    Input: log_probs (T, N, C) or (T, C), from log_softmax; targets (N, S), or all labels one after the other;
        input_lengths and target_lengths (N)
    Output: (), or (N) with reduction='none'; 'mean' divides each loss by its target's length first
    Errors: RuntimeError for a blank outside of the classes, lengths that do not fit, or lengths that are not N;
        NotImplementedError unless log_probs is of floating point; ValueError for another reduction
    https://pytorch.org/docs → torch.nn.functional.ctc_loss

    >>> import tensorgrad as torch
    >>> x = torch.zeros(2, 1, 2).log_softmax(2)
    >>> torch.nn.functional.ctc_loss(x, torch.tensor([[1]]), (2,), (1,))  # -log(3/4): 11, 01 and 10 of the four ways
    tensor(0.2877)
    """
    return tg.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number_of(reduction), zero_infinity)
