"""Turn docstrings into Markdown as GitHub renders it."""
from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

# The page of PyTorch's manual that documents a function.
SOURCE = re.compile(r"\s*(?:https://pytorch\.org/docs )?→ (torch\.[\w.]*\w)|\s*https://pytorch\.org/docs → [\w. -]*\w")
HEADINGS = "Parameters|Args|Input|Output|Weights|Shapes?|Returns?|Raises|Errors|Example|Files|Source|Notes?"
HEADING = re.compile(rf"({HEADINGS}):(.*)", re.DOTALL)
CODE = re.compile(r"(``[^`]+``|`[^`]+`)")
NAMED = re.compile(r"\((?:PyTorch: )?`{0,2}(torch\.[\w.]+\w)`{0,2}\)")       # the short form of it
# Modules whose members share a page of PyTorch's manual, and that page.
SHARED = {"distributions": "distributions", "special": "special", "masked": "masked", "distributed": "distributed",
          "nn.init": "nn.init",
          "utils.data": "data", "utils.checkpoint": "checkpoint", "amp": "amp", "overrides": "torch.overrides",
          "utils.tensorboard": "tensorboard", "hub": "hub", "multiprocessing": "multiprocessing", "library": "library",
          "jit": "jit", "onnx": "onnx", "random": "random", "profiler": "profiler", "fx": "fx", "package": "package",
          "utils.dlpack": "dlpack", "utils.benchmark": "benchmark_utils",
          "nn.attention": "nn.attention",
          "serialization": "notes/serialization"}


def docstring(thing: Any) -> str:
    """Return the docstring of `thing` itself, or "": instances have no docstring of their own."""
    return "" if thing is None else inspect.getdoc(thing) or ""


def first_paragraph(thing: Any) -> str:
    """Return the first paragraph of a docstring in one line, without its reference to PyTorch's manual.

    >>> def f(): '''Add two numbers,
    ...     or more. https://pytorch.org/docs → torch.add
    ...
    ...     Details.'''
    >>> first_paragraph(f)
    'Add two numbers, or more.'
    """
    paragraph = " ".join(docstring(thing).split("\n\n")[0].split())
    return re.sub(r"\s+https?://\S+$", "", SOURCE.sub("", paragraph))


def source(thing: Any) -> str:
    """Return a link to the page of PyTorch's manual that a docstring names, or ""."""
    found = SOURCE.search(docstring(thing)) or NAMED.search(first_paragraph(thing))
    if not found or not found[1]:
        return ""
    name = found[1]
    module = next((m for m in SHARED if f"{name}.".startswith(f"torch.{m}.")), None)
    page = (f"generated/{name}.html" if module is None else f"{SHARED[module]}.html"
            + (f"#{name}" if name != f"torch.{module}" else ""))
    return f"[{name}](https://docs.pytorch.org/docs/stable/{page})"


def inline(text: str) -> str:
    """Return text of a docstring as Markdown: code stays code, and signs that Markdown would read are escaped.

    >>> inline("the *first* of `a*b`, a <tag> and _x")
    'the \\\\*first\\\\* of `a*b`, a &lt;tag> and \\\\_x'
    """
    text = re.sub(r":math:`([^`]+)`", r"$\1$", text)
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", text)
    return "".join(_code(part) if part.startswith("`") else _escaped(part) for part in CODE.split(text))


def _code(part: str) -> str:
    return f"`{part.strip('`')}`"


def _escaped(text: str) -> str:
    parts = re.split(r"(\$[^$]+\$)", text)
    for i in range(0, len(parts), 2):
        shown = parts[i].replace("<", "&lt;").replace("](", "]\\(")
        parts[i] = re.sub(r"(?<!\w)_|_(?!\w)|[*$]", lambda sign: "\\" + sign[0], shown)
    parts[1::2] = [f"$`{part[1:-1]}`$" for part in parts[1::2]]
    return "".join(parts)


def markdown(thing: Any) -> str:
    """Return the docstring of `thing` as Markdown: paragraphs, lists of parameters, formulas, examples."""
    return "\n\n".join(block for part in docstring(thing).split("\n\n") for block in _blocks(part))


def _blocks(part: str) -> Iterator[str]:
    """Yield the Markdown of what is between two blank lines."""
    if not part.strip():
        return
    if part.lstrip().startswith(">>>"):
        yield f"```pycon\n{inspect.cleandoc(part)}\n```"
    elif part.startswith(".. math::"):
        lines = inspect.cleandoc(part.removeprefix(".. math::")).strip()
        yield "```math\n" + (f"\\begin{{aligned}}\n{lines}\n\\end{{aligned}}" if "&" in lines else lines) + "\n```"
    elif not re.search(rf"^({HEADINGS}):", part, flags=re.MULTILINE):
        yield from _text(SOURCE.sub("", part))
    else:
        yield from _headed(part)


def _text(part: str) -> Iterator[str]:
    """Yield a paragraph, and lines that are indented in it as a block of their own."""
    for indented, lines in _runs(part):
        text = inspect.cleandoc(lines)
        if not indented and text.strip():
            yield inline(text)
        elif indented:
            yield f"```text\n{text}\n```"


def _runs(part: str) -> list[tuple[bool, str]]:
    """Split a paragraph into runs of lines that are indented and runs that are not."""
    runs: list[tuple[bool, str]] = []
    for line in part.splitlines():
        indented = line.startswith("    ")
        if runs and runs[-1][0] == indented:
            runs[-1] = (indented, f"{runs[-1][1]}\n{line}")
        else:
            runs.append((indented, line))
    return runs


def _headed(part: str) -> Iterator[str]:
    """Yield a paragraph of headed lines, `Parameters:` and the like, as a list."""
    entries: list[str] = []
    for line in part.splitlines():
        if not line.startswith(" ") and (HEADING.match(line) or not entries):
            entries.append(line)
        else:
            entries[-1] += f"\n{line}"
    items = []
    for entry in entries:
        found = HEADING.match(SOURCE.sub("", entry))
        if not found or not found[1]:
            yield from _text(entry)
            continue
        first, _, below = found[2].partition("\n")
        rows = _named(below) if re.match(r"    \s*\S+: ", below) else []
        text = first if rows else " ".join([first, *below.split()])
        items.append(f"- **{found[1]}**:{' ' if text.strip() else ''}{inline(text.strip())}")
        items.extend(f"  - `{name}`: {inline(rest)}" for name, rest in rows)
    yield "\n".join(items)


def _named(lines: str) -> list[tuple[str, str]]:
    """Return (name, text) of each line `name: text`; a line that is indented further goes on with the one before."""
    rows: list[tuple[str, str]] = []
    for line in inspect.cleandoc(lines).splitlines():
        name, colon, rest = line.partition(": ")
        if rows and (line.startswith(" ") or not colon):
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
        else:
            rows.append((name, rest.strip()))
    return rows
