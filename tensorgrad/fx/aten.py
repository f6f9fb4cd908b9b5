"""Replace ops of the table in lowered graphs by PyTorch's operators, for `make_fx` and `export`.

Rules are as in `interpret/aten_rules.py`. Operators here are those that PyTorch composes of others; graphs keep them
whole.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .._ops import ops
from ..device import device
from ..dtype import FROM_NUMPY, get_default_dtype, int64
from ..dtype import bool as bool_
from ..dtype import dtype as dtype_class
from ..graph.node import Node
from ..graph.steps import Draw, Item, Make, Target
from ..interpret.aten_rules import Rule, is_tensor, loss, rule, shape_of, translated, trimmed

WHOLE: dict[str, Rule] = {
    **{name: lambda call, *args, name=name: call(name, *args) if all(map(is_tensor, args)) else NotImplemented
       for name in ("contiguous", "linear", "matmul", "prelu", "square")},
    "cross_entropy": loss("cross_entropy_loss", "ignore_index"), "nll_loss": loss("nll_loss_nd", "ignore_index"),
    "linear_without_bias": lambda call, x, w: call("linear", x, w),
    "log_softmax": lambda call, x, *, axis: call("log_softmax.int", x, axis),
    "softmax": lambda call, x, *, axis: call("softmax.int", x, axis),
    "native_layer_norm": lambda call, x, w, b, *, ndim, eps: call(
        "layer_norm", x, list(shape_of(x)[-ndim:]), w, b, eps),
    "reshape": lambda call, x, *, shape: call("reshape", x, list(shape)),
    "rms_norm": lambda call, x, w, *, ndim, eps: call("rms_norm", x, list(shape_of(x)[-ndim:]), w, eps),
    "affine_by_channel": lambda call, x, w, b, mean, variance, *, eps: call(
        "batch_norm", x, w, b, mean, variance, False, 0.1, eps, True),
}


@rule("where", table=WHOLE)
def _(call: Any, condition: Any, a: Any, b: Any) -> Any:
    overload = {(True, True): "self", (True, False): "ScalarOther", (False, True): "ScalarSelf",
                (False, False): "Scalar"}[is_tensor(a), is_tensor(b)]
    return call(f"where.{overload}", condition, a, b)


@rule("max_pool", table=WHOLE)
def _(call: Any, x: Any, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    if any(first != last for first, last in widths) or not 1 <= len(kernel) <= 3:
        return NotImplemented
    return call(f"max_pool{len(kernel)}d", x, list(kernel), list(stride), [first for first, _ in widths],
                list(dilation))


@rule("attention", table=WHOLE)
def _(call: Any, query: Any, key: Any, value: Any, mask: Any, *, causal: bool, scale: float | None) -> Any:
    if mask is not None and causal:
        return NotImplemented
    return call("scaled_dot_product_attention", query, key, value, mask, 0.0, causal, scale=scale)


# ── new arrays and random numbers, which have no operands ─────────────────────────────────────────────────────────────


def new_array(call: Any, target: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Compute a step that makes or draws an array by an operator; NotImplemented if there is none."""
    def made(name: str, *args: Any, dtype: Any = None) -> Any:
        own = {} if dtype in (None, usual(name.partition(".")[0], args)) else {"dtype": dtype}
        return call(name, *args, **own, device=device("cpu"), pin_memory=False)
    dtype = params.get("dtype")
    if isinstance(target, Draw):
        return drawn(call, made, target.name, args, params)
    if set(params) - {"dtype"}:
        return NotImplemented
    if target.name in ("zeros", "ones", "full"):
        shape = list(args[0]) if isinstance(args[0], tuple) else [args[0]]
        return made(target.name, shape, *args[1:], dtype=dtype)
    if target.name == "arange":
        return made(f"arange.{('', 'default', 'start', 'start_step')[len(args)]}", *args, dtype=dtype)
    return made("eye.m" if len(args) == 2 else "eye", *args, dtype=dtype) if target.name == "eye" else NotImplemented


def usual(name: str, args: tuple[Any, ...]) -> Any:
    """Return the dtype of what an operator makes that is not told one."""
    if name in ("randint", "randperm"):
        return int64
    kinds = {type(arg) for arg in (args[1:] if name == "full" else args if name == "arange" else (1.,))}
    return bool_ if kinds == {bool} else int64 if kinds <= {int, bool} else get_default_dtype()


def drawn(call: Any, made: Any, name: str, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Draw random numbers by an operator; NotImplemented if there is none."""
    if name in ("uniform", "normal") and len(args) == 1 and not set(params) - {"dtype"}:
        return made({"uniform": "rand", "normal": "randn"}[name], list(args[0]), dtype=params.get("dtype"))
    if name == "randint" and len(args) == 3:
        return made("randint.low", args[0], args[1], list(args[2]), dtype=params.get("dtype"))
    if name == "randperm" and len(args) == 1:
        return made("randperm", *args, dtype=params.get("dtype"))
    if name == "dropout" and len(args) == 3 and not params:
        return call("dropout", made("ones", list(args[0]), dtype=FROM_NUMPY[np.dtype(args[2])]
                                    if not isinstance(args[2], dtype_class) else args[2]), args[1], True)
    return NotImplemented


def added(op: Any, graph: Any, args: tuple[Any, ...], params: dict[str, Any], meta: dict[str, Any]) -> Any:
    """Add the operators that compute an op to a graph, and return the last node; NotImplemented if there are none."""
    def value(arg: Any) -> Any:
        if isinstance(arg, Node) and "val" not in arg.meta:         # one of several operators, but not the last
            arg.meta["val"] = arg.target(*map(value, arg.args), **arg.kwargs)
        return arg.meta["val"] if isinstance(arg, Node) else arg

    def call(name: str, *args: Any, **kwargs: Any) -> Node:
        packet, _, overload = name.partition(".")
        for arg in args:
            value(arg)
        node: Node = graph.create_node("call_function", getattr(getattr(ops.aten, packet), overload or "default"),
                                       trimmed(name, args), kwargs, packet)
        node.meta = dict(meta)
        return node
    if isinstance(op, Item):
        return call("item", *args)
    if isinstance(op, Target):
        return new_array(call, op, args, params) if isinstance(op, (Draw, Make)) else NotImplemented
    return translated(WHOLE, call, op, args, {**op.parameters, **params})
