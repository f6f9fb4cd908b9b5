"""Gradients of each example of a batch, in `grad_sample` (PyTorch: ``torch.nn.utils._per_sample_grad``)."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ... import api as tg
from ...func import functional_call
from ...utils import _pytree as pytree
from ..modules.module import Module
from ._expanded_weights import ExpandedWeight


def call_for_per_sample_grads(module: Any, *, batch_size: int | None = None, loss_reduction: str = "sum",
                              batch_first: bool = True) -> Callable[..., Any]:
    """Return a module's forward, whose backward writes the gradient of each example to `grad_sample` of the weights.

    Input: what the module takes; its tensors have one batch size, unless `batch_size` is given
    Output: what the module returns. After backward, weight.grad_sample is (batch, *weight.shape), and weight.grad as
        before; with `loss_reduction` "mean", for a loss that is a mean over the batch
    Errors: RuntimeError for layers other than linear maps, convolutions, embeddings and norms, and for weights whose
        `grad_sample` is there already

    >>> import tensorgrad as torch
    >>> from tensorgrad.nn.utils._per_sample_grad import call_for_per_sample_grads
    >>> layer = torch.nn.Linear(2, 1)
    >>> call_for_per_sample_grads(layer)(torch.tensor([[1., 2.], [3., 4.]])).sum().backward()
    >>> layer.weight.grad_sample
    tensor([[[1., 2.]],
    <BLANKLINE>
            [[3., 4.]]])
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for weight in module.parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls "
                f"without clearing gradients. Please clear out the grad_sample parameter of {weight} or post an issue "
                "to pytorch/pytorch to prioritize correct behavior")

    @wraps(module.forward)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size = _batch_size(args, kwargs, 0 if batch_first else 1) if batch_size is None else batch_size
        weights = {name: ExpandedWeight(weight, size, loss_reduction) if weight.requires_grad else weight
                   for name, weight in module.named_parameters()}
        return functional_call(module, weights, args, kwargs)
    return wrapper


def _batch_size(args: Any, kwargs: Any, axis: int) -> int:
    sizes = [leaf.shape[axis] for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, tg.Tensor)]
    if not sizes:
        raise RuntimeError("Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so "
                           "ExpandedWeights cannot compute the batch size from the inputs. Please specify it "
                           "explicitly")
    for before, size in zip(sizes, sizes[1:]):
        if size != before:
            raise RuntimeError(f"When computing batch size, found at least one input with batch size {before} and one "
                               f"with batch size {size}. Please specify it explicitly using the batch size kwarg in "
                               "call_for_per_sample_grads")
    return sizes[0]
