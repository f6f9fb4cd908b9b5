"""`__torch_dispatch__`: run ops, below autograd, by the classes that programs define.

https://pytorch.org/docs → Extending PyTorch → Extending `torch` native API

An op of the table whose operand is of such a class becomes calls of PyTorch's operators: `aten_rules.py` and
`aten_parts.py` say which, and ops without a rule run by their definition. The method computes each call, off the tape;
the tape gets the op, as for other tensors. Gradient formulas run on Tensors, so that the class computes them, too.

Wrapper subclasses have a shape, a dtype and a device, and no memory: their arrays are symbols.
"""
from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any
from weakref import WeakSet

from ..core.class_hooks import CLASSES, hooks, state
from ..core.dispatch import namespace, separated, wrap
from ..core.inplace import adopt, check, check_mode
from ..core.mode import mode
from ..core.plan import plans_of
from ..core.tape import Leaf, Origin, TensorBase, new, node_of, record, record_several, show
from ..device import device as Device
from ..dtype import FROM_NUMPY, as_dtype
from ..runtime.numpy_state import outside
from ..storage.base import backend_of
from .aten_parts import PARTS, defined
from .aten_rules import overload, translated, trimmed
from .symbol import Symbol
from .symbol_storage import SymbolStorage

PACKAGE = __name__.partition(".")[0]


# ── wrapper subclasses ────────────────────────────────────────────────────────────────────────────────────────────────


class WrapperStorage(SymbolStorage):
    """The storage of wrapper subclasses. Each device has a subclass."""

    @classmethod
    def host(cls, array: Any) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")


    @classmethod
    def beside(cls) -> Any:
        return backend_of(str(cls.device))


@cache
def storage_on(device: str) -> type[WrapperStorage]:
    """Return the storage class of wrapper subclasses that say they are on a device."""
    made: Any = type(WrapperStorage.__name__, (WrapperStorage,), {})
    made.device = Device(device)        # not in the class body, which would register a backend
    return made  # type: ignore[no-any-return]


def made_wrapper(cls: Any, size: Any, strides: Any, dtype: Any, device: Any, requires_grad: bool) -> Any:
    """Return a tensor of a class that has a shape, a dtype and a device, and no memory."""
    kind = as_dtype(dtype).numpy
    steps = None if strides is None else tuple(int(n) * kind.itemsize for n in strides)
    out = new(cls)
    out.array, out._storage = Symbol(tuple(map(int, size)), kind, steps), storage_on(str(device))()
    out._node = out._grad = out.origin = None
    if requires_grad:
        out._node = Leaf(out)
    return out


# ── calls of the method ───────────────────────────────────────────────────────────────────────────────────────────────


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """Hand an operator of `aten` to the classes among its arguments: `call("sum.dim_IntList", x, [0])`."""
    packet, _, ending = name.partition(".")
    operator = getattr(getattr(import_module(f"{PACKAGE}._ops").ops.aten, packet), ending or "default")
    args = trimmed(name, args)
    found = owners((*args, *kwargs.values()))
    if not found:
        return operator(*args, **kwargs)
    return answered(operator, found, args, kwargs)


def ask(operator: Any, args: Any, kwargs: Any) -> Any:
    """Hand an operator that a program defines to the classes among its arguments."""
    return answered(operator, owners((*args, *kwargs.values())), args, kwargs)


def owners(values: Any) -> list[Any]:
    """Return one tensor for each class that defines the method, subclasses before their bases."""
    found: list[Any] = []
    for value in values:
        kind = type(value)
        for tensor in owners(value) if kind is list or kind is tuple else [value] if kind in CLASSES else []:
            kind = type(tensor)
            if all(type(other) is not kind for other in found):
                place = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
                found.insert(place, tensor)
    return found


