"""The engine: pulls gradients back along the tape, without recursion.

It owns what formulas must never do: summing over broadcast axes, casting, conjugating, accumulating, skipping inputs that need no
gradient, freeing what is no longer needed. First gradients run on bare arrays; with create_graph the same formulas run on Tensors.
"""
from __future__ import annotations

import warnings
from operator import attrgetter
from typing import Any

from .. import dispatch
from ..dispatch import apply, namespace, wrap, xp
from ..ops.base import OPS, Op
from .fused import second_time, stale
from .mode import mode
from .tape import FREED, Hooks, Leaf, Output, Packed, TensorBase, node_of

by_time = attrgetter("time")


# ── one step back ─────────────────────────────────────────────────────────────────────────────────────────────────────


def pull(node: Any, g: Any, useful: Any) -> list[tuple[Any, Any]]:
    """The gradients of one step's inputs, as arrays: [(edge, gradient)]."""
    saved, plan = node.saved, node.plan
    if saved is FREED:
        raise second_time()
    time = node.time
    if plan.saves_out and node.storage.written > time:
        check_output(node)
    values = []
    for v in saved:
        if isinstance(v, TensorBase):
            if v.storage.written > time:
                raise stale(node, plan.names[len(values)], v.array.shape, v.array.dtype, v.storage)
            v = v.array
        elif type(v) is Packed:
            v = v.unpack(v.packed).array
        values.append(v)
    for extra in plan.extras:
        values.append(extra(node, values))
    backend_xp, edges = node.storage.xp, node.edges
    if type(node.dtype) is tuple or node.dtype.kind in "cV":
        return _pull_wide(node, g, values, backend_xp, useful)
    pulled = []
    for i, formula, wants in plan.steps:
        edge = edges[i]
        if useful is None or edge in useful:
            ge = formula(backend_xp, g, *[values[w] for w in wants])
            if ge.shape != edge.shape or ge.dtype is not edge.dtype:
                ge = fitted(backend_xp, ge, edge)
            pulled.append((edge, ge))
    return pulled


def _pull_wide(node: Any, g: Any, values: Any, backend_xp: Any, useful: Any) -> list[tuple[Any, Any]]:
    """`pull` for complex numbers, which are conjugated around analytic formulas, for bfloat16, which computes in float32, and for
    steps with several results."""
    parts = g if type(g) is list else [g]
    conjugate = type(node).analytic and any(part.dtype.kind == "c" for part in parts)
    if conjugate:
        parts = [part.conj() for part in parts]
    elif any(part.dtype.kind == "V" for part in parts):
        parts = [part.astype("float32") for part in parts]
        values = [v.astype("float32") if getattr(getattr(v, "dtype", None), "kind", "") == "V" else v for v in values]
    g = parts if type(g) is list else parts[0]
    pulled = []
    for i, formula, wants in node.plan.steps:
        edge = node.edges[i]
        if useful is None or edge in useful:
            ge = formula(backend_xp, g, *[values[w] for w in wants])
            pulled.append((edge, fitted(backend_xp, ge.conj() if conjugate else ge, edge)))
    return pulled


def pull_tensors(node: Any, g: Any, useful: Any) -> list[tuple[Any, Any]]:
    """The same on Tensors: the formulas are recorded, so the gradients can be differentiated again."""
    saved, plan = node.saved, node.plan
    if saved is FREED:
        raise second_time()
    if plan.saves_out and node.storage.written > node.time:
        check_output(node)
    values: list[Any] = []
    for place, v in enumerate(saved):
        if place < len(plan.origins):
            v = _relinked(node, plan, place, v)
        values.append(v)
    for extra in plan.extras:
        values.append(extra(node, values))
    conjugate = type(node).analytic and (g[0] if type(g) is list else g).array.dtype.kind == "c"
    if conjugate:
        g = [xp.conj(part) for part in g] if type(g) is list else xp.conj(g)
    table = namespace(type(node.storage))
    pulled = []
    for i, formula, wants in plan.steps:
        edge = node.edges[i]
        if useful is None or edge in useful:
            ge = formula(table, g, *[values[w] for w in wants])
            pulled.append((edge, fitted_tensor(xp.conj(ge) if conjugate else ge, edge)))
    return pulled


