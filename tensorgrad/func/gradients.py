"""Derivatives of functions, backward: grad, vjp, jacrev. https://pytorch.org/docs/stable/func.api.html

They differentiate on the common tape, with respect to stand-ins for their arguments. A stand-in is linked to its
argument if that requires a gradient, so that outer transforms and parameters get gradients, too; results that depend on
nothing outside have no history.
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from functools import wraps
from typing import Any

from .. import api
from .._tensor import Tensor
from ..autograd.graph import disable_saved_tensors_hooks
from ..core import engine
from ..core.dispatch import wrap
from ..core.mode import mode
from ..core.tape import Leaf, node_of
from ..interpret.batching import cross, for_each_example
from ..storage.base import clock
from ..utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten, treespec_pprint
from .batching import vmap

ASSIGNED = ("__module__", "__name__", "__qualname__", "__doc__")
NO_HOOKS = ("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with "
            "your use case.")


class Scope:
    """A single differentiation, which tells its leaves from nodes that were on the tape before."""

    def __init__(self) -> None:
        self.start, self.own = next(clock), set()    # the time at which it began, and its leaves
        self.outer = mode.grad and not mode.inference     # True if results are recorded outside

    @contextmanager
    def recording(self) -> Any:
        """Run the block with the tape on, whatever the mode around it."""
        before = mode.grad, mode.inference
        mode.inference = False
        mode.transforms += 1
        mode.set_grad(True)
        try:
            with disable_saved_tensors_hooks(NO_HOOKS):
                yield
        finally:
            mode.transforms -= 1
            mode.inference = before[1]
            mode.set_grad(before[0])

    def stand_in(self, x: Any) -> Any:
        """Return the tensor that replaces an argument: a leaf of this scope, or an alias with the argument's
        history.
        """
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        if x.array.dtype.kind not in "fcV":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        x = for_each_example(x)
        if node_of(x) is not None and (self.outer or mode.tangents.levels):
            # in forward mode, too, where a step that only tangents come to is forgotten
            keep, mode.tangents.keep = mode.tangents.keep, True
            try:
                return cross(x, same, same, "Alias", x._storage)
            finally:
                mode.tangents.keep = keep
        out = wrap(x.array, type(x._storage)() if x._storage.inference else x._storage)
        out._node = Leaf(out)
        self.own.add(out._node)
        return out

    def leads_out(self, tensors: Any) -> bool:
        """Return True if a tensor depends on an outer node for which gradients may be wanted."""
        todo = [node for t in tensors if (node := node_of(t)) is not None]
        seen = set(todo)
        while todo:
            node = todo.pop()
            if node.time < self.start or not node.edges and node.requires_grad and node not in self.own:
                return True
            fresh = [e for e in node.edges if e is not None and e not in seen]
            seen.update(fresh)
            todo += fresh
        return False

    def settled(self, x: Any) -> Any:
        """Return a result for the outside: with its history only if that leads to outer nodes."""
        if not isinstance(x, Tensor) or node_of(x) is None:
            return x
        if mode.tangents.see is not None:      # a history, or tangents
            return mode.tangents.see.settled(x, self.start if self.outer else 0)
        return x if self.outer and self.leads_out([x]) else wrap(x.array, x._storage)

    def pulled(self, outputs: Any, inputs: Any, gradients: Any, retain_graph: bool) -> list[Any]:
        """Return the gradients of outputs with respect to stand-ins; zeros where there are none."""
        chosen = [(out, g) for out, g in zip(outputs, gradients, strict=True) if out.requires_grad]
        again = (bool(mode.tangents.levels) or mode.grad
                 and self.leads_out([*outputs, *(g for g in gradients if g is not None)]))
        found: Any = [None] * len(inputs)
        if chosen:
            outs, given = zip(*chosen, strict=True)
            found = engine.grad(outs, inputs, given, retain_graph=retain_graph or again, create_graph=again,
                                allow_unused=True)
        return [self.settled(api.zeros_like(x) if g is None else g) for x, g in zip(inputs, found, strict=True)]


def same(x: Any) -> Any:
    return x


# ── grad ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that gives the gradient of `func`, a function with one number as its result.

    https://pytorch.org/docs → torch.func.grad

    grad(f)(x) = df/dx, with respect to the argument (or the tuple of arguments) at `argnums`, each a tensor or nest of
    tensors. With has_aux, func returns (number, more), and the result is (gradient, more).

    >>> import tensorgrad as torch
    >>> from tensorgrad.func import grad
    >>> grad(torch.sin)(torch.tensor(0.)), grad(grad(torch.exp))(torch.tensor(0.))
    (tensor(1.), tensor(1.))
    """
    @wraps(func, assigned=ASSIGNED)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = gradient_and_value(func, argnums, has_aux, args, kwargs)
        return (found, value[1]) if has_aux else found
    return gradient


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """`grad`, with the value of the function beside: (gradient, value), or (gradient, (value, more)).

    https://pytorch.org/docs → torch.func.grad_and_value

    >>> import tensorgrad as torch
    >>> torch.func.grad_and_value(lambda x: (x * x).sum())(torch.tensor([1., 2.]))
    (tensor([2., 4.]), tensor(5.))
    """
    @wraps(func, assigned=ASSIGNED)
    def both(*args: Any, **kwargs: Any) -> Any:
        return gradient_and_value(func, argnums, has_aux, args, kwargs)
    return both