def answered(operator: Any, found: list[Any], args: Any, kwargs: Any) -> Any:
    """Call `__torch_dispatch__` of one class after another until one returns a result, off the tape."""
    types, recording = tuple(type(tensor) for tensor in found), mode.record
    mode.record = None
    try:
        for tensor in found:
            rule = getattr(operator, "dispatch_rules", {}).get(type(tensor))
            answer = (outside(type(tensor).__torch_dispatch__, operator, types, args, kwargs) if rule is None
                      else outside(rule, type(tensor), operator, types, args, kwargs))
            if answer is not NotImplemented:
                return answer
    finally:
        mode.record = recording
    refusals = "\n".join(f"  - tensor subclass {kind!r}" for kind in types)
    raise TypeError(f"Multiple dispatch failed for 'torch.ops.{operator}'; all __torch_dispatch__ handlers returned "
                    f"NotImplemented:\n\n{refusals}\n\nFor more information, try re-running with "
                    "TORCH_LOGS=not_implemented")


# ── ops ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def run(op: Any, args: Any, params: Any) -> Any:
    """Apply an op of the table: compute its result by the method, and record it."""
    if op.sequence or op.arity is not None and len(args) > op.arity:
        args, params = separated(op, args, params)
    edges = [node_of(a) if isinstance(a, TensorBase) else None for a in args]
    needs = sum(1 << i for i, edge in enumerate(edges) if edge is not None)
    if op.composite and needs and mode.record:
        return op.forward(beside(args), *args, **params)
    result = computed(op, args, params)
    if op.several:
        outs = list(result)
        for out in outs if op.view else ():
            shows(out, args[0], op, args, params, "several" if mode.grad else "no_grad")
        if needs and op.differentiable and mode.record:
            _record(op, args, edges, needs, params, outs)
        return outs
    if not isinstance(result, TensorBase):
        if result is not None and not isinstance(result, (bool, int, float, complex)):
            raise RuntimeError(f"Unable to cast Python instance of type {type(result)} to C++ type 'at::Tensor'")
        return result
    if any(result is a for a in args):
        result = detached(result)
    if op.view:
        shows(result, args[0], op, args, params, None if mode.grad else "no_grad")
    if needs and op.differentiable and mode.record:
        _record(op, args, edges, needs, params, [result])
    return result


def shows(out: Any, base: Any, op: Any, args: Any, params: Any, kind: Any) -> None:
    """Note that a result is a view."""
    if isinstance(out, TensorBase) and isinstance(base, TensorBase) and out.origin is None:
        out.origin = Origin(base, op, args, params, kind)


def computed(op: Any, args: Any, params: Any) -> Any:
    """Compute an op by PyTorch's operators, off the tape."""
    full = {name: params.get(name, value) for name, value in op.parameters.items()}
    inputs = [args] if op.sequence else args
    recording, mode.record = mode.record, None
    try:
        found = translated(PARTS, call, op, inputs, full)
        if found is NotImplemented and defined(op):
            found = op.forward(beside(args), *inputs, **params)
    finally:
        mode.record = recording
    if found is NotImplemented:
        raise NotImplementedError(f"the op {op.opname!r} has no operator of PyTorch here, for classes that define "
                                  "__torch_dispatch__")
    return found


def beside(args: Any) -> Any:
    """Return the op table whose new arrays are plain tensors on the device of the operands."""
    return namespace(next(a for a in args if isinstance(a, TensorBase))._storage.beside())


def _record(op: Any, args: Any, edges: list[Any], needs: int, params: Any, outs: list[Any]) -> None:
    """Write an op on the tape. Results that its formulas need are saved as aliases, for the node must not hold them."""
    plan, args = plans_of(op).of(needs, args), tuple(args)
    if op.several:
        record_several(plan, args, edges, params, outs)
        node: Any = next(out._node.node for out in outs if out._node is not None)
    else:
        record(plan, args, edges, params, outs[0])
        node = outs[0]._node
    node._storage = outs[0]._storage.beside().nowhere
    kept = {origin: detached(outs[origin - len(edges)]) for origin in plan.origins if origin >= len(edges)}
    if kept:
        node.saved = tuple(kept.get(origin, value) for origin, value in zip(plan.origins, node.saved)) \
            + node.saved[len(plan.origins):]
    note(node)
    show(node, outs)


