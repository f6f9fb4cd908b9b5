"""Generate the source of a module's `forward` from a graph, in PyTorch's form: a statement for each node.

`source.py` writes shorter functions for the models of `symbolic`; here a node keeps its name and its line, so that
programs can read, change and compare the code. https://pytorch.org/docs/stable/fx.html#torch.fx.Graph.python_code
"""
from __future__ import annotations

import enum
import inspect
import os
import pprint
import re
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import api as tg
from ..ops.base import Op
from .names import READY, Namespace, package, packaged, source_name, type_name
from .node import Node
from .targets import IN_PLACE, MAGIC
from .uses import last_uses

COUNTER = re.compile(r"# COUNTER: (\d+)")
FRAME = re.compile(r'^File "(.+)", line (\d+), in (.+)$')
COLORS = {"red": "\033[31m", "blue": "\033[34m", "dim": "\033[2m", "dim_blue": "\033[2m\033[34m",
          "dim_green": "\033[2m\033[32m"}
# classes of typing, which annotations before Python 3.9 use, for those that they mean
GENERICS = {list: typing.List, dict: typing.Dict, set: typing.Set, frozenset: typing.FrozenSet,  # noqa: UP006
            tuple: typing.Tuple}                                                                 # noqa: UP006


@dataclass
class PythonCode:
    """A graph as source: `src`, and `globals`, the objects that it names.

    `_lineno_map` maps lines of the function, of which `_prologue_start` is the first, to indices of nodes.
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


@dataclass
class Style:
    """Says what the text shows beyond the code: see `Graph.python_code`."""

    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False
    colored: bool = False
    expanded_def: bool = False
    record_func: bool = False
    additional_meta: Sequence[str] | None = None

    def __post_init__(self) -> None:
        self.include_stride |= os.environ.get("FX_GRAPH_SHOW_STRIDE", "0") == "1"
        self.include_device |= os.environ.get("FX_GRAPH_SHOW_DEVICE", "0") == "1"

    def paint(self, color: str, text: str) -> str:
        return f"{COLORS[color]}{text}\033[0m" if self.colored else text


class CodeGen:
    """Generates the source of a graph; subclasses change the signature, the result, or how inputs are passed.

    https://pytorch.org/docs/stable/fx.html

    >>> from tensorgrad.graph import Graph
    >>> CodeGen().gen_fn_def(["x", "y"], "")
    'def forward(self, x, y):'
    """

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """Return the line that begins the function; `self` is added to its arguments."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        start = f"def {self._func_name}("
        if not expanded_def:
            return f"{start}{', '.join(free_vars)}){maybe_return_annotation}:"
        lines = []
        for argument in free_vars:
            code, mark, comment = argument.partition("#")
            lines.append(f"    {code.rstrip()},  # {comment.lstrip()}\n" if mark else f"    {argument},\n")
        return f"{start}\n{''.join(lines)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, descs: Sequence[str] | None = None,
                        repr_fn: Callable[[Any], str] = repr) -> str:
        """Return the return statement."""
        return f"return {self._result(output_args, descs, repr_fn)}"

    @staticmethod
    def _result(result: Any, descs: Sequence[str] | None, repr_fn: Callable[[Any], str]) -> str:
        """Return the result as source, on a line for each part if they are described."""
        if descs is None or not isinstance(result, (list, tuple)):
            return repr_fn(result)
        left, right = "()" if isinstance(result, tuple) else "[]"
        return left + "\n" + "".join(f"    {repr_fn(part)},  # {desc}\n"
                                     for part, desc in zip(result, descs, strict=False)) + right

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the graph's inputs for arguments of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return the function's result for the graph's."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return further objects that the source names, as (name, object)."""
        return []

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: Namespace, **style: Any) -> PythonCode:
        return ForwardWriter(self, nodes.graph, root_module, namespace, Style(**style)).code()


