"""Entries of a compiled function, for one signature each: an executable, or the reason why such calls run eagerly."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dispatch import fresh
from ..storage.cpu import NumpyStorage
from ..utils._pytree import tree_unflatten
from .guards import Guards, Stamps, same_tensors, state_of
from .state import Reason
from .tracing import Trace


class Entry:
    """A signature under the guards of one trace. `run` is None if such calls run eagerly, because of `reason`.

    Tensors that the program reads are `tensors`, by name; `objects` are arguments known by identity.
    """

    def __init__(self, run: Any, slots: list[tuple[str, Any]], spec: Any, strides: list[tuple[int, ...]],
                 tensors: dict[str, Any]) -> None:
        self.run, self.slots, self.spec, self.strides, self.tensors = run, slots, spec, strides, tensors
        self.reason: Reason | None = None
        self.again = False                          # True if the next call is to be traced as well
        self.objects: Sequence[Any] = ()
        self.guards = Guards([], set())
        self.relied: Stamps | None = None           # of tensors whose values the program read
        self.calls, self.inputs = 0, ""
        self.family: Any = None                     # of graphs for other sizes
        self.forms = [_form(tensor) for tensor in self.tensors.values()]
        self.state = state_of(self.tensors.values())
        self.single = len(slots) == 1 and slots[0] == ("made", 0) and spec.is_leaf()
        # the class of a result that is a tuple or list of leaves: building it takes less time than its spec does
        self.sequence = (spec.type if spec is not None and spec.type in (tuple, list)
                         and all(child.is_leaf() for child in spec.children_specs) else None)

    @classmethod
    def of_trace(cls, trace: Trace, objects: Sequence[Any], run: Any) -> Entry:
        """Return the entry of a trace."""
        made = cls(run, trace.slots, trace.spec, trace.strides, trace.tensors if trace.graph is not None else {})
        made.reason, made.objects = trace.reason, objects
        made.guards = Guards(trace.surroundings.places, trace.words, trace.changed)
        if trace.graph is not None and trace.graph.relied:
            made.relied = Stamps(trace.tensors[name] for name in trace.graph.relied)
        return made

    def holds(self) -> bool:
        """Return True if nothing changed that the trace relied on; after False, ask `failed`."""
        return (not self.again and self.guards.hold() and same_tensors(self.state)
                and (self.relied is None or not self.relied.changed()))

    def failed(self) -> str | None:
        """Return the name of what changed, or None if the entry holds after all.

        The values of tensors may change, their shapes and dtypes may not.
        """
        for (name, tensor), form in zip(self.tensors.items(), self.forms, strict=True):
            if _form(tensor) != form:
                return name
        if self.relied is not None and self.relied.changed():
            return "the value of a parameter or buffer that the program reads"
        found = self.guards.failed()
        if found is None:
            self.state = state_of(self.tensors.values())
        return found

    def results(self, arrays: Sequence[np.ndarray], inputs: Sequence[Any]) -> Any:
        """Run the graph on the arrays of these inputs, and return the program's result."""
        outs = self.run(arrays)
        made = []
        for array, strides in zip(outs, self.strides, strict=True):
            if array.strides != strides:
                array = _laid_out(array, strides)
            made.append(fresh(array, NumpyStorage))
        return self.nested(made, inputs)

    def nested(self, made: Sequence[Any], inputs: Sequence[Any]) -> Any:
        """Return the program's result, given the tensors that the graph computes."""
        self.calls += 1
        if self.single:
            return made[0]
        leaves = [made[value] if kind == "made" else inputs[value] if kind == "given" else value
                  for kind, value in self.slots]
        return tree_unflatten(leaves, self.spec) if self.sequence is None else self.sequence(leaves)

    def needs_grad(self) -> bool:
        """Return True if a tensor that the program reads requires a gradient."""
        return any(tensor._node is not None and tensor.requires_grad for tensor in self.tensors.values())


def _form(tensor: Any) -> tuple[Any, ...]:
    return type(tensor._storage), tensor.array.shape, tensor.array.dtype


def _laid_out(array: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """Return an array with the strides that the program itself gives its result, as far as they tell the order."""
    if any(step <= 0 for step in strides) or not array.size or array.flags.c_contiguous and _in_order(array, strides):
        return array
    order = sorted(range(array.ndim), key=lambda axis: -strides[axis])
    made = np.empty([array.shape[axis] for axis in order], array.dtype).transpose(np.argsort(order))
    made[...] = array
    return made


def _in_order(array: np.ndarray, strides: tuple[int, ...]) -> bool:
    """Return True if strides differ from those of a row-major array at most along axes of length 1."""
    return all(n == 1 or a == b for n, a, b in zip(array.shape, array.strides, strides, strict=True))


__all__ = ["Entry"]
