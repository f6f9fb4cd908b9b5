"""In-place writes in autograd: version counters, the rules for leaves and views, and the update of histories.

An in-place op runs out of place, copies its result to the target's memory, and gives the target the result's history.
If the target is a view, the base gets a new history instead (`SetView`: the base with a part replaced), and each of its
views derives its history from the base's when it is next needed (`tape.node_of`).
"""
from __future__ import annotations

import weakref
from functools import cache, partial
from typing import Any

from ..advice import advised, misfit, wrote
from ..dtype import FROM_NUMPY, can_cast
from ..messages.warn_once import warn
from ..ops.base import OPS, asked
from ..runtime.numpy_state import compute
from ..storage.base import NoValues, clock
from ..storage.sparse import add_into
from . import dispatch
from .class_hooks import CLASSES, among
from .class_hooks import hooks as class_hooks
from .dispatch import apply, wrap
from .fast_path import PLAIN
from .mode import mode
from .node import Hooks
from .step import PlainStep
from .tape import Leaf, TensorBase, node_of, root_of


def check(target: Any) -> None:
    """Raise PyTorch's error if autograd would have to record a write to this tensor and cannot."""
    if not mode.grad:      # only tangents are recorded
        return
    origin = target.origin
    while origin is not None and origin.kind is None and origin.parent.origin is not None:
        origin = origin.parent.origin           # a view of a view inherits what may not be written to
    kind = origin.kind if origin is not None else None
    node = target._node if kind == "no_grad" else node_of(target)
    if origin is not target.origin and kind in ("no_grad", "inference") and node is not None and type(node) is not Leaf:
        block, normal = (("no_grad", "with grad mode enabled") if kind == "no_grad"
                         else ("inference_mode", "in normal mode"))
        raise RuntimeError(f"Output {target.output_nr} of {node.name().rpartition('Backward')[0]} is a view of a view "
                           f"which was created in {kind} mode and is being modified inplace {normal}. Given that this "
                           "use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
                           f"moving both the view and the inplace either both inside the {block} block (if you don't "
                           "want the inplace to be tracked) or both outside (if you want the inplace to be tracked).")
    if kind == "inference" and not mode.inference and not target._storage.inference:
        raise RuntimeError("A view was created in inference mode and is being modified inplace in normal mode. Given "
                           "that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
                           "code by moving both the view and the inplace either both inside the inference_mode block "
                           "(if you don't want the inplace to be tracked) or both outside (if you want the inplace to "
                           "be tracked).")
    if kind in ("several", "no_grad", "function"):
        name = node.name().rpartition("Backward")[0] if node is not None else "a view function"
        if kind == "several" and node is None:
            raise RuntimeError("A view was created in no_grad mode and is being modified inplace with grad mode "
                               "enabled. This view is the output of a function that returns multiple views. Such "
                               "functions do not allow the output views to be modified inplace. You should replace the "
                               "inplace operation by an out-of-place one.")
        if kind == "several":
            raise RuntimeError(f"Output {getattr(target, 'output_nr', 0)} of {name} is a view and is being modified "
                               "inplace. This view is the output of a function that returns multiple views. Such "
                               "functions do not allow the output views to be modified inplace. You should replace the "
                               "inplace operation by an out-of-place one.")
        if kind == "no_grad":
            raise RuntimeError("A view was created in no_grad mode and is being modified inplace with grad mode "
                               "enabled. Given that this use case is ambiguous and error-prone, it is forbidden. You "
                               "can clarify your code by moving both the view and the inplace either both inside the "
                               "no_grad block (if you don't want the inplace to be tracked) or both outside (if you "
                               "want the inplace to be tracked).")
        if kind == "function":
            start = (f"Output 0 of {name} is a view and is being modified inplace." if node is not None else
                     "A view was created in no_grad mode and is being modified inplace with grad mode enabled.")
            raise RuntimeError(f"{start} This view was created inside a custom Function (or because an input was "
                               "returned as-is) and the autograd logic to handle view+inplace would override the "
                               "custom backward associated with the custom Function, leading to incorrect gradients. "
                               "This behavior is forbidden. You can fix this by cloning the output of the custom "
                               "Function.")
    if type(node) is Leaf and target.origin is None:
        raise advised(RuntimeError("a leaf Variable that requires grad is being used in an in-place operation."),
                      "of_leaf", target)
    root = root_of(target)
    while (crossed := root._storage.crossed) is not None and crossed.batch() is root:
        target, root = target if target is not root else crossed.parent, root_of(crossed.parent)
        if type(node_of(root)) is Leaf and target is root:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if target is not root and type(node_of(root)) is Leaf:
        raise advised(RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place "
                                   "operation."), "of_leaf", target)


