"""Read exported programs, those of PyTorch (`.pt2`) included, without running code from the file.

https://pytorch.org/docs/stable/export/pt2_archive.html
"""
from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np

from .. import serialization
from .._ops import ops
from ..api import as_strided, empty, from_numpy
from ..device import device
from ..dtype import strided
from ..fx import table
from ..graph.graph import Graph
from ..graph.node import Node
from ..nn import Parameter
from ..ops.base import OPS
from ..serialization._archive import Archive
from ..storage.base import backend_of
from . import graph_signature as signatures
from ._schema import CALLABLE, DTYPES, FORMATS, STRIDED, loaded
from .dynamic_shapes import Dim
from .exported_program import ExportedProgram

NUMBERS = {f"_operator.{name}": getattr(operator, name) for name in "add sub mul floordiv mod neg pow truediv eq ne lt "
           "le gt ge getitem".split()}
SYMBOLIC = {"as_sym_int": signatures.SymIntArgument, "as_sym_float": signatures.SymFloatArgument}
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
SYMBOL = re.compile(r"(?:(\d+)\*)?Symbol\('(\w+)'(?:, \w+=\w+)*\)(?: ([+-]) (\d+))?")


@contextmanager
def well_formed() -> Iterator[None]:
    """Turn errors of files that are not as the format says into ValueError."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, RecursionError, OverflowError, StopIteration) as error:
        raise ValueError(f"torch.export.load: the file is malformed ({type(error).__name__}: {error})") from error


def read(file: Any) -> ExportedProgram:
    """Return the program in a file, which is open for reading."""
    archive = Archive(file)
    if not archive.has("archive_format") or bytes(archive.read("archive_format")) != b"pt2":
        raise ValueError("torch.export.load: the file is no archive of an exported program")
    if archive.has("byteorder") and bytes(archive.read("byteorder")) != b"little":
        raise ValueError("torch.export.load: files of big-endian machines are not read")
    with well_formed():
        model = json.loads(bytes(archive.read("models/model.json")))
        if model["schema_version"]["major"] != 8:
            raise ValueError(f"torch.export.load: the version {model['schema_version']} of the format is not known")
        tensors = {kind: _tensors(archive, kind) for kind in ("weights", "constants")}
        return Reader(model, tensors["weights"], tensors["constants"]).program(_examples(archive))


def _examples(archive: Archive) -> Any:
    """Return the arguments that the program was exported with; None if there are none of plain kinds."""
    if not archive.has("data/sample_inputs/model.pt"):
        return None
    found = serialization.load(BytesIO(bytes(archive.read("data/sample_inputs/model.pt"))), weights_only=True)
    return found if isinstance(found, tuple) and len(found) == 2 else None


def _tensors(archive: Archive, kind: str) -> dict[str, Any]:
    """Return the tensors of the weights or constants by name."""
    table_of = f"data/{kind}/model_{kind}_config.json"
    if not archive.has(table_of):
        return {}
    memories: dict[str, Any] = {}
    found = {}
    for name, entry in json.loads(bytes(archive.read(table_of)))["config"].items():
        if entry.get("use_pickle") or entry["tensor_meta"] is None:
            raise ValueError(f"torch.export.load: the tensor {name!r:.80} is pickled, or an object of a class")
        path, meta = entry["path_name"], entry["tensor_meta"]
        if path not in memories:
            memories[path] = archive.read(f"data/{kind}/{path}") if not _is_empty(meta) else bytearray()
        found[name] = _tensor(memories[path], meta, entry["is_param"])
    return found


def _is_empty(meta: dict[str, Any]) -> bool:
    return not all(_whole(n) for n in meta["sizes"])


def _whole(number: dict[str, Any]) -> int:
    found = number["as_int"] if "as_int" in number else number["as_expr"]["hint"]["as_int"]
    if type(found) is not int or not 0 <= found < 1 << 62:
        raise ValueError(f"{found!r} is no size")
    return found


def _tensor(memory: bytearray, meta: dict[str, Any], is_parameter: bool) -> Any:
    if meta["layout"] != STRIDED:
        raise ValueError("torch.export.load: tensors of sparse layouts are not read")
    kind, sizes, steps = DTYPES[meta["dtype"]], [_whole(n) for n in meta["sizes"]], [_whole(n) for n in meta["strides"]]
    offset, item = _whole(meta["storage_offset"]), kind.itemsize
    if len(sizes) != len(steps):
        raise ValueError("a tensor's sizes and strides differ in number")
    if all(sizes):
        last = offset + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))
        if (last + 1) * item > len(memory):
            raise ValueError("a tensor is larger than its memory in the file")
        flat = from_numpy(np.frombuffer(memory, dtype=np.uint8, count=len(memory) // item * item)).view(kind).clone()
        tensor = as_strided(flat, sizes, steps, offset)
    else:
        tensor = empty(sizes, dtype=kind)
    return Parameter(tensor, requires_grad=meta["requires_grad"] is True) if is_parameter else tensor


class Reader:
    """Makes the graph and signature of a program of the file's model."""

    def __init__(self, model: dict[str, Any], weights: dict[str, Any], constants: dict[str, Any]) -> None:
        module = model["graph_module"]
        self.source, self.signature = module["graph"], module["signature"]
        self.call = next(entry["signature"] for entry in module["module_call_graph"] if entry["fqn"] == "")
        self.ranges, self.weights, self.constants = model["range_constraints"], weights, constants
        self.graph, self.values = Graph(), dict[str, Node]()

    def program(self, examples: Any) -> ExportedProgram:
        """Return the program."""
        inputs = [self._input(spec) for spec in self.signature["input_specs"]]
        for given in self.source["inputs"]:
            self._placeholder(given)
        for node in self.source["nodes"]:
            self._node(node)
        self.graph.output(tuple(self._argument(each) for each in self.source["outputs"]))
        self.graph.lint()
        outputs = [self._output(spec) for spec in self.signature["output_specs"]]
        in_spec, out_spec = loaded(self.call["in_spec"]), loaded(self.call["out_spec"])
        users = [spec for spec in inputs if spec.kind is signatures.InputKind.USER_INPUT]
        results = [spec for spec in outputs if spec.kind is signatures.OutputKind.USER_OUTPUT]
        if in_spec.num_leaves != len(users) or out_spec.num_leaves != len(results):
            raise ValueError("the arguments of the program are not those of its graph")
        shapes, axes = self._shapes(users)
        names = self.call["forward_arg_names"] or [f"arg_{i}" for i in range(len(users))]
        return ExportedProgram(self.graph, signatures.ExportGraphSignature(inputs, outputs), self.weights,
                               self.constants, names, in_spec, out_spec, axes, shapes, examples)

    # signatures

    def _input(self, spec: dict[str, Any]) -> Any:
        (kind, told), kinds = next(iter(spec.items())), signatures.InputKind
        if kind == "user_input":
            ((form, value),) = told["arg"].items()
            arg = (signatures.TensorArgument(value["name"]) if form == "as_tensor"
                   else signatures.ConstantArgument("", self._argument(told["arg"])))
            return signatures.InputSpec(kinds.USER_INPUT, arg)
        if kind == "constant_input":
            return signatures.InputSpec(kinds.USER_INPUT, signatures.ConstantArgument(told["name"],
                                                                                      self._argument(told["value"])))
        if kind not in ("parameter", "buffer", "tensor_constant"):
            raise ValueError(f"torch.export.load: inputs of the kind {kind!r:.40} are not read")
        arg, target = signatures.TensorArgument(told["arg"]["name"]), told[f"{kind}_name"]
        persistent = told["persistent"] if kind == "buffer" else None
        held = self.weights if target in self.weights else self.constants
        if target not in held:
            raise ValueError(f"torch.export.load: the file has no tensor {target!r:.80}")
        return signatures.InputSpec({"parameter": kinds.PARAMETER, "buffer": kinds.BUFFER,
                                     "tensor_constant": kinds.CONSTANT_TENSOR}[kind], arg, target, persistent)

    def _output(self, spec: dict[str, Any]) -> Any:
        ((kind, told),), kinds = spec.items(), signatures.OutputKind
        written = {"buffer_mutation": (kinds.BUFFER_MUTATION, "buffer_name"),
                   "user_input_mutation": (kinds.USER_INPUT_MUTATION, "user_input_name")}
        if kind in written:
            return signatures.OutputSpec(written[kind][0], signatures.TensorArgument(told["arg"]["name"]),
                                         told[written[kind][1]])
        if kind != "user_output":
            raise ValueError(f"torch.export.load: outputs of the kind {kind!r:.40} are not read")
        ((form, value),) = told["arg"].items()
        if form in SYMBOLIC and "as_name" in value:
            return signatures.OutputSpec(kinds.USER_OUTPUT, SYMBOLIC[form](value["as_name"]))
        arg = (signatures.TensorArgument(value["name"]) if form == "as_tensor"
               else signatures.ConstantArgument("", self._argument(told["arg"])))
        return signatures.OutputSpec(kinds.USER_OUTPUT, arg)

    def _shapes(self, users: list[Any]) -> tuple[list[Any], dict[tuple[int, int], Any]]:
        """Return the shapes of the user's inputs, and the Dims of their axes."""
        dims: dict[str, Dim] = {}
        shapes: list[Any] = []
        axes: dict[tuple[int, int], Any] = {}
        for i, spec in enumerate(users):
            if not isinstance(spec.arg, signatures.TensorArgument):
                shapes.append(None)
                continue
            sizes = self.source["tensor_values"][spec.arg.name]["sizes"]
            shapes.append(tuple(_whole(n) for n in sizes))
            axes.update({(i, axis): self._dim(n["as_expr"]["expr_str"], dims) for axis, n in enumerate(sizes)
                         if "as_expr" in n})
        return shapes, axes

    def _dim(self, text: str, dims: dict[str, Dim]) -> Any:
        found = SYMBOL.fullmatch(text)
        if found is None:
            return Dim.AUTO             # an expression of another form: the size is not checked
        factor, name, sign, offset = found.groups()
        if name not in dims:
            told = self.ranges.get(name, {})
            dims[name] = Dim(name, min=told.get("min_val"), max=told.get("max_val"))
        dim: Any = dims[name]
        if factor is not None:
            dim = dim * int(factor)
        return dim if offset is None else dim + int(f"{sign}{offset}")

    # the graph

    def _placeholder(self, given: dict[str, Any]) -> None:
        ((form, value),) = given.items()
        name = value["name"] if form == "as_tensor" else value.get("as_name") if isinstance(value, dict) else None
        node = self.graph.placeholder(self._new(name) if name is not None else "arg")
        node.target = node.name
        if form == "as_tensor":
            node.meta["val"] = self._meta(value["name"])
        if name is not None:
            self.values[name] = node

    def _new(self, name: Any) -> str:
        if not isinstance(name, str) or not IDENTIFIER.fullmatch(name) or name in self.values:
            raise ValueError(f"torch.export.load: {name!r:.80} is no name of a new value")
        return name

    def _meta(self, name: str) -> Any:
        told = self.source["tensor_values"].get(name)
        return None if told is None else empty([_whole(n) for n in told["sizes"]], dtype=DTYPES[told["dtype"]],
                                               device="meta")

    def _node(self, node: dict[str, Any]) -> None:
        target, args, kwargs = self._target(node["target"]), [], {}
        for given in node["inputs"]:
            value = self._argument(given["arg"])
            if given.get("kind") == 2:
                kwargs[given["name"]] = value
            else:
                args.append(value)
        outputs = node["outputs"]
        names = [name for each in outputs for name in _names(each)]
        if len(outputs) == 1 and "as_tensors" not in outputs[0]:
            (name,) = names
            made = self.graph.create_node("call_function", target, tuple(args), kwargs, self._new(name))
            self._keep(made, name)
            return
        wanted = node.get("name") or f"{names[0]}_all" if names else "unused"
        made = self.graph.create_node("call_function", target, tuple(args), kwargs, wanted)
        for i, name in enumerate(names):
            if name is not None:
                self._keep(self.graph.create_node("call_function", operator.getitem, (made, i), {}, self._new(name)),
                           name)
        made.meta["val"] = [self._meta(name) if name is not None else None for name in names]

    def _keep(self, made: Node, name: str) -> None:
        self.values[name] = made
        for values in (self.source["sym_int_values"], self.source.get("sym_float_values", {})):
            told = values.get(name)
            hint = told.get("as_expr", {}).get("hint") if isinstance(told, dict) else None
            if isinstance(hint, dict):
                made.meta["val"] = next(iter(hint.values()))
        if name in self.source["tensor_values"]:
            made.meta["val"] = self._meta(name)

    @staticmethod
    def _target(text: str) -> Any:
        """Return the operator of this name. ValueError for one that files may not call."""
        if text in NUMBERS:
            return NUMBERS[text]
        *start, packet, overload = text.split(".")
        if start == ["torch", "ops", "aten"] and packet.removesuffix("_") in CALLABLE and IDENTIFIER.fullmatch(
                overload) and not overload.startswith("_"):
            return getattr(getattr(ops.aten, packet), overload)
        if [*start, packet] == ["tensorgrad", "fx", "table"] and overload in OPS:
            return table.function_of(overload)
        raise ValueError(f"torch.export.load: the file calls {text!r:.80}, which is not among the operators that files "
                         f"may call")

    def _argument(self, given: dict[str, Any]) -> Any:
        """Return an argument of a node: a node, or a value."""
        ((form, value),) = given.items()
        if form == "as_tensor":
            return self.values[value["name"]]
        if form in ("as_tensors", "as_nested_tensors"):
            return [self.values[each["name"]] for each in value]
        if form == "as_optional_tensors":
            return [self._argument(each) for each in value]
        if form == "as_optional_tensor":
            return self._argument(value)
        if form in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            return self.values[value["as_name"]] if "as_name" in value else next(iter(value.values()))
        if form in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self.values[each["as_name"]] if "as_name" in each else next(iter(each.values())) for each in value]
        return _constant(form, value)


