"""Convert lowered graphs to an ONNX graph: find needed steps and constants, and write each step by its rule."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import getitem
from typing import Any

import numpy as np

from ..graph import Node
from ..graph.nesting import leaves
from ._graph import BOOL, Graph, Refused, Term
from ._rules import load
from ._sizes import Unequal, Varying, merged, varying
from .errors import OnnxExporterError, SymbolicValueError, UnsupportedOperatorError

NUMBERS = (int, float, complex, bool, np.generic)
# omitted from the file: the result is the last operand
SAME = {"channels_last", "clone", "contiguous", "copied", "in_columns"}


class Lowered:
    """A lowered graph, indexed for the exporter: its inputs, the tensors of the model, the steps with their results,
    the outputs."""

    def __init__(self, graph: Any) -> None:
        self.inputs, self.state, self.steps = [], [], []
        self.results: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            if node.op == "call_function":
                if node.target is getitem:
                    self.results[node.args[0]].append(node)
                else:
                    self.steps.append(node)
                    self.results[node] = [] if isinstance(node.meta["dtype"], list) else [node]
            elif node.op == "placeholder":
                self.inputs.append(node)
            elif node.op == "output":
                self.outputs = nodes_in(node.args)
            elif "state" in node.meta:
                self.state.append(node)


def nodes_in(tree: Any) -> list[Node]:
    return [leaf for leaf in leaves(tree) if isinstance(leaf, Node)]


def name_of(step: Node) -> str:
    """Return the name under which rules are registered for a step."""
    return getattr(step.target, "opname", None) or step.target.__name__


def step_of(value: Node) -> Node | None:
    """Return the step that computes a value."""
    if value.op != "call_function":
        return None
    return value.args[0] if value.target is getitem else value


def place(value: Node | None) -> str:
    return f"{name_of(value)}, {value.meta['source']}" if value is not None else ""


class Builder:
    """Writes the steps of the first graph; the other graphs show which values vary."""

    def __init__(self, graph: Graph, lowered: Sequence[Any], folding: bool) -> None:
        self.g, self.graphs, self.folding = graph, list(map(Lowered, lowered)), folding
        self.rules = load()
        self.peers: dict[Node, tuple[Node, ...]] = {}
        self.places: dict[Node, int] = {}
        self.constants: dict[Node, bool] = {}
        self.terms: dict[Node, Term] = {}
        self.unsupported: list[tuple[str, str]] = []
        self.match()

    # ── several traces ────────────────────────────────────────────────────────────────────────────────────────────

    def match(self) -> None:
        """Pair the values of the traces that correspond to each other. SymbolicValueError if the traces differ."""
        self.pair([t.inputs for t in self.graphs])
        self.pair([t.state for t in self.graphs])
        for number, steps in enumerate(zip(*[t.steps for t in self.graphs], strict=False)):
            first = steps[0]
            if any(s.target != first.target for s in steps):
                raise self.different(first)
            self.places[first] = number
            self.pair([s.all_input_nodes for s in steps])
            self.pair([t.results[s] for t, s in zip(self.graphs, steps, strict=True)])
        if any(len(t.steps) != len(self.graphs[0].steps) for t in self.graphs):
            raise self.different(self.graphs[0].steps[-1])
        self.pair([t.outputs for t in self.graphs])

    def pair(self, lists: Sequence[Sequence[Node]]) -> None:
        if any(len(values) != len(lists[0]) for values in lists):
            raise self.different(None)
        for values in zip(*lists, strict=True):
            if self.peers.setdefault(values[0], values) != values:
                raise self.different(step_of(values[0]))

    def different(self, step: Any) -> SymbolicValueError:
        where = f" (the traces part at {place(step)})" if step is not None else ""
        return SymbolicValueError("what the model computes depends on the size of a dynamic axis: with another size it "
                                  "takes other steps" + where)

    def shape(self, value: Node) -> tuple[Any, ...]:
        peers = self.peers.get(value, (value,))
        if len(peers) == 1:
            return value.meta["shape"]  # type: ignore[no-any-return]
        shapes = [v.meta["shape"] for v in peers]
        if any(len(shape) != len(shapes[0]) for shape in shapes):
            raise self.different(step_of(value))
        return tuple(map(varying, zip(*shapes, strict=True)))

    def constant(self, value: Node) -> bool:
        """Return True if a value depends neither on an input nor on a dynamic axis."""
        data = value.meta.get("value")
        if data is None or "state" in value.meta:
            return data is not None
        found = self.constants.get(value)
        if found is None:
            found = self.constants[value] = all((other := v.meta.get("value")) is data
                                                or np.array_equal(other, data, equal_nan=data.dtype.kind in "fc")
                                                for v in self.peers.get(value, ()))
        return found

    # ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def build(self, inputs: Sequence[str]) -> list[Term]:
        """Write the steps that the outputs need, and return the outputs' terms."""
        base = self.graphs[0]
        for name, value in zip(inputs, base.inputs, strict=True):
            self.terms[value] = Term(name, self.shape(value), value.meta["dtype"])
        for step in self.needed(base.outputs):
            self.write(step)
        if self.unsupported:
            raise UnsupportedOperatorError(self.unsupported)
        return [self.term(v) for v in base.outputs]

    def needed(self, outputs: Sequence[Node]) -> list[Node]:
        """Return the steps that the outputs depend on, in order."""
        found: set[Node] = set()
        waiting = list(outputs)
        while waiting:
            step = step_of(waiting.pop())
            if step is None or step in found or (all(map(self.constant, self.graphs[0].results[step])) and
                                                 (self.folding or name_of(step).startswith("make_"))):
                continue
            found.add(step)
            waiting += step.all_input_nodes
        return sorted(found, key=self.places.__getitem__)

    def term(self, value: Node) -> Term:
        if value not in self.terms:
            self.terms[value] = self.leaf(value)
        return self.terms[value]

    def leaf(self, value: Node) -> Term:
        """Return the term of a constant: of the model, folded, or a tensor that the program made of sizes."""
        data, dtype, step = value.meta.get("value"), value.meta["dtype"], step_of(value)
        if self.constant(value):
            name = value.target if "state" in value.meta else None
            if name is None and step is not None and data.size > 64:
                name = f"{step.meta['scope']}.folded" if step.meta["scope"] else "folded"
            return self.g.constant(data, name=name)
        peers = self.peers.get(value, (value,))
        if (data is None or dtype.kind not in "iu" or data.size > 64
                or any(v.meta["shape"] != data.shape for v in peers)):
            raise SymbolicValueError("a constant depends on the sizes of dynamic axes in a way that cannot be told"
                                     f"{f' ({place(step)})' if step is not None else ''}")
        numbers = [varying(list(map(int, n))) for n in zip(*[v.meta["value"].reshape(-1) for v in peers], strict=True)]
        flat = self.g.cast(self.g.sizes(numbers), dtype)
        return Term(self.g.Reshape(flat, np.asarray(data.shape, np.int64)).name, data.shape, dtype)

    def write(self, step: Node) -> None:
        """Write a step by its rule."""
        g, name, results = self.g, name_of(step), self.graphs[0].results[step]
        if name in SAME:
            self.terms[step] = self.term(step.args[-1])
            return
        known = self.rules.get(name)
        if known is None:
            self.refuse(step)
            return
        if any(v.meta["dtype"].kind == "c" for v in (*results, *step.all_input_nodes)):
            self.refuse(step, "of complex numbers")
            return
        calls = list(map(call_of, [t.steps[self.places[step]] for t in self.graphs]))
        g.scope, g.op, g.out = step.meta["scope"], name, [Term("", self.shape(v), v.meta["dtype"]) for v in results]
        try:
            params = merged([params for _, params in calls])
            inputs = self.operands(step, calls[0][0],
                                   merged([tuple(v for v in inputs if not isinstance(v, Node)) for inputs, _ in calls]))
            made = known(g, *inputs, **params)
        except Refused as reason:
            self.refuse(step, str(reason))
            return
        except Unequal:
            raise SymbolicValueError(f"an argument of {name} depends on the sizes of dynamic axes in a way that cannot "
                                     f"be told ({step.meta['source']})") from None
        for value, out, term in zip(results, g.out, made if isinstance(made, list) else [made], strict=True):
            self.terms[value] = Term(term.name, out.shape, out.dtype, term.data)

    def refuse(self, step: Node, why: str = "") -> None:
        where, scope = step.meta["source"], step.meta["scope"]
        self.unsupported.append((f"{name_of(step).removeprefix('draw_')} {why}".strip(),
                                 f"{where} (in {scope})" if scope else where))
        for value in self.graphs[0].results[step]:
            self.terms[value] = Term("", self.shape(value), value.meta["dtype"])

    def operands(self, step: Node, given: Sequence[Any], numbers: tuple[Any, ...]) -> list[Any]:
        """Return the inputs as terms, cast to a common dtype if the op needs that."""
        g, rest = self.g, iter(numbers)
        op: Any = step.target
        inputs = [self.term(v) if isinstance(v, Node) else next(rest) for v in given]
        if not isinstance(op, type):
            return inputs
        name, out = op.opname, g.out[0].dtype
        arrays = [t.dtype for t in inputs if isinstance(t, Term) and (t.dtype != BOOL or name != "where")]
        target = out if out != BOOL or op.casts is None else np.result_type(*arrays)
        if op.casts is None and name not in ("where", "masked_fill", "clamp") and arrays:
            target = arrays[0]
        for i, x in enumerate(inputs):
            if isinstance(x, Varying):
                inputs[i] = Term(g.scalar(x, target).name, (), target)
            elif isinstance(x, NUMBERS):
                inputs[i] = g.constant(x, BOOL if name == "where" and i == 0 else target)
            elif (isinstance(x, Term) and x.dtype != target
                  and (op.casts is not None and op.elementwise or name == "where" and i)):
                inputs[i] = g.cast(x, target)
        return inputs


