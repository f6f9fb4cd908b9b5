"""The Python objects that a program may read besides its arguments: attributes, closures, globals, containers.

A graph is valid for their values at the trace. They are compared before each compiled call, and after the trace itself,
where a change means that the program has effects, which a graph cannot have.
"""
from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from functools import cache, partial
from opcode import opmap
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..core.tape import TensorBase
from ..nn.modules._hooks import shared
from ..nn.modules._shortcut import Shortcut
from ..nn.modules.module import Module
from .guards import checksum, same

DEEPEST, MOST = 6, 20_000       # the depth to which objects are followed, and the most that are followed
LONGEST, LARGEST = 1024, 1 << 20        # larger containers and arrays are compared by identity alone
IMMUTABLE = (str, bytes, int, float, complex, type(None), type, BuiltinFunctionType, np.dtype, CodeType, range, slice)
CONTAINERS: tuple[type[Any], ...] = dict, list, tuple, deque, set
LOAD_GLOBAL = opmap["LOAD_GLOBAL"]
BY_NAME = frozenset(opmap[name] for name in ("STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME"))
GENERATOR = "bit_generator", "getstate", "initial_seed"      # NumPy's, Python's and tensorgrad's have one of these
GLOBAL_HOOKS = [f"_global_{name}_hooks" for name in ("forward_pre", "forward", "backward_pre", "backward")]
HOOKS = "_forward_pre_hooks _forward_hooks _backward_hooks _backward_pre_hooks".split()


class Place:
    """A container that holds what a program reads: all of it, or the entries `names`.

    `values` is what it held when it was found. `attributes` is True for the attributes of an object.
    """

    __slots__ = ("title", "container", "names", "attributes", "values")

    def __init__(self, title: str, container: Any, names: tuple[str, ...] | None = None,
                 attributes: bool = False) -> None:
        self.title, self.container, self.names, self.attributes = title, container, names, attributes
        self.values = self.now()

    def now(self) -> Any:
        """Return the present contents: a dictionary or a list."""
        container = self.container
        if isinstance(container, type):
            container = {name: value for name, value in vars(container).items() if type(value) is not Shortcut}
        if type(container) is CellType:
            try:
                return [container.cell_contents]
            except ValueError:              # an empty cell
                return []
        if isinstance(container, np.ndarray):
            return [str(container.shape), checksum(container)]
        if not hasattr(container, "keys"):
            return list(container)
        if self.names is None:
            return dict(container)
        return {name: container[name] for name in self.names if name in container}

    def changes(self) -> list[str]:
        """Return the names of what differs from `values`."""
        now, before = self.now(), self.values
        if isinstance(now, dict):
            return [str(key) for key in {**before, **now} if key not in now or key not in before
                    or not same(now[key], before[key])]
        return [] if len(now) == len(before) and all(map(same, now, before)) else [""]

    def restore(self) -> None:
        """Put `values` back."""
        container, values = self.container, self.values
        if isinstance(container, type):
            for name in self.changes():
                setattr(container, name, values[name]) if name in values else delattr(container, name)
        elif type(container) is CellType:
            if values:
                container.cell_contents = values[0]
        elif isinstance(container, (list, deque, set, dict)) and self.names is None:
            container.clear()
            (container.update if isinstance(container, (set, dict)) else container.extend)(values)
        elif isinstance(container, dict):
            for name in self.names or ():
                if name in values:
                    container[name] = values[name]
                else:
                    container.pop(name, None)


