"""Derivatives of functions, forward: jvp, jacfwd, linearize, hessian. https://pytorch.org/docs/stable/func.api.html

Tangents are pushed through each step as it is recorded (see interpret/forward.py); `linearize` keeps the tape, and
pushes along it each time its result is called.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from .. import api
from .._tensor import Tensor
from ..core.mode import mode
from ..interpret.forward import Level, check_continuous, push_forward, see, stand_in
from ..storage.base import clock
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from .batching import vmap
from .gradients import ASSIGNED, checked_argnums, checked_aux, chosen_args, jacrev, refuse_complex

JVP = "jvp(f, primals, tangents)"


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """func(*primals), and how it changes as its arguments move along the tangents: J·t.

    https://pytorch.org/docs → torch.func.jvp

    Returns (output, J·t), or (output, J·t, more) with has_aux. `tangents` has the structure of the tuple `primals`.
    strict: results that do not depend on the arguments are errors, not zeros.

    >>> import tensorgrad as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.),), (torch.tensor(3.),))
    (tensor(0.), tensor(3.))
    """
    return jvp_of(func, primals, tangents, None, strict, has_aux)


def jvp_of(func: Any, primals: Any, tangents: Any, argnums: Any, strict: bool, has_aux: bool) -> Any:
    """`jvp` along tangents of some of the arguments."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    moving = primals if argnums is None else chosen_args(primals, argnums if isinstance(argnums, tuple) else (argnums,))
    values, spec = tree_flatten(moving)
    directions, tangents_spec = tree_flatten(tangents)
    if spec != tangents_spec:
        raise RuntimeError(f"{JVP}: Expected primals and tangents to have the same python structure. For example, if "
                           f"primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {spec} "
                           f"and tangents with structure {tangents_spec}")
    _check_tensors(values, "primals")
    _check_tensors(directions, "tangents")
    start = next(clock)
    with _recording(forward=True), Level() as level:
        duals = []
        for value, direction in zip(values, directions, strict=True):
            check_continuous(value, direction)
            duals.append(level.dual(value, direction))
        output, aux = func(*_replaced(primals, tree_unflatten(duals, spec), argnums)), None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(f"{JVP}: output of function f should be a tuple: (output, aux) if has_aux is True")
            output, aux = output
            aux = tree_map(lambda x: level.primal(x, start), checked_aux(aux))
        outputs, out_spec = tree_flatten(output)
        _check_outputs(outputs)
        pushed = [level[out.node] for out in outputs]
        if strict and any(t is None for t in pushed):
            raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
                               "This is not allowed with strict=True.")
        found = [level.primal(out, start) for out in outputs]
        pushed = [api.zeros_like(out) if t is None else level.primal(t, start)
                  for out, t in zip(found, pushed, strict=True)]
    result = tree_unflatten(found, out_spec), tree_unflatten(pushed, out_spec)
    return (*result, aux) if has_aux else result


def _replaced(args: tuple[Any, ...], chosen: Any, argnums: Any) -> Any:
    """The arguments with some of them replaced."""
    if argnums is None:
        return chosen
    places = checked_argnums(argnums, len(args))
    by_place = dict(zip(places if isinstance(places, tuple) else (places,), chosen, strict=True))
    return tuple(by_place.get(i, a) for i, a in enumerate(args))


@contextmanager
def _recording(forward: bool = False, grad: bool | None = None) -> Iterator[None]:
    """Turn the tape on, whatever the mode around: for tangents only, or for gradients, too."""
    before = mode.grad, mode.inference, mode.tangents.on
    mode.inference, mode.tangents.on = False, forward or mode.tangents.on
    mode.transforms += 1
    mode.set_grad(mode.grad if grad is None else grad)
    try:
        yield
    finally:
        _, mode.inference, mode.tangents.on = before
        mode.transforms -= 1
        mode.set_grad(before[0])


def _check_tensors(values: list[Any], what: str) -> None:
    if not values:
        raise RuntimeError(f"{JVP}: Expected {what} to contain at least one Tensor.")
    for value in values:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{JVP}: Expected {what} to only contain Tensors, got {type(value)}")


