"""Record branches and loops on unknown values as steps of a graph.

A function's steps are recorded where it is called, and then moved to a graph of its own, whose inputs are the values
that they use: operands, and whatever else of the program the function refers to.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..api import Tensor
from ..core.dispatch import wrap
from ..graph.backend import RecordingStorage
from ..graph.graph import Graph
from ..graph.lines import CannotLower, user_line
from ..graph.node import Node
from ..graph.recorded import Recorded
from ..graph.recorder import here
from ..graph.recording import CLONE, argument
from ..interpret.symbol import Symbol
from ..utils._pytree import tree_flatten, tree_unflatten
from .operators import cond, while_loop


class Part(NamedTuple):
    """The steps of a function: nodes of the program's graph, its results, and how these are nested."""

    nodes: list[Node]
    results: list[Any]
    spec: Any

    @property
    def inputs(self) -> list[Node]:
        """The nodes that the steps use, and that are none of them."""
        own = set(self.nodes)
        found: dict[Node, None] = {}
        for node in self.nodes:
            found.update(dict.fromkeys(each for each in node._input_nodes if each not in own))
        found.update(dict.fromkeys(node for result in self.results if isinstance(result, Tensor)
                                   and (node := argument(result.array)) not in own))
        return list(found)

    def graph(self, inputs: list[Node], single: bool = False) -> Graph:
        """Return a copy of the steps as a graph with these inputs, whose result is a tuple unless `single`."""
        made = Graph()
        copies = {node: made.placeholder(f"arg{i}_1") for i, node in enumerate(inputs)}
        for node, copy in copies.items():
            copy.meta.update({key: value for key, value in node.meta.items() if key != "value"})
        for node in self.nodes:
            copies[node] = made.node_copy(node, copies.__getitem__)
        results = tuple(copies[argument(leaf.array)] if isinstance(leaf, Tensor) else leaf for leaf in self.results)
        made.output(results[0] if single else results)
        return made

    def leave(self) -> None:
        """Erase the steps from the program's graph."""
        for node in reversed(self.nodes):
            node.graph.erase_node(node)


def records(value: Any) -> bool:
    """Return True for a tensor with an unknown value, in a recording that takes control flow."""
    return (here.recorder is not None and here.recorder.branches and isinstance(value, Tensor)
            and type(value.array) is Recorded and not value.array.known)


def steps_of(function: Callable[..., Any], operands: Any, name: str) -> Part:
    """Record a function."""
    recorder = here.recorder
    before, written = len(recorder.graph), [operand.array.memory.written for operand in operands
                                            if isinstance(operand, Tensor)]
    results, spec = tree_flatten(function(*operands))
    if written != [operand.array.memory.written for operand in operands if isinstance(operand, Tensor)]:
        raise CannotLower(f"a function of {name} that writes to its inputs", user_line())
    for leaf in results:
        if isinstance(leaf, Tensor):
            argument(RecordingStorage.asarray(leaf.array))
    nodes = [node for node in list(recorder.graph.nodes)[before:] if node.op == "call_function"]
    return Part(nodes, results, spec)


def wrapped(operator: Any, args: Any, results: list[Any], spec: Any) -> Any:
    """Add a step, and return its results: tensors as these."""
    recorder = here.recorder
    tensors = [leaf for leaf in results if isinstance(leaf, Tensor)]
    inner = [leaf.array.inner for leaf in tensors]
    symbols = [each if recorder.reading is not None else Symbol(tuple(each.shape), each.dtype, None) for each in inner]
    nodes = iter(recorder.step(operator, args, {}, symbols, False, several=True))
    made = iter([wrap(Recorded(symbol, node, False), RecordingStorage()) for symbol, node in zip(symbols, nodes)])
    return tree_unflatten([next(made) if isinstance(leaf, Tensor) else leaf for leaf in results], spec)


def recorded_cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> Any:
    """Record a choice between two functions. RuntimeError if their results differ in more than values."""
    parts = steps_of(true_fn, operands, "torch.cond"), steps_of(false_fn, operands, "torch.cond")
    one, other = ([(leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else leaf for leaf in part.results]
                  for part in parts)
    if parts[0].spec != parts[1].spec or one != other:
        raise RuntimeError(f"Unmatched output spec from torch.cond branches: true branch tree_spec {parts[0].spec} vs "
                           f"false branch tree_spec {parts[1].spec}." if parts[0].spec != parts[1].spec else
                           f"torch.cond: the branches return {one} and {other}")
    given = [argument(operand.array) for operand in operands if isinstance(operand, Tensor)]
    inputs = list(dict.fromkeys([*given, *parts[0].inputs, *parts[1].inputs]))
    graphs = [part.graph(inputs) for part in parts]
    chosen = parts[0] if here.recorder.reading is None or bool(pred.array.inner) else parts[1]
    results = list(chosen.results)
    for part in reversed(parts):
        part.leave()
    return wrapped(cond, (argument(pred.array), *graphs, tuple(inputs)), results, chosen.spec)


def recorded_while_loop(cond_fn: Any, body_fn: Any, values: Any) -> Any:
    """Record a loop. RuntimeError if the body returns other shapes or dtypes than it is given."""
    recorder = here.recorder
    leaves, spec = tree_flatten(tuple(values))
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise CannotLower("while_loop with numbers among the carried values", user_line())
    arrays = [RecordingStorage.asarray(leaf.array) for leaf in leaves]
    symbols = [Symbol(a.shape, a.dtype, None) for a in arrays]
    firsts = [recorder.step(CLONE, (argument(a),), {}, [symbol], False)[0] for a, symbol in zip(arrays, symbols)]
    carried = [wrap(Recorded(symbol, node, False), RecordingStorage()) for symbol, node in zip(symbols, firsts)]
    nested = tree_unflatten(carried, spec)
    condition = steps_of(lambda *leaves: cond_fn(*nested), carried, "while_loop")
    body = steps_of(lambda *leaves: body_fn(*nested), carried, "while_loop")
    if [(a.shape, a.dtype) for a in body.results] != [(a.shape, a.dtype) for a in leaves]:
        raise RuntimeError("Expected carried_inputs and body_output to have same metadata but found "
                           f"{[(a.shape, a.dtype) for a in leaves]} and {[(a.shape, a.dtype) for a in body.results]}")
    more = [node for node in dict.fromkeys([*condition.inputs, *body.inputs]) if node not in firsts]
    graphs = [condition.graph(firsts + more, single=True), body.graph(firsts + more)]
    results = list(body.results)
    for part in (body, condition):
        part.leave()
    return wrapped(while_loop, (*graphs, tuple(firsts), tuple(more)), results, spec)
