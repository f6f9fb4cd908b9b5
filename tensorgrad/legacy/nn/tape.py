"""The record of an `updateOutput`, with which autograd replaces a backward in each class of `legacy.nn`.

A class computes its output from its input and its weights with present functions. `Tape` runs this on leaves of the
graph, keeps the inputs and outputs of each module, and computes all gradients in one backward: those of every module's
input, which become `gradInput`, and those of weights, which wait until `accGradParameters` adds them.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import api as tg
from ...autograd import grad
from ...autograd.function import Function

__all__ = ["Tape", "flat", "mapped"]


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply `function` to each tensor in nested lists and tuples; other values pass through."""
    if isinstance(value, (list, tuple)):
        return [mapped(function, v) for v in value]
    return function(value) if isinstance(value, tg.Tensor) else value


def flat(value: Any) -> list[Any]:
    """Return the tensors in nested lists and tuples, in order."""
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    return [value] if isinstance(value, tg.Tensor) else []


def _differentiable(tensor: Any) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()  # type: ignore[no-any-return]


class Tape:
    """A run of a module on `input` by `updateOutput`. `target` is a criterion's target."""

    def __init__(self, module: Any, input: Any, *target: Any) -> None:
        self.input = input
        # (module, name of a weight) → module, name, leaf
        self.leaves: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self.runs: list[tuple[Any, Any]] = []                                  # modules and their inputs, in order
        # hand-written modules, their input and gradOutput
        self.late: list[tuple[Any, Any, Any]] = []
        # gradOutput, and the gradients of weights for it
        self.found: tuple[Any, list[tuple[Any, str, Any]]] | None = None
        with tg.enable_grad():
            self.root = mapped(lambda t: t.detach().requires_grad_(_differentiable(t)), input)
            self.output = module.record(self, self.root, *target)
        # read after the run, because a module may write to its input
        self.versions = [t._version for t in flat(input)]

    def of(self, input: Any) -> bool:
        """Return True if this records a run on `input` with its present values."""
        given, own = flat(input), flat(self.input)
        return (len(given) == len(own) and all(a is b for a, b in zip(given, own))
                and [t._version for t in given] == self.versions)

    def weight(self, module: Any, name: str) -> Any:
        """Return a weight of a module as a leaf of this graph; None if that attribute is None."""
        value = getattr(module, name)
        if value is None:
            return None
        key = id(module), name
        if key not in self.leaves:
            self.leaves[key] = module, name, value.detach().requires_grad_(_differentiable(value))
        return self.leaves[key][2]

    def enter(self, module: Any, input: Any) -> Any:
        """Record a module's input, and return views of it, so that a tensor that several modules read has a gradient
        for each."""
        own = mapped(lambda t: t.view_as(t) if t.requires_grad else t, input)
        self.runs.append((module, own))
        return own

    def backward(self, gradOutput: Any) -> None:
        """Compute all gradients from the output's: set each module's `gradInput`, keep those of weights."""
        outputs = [(o, g) for o, g in zip(flat(self.output), flat(gradOutput)) if o.requires_grad]
        inputs = [(module, own, [t for t in flat(own) if t.requires_grad]) for module, own in self.runs]
        leaves = [entry for entry in self.leaves.values() if entry[2].requires_grad]
        wanted = [t for _, _, tensors in inputs for t in tensors] + [leaf for _, _, leaf in leaves]
        self.late.clear()
        gradients: list[Any] = [None] * len(wanted)
        if outputs and wanted:
            gradients = list(grad([o for o, _ in outputs], wanted, [g for _, g in outputs], retain_graph=True,
                                  allow_unused=True))
        arrived = iter(gradients)
        for module, own, _ in inputs:
            module.gradInput = mapped(lambda t: _or_zeros(next(arrived) if t.requires_grad else None, t), own)
        self.found = gradOutput, [(module, name, g) for (module, name, _), g in zip(leaves, arrived) if g is not None]

    def accumulate(self, scale: float) -> None:
        """Add the gradients of weights, times `scale`, to the modules' attributes."""
        assert self.found is not None
        for module, name, gradient in self.found[1]:
            getattr(module, grad_name(name)).add_(gradient, alpha=scale)
        for module, input, gradOutput in self.late:
            module.accGradParameters(input, gradOutput, scale)


def grad_name(name: str) -> str:
    """Return the name of the attribute for a weight's gradient.

    >>> grad_name("weight")
    'gradWeight'
    """
    return f"grad{name[0].upper()}{name[1:]}"


def _or_zeros(gradient: Any, tensor: Any) -> Any:
    return tg.zeros_like(tensor) if gradient is None else gradient.detach()


class HandWritten(Function):
    """A module that defines `updateOutput` and `updateGradInput` itself, as one step of the tape."""

    @staticmethod
    def forward(ctx: Any, tape: Tape, module: Any, input: Any, *tensors: Any) -> Any:
        ctx.tape, ctx.module = tape, module
        given = iter(tensors)
        ctx.input = mapped(lambda t: next(given).detach(), input)
        ctx.set_materialize_grads(True)
        output = module.updateOutput(ctx.input)
        if isinstance(output, (list, tuple)):
            raise NotImplementedError(f"{type(module).__name__}.updateOutput gives a table: inside a container, a "
                                      f"module written by hand gives one tensor")
        return output.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        found = ctx.module.updateGradInput(ctx.input, gradient)
        ctx.tape.late.append((ctx.module, ctx.input, gradient))
        return None, None, None, *flat(found)