def check_mode(target: Any) -> None:
    if mode.watching.writing is not None:
        mode.watching.writing(target)
    if target._storage.inference and not mode.inference:
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed.You can make a "
                           "clone to get a normal tensor before doing inplace update.See "
                           "https://github.com/pytorch/rfcs/pull/17 for more details.")


def in_place(target: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace the values of `target` by `function(target, …)`: this implements all in-place methods."""
    if CLASSES and among((target, *args, *kwargs.values())):
        return class_hooks.written(target, function, args, kwargs)
    check_mode(target)
    if target._storage.dense is not None:
        type(target._storage).hooks["check_in_place"](target, function.__name__)
    for other in args:
        if isinstance(other, TensorBase) and other._storage is target._storage:
            name = function.__name__
            if name not in FILLING or other.array.ndim:
                check_overlap(target.array, other.array, apart=name in INDEXING)
    if function.__name__ in ("index_fill", "masked_fill") and is_spread(target.array) and not (mode.record and any(
            isinstance(a, TensorBase) and node_of(a) is not None for a in (target, *args))):
        return _fill_spread(target, function, args, kwargs)
    if mode.record:
        if (target._node is not None and target.origin is not None and target.origin.kind == "no_grad"
                or node_of(target) is not None):
            if function.__name__ in UNRECORDED:
                return overwrite(target, function(wrap(target.array, target._storage), *args, **kwargs), recorded=False)
            if function.__name__ not in DROPOUTS:
                check(target)
        backend, node, memory = type(target._storage), node_of(target), target.array
        if target.origin is not None and node is not None and node.hooks is not None and isinstance(node, PlainStep):
            node = node.without_hooks()         # as in PyTorch, the step that made the view is not in the new history
        old = wrap(memory, backend(), node)
        if backend.lands and landable(target, node, function, (*args, *kwargs.values())):
            result = landed(memory, function, old, args, kwargs)
        else:
            result = function(old, *args, **kwargs)
        if result is old:
            return target
        if function.__name__ in COMPARISONS and type(result) is type(old):
            result = compared(result, old, args)
        held = weakref.ref(old)
        del old
        if (old := held()) is not None:      # the tape keeps the old values: they must outlive the write
            if old._storage.memory is None:
                old.array = memory.copy()
            else:                            # or views of them
                result = function(wrap(memory.copy(), backend(), node), *args, **kwargs)
    elif type(target._storage).lands and landable(target, None, function, (*args, *kwargs.values())):
        result = landed(target.array, function, wrap(target.array, target._storage), args, kwargs)
    elif (function.__name__ in ELEMENTWISE and target.array.size >= 2 * (piece := type(target._storage).piece) > 0
          and all(map(partial(_alike, target), args))
          and not any(isinstance(value, TensorBase) for value in kwargs.values())):
        return _in_pieces(target, function, args, kwargs, piece)
    elif (args and isinstance(args[0], TensorBase) and args[0]._storage.dense is type(target._storage)
          and function.__name__ in ("add", "sub") and target.array.shape == args[0].array.shape):
        return add_sparse(target, args[0], kwargs.get("alpha", 1) * (1 if function.__name__ == "add" else -1))
    else:
        result = function(wrap(target.array, target._storage), *args, **kwargs)
    return overwrite(target, result)


def is_spread(array: Any) -> bool:
    """Return True if elements of an expanded array share an address in writable memory."""
    flags = getattr(array, "flags", None)
    return flags is not None and getattr(flags, "writeable", True) and any(     # CuPy has no such flag
        step == 0 and n > 1 for step, n in zip(getattr(array, "strides", ()), array.shape, strict=False))


def warn_of_spread(name: str, example: str) -> None:
    """Warn, as PyTorch does, of an index function that writes to an expanded tensor."""
    warn(f"Use of {name}_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
         f"operation. This also applies to advanced indexing e.g. tensor[{example}", again=True)


def _fill_spread(target: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Fill chosen elements of an expanded tensor: a place of memory changes if one of its elements is chosen."""
    warn_of_spread(function.__name__, "mask] = scalar")
    result = function(wrap(target.array, target._storage), *args, **kwargs)
    check_result(target, result)
    backend = type(target._storage)
    nothing = wrap(backend.xp.zeros(target.array.shape, dtype=bool), backend())
    where = args if "value" in kwargs else args[:-1]
    chosen = function(nothing, *where, **(kwargs | {"value": True})).array
    target.array[chosen] = result.array[chosen]
    target._storage.wrote()
    return target


def add_sparse(target: Any, other: Any, scale: Any) -> Any:
    """Add scale times a sparse tensor to a dense one, in place, where the sparse one has values; off the tape."""
    check_cast(target, other)
    check_writeable(target)
    compute(add_into, target.array, other.array, scale)
    target._storage.wrote()
    return target


# their tensors may not overlap the target at all; a single value that these fill in may
INDEXING = frozenset("index_add index_copy index_fill index_reduce put scatter scatter_add scatter_reduce".split())
FILLING = frozenset("index_fill masked_fill masked_scatter".split())
# autograd sees no write in these, even to a leaf
UNRECORDED = frozenset(f"logical_{name}" for name in ("and", "or", "xor", "not"))
# may return their input, which is then no write
DROPOUTS = frozenset("dropout feature_dropout alpha_dropout feature_alpha_dropout".split())
COMPARISONS = frozenset("eq ne lt le gt ge".split())


def compared(result: Any, old: Any, others: tuple[Any, ...]) -> Any:
    """Record a comparison, written over floats, as a function of the compared tensors with zero gradients."""
    sources = ([t for t in (old, *others) if isinstance(t, TensorBase) and node_of(t) is not None]
               if old.array.dtype.kind in "fcV" else [])
    if sources:
        result = apply(OPS["cast"], result, dtype=old.array.dtype)
    for source in sources:
        result = apply(OPS["copied"], source, result)
    return result


@cache
def landing(recorded: bool) -> frozenset[str]:
    """Return the names of functions that are one op whose kernels may write over its first input.

    If recorded, only those whose gradients need no inputs.
    """
    ops = [op for op in OPS.values() if op.lands and not (recorded and asked(op) & {*op.inputs})]
    return frozenset(name for op in ops for name in (op.opname, op.torch_name.lower()))


def landable(target: Any, node: Any, function: Any, others: tuple[Any, ...]) -> bool:
    """Return True if the result may overwrite the target while it is computed: nothing needs the old values."""
    flags, name = target.array.flags, function.__name__
    tensors = [a for a in others if isinstance(a, TensorBase)]
    return (name.lstrip("_") in landing(node is not None) and flags.c_contiguous and flags.writeable
            and not any(a._storage is target._storage or a._storage.dense is not None
                        or node is None and mode.record and node_of(a) is not None for a in tensors))


def landed(memory: Any, function: Any, old: Any, args: Any, kwargs: Any) -> Any:
    """The function's result: the kernel that computes it from `memory`, if it can, has written it there."""
    mode.landing = memory
    try:
        return function(old, *args, **kwargs)
    finally:
        mode.landing = None


ELEMENTWISE = frozenset("add sub mul div addcmul addcdiv lerp".split())


def _alike(target: Any, other: Any) -> bool:
    """Return True if an operand is a number, or matches the target element by element in memory."""
    if not isinstance(other, TensorBase):
        return isinstance(other, (int, float))
    array, memory = other.array, target.array
    return (type(other) in PLAIN and type(other._storage) is type(target._storage) and array.shape == memory.shape
            and array.dtype is memory.dtype and array.flags.c_contiguous and memory.flags.c_contiguous)


def _in_pieces(target: Any, function: Any, args: Any, kwargs: Any, piece: int) -> Any:
    """Run a large unrecorded in-place op block by block, so that intermediate values stay in the cache."""
    check_writeable(target)
    memory, backend = target.array.reshape(-1), type(target._storage)
    flat = [a.array.reshape(-1) if isinstance(a, TensorBase) else None for a in args]
    for start in range(0, memory.size, piece):
        part = slice(start, start + piece)
        some = wrap(memory[part], target._storage)
        result = function(some, *[a if f is None else wrap(f[part], backend())
                                  for a, f in zip(args, flat, strict=True)], **kwargs)
        check_result(some, result)
        memory[part] = result.array
    target._storage.wrote()
    return target


def overwrite(target: Any, result: Any, recorded: bool = True) -> Any:
    """Copy `result` into the memory of `target`, and take over its history if the write is `recorded`."""
    unlike = type(result._storage) is not type(target._storage)
    if unlike:
        if result._storage.dense is type(target._storage):
            result = apply(OPS["sparse_to_dense"], result, pattern=result.array.pattern)
        check_room(target, result)
    check_result(target, result)
    if unlike and is_dropped(target, result.array):
        return target
    if unlike and type(result._storage).rank < type(target._storage).rank:
        result = dispatch.level_of(target, result)
    recorded = recorded and mode.record and (result._node is not None or node_of(target) is not None)
    if recorded:
        check(target)
        if result.array.dtype != target.array.dtype:
            result = apply(OPS["cast"], result, dtype=target.array.dtype)
    write(target, result.array)
    if recorded:
        adopt(target, result)
    return target


def check_room(target: Any, *others: Any, name: str = "inplace arithmetic") -> None:
    """Raise PyTorch's error for values of a batch written to a tensor that has memory for one example."""
    if any(type(other._storage).rank > type(target._storage).rank for other in others):
        raise RuntimeError(
            f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that "
            "has more elements than `self`. This happened due to `other` being vmapped over but `self` not being "
            f"vmapped over in a vmap. Please try to use out-of-place operators instead of {name}. If said operator is "
            f"being called inside the PyTorch framework, please file a bug report instead.")


def check_result(target: Any, result: Any) -> None:
    """Raise PyTorch's error if a result cannot be written to this tensor."""
    if result.array.shape != target.array.shape:
        raise misfit(f"output with shape {list(target.array.shape)} doesn't match the broadcast shape "
                     f"{list(result.array.shape)}")
    check_cast(target, result)


def check_cast(target: Any, result: Any) -> None:
    """Raise PyTorch's error if a result's dtype cannot become this tensor's."""
    source, kept = FROM_NUMPY[result.array.dtype], FROM_NUMPY[target.array.dtype]
    if not can_cast(source, kept):
        raise RuntimeError(f"result type {dispatch.SCALAR_TYPES[source.name]} can't be cast to the desired output type "
                           f"{dispatch.SCALAR_TYPES[kept.name]}")


def check_overlap(target: Any, other: Any, copying: bool = False, apart: bool = False) -> None:
    """Raise PyTorch's error if an operand overlaps the target in part, or, if `apart`, at all."""
    if (not (apart and target is other) and any(not (a.flags.c_contiguous or a.flags.f_contiguous)
                                                for a in (target, other))):
        return        # overlap is too hard to determine, for PyTorch as well
    start, begin = address(target), address(other)
    end, stop = start + target.nbytes, begin + other.nbytes
    same = ((start, end) == (begin, stop) and (target.strides == other.strides
                                               or (copying and target.flags.c_contiguous == other.flags.c_contiguous)))
    if max(start, begin) < min(end, stop) and (apart or not same) or apart and target is other:
        raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer "
                           "to a single memory location. Please clone() the tensor before performing the operation.")


