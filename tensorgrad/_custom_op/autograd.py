"""Gradients of operators by a function that chooses what to save, and one that returns a gradient for each name."""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from .._library.dispatcher import _AutoDispatchBelowAutograd
from .._tensor import Tensor
from .._unregistered import tensors_in
from ..autograd.function import Function
from ..core.mode import mode
from ..utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = ["autograd_kernel_indirection"]


def autograd_kernel_indirection(custom_op: Any) -> Callable[..., Any]:
    """Return the kernel for "Autograd": that of the registered functions, or one that refuses gradients."""
    def kernel(*args: Any, **kwargs: Any) -> Any:
        given = {name: custom_op._impls[name] for name in ("backward", "save_for_backward") if
                 custom_op._has_impl(name)}
        if len(given) == 2:
            return _recorded(custom_op, args)
        if given:
            (found, implementation), = given.items()
            missing = "backward" if found == "save_for_backward" else "save_for_backward"
            raise RuntimeError(f"We found a '{found}' registration for {custom_op} at {implementation.location} but "
                               f"were unable to find a '{missing}' registration. To use the CustomOp API to register a "
                               f"backward formula, please provide us both a backward function and a 'save for "
                               f"backward' function via `impl_backward` and `impl_save_for_backward` respectively.")
        if mode.grad and any(t.requires_grad for t in tensors_in(tree_leaves((args, kwargs)))):
            raise RuntimeError("Autograd has not been implemented for operator")
        with _AutoDispatchBelowAutograd():
            return custom_op(*args, **kwargs)
    return kernel


def _recorded(custom_op: Any, args: tuple[Any, ...]) -> Any:
    """Run the operator as one step of the tape."""
    flat, spec = tree_flatten(args)
    shape: list[Any] = []           # the structure of the output

    class Step(Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            inputs = tree_unflatten(list(values), spec)
            with _AutoDispatchBelowAutograd():
                output = custom_op(*inputs)
            ctx.kinds = _named(custom_op, tree_map(type, inputs))
            saved = custom_op._impls["save_for_backward"].func(_named(custom_op, inputs), output)
            leaves, ctx.spec = tree_flatten(saved)
            ctx.save_for_backward(*(v if isinstance(v, Tensor) else None for v in leaves))
            ctx.plain = [None if isinstance(v, Tensor) else v for v in leaves]
            _mark(ctx, output, custom_op._output_differentiability)
            results, form = tree_flatten(output)
            shape.append(form)
            return tuple(results)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            leaves = [v if t is None else t for t, v in zip(ctx.saved_tensors, ctx.plain)]
            grads = tree_unflatten(list(gradients), shape[0])
            grads = grads if isinstance(grads, tuple) else (grads,)
            found = custom_op._impls["backward"].func(object(), tree_unflatten(leaves, ctx.spec), *grads)
            _check(custom_op, found, ctx.kinds)
            parts = [found[name] if name in found else tree_map(lambda kind: None, kind)
                     for name, kind in ctx.kinds._asdict().items()]
            return tuple(tree_leaves(parts, is_leaf=lambda part: part is None))
    Step.__name__ = Step.__qualname__ = f"{custom_op._opname}_customop"
    return tree_unflatten(list(Step.apply(*flat)), shape[0])


def _named(custom_op: Any, values: Any) -> Any:
    """Return the arguments as a named tuple."""
    names = [argument.name for argument in custom_op._schema.arguments]
    return namedtuple(f"{custom_op._opname}_args", names)(*values)      # type: ignore[misc]


def _mark(ctx: Any, output: Any, differentiability: list[bool] | None) -> None:
    """Tell the step which of its results have no gradient."""
    if differentiability is None:
        return
    without: list[Any] = []
    for place, (differentiable, part) in enumerate(zip(differentiability, output if isinstance(output, tuple)
                                                       else (output,))):
        if isinstance(part, (Tensor, list)):
            without += [] if differentiable else tensors_in((part,))
        elif differentiable:
            raise RuntimeError(f"With output_differentiability={differentiability}. At idx {place}, we received an "
                               f"object of type {type(part)} that is not a Tensor, so it cannot have be marked as "
                               f"differentiable in output_differentiability.")
    ctx.mark_non_differentiable(*without)


def _check(custom_op: Any, found: Any, kinds: Any) -> None:
    """Raise PyTorch's error unless there is a gradient, or None, for each argument that is a tensor or holds some."""
    def refuse(what: str) -> None:
        raise RuntimeError(f"In the backward function defined for {custom_op} at "
                           f"{custom_op._impls['backward'].location} using the CustomOp API, {what}")

    if not isinstance(found, dict):
        refuse(f"expected the output of the backward function to be a dict but got {type(found)}")
    expected = {a.name for a in custom_op._schema.arguments if a.of_tensors}
    if expected != found.keys():
        refuse(f"expected the returned grad_input dict to have keys {expected} but got {found.keys()}. The backward "
               f"function must return a gradient (can be None) for each arg to the CustomOp that may be a Tensor or "
               f"Sequence[Tensor]. Args declared to be non-Tensor-like types should not appear in the grad_input dict")
    for name, gradient in found.items():
        kind = getattr(kinds, name)
        if isinstance(kind, list):
            _check_list(refuse, name, gradient, kind)
        elif gradient is not None and not isinstance(gradient, Tensor):
            refuse(f"got object of type {type(gradient)} as the gradient for input '{name}', but expected the gradient "
                   f"to be either None or a Tensor")
        elif gradient is not None and not issubclass(kind, Tensor):
            refuse(f"got a Tensor as the gradient for input '{name}' but expected None as the gradient because input "
                   f"'{name}' was not a Tensor (it was type {kind}).")


def _check_list(refuse: Callable[[str], None], name: str, gradients: Any, kinds: list[type]) -> None:
    expected = f"for input '{name}' expected the grad_input dict to hold a list of "
    if not isinstance(gradients, (tuple, list)):
        refuse(f"{expected}gradients but got object of type {type(gradients)}.")
    if len(gradients) != len(kinds):
        refuse(f"{expected}{len(kinds)} gradients but got {len(gradients)}")
    for place, (gradient, kind) in enumerate(zip(gradients, kinds)):
        if gradient is None:
            continue
        if not isinstance(gradient, Tensor):
            refuse(f"{expected}None or Tensor gradients but got object of {type(gradient)} at index {place}")
        if not issubclass(kind, Tensor):
            refuse(f"for input '{name}', got a Tensor as the gradient for the {place}-th value but expected None "
                   f"because the {place}-th value was not a Tensor (it was type {kinds}")
