"""Normalizations that return their statistics: PyTorch's operators below `layer_norm` and similar functions.

Each returns (output, mean, 1 / √(σ² + ε)); of the statistics, only those of `native_group_norm` have gradients.
"""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .._tensor.torch_function import namespaced
from ..core.mode import no_grad
from ..dtype import finfo, float32, promote_types
from ._arguments import check_tensor
from .creation import empty
from .normalization import _shape_of, batch_norm, group_norm, layer_norm, rms_norm


def _statistics(x: Any, dims: Any, eps: float, weight: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Mean and 1 / √(σ² + ε) over some axes, computed in float32 at least, in the dtype of the parameters."""
    kept = x.dtype if weight is None else weight.dtype
    wide = x.to(promote_types(x.dtype, float32))
    mean = wide.mean(dims, keepdim=keepdim)
    variance = wide.var(dims, correction=0, keepdim=keepdim)
    return mean.to(kept), (variance + eps).rsqrt().to(kept)


def native_layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm` with its statistics.

    Input: as `layer_norm`
    Output: (*, S) normalized, and mean and 1 / √(σ² + ε) of the shape (*, 1 …)
    Errors: as `layer_norm`
    https://pytorch.org/docs → torch.nn.functional.layer_norm

    >>> import tensorgrad as torch
    >>> out, mean, rstd = torch.native_layer_norm(torch.tensor([[1., 3.]]), [2], None, None, 0.)
    >>> out, mean, rstd
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    shape = _shape_of(normalized_shape, input, "native_layer_norm", weight, bias)
    out = layer_norm(input, shape, weight, bias, eps)
    return (out, *_statistics(input.detach(), tuple(range(-len(shape), 0)), eps, weight, True))


def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm` with its statistics.

    Input: (N, C, *), where * has HxW elements; weight, bias (C)
    Output: the input's shape, and mean and 1 / √(σ² + ε) of the shape (N, group)
    Errors: as `group_norm`; RuntimeError if the input has not N · C · HxW elements
    https://pytorch.org/docs → torch.nn.functional.group_norm

    >>> import tensorgrad as torch
    >>> torch.native_group_norm(torch.tensor([[[1.], [3.], [10.], [30.]]]), None, None, 1, 4, 1, 2, 0.)[1]
    tensor([[ 2., 20.]])
    """
    if group > 0 and C % group == 0 and input.numel() != N * C * HxW:
        raise RuntimeError("Expected X.numel() == N * C * HxW to be true, but got false.  (Could this error message be "
                           "improved?  If so, please report an enhancement request to PyTorch.)")
    out = group_norm(input, group, weight, bias, eps)
    return (out, *_statistics(input.reshape(N, group, C * HxW // group), (2,), eps, weight, False))


def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                      running_var: Tensor | None, training: bool, momentum: float, eps: float, *,
                      out: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm` with the batch's statistics, which are empty unless training.

    Input: (N, C, *); weight, bias, running_mean, running_var (C)
    Output: the input's shape, and mean and 1 / √(σ² + ε) of the shape (C) in training, (0) otherwise
    Errors: as `batch_norm`
    https://pytorch.org/docs → torch.nn.functional.batch_norm

    >>> import tensorgrad as torch
    >>> torch.native_batch_norm(torch.tensor([[1.], [3.]]), None, None, None, None, True, 0.1, 0.)
    (tensor([[-1.],
            [ 1.]]), tensor([2.]), tensor([1.]))
    """
    result = batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)
    if training:
        dims = (0, *range(2, input.dim()))
        found = (result, *_statistics(input.detach(), dims, eps, weight, False))
    else:
        kind = next((t.dtype for t in (weight, running_mean) if t is not None), input.dtype)
        found = (result, *[empty(0, dtype=kind, device=input.device) for _ in range(2)])
    if out is None:
        return found
    from ._register import write_out
    with no_grad():
        return write_out(found, tuple(out), name="native_batch_norm")  # type: ignore[no-any-return]


def _native_batch_norm_legit(input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any,
                             **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """`native_batch_norm`, whose running statistics may be left out: (input, weight, bias, training, momentum, eps)."""
    if not (rest and isinstance(rest[0], Tensor) or "running_mean" in kwargs):
        rest = (None, None, *rest)
    return native_batch_norm(input, weight, bias, *rest, **kwargs)


def batch_norm_update_stats(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
                            momentum: float) -> tuple[Tensor, Tensor]:
    """The mean and σ² of each channel of a batch; the running statistics move towards them, in place.

    Input: (N, C, *); running_mean, running_var (C)
    Output: two tensors (C)

    >>> import tensorgrad as torch
    >>> mean = torch.zeros(1)
    >>> torch.batch_norm_update_stats(torch.tensor([[1.], [3.]]), mean, torch.ones(1), 0.5), mean
    ((tensor([2.]), tensor([1.])), tensor([1.]))
    """
    check_tensor(input, "batch_norm_update_stats", "input", 1)
    with no_grad():
        dims = (0, *range(2, input.dim()))
        mean, variance = input.mean(dims), input.var(dims, correction=0)
        count = input.numel() // input.shape[1]
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
        if running_var is not None:
            running_var.mul_(1 - momentum).add_(variance, alpha=momentum * count / (count - 1))
    return mean, variance


def _fused_rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None,
                    eps: float | None) -> tuple[Tensor, Tensor]:
    """`rms_norm`, and 1 / √(mean(x²) + ε), computed in float32 at least."""
    check_tensor(input, "_fused_rms_norm", "input", 1)
    wide = input.detach().to(promote_types(input.dtype, float32))
    dims = tuple(range(-len(normalized_shape), 0))
    square = wide.square().mean(dims, keepdim=True)
    return (rms_norm(input, normalized_shape, weight, eps),
            (square + (finfo(wide.dtype).eps if eps is None else eps)).rsqrt())


globals().update(namespaced({f.__name__: f for f in (
    native_batch_norm, native_group_norm, native_layer_norm, _native_batch_norm_legit, batch_norm_update_stats,
    _fused_rms_norm)}, __name__.partition(".")[0]))