def address(array: Any) -> int:
    """Return the address of an array's first element."""
    array = getattr(array, "values", array)          # a simulated device's array
    return int(array.__array_interface__["data"][0]) if hasattr(array, "__array_interface__") else int(array.data.ptr)


def check_writeable(target: Any) -> None:
    """Raise PyTorch's error for memory that several elements share, or that may not be written to."""
    array = target.array
    if array.size and any(step == 0 and n > 1 for step, n in zip(getattr(array, "strides", ()), array.shape)):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single "
                           "memory location. Please clone() the tensor before performing the operation.")
    if array.size and not getattr(getattr(array, "flags", None), "writeable", True):
        if target._storage.lazy is None:
            raise RuntimeError("the memory of this tensor is read-only: clone() it first")
        target._storage.lazy.part()


def write(target: Any, values: Any, one_value: bool = False) -> None:
    """Copy values to a tensor's memory, and date the write, without the tape. With `one_value`, memory may overlap."""
    if not one_value:
        check_writeable(target)
    elif target._storage.lazy is not None:
        target._storage.lazy.part()
    if target._storage.memory is not None and type(target._storage).rank:
        target.array.check_room(values)
    if values is not target.array and target.array.size:
        try:
            if getattr(values, "dtype", None) is target.array.dtype:
                target._storage.assign(target.array, values)
            else:
                compute(target._storage.assign, target.array, values)
        except NoValues:
            if not is_dropped(target, values):
                raise
            return
    target._storage.wrote()
    if target._node is not None or mode.watching.watchers:
        wrote(target._storage.written, target._storage.written)