def _names(output: dict[str, Any]) -> list[Any]:
    """Return the names of the values of an output of a node; None for one that is not used."""
    ((form, value),) = output.items()
    if form == "as_tensor":
        return [value["name"]]
    if form == "as_tensors":
        return [each["name"] for each in value]
    if form in ("as_sym_int", "as_sym_bool", "as_sym_float"):
        return [value["as_name"]]
    if form == "as_none":
        return [None]
    raise ValueError(f"torch.export.load: results of the kind {form!r:.40} are not read")


def _constant(form: str, value: Any) -> Any:
    """Return a value that is no tensor."""
    if form == "as_none":
        return None
    kinds: dict[str, Any] = {"as_int": int, "as_float": (int, float, str), "as_bool": bool, "as_string": str}
    if form in kinds or form.endswith("s") and form[:-1] in kinds:
        one = form if form in kinds else form[:-1]
        values = value if one != form else [value]
        if not isinstance(values, list) or not all(isinstance(each, kinds[one]) for each in values):
            raise ValueError(f"{value!r:.80} is not of the kind {form}")
        if one == "as_float":
            values = [float(each) for each in values]       # infinities and NaN are strings
        return values if one != form else values[0]
    if form == "as_scalar_type":
        return DTYPES[value]
    if form == "as_memory_format":
        return FORMATS[value]
    if form == "as_layout" and value == STRIDED:
        return strided
    if form == "as_device":
        place = device(value["type"], value["index"]) if value["index"] is not None else device(value["type"])
        backend_of(place)
        return place
    if form == "as_complex":
        return complex(value["real"], value["imag"])
    raise ValueError(f"torch.export.load: arguments of the kind {form!r:.40} are not read")
