"""The program's source, as far as it can be read: the statement at a line, the expression that is being computed, the
values of the names in it.
"""
from __future__ import annotations

import ast
import linecache
import os
import shlex
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from os.path import basename, dirname, isfile, realpath
from typing import Any

from ..core.tape import TensorBase
from .places import INSIDE, offers

HERE = dirname(__file__) + os.sep
LIBRARIES = (dirname(os.__file__) + os.sep, f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
CO_OPTIMIZED = 1        # a code object's flag: its locals are not in a dict
LONGEST = 90            # columns of a statement that is quoted
LARGEST = 20_000        # lines of a file that is parsed


def running(outwards: Any = None) -> list[Any]:
    """The frames that are running, from the innermost, or from a frame on; none of this package's own, which would then
    hold themselves.
    """
    frame, frames = outwards or sys._getframe(1), []
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    while frame is not None and len(frames) < 200:
        frames.append(frame)
        frame = frame.f_back
    return frames


def is_inside(frame: Any) -> bool:
    return frame.f_code.co_filename.startswith(INSIDE)  # type: ignore[no-any-return]


def is_library(file: str) -> bool:
    """Tell whether a file is Python's or an installed package's."""
    return file.startswith(LIBRARIES[0]) or any(part in file for part in LIBRARIES[1:])


def program(frames: list[Any]) -> Any:
    """The innermost frame of the program's own: of other packages only if there is none."""
    outside = [frame for frame in frames if not is_inside(frame)]
    return next((frame for frame in outside if not is_library(frame.f_code.co_filename)),
                outside[0] if outside else None)


def line_of(code: Any, instruction: int) -> int:
    """The line of an instruction."""
    first, *_ = next(islice(code.co_positions(), instruction // 2, None), (None,))
    return first or code.co_firstlineno  # type: ignore[no-any-return]


def shown(file: str, line: int) -> str:
    """A place as a person says it: 'train.py, line 12'."""
    if "ipykernel" in file or file.startswith("<ipython-input"):
        return f"cell, line {line}"
    return f"{file if file.startswith('<') else basename(file)}, line {line}"


def place(code: Any, instruction: int) -> str:
    """Where an instruction is, and the statement there: 'train.py, line 12: `loss.backward()`'."""
    first, _, column, _ = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    return placed(code.co_filename, first or code.co_firstlineno, column)


def placed(file: str, line: int, column: int | None = None) -> str:
    """`place` of a line."""
    text = statement(file, line, column)
    return shown(file, line) + (f": `{text}`" if text else "")


# ── statements ────────────────────────────────────────────────────────────────────────────────────────────────────────


def tree(file: str) -> ast.Module | None:
    """A file's syntax tree; None for what cannot be read."""
    lines = linecache.getlines(file)
    return _parsed("".join(lines)) if lines and len(lines) <= LARGEST else None


@lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def statement(file: str, line: int, column: int | None = None) -> str:
    """The statement at a line as one line of text; of a block, its head."""
    found = node_at(tree(file), line, column)
    return quoted(linecache.getline(file, line)) if found is None else text_of(found, file)


def text_of(found: ast.stmt, file: str) -> str:
    """A statement, or the head of a block, as one line of text."""
    body = getattr(found, "body", None)
    start, end = (found.lineno, found.col_offset), (found.end_lineno or found.lineno, found.end_col_offset)
    if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
        end = body[0].lineno, body[0].col_offset
    lines = [linecache.getline(file, n).encode() for n in range(start[0], end[0] + 1)]
    lines[-1] = lines[-1][:end[1]]
    lines[0] = lines[0][start[1]:]
    return quoted(b" ".join(line.strip() for line in lines).decode(errors="replace"))


def quoted(text: str) -> str:
    """Source text on one line that is not too long."""
    text = " ".join(text.split()).replace("`", "'")
    return text if len(text) <= LONGEST else text[:LONGEST - 1] + "…"


def node_at(module: ast.Module | None, line: int, column: int | None = None) -> ast.stmt | None:
    """The innermost statement that a line, or a column of it, belongs to."""
    found: ast.stmt | None = None
    inner: Any = module
    while inner is not None:
        found = inner if isinstance(inner, ast.stmt) else found
        inner = next((child for child in blocks(inner) if holds(child, line, column)), None)
    return found


def holds(node: ast.stmt, line: int, column: int | None) -> bool:
    first, last = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return first[0] <= line <= last[0] if column is None else first <= (line, column) < last


def blocks(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements right inside of one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from blocks(child)


def expression(frame: Any) -> ast.expr | None:
    """The expression that a frame is computing."""
    code = frame.f_code
    first, last, start, end = next(islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    if None in (first, last, start, end):
        return None
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)] or [b""]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    text = b"".join(lines).decode(errors="replace").strip()
    try:
        found = ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        try:
            statement = ast.parse(text).body[0]                     # x += y
        except (SyntaxError, ValueError, RecursionError, IndexError):
            return None
        return (ast.BinOp(statement.target, statement.op, statement.value) if isinstance(statement, ast.AugAssign)
                else None)  # type: ignore[arg-type]
    return found


def variables(frame: Any) -> dict[str, Any]:
    """The local variables of a frame.

    Before Python 3.13 a frame keeps the dict that it is asked for, and with it the values: here it is emptied.
    """
    found = frame.f_locals
    if found is frame.f_globals or type(found) is not dict or not frame.f_code.co_flags & CO_OPTIMIZED:
        return dict(found)
    values = dict(found)
    found.clear()
    return values


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def value_of(node: ast.AST, frame: Any) -> Any:
    """The value of a name, or of attributes and elements of it, where nothing of the program has to run to find it;
    None if there is none.
    """
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        owner = value_of(node.value, frame)
        if type(owner) in (list, tuple) and isinstance(node.slice.value, int):
            return owner[node.slice.value] if -len(owner) <= node.slice.value < len(owner) else None
        return owner.get(node.slice.value) if type(owner) is dict else None
    if isinstance(node, ast.Name):
        return variables(frame).get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        owner = value_of(node.value, frame)
        if owner is None or isinstance(owner, TensorBase):
            return None
        held = getattr(owner, "__dict__", {})
        if node.attr in held:
            return held[node.attr]
        return next((table[node.attr] for name in ("_modules", "_parameters", "_buffers")
                     if isinstance(table := held.get(name), dict) and node.attr in table),
                    None)
    return None


def tensors_in(node: ast.AST, frame: Any) -> dict[str, Any]:
    """{text: tensor} of the names in an expression, and of the elements of lists among them, in the order they are
    written in.
    """
    found: dict[str, Any] = {}
    elements = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Subscript)}
    for part in ast.walk(node):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and id(part) not in elements:
            value, text = value_of(part, frame), ast.unparse(part)
            if isinstance(value, TensorBase):
                found.setdefault(text, (part.lineno, part.col_offset, value))
            elif isinstance(value, (list, tuple)) and len(value) <= 8:
                for i, element in enumerate(value):
                    if isinstance(element, TensorBase):
                        found.setdefault(f"{text}[{i}]", (part.lineno, part.col_offset, element))
    return {text: value for text, (_, _, value) in sorted(found.items(), key=lambda item: item[1][:2])}


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────

def offer(what: str, option: str = "") -> list[str]:
    """The line that names the command which shows an error: nothing where it is running, or where no file is the
    program.
    """
    main = sys.modules.get("__main__")
    file, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if not offers.command:
        return []
    if not file or not isfile(file) or is_library(realpath(file)) or file.startswith(INSIDE):
        return [f"  {what}: run it in `with torch.viz.watch() as seen:`, and "
                f"{'viz.explain_nan(loss)' if option else 'seen.graph()'} after it"]
    path = os.path.relpath(file)
    words = [path if len(path) < len(file) else file] if spec is None else ["-m", spec.name.removesuffix(".__main__")]
    few = len(sys.argv) < 9 and sum(map(len, sys.argv[1:])) < 60
    return [f"  {what}: python -m tensorgrad.viz {option}{shlex.join([*words, *(sys.argv[1:] if few else [])])}"
            f"{'' if few else ' …'}"]
