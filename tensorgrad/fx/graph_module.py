"""Modules whose `forward` is generated from a graph. https://pytorch.org/docs/stable/fx.html#torch.fx.GraphModule"""
from __future__ import annotations

import builtins
import copy
import linecache
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from ..api import Tensor
from ..graph.codegen import PythonCode
from ..graph.graph import Graph
from ..graph.names import PACKAGE, READY, package, packaged, pytorch_name
from ..graph.source import compiled
from ..nn import BatchNorm1d, BatchNorm2d, BatchNorm3d, Conv1d, Conv2d, Conv3d, Linear, Module, Parameter
from .graph import _BoxedCodeGen, _PyTreeCodeGen

__all__ = ["GraphModule", "reduce_graph_module"]
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
GENERATED = "eval_with_key"                 # in the names of generated files
keys = count()
TRACER: list[Any] = []                      # the class that traces pickled code: its module fills it
HOOKS = "_replace_hooks _create_node_hooks _erase_node_hooks _deepcopy_hooks".split()
KEPT_HOOKS = ["_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", *HOOKS]


# ── generated code ────────────────────────────────────────────────────────────────────────────────────────────────────


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    """Import for generated code, in which `torch` always means this package."""
    top, _, rest = name.partition(".")
    if top == "torch" and level == 0:
        name = f"{PACKAGE}.{rest}" if rest else PACKAGE
        module = import_module(name)
        for each in fromlist or ():
            if not hasattr(module, each):
                import_module(f"{name}.{each}")
        return module if fromlist else package()
    return builtins.__import__(name, globals, locals, fromlist, level)


BUILTINS = {**vars(builtins), "__import__": _import}


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Any:
    """Run generated source, and return its function `forward`."""
    return _method_from_src("forward", src, globals, co_fields)


def _method_from_src(method_name: str, src: str, globals: dict[str, Any],
                     co_fields: dict[str, Any] | None = None) -> Any:
    """Run generated source, and return its function of this name."""
    place = " from {co_filename}:{co_firstlineno} in {co_name}".format(**co_fields) if co_fields else ""
    return compiled(src, {"__builtins__": BUILTINS, **globals}, method_name, f"<{GENERATED}>.{next(keys)}{place}")


def _import_line(name: str, thing: Any, importer: Any = None) -> str:
    """Return the statement that imports what generated code calls `name`; `importer` says where it is found."""
    if name in READY:
        return READY[name][0]
    module, own = thing.__module__, getattr(thing, "__qualname__", None) or thing.__name__
    if module.partition(".")[0] == PACKAGE and packaged(thing):
        module, own = pytorch_name(thing)
    elif importer is not None:
        module, own = importer.get_name(thing)
    if "." in own:                                  # a class in a class
        own, _, rest = own.partition(".")
        return f"from {module} import {own}\n{name} = {own}.{rest}"
    return f"from {module} import {own} as {name}"


def _format_import_block(globals: dict[str, Any], importer: Any = None) -> str:
    return "\n".join(sorted({_import_line(name, thing, importer) for name, thing in globals.items()}))


# ── copies of attributes ──────────────────────────────────────────────────────────────────────────────────────────────


def _set(module: Module, name: str, value: Any) -> None:
    """Set an attribute; a tensor that is no parameter becomes a buffer."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Copy the attribute at a dotted path to another module; modules in the path are made."""
    *path, name = target.split(".")
    for step in path:
        source, found = getattr(from_module, step), getattr(to_module, step, None)
        if source is found:                         # it was copied whole
            return
        if found is None:
            setattr(to_module, step, found := Module())
        from_module, to_module = source, found
    _set(to_module, name, getattr(from_module, name))


def _assign_attr(from_obj: Any, to_module: Any, target: str) -> None:
    """Set the attribute at a dotted path; modules in the path are made."""
    *path, name = target.split(".")
    for step in path:
        found = getattr(to_module, step, None)
        if found is None:
            setattr(to_module, step, found := Module())
        to_module = found
    _set(to_module, name, from_obj)


