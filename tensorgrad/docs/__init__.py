"""Generate DOCS.md, the pictures in docs and the type stub of Tensor from the code: `python -m tensorgrad.docs
[--check] [folder]`."""
from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import EnumType
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from . import architecture, backward
from .compared import INTRO, compared
from .decisions import DECISIONS
from .names import ABSENT, is_static, made_of
from .prose import BUILDING, DIFFERENCES, DISTRIBUTED, ERRORS, EXERCISES, EXPERIMENTS, EXTENDING, HEAD, LEGACY, NAN, OPENED, VIZ


def first_line(thing: Any) -> str:
    text = "" if thing is None else inspect.getdoc(thing) or ""
    return text.split("\n")[0].split(" https://")[0].strip()


def signature_of(thing: Any, method: bool = False) -> str:
    if isinstance(thing, EnumType):         # Python's own signature of these, and of callable modules, differs between its versions
        return "(value)"
    if isinstance(thing, type) and issubclass(thing, Exception):
        return "(message)"
    if isinstance(thing, ModuleType):
        thing = thing.__call__
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "(…)"
    parameters = list(inspect.signature(thing).parameters.values())[int(method):]
    shown = []
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        name = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        shown.append(name if p.default is p.empty else f"{name}={_default(p.default)}")
    return f"({', '.join(shown)})" if text else text


def _default(value: Any) -> str:
    text = repr(value)
    return text if " at 0x" not in text else f"<{type(value).__name__}>"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def table(rows: list[tuple[str, ...]], *head: str) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(_cell, row)) + " |"
    yield ""


def tensor_members() -> list[tuple[str, Any]]:
    """Return the public methods and properties of Tensor, by name."""
    from .._tensor import Tensor
    return sorted((name, getattr(Tensor, name)) for name in dir(Tensor) if not name.startswith("_"))


def tensor_section() -> Iterator[str]:
    from .._tensor import Tensor
    yield "## tensorgrad.Tensor\n"
    yield first_line(Tensor) + "\n"
    rows = [(f"`{name}{'' if not callable(member) else signature_of(member, not is_static(name))}`", first_line(member)) for name, member in tensor_members()]
    yield from table(rows, "member", "what it is")


def functions_section() -> Iterator[str]:
    from ..api import FUNCTIONS
    yield "## Functions\n"
    yield ("`torch.f` for each f; most are methods of Tensor as well, and `f_` is the form in place. The third column is what the function is made of: "
           "its `ops`, and the functions that it is composed of; the fourth the gradient, given g, that of the result: of one op its formula (more in "
           "[the op table](#the-op-table)), of compositions the chain rule's.\n")
    yield from table([_row(name, f) for name, f in sorted(FUNCTIONS.items()) if not name.startswith("_")],
                     "function", "what it does", "made of", "gradient")
    for title in ("linalg", "fft", "special", "signal.windows"):
        module = import_module(f"tensorgrad.{title}")
        yield f"### tensorgrad.{title}\n"
        yield from table([_row(name, getattr(module, name)) for name in module.__all__ if not isinstance(getattr(module, name), type)],
                         "function", "what it does", "made of", "gradient")


def _row(name: str, function: Any) -> tuple[str, ...]:
    ops, functions = made_of(function)
    parts = [*(f"`{op}`" for op in ops), *(f for f in functions if f != name)]
    gradient = _gradients_of(ops[0]) if len(ops) == 1 and not functions else "by the chain rule" if ops or functions else ""
    return f"`{name}{signature_of(function)}`", first_line(function), ", ".join(parts), gradient


def _gradients_of(op: str) -> str:
    from ..ops.base import OPS
    from ..viz.formulas import ELSEWHERE, formulas
    rules = formulas(OPS[op]).rules
    shown = " ".join(f"`d{name} = {rule}`" for name, rule in rules.items() if rule != ELSEWHERE)
    return shown or (ELSEWHERE if rules else "by its definition" if OPS[op].composite else "none")