class Surroundings:
    """The places and tensors that are found from a program on.

    `tensors` are by name: parameters, buffers, and those in attributes, closures and globals.

    >>> import tensorgrad as torch
    >>> found = Surroundings({"scale": 3.0, "weight": torch.ones(2)})
    >>> list(found.tensors), found.places[0].values["scale"]
    (['weight'], 3.0)
    """

    def __init__(self, program: Any, others: Any = ()) -> None:
        self.places: list[Place] = []
        self.tensors: dict[str, Any] = {}
        self.paths: dict[int, str] = {}                 # of modules
        self._seen: dict[int, Any] = {}                 # keeps objects alive that are known by their id
        self._named: set[tuple[int, int]] = set()
        self._wanted: set[str] = set()
        self.generators: list[Any] = []                 # of random numbers
        self.value(program, "")
        for other in others:
            self.value(other, "")

    def forget_tensors(self) -> None:
        """Drop the tensors, and note the present contents of the places."""
        self.tensors.clear()
        self._seen.clear()
        for place in self.places:
            place.values = place.now()

    # ── following values ──────────────────────────────────────────────────────────────────────────────────────────────

    def value(self, value: Any, title: str, depth: int = 0) -> None:
        """Note what can be reached from a value."""
        if isinstance(value, IMMUTABLE) or id(value) in self._seen or depth > DEEPEST or len(self._seen) > MOST:
            return
        self._seen[id(value)] = value
        if isinstance(value, TensorBase):
            self.tensor(value, title)
        elif isinstance(value, Module):
            self.module(value, title, depth)
        elif isinstance(value, FunctionType):
            self.function(value, title, depth)
        elif isinstance(value, MethodType):
            self.value(value.__self__, title, depth)
            self.value(value.__func__, title, depth)
        elif isinstance(value, partial):
            for part in (value.func, value.args, value.keywords):
                self.value(part, title, depth + 1)
        elif isinstance(value, CONTAINERS):
            self.container(value, title, depth)
        elif isinstance(value, np.ndarray):
            if value.nbytes <= LARGEST:
                self.places.append(Place(title, value))
        elif isinstance(value, ModuleType) or _is_ours(type(value).__module__):
            if not isinstance(value, ModuleType) and any(map(partial(hasattr, value), GENERATOR)):
                self.generators.append(value)
        else:
            self.object(value, title, depth)

    def tensor(self, tensor: Any, title: str) -> None:
        """Note a tensor of main memory."""
        name = title or "tensor"
        if name in self.tensors:
            name = f"{name}.{len(self.tensors)}"
        self.tensors[name] = tensor

    def container(self, value: Any, title: str, depth: int) -> None:
        """Note the parts of a container, by the methods of Python's own classes: subclasses may override them."""
        kind = next(each for each in CONTAINERS if isinstance(value, each))
        if kind.__len__(value) > LONGEST:
            return
        if kind is not tuple:
            self.places.append(Place(title, value))
        for key, part in list(dict.items(value) if kind is dict else enumerate(kind.__iter__(value))):
            self.value(part, _joined(title, key), depth + 1)

    def object(self, value: Any, title: str, depth: int) -> None:
        """Note the attributes of an object, and those of its class that programs define."""
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is dict:
            self.places.append(Place(title, attributes, attributes=True))
            for name, part in list(attributes.items()):
                self.value(part, _joined(title, name), depth + 1)
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None:
            self.value(wrapped, title, depth + 1)
        self.methods(type(value), title, depth)

    def module(self, root: Module, title: str, depth: int) -> None:
        """Note a tree of modules: attributes, tables, tensors, and the functions of classes that programs define."""
        for table in GLOBAL_HOOKS:
            if id(hooks := getattr(shared(), table)) not in self._seen:
                self._seen[id(hooks)] = hooks
                self.container(hooks, table, depth)
        for path, module in root.named_modules():
            name = _joined(title, path)
            self.paths.setdefault(id(module), name)
            self._seen[id(module)] = module
            own = module.__dict__
            self.places.append(Place(name, own, attributes=True))
            for table in ("_parameters", "_buffers", "_modules", *(HOOKS if own.get("_hooked") else ())):
                if table in own:
                    self.places.append(Place(_joined(name, table), own[table]))
            for table in ("_parameters", "_buffers"):
                self._tensors_of(own[table], name)
        for path, module in root.named_modules():
            name = _joined(title, path)
            for key, part in list(module.__dict__.items()):
                if key in ("_parameters", "_buffers", "_modules") or isinstance(part, IMMUTABLE):
                    continue
                if not key.startswith("_") or isinstance(part, TensorBase) or key in HOOKS and module._hooked:
                    self.value(part, _joined(name, key), depth + 1)
            self.methods(type(module), name, depth)

    def _tensors_of(self, table: dict[str, Any], title: str) -> None:
        for name, tensor in table.items():
            if tensor is not None and id(tensor) not in self._seen:
                self._seen[id(tensor)] = tensor
                self.tensor(tensor, _joined(title, name))

    def function(self, function: FunctionType, title: str, depth: int) -> None:
        """Note the closure, the defaults and the globals of a function that a program defines."""
        if _is_ours(function.__globals__.get("__name__")):
            self.value(getattr(function, "__wrapped__", None), title, depth)        # such as of `@no_grad()`
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if id(cell) not in self._seen and name != "__class__":
                self._seen[id(cell)] = cell
                self.places.append(place := Place(f"closure {name}", cell))
                for value in place.values:
                    self.value(value, name, depth + 1)
        for part in (function.__defaults__, function.__kwdefaults__, function.__dict__):
            self.value(part, title, depth + 1)
        self.names(function.__code__, function.__globals__, depth)

    def methods(self, cls: type, title: str, depth: int) -> None:
        """Note what the functions of a class that a program defines, and of its bases, read."""
        if id(cls) in self._seen:
            return
        self._seen[id(cls)] = cls
        for base in cls.__mro__:
            if _is_ours(base.__module__):
                continue
            for name, found in list(vars(base).items()):
                function = getattr(found, "__func__", None) or getattr(found, "fget", None) or found
                if isinstance(function, FunctionType):
                    self.value(function, name, depth + 1)

    def names(self, code: CodeType, scope: dict[str, Any], depth: int = 0) -> None:
        """Note the globals that a function's code names, and the attributes of modules and classes among them."""
        key = (id(code), id(scope))
        if key in self._named:
            return
        self._named.add(key)
        self._seen[id(code)] = code
        words = frozenset(_words(code))
        found = tuple(name for name in frozenset(_globals(code)) if name in scope)
        if found:
            self.places.append(Place("global", scope, found))
        for name in found:
            value = scope[name]
            if isinstance(value, ModuleType) and not _is_ours(value.__name__):
                self._within(value.__dict__, value.__dict__, words, name, depth)
            elif isinstance(value, type) and not _is_ours(value.__module__):
                self._within(value, value.__dict__, words, name, depth)
            elif name not in ("print",):
                self.value(value, name, depth + 1)

    def _within(self, owner: Any, scope: Any, words: frozenset[str], title: str, depth: int) -> None:
        """Note the attributes of a module or a class that the code may name."""
        found = tuple(name for name in words if name in scope and not name.startswith("__"))
        if found:
            self.places.append(Place(title, owner, found))
        for name in found:
            if not isinstance(scope[name], ModuleType):
                self.value(scope[name], _joined(title, name), depth + 1)

    # ── changes ───────────────────────────────────────────────────────────────────────────────────────────

    def changes(self) -> Iterator[tuple[Place, str]]:
        """Yield (place, name) for whatever differs from what was found."""
        for place in self.places:
            for name in place.changes():
                yield place, name

    def restore(self) -> None:
        for place in self.places:
            place.restore()


