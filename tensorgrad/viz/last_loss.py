"""The last loss of a program that runs as it always does: what `python -m tensorgrad.viz` draws once the program has
ended.

A backward frees what it went through, and an optimizer then writes over the parameters. So each backward here keeps
what it would free, and copies the parameters, until the next one comes; the program sees no difference. `restore` then
puts the numbers back that the last backward saw.
"""
from __future__ import annotations

from typing import Any

from .. import autograd
from ..advice import went_back
from ..autograd import function
from ..core import engine, tape
from ..core.step import PlainStep
from ..core.tape import Leaf, TensorBase, node_of
from ..storage.base import clock
from .modules import outermost
from .naming import variables
from .notes import place
from .tape import behind


class Last:
    """While it lasts, notes each backward of the program, or, as long as there was none, each step whose result is one
    number.

    `outputs` are the tensors that the last backward started from, `gradients` what it was given for them, and `scope`
    the variables of the program there, by name.
    """

    def __init__(self) -> None:
        self.outputs: tuple[Any, ...] = ()
        self.gradients: Any = None
        self.scope: dict[str, Any] = {}
        self.backwards = 0
        self.saved: list[tuple[Any, Any]] = []          # (step, what it saved)
        # (tensor, its array, a copy, its storage, when that was written, its gradient)
        self.leaves: list[tuple[Any, ...]] = []

    def __enter__(self) -> Last:
        self.plain, self.show = engine.backward, tape.show
        engine.backward = autograd.backward = self.backward
        for module in (tape, function):
            module.show = self.shown                                # type: ignore[attr-defined]
        return self

    def __exit__(self, *exception: object) -> None:
        engine.backward = autograd.backward = self.plain
        for module in (tape, function):
            module.show = self.show                                 # type: ignore[attr-defined]

    def shown(self, node: Any, outs: Any) -> None:
        self.show(node, outs)
        if not self.backwards and outs[0].array.shape == ():
            self.outputs, self.scope = (outs[0],), variables(place())

    def backward(self, tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None,
                 create_graph: bool = False, grad_variables: Any = None,
                 inputs: Any = None) -> None:
        outputs = (tensors,) if isinstance(tensors, TensorBase) else tuple(tensors)
        if create_graph or any(node_of(t) is None for t in outputs):
            self.plain(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
            return
        self.keep(outputs, grad_tensors if grad_tensors is not None else grad_variables)
        self.plain(tensors, grad_tensors, True, create_graph, grad_variables, inputs)
        if not retain_graph:
            for step, _ in self.saved:
                step.free()
            if self.saved:
                went_back([step for step, _ in reversed(self.saved)], next(clock), 1)

    def keep(self, outputs: tuple[Any, ...], gradients: Any) -> None:
        """Note what a backward is about to start from, and to free."""
        nodes = behind([node_of(t) for t in outputs])
        steps = [(node, node.memory) for node in nodes if isinstance(node, PlainStep)]
        if any(step.freed for step, _ in steps):
            return                                                  # the backward will say so
        self.outputs, self.gradients, self.saved, self.scope = outputs, gradients, steps, variables(place())
        self.backwards += 1
        held = [leaf.tensor for leaf in nodes if type(leaf) is Leaf and leaf.tensor is not None]
        self.leaves = [(t, t.array, t.array.copy(), t._storage, t._storage.written,
                        None if t._grad is None else t._grad.detach().clone()) for t in held]

    def restore(self) -> None:
        """Put the numbers back that the last backward saw: for a program that has ended."""
        for step, memory in self.saved:
            step.memory = memory
        for tensor, array, copy, storage, written, grad in self.leaves:
            if getattr(getattr(array, "flags", None), "writeable", True):
                array[...] = copy
            storage.written, tensor.array, tensor._storage, tensor._grad = written, array, storage, grad

    def module(self) -> Any:
        """The program's module that the parameters belong to, if there is one, and only one."""
        held = {id(tensor) for tensor, *_ in self.leaves}
        modules = {id(value): value for value in outermost(self.scope).values()}
        found = [module for module in modules.values() if any(id(p) in held for p in module.parameters())]
        return found[0] if len(found) == 1 else None