# ── what else the dispatcher and the engine ask ───────────────────────────────────────────────────────────────────────


NODES: WeakSet[Any] = WeakSet()         # the steps that such a class takes part in
note = NODES.add


def back(order: list[Any], grads: dict[Any, Any]) -> dict[Any, Any] | None:
    """Return the gradients that a backward starts from as Tensors, if it must run on Tensors; else None."""
    if not any(node in NODES for node in order) and not any(type(g) in CLASSES for g in grads.values()):
        return None
    return {node: g if isinstance(g, TensorBase) else wrap(g, type(node._storage)()) for node, g in grads.items()}


def detached(tensor: Any) -> Any:
    """Return an alias without history, made by the method."""
    return call("detach", tensor) if type(tensor) in CLASSES and not state.off else wrap(tensor.array, tensor._storage)


def relinked(tensor: Any, edge: Any) -> Any:
    """Return an alias with another place on the tape."""
    out = detached(tensor)
    out._node = edge
    return out


def like(name: str, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a new tensor like another one, made by the method."""
    if (dtype := kwargs.get("dtype")) is not None:
        kwargs["dtype"] = FROM_NUMPY.get(dtype, dtype)
    recording, mode.record = mode.record, None
    try:
        return call(name, tensor, *args, **kwargs)
    finally:
        mode.record = recording


def number(tensor: Any) -> Any:
    """Return the only element, as a Python number."""
    return like("_local_scalar_dense", tensor)


def written(target: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """Run an in-place method: by the operator of its name, and on the tape by the function that is not in place."""
    check_mode(target)
    tensors = [a for a in (target, *args, *kwargs.values()) if isinstance(a, TensorBase)]
    recording = mode.record is not None and any(node_of(t) is not None for t in tensors)
    if recording:
        check(target)
        old = relinked(call("clone", target) if type(target) in CLASSES else wrap(target.array.copy(),
                       type(target._storage)()), node_of(target))
        result = function(old, *args, **kwargs)
    name = IN_PLACE.get(function.__name__, function.__name__)
    if name == "copy":
        like("copy_", target, *kwargs.values() if kwargs else args)
    elif hasattr(type(target), f"{name}_"):
        like(f"{name}_{overload(name, *args[name == 'masked_fill':][:1])}", target, *args, **kwargs)
    else:
        like("copy_", target, result if recording else like(name, target, *args, **kwargs))
    target._storage.wrote()
    if recording:
        adopt(target, result)
    return target


def into(function: Any, args: Any, out: Any, kwargs: Any) -> Any:
    """Run a function with `out=`: by its overload for that, or, with several results, by `copy_`."""
    outs = (out,) if isinstance(out, TensorBase) else tuple(out)
    if mode.grad and any(getattr(t, "requires_grad", False) for t in (*args, *kwargs.values(), *outs)):
        raise RuntimeError(f"{function.__name__}(): functions with out=... arguments don't support automatic "
                           "differentiation, but one of the arguments requires grad.")
    if isinstance(out, TensorBase):
        like(f"{function.__name__}.out", *args, out=out, **kwargs)
    else:
        for target, result in zip(outs, function(*args, **kwargs), strict=True):
            like("copy_", target, result)
    for target in outs:
        target._storage.wrote()
    return out


# in-place operators under other names than the functions that compute their values
IN_PLACE = {"copied": "copy", "filled": "fill", "absolute": "abs", "_fill": "fill"}


hooks.register(run=run, like=like, written=written, into=into, detached=detached, relinked=relinked,
               number=number, back=back, note=note, wrapper=made_wrapper, ask=ask)