def called(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a method with those keywords that its signature has: older subclasses have fewer."""
    known = inspect.signature(method).parameters
    return method(*args, **{name: value for name, value in kwargs.items() if name in known})


class ForwardWriter:
    """Writes a graph as the source of a method; `root` is the source that names the module."""

    def __init__(self, codegen: CodeGen, graph: Any, root: str, names: Namespace, style: Style) -> None:
        self.codegen, self.graph, self.root, self.names, self.style = codegen, graph, root, names, style
        self.arguments: list[str] = []
        self.body: list[str] = []
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.returns = ""
        self.summary: str | None = None             # the last note of a stack trace
        for name, (_, thing) in READY.items():
            self.named(name, thing)
        self.globals["torch"] = package()

    def code(self) -> PythonCode:
        """Return the source and what it names."""
        ends = last_uses(self.graph)
        if self.style.record_func:
            self.body.append("_rf = torch.profiler.record_function('## ENTER_GRAPH_PLACEHOLDER_KEY ##'); "
                             "_rf.__enter__()\n")
        for index, node in enumerate(self.graph.nodes):
            if self.style.verbose and node.op not in ("placeholder", "output"):
                self.note_source(node)
            self.body.append(f"# COUNTER: {index}\n")
            self.recorded(node, index, ends[node])
        if self.style.record_func:
            self.body.append("_rf.__exit__(None, None, None)\n")
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped)
        body = self.body or ["pass\n"]
        if self.codegen._body_transformer:
            body = self.codegen._body_transformer(body)
        for name, thing in self.codegen.additional_globals():
            self.named(name, thing)
        prologue = called(self.codegen.gen_fn_def, self.arguments, self.returns, expanded_def=self.style.expanded_def)
        lines, numbers = numbered("".join(body), prologue.count("\n") + 1)
        text = "\n".join(f"    {line}" for line in "\n".join(lines).lstrip("\n").split("\n"))
        return PythonCode(f"\n{wraps}\n\n{prologue}\n{text}", self.globals, numbers, wraps.count("\n") + 4)

    def recorded(self, node: Node, index: int, ended: list[Node]) -> None:
        """Write a node's statement, inside of a profiler's record if wanted, and free what ends with it."""
        record = self.style.record_func and node.op in ("call_function", "call_method", "call_module")
        if record:
            self.body.append(f"_rf_{node.name} = torch.profiler.record_function('## {index} ##'); "
                             f"_rf_{node.name}.__enter__()\n")
        if node.op == "placeholder":
            self.placeholder(node)
        else:
            self.body.append(self.statement(node))
            freed = "" if node.op == "output" or not ended else " = ".join([*map(repr, ended), "None"])
            self.body.append(f";  {self.style.paint('dim', freed)}\n" if freed else "\n")
        if record:
            self.body.append(f"_rf_{node.name}.__exit__(None, None, None)\n")

    # ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def named(self, wanted: str, thing: Any) -> str:
        """Return the name of an object of the program in the source; those of the package have their own."""
        if thing is not tg.device and packaged(thing):
            return source_name(thing)
        name = self.names.create_name(wanted, thing)
        if name in self.globals and self.globals[name] != thing:
            raise AssertionError(f"Global name {name} already assigned to different object")
        self.globals.setdefault(name, thing)
        return name

    def type(self, kind: Any) -> str:
        """Return an annotation as source."""
        if kind == ():
            return "()"
        name = type_name(kind)
        if isinstance(kind, types.UnionType) and "|" in name:
            return "|".join(map(self.type, typing.get_args(kind)))
        origin = getattr(kind, "__origin__", None)
        if not origin:
            return self.named(name, kind)
        if isinstance(kind, typing._GenericAlias):          # type: ignore[attr-defined]
            origin = GENERICS.get(origin, origin)
        start = self.named(type_name(origin), origin)
        parts = kind.dims if hasattr(kind, "dims") else typing.get_args(kind)
        return f"{start}[{','.join(map(self.type, parts))}]" if parts else start

    def value(self, thing: Any) -> str:
        """Return an argument as source."""
        if isinstance(thing, Node):
            return repr(thing)
        if isinstance(thing, tuple) and hasattr(thing, "_fields"):
            return f"{self.named(source_name(type(thing)), type(thing))}{tuple(thing)!r}"
        if isinstance(thing, enum.Enum):
            return f"{self.named(type(thing).__name__, type(thing))}.{thing.name}"
        if isinstance(thing, tg.Tensor):
            return f"torch.Tensor(size={list(thing.size())}, dtype={str(thing.dtype).split('.')[-1]})"
        if isinstance(thing, tuple):
            return f"({', '.join(map(self.value, thing))}{',' if len(thing) == 1 else ''})"
        if isinstance(thing, list):
            return f"[{', '.join(map(self.value, thing))}]"
        if isinstance(thing, slice):
            return f"slice({', '.join(map(self.value, (thing.start, thing.stop, thing.step)))})"
        if isinstance(thing, dict):
            return f"{{{', '.join(f'{key!r}: {self.value(part)}' for key, part in thing.items())}}}"
        if isinstance(thing, type) and issubclass(thing, Op):
            return self.named(source_name(thing), thing)
        return self.style.paint("blue", repr(thing))

    def given(self, args: Any, kwargs: Any) -> str:
        """Return the arguments of a call as source."""
        return ", ".join([*map(self.value, args), *(f"{name} = {self.value(value)}" for name, value in kwargs.items())])

    # ── statements ────────────────────────────────────────────────────────────────────────────────────────────────────

    def placeholder(self, node: Node) -> None:
        """Make an input an argument; a statement renames it if its name is not the node's."""
        default = f" = {self.value(node.args[0])}" if node.args else ""
        desc = node.meta.get("desc") if self.style.expanded_def else None
        self.arguments.append(f"{node.target}{self.annotation(node)}{default}{'' if desc is None else f'  # {desc}'}")
        self.note_meta(node)
        name = node.target.replace("*", "")
        if name != repr(node):
            self.body.append(f"{node!r} = {name}\n")

    def statement(self, node: Node) -> str:
        """Return a node's statement."""
        result, args = f"{node!r}{self.annotation(node)}", node.args
        self.note_meta(node)
        if node.op == "get_attr":
            return f"{result} = {attribute(self.root, node.target)}"
        if node.op == "call_module":
            return f"{result} = {attribute(self.root, node.target)}({self.given(args, node.kwargs)})"
        if node.op == "call_method":
            return f"{result} = {attribute(self.value(args[0]), node.target)}({self.given(args[1:], node.kwargs)})"
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type(node.type)}"
            return str(called(self.codegen.generate_output, args[0], repr_fn=self.value,
                              descs=node.meta.get("desc") if self.style.expanded_def else None))
        target = node.target
        if getattr(target, "__module__", "") == "_operator":
            if target.__name__ in MAGIC:
                return f"{result} = {MAGIC[target.__name__].format(*map(self.value, args))}"
            if target.__name__ in IN_PLACE:
                written = IN_PLACE[target.__name__].format(*map(self.value, args))
                return f"{written};  {result} = {self.value(args[0])}"
        name = self.named(source_name(target), target)
        if name == "getattr" and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return f"{result} = {attribute(self.value(args[0]), args[1])}"
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(name)
        return f"{result} = {name}({self.given(args, node.kwargs)})"

    def annotation(self, node: Node) -> str:
        """Return the annotation of a node's value: its type, or its shape if that is known and wanted."""
        plain = "" if node.type is None else f" : {self.type(node.type)}"
        if not self.style.verbose:
            return plain
        value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
        paint = self.style.paint
        if isinstance(value, tg.Tensor):
            stride = str(list(value.stride())) if self.style.include_stride else ""
            device = str(value.device) if self.style.include_device else ""
            core = (paint("red", short(value.dtype)) + paint("blue", listed(value.shape)) + paint("dim_blue", stride)
                    + paint("dim_green", device))
            return f': "{core}"' if type(value) is tg.Tensor else f': "{type(value).__name__}({core})"'
        if isinstance(value, tuple) and hasattr(value, "shape") and hasattr(value, "dtype"):
            return f': "{short(value.dtype)}{listed(value.shape)}"'
        return plain

    def note_meta(self, node: Node) -> None:
        """Write a node's `meta` as a comment, if the environment asks for it."""
        if node.meta and os.environ.get("FX_GRAPH_SHOW_META", "0") == "1":
            self.body += ['"""\n', *(f"{key}: {pprint.pformat(str(value), width=80, compact=True)}\n"
                                     for key, value in node.meta.items()), '"""\n']

    def note_source(self, node: Node) -> None:
        """Write the line of the program that a node comes from, if it is another one than before."""
        shown = [f"{key}: {node.meta[key]}" for key in self.style.additional_meta or () if key in node.meta]
        cut = {key: f"{value!s:.40}..." if len(str(value)) > 40 else value
               for key, value in (node.meta.get("custom") or {}).items()}
        recompute, region = node.meta.get("recompute"), node.meta.get("ac_graph_id")
        text = "".join([f"# {', '.join(shown)} " if shown else "", "#", f" Annotation: {cut}" if cut else "",
                        "" if region is None else f" ac_graph_id: {region}",
                        "" if recompute is None else f"{' -' if region is not None else ' recompute:'} "
                                                     f"{recompute.name}",
                        f" {place(node.stack_trace) or 'No stacktrace found for following nodes'}"])
        summary = f"\n{self.style.paint('dim', text)}\n"
        if summary != self.summary:
            self.summary = summary
            self.body.append(summary)