def _relinked(node: Any, plan: Any, place: int, v: Any) -> Any:
    """A saved value as the Tensor that it was at the time, on the tape again."""
    origin, arity = plan.origins[place], len(node.edges)
    if type(v) is Packed:
        v = v.unpack(v.packed)
    elif isinstance(v, TensorBase) and v.storage.written > node.time:
        raise stale(node, plan.names[place], v.array.shape, v.array.dtype, v.storage)
    if origin < arity:
        return wrap(v.array, v.storage, node.edges[origin]) if isinstance(v, TensorBase) else v
    if type(node.dtype) is not tuple:
        return wrap(getattr(v, "array", v), node.storage, node)
    floating = v.array.dtype.kind in "fcV"
    return wrap(v.array, v.storage, Output(node, origin - arity, v.array) if floating else None)


Op.pull = pull  # type: ignore[attr-defined]
Op.pull_tensors = pull_tensors  # type: ignore[attr-defined]


def check_output(node: Any) -> None:
    """Raise unless the result that was saved is still what it was; a write in place that made it is no harm."""
    if node.storage.written > getattr(node, "since", node.time):
        raise stale(node, "output 0", node.shape, node.dtype, node.storage)


def fitted(backend_xp: Any, ge: Any, edge: Any) -> Any:
    """A gradient in the shape and dtype of what it is the gradient of."""
    if ge.shape != edge.shape:
        ge = checked(sum_to(backend_xp, ge, edge.shape), edge)
    if ge.dtype != edge.dtype:
        ge = (ge.real if ge.dtype.kind == "c" and edge.dtype.kind != "c" else ge).astype(edge.dtype)
    return ge


def fitted_tensor(ge: Any, edge: Any) -> Any:
    """The same for a Tensor, recorded."""
    if ge.array.shape != edge.shape:
        ge = checked(sum_to(xp, ge, edge.shape), edge)
    if ge.array.dtype.kind == "c" and edge.dtype.kind != "c":
        ge = xp.real(ge)
    return ge if ge.array.dtype == edge.dtype else apply(OPS["cast"], ge, dtype=edge.dtype)


def checked(ge: Any, edge: Any) -> Any:
    if tuple(ge.shape) != tuple(edge.shape):
        raise RuntimeError(f"Function {edge.name()} was handed an invalid gradient: got {list(ge.shape)} but expected shape compatible with "
                           f"{list(edge.shape)}")
    return ge


def sum_to(xp: Any, g: Any, shape: tuple[int, ...]) -> Any:
    """The adjoint of broadcasting, written once: the sum over the axes that were broadcast."""
    lead = len(g.shape) - len(shape)
    if lead < 0:
        return g
    axes = (*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 != g.shape[i + lead]))
    summed = xp.sum(g, axis=axes, keepdims=True) if axes else g
    return xp.reshape(summed, shape) if lead else summed


# ── the whole way back ────────────────────────────────────────────────────────────────────────────────────────────────


def sweep(grads: dict[Any, Any], *, create_graph: bool = False, retain_graph: bool = False, wanted: Any = None) -> dict[Any, Any]:
    """Pull gradients back along the tape, from {node: gradient}.

    Without `wanted`, leaves add what reaches them to their .grad. With it, only the ways to the wanted nodes are gone, and
    {node: gradient} of what reached them is returned.
    """
    order, waiting = _route(grads)
    useful = None if wanted is None else _useful(order, wanted)
    found: dict[Any, Any] = {}
    owned: set[Any] = set()            # nodes whose waiting gradient is memory that nobody else holds
    before = mode.grad
    mode.set_grad(create_graph)
    try:
        for leaf in [n for n in grads if type(n) is Leaf and n not in waiting]:
            _arrive(leaf, grads.pop(leaf), False, create_graph, wanted, found)
        for node in order:
            g = grads.pop(node, None)
            if g is not None and (useful is None or node in useful):
                if node.hooks is not None:
                    g = _hooked(node, g, create_graph)
                if wanted is not None and node in wanted:
                    found[node] = g
                if type(node) is Output:
                    grads.setdefault(node.node, [None] * len(node.node.shape))[node.index] = g
                else:
                    _step(node, g, grads, owned, useful, create_graph, retain_graph)
            for e in node.edges:
                if type(e) is Leaf:
                    waiting[e] -= 1
                    if not waiting[e] and e in grads:
                        _arrive(e, grads.pop(e), e in owned, create_graph, wanted, found)
    finally:
        mode.set_grad(before)
    return found


