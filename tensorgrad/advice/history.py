"""Where the history of a tensor ends: the assignments that led to it are read, from the last one on, until one cuts the
graph.
"""
from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ..core.mode import mode
from ..core.tape import TensorBase
from .places import INSIDE
from .source import blocks, expression, is_library, placed, quoted, shown, tree, value_of, variables

CUTS = {      # names of methods, attributes and functions, and why the graph ends there
    "detach": "detach() cuts the graph there", "detach_": "detach_() cuts the graph there",
    "data": "`.data` has no history",
    "item": "item() makes a Python number of it, which has no history",
    "tolist": "tolist() makes Python numbers, which have no history",
    "numpy": "numpy() leaves the graph", "tensor": "torch.tensor makes a new tensor, without the history of what it is "
                                                   "given",
    "as_tensor": "numbers and arrays have no history", "from_numpy": "arrays have no history",
    "argmax": "argmax has no gradient", "argmin": "argmin has no gradient",
    "long": "integers have no gradient", "int": "integers have no gradient", "bool": "truth values have no gradient"}
# of these: cuts, whatever they are the methods of
SURE = {"detach", "detach_", "item", "tolist", "numpy", "from_numpy", "argmax", "argmin"}
OFF = ("no_grad", "inference_mode")
DEEPEST = 6             # assignments


def origins(tensor: Any, frame: Any) -> tuple[list[str], bool]:
    """Lines on how a tensor without a history came about, and whether part of the graph was recorded before it was cut
    off.
    """
    file = frame.f_code.co_filename
    module, written, lines = tree(file), expression(frame), []
    scope = _scope(module, frame.f_code) if module is not None else None
    if not mode.grad:
        lines.append("  grad mode is off here: this runs under no_grad(), or after set_grad_enabled(False)")
    text = _named(tensor, written, frame)
    # (x * 2).sum().backward()
    if not text and isinstance(written, ast.Call) and isinstance(written.func, ast.Attribute):
        return _ended(lines, written.func.value, "  ", scope, (frame.f_lineno, 0), frame)
    return _followed(lines, text, scope, (frame.f_lineno, _column(frame)), frame)


def _followed(lines: list[str], text: str, scope: Any, at: tuple[int, int], frame: Any,
              depth: int = 0) -> tuple[list[str], bool]:
    """The lines, and those on the last assignment to a name before a place."""
    found = _assignment(scope, text, at) if scope is not None and text and depth < DEEPEST else None
    if found is None:
        return lines, False
    statement, above = found
    told = f"  {text} was made in {placed(frame.f_code.co_filename, statement.lineno, statement.col_offset)}"
    off = next((block for block in above if _switches_off(block)), None)
    if off is not None:
        return [*lines, f"{told}, under `{_head(off)}` (line {off.lineno}), where nothing is recorded"], False
    return _ended(lines, statement.value, told, scope, (statement.lineno, statement.col_offset), frame, depth)


def _ended(lines: list[str], value: ast.expr, told: str, scope: Any, at: tuple[int, int], frame: Any,
           depth: int = 0) -> tuple[list[str], bool]:
    """The lines, and why the graph ends in an expression, or before it."""
    why, source = _cut(value, frame)
    if why:
        return ([*lines, f"{told}: {why}" if told.strip() else f"  {why}"],
                source is not None and source._node is not None)
    lines = [*lines, told] if told.strip() else lines
    if inside := _in_functions(value, frame):
        return [*lines, inside], False
    feeding = _feeding(value, frame)
    if any(tensor._node is not None for tensor in feeding.values()):
        # a name that has another value now, or a function that cuts
        return lines, False
    text = next((name for name in feeding if scope is not None and _assignment(scope, name, at) is not None), "")
    if text and _grows(scope, text, at, frame):
        return _followed(lines, text, scope, at, frame, depth + 1)
    return [*lines, *_leaves(value, feeding, frame)], False


def _grows(scope: Any, text: str, at: tuple[int, int], frame: Any) -> bool:
    """Tell whether what a name was assigned came from other tensors, was cut off, or was not recorded: else it was only
    made there.
    """
    found = _assignment(scope, text, at)
    return found is not None and (any(map(_switches_off, found[1]))
                                  or bool(_feeding(found[0].value, frame) or _cut(found[0].value, frame)[0]))


def _column(frame: Any) -> int:
    """The column of what a frame is doing."""
    return next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (0, 0, 0, 0))[2] or 0


def _named(tensor: Any, written: Any, frame: Any) -> str:
    """The name of a tensor in the program's expression, or in its variables."""
    for part in ast.walk(written) if written is not None else ():
        if isinstance(part, (ast.Name, ast.Attribute)) and value_of(part, frame) is tensor:
            return ast.unparse(part)
    return next((name for values in (variables(frame), frame.f_globals)
                 for name, value in values.items() if value is tensor), "")


def _scope(module: ast.Module, code: Any) -> Any:
    """The function, or the module, that a code object is the body of."""
    if code.co_name == "<module>":
        return module
    functions = [n for n in ast.walk(module) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
                 and n.name == code.co_name]
    return next((n for n in functions if code.co_firstlineno in (n.lineno, *[d.lineno for d in n.decorator_list])),
                None)