def namespaces_section() -> Iterator[str]:
    """Yield the namespaces of functions and classes, a table each."""
    for title, intro in (("func", "Functions of functions: gradients, Jacobians, batches."),
                         ("autograd.functional", "The same, with tensors of tensors."), ("autograd.forward_ad", "Dual numbers: forward mode."),
                         ("distributions", "Probability distributions."), ("cuda", "CUDA devices, as a program uses them."), ("amp", "Mixed precision."),
                         ("overrides", "How classes and modes override functions."), ("utils.data", "Data sets and loaders."),
                         ("symbolic", "Networks as graphs of symbols."), ("layers", "Layers that learn the sizes of their input."),
                         ("layers.utils", "Shapes, nested structures, and small helpers."),
                         ("viz", f"{VIZ}\n\n{OPENED}\n\n{EXERCISES}\n\n{NAN}\n\n{ERRORS}\n\n{compared_section()}"),
                         ("viz.collectives", "Collectives, message by message."), ("distributed", "Processes that compute together."),
                         ("nn.init", "Initial values of parameters."), ("nn.utils", "What is done to parameters."),
                         ("nn.parallel", "Modules on several devices.")):
        module = import_module(f"tensorgrad.{title}")
        yield f"## tensorgrad.{title}\n"
        yield intro + "\n"
        names = [n for n in module.__all__ if callable(member := getattr(module, n)) and member is not str]
        yield from table([(f"`{n}{signature_of(getattr(module, n))}`", first_line(getattr(module, n))) for n in sorted(names)], "name", "what it is")


def compared_section() -> str:
    """Return the table that compares `tensorgrad.viz` with other tools."""
    rows, head = compared()
    return "\n".join([INTRO, "", *table(rows, *head)]).rstrip()


def differences_section() -> Iterator[str]:
    yield DIFFERENCES.rstrip() + "\n"
    yield "What they are for, and which they are; `*` stands for any letters, and names of Tensor are listed without `Tensor.`.\n"
    yield from table([(reason, _readable(pattern)) for reason, pattern in ABSENT.items()], "what for", "names, less `torch.`")


def _readable(pattern: str) -> str:
    for mark, shown in ((r"\w+", "*"), (r"\w*", "*"), (r"\d+", "*"), (r"(Tensor\.)?", ""), (r"Tensor\.", ""), (r"\.", "."), ("|", ", ")):
        pattern = pattern.replace(mark, shown)
    return pattern


def decisions_section() -> Iterator[str]:
    yield "## Decisions\n"
    yield ("Where the spelling of this project's first version, or of a package that it takes up, is not PyTorch's. On a name of PyTorch's, PyTorch's "
           "meaning holds; older spellings are there beside it where they contradict nothing.\n")
    yield from table(DECISIONS, "id", "what was so, or may be asked", "what holds")


def nn_section() -> Iterator[str]:
    from .. import nn
    yield "## tensorgrad.nn\n"
    for name, cls in sorted((n, c) for n, c in vars(nn).items() if isinstance(c, type) and not n.startswith("_")):
        doc = (inspect.getdoc(cls) or "").split("\n\n>>>")[0]
        yield f"### nn.{name}\n"
        yield f"`{name}{signature_of(cls)}`\n"
        yield "\n".join(f"    {line}" if line.startswith((" ", "\t")) else line for line in doc.splitlines()) + "\n"
    yield "## tensorgrad.nn.functional\n"
    from ..nn import functional
    rows = [(f"`{n}{signature_of(getattr(functional, n))}`", first_line(getattr(functional, n))) for n in sorted(functional.__all__)
            if callable(getattr(functional, n)) and not n.startswith("_")]
    yield from table(rows, "function", "what it does")


def optim_section() -> Iterator[str]:
    from .. import optim
    yield "## tensorgrad.optim\n"
    for title, module in (("optimizer", optim), ("scheduler", optim.lr_scheduler)):
        rows = [(f"`{n}{signature_of(c)}`", first_line(c)) for n, c in sorted(vars(module).items()) if isinstance(c, type) and not n.startswith("_")]
        yield from table(rows, title, "what it does")