def _step(node: Any, g: Any, grads: dict[Any, Any], owned: set[Any], useful: Any, create_graph: bool, retain_graph: bool) -> None:
    """Pull one node, and add what it gives to what waits at its edges."""
    if type(g) is list:
        g = _all_results(node, g, create_graph)
    saved = node.saved
    if mode.anomaly:
        pulled = _pull_watched(node, g, useful, create_graph)
    else:
        pulled = node.pull_tensors(g, useful) if create_graph else node.pull(g, useful)
    if not retain_graph and saved:
        node.saved = FREED
    if node.hooks is not None and node.hooks.after:
        pulled = _hooked_after(node, pulled, g, create_graph)
    for e, ge in pulled:
        if e not in grads:
            grads[e] = ge
            if type(e) is Leaf and not create_graph and ge is not g and ge.base is None and not _held(ge, saved):
                owned.add(e)
        elif e in owned and not create_graph and type(e) is not Leaf:
            grads[e] += ge
        else:
            grads[e] = grads[e] + ge
            owned.add(e)


def _held(ge: Any, saved: Any) -> bool:
    """Whether a gradient is a saved value itself (d(a·b)/da is b)."""
    return type(saved) is tuple and any(ge is v or ge is getattr(v, "array", None) for v in saved)


def _route(roots: dict[Any, Any]) -> tuple[list[Any], dict[Any, int]]:
    """The nodes in the order in which to pull them, and how many steps each leaf has to wait for.

    Creation order is topological order: the latest node first.
    """
    seen, todo = set(roots), [n for n in roots if type(n) is not Leaf]
    order, waiting = [], {}
    while todo:
        node = todo.pop()
        order.append(node)
        for e in node.edges:
            if e is None:
                continue
            if type(e) is Leaf:
                waiting[e] = waiting.get(e, 0) + 1
            elif e not in seen:
                seen.add(e)
                todo.append(e)
    order.sort(key=by_time, reverse=True)
    return order, waiting


def _useful(order: list[Any], wanted: Any) -> set[Any]:
    """The nodes from which a wanted one can be reached."""
    useful = {n for n in wanted if type(n) is Leaf}
    for node in reversed(order):
        if node in wanted or any(e in useful for e in node.edges):
            useful.add(node)
    return useful


def _all_results(node: Any, g: list[Any], create_graph: bool) -> list[Any]:
    """The gradients of all of a step's results: zeros for those that nobody used."""
    if not getattr(node, "_materialize", True):      # a Function that wants to see None
        return g
    backend = type(node.storage)
    for i, part in enumerate(g):
        if part is None:
            zeros = backend.xp.zeros(node.shape[i], dtype=node.dtype[i] if node.dtype[i].kind in "fcV" else "float32")
            g[i] = wrap(zeros, backend()) if create_graph else zeros
    return g


# ── where gradients end ───────────────────────────────────────────────────────────────────────────────────────────────


def _arrive(leaf: Leaf, g: Any, owned: bool, create_graph: bool, wanted: Any, found: dict[Any, Any]) -> None:
    if leaf.hooks is not None:
        hooked = _hooked(leaf, g, create_graph)
        owned, g = owned and hooked is g, hooked
    if wanted is not None:
        if leaf in wanted:
            found[leaf] = g
        return
    tensor = leaf.tensor
    if tensor is not None and tensor._node is not None:
        if type(tensor._node) is not Leaf:
            raise RuntimeError("leaf variable has been moved into the graph interior")
        if leaf.hooks is not None and leaf.hooks.before:
            g = _hooked_before(leaf, g, create_graph)
        accumulate(tensor, g, owned)
        if leaf.hooks is not None:
            for hook in list(leaf.hooks.accumulated.values()):
                hook(tensor)
            if leaf.hooks.after:
                _hooked_after(leaf, [], g, create_graph)


def accumulate(tensor: Any, g: Any, owned: bool = False) -> None:
    """Add a gradient to a tensor's .grad, which always has memory of its own."""
    if isinstance(g, TensorBase):
        tensor._grad = xp.clone(g) if tensor._grad is None else tensor._grad + g
        return
    if g.shape != tensor.array.shape:      # the leaf got axes of length 1 in place, after it was recorded
        g, owned = g.reshape(tensor.array.shape), False
    if tensor._grad is None:
        tensor._grad = owning(g, type(tensor.storage), owned)
    elif (before := tensor._grad)._node is None and before.array.shape == g.shape and before.array.flags.writeable:
        before.array[...] += g
        before.storage.wrote()
    else:
        tensor._grad = before + owning(g, type(tensor.storage))


