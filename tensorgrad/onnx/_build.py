"""From traces to a graph: what is needed, what is constant, and each step by its rule."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..ops.base import OPS
from ._graph import BOOL, Graph, Refused, Term
from ._model import Traces
from ._sizes import Unequal, Varying, merged, varying
from ._table import load
from ._trace import Step, Value
from .errors import OnnxExporterError, SymbolicValueError, UnsupportedOperatorError

NUMBERS = (int, float, complex, bool, np.generic)


class Builder:
    """Writes the steps of the first trace; the others tell what varies."""

    def __init__(self, graph: Graph, traces: Sequence[Traces], folding: bool) -> None:
        self.g, self.traces, self.folding = graph, traces, folding
        self.rules = load()
        self.peers: dict[Value, tuple[Value, ...]] = {}
        self.places: dict[Step, int] = {}
        self.terms: dict[Value, Term] = {}
        self.unsupported: list[tuple[str, str]] = []
        self.match()

    # ── several traces ────────────────────────────────────────────────────────────────────────────────────────────

    def match(self) -> None:
        """Find out which values of the traces are the same one."""
        self.pair([t.inputs for t in self.traces])
        self.pair([t.parameters for t in self.traces])
        for place, steps in enumerate(zip(*[t.steps for t in self.traces], strict=False)):
            first = steps[0]
            if any(s.op != first.op or len(s.inputs) != len(first.inputs) or len(s.outputs) != len(first.outputs) for s in steps):
                raise self.different(first)
            self.places[first] = place
            self.pair([[v for v in s.inputs if isinstance(v, Value)] for s in steps])
            self.pair([s.outputs for s in steps])
        if any(len(t.steps) != len(self.traces[0].steps) for t in self.traces):
            raise self.different(self.traces[0].steps[-1])
        self.pair([t.outputs for t in self.traces])

    def pair(self, lists: Sequence[Sequence[Value]]) -> None:
        if any(len(values) != len(lists[0]) for values in lists):
            raise self.different(None)
        for values in zip(*lists, strict=True):
            if self.peers.setdefault(values[0], values) != values:
                raise self.different(values[0].step)

    def different(self, step: Any) -> SymbolicValueError:
        where = f" (the traces part at {step.op}, {step.where})" if step is not None else ""
        return SymbolicValueError("what the model computes depends on the size of a dynamic axis: with another size it takes other steps" + where)

    def shape(self, value: Value) -> tuple[Any, ...]:
        peers = self.peers.get(value, (value,))
        if any(len(v.shape) != len(value.shape) for v in peers):
            raise self.different(value.step)
        return tuple(varying(sizes) for sizes in zip(*[v.shape for v in peers], strict=True))

    def constant(self, value: Value) -> bool:
        """Whether no input, and no dynamic axis, has a say in a value."""
        if value.data is None:
            return False
        if value.step is None and value.name is not None:
            return True
        return all(v.data is value.data or np.array_equal(v.data, value.data, equal_nan=value.dtype.kind in "fc")
                   for v in self.peers.get(value, ()))

    # ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def build(self, inputs: Sequence[str]) -> list[Term]:
        """Write all that the outputs need; gives their terms."""
        base = self.traces[0]
        for name, value in zip(inputs, base.inputs, strict=True):
            self.terms[value] = Term(name, self.shape(value), value.dtype)
        for step in self.needed(base.outputs):
            self.write(step)
        if self.unsupported:
            raise UnsupportedOperatorError(self.unsupported)
        return [self.term(v) for v in base.outputs]

    def needed(self, outputs: Sequence[Value]) -> list[Step]:
        """The steps that the outputs come from, in order."""
        found: set[Step] = set()
        waiting = list(outputs)
        while waiting:
            step = waiting.pop().step
            if step is None or step in found or (all(map(self.constant, step.outputs)) and (self.folding or step.op.startswith("make_"))):
                continue
            found.add(step)
            waiting += [v for v in step.inputs if isinstance(v, Value)]
        return sorted(found, key=self.places.__getitem__)

    def term(self, value: Value) -> Term:
        if value not in self.terms:
            self.terms[value] = self.leaf(value)
        return self.terms[value]

    def leaf(self, value: Value) -> Term:
        """A constant: of the model, folded, or a few sizes that the program made a tensor of."""
        if self.constant(value):
            name = value.name
            if name is None and value.step is not None and value.data.size > 64:
                name = f"{value.step.scope}.folded" if value.step.scope else "folded"
            return self.g.constant(value.data, name=name)
        peers = self.peers.get(value, (value,))
        if value.data is None or value.dtype.kind not in "iu" or prod(value.shape) > 64 or any(v.shape != value.shape for v in peers):
            raise SymbolicValueError("a constant depends on the sizes of dynamic axes in a way that cannot be told"
                                     f"{f' ({value.step.op}, {value.step.where})' if value.step is not None else ''}")
        numbers = [varying(list(map(int, n))) for n in zip(*[v.data.reshape(-1) for v in peers], strict=True)]
        flat = self.g.cast(self.g.sizes(numbers), value.dtype)
        return Term(self.g.Reshape(flat, np.asarray(value.shape, np.int64)).name, value.shape, value.dtype)

    def write(self, step: Step) -> None:
        """One step, by its rule."""
        g = self.g
        known = self.rules.get(step.op)
        if known is None:
            self.refuse(step)
            return
        if any(v.dtype.kind == "c" for v in (*step.outputs, *[v for v in step.inputs if isinstance(v, Value)])):
            self.refuse(step, "of complex numbers")
            return
        steps = [t.steps[self.places[step]] for t in self.traces]
        g.scope, g.op, g.out = step.scope, step.op, [Term("", self.shape(v), v.dtype) for v in step.outputs]
        try:
            params = merged([s.params for s in steps])
            inputs = self.operands(step, merged([tuple(v for v in s.inputs if not isinstance(v, Value)) for s in steps]))
            made = known(g, *inputs, **params)
        except Refused as reason:
            self.refuse(step, str(reason))
            return
        except Unequal:
            raise SymbolicValueError(f"an argument of {step.op} depends on the sizes of dynamic axes in a way that cannot be told ({step.where})") from None
        for value, out, term in zip(step.outputs, g.out, made if isinstance(made, list) else [made], strict=True):
            self.terms[value] = Term(term.name, out.shape, out.dtype, term.data)

    def refuse(self, step: Step, why: str = "") -> None:
        where = f"{step.where} (in {step.scope})" if step.scope else step.where
        self.unsupported.append((f"{step.op.removeprefix('draw_')} {why}".strip(), where))
        for value in step.outputs:
            self.terms[value] = Term("", self.shape(value), value.dtype)

    def operands(self, step: Step, numbers: tuple[Any, ...]) -> list[Any]:
        """The inputs as terms, of one dtype where the op asks for that."""
        g, rest = self.g, iter(numbers)
        op = OPS.get(step.op)
        inputs = [self.term(v) if isinstance(v, Value) else next(rest) for v in step.inputs]
        if op is None:
            return inputs
        out = g.out[0].dtype
        arrays = [t.dtype for t in inputs if isinstance(t, Term) and (t.dtype != BOOL or step.op != "where")]
        target = out if out != BOOL or op.casts is None else np.result_type(*arrays)
        if op.casts is None and step.op not in ("where", "masked_fill", "clamp") and arrays:
            target = arrays[0]
        for i, x in enumerate(inputs):
            if isinstance(x, Varying):
                inputs[i] = Term(g.scalar(x, target).name, (), target)
            elif isinstance(x, NUMBERS):
                inputs[i] = g.constant(x, BOOL if step.op == "where" and i == 0 else target)
            elif isinstance(x, Term) and x.dtype != target and (op.casts is not None and op.elementwise or step.op == "where" and i):
                inputs[i] = g.cast(x, target)
        return inputs


def checked(onnx: Any, model: Any) -> None:
    """Raise if the graph is not valid: a mistake of the exporter."""
    try:
        onnx.checker.check_model(model, full_check=model.ByteSize() < 1 << 30)
    except Exception as error:
        raise OnnxExporterError(f"the exported graph is not valid ONNX: {error}") from error


def proto(onnx: Any, graph: Graph, inputs: Sequence[Any], outputs: Sequence[tuple[str, Term]], options: Mapping[str, Any]) -> Any:
    """The model as a protobuf. Outputs take their names from nodes; what is no node's result is copied."""
    helper = onnx.helper
    renamed: dict[str, str] = {}
    made = {name: node for node in graph.nodes for name in node.output}
    for name, term in outputs:
        if term.name in made and term.name not in renamed:
            renamed[term.name] = name
        else:
            graph.nodes.append(helper.make_node("Identity", [renamed.get(term.name, term.name)], [name], name=f"/{name}/Identity"))
    for node in graph.nodes:
        node.input[:] = [renamed.get(n, n) for n in node.input]
        node.output[:] = [renamed.get(n, n) for n in node.output]
    infos = [helper.make_tensor_value_info(term.name, helper.np_dtype_to_tensor_dtype(term.dtype), shape) for term, shape in inputs]
    used = {name for node in graph.nodes for name in node.input}
    kept = {name: array for name, array in graph.initializers.items() if name in used}
    if options["keep_initializers_as_inputs"] or not options["export_params"]:
        names = [n for n in kept if n in options["parameters"] or options["export_params"]]
        infos += [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(kept[n].dtype), kept[n].shape) for n in names]
    tensors = [onnx.numpy_helper.from_array(np.ascontiguousarray(array) if array.ndim else array, name) for name, array in kept.items()
               if options["export_params"] or name not in options["parameters"]]
    results = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(term.dtype), options["shapes"][name]) for name, term in outputs]
    body = helper.make_graph(graph.nodes, options["name"], infos, results, tensors)
    opsets = [helper.make_opsetid("", graph.opset), *[helper.make_opsetid(domain, version) for domain, version in graph.domains.items()]]
    model = helper.make_model(body, opset_imports=opsets, producer_name="tensorgrad", producer_version=options["version"],
                              ir_version=helper.find_min_ir_version_for(opsets[:1], ignore_unknown=True))
    return model
