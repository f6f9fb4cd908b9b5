"""Generate a model's `forward` as source, by graph/source.py; chains of layers become loops."""
from __future__ import annotations

import builtins
import sys
from typing import Any

from ..graph import Graph, Node
from ..graph.running import Runner
from ..graph.source import RESERVED, Writer, compiled
from ..nn import Module
from ..nn.modules._hooks import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)

CALL = Module.__call__
GLOBAL_HOOKS = _global_forward_pre_hooks, _global_forward_hooks, _global_backward_hooks, _global_backward_pre_hooks


class Runnable(Writer):
    """The source that a model runs. `namespace` has its global names."""

    def __init__(self, program: Graph, layers: Any, shortest_loop: int) -> None:
        super().__init__(program)
        assert shortest_loop >= 2, "Loops are at least two layers long: CODEGEN_MIN_LOOP_LENGTH must be 2 or more."
        self.place = {name: k for k, name in enumerate(layers)}
        self.shortest_loop = shortest_loop
        self.bound: dict[int, str] = {}
        from .. import nn
        self.namespace: dict[str, Any] = {"torch": sys.modules["tensorgrad"], "F": nn.functional,
                                          "callables": callables}

    def layer(self, name: str) -> str:
        return f"layers[{self.place[name]}]" if name in self.place else super().layer(name)

    def foreign(self, thing: Any) -> str:
        if id(thing) not in self.bound:
            told = getattr(thing, "__name__", type(thing).__name__)
            base = name = told if told.isidentifier() else "constant"
            number = 1
            while name in self.namespace or name in self.arguments or name in RESERVED or hasattr(builtins, name):
                number += 1
                name = f"{base}_{number}"
            self.namespace[name], self.bound[id(thing)] = thing, name
        return self.bound[id(thing)]

    def runs(self) -> dict[Node, tuple[int, int, int]]:
        found: dict[Node, tuple[int, int, int]] = {}
        start: Node | None = None
        previous: Node | None = None
        for step in self.steps:
            plain = (step.op == "call_module" and len(step.args) == 1 and isinstance(step.args[0], Node)
                     and step.args[0].op != "get_attr" and not step.kwargs)
            follows = (plain and start is not None and previous is not None and step.args[0] is previous
                       and previous in self.ends[step]
                       and self.place[step.target] == self.place[previous.target] + 1)
            if follows and start is not None:
                count, first, stop = found[start]
                found[start] = count + 1, first, stop + 1
            else:
                start = step if plain else None
                if plain:
                    at = self.place[step.target]
                    found[step] = 1, at, at + 1
            previous = step
        return {step: run for step, run in found.items() if run[0] >= self.shortest_loop}

    def source(self) -> str:
        """Return the source of the function."""
        body = self.body()
        if any("layer" in line for line in body):
            body = ["layers = callables(self)", *body]
        return f"def forward(self, {', '.join(self.arguments)}):\n" + "".join(f"    {line}\n" for line in body)


def callables(model: Module) -> list[Any]:
    """Return the layers of a model in order, as their fastest callables: the method `forward` of layers without
    hooks.
    """
    layers = model._modules.values()
    if GLOBAL_HOOKS[0] or GLOBAL_HOOKS[1] or GLOBAL_HOOKS[2] or GLOBAL_HOOKS[3]:
        return list(layers)
    return [layer if layer._hooked or type(layer).__call__ is not CALL else layer.forward for layer in layers]


class Interpreted:
    """The forward of models without generated source."""

    def __init__(self, program: Graph) -> None:
        self.names = [node.target for node in program.find_nodes(op="placeholder")]
        self.runner = Runner(program)

    def __call__(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        names = self.names
        values = [*args, *(kwargs.pop(name) for name in names[len(args):] if name in kwargs)]
        if len(values) != len(names) or kwargs:
            raise TypeError(f"forward() takes {len(names)} arguments: {', '.join(names)}. Number of inputs doesn't "
                            f"match!")
        return self.runner(model, values)


__all__ = ["Interpreted", "Runnable", "compiled"]