def place(stack_trace: str | None) -> str | None:
    """Return the innermost line of a stack trace, in one line of text.

    >>> place('  File "model.py", line 3, in forward' + chr(10) + '    return x + 1')
    'File: model.py:3 in forward, code: return x + 1'
    """
    lines = (stack_trace or "").strip().split("\n")
    for line, code in zip(reversed(lines[:-1]), reversed(lines[1:]), strict=True):
        if found := FRAME.match(line.strip()):
            return f"File: {found[1]}:{found[2]} in {found[3]}, code: {code.strip()}"
    return None


def attribute(base: str, path: str) -> str:
    """Return the source of an attribute under a dotted path.

    >>> attribute("self", "layers.0.weight")
    'getattr(self.layers, "0").weight'
    """
    for name in path.split("."):
        base = f"{base}.{name}" if name.isidentifier() else f'getattr({base}, "{name}")'
    return base


def numbered(text: str, first: int) -> tuple[list[str], dict[int, int | None]]:
    """Return a body's lines without the marks of nodes, and {line: index of its node}."""
    lines: list[str] = []
    numbers: dict[int, int | None] = {}
    current = None
    for line in text.split("\n"):
        if mark := COUNTER.search(line):
            current = int(mark[1])
        else:
            numbers[len(lines) + first] = current
            lines.append(line)
    return lines, numbers


def listed(shape: Any) -> str:
    return f"[{', '.join(map(str, shape))}]"


def short(dtype: Any) -> str:
    """Return PyTorch's abbreviation of a dtype: f32, bf16, i64, b8."""
    name = str(dtype).split(".")[-1]
    if name == "bool":
        return "b8"
    return re.sub(r"^(bf|f|u?i|c)[a-z]*?(?=\d|$)", lambda found: found[1].replace("ui", "u"), name).replace("_", "")


__all__ = ["CodeGen", "ForwardWriter", "PythonCode", "Style"]
