"""Write exported programs as PyTorch's archives (`.pt2`): JSON, and the bytes of tensors.

https://pytorch.org/docs/stable/export/pt2_archive.html
"""
from __future__ import annotations

import hashlib
import json
import operator
import sys
import zipfile
from io import BytesIO
from typing import Any

import numpy as np

from .. import serialization
from .._aten import OpOverload
from .._ops import ops
from ..api import Tensor
from ..device import device
from ..dtype import dtype, memory_format
from ..fx.table import OpFunction
from ..graph.node import Node
from ..nn import Parameter
from ..serialization._archive import _add
from ._schema import ARGUMENTS, FORMATS, NUMBERS, STRIDED, dumped
from .dynamic_shapes import Dim
from .exported_program import ExportedProgram
from .graph_signature import ConstantArgument, InputKind, OutputKind

LAST = 2 ** 63 - 1
TEXTS = {operator.add: "({} + {})", operator.sub: "({} - {})", operator.mul: "({}*{})",
         operator.floordiv: "FloorDiv({}, {})", operator.truediv: "IntTrueDiv({}, {})"}
SYMBOLIC = {int: "as_sym_int", float: "as_sym_float"}
FORMAT_NUMBERS = {kind: number for number, kind in FORMATS.items()}


def write(program: ExportedProgram, file: Any, name: str) -> None:
    """Write a program to a file, which is open for writing; `name` is the folder of the archive's entries."""
    writer = Writer(program)
    model = json.dumps(writer.model()).encode()
    examples = BytesIO()
    serialization.save(program.example_inputs, examples)
    digest = hashlib.sha1(model, usedforsecurity=False)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for kind, tensors in (("weights", program.state_dict), ("constants", program.constants)):
            config, memories = _tensors(tensors, kind.removesuffix("s").replace("constant", "tensor"))
            for path, memory in memories.items():
                _add(archive, f"{name}/data/{kind}/{path}", memory)
                digest.update(memory)
            _add(archive, f"{name}/data/{kind}/model_{kind}_config.json", json.dumps({"config": config}).encode())
        _add(archive, f"{name}/models/model.json", model)
        _add(archive, f"{name}/data/sample_inputs/model.pt", examples.getvalue())
        for record, data in (("archive_format", b"pt2"), ("archive_version", b"0"), (".data/version", b"6\n"),
                             ("byteorder", sys.byteorder.encode())):
            _add(archive, f"{name}/{record}", data)
        _add(archive, f"{name}/.data/serialization_id", str(int(digest.hexdigest(), 16) % 10 ** 40).zfill(40).encode())


