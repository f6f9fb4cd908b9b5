"""Record where steps were made: the line of the program and the running module. Costs nothing outside of `watch`."""
from __future__ import annotations

import ast
from collections.abc import MutableMapping
from itertools import count
from threading import get_ident
from typing import Any, NamedTuple

from ..core.mode import mode
from ..core.tape import TensorBase
from ..ops.base import Op
from .notes import INSIDE, NAMES, NOTES, OTHERS, Note, expression, place
from .torch_names import public

serial = count(1)


class Failure(NamedTuple):
    """The operation at which a forward failed."""

    title: str
    operands: tuple[tuple[str, Any], ...]      # names and tensors
    more: bool                                 # True if it has other operands, without a name
    error: str
    source: tuple[str, int, str] | None
    group: tuple[str, ...]
    calls: tuple[int, ...]


class watch:
    """Notes, for each step that is made in the block, the line of the program: `graph` and `explain` show it.

    If the block ends in an error, `seen.failure` tells which operation failed on what, and `seen.graph()` draws how far
    it got. The parts of `module`, if it is given, are called what `module` calls them, wherever the graph is drawn.

    >>> import tensorgrad as torch
    >>> w, x = torch.ones(3, 2, requires_grad=True), torch.ones(4, 2)
    >>> try:
    ...     with torch.viz.watch() as seen:
    ...         x @ w
    ... except RuntimeError:
    ...     print(seen.failure.title, [tuple(t.shape) for _, t in seen.failure.operands])
    matmul [(4, 2), (3, 2)]
    """

    def __init__(self, module: Any = None) -> None:
        if module is not None and not hasattr(module, "named_modules"):
            raise TypeError(f"watch: expected a Module, not {type(module).__name__}")
        self.module, self.number = module, next(serial)
        self.failure: Failure | None = None
        self.nodes: list[Any] = []                 # recorded steps of a forward that failed
        self.running: list[tuple[Any, tuple[str, ...], tuple[int, ...]]] = []
        self.thread = get_ident()
        self.deepest: tuple[Any, tuple[str, ...], tuple[int, ...]] = (None, (), ())      # the last running module
        self.names = {} if module is None else paths(module)

    def __enter__(self) -> watch:
        from ..nn.modules._hooks import register_module_forward_hook, register_module_forward_pre_hook
        mode.watch(self.note)
        if self.module is not None:
            learn(self.module, NAMES)
        self.handles = (register_module_forward_pre_hook(self.called),
                        register_module_forward_hook(self.returned, always_call=True))
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        mode.watch(self.note, False)
        for handle in self.handles:
            handle.remove()
        self.running.clear()
        if isinstance(error, Exception):
            self.nodes = [node for node, note in NOTES.items() if note.watch == self.number]
            self.failure = failure(error, trace, self.deepest)

    def graph(self, **options: Any) -> Any:
        """Return the picture of a forward that failed, and where it broke. RuntimeError if nothing failed."""
        if self.failure is None:
            raise RuntimeError("nothing failed in this block: viz.graph(output) draws what it made")
        from .graph import failed
        return failed(self, **options)

    def note(self, step: Any) -> None:
        frame = place()
        _, group, calls = self.running[-1] if self.running else (None, (), ())
        NOTES[step] = Note(self.number, frame.f_code.co_filename, frame.f_lineno,
                           None if self.module is None else group, calls, frame.f_code, frame.f_lasti)

    def called(self, module: Any, args: Any) -> None:
        """Note that a module begins to run."""
        if get_ident() != self.thread:
            return
        if not self.running and module not in self.names:
            self.names = {**self.names, **paths(module, (type(module).__name__,))}
            learn(module, OTHERS)
        _, outer, calls = self.running[-1] if self.running else (None, (), ())
        path = self.names.get(module, (*outer, type(module).__name__))
        calls = (*calls, *[0] * (len(path) - len(calls)))[:len(path)]
        self.running.append((module, path, (*calls[:-1], next(serial)) if path else calls))
        self.deepest = self.running[-1]

    def returned(self, module: Any, args: Any, result: Any) -> None:
        """Note that a module has ended; if it failed, `deepest` keeps the innermost one."""
        if get_ident() != self.thread:
            return
        while self.running and self.running.pop()[0] is not module:
            pass
        if result is not None:
            self.deepest = self.running[-1] if self.running else (None, (), ())


