"""Record a model's graph for TensorBoard: in a run, each call of a public function is a node in the scope of the
calling module."""
from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

from ... import api as tg
from ..._tensor import torch_function
from ...core.mode import no_grad
from ...nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ...overrides import resolve_name
from .._pytree import tree_leaves
from ._wire import (
    AttrList,
    AttrValue,
    DeviceStepStats,
    Dim,
    GraphDef,
    Message,
    NodeDef,
    RunMetadata,
    StepStats,
    TensorShapeProto,
    VersionDef,
)

DICT = ("Encountering a dict at the output of the tracer might cause the trace to be incorrect, this is only valid if "
        "the container structure does not change based on the module's inputs. Consider using a constant container "
        "instead (e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely "
        "need this and know the side effects, pass strict=False to trace() to allow this behavior.")
SILENT = {"requires_grad_"}     # functions that return a tensor but compute nothing


def _tensors(value: Any) -> list[Any]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, tg.Tensor)]


class Recording:
    """Records the calls of public functions while it is active, as a `TorchFunctionMode` does."""

    def __init__(self, model: Any) -> None:
        self.nodes: list[Message] = []
        self.names: dict[int, str] = {}             # the node of each tensor
        self.kept: list[Any] = []                   # tensors kept alive while their ids are in use
        self.used: Counter[str] = Counter()
        self.scopes: dict[Any, str] = {}
        self.parameters: dict[int, tuple[str, str]] = {}
        paths: dict[str, str] = {}
        for path, module in model.named_modules():
            above, _, last = path.rpartition(".")
            label = type(module).__name__
            paths[path] = self.scopes[module] = f"{paths[above]}/{label}[{last}]" if path else label
            for name, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
                self.parameters.setdefault(id(tensor), (f"{paths[path]}/{name}", name))
        self.inside = [self.scopes[model]]

    def node(self, name: str, kind: str, inputs: list[str], tensor: Any = None, attributes: Any = None) -> str:
        self.used[name] += 1
        name = name if self.used[name] == 1 else f"{name}.{self.used[name]}"
        attr = {} if attributes is None else {"attr": AttrValue(s=str(attributes).replace("'", " ").encode())}
        if tensor is not None:
            shape = TensorShapeProto(dim=[Dim(size=size) for size in tensor.shape])
            attr["_output_shapes"] = AttrValue(list=AttrList(shape=[shape]))
            self.names[id(tensor)] = name
            self.kept.append(tensor)
        self.nodes.append(NodeDef(name=name, op=kind, input=inputs, attr=attr))
        return name

    def source(self, tensor: Any) -> str:
        """Return the node of a tensor; parameters and tensors made elsewhere get a new one."""
        if id(tensor) not in self.names:
            name, attribute = self.parameters.get(id(tensor), (f"{self.inside[-1]}/constant", None))
            self.node(name, "prim::Constant" if attribute is None else "prim::GetAttr", [], tensor,
                      {} if attribute is None else {"name": attribute})
        return self.names[id(tensor)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        made = _tensors(result)
        name = (resolve_name(func) or func.__name__).removesuffix(".__get__").rpartition(".")[2].lstrip("_")
        given = _tensors([args, kwargs])
        if made and name not in SILENT and not (made[0] is (given[:1] or [None])[0] and not name.endswith("_")):
            inputs = [self.source(tensor) for tensor in given]
            settings = {key: value for key, value in [*enumerate(args), *kwargs.items()] if not _tensors(value)}
            first = self.node(f"{self.inside[-1]}/{name}", f"aten::{name}", inputs, made[0], settings)
            for tensor in made[1:]:
                self.node(f"{first}_result", "prim::TupleUnpack", [first], tensor)
        return result

    def enter(self, module: Any, args: Any) -> None:
        self.inside.append(self.scopes.get(module, self.inside[-1]))

    def leave(self, module: Any, args: Any, result: Any) -> None:
        self.inside.pop()


def graph(model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> tuple[Message, Message]:
    """Run a model in evaluation mode, and return its graph, and the device recorded with it."""
    args = args if isinstance(args, (tuple, list)) else () if args is None else (args,)
    recording = Recording(model)
    names = [*inspect.signature(model.forward).parameters]
    for i, given in enumerate(args):
        for tensor in _tensors(given):
            recording.node(f"input/{names[i] if i < len(names) else i}", "IO Node", [], tensor, "")
    training = [(module, module.training) for module in model.modules()]
    hooks = [register_module_forward_pre_hook(recording.enter), register_module_forward_hook(recording.leave)]
    try:
        model.eval()
        with torch_function.armed(), no_grad():
            before, torch_function.state.modes = torch_function.state.modes, (*torch_function.state.modes, recording)
            try:
                result = model(*args)
                if use_strict_trace and isinstance(result, dict):
                    raise RuntimeError(DICT)
            finally:
                torch_function.state.modes = before
    except RuntimeError as error:
        print(error)
        print("Error occurs, No graph saved")
        raise
    finally:
        for hook in hooks:
            hook.remove()
        for module, mode in training:
            module.training = mode
    for i, tensor in enumerate(_tensors(result), 1):
        recording.node(f"output/output.{i}", "IO Node", [recording.source(tensor)], tensor, "")
    if verbose:
        print(*(f"{node.name} = {node.op}({', '.join(node.input)})" for node in recording.nodes), sep="\n")
    device = RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")]))
    return GraphDef(node=recording.nodes, versions=VersionDef(producer=22)), device
