"""Keep images in channels_last, for the ops that keep the format in PyTorch: see `Op.images`.

Kernels compute contiguous results. Where an operand is in channels_last, the results are copied to that format, and so
are the gradients that their step pulls back. For other operands, one check of the strides is all that this costs.
"""
from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any

from ..ops.base import OPS, Op, Pair
from ..runtime.numpy_state import compute
from ..storage.layout import is_channels_last
from .plan import Plan
from .tape import TensorBase


def keeping_images(op: type[Op], call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of an op such that results have the format of the operands that `Op.images` names."""
    if not op.images:
        return call
    named = op.images.split()
    places = [place for place, name in enumerate(op.inputs) if name in named]
    most = 5 if op.volumes else 4
    chosen = all if op.sequence else any

    def laid(*args: Any, **params: Any) -> Any:
        out = call(*args, **params)
        operands = args[0] if op.sequence else [args[i] for i in places]
        if chosen(isinstance(a, TensorBase) and in_channels_last(a, most) for a in operands):
            outs = out if op.several else (out,)
            for each in outs:
                if each.origin is None:
                    each.array = images(each.array, type(each._storage))
            _lay_out_gradients(outs[0]._node, op)
        return out
    return laid


def in_channels_last(tensor: Any, most: int = 4) -> bool:
    """Return True for a tensor of images in channels_last with at most `most` axes, on a backend with strides."""
    return type(tensor._storage).ordered is not None and is_channels_last(tensor.array, most)


def images(y: Any, backend: Any) -> Any:
    """Return an array of images copied to channels_last; return anything else unchanged."""
    return compute(OPS["channels_last"].kernels[backend], y) if _in_another_format(y) else y


def _in_another_format(y: Any) -> bool:
    """Return True for an array of images that are not in channels_last."""
    return getattr(y, "strides", None) is not None and y.ndim in (4, 5) and not is_channels_last(y)


def _lay_out_gradients(node: Any, op: type[Op]) -> None:
    """Make the step of an op pull gradients in channels_last."""
    node = getattr(node, "node", node)                      # of one of several results
    if getattr(node, "op", None) is not op:                 # not recorded, or by the ops of its definition
        return
    node.plan = _in_channels_last(node.plan)
    if (residual := getattr(node, "residual", None)) is not None:
        pair, *kept = residual
        backend: Any = type(node._storage)
        node.residual = (_pair_of_images(pair, backend), *kept)


@cache
def _in_channels_last(plan: Plan) -> Plan:
    """Return a plan whose formulas lay out their gradients."""
    made = copy(plan)
    made.steps = tuple((i, _laid_out(formula), wants) for i, formula, wants in plan.steps)
    return made


def _laid_out(formula: Any) -> Any:
    def pull(xp: Any, g: Any, *values: Any) -> Any:
        ge = formula(xp, g, *values)
        return xp.channels_last(ge) if _in_another_format(getattr(ge, "array", ge)) else ge
    return pull


@cache
def _pair_of_images(pair: Pair, backend: Any) -> Pair:
    """Return a kernel pair whose backward lays out its gradients."""
    def backward(g: Any, residual: Any, needs: Any) -> list[Any]:
        return [images(ge, backend) for ge in pair.backward(g, residual, needs)]
    return Pair(pair.forward, backward, pair.below, pair.rows, pair.whole)