def call_of(step: Node) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the operands and parameters of a rule's call; a function that is no op has its `args`, None for arrays,
    as a parameter."""
    if isinstance(step.target, type):
        return (step.args[0] if step.target.sequence else step.args), step.kwargs
    plain = {"args": tuple(None if isinstance(a, Node) else a for a in step.args)}
    return nodes_in(step.args), plain if name_of(step).startswith("make_") else plain | step.kwargs


def checked(onnx: Any, model: Any) -> None:
    """Raise if the graph is invalid, which would be a bug in the exporter."""
    try:
        onnx.checker.check_model(model, full_check=model.ByteSize() < 1 << 30)
    except Exception as error:
        raise OnnxExporterError(f"the exported graph is not valid ONNX: {error}") from error


def proto(onnx: Any, graph: Graph, inputs: Sequence[Any], outputs: Sequence[tuple[str, Term]],
          options: Mapping[str, Any]) -> Any:
    """Return the model as a protobuf. Outputs are named after nodes; an output that is no node's result is copied."""
    helper = onnx.helper
    renamed: dict[str, str] = {}
    made = {name: node for node in graph.nodes for name in node.output}
    for name, term in outputs:
        if term.name in made and term.name not in renamed:
            renamed[term.name] = name
        else:
            graph.nodes.append(helper.make_node("Identity", [renamed.get(term.name, term.name)], [name],
                                                name=f"/{name}/Identity"))
    for node in graph.nodes:
        node.input[:] = [renamed.get(n, n) for n in node.input]
        node.output[:] = [renamed.get(n, n) for n in node.output]
    infos = [helper.make_tensor_value_info(term.name, helper.np_dtype_to_tensor_dtype(term.dtype), shape)
             for term, shape in inputs]
    used = {name for node in graph.nodes for name in node.input}
    kept = {name: array for name, array in graph.initializers.items() if name in used}
    if options["keep_initializers_as_inputs"] or not options["export_params"]:
        names = [n for n in kept if n in options["parameters"] or options["export_params"]]
        infos += [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(kept[n].dtype), kept[n].shape)
                  for n in names]
    tensors = [onnx.numpy_helper.from_array(np.ascontiguousarray(array) if array.ndim else array, name)
               for name, array in kept.items()
               if options["export_params"] or name not in options["parameters"]]
    results = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(term.dtype), options["shapes"][name])
               for name, term in outputs]
    body = helper.make_graph(graph.nodes, options["name"], infos, results, tensors)
    opsets = [helper.make_opsetid("", graph.opset),
              *[helper.make_opsetid(domain, version) for domain, version in graph.domains.items()]]
    model = helper.make_model(body, opset_imports=opsets, producer_name="tensorgrad",
                              producer_version=options["version"],
                              ir_version=helper.find_min_ir_version_for(opsets[:1], ignore_unknown=True))
    return model