def gradient_and_value(func: Any, argnums: Any, has_aux: bool, args: Any, kwargs: Any) -> tuple[Any, Any]:
    scope = Scope()
    with scope.recording():
        args = stand_ins(scope, args, argnums)
        output, aux = func(*args, **kwargs), None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError("grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if "
                                   "has_aux is True")
            output, aux = output
        if not isinstance(output, Tensor):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
        if output.ndim:
            raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                               f"{output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?")
        inputs, spec = tree_flatten(chosen_args(args, argnums))
        mode.set_grad(scope.outer)
        found = tree_unflatten(scope.pulled([output], inputs, [None], False), spec)
    value = scope.settled(output)
    return found, (value, tree_map(scope.settled, checked_aux(aux))) if has_aux else value


# ── which arguments ───────────────────────────────────────────────────────────────────────────────────────────────────


def checked_argnums(argnums: Any, count: int) -> Any:
    """The positions, counted from the front."""
    if isinstance(argnums, int):
        if not -count <= argnums < count:
            raise RuntimeError(f"Got argnum={argnums}, but only {count} positional inputs")
        return argnums % count
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    for each in argnums:
        if not isinstance(each, int):
            raise RuntimeError(f"argnum must be int, got: {type(each)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    places = tuple(checked_argnums(each, count) for each in argnums)
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {places}")
    return places


def chosen_args(args: tuple[Any, ...], argnums: Any) -> Any:
    """The argument at a position, or a tuple of those at several; all of them for None."""
    if argnums is None:
        return args
    places = checked_argnums(argnums, len(args))
    return tuple(args[i] for i in places) if isinstance(places, tuple) else args[places]


def stand_ins(scope: Scope, args: tuple[Any, ...], argnums: Any) -> tuple[Any, ...]:
    """Return the arguments, with stand-ins for the tensors to differentiate by."""
    places = range(len(args)) if argnums is None else checked_argnums(argnums, len(args))
    places = (places,) if isinstance(places, int) else places
    return tuple(tree_map(scope.stand_in, a) if i in places else a for i, a in enumerate(args))


# ── vjp ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """func(*primals), and the function that pulls gradients of it back: v ↦ vᵀ·J.

    https://pytorch.org/docs → torch.func.vjp

    Returns (output, vjp_fn), or (output, vjp_fn, more) with has_aux. vjp_fn takes gradients in the structure of the
    output, and gives a tuple with one for each primal.

    >>> import tensorgrad as torch
    >>> out, pull = torch.func.vjp(torch.sin, torch.tensor([0., 1.]))
    >>> pull(torch.tensor([1., 2.]))
    (tensor([1.0000, 1.0806]),)
    """
    return vjp_of(func, primals, None, has_aux)


def vjp_of(func: Any, primals: tuple[Any, ...], argnums: Any, has_aux: bool) -> Any:
    """`vjp` with respect to some of the arguments."""
    scope = Scope()
    with scope.recording():
        args = stand_ins(scope, primals, argnums)
        output, aux = func(*args), None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError("vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux "
                                   "is True")
            output, aux = output
        outputs, out_spec = tree_flatten(output)
        check_outputs(outputs)
        inputs, in_spec = tree_flatten(chosen_args(args, argnums))

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, spec = tree_flatten(cotangents)
        if spec != out_spec:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs "
                               f"to the function. cotangents: {treespec_pprint(spec)}, primal output: "
                               f"{treespec_pprint(out_spec)}")
        return tree_unflatten(scope.pulled(outputs, inputs, given, retain_graph), in_spec)
    result = tree_map(scope.settled, output)
    return (result, pull, tree_map(scope.settled, checked_aux(aux))) if has_aux else (result, pull)


def checked_aux(aux: Any) -> Any:
    """Return what a function gives beside its result. RuntimeError unless it consists of tensors."""
    for leaf in tree_leaves(aux):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return aux


def check_outputs(outputs: list[Any]) -> None:
    """RuntimeError unless there are results, floating point tensors all."""
    if not outputs or outputs == [None]:
        raise RuntimeError(f"vjp(f, *primals): Expected f to be a function that has non-empty output (got output = "
                           f"{outputs})")
    for out in outputs:
        if not isinstance(out, Tensor):
            raise RuntimeError(f"vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported type "
                               f"{type(out)}")
    for out in outputs:
        if out.array.dtype.kind not in "fcV":
            raise RuntimeError(f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor "
                               f"with dtype {out.dtype}")


# ── jacrev ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def jacrev(func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """The function that gives the Jacobian of `func`, row by row: one pull for each element of the result, all at once.
    https://pytorch.org/docs → torch.func.jacrev

    J[i, j] = d func(x)[i] / dx[j], of shape (*out.shape, *x.shape), in the structure of the result, and in each place
    that of the argument.
    chunk_size: how many rows at a time.

    >>> import tensorgrad as torch
    >>> torch.func.jacrev(lambda x: x ** 2)(torch.tensor([1., 3.]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func, assigned=ASSIGNED)
    def jacobian(*args: Any) -> Any:
        refuse_complex("jacrev", args, "inputs")
        output, pull, *aux = vjp_of(func, args, argnums, has_aux)
        outputs, spec = tree_flatten(output)
        refuse_complex("jacrev", outputs, "outputs")
        inputs, in_spec = tree_flatten(chosen_args(args, argnums))
        sizes = [out.numel() for out in outputs]
        columns = rows_of(lambda basis: tree_leaves(pull(tree_unflatten(basis, spec))), basis_of(outputs, sizes),
                          sum(sizes), chunk_size)
        found = []
        for i, out in enumerate(outputs):
            start = sum(sizes[:i])
            parts = [column.narrow(0, start, sizes[i]).reshape((*out.shape, *x.shape))
                     for column, x in zip(columns, inputs, strict=True)]
            found.append(tree_unflatten(parts, in_spec))
        jacobians = tree_unflatten(found, spec)
        return (jacobians, aux[0]) if has_aux else jacobians
    return jacobian


def refuse_complex(name: str, tensors: Any, what: str) -> None:
    for i, x in enumerate(tree_leaves(tensors)):
        if isinstance(x, Tensor) and x.is_complex():
            raise RuntimeError(f"{name}: Expected all {what} to be real but received complex tensor at flattened input "
                               f"idx: {i}")


def basis_of(outputs: list[Any], sizes: list[int]) -> Callable[[int, int], list[Any]]:
    """Return basis(first, last): these unit vectors of all elements of the outputs, as a part for each output."""
    def part(first: int, last: int) -> list[Any]:
        found = []
        for i, (out, n) in enumerate(zip(outputs, sizes, strict=True)):
            rows = api.arange(first, last, device=out.device).unsqueeze(1)  # type: ignore[attr-defined]
            places = api.arange(sum(sizes[:i]), sum(sizes[:i]) + n, device=out.device)
            found.append((rows == places).to(out.dtype).reshape(last - first, *out.shape))
        return found
    return part


def rows_of(pull: Any, basis: Any, count: int, chunk_size: int | None) -> list[Any]:
    """Call `pull` for each unit vector, and stack the results along the first axis."""
    if chunk_size == 1:
        rows = [pull([part.squeeze(0) for part in basis(i, i + 1)]) for i in range(count)]
        return [api.stack(column) for column in zip(*rows, strict=True)]
    step = chunk_size or max(count, 1)
    chunks = [vmap(pull_all(pull))(*basis(i, min(i + step, count))) for i in range(0, max(count, 1), step)]
    return [column[0] if len(column) == 1 else api.cat(column) for column in zip(*chunks, strict=True)]


def pull_all(pull: Any) -> Any:
    return lambda *basis: pull(list(basis))