def _check_outputs(outputs: list[Any]) -> None:
    if not outputs or outputs == [None]:
        raise RuntimeError(f"{JVP}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for out in outputs:
        if not isinstance(out, Tensor):
            raise RuntimeError(f"{JVP}: expected f(*primals) to return only tensors, got unsupported type {type(out)}")


# ── Jacobians ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def jacfwd(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error",
           chunk_size: int | None = None) -> Callable[..., Any]:
    """The function that gives the Jacobian of `func`, column by column: one push for each element of the argument, all
    at once. https://pytorch.org/docs → torch.func.jacfwd

    J[i, j] = d func(x)[i] / dx[j], of shape (*out.shape, *x.shape), in the structure of the result, and in each place
    that of the argument.
    chunk_size: how many columns at a time. randomness: as in vmap.

    >>> import tensorgrad as torch
    >>> torch.func.jacfwd(lambda x: x ** 2)(torch.tensor([1., 3.]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    @wraps(func, assigned=ASSIGNED)
    def jacobian(*args: Any) -> Any:
        refuse_complex("jacfwd", args, "inputs")
        primals = chosen_args(args, argnums)
        inputs, spec = tree_flatten(primals if isinstance(argnums, tuple) else (primals,))
        sizes = [x.numel() for x in inputs]

        def push(*basis: Any) -> Any:
            output, pushed, *aux = jvp_of(func, args, tree_unflatten(basis, spec), argnums, False, has_aux)
            refuse_complex("jacfwd", output, "outputs")
            return (pushed, *aux) if has_aux else pushed
        columns = vmap(push, randomness=randomness, chunk_size=chunk_size)(*unit_vectors(inputs, sizes))
        if has_aux:
            columns, aux = columns
        outputs, out_spec = tree_flatten(columns)
        found = []
        for column in outputs:
            rows = column.movedim(0, -1).split(sizes, dim=-1)
            parts = tree_unflatten([row.reshape((*column.shape[1:], *x.shape))
                                    for row, x in zip(rows, inputs, strict=True)], spec)
            found.append(parts if isinstance(argnums, tuple) else parts[0])
        jacobians = tree_unflatten(found, out_spec)
        return (jacobians, tree_map(lambda x: x[0], aux)) if has_aux else jacobians
    return jacobian


def unit_vectors(tensors: Any, sizes: Any) -> list[Any]:
    """The unit vectors of all elements of the tensors together, along the first axis: for each tensor, its part."""
    count = sum(sizes)
    return [api.eye(count, dtype=x.dtype, device=x.device).narrow(1, sum(sizes[:i]), n).reshape(count, *x.shape)
            for i, (x, n) in enumerate(zip(tensors, sizes, strict=True))]


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The function that gives the second derivatives of `func`: forward over reverse, jacfwd(jacrev(func)).

    https://pytorch.org/docs → torch.func.hessian

    >>> import tensorgrad as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


# ── linearize ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """func(*primals), and the function t ↦ J·t at this point, which does not run `func` again.

    https://pytorch.org/docs → torch.func.linearize

    >>> import tensorgrad as torch
    >>> out, push = torch.func.linearize(torch.exp, torch.tensor(0.))
    >>> out, push(torch.tensor(2.)), push(torch.tensor(3.))
    (tensor(1.), tensor(2.), tensor(3.))
    """
    values, spec = tree_flatten(primals)
    start, recorded = next(clock), mode.grad and not mode.inference
    with _recording(grad=True):
        inputs = [stand_in(x, recorded) for x in values]
        outputs, out_spec = tree_flatten(func(*tree_unflatten(inputs, spec)))
        for x in outputs:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"{JVP}: expected f(*args) to return only tensors, got unsupported type {type(x)}")
    forms = [(x.shape, x.device, x.dtype) for x in values]
    found = [see.settled(out, start) for out in outputs]

    def push(*tangents: Any) -> Any:
        directions, tangents_spec = tree_flatten(tangents)
        if tangents_spec != spec:
            raise RuntimeError(f"Expected the tangents {tangents_spec} to have the same argspec as the primals {spec}")
        for i, (t, form) in enumerate(zip(directions, forms, strict=True)):
            for what, expected in zip(("shape", "device", "dtype"), form, strict=True):
                if (got := getattr(t, what)) != expected:
                    raise RuntimeError(f"tangent:{i} with {what} {got} in flattened pytree doesn't match the {what} "
                                       f"{expected} of the corresponding primal.")
        again = mode.grad and any(x.node is not None for x in (*found, *directions))
        with _recording(grad=again):
            pushed = push_forward({x.node: t for x, t in zip(inputs, directions, strict=True)}, outputs)
        return tree_unflatten([api.zeros_like(out) if t is None else see.settled(t, start)
                               for out, t in zip(found, pushed, strict=True)], out_spec)
    return tree_unflatten(found, out_spec), push
