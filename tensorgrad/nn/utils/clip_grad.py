"""Clip gradients."""
from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

from ... import api as tg

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]


@tg.no_grad()
def get_total_norm(tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Any:
    """The norm of all the tensors' elements together: ‖(‖t₁‖, ‖t₂‖, …)‖. `foreach` changes nothing.

    RuntimeError if it is infinite or NaN and `error_if_nonfinite`. See PyTorch's `torch.nn.utils.get_total_norm`.

    >>> import tensorgrad as torch
    >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
    tensor(5.)
    """
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return tg.tensor(0.0)
    device = tensors[0].device
    norms = [tg.linalg.vector_norm(tensor, norm_type).to(device) for tensor in tensors]
    total_norm = tg.linalg.vector_norm(tg.stack(norms), norm_type)
    if error_if_nonfinite and not total_norm.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`")
    return total_norm


@tg.no_grad()
def clip_grads_with_norm_(parameters: Any, max_norm: Any, total_norm: Any, foreach: bool | None = None) -> None:
    """Multiply all gradients by max_norm / total_norm, in place, if that is less than 1. `foreach` changes nothing."""
    grads = _grads(_as_list(parameters))
    if not grads:
        return
    factor = tg.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    for grad in grads:
        grad.mul_(factor.to(grad.device))


@tg.no_grad()
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Scale all gradients down, in place, such that their total norm is at most `max_norm`; returns the norm before.

    See PyTorch's `torch.nn.utils.clip_grad_norm_`.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.ones(2))
    >>> (weight * torch.tensor([3.0, 4.0])).sum().backward()
    >>> torch.nn.utils.clip_grad_norm_(weight, max_norm=1.0), weight.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    is_generator = isinstance(parameters, Generator)
    parameters = _as_list(parameters)
    if is_generator and not parameters:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    total_norm = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                   error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Deprecated: use `clip_grad_norm_`."""
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
                  FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@tg.no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clip all elements of all gradients to [-clip_value, clip_value], in place. `foreach` changes nothing."""
    clip_value = float(clip_value)
    for grad in _grads(_as_list(parameters)):
        grad.clamp_(-clip_value, clip_value)


def _as_list(tensors):
    return [tensors] if isinstance(tensors, tg.Tensor) else list(tensors)


def _grads(parameters):
    return [parameter.grad for parameter in parameters if parameter.grad is not None]