def _words(code: CodeType) -> Iterator[str]:
    """Yield the names that code and the functions inside it use as globals or attributes."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _words(constant)


def _globals(code: CodeType) -> Iterator[str]:
    """Yield the names that code and the functions inside it use as globals."""
    names = code.co_names
    if len(names) > 127:                # the number of a name may take two steps
        yield from names
    else:
        for step, number in zip(code.co_code[::2], code.co_code[1::2], strict=True):
            if step == LOAD_GLOBAL:
                yield names[number >> 1]
            elif step in BY_NAME:
                yield names[number]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)


def _joined(title: str, name: Any) -> str:
    return f"{title}.{name}" if title and name != "" else str(name) if name != "" else title


PACKAGE = __name__.partition(".")[0]
LIBRARY = os.path.dirname(os.__file__)


@cache
def _is_ours(module: str | None) -> bool:
    """Return True for modules whose state programs do not read: the package's, the standard library's, NumPy's."""
    top = (module or "").partition(".")[0]
    if top not in sys.stdlib_module_names:
        return top in (PACKAGE, "numpy", "torch")
    file = getattr(sys.modules.get(top), "__file__", None)          # a program's own test.py is not the library's
    return file is None or file.startswith(LIBRARY) and "site-packages" not in file


__all__ = ["Place", "Surroundings"]
