"""Explain a compiled program: its graphs, what Python runs in them, and the calls that ran eagerly."""
from __future__ import annotations

from typing import Any

from ..graph.node import Node
from ..messages import tables
from .compiled import Compiled, name_of
from .entries import Entry
from .passes.rewriting import settled

SHOWN, SHOWN_QUESTIONS = 60, 8      # characters of an argument that a table shows; conditions on sizes


class Explanation:
    """The answer of `explain()` of a compiled function or module; printed, it is a text with tables.

    `graphs` are the entries that run compiled, `reasons` is {why calls ran eagerly: their number}, and `changed` lists
    what made graphs invalid.
    """

    def __init__(self, compiled: Compiled) -> None:
        self.name, self.program = name_of(compiled.program), compiled
        self.graphs = graphs_of(compiled)
        self.latest = {id(kept[0]) for kept in compiled.entries.values() if kept}
        self.latest |= {id(entry) for entry in self.graphs if entry.family and entry.family.base.failed() is None}
        self.unsized = dict.fromkeys(compiled.families.refused.values())
        self.reasons, self.changed = dict(compiled.eager), list(compiled.changed)

    def __str__(self) -> str:
        lines = [f"{self.name}: {len(self.graphs)} graph{'s' * (len(self.graphs) != 1)}"]
        for number, entry in enumerate(self.graphs):
            lines += ["", *_of_graph(number, entry)] if id(entry) in self.latest else [
                "", f"graph {number}: {entry.inputs}; {entry.calls} calls; replaced, since something that it relied on "
                    f"changed"]
        if self.reasons:
            rows = [("calls", "ran eagerly because"), *((str(n), text) for text, n in self.reasons.items())]
            lines += ["", *tables.table(rows, widths=tables.widths_of(rows), rule="-")]
        lines += ["", *(f"each size has a graph of its own: {text}" for text in self.unsized)] if self.unsized else []
        if self.changed:
            lines += ["", f"traced again because of {', '.join(dict.fromkeys(self.changed))}"]
        return "\n".join(lines)

    __repr__ = __str__


def graphs_of(compiled: Compiled) -> list[Entry]:
    """Return the entries that run compiled: of those of one family, which are one graph for many sizes, the latest."""
    found: dict[Any, Entry] = {}
    for kept in compiled.entries.values():
        for entry in kept:
            if entry.run is not None:
                found[entry if entry.family is None else entry.family] = entry
    return list(found.values())


def _of_graph(number: int, entry: Entry) -> list[str]:
    """Return the lines about one graph."""
    run = entry.run
    left = dict(getattr(run, "left", ()))
    lines = [f"graph {number}: {entry.inputs}; {entry.calls} calls, {len(entry.guards)} guarded values, "
             f"{len(entry.tensors)} tensors"]
    if (family := entry.family) is not None:
        questions = family.questions
        lines += [f"for all sizes {family.inputs}" + (f" with {', '.join(questions[:SHOWN_QUESTIONS])}" if questions
                                                      else "")
                  + (f" and {len(questions) - SHOWN_QUESTIONS} more conditions" if len(questions) > SHOWN_QUESTIONS
                     else ""), f"planned for {family.sizes} sizes, of which these are the latest:"]
    memory = getattr(run, "memory", None)
    if memory:
        lines.append("memory: " + ", ".join(f"{name} {size / 1024:.0f} KiB" for name, size in memory.items()))
    stamps = getattr(run, "stamps", None)
    if stamps is not None and stamps.exposed:
        names = list(entry.tensors)
        lines.append(f"read at each call, as NumPy arrays share their memory: "
                     f"{', '.join(names[i] for i in stamps.exposed if i < len(names))}")
    graph = getattr(run, "graph", None)
    if graph is not None:
        ahead = settled(graph)
        rows = [("node", "computes", "result", "when", "in Python")]
        rows += [(node.name, called(node), _result(node), "ahead" if node in ahead else "", left.get(node.name, ""))
                 for node in graph.nodes if node.op == "call_function"]
        lines += tables.table(rows, widths=tables.widths_of(rows), rule="-")
    return [line.rstrip() for line in lines]


def called(node: Node) -> str:
    """Return the call of a node: `linear(x, weight, bias)`."""
    name = getattr(node.target, "opname", None) or getattr(node.target, "__name__", str(node.target))
    parts = [str(arg) for arg in node.args] + [f"{key}={value}" for key, value in node.kwargs.items()]
    text = f"{name}({', '.join(parts)})"
    return text if len(text) <= SHOWN else text[:SHOWN - 1] + "…"


def _result(node: Node) -> str:
    shape, dtype = node.meta.get("shape"), node.meta.get("dtype")
    if isinstance(shape, list):
        return f"{len(shape)} results"
    return f"{dtype}{list(shape)}" if shape is not None else ""


def explained(compiled: Any, program: Any, args: Any, kwargs: Any) -> Explanation:
    """Call a compiled program if there are arguments, and return its explanation."""
    if not isinstance(compiled, Compiled):
        raise RuntimeError("the program runs as it is: its backend compiles nothing")
    if args or kwargs:
        program(*args, **kwargs)
    return Explanation(compiled)


class ExplainOutput:
    """The answer of `torch._dynamo.explain(f)(*args)`.

    A program that a graph cannot hold counts as one graph break, since the whole call runs eagerly.
    """

    def __init__(self, compiled: Compiled) -> None:
        entries = [entry for kept in compiled.entries.values() for entry in kept]
        runs = [entry.run for entry in graphs_of(compiled)]
        self.graphs = [run.graph for run in runs]
        self.graph_count = len(runs)
        self.break_reasons = [entry.reason for entry in entries if entry.reason is not None]
        self.graph_break_count = len(self.break_reasons)
        self.ops_per_graph = [[node.target for node in graph.nodes if node.op == "call_function"]
                              for graph in self.graphs]
        self.op_count = sum(map(len, self.ops_per_graph))
        self.out_guards = [guard for entry in entries for guard in entry.guards.places]
        self.compile_times = ""

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}",
                 f"Op Count: {self.op_count}", "Break Reasons:"]
        for number, reason in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {number}:", f"    Reason: {reason.text}", "    User Stack:",
                      f"      {reason.source}"]
        return "\n".join(lines)

    __repr__ = __str__


__all__ = ["ExplainOutput", "Explanation", "explained"]
