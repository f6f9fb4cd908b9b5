"""Convert networks of placeholders to plain data and back: the content of a `Functional`'s spec.

    placeholders    {name: [shape, dtype]}
    steps           in order: a name, one of layer, function, method, attribute, operator and unpack, and the arguments;
        `{"node": name}` is the
                    result of an earlier step. A layer that is used again is the node of its first step.
    inputs, outputs structures of `{"node": name}`

Functions are those of tensors, by name; none that read or write files, or change the state of the process, are among
them.
"""
from __future__ import annotations

import operator
import sys
from typing import Any

from .. import api as tg
from .. import nn
from ..graph import Node
from ..graph.nesting import leaves, mapped
from ..graph.source import attribute_of
from ..graph.targets import OPERATORS, SIGNS, Unpack, public_name
from ..symbolic.calls import Attribute, Method
from ..symbolic.data import join
from .base import Layer
from .placeholder import Placeholder
from .spec import NodeName, SpecError

OPERATOR = {function.__name__.strip("_"): function for function in (*OPERATORS, *SIGNS, operator.getitem, abs)}
NOT_NAMED = set("set_rng_state get_rng_state manual_seed seed initial_seed set_flush_denormal get_file_path "
                "from_dlpack to_dlpack from_numpy frombuffer typename is_tensor is_storage numpy tolist item data_ptr "
                "apply_ map_ map2_ set_ requires_grad_ share_memory_ resize_".split())
ONLY_METHODS = set("bfloat16 bool byte cdouble cfloat char contiguous cpu cuda dim double expand expand_as float half "
                   "int long ndimension nelement new_empty new_full new_ones new_tensor new_zeros repeat reshape_as "
                   "short size stride sum_to_size to type type_as unfold view view_as".split())
FUNCTIONS = {f"torch.{name}": name for name in tg.FUNCTIONS.keys() - NOT_NAMED if not name.startswith("_")}
FUNCTIONS |= {f"F.{name}": name for name in nn.functional.__all__}
METHODS = ONLY_METHODS | {name for name in dir(tg.Tensor) if name.removesuffix("_") in FUNCTIONS.values()
                          and name not in NOT_NAMED}
ATTRIBUTES = set("T mT H mH real imag shape ndim".split())


def described(model: Any) -> dict[str | None, Any]:
    """Return the entries of a Functional's spec other than its type."""
    program = model._described()
    inputs = program.inputs
    for node, dtype in zip(inputs, model._input_dtypes, strict=True):
        if dtype is None:
            raise SpecError(f"{type(model).__name__}.{node.meta['label']}: a {node.meta['shape']} is no tensor, and a "
                            f"spec has placeholders of tensors only")
    first: dict[int, str] = {}

    def told(leaf: Any) -> Any:
        if not isinstance(leaf, Node):
            return leaf
        if leaf.op == "get_attr":
            raise SpecError(f"{type(model).__name__}.{leaf.target}: a tensor, or a module as an argument, is no plain "
                            f"data: make a layer of it")
        return NodeName(leaf.meta["label"])
    steps = []
    for node in program.values[len(inputs):]:
        args = list(node.args[:1] if attribute_of(node) is not None else node.args)
        given, kwargs = mapped(told, args), mapped(told, node.kwargs)
        steps.append({"name": node.meta["label"], **_target(node, model, first), "args": given}
                     | ({"kwargs": kwargs} if kwargs else {}))
    given = {node.meta["label"]: [list(node.meta["shape"]), dtype]
             for node, dtype in zip(inputs, model._input_dtypes, strict=True)}
    return {"placeholders": given, "steps": steps,
            "inputs": mapped(lambda k: NodeName(inputs[k].meta["label"]), model._form),
            "outputs": mapped(told, program.outputs)}


def _target(node: Node, model: Any, first: dict[int, str]) -> dict[str, Any]:
    target, name = node.target, node.meta["label"]
    if node.op == "call_module":
        layer = getattr(model, target)
        again = first.setdefault(id(layer), name)
        return {"layer": layer if again == name else NodeName(again)}
    if node.op == "call_method":
        return {"method": target}
    if (attribute := attribute_of(node)) is not None:
        return {"attribute": attribute}
    if type(target) is Unpack:
        return {"unpack": target.count}
    known = public_name(target)
    if OPERATOR.get(str(getattr(target, "__name__", "")).strip("_")) is target:
        return {"operator": target.__name__.strip("_")}
    if known not in FUNCTIONS:
        raise SpecError(f"{type(model).__name__}.{name}: {target!r} is not a function of tensors that a spec can name")
    return {"function": known}


