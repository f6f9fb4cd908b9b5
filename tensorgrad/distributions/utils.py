"""Helpers of distributions: parameters that broadcast, probabilities and logits, lazy attributes."""
from __future__ import annotations

from functools import update_wrapper
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .. import api as tg

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
           "vec_to_tril_matrix"]

PACKAGE = __name__.partition(".")[0]
euler_constant = 0.57721566490153286060
NUMBER = (int, float)
EMPTY = tg.Size()


def is_tensor(value: Tensor) -> Any:
    return isinstance(value, tg.Tensor) or hasattr(value, "__torch_function__")


def broadcast_all(*values: Tensor | float) -> tuple[Tensor, ...]:
    """Broadcast numbers and tensors; numbers take dtype and device of the first tensor. ValueError for anything else.

    >>> import tensorgrad as torch
    >>> torch.distributions.utils.broadcast_all(1, torch.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(is_tensor(v) or isinstance(v, NUMBER) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                         "__torch_function__.")
    first = next((v for v in values if isinstance(v, tg.Tensor)), None)
    options = {"dtype": tg.get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
    broadcast_tensors = import_module(PACKAGE).broadcast_tensors       # the public one, which asks overriding classes
    return broadcast_tensors(*(v if is_tensor(v) else tg.tensor(v, **options) for v in values))


def standard_normal(shape: Any, like: Any) -> Any:
    """Standard normal numbers with the dtype and device of a tensor."""
    return tg.empty(shape, dtype=like.dtype, device=like.device).normal_()


def uniform(shape: Any, like: Any) -> Any:
    """Uniform numbers on [0, 1) with the dtype and device of a tensor."""
    return tg.rand(shape, dtype=like.dtype, device=like.device)


def _standard_normal(shape, dtype, device):
    """Draw standard normal numbers; PyTorch's private name, which packages with custom distributions use."""
    return tg.empty(shape, dtype=dtype, device=device).normal_()


def sum_rightmost(value: Tensor, dim: Any) -> Any:
    """The sum over the last `dim` dimensions."""
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1) if dim else value


_sum_rightmost = sum_rightmost


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """softmax(logits) along the last dimension; sigmoid(logits) if `is_binary`."""
    return tg.sigmoid(logits) if is_binary else tg.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamp probabilities to [eps, 1 − eps], with the machine epsilon of their dtype."""
    eps = tg.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """ln p; ln(p / (1 − p)) if `is_binary`. Finite: probabilities of 0 and 1 are clamped first.

    >>> import tensorgrad as torch
    >>> torch.distributions.utils.probs_to_logits(torch.tensor([0.5, 0.8]), is_binary=True)
    tensor([0.0000, 1.3863])
    """
    p = clamp_probs(probs)
    return tg.log(p) - tg.log1p(-p) if is_binary else tg.log(p)


def same_as(path: Any) -> Any:
    """Return a property that is an alias of another attribute, such as "loc" or "base_dist.scale"."""
    return property(attrgetter(path), doc=f"Alias of `{path}`.")


class lazy_property:
    """A property that is computed once, on first access, with gradients enabled."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return self
        with tg.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def below(n: Any, diag: Any, device: Any) -> Any:
    """Return the mask of an n × n matrix that is True on the diagonal `diag` and below it."""
    places = tg.arange(n, device=device)
    return places < places.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles of matrices, row by row, as vectors. ValueError unless the diagonal exists.

    >>> import tensorgrad as torch
    >>> torch.distributions.utils.tril_matrix_to_vec(torch.tensor([[1., 0.], [2., 3.]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., below(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Matrices with the vectors' values in their lower triangles, row by row. ValueError if their number fits none.

    >>> import tensorgrad as torch
    >>> torch.distributions.utils.vec_to_tril_matrix(torch.tensor([1., 2., 3.]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    count = vec.shape[-1]
    # solves count = a quadratic function of the side
    side = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    n = round(side)
    if n - side > tg.finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {count} which cannot be expressed as the lower triangular "
                         f"part of a square D x D matrix.")
    mat = vec.new_zeros(vec.shape[:-1] + (n, n))
    mat[..., below(n, diag, vec.device)] = vec
    return mat
