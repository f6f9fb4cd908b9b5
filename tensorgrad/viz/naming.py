"""Names of tensors: from variables and modules of the program, their own `.name`, or numbers in the order of time."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np

from ..core.tape import Leaf, Output, TensorBase, node_of
from .notes import NAMES
from .text import readable

SMALL = 4           # so many numbers stand for a tensor without a name
ROLES = {"a": "input", "b": "other", "x": "input", "xs": "input", "n": "input", "m": "input", "s": "input",
         "q": "input", "t": "input",
         # what an op calls an input, and what a reader does
         "re": "input", "im": "input", "y": "target", "labels": "target"}


def variables(frame: Any) -> dict[str, Any]:
    """The tensors and modules among a program's variables, by name.

    In a method, attributes of `self` are among them.
    """
    own = frame.f_locals.get("self")
    held = ({} if own is None or isinstance(own, TensorBase) or hasattr(type(own), "named_parameters")
            else getattr(own, "__dict__", {}))
    found = {**frame.f_globals, **held, **frame.f_locals}
    return {name: value for name, value in found.items()
            if not name.startswith("_") and (isinstance(value, TensorBase) or hasattr(type(value), "named_parameters"))}


def tensors_of(scope: Mapping[str, Any], module: Any = None) -> dict[str, Any]:
    """{name: tensor} of the parameters of `module`, whose name is left out, of modules among the variables, and of
    variables.

    Where a tensor has several names, the first is to be used: `net.bias` rather than the `p` of a loop.
    """
    if module is not None and not hasattr(module, "named_parameters"):
        raise TypeError(f"module: expected a Module, not {type(module).__name__}")
    found = dict(module.named_parameters()) if module is not None else {}
    tensors, modules = {}, {}
    for name, value in scope.items():
        if isinstance(value, TensorBase):
            tensors[name] = value
        elif hasattr(value, "named_parameters"):
            modules[name] = value
        else:
            raise TypeError(f"names: {name!r} is a {type(value).__name__}, not a tensor")
    inner = {id(part) for value in modules.values() for part in value.modules() if part is not value}
    for name, value in modules.items():
        if value is not module and id(value) not in inner:      # the outermost names what is within
            found.update((f"{name}.{parameter}", p) for parameter, p in value.named_parameters())
    for name, value in tensors.items():
        found.setdefault(name, value)
    return found


def placed(tensors: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """{name: (tensor, its place on the tape)}, less those whose values or history cannot be asked for.

    These are lazy parameters, and views that a write in place has made invalid.
    """
    found = {}
    for name, tensor in tensors.items():
        try:
            place = node_of(tensor)
            if hasattr(tensor.array, "shape"):
                found[name] = tensor, place
        except (RuntimeError, ValueError):
            continue
    return found


def names_of(tape: Any, tensors: Mapping[str, tuple[Any, Any]]) -> dict[Any, str]:
    """{place on the tape: its name}, and {id(array): name} of tensors that need no gradient.

    Places that nobody named are numbered in the order of time. A tensor called g is g′, for g is the gradient in rules.
    """
    own = ["g′" if name == "g" else name for name in [getattr(tensor, "name", None) or name
                                                      for name, (tensor, _) in tensors.items()]]
    found: dict[Any, str] = {}
    for (tensor, place), name in zip(tensors.values(), list(map(readable, own))):
        found.setdefault(id(tensor.array), name)
        if place is not None:
            found.setdefault(place, name)
    count = {"leaf": 0, "v": 0}
    for node in tape.nodes:
        if type(node) is Output:
            continue
        kind = "leaf" if type(node) is Leaf else "v"
        count[kind] += node not in found
        mine = getattr(tape.leaves[node], "name", None) if kind == "leaf" else None
        if kind == "leaf" and not mine and node not in found:
            mine = tape.parameters.get(node)
        if mine or node not in found:
            number = "L" if node is tape.nodes[-1] and kind == "v" else f"{kind}{count[kind]}"
            found[node] = readable(mine) if mine else number
    reached = Counter(node.node for node in tape.nodes if type(node) is Output)
    for node in tape.nodes:
        if type(node) is Output and node not in found:
            outputs = getattr(tape.steps[node.node].op, "outputs", ())
            # of a norm, its statistics are nothing that the program sees
            alone = reached[node.node] == 1 and node.index == 0
            part = "" if alone else f".{outputs[node.index]}" if outputs else f"[{node.index}]"
            found[node] = found[node.node] + part
    return found | inputs_of(tape, found)


def inputs_of(tape: Any, names: Mapping[Any, str]) -> dict[Any, str]:
    """{id(array): a name} of the larger tensors that need no gradient and have no name: input, target, mask, numbered
    where there are several.
    """
    roles: dict[str, dict[int, None]] = {}
    for node, given in tape.given.items():
        for operand in tape.steps[node].inputs:
            array = getattr(given.get(operand.position), "array", None)
            if getattr(array, "size", 0) > SMALL and id(array) not in names:
                role = operand.name.partition("[")[0]
                roles.setdefault("mask" if is_mask(array) else ROLES.get(role, role), {})[id(array)] = None
    taken, found = {*names.values()}, dict[Any, str]()
    for role, arrays in roles.items():
        free = (name for number in count(1) if (name := f"{role}{number}") not in taken)
        found |= {array: role if len(arrays) == 1 and role not in taken else next(free)
                  for array in arrays if array not in found}
    return found


def unnamed(scope: Mapping[str, Any], module: Any = None) -> dict[str, Any]:
    """{name: tensor} of a program's variables and its modules' parameters, less those that `module` or a watched module
    has a name for.
    """
    found = placed(tensors_of(scope, module))
    own = set() if module is None else {id(p) for p in (*module.parameters(), *module.buffers())}
    return {name: tensor for name, (tensor, place) in found.items()
            if id(tensor) not in own and (type(place) is not Leaf or place not in NAMES)}


def is_mask(array: Any) -> bool:
    """Tell whether an array says where something is: bools, or zeros and one other number, as dropout makes them."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "bf":
        return False
    highest = array.max()
    return array.dtype.kind == "b" or highest > 0 == array.min() and bool(((array == 0) | (array == highest)).all())


Known = dict[int, tuple[str, tuple[str, ...] | None, Any]]


def named(module: Any, names: Mapping[str, Any] | None) -> Known:
    """{id of a tensor or place on the tape: (its name, the path of the module it belongs to, the object itself)}."""
    found: Known = {}
    if module is not None:
        if not hasattr(module, "named_parameters"):
            raise TypeError(f"module: expected a Module, not {type(module).__name__}")
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            found[id(tensor)] = (name, tuple(name.split(".")[:-1]), tensor)
    for name, tensor in (names or {}).items():
        if not isinstance(tensor, TensorBase):
            raise TypeError(f"names: {name!r} is a {type(tensor).__name__}, not a tensor")
    return found | known({name: (tensor, node_of(tensor)) for name, tensor in (names or {}).items()})


def known(tensors: Mapping[str, tuple[Any, Any]]) -> Known:
    """`named` for tensors that come with their places."""
    found: Known = {}
    for name, (tensor, place) in tensors.items():
        found.setdefault(id(tensor), (name, None, tensor))
        if place is not None and type(place) is not Leaf:
            found.setdefault(id(place), (name, None, place))
    return found