def owning(g: Any, backend: Any, owned: bool = False) -> Any:
    """A Tensor with memory of its own, of a gradient that may be shared with others."""
    if type(g) is not backend.array_type:
        g, owned = backend.asarray(g), True
    return wrap(g if owned and g.flags.writeable else g.copy(), backend())


# ── hooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _as_tensor(node: Any, g: Any) -> Any:
    if g is None or isinstance(g, TensorBase):
        return g
    backend = type(node.storage)
    return wrap(g if type(g) is backend.array_type else backend.asarray(g), backend())


def _hooked(node: Any, g: Any, create_graph: bool) -> Any:
    """Run the hooks of the tensor that a node made, then those before the step."""
    hooks: Hooks = node.hooks
    if type(g) is list:
        return g
    for hook in list(hooks.tensor.values()):
        result = hook(_as_tensor(node, g))
        if result is not None:
            _check_hook_result(result, node)
            g = result if create_graph else result.array
    if hooks.retained is not None and (tensor := hooks.retained()) is not None:
        accumulate(tensor, g)
    return _hooked_before(node, g, create_graph) if hooks.before and type(node) is not Leaf else g


def _check_hook_result(result: Any, node: Any) -> None:
    if not isinstance(result, TensorBase):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if result.array.shape != node.shape:
        raise RuntimeError(f"hook '<hook>' has changed the size of value: {list(node.shape)} to {list(result.array.shape)}")


def _hooked_before(node: Any, g: Any, create_graph: bool) -> Any:
    for hook in list(node.hooks.before.values()):
        result = hook((_as_tensor(node, g),))
        if result is not None:
            result = result[0] if isinstance(result, tuple) else result
            g = result if create_graph else result.array
    return g


def _hooked_after(node: Any, pulled: Any, g: Any, create_graph: bool) -> Any:
    by_edge = {}
    for e, ge in pulled:
        by_edge[e] = by_edge[e] + ge if e in by_edge else ge
    inputs = tuple(_as_tensor(node, by_edge.get(e)) for e in node.edges)
    outputs = tuple(_as_tensor(node, part) for part in (g if type(g) is list else [g]))
    for hook in list(node.hooks.after.values()):
        result = hook(inputs, outputs)
        if result is not None:
            inputs = result if isinstance(result, tuple) else (result,)
    return [(e, i if create_graph else i.array) for e, i in zip(node.edges, inputs, strict=True) if e is not None and i is not None]


def _pull_watched(node: Any, g: Any, useful: Any, create_graph: bool) -> Any:
    """Anomaly mode: an error in a step shows where its forward call stood, and so does a NaN that it makes."""
    try:
        pulled = node.pull_tensors(g, useful) if create_graph else node.pull(g, useful)
        if mode.check_nan:
            positions = {e: i for i, e in enumerate(node.edges) if e is not None}
            for e, ge in pulled:
                array = getattr(ge, "array", ge)
                if bool((array != array).any()):
                    raise RuntimeError(f"Function '{node.name()}' returned nan values in its {positions[e]}th output.")
        return pulled
    except Exception:
        trace = getattr(node, "trace", None)
        warnings.warn(f"Error detected in {node.name()}. " + (
            f"Traceback of forward call that caused the error:\n{''.join(trace)}" if trace else
            "No forward pass information available. Enable detect anomaly during forward pass for more information."), stacklevel=5)
        raise


# ── what programs call ────────────────────────────────────────────────────────────────────────────────────────────────