def rebuilt(args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """Return the inputs and outputs that such a spec describes."""
    if args or set(kwargs) != {"placeholders", "steps", "inputs", "outputs"}:
        raise SpecError("Functional: expected placeholders, steps, inputs and outputs, and nothing else")
    return Reader(kwargs["placeholders"], kwargs["steps"]).ends(kwargs["inputs"], kwargs["outputs"])


class Reader:
    """Builds a graph from its steps."""

    def __init__(self, placeholders: Any, steps: Any) -> None:
        self.nodes: dict[str, Any] = {}
        self.layers: dict[str, Any] = {}
        if not isinstance(placeholders, dict) or not isinstance(steps, list):
            raise SpecError("Functional: placeholders are a dictionary, and steps a list")
        for name, given in placeholders.items():
            try:
                shape, dtype = given
                node = self.nodes[name] = Placeholder(tuple(shape), dtype)
            except Exception as error:
                raise SpecError(f"placeholders.{name}: a shape and a dtype are expected: {error}") from None
            node.custom_name = name
        for k, step in enumerate(steps):
            try:
                self.step(step)
            except SpecError as error:
                raise SpecError(f"steps[{k}]: {error}") from None
            except Exception as error:              # layers and functions may raise anything
                raise SpecError(f"steps[{k}]: {type(error).__name__}: {error}") from error

    def node(self, leaf: Any) -> Any:
        if type(leaf) is not NodeName:
            return leaf
        if leaf.name not in self.nodes:
            raise SpecError(f"there is no node {leaf.name!r} before this")
        return self.nodes[leaf.name]

    def step(self, step: Any) -> None:
        if not isinstance(step, dict) or not isinstance(name := step.get("name"), str) or name in self.nodes:
            raise SpecError("a step is a dictionary, with a name that no other has")
        (kind,) = (set(step) - {"name", "args", "kwargs"} if len(set(step) - {"name", "args", "kwargs"}) == 1
                   else (None,))
        if (kind not in KINDS or not isinstance(args := step.get("args", []), list)
                or not isinstance(kwargs := step.get("kwargs", {}), dict)):
            raise SpecError(f"a step has a name, one of {', '.join(KINDS)}, a list of args and a dictionary of kwargs")
        args, kwargs = mapped(self.node, args), mapped(self.node, kwargs)
        target = KINDS[kind](self, step[kind])
        if kind == "layer":
            self.layers[name] = target
        parent = (next((leaf for leaf in leaves([args, kwargs]) if leaf in self.nodes.values()), None)
                  if isinstance(target, Layer) else None)
        self.nodes[name] = (join(target, *args, custom_name=name, **kwargs) if parent is None
                            else target._joined(parent, tuple(args), kwargs, name))

    def ends(self, *structures: Any) -> list[Any]:
        try:
            return [mapped(self.node, structure) for structure in structures]
        except SpecError as error:
            raise SpecError(f"inputs or outputs: {error}") from None

    def layer(self, value: Any) -> Any:
        if type(value) is NodeName and value.name in self.layers:
            return self.layers[value.name]
        if not isinstance(value, nn.Module):
            raise SpecError("layer: a layer, or the node of an earlier step that has one, is expected")
        return value

    def unpack(self, value: Any) -> Unpack:
        if type(value) is not int or not 0 <= value <= 10_000:
            raise SpecError("unpack: a number of parts is expected")
        return Unpack(value)


def _named(what: str, known: Any, find: Any) -> Any:
    """Return a reader of names, which refuses those that are not allowed."""
    def found(reader: Reader, value: Any) -> Any:
        if not isinstance(value, str) or value not in known:
            raise SpecError(f"{what}: unknown: {str(value)[:100]!r}")
        return find(value)
    return found


KINDS: dict[Any, Any] = {
    "layer": Reader.layer, "unpack": Reader.unpack, "operator": _named("operator", OPERATOR, OPERATOR.get),
    "method": _named("method", METHODS, Method),
    "attribute": _named("attribute", ATTRIBUTES, Attribute),
    "function": _named("function", FUNCTIONS,
                       lambda name: getattr(nn.functional if name.startswith("F.") else sys.modules["tensorgrad"],
                                            FUNCTIONS[name]))}
