"""A model as a Python file."""
from __future__ import annotations

import sys
from typing import Any

from .. import api as tg
from .. import nn
from ..graph.source import Writer
from .construction import arguments_of, parameters_of
from .model import GraphModule

HEAD = '''"""{name}: written from a graph of layers. The weights are not here: load_state_dict takes those of the model that it was written from."""
'''  # noqa: E501


class Written(Writer):
    """The forward of a class in a file."""

    def __init__(self, model: GraphModule, file: File) -> None:
        super().__init__(model._program)
        self.file = file

    def foreign(self, thing: Any) -> str:
        return self.file.imported(thing)


class File:
    """The text of a file that defines a model's class, and the classes of the models in it."""

    def __init__(self) -> None:
        self.imports: dict[str, None] = {}
        self.classes: list[str] = []
        self.names: set[str] = set()

    def imported(self, thing: Any) -> str:
        """Let the file import a function or class of another module, and return its name."""
        module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
        if (not name.isidentifier() or module == "__main__"
                or getattr(sys.modules.get(module or ""), name, None) is not thing):
            raise ValueError(f"the model cannot be written as source: {thing!r} is neither a literal nor a function "
                             f"that a file could import")
        self.imports[f"from {module} import {name}"] = None
        return str(name)

    def define(self, model: GraphModule, wanted: str) -> str:
        """Write the class of a model, and return its name."""
        name, number = wanted, 1
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.names.add(name)
        made: dict[int, str] = {}
        given: list[str] = []
        body = []
        for key, layer in model._modules.items():
            target = f"self.{key}" if key.isidentifier() else None
            text = made.get(id(layer)) or self.construct(layer, key, name)
            if text is None:
                given.append(text := key if key.isidentifier() else f"layer_{len(given) + 1}")
            body.append(f"{target} = {text}" if target else f"self.add_module({key!r}, {text})")
            made[id(layer)] = target or f"getattr(self, {key!r})"
        for key, tensor in (*model._parameters.items(), *model._buffers.items()):
            empty = f"torch.empty({tuple(tensor.shape)}, dtype={tensor.dtype})"
            trains = "" if tensor.requires_grad else ", requires_grad=False"
            body.append(f"self.{key} = nn.Parameter({empty}{trains})" if key in model._parameters
                        else f'self.register_buffer("{key}", {empty})')
        writer = Written(model, self)
        lines = [f"class {name}(nn.Module):", f"    def __init__({', '.join(['self', *given])}):",
                 "        super().__init__()",
                 *(f"        {line}" for line in body), "",
                 f"    def forward({', '.join(['self', *writer.arguments])}):",
                 *(f"        {line}" for line in writer.body())]
        self.classes.append("\n".join(lines) + "\n")
        return name

    def construct(self, layer: Any, key: str, model: str) -> str | None:
        """Return the source that constructs a layer; None if it cannot be told, and the class takes the layer as an
        argument."""
        if (plain := getattr(layer, "_plain", lambda: None)()) is not None:           # a layer of tensorgrad.layers
            layer = plain
        if isinstance(layer, GraphModule):
            return (f"{self.define(layer, f'{model}_{key}' if key.isidentifier() else model)}()" if self.writable(layer)
                    else None)
        if type(layer) is nn.Sequential:
            parts = [(name, self.construct(part, name, model)) for name, part in layer._modules.items()]
            if any(text is None for _, text in parts):
                return None
            if [name for name, _ in parts] == [str(k) for k in range(len(parts))]:
                return f"nn.Sequential({', '.join(str(text) for _, text in parts)})"
            self.imports["from collections import OrderedDict"] = None
            return f"nn.Sequential(OrderedDict([{', '.join(f'({name!r}, {text})' for name, text in parts)}]))"
        arguments = arguments_of(layer)
        if arguments is None or not all(map(literal, arguments.values())):
            return None
        names = list(parameters_of(type(layer)))
        first = 0       # arguments before the first gap are positional
        while first < len(names) and names[first] in arguments:
            first += 1
        texts = [repr(arguments[name]) if place < first else f"{name}={arguments[name]!r}"
                 for place, name in enumerate(names) if name in arguments]
        return f"nn.{type(layer).__name__}({', '.join(texts)})"

    def writable(self, model: GraphModule) -> bool:
        """Return True if every layer of a nested model can be constructed in source, so that its class takes no
        arguments."""
        return all(isinstance(layer, GraphModule) and self.writable(layer)
                   or File().construct(layer, "", "") is not None for layer in model._modules.values())


def literal(value: Any) -> bool:
    """Return True if `repr(value)` evaluates to an equal value."""
    if isinstance(value, (tuple, list)):
        return all(map(literal, value))
    return isinstance(value, (bool, int, str, type(None), tg.dtype)) or isinstance(value, float) and value - value == 0


def source_of(model: GraphModule, name: str = "Model") -> str:
    """The text that `GraphModule.source` returns."""
    if not name.isidentifier():
        raise ValueError(f"the name of a class is needed, not {name!r}")
    file = File()
    file.define(model, name)
    text = "\n\n".join(file.classes)
    imports = [*file.imports, "import torch" * ("torch." in text), "from torch import nn",
               "from torch.nn import functional as F" * ("F." in text)]
    return HEAD.format(name=name) + "\n".join(sorted((line for line in imports if line),
                                                     key=lambda line: line.split()[1])) + "\n\n\n" + text