def _roots(outputs: Any, given: Any, create_graph: bool) -> dict[Any, Any]:
    """{node: gradient} to start from."""
    grads: dict[Any, Any] = {}
    for i, (out, g) in enumerate(zip(outputs, given, strict=True)):
        node = node_of(out)
        if node is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        if g is None:
            if out.array.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if out.array.dtype.kind not in "fV":
                raise RuntimeError("grad can be implicitly created only for real scalar outputs but got "
                                   f"{dispatch.dtypes.FROM_NUMPY[out.array.dtype]}")
            backend = type(out.storage)
            g = wrap(backend.xp.ones_like(out.array), backend())
        elif not isinstance(g, TensorBase):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif g.array.shape != out.array.shape:
            raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {_size(g)} and output[{i}] has a shape of "
                               f"{_size(out)}.")
        if (g.array.dtype.kind == "c") != (out.array.dtype.kind == "c"):
            raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                               f"dtype: grad_output[{i}] has a dtype of {dispatch.dtypes.FROM_NUMPY[g.array.dtype]} and output[{i}] "
                               f"has a dtype of {dispatch.dtypes.FROM_NUMPY[out.array.dtype]}.")
        if type(g.storage) is not type(out.storage):
            raise RuntimeError(f"grad_output[{i}] is on {g.storage.device}, output[{i}] on {out.storage.device}")
        g = fitted_tensor(g, node) if create_graph else g.array if g.array.dtype == out.array.dtype else g.array.astype(out.array.dtype)
        grads[node] = grads[node] + g if node in grads else g
    return grads


def _size(tensor: Any) -> str:
    return f"torch.Size({list(tensor.array.shape)})"


def _tuple(tensors: Any) -> tuple[Any, ...]:
    return (tensors,) if isinstance(tensors, TensorBase) else tuple(tensors)


def _given(outputs: tuple[Any, ...], gradients: Any) -> tuple[Any, ...]:
    if gradients is None:
        return (None,) * len(outputs)
    given = _tuple(gradients)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    return given


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:
    """Add the gradients of `tensors` to the .grad of the leaves. https://pytorch.org/docs → torch.autograd.backward

    dL/dx = Σ over the ways from L to x of the product of the steps' derivatives.
    """
    outputs = _tuple(tensors)
    roots = _roots(outputs, _given(outputs, grad_tensors if grad_variables is None else grad_variables), create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        sweep(roots, create_graph=create_graph, retain_graph=keep)
        return
    targets = _tuple(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    nodes = _wanted(targets)
    found = sweep(roots, create_graph=create_graph, retain_graph=keep, wanted=frozenset(nodes))
    before = mode.grad
    mode.set_grad(create_graph)
    try:
        for tensor, node in dict(zip(targets, nodes, strict=True)).items():
            if node in found:
                accumulate(tensor, found[node])
    finally:
        mode.set_grad(before)


def _wanted(tensors: tuple[Any, ...]) -> list[Any]:
    nodes = [node_of(t) for t in tensors]
    if any(n is None for n in nodes):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return nodes


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`; no .grad is touched. https://pytorch.org/docs → torch.autograd.grad

    >>> import tensorgrad as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> torch.autograd.grad(x ** 2, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    results, targets = _tuple(outputs), _tuple(inputs)
    if is_grads_batched:
        return _batched_grad(results, targets, _given(results, grad_outputs), retain_graph, create_graph,
                             bool(allow_unused or materialize_grads), materialize_grads)
    roots = _roots(results, _given(results, grad_outputs), create_graph)
    nodes = _wanted(targets)
    found = sweep(roots, create_graph=create_graph, retain_graph=create_graph if retain_graph is None else retain_graph,
                  wanted=frozenset(nodes))
    if not (allow_unused or materialize_grads) and any(n not in found for n in nodes):
        raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this "
                           "is the desired behavior.")
    gradients = []
    for tensor, node in zip(targets, nodes, strict=True):
        g, backend = found.get(node), type(tensor.storage)
        if g is None:
            g = wrap(backend.xp.zeros_like(tensor.array), backend()) if materialize_grads else None
        elif not isinstance(g, TensorBase):
            g = owning(g, backend)
        gradients.append(g)
    return tuple(gradients)


def _batched_grad(outputs: Any, inputs: Any, given: Any, retain_graph: Any, create_graph: bool, allow_unused: bool,
                  materialize: bool) -> tuple[Any, ...]:
    """One sweep for each of the gradients along the first axis."""
    rows = []
    count = len(next(g for g in given if g is not None).array)
    for k in range(count):
        last = k == count - 1 and not (retain_graph or create_graph)
        rows.append(grad(outputs, inputs, [None if g is None else g[k] for g in given], not last, create_graph,
                         allow_unused=allow_unused, materialize_grads=materialize))
    return tuple(None if column[0] is None else xp.stack(column, axis=0) for column in zip(*rows, strict=True))
