"""Run the calls of a graph: on fake tensors, to infer shapes, and on real ones, to compute examples."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import random
from ..nn import Module
from .calls import Call
from .data import ABSENT, SymbolicData, SymbolicTensor
from .fake_tensors import NoValues, fake_like
from .side_effects import quietly


def run_in_world(call: Call, world: int) -> Any:
    """Return a call's fake result in a world: from shapes alone, or from examples if the function reads values."""
    try:
        with quietly(*call.modules()):
            return fake_like(call.filled(lambda leaf: leaf._in_world(world) if isinstance(leaf, SymbolicData)
                                         else leaf).run())
    except NoValues:
        pass
    except Exception as error:
        raise explained(error, call) from None
    try:
        return fake_like(run_on_examples(call, world))
    except Exception as error:
        raise explained(error, call) from None


def first_values(call: Call, known: bool) -> list[Any]:
    """Return a new node's values in the three worlds.

    A call that fails in the first world may work in the third, with size 1.
    """
    try:
        value = run_in_world(call, 0)
    except (RuntimeError, ValueError, IndexError):
        if known:
            raise
        try:
            return [run_in_world(call, 2)] * 3
        except Exception:
            pass
        raise
    return [value] * 3 if known else [value, ABSENT, ABSENT]


def fill_world(node: SymbolicData, world: int) -> None:
    """Fill in the values of a node and its ancestors in a world.

    A call that fails there keeps its value of the first world.
    """
    for ancestor in lineage(node, lambda n: n._values[world] is ABSENT):
        try:
            ancestor._values[world] = run_in_world(ancestor._call, world)
        except (RuntimeError, ValueError, IndexError):
            ancestor._values[world] = ancestor._values[0]


def example(node: SymbolicData, world: int = 0) -> Any:
    """Return a real value of the node, computed from examples of the inputs."""
    return _examples([node], world)[node]


def run_on_examples(call: Call, world: int) -> Any:
    """Run a call on real values."""
    parents = [leaf for leaf in call.leaves() if isinstance(leaf, SymbolicData)]
    values = _examples(parents, world)
    return _really(call, values)


def _really(call: Call, values: dict[Any, Any]) -> Any:
    with quietly(*call.modules()), random.fork_rng():
        return call.filled(lambda leaf: values[leaf] if isinstance(leaf, SymbolicData) else leaf).run()


def _examples(nodes: Any, world: int) -> dict[Any, Any]:
    values: dict[Any, Any] = {}
    for node in nodes:
        for ancestor in lineage(node, lambda n: n not in values):
            values[ancestor] = ancestor._root(world) if ancestor._call is None else _really(ancestor._call, values)
    return values


def lineage(node: SymbolicData, wanted: Callable[[SymbolicData], bool]) -> list[SymbolicData]:
    """Return the node and the wanted ancestors reached through wanted ones only, parents before children."""
    found, waiting = {node} if wanted(node) else set(), [node]
    while waiting:
        for parent in waiting.pop()._parents:
            if parent not in found and wanted(parent):
                found.add(parent)
                waiting.append(parent)
    return sorted(found, key=lambda n: n._order)


def explained(error: Exception, call: Call) -> Exception:
    """Return the error with the layer's name and the shapes of its arguments added."""
    target = call.target
    what = repr(target) if isinstance(target, Module) and not target._modules else call.title()
    shapes = ", ".join(str(tuple(leaf.shape)) for leaf in call.leaves() if isinstance(leaf, SymbolicTensor))
    text = f"{error}\nThis came of adding {what} to the graph" + (f", to what has the shape {shapes}" if shapes else "")
    if type(error) in (RuntimeError, ValueError, TypeError, IndexError, AssertionError, NotImplementedError):
        return type(error)(text).with_traceback(error.__traceback__)
    error.add_note(text.partition("\n")[2])
    return error