def _get_attr(model: Any, attr_name: str) -> Any:
    """Return the attribute at a dotted path. AssertionError if the path does not exist."""
    *path, name = attr_name.split(".")
    for step in path:
        model = getattr(model, step, None)
        if model is None:
            raise AssertionError(f"Attribute '{step}' not found in model")
    return getattr(model, name)


def _del_attr(model: Any, attr_name: str) -> None:
    """Delete the attribute at a dotted path."""
    path, _, name = attr_name.rpartition(".")
    delattr(_get_attr(model, path) if path else model, name)


def _has_attr(model: Any, attr_name: str) -> bool:
    """Return True if there is an attribute at a dotted path."""
    for step in attr_name.split("."):
        if not hasattr(model, step):
            return False
        model = getattr(model, step)
    return True


# ── pickles ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class _CodeOnlyModule(Module):
    """The attributes of a pickled module, whose generated code is traced to have its graph again."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = {"_hooked": False, **body}


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Any:
    """Return the module of pickled attributes: its graph is traced from the code among them."""
    source = body.get("_code") or body["code"]
    return _deserialize_graph_module(_forward_from_src(import_block + source, {}), body)


def reduce_package_graph_module(importer: Any, body: dict[str, Any], generated_module_name: str) -> Any:
    """Return the module of attributes in a package, which has its code as a module of this name."""
    return _deserialize_graph_module(importer.import_module(generated_module_name).forward, body)


def _deserialize_graph_module(forward: Callable[..., Any], body: dict[str, Any],
                              graph_module_cls: Any = None) -> Any:
    tracer_cls: Any = body.get("_tracer_cls") or TRACER[0]

    class KeepModules(tracer_cls):              # type: ignore[misc]
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True

    class Traced(_CodeOnlyModule):
        pass
    Traced.forward = forward                    # type: ignore[method-assign]
    root = Traced(body)
    graph = KeepModules().trace(root, **body.get("_tracer_extras", {}))
    stack_traces = body.pop("_graphmodule_graph_node_meta_stack_trace", None) or {}
    for node in graph.nodes:
        if stack_traces.get(node.name) is not None:
            node.meta["stack_trace"] = stack_traces[node.name]
    graph._tracer_cls = tracer_cls
    module = (graph_module_cls or GraphModule)(root, graph, body.get("_graphmodule_cls_name", "GraphModule"))
    for name, value in body.items():
        if not hasattr(module, name):
            setattr(module, name, value)
    return module


# ── the module ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _WrappedCall:
    """Calls a module; an error in its generated code shows the line."""

    def __init__(self, cls: Any, cls_call: Any) -> None:
        self.cls, self.cls_call = cls, cls_call

    @staticmethod
    def _generate_error_message(frame_summary: Any) -> str:
        number, lines = frame_summary.lineno, linecache.getlines(frame_summary.filename)
        return "\n".join([traceback.format_exc(),
                          f"Call using an FX-traced Module, line {number} of the traced Module's generated forward "
                          f"function:",
                          "".join(lines[number - 2:number]),
                          "~" * len(frame_summary.line) + "~~~ <--- HERE",
                          "\n".join(lines[number:number + 2])])

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            if GENERATED not in last.filename:
                raise
            print(self._generate_error_message(last), file=sys.stderr)
            raise error.with_traceback(None)    # noqa: B904


class GraphModule(Module):
    """A module whose `forward` is generated from a graph.

    `root` is the module that the nodes of the graph name layers and tensors of, or a dictionary of these: they become
    this module's. After a change of its graph, `recompile` generates `code` anew. RuntimeError for a name that the
    dictionary lacks. https://pytorch.org/docs/stable/fx.html#torch.fx.GraphModule

    >>> import tensorgrad as torch
    >>> module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    >>> for node in module.graph.find_nodes(op="call_module"):
    ...     with module.graph.inserting_after(node):
    ...         negated = module.graph.call_function(torch.neg, (node,))
    ...     module.graph.output_node().args = (negated,)
    >>> _ = module.recompile()
    >>> module(torch.tensor([-1., 2.]))
    tensor([-0., -2.])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # each object has a class of its own, for its forward
        base = next(kind for kind in cls.__mro__ if kind.__qualname__.rpartition(".")[2] != "GraphModuleImpl")

        class GraphModuleImpl(base):            # type: ignore[misc, valid-type]
            pass
        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        named = [node for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = getattr(root, "training", self.training)
            if isinstance(root, _CodeOnlyModule):
                for table in (root.named_children(), root.named_buffers(), root.named_parameters()):
                    for name, _ in table:
                        _copy_attr(root, self, name)
            for node in named:
                _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            for node in named:
                if node.target not in root:
                    raise RuntimeError(f"Node {node} referenced target {node.target} but that target was not provided "
                                       f"in ``root``!")
            for target in sorted((node.target for node in named), key=lambda path: path.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        tracer = graph._tracer_cls              # local classes cannot be pickled
        self._tracer_cls = tracer if tracer and "<locals>" not in tracer.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        for name in HOOKS:
            setattr(self, name, [])
        self.shape_env: Any = None

    @property
    def graph(self) -> Graph:
        """The graph; assigning one generates the code anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    @property
    def code(self) -> str:
        """The source of `forward`."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Generate `forward` from the graph, and return its source."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        python_code = self._graph.python_code(root_module="self")
        self._code, self._lineno_map = python_code.src, python_code._lineno_map
        self._prologue_start = python_code._prologue_start
        cls: Any = type(self)
        cls.forward = _forward_from_src(self._code, python_code.globals, self._graph._co_fields)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, cls.__call__ if "__call__" in vars(cls) else None)
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)
        cls.__call__ = call_wrapped
        return python_code

    # ── its modules ───────────────────────────────────────────────────────────────────────────────────────────────────

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a module under a dotted path and return True; return False if another attribute is in the way."""
        *path, name = target.split(".")
        holder: Any = self
        for step in path:
            found = getattr(holder, step, None)
            if found is None:
                setattr(holder, step, found := Module())
            if not isinstance(found, Module):
                return False
            holder = found
        holder.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete the module under a dotted path, and return True; False if there is none."""
        path, _, name = target.rpartition(".")
        holder: Any = self
        for step in path.split(".") if path else ():
            holder = getattr(holder, step, None)
            if not isinstance(holder, Module):
                return False
        if not isinstance(getattr(holder, name, None), Module):
            return False
        delattr(holder, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the modules that no node names, directly or through what is in them."""
        used = {""}
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                path = node.target.split(".")
                used.update(".".join(path[:length]) for length in range(1, len(path) + 1))
                if node.op == "call_module":
                    try:
                        inner = self.get_submodule(node.target).named_modules()
                    except AttributeError:
                        continue
                    used.update(f"{node.target}.{name}" for name, _ in inner if name)
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # ── copies and files ──────────────────────────────────────────────────────────────────────────────────────────────

    def __reduce__(self) -> Any:
        python_code = self.recompile()
        return reduce_graph_module, ({name: value for name, value in self.__dict__.items() if name != "_graph"},
                                     _format_import_block(python_code.globals))

    def __reduce_package__(self, exporter: Any) -> Any:
        python_code, name = self.recompile(), f"fx-generated._{exporter.get_unique_id()}"
        imports = _format_import_block(python_code.globals, exporter.importer)
        exporter.save_source_string(name, f"{imports}\n{self.code}")
        body = {name: value for name, value in self.__dict__.items() if name != "_graph"}
        return reduce_package_graph_module, ({**body, "_graphmodule_cls_name": type(self).__name__}, name)

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        new = memo[id(self)] = type(self).__new__(type(self))
        body = copy.deepcopy(self.__dict__, memo)
        self._deepcopy_init()(new, _CodeOnlyModule(body), body["_graph"])
        for name in KEPT_HOOKS:
            if name in self.__dict__:
                setattr(new, name, copy.deepcopy(self.__dict__[name], memo))
        new.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in new.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(new, name, value)
        for hook in getattr(self, "_deepcopy_hooks", ()):
            hook(new)
        return new

    def __copy__(self) -> Any:
        new = GraphModule(self, self.graph)
        new.meta = getattr(self, "meta", {})
        return new

    def _replicate_for_data_parallel(self) -> Any:
        new = self.__copy__()
        object.__setattr__(new, "_is_replica", True)
        return new

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write the module as a package: `from folder import FxModule`.

        Layers that are not written by their constructors are pickled, which a UserWarning tells.
        """
        from ..serialization import save
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        save(self.state_dict(), folder / "state_dict.pt")
        lines, pickled = [], []
        for name, module in self.named_children():
            if type(module) in (Linear, Conv1d, Conv2d, Conv3d, BatchNorm1d, BatchNorm2d, BatchNorm3d):
                lines.append(f"setattr(self, '{name}', {module!r})")
                continue
            pickled.append(name)
            save(module, folder / f"{name}.pt")
            told = repr(module).replace("\r", " ").replace("\n", " ")
            file = folder / f"{name}.pt"
            lines.append(f"setattr(self, '{name}', torch.load(r'{file}', weights_only=False)) # {told}")
        lines += [f"self.register_buffer('{name}', torch.empty({list(value.shape)}, dtype={value.dtype}))"
                  for name, value in self._buffers.items() if value is not None]
        lines += [f"setattr(self, '{name}', torch.nn.Parameter(torch.empty({list(value.shape)}, dtype={value.dtype})))"
                  for name, value in self._parameters.items() if value is not None]
        lines.append(f"self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
        imports = "\n".join(line for line, _ in READY.values())
        body = "\n".join(f"        {line}" for line in lines)
        (folder / "module.py").write_text(
            f"\nimport torch\n{imports}\n\nfrom torch.nn import *\nclass {module_name}(torch.nn.Module):\n"
            f"    def __init__(self):\n        super().__init__()\n{body}\n{_indented(self.code)}\n", encoding="utf-8")
        (folder / "__init__.py").write_text("from .module import *", encoding="utf-8")
        if pickled:
            warnings.warn(f"Was not able to save the following children modules as reprs -saved as pickled files "
                          f"instead: {pickled}", stacklevel=2)

    # ── texts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def print_readable(self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
                       colored: bool = False, *, fast_sympy_print: bool = False, expanded_def: bool = False,
                       additional_meta: list[str] | None = None) -> str:
        """Return, and print unless `print_output` is false, the code of the module and of those in it as classes."""
        text = _print_readable(self, self._get_name(), include_stride=include_stride, include_device=include_device,
                               colored=colored, expanded_def=expanded_def, additional_meta=additional_meta)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return "\n".join([super().__str__(), self._code,
                          "# To see more debug info, please use `graph_module.print_readable()`"])

    # ── hooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        """Call a function for each user of a node that is replaced or renamed in the block."""
        if not callable(f):
            raise AssertionError("Replace hook must be a callable.")
        self._replace_hooks.append(f)
        try:
            yield
        finally:
            self._replace_hooks.remove(f)


def _attach_hook_methods(name: str, table: str) -> None:
    """Give GraphModule the methods that add a hook to a table, and remove it."""
    def register(self: Any, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise AssertionError(f"{name.replace('replace_node', 'create_node')} hook must be a callable.")
        getattr(self, table).append(f)

    def unregister(self: Any, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise AssertionError(f"{name.replace('replace_node', 'create_node')} hook must be a callable.")
        getattr(self, table).remove(f)
    for method, verb in ((register, "register"), (unregister, "unregister")):
        method.__name__ = f"_{verb}_{name}_hook"
        method.__qualname__ = f"GraphModule.{method.__name__}"
        setattr(GraphModule, method.__name__, method)


for _name, _table in zip(("replace_node", "create_node", "erase_node", "deepcopy"), HOOKS, strict=True):
    _attach_hook_methods(_name, _table)


def _indented(text: str) -> str:
    """Indent all lines but the first and empty ones, which become empty."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(f"    {line}" if line.strip() else "" for line in rest)])


def _print_readable(module: Any, module_name: str, **style: Any) -> str:
    """Return a module's code as a class, with those of the modules in it."""
    code = module.graph.python_code(root_module="self", verbose=True, **style).src.lstrip("\n")
    inner = [""] + [_print_readable(child, name, **{**style, "expanded_def": False})
                    for name, child in module.named_children() if isinstance(child, GraphModule)]
    return (_indented(f"class {module_name}(torch.nn.Module):\n{code}") + _indented("\n".join(inner)))