def autograd_section() -> Iterator[str]:
    from .. import autograd
    yield "## tensorgrad.autograd\n"
    rows = [(f"`{n}{signature_of(getattr(autograd, n))}`", first_line(getattr(autograd, n))) for n in sorted(autograd._HOME)]
    yield from table(rows, "name", "what it does")


def op_section() -> Iterator[str]:
    from ..ops.base import OPS
    from ..viz import formulas
    yield "## The op table\n"
    yield ("Every op, with a link to its definition; what it computes, its formula, and that of each gradient, where g is the gradient of the result `out` "
           "(g₀, g₁ … of several results). Formulas are read from the definitions. They are those of real numbers and of arrays that are not empty; Σ, max "
           "and mean are along the op's axis, · is element by element, @ the product of matrices; the engine sums gradients over axes along which an operand "
           "was repeated. Some are long or loop: these, and details shown as ⋯, are to be read in the source.\n")
    rows = []
    for name, op in sorted(OPS.items()):
        if not op.__module__.startswith("tensorgrad."):
            continue
        forward, _, (path, line) = formulas(op)
        described = first_line(op)
        says_more = forward != described and not re.fullmatch(rf"{name}\([\w, ]*\)", forward)
        rows.append((f"[`{name}`]({path}#L{line})", described, f"`{forward}`" if says_more else "", _gradients_of(name)))
    yield from table(rows, "op", "computes", "formula", "gradients")


def docs() -> str:
    parts = [HEAD]
    for section in (differences_section, decisions_section, tensor_section, functions_section, nn_section, optim_section, autograd_section,
                    namespaces_section, op_section):
        parts.extend(section())
    return "\n".join([*parts, BUILDING, EXPERIMENTS, DISTRIBUTED, LEGACY, EXTENDING])


def stub() -> str:
    """Return the type stub: every public member of Tensor with its arguments."""
    from .._tensor import Tensor
    lines = ['"""Generated by `python -m tensorgrad.docs`: the methods that api/ attaches, for editors and type checkers."""',
             "from typing import Any", "", "from .core.tape import TensorBase",
             "from .device import device as Device", "from .dtype import dtype as Dtype",
             "from .size import Size", "", "", "class Tensor(TensorBase):"]
    known = {"shape": "Size", "dtype": "Dtype", "device": "Device", "requires_grad": "bool", "is_leaf": "bool", "ndim": "int"}
    operators = [n for n in dir(Tensor) if n.startswith("__") and callable(getattr(Tensor, n)) and n not in dir(object) and n != "__class_getitem__"]
    for name in [*[n for n, _ in tensor_members()], *operators]:
        member = getattr(Tensor, name)
        if not callable(member):
            lines.append(f"    {name}: {known.get(name, 'Any')}")
            continue
        if is_static(name):
            lines.append("    @staticmethod")
        lines.append(f"    def {name}({_stub_arguments(member, is_static(name))}) -> Any: ...")
    return "\n".join(lines) + "\n"


def _stub_arguments(member: Any, static: bool = False) -> str:
    try:
        parameters = list(inspect.signature(member).parameters.values())[int(not static):]
    except (TypeError, ValueError):
        return "self, *args: Any, **kwargs: Any"
    shown = [] if static else ["self"]
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        shown.append(f"{prefix}{p.name}: Any" + ("" if p.default is p.empty else " = ..."))
    return ", ".join(shown)


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    folder = Path(next((a for a in arguments if not a.startswith("-")), "."))
    stale = []
    for path, text in ((folder / "DOCS.md", docs()), (folder / "docs" / "architecture.svg", architecture.draw()),
                       (folder / "docs" / "backward.svg", backward.draw()),
                       (folder / "tensorgrad" / "_tensor" / "tensor.pyi", stub())):
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(str(path))
        elif not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{path} is out of date: run python -m tensorgrad.docs")
    return bool(stale)