def _assignment(scope: Any, name: str, at: tuple[int, int]) -> tuple[Any, list[Any]] | None:
    """The last assignment to a name before a line and column, and the blocks that it is in."""
    found = None
    for statement, above in _statements(scope, [scope]):
        targets = statement.targets if isinstance(statement, ast.Assign) else \
            [statement.target] if isinstance(statement, (ast.AnnAssign, ast.AugAssign)) else []
        names = [ast.unparse(t) for target in targets
                 for t in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])]
        if (name in names and getattr(statement, "value", None) is not None
                and (statement.lineno, statement.col_offset) < at):
            found = statement, above
    return found


def _statements(node: Any, above: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """The statements of a scope, in their order, each with the blocks that it is in; what functions and classes hold is
    left out.
    """
    for child in blocks(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child, above
            yield from _statements(child, [*above, child])


def _switches_off(block: Any) -> bool:
    """Tell whether a `with` or a decorator turns recording off."""
    heads = ([item.context_expr for item in block.items] if isinstance(block, (ast.With, ast.AsyncWith))
             else getattr(block, "decorator_list", []))
    for head in heads:
        called = head.func if isinstance(head, ast.Call) else head
        name = ast.unparse(called).rpartition(".")[2]
        if (name in OFF or name == "set_grad_enabled" and isinstance(head, ast.Call) and head.args
                and getattr(head.args[0], "value", None) is False):
            return True
    return False


def _head(block: Any) -> str:
    if isinstance(block, (ast.With, ast.AsyncWith)):
        return quoted("with " + ", ".join(map(ast.unparse, block.items)) + ":")
    return quoted(f"@{ast.unparse(block.decorator_list[0])} def {block.name}")


def _cut(value: ast.expr, frame: Any) -> tuple[str, Any]:
    """Why the graph ends in an expression, and the tensor that it ends at; ('', None) if it does not."""
    for part in ast.walk(value):
        named = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
        if not (why := CUTS.get(named)):
            if (isinstance(part, ast.Compare) and not any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn))
                                                          for op in part.ops)):
                return "comparisons have no gradient", next(iter(_feeding(part, frame).values()), None)
            continue
        if (isinstance(part, ast.Name) and isinstance(variables(frame).get(named, frame.f_globals.get(named)),
                                                      TensorBase)):
            continue
        inner = part.value if isinstance(part, ast.Attribute) else value
        source = next((t for t in (*_feeding(inner, frame).values(), *_feeding(value, frame).values())
                       if t._node is not None), None)
        return why, source
    return "", None


def _in_functions(value: ast.expr, frame: Any) -> str:
    """Where a function of the program that an expression calls, or a module's forward, cuts the graph; '' if none
    does.
    """
    for call in ast.walk(value):
        if not isinstance(call, ast.Call) or (called := value_of(call.func, frame)) is None:
            continue
        function = (type(called).forward if "_modules" in getattr(called, "__dict__", {})
                    and not isinstance(called, type) else called)
        code = getattr(inspect.unwrap(function), "__code__", None)
        if code is None or is_library(code.co_filename) or code.co_filename.startswith(INSIDE):
            continue
        name, file = f"in {function.__qualname__}, {shown(code.co_filename, code.co_firstlineno)}", code.co_filename
        scope = _scope(module, code) if (module := tree(file)) is not None else None
        for statement, above in _statements(scope, [scope]) if scope is not None else ():
            if off := next((block for block in above if _switches_off(block)), None):
                return f"  {name}, `{_head(off)}` (line {off.lineno}) switches recording off"
            if isinstance(statement, (ast.Assign, ast.Return)) and statement.value is not None:
                cut = next((part.attr for part in ast.walk(statement.value)
                            if isinstance(part, ast.Attribute) and part.attr in SURE), "")
                if cut:
                    return f"  {name}: {placed(file, statement.lineno, statement.col_offset)}: {CUTS[cut]}"
    return ""


def _feeding(value: ast.expr, frame: Any) -> dict[str, Any]:
    """{name: tensor} of the tensors that an expression names."""
    found = {ast.unparse(part): value_of(part, frame) for part in ast.walk(value)
             if isinstance(part, (ast.Name, ast.Attribute))}
    return {name: tensor for name, tensor in found.items() if isinstance(tensor, TensorBase)}


def _leaves(value: ast.AST, feeding: dict[str, Any], frame: Any) -> list[str]:
    """Return lines about the tensors and modules in an expression that could require grad, but do not."""
    lines = []
    for part in ast.walk(value):
        module = value_of(part, frame) if isinstance(part, (ast.Name, ast.Attribute)) else None
        if module is not None and not isinstance(module, type) and "_modules" in getattr(module, "__dict__", {}):
            parameters = list(module.parameters())
            if parameters and not any(p.requires_grad for p in parameters):
                lines.append(f"  no parameter of {ast.unparse(part)} requires grad: requires_grad_() switches it on")
            elif parameters:
                lines.append(f"  parameters of {ast.unparse(part)} require grad: its result has lost its history on "
                             f"the way")
    if not feeding and not lines and isinstance(value, ast.Call):
        lines.append("  requires_grad=True there, or requires_grad_() after it, gives it a gradient")
    if feeding and not lines:
        names = " and ".join(list(feeding)[:4])
        lines.append(f"  {names} {'does' if len(feeding) == 1 else 'do'} not require grad: make what is to be learned "
                     f"with requires_grad=True")
    return lines