def _tensors(tensors: dict[str, Any], stem: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return what the archive says of tensors, and their bytes by path. Tensors are written contiguously."""
    config, memories = {}, {}
    for i, (name, tensor) in enumerate(tensors.items()):
        path, plain = f"{stem}_{i}", tensor.detach().cpu().contiguous()
        memories[path] = np.ascontiguousarray(plain.array).tobytes()
        config[name] = {"path_name": path, "is_param": isinstance(tensor, Parameter), "use_pickle": False,
                        "tensor_meta": _meta(plain, tensor.requires_grad)}
    return config, memories


def _meta(tensor: Any, requires_grad: bool = False) -> dict[str, Any]:
    return {"dtype": NUMBERS[tensor.dtype], "sizes": [{"as_int": n} for n in tensor.shape],
            "requires_grad": requires_grad, "device": {"type": "cpu", "index": None},
            "strides": [{"as_int": n} for n in tensor.stride()], "storage_offset": {"as_int": 0}, "layout": STRIDED}


class Writer:
    """Makes the JSON of a program."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program, self.signature = program, program.graph_signature
        nodes = list(program.graph.nodes)
        self.placeholders = [node for node in nodes if node.op == "placeholder"]
        self.steps = [node for node in nodes if node.op == "call_function" and not self._is_part(node)]
        self.results = program.graph.output_node().args[0]
        # axes that vary are symbols, of the Dims' names
        users = [node for node, spec in zip(self.placeholders, self.signature.input_specs, strict=True)
                 if spec.kind is InputKind.USER_INPUT]
        self.axes = {(users[i], axis): dim for (i, axis), dim in program._axes.items()}
        self.symbols = {dim.root.__name__: dim.root for dim in self.axes.values() if isinstance(dim, Dim)}
        for k, (place, dim) in enumerate(self.axes.items()):
            if not isinstance(dim, Dim):        # a hint
                self.axes[place] = self.symbols[f"s{k}"] = Dim(f"s{k}")

    @staticmethod
    def _is_part(node: Node) -> bool:
        """Return True for a node that takes one of several results."""
        return (node.target is operator.getitem and isinstance(node.args[0], Node)
                and isinstance(node.args[0].meta.get("val"), (list, tuple)))

    def model(self) -> dict[str, Any]:
        """Return the JSON of the program."""
        ranges = {name: {"min_val": dim.min, "max_val": dim.max} for name, dim in self.symbols.items()}
        call = {"inputs": [], "outputs": [], "in_spec": dumped(self.program._in_spec),
                "out_spec": dumped(self.program._out_spec), "forward_arg_names": list(self.program._names)}
        values = {node.name: self._value(node) for node in self.program.graph.nodes
                  if isinstance(node.meta.get("val"), Tensor)}
        graph = {"inputs": [self._argument(node) for node in self._inputs()],
                 "outputs": [self._argument(result) for result in self.results],
                 "nodes": [self._node(node) for node in self.steps], "tensor_values": values,
                 "sym_int_values": self._numbers(int), "sym_bool_values": {}, "is_single_tensor_return": False,
                 "custom_obj_values": {}, "sym_float_values": self._numbers(float)}
        return {"graph_module": {"graph": graph, "signature": self._signature(), "module_call_graph": [
            {"fqn": "", "signature": call}], "metadata": {}, "treespec_namedtuple_fields": {}},
            "opset_version": {"aten": 10}, "range_constraints": ranges, "schema_version": {"major": 8, "minor": 20},
            "verifiers": ["TRAINING"], "torch_version": "2.13.0", "guards_code": []}

    def _inputs(self) -> list[Any]:
        """Return the inputs: the values of those that are no tensors."""
        return [spec.arg.value if isinstance(spec.arg, ConstantArgument) else node
                for node, spec in zip(self.placeholders, self.signature.input_specs, strict=True)]

    def _value(self, node: Node) -> dict[str, Any]:
        found = _meta(node.meta["val"])
        for axis, told in enumerate(found["sizes"]):
            if (node, axis) in self.axes:
                found["sizes"][axis] = {"as_expr": {"expr_str": self._size(node, axis), "hint": told}}
        return found

    def _size(self, node: Node, axis: int) -> str:
        """Return the text of an axis's size."""
        dim = self.axes[node, axis]
        symbol = f"Symbol('{dim.root.__name__}', positive=True, integer=True)"
        text = symbol if dim.factor == 1 else f"{dim.factor}*{symbol}"
        return text + (f" {'+' if dim.offset > 0 else '-'} {abs(dim.offset)}" if dim.offset else "")

    def _text(self, value: Any) -> str:
        """Return the text of a number that is computed from sizes."""
        if not isinstance(value, Node):
            return str(value)
        if value.target is ops.aten.item.default:
            raise NotImplementedError("torch.export.save: programs that read numbers from tensors are not written")
        if value.target not in TEXTS:
            return self._size(*value.args)
        return TEXTS[value.target].format(*map(self._text, value.args))

    def _numbers(self, kind: type) -> dict[str, Any]:
        """Return the numbers of a kind that the graph computes from sizes."""
        form = {int: "as_int", float: "as_float"}[kind]
        return {node.name: {"as_expr": {"expr_str": self._text(node), "hint": {form: node.meta["val"]}}}
                for node in self.steps if type(node.meta.get("val")) is kind}

    def _signature(self) -> dict[str, Any]:
        inputs: list[Any] = []
        for spec in self.signature.input_specs:
            if isinstance(spec.arg, ConstantArgument):
                inputs.append({"constant_input": {"name": spec.arg.name, "value": self._argument(spec.arg.value)}})
            elif spec.kind is InputKind.USER_INPUT:
                inputs.append({"user_input": {"arg": {"as_tensor": {"name": spec.arg.name}}}})
            else:
                kind = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer",
                        InputKind.CONSTANT_TENSOR: "tensor_constant"}[spec.kind]
                more = {"persistent": spec.persistent} if kind == "buffer" else {}
                inputs.append({kind: {"arg": {"name": spec.arg.name}, f"{kind}_name": spec.target, **more}})
        outputs = [self._output(spec, result) for spec, result in zip(self.signature.output_specs, self.results,
                                                                      strict=True)]
        return {"input_specs": inputs, "output_specs": outputs}

    def _output(self, spec: Any, result: Any) -> dict[str, Any]:
        if spec.kind is OutputKind.USER_OUTPUT:
            return {"user_output": {"arg": self._argument(result)}}
        kind, name = {OutputKind.BUFFER_MUTATION: ("buffer_mutation", "buffer_name"),
                      OutputKind.USER_INPUT_MUTATION: ("user_input_mutation", "user_input_name")}[spec.kind]
        return {kind: {"arg": {"name": result.name}, name: spec.target}}

    def _node(self, node: Node) -> dict[str, Any]:
        target = node.target
        if isinstance(target, OpOverload):
            name = f"{target._opname}.{target._overloadname}"
            text, names = f"torch.ops.{target}", ARGUMENTS.get(name, ["self", "other"])
        elif isinstance(target, OpFunction):        # an op without an operator of PyTorch, which cannot read this
            text, names = f"tensorgrad.fx.table.{target.__name__}", [f"input_{i}" for i in range(len(node.args))]
        elif target is operator.getitem or target in TEXTS:
            text, names = f"_operator.{target.__name__}", ["a", "b"]
        else:
            raise NotImplementedError(f"torch.export.save: the program calls {target}, which files do not have a name "
                                      f"for")
        inputs = [{"name": name, "arg": self._argument(value, name), "kind": 1}
                  for name, value in zip(names, node.args, strict=False)]
        inputs += [{"name": name, "arg": self._argument(value), "kind": 2} for name, value in node.kwargs.items()]
        return {"target": text, "inputs": inputs, "outputs": self._outputs(node), "metadata": {},
                "is_hop_single_tensor_return": None, "name": node.name}

    def _outputs(self, node: Node) -> list[Any]:
        values = node.meta.get("val")
        if isinstance(values, (int, float)):
            return [self._argument(node)]
        if not isinstance(values, (list, tuple)):
            return [{"as_tensor": {"name": node.name}}]
        parts = {user.args[1]: user.name for user in node.users}
        names = [parts.get(i, f"{node.name}_unused_{i}") for i in range(len(values))]
        if node.target.__name__.startswith(("split", "unbind", "chunk")):       # operators whose results are one list
            return [{"as_tensors": [{"name": name} for name in names]}]
        return [{"as_tensor": {"name": name}} for name in names]

    def _argument(self, value: Any, name: str = "") -> dict[str, Any]:
        """Return an argument of a node."""
        if isinstance(value, Node):
            form = SYMBOLIC.get(type(value.meta.get("val")))
            return {form: {"as_name": value.name}} if form else {"as_tensor": {"name": value.name}}
        if isinstance(value, (list, tuple)):
            return self._several(value)
        for kind, form in ((bool, "as_bool"), (int, "as_int"), (float, "as_float"), (str, "as_string")):
            if isinstance(value, kind):
                return {form: value}
        if value is None:
            return {"as_none": True}
        if isinstance(value, dtype):
            return {"as_scalar_type": NUMBERS[value]}
        if isinstance(value, memory_format):
            return {"as_memory_format": FORMAT_NUMBERS[value]}
        if isinstance(value, device):
            return {"as_device": {"type": value.type, "index": value.index}}
        if isinstance(value, complex):
            return {"as_complex": {"real": value.real, "imag": value.imag}}
        raise NotImplementedError(f"torch.export.save: {value!r:.80} is an argument of a node, and not written")

    def _several(self, values: Any) -> dict[str, Any]:
        if any(isinstance(each, Node) and isinstance(each.meta.get("val"), int) for each in values):
            return {"as_sym_ints": [{"as_name": each.name} if isinstance(each, Node) else {"as_int": each}
                                    for each in values]}
        if all(isinstance(each, Node) for each in values) and values:
            return {"as_tensors": [{"name": each.name} for each in values]}
        if any(isinstance(each, Node) for each in values):
            return {"as_optional_tensors": [self._argument(each) for each in values]}
        forms = {next(iter(self._argument(each))) for each in values} or {"as_int"}
        if forms == {"as_int", "as_float"}:
            return {"as_floats": [float(each) for each in values]}
        if len(forms) > 1 or not forms <= {"as_int", "as_float", "as_bool", "as_string"}:
            raise NotImplementedError(f"torch.export.save: {values!r:.80} is an argument of a node, and not written")
        return {f"{forms.pop()}s": list(values)}
