"""Weights that collect the gradient of each example of a batch in `grad_sample`.

No function has a formula for it: an example's gradient is that of the function for a batch of this example alone, so
the backward maps `vjp` over the batch by `vmap`.
"""
from __future__ import annotations

from inspect import signature
from typing import Any

from .... import api as tg
from ....autograd import Function
from ....func import vjp, vmap
from ... import functional as F
from . import recurrent  # noqa: F401
from .expanded_weights_impl import ExpandedWeight, implements_per_sample_grads
from .expanded_weights_utils import forward_helper, set_grad_sample_if_exists, standard_kwargs

__all__ = ["ExpandedWeight"]

# arguments that the backward of one example leaves out: the forward applied them, or examples do not share them
_APART = {"max_norm": None, "padding_idx": None, "scale_grad_by_freq": False, "sparse": False, "running_mean": None,
          "running_var": None}


@implements_per_sample_grads(F.linear)
@implements_per_sample_grads(F.conv1d)
@implements_per_sample_grads(F.conv2d)
@implements_per_sample_grads(F.conv3d)
@implements_per_sample_grads(F.embedding)
@implements_per_sample_grads(F.layer_norm)
@implements_per_sample_grads(F.group_norm)
@implements_per_sample_grads(F.instance_norm)
class PerSampleGrad(Function):
    """A function of an input, whose first axis is the batch, and of ExpandedWeights."""

    @staticmethod
    def forward(ctx: Any, kwarg_names: Any, func: Any, *expanded: Any) -> Any:
        args, kwargs = standard_kwargs(kwarg_names, expanded)
        bound = signature(func).bind(*args, **kwargs)
        _check(func, **bound.arguments)
        ctx.func, ctx.given, ctx.count = func, bound.arguments, len(expanded)
        return forward_helper(func, args, kwargs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        given, names = dict(ctx.given), [name for name, arg in ctx.given.items() if isinstance(arg, ExpandedWeight)]
        weights = [given[name] for name in names]
        originals = [weight.orig_weight.detach() for weight in weights]
        given |= {name: value for name, value in _APART.items() if name in given}
        input = given.pop("input").detach()

        def called(input: Any, *weights: Any) -> Any:
            return ctx.func(input=input, **given | dict(zip(names, weights)))

        def of_example(example: Any, grad: Any) -> Any:
            return vjp(lambda *weights: called(example.unsqueeze(0), *weights), *originals)[1](grad.unsqueeze(0))

        first = 0 if all(weight.batch_first for weight in weights) else 1
        samples = vmap(of_example)(input.movedim(first, 0), grads[0].movedim(first, 0))
        for weight, sample in zip(weights, samples):
            set_grad_sample_if_exists(weight, lambda _, sample=sample: sample)
        needed = ctx.given["input"].requires_grad
        pulled = vjp(lambda input: called(input, *originals), input)[1](grads[0])[0] if needed else None
        return None, None, pulled, *(None,) * (ctx.count - 1)


def _check(func: Any, input: Any, normalized_shape: Any = None, **others: Any) -> None:
    """Raise RuntimeError for an input without a batch."""
    if not isinstance(input, tg.Tensor):
        return
    rank, name = input.dim(), func.__name__
    if name == "linear" and rank <= 1:
        raise RuntimeError("Input does not have a batch dimension. Expanded Weights expected input of at least rank 2, "
                           f"got of rank {rank}")
    if name.startswith("conv") and rank != (batched := 2 + int(name[4])):        # conv1d has inputs (N, C, L)
        raise RuntimeError(f"Expanded Weights only support convolution with batched input, got {func} with an"
                           f"unbatched input of dim {rank}, expected input of dim {batched}")
    if name == "embedding" and rank == 1:
        raise RuntimeError(f"Expanded Weights needs an input with a batch size, got a 1D tensor, {input}")
    if normalized_shape is not None and rank == len(normalized_shape):
        raise RuntimeError("Expanded Weights: Layer norm should not normalize over batch dimension for per sample "
                           f"gradientcomputations but got that normalized shape, {normalized_shape}, matched input "
                           "shape.")
