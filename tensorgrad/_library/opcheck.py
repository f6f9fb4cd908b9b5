"""Tests of an operator on given arguments: `torch.library.opcheck`."""
from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from .. import _unregistered, api
from .._tensor import Tensor
from ..utils._pytree import tree_leaves, tree_map

PACKAGE = __name__.partition(".")[0]


class OpCheckError(Exception):
    """A test of an operator failed."""


def opcheck(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *,
            test_utils: str | Sequence[str] = (), raise_exception: bool = True, atol: float | None = None,
            rtol: float | None = None) -> dict[str, Any]:
    """Run tests of an operator on some arguments; return {test: 'SUCCESS' or its error}.

    test_schema: arguments that the schema does not say are written stay as they are, and results share no memory with
        them
    test_autograd_registration: gradients are registered, if an argument requires them
    test_faketensor: on device 'meta' results have the shapes, strides and dtypes of those on this device
    test_aot_dispatch_dynamic: `torch.compile` of the operator has equal results and gradients

    Input: test_utils: names of the tests to run, by default all
    Errors: OpCheckError if a test fails, unless raise_exception is False; ValueError for another name
    https://pytorch.org/docs → torch.library.opcheck

    >>> import tensorgrad as torch
    >>> @torch.library.custom_op("doc::halve", mutates_args=())
    ... def halve(x: torch.Tensor) -> torch.Tensor:
    ...     return x / 2
    >>> torch.library.opcheck(halve, (torch.ones(2),), raise_exception=False)["test_faketensor"]  # doctest: +ELLIPSIS
    RuntimeError('There was no fake impl registered for <CustomOpDef(doc::halve)>...')
    """
    operator = getattr(op, "_opoverload", None) or getattr(op, "default", op)
    names = (test_utils,) if isinstance(test_utils, str) else test_utils
    if not hasattr(operator, "_schema"):
        raise ValueError(f"opcheck(op, ...): op must be instance of OpOverload. Got {type(op)}")
    if unknown := set(names) - set(TESTS):
        raise ValueError(f"opcheck(op, ..., test_utils={test_utils}), expected test_utils to be subset of "
                         f"{tuple(TESTS)} but it was not: {unknown}")
    found: dict[str, Any] = {}
    for name in names or TESTS:
        try:
            TESTS[name](operator, args, kwargs or {}, {"atol": atol, "rtol": rtol})
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                                   ) from error
            found[name] = error
    return found


def copied(values: Any, device: Any = None) -> Any:
    """Return copies of the tensors in a structure, on another device if one is given."""
    def copy(t: Any) -> Any:
        if not isinstance(t, Tensor):
            return t
        made = t.detach().clone() if device is None else t.detach().to(device)
        return made.requires_grad_(t.requires_grad)
    return tree_map(copy, values)


def tensors(values: Any) -> list[Any]:
    """Return the tensors in a structure."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def check_schema(operator: Any, args: Any, kwargs: Any, close: Any) -> None:
    given, named = copied((args, kwargs))
    before = operator._schema.bound(*copied((args, kwargs)))
    with api.no_grad():
        made = tensors(operator(*given, **named))
    after = operator._schema.bound(given, named)
    for argument in operator._schema.arguments:
        place = [a.name for a in operator._schema.arguments if not a.kwarg_only]
        old, new = (tensors(values[1][argument.name] if argument.kwarg_only else values[0][place.index(argument.name)])
                    for values in (before, after))
        if argument.alias_info is not None:
            continue
        if not all(api.equal(a, b) or bool(api.equal(a.isnan(), b.isnan()) and a.isnan().any())
                   for a, b in zip(old, new)):
            raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")
        if any(a._storage is b._storage for a in new for b in made):
            raise RuntimeError(f"Argument {argument.name} is not defined to alias output but was aliasing")


def check_registration(operator: Any, args: Any, kwargs: Any, close: Any) -> None:
    given = tensors((args, kwargs))
    if not any(t.requires_grad for t in given) or operator.backward or operator.function or not REGISTERED.isdisjoint(
            operator.kernels):
        return
    before = _unregistered.MODES[0]
    _unregistered.MODES[0] = "nothing"
    try:
        made = tensors(operator(*args, **kwargs))
    finally:
        _unregistered.MODES[0] = before
    if any(out.requires_grad and not any(out is t for t in given) for out in made):
        raise AssertionError(f"{operator.name()}: at least one output of this operator has requires_grad=True but the "
                             f"operator does not have an autograd kernel defined at an autograd key (e.g. DispatchKey::"
                             f"Autograd). Please use register_autograd to add a formula, or register a kernel that "
                             f"consists of functions of tensors for CompositeImplicitAutograd")


def check_shapes(operator: Any, args: Any, kwargs: Any, close: Any) -> None:
    with api.no_grad():
        real = tensors(operator(*copied(args), **copied(kwargs)))
        shapes = tensors(operator(*copied(args, "meta"), **copied(kwargs, "meta")))
    text = (f"When comparing the output of {operator} on FakeTensor and concrete Tensors, found mismatched "
            f"tensor metadata: ")
    if len(real) != len(shapes):
        raise RuntimeError(f"{text}{len(real)} and {len(shapes)} tensors")
    for a, b in zip(real, shapes):
        for name, x, y in (("Shapes", a.shape, b.shape), ("Dtypes", a.dtype, b.dtype),
                           ("Strides", a.stride(), b.stride())):
            if x != y:
                raise RuntimeError(f"{text}{name} {x} and {y} are not equal!")


def check_compiled(operator: Any, args: Any, kwargs: Any, close: Any) -> None:
    check_shapes(operator, args, kwargs, close)
    package = import_module(PACKAGE)
    found = []
    for function in (operator, package.compile(lambda *args, **kwargs: operator(*args, **kwargs))):
        given, named = copied((args, kwargs))
        made = tensors(function(*given, **named))
        wanted = [t for t in tensors((given, named)) if t.requires_grad]
        outputs = [t for t in made if t.requires_grad]
        if wanted and outputs:
            weights = [api.arange(1, t.numel() + 1, dtype=t.dtype).reshape(t.shape) for t in outputs]
            made += package.autograd.grad(outputs, wanted, weights, allow_unused=True)
        found.append(made)
    package.testing.assert_close(found[1], found[0], **close)


REGISTERED = {"Autograd", "AutogradCPU", "AutogradCUDA", "CompositeImplicitAutograd"}
TESTS = {"test_schema": check_schema, "test_autograd_registration": check_registration,
         "test_faketensor": check_shapes, "test_aot_dispatch_dynamic": check_compiled}