def learn(module: Any, names: MutableMapping[Any, str]) -> None:
    """Note the names of a module's parameters."""
    names.update({p._node: name for name, p in module.named_parameters() if p._node is not None})


def paths(module: Any, prefix: tuple[str, ...] = ()) -> dict[Any, tuple[str, ...]]:
    """Return {module: its path} for a module and its submodules."""
    return {child: (*prefix, *name.split(".")) if name else prefix for name, child in module.named_modules()}


# ── what failed ───────────────────────────────────────────────────────────────────────────────────────────────────────


def failure(error: Exception, trace: Any, running: tuple[Any, tuple[str, ...], tuple[int, ...]]) -> Failure:
    """Return the operation that raised an error, from the frames of its traceback."""
    places = []
    while trace is not None:
        places.append(trace)
        trace = trace.tb_next
    outside = max((i for i, at in enumerate(places) if not at.tb_frame.f_code.co_filename.startswith(INSIDE)),
                  default=0)
    user = places[outside]
    file, line = user.tb_frame.f_code.co_filename, user.tb_lineno
    text = expression(user.tb_frame.f_code, user.tb_lasti, file, line)
    found = operation([at.tb_frame for at in places[outside + 1:]])
    title, operands, more = (*found, False) if found is not None else written(text, user.tb_frame)
    told = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    return Failure(title, tuple(operands), more, told, (file, line, text), running[1], running[2])


def operation(frames: list[Any]) -> tuple[str, list[tuple[str, Any]]] | None:
    """Return name and operands of the innermost function of tensors in these frames: an op or a public function."""
    for frame in reversed(frames):
        code, values = frame.f_code, frame.f_locals
        where = frame.f_globals.get("__name__", "")
        op = values.get("op")
        if isinstance(op, type) and issubclass(op, Op) and isinstance(values.get("args"), tuple):
            tensors = [a for arg in values["args"] for a in (arg if isinstance(arg, (tuple, list)) else (arg,))]
            return public(op.opname), [("", a) for a in tensors if isinstance(a, TensorBase)]
        names = code.co_varnames[:code.co_argcount]
        callable_by_all = not code.co_name.startswith("_") and "<locals>" not in code.co_qualname
        if callable_by_all and (".api." in where or where.endswith("nn.functional") or ".nn._" in where):
            more = (values.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount]) if code.co_flags & 0x04
                    else ())
            given = [(name, v) for name in names
                     for v in (values[name] if isinstance(values.get(name), (tuple, list)) else [values.get(name)])]
            found = [(name, v) for name, v in (*given, *[("", v) for v in more]) if isinstance(v, TensorBase)]
            if found:
                return code.co_name, found
    return None


def written(text: str, frame: Any) -> tuple[str, list[tuple[str, Any]], bool]:
    """Parse the source line that failed: the call or operator, its named tensors, and whether it has other operands."""
    try:
        tree = ast.parse(text.strip().removesuffix(":"))
    except (SyntaxError, ValueError, RecursionError):
        return "the program", [], False
    outer = next((n for n in ast.walk(tree) if isinstance(n, (ast.BinOp, ast.Call))), None)
    if outer is None:
        return "the program", [], False
    if isinstance(outer, ast.BinOp):
        title, parts = SIGNS.get(type(outer.op), "operator"), [outer.left, outer.right]
    else:
        called: Any = outer.func
        while isinstance(called, ast.Call):
            called = called.func
        title, parts = ast.unparse(called).rpartition(".")[2], [*outer.args, *[k.value for k in outer.keywords]]
        parts = [*([called.value] if isinstance(called, ast.Attribute) else []), *parts]
    parts = [p for part in parts for p in (part.elts if isinstance(part, (ast.List, ast.Tuple)) else [part])]
    found = [(ast.unparse(p), value) for p in parts if isinstance(value := _looked_up(p, frame), TensorBase)]
    return title, found, any(isinstance(p, (ast.BinOp, ast.Call)) for p in parts)


SIGNS: dict[type, str] = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
                          ast.MatMult: "matmul", ast.Pow: "pow"}


def _looked_up(node: Any, frame: Any) -> Any:
    """Look up a name, or names and attributes in a row, without running code other than a module's attribute access."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        owner = _looked_up(node.value, frame)
        return (getattr(owner, node.attr, None) if hasattr(owner, "named_modules")
                else getattr(owner, "__dict__", {}).get(node.attr))
    return None