def is_dropped(target: Any, *arrays: Any) -> bool:
    """Return True if a write is skipped: while a model runs for its shapes, values may be unknown."""
    return mode.quiet is not None and not target._storage.hollow and any(getattr(a, "hollow", False) for a in arrays)


def adopt(target: Any, result: Any) -> None:
    """Give `target` the history of `result`; for a view, give the base a history with that part replaced."""
    if target._node is None:            # else `write` has noted it
        wrote(target._storage.written, target._storage.written)
    base, node = target, result._node
    if target.origin is not None:
        base = root_of(target)
        whole = wrap(base.array, base._storage, base._node)
        node = apply(OPS["set_view"], whole, result, view=_chain(target), order=_order(base.array), written=True)._node
    for made in {node, result._node}:
        if made is not None and not isinstance(made, Leaf):
            made.since = next(clock)
            if isinstance(made, PlainStep):
                made.moved(result, target, base._storage)
    if base._node is not None and node is not None:
        Hooks.hand_on(base._node, node)
    if not mode.grad and base._node is not None and base._node.requires_grad:
        mode.tangents.see.hand_on(node, base._node)
        return
    base._node = node
    target._storage.rebased = next(clock)
    if (crossed := target._storage.crossed) is not None:
        crossed.adopted(base)
    if mode.tangents.see is not None:
        mode.tangents.see.track(base)


def _order(array: Any) -> tuple[int, ...] | None:
    """Return the axes of an array, the slowest in memory first; None for C order."""
    if array.flags.c_contiguous:
        return None
    return tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))


def _chain(view: Any) -> tuple[Any, ...]:
    """Return the view ops from the base to a view: ((op, params), …).

    `as_strided` starts again from the whole memory.
    """
    chain: list[Any] = []
    while view.origin is not None:
        origin = view.origin
        chain.append((origin.op, origin.params))
        if origin.op.by_memory:
            break
        view = origin.parent
    return tuple(reversed(chain))
