"""Plans: for an application of an op, the values to save, the formulas of its gradient, and its kind of step."""
from __future__ import annotations

from functools import cache, partial
from operator import itemgetter
from typing import Any

from ..ops.base import Op, arguments, input_name

# "plain", "fused", "composed": the classes of steps, which register here (see step.py)
KINDS: dict[str, type] = {}


def kind(name: str) -> Any:
    """Decorate the class of steps of a kind."""
    def decorate(cls: type) -> type:
        KINDS[name] = cls
        return cls
    return decorate


@cache
def step_type(op: type[Op], kind: str) -> Any:
    """Return the class of an op's steps of one kind: a subclass of both, under PyTorch's name of the op's steps."""
    name = op.torch_name if op.torch_name in ("CopySlices", "CopyBackwards") else f"{op.torch_name}Backward0"
    return named_type(op, (KINDS[kind], op), name)


@cache
def named_type(op: type[Op], bases: tuple[type, ...], name: str) -> Any:
    """Return a class of an op's steps under a name. Its module is that of PyTorch's."""
    made: Any = type(op)
    return made(name, bases, {"op": op, "__module__": "builtins", "__doc__": op.__doc__})


class Plan:
    """The values to save, and how to pull, for one op and one set of inputs that need a gradient.

    A composite op saves all its inputs.

    A formula's arguments come from `values`: the saved inputs, results and shapes, then the extras, which are found
    when needed.
    """

    __slots__ = ("node_type", "fused_type", "several", "steps", "save", "names", "origins", "saves_out", "shapeless",
                 "extras", "inputs", "asks")

    def __init__(self, op: type[Op], needs: int, arity: int) -> None:
        names = [input_name(op, i) for i in range(arity)]
        formulas = [(i, getattr(op, f"grad_{name}")) for i, name in enumerate(names)
                    if needs >> i & 1 and hasattr(op, f"grad_{name}")]
        asks = [arguments(formula)[0][2:] for _, formula in formulas]
        group = op.inputs[-1] if op.arity is None else None      # the name of a variable number of inputs
        members = [i for i, name in enumerate(names) if name == group]
        source = partial(_source, op, needs, names, group)
        wanted = list(dict.fromkeys(source(i, name) for (i, _), names_ in zip(formulas, asks, strict=True)
                                    for name in names_))
        if op.composite:
            wanted = [("value", i) for i in range(arity)]
        values = [s for s in wanted if s[0] == "value"]
        if ("group", group) in wanted:
            values += [("value", i) for i in members if ("value", i) not in values]
        shapes = [s for s in wanted if s[0] == "shape"]
        late = [s for s in wanted if s[0] in ("edge", "param", "group", "constant")]
        place = {s: k for k, s in enumerate((*values, *shapes, *late))}
        self.node_type = step_type(op, "plain")
        self.fused_type = step_type(op, "composed" if op.composite else "fused")
        self.several = op.several
        # of each saved value, the position: inputs first, then results
        self.origins = tuple(i for _, i in values)
        self.names = tuple([*names, *(op.outputs or ("out",))][i] for i in self.origins)
        # a common name is numbered
        self.inputs = tuple(name if name != group else f"{name}[{i - members[0]}]" for i, name in enumerate(names))
        self.asks = tuple(asks)                                  # the argument names of each formula
        self.saves_out = not op.several and any(i >= arity for i in self.origins)
        self.shapeless = not shapes
        self.save = _saver(self.origins, tuple(i for _, i in shapes), arity, members)
        self.extras = tuple(_extra(kind, which, op, [place["value", i] for i in members] if kind == "group" else None)
                            for kind, which in late)
        self.steps = tuple((i, formula, tuple(place[source(i, name)] for name in names_))
                           for (i, formula), names_ in zip(formulas, asks, strict=True))


def _source(op: type[Op], needs: int, names: list[str], group: str | None, position: int, asked: str) -> tuple[str,
                                                                                                               Any]:
    """Return the source of a formula's argument, for the gradient of the input at a position: (kind, which)."""
    if asked == "position":                                       # which of the inputs that share a name
        return "constant", position - names.index(names[position])
    if asked in op.parameters:
        return "param", asked
    if asked == group:
        return "group", group
    if asked in names:
        return "value", names.index(asked)
    results = op.outputs or ("out",)
    if asked in results:
        return "value", len(names) + results.index(asked)
    if asked == f"{group}_shapes":
        return "shape", None
    owner = names.index(asked.removesuffix("_shape"))
    return ("edge" if needs >> owner & 1 else "shape"), owner


def _saver(values: tuple[int, ...], shapes: tuple[Any, ...], arity: int, members: list[int]) -> Any:
    """Return a function that picks the values to save from the inputs and results of an application."""
    pick: Any
    if not values:
        def pick(args: Any, results: Any) -> Any: return ()
    elif values == tuple(range(arity)):
        def pick(args: Any, results: Any) -> Any: return args
    else:
        first, *others = values
        chosen = itemgetter(*values) if others else lambda all_: (all_[first],)
        def pick(args: Any, results: Any) -> Any: return chosen((*args, *results))
    if not shapes:
        return pick
    return lambda args, results: (*pick(args, results),
                                  *(tuple(args[i].shape for i in members) if s is None else args[s].shape
                                    for s in shapes))


def _extra(kind: str, which: Any, op: type[Op], places: Any) -> Any:
    """Return a function that finds an argument that need not be saved, from the node and the values before it."""
    if kind == "edge":
        return lambda node, values: node.edges[which].shape
    if kind == "param":
        default = op.parameters[which]
        return lambda node, values: node.params.get(which, default)
    if kind == "constant":
        return lambda node, values: which
    return lambda node, values: tuple(values[p] for p in places)


class Plans(dict[Any, Any]):
    """Plans by `needs`, a bitmask of the inputs that need a gradient; by (needs, number of inputs) if that number
    varies.
    """

    def __init__(self, op: type[Op]) -> None:
        self.op = op

    def of(self, needs: int, args: Any) -> Plan:
        """The plan for an application to these inputs."""
        plan: Plan = self[needs if self.op.arity else (needs, len(args))]
        return plan

    def __missing__(self, key: Any) -> Plan:
        needs, arity = key if isinstance(key, tuple) else (key, self.op.arity)
        self[key] = plan = Plan(self.op, needs, arity)
        return plan


plans_of: Any = cache(Plans)      # plans_of(op)
