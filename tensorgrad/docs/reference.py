"""The pages of docs/reference/: one for each public module; those of the root, `nn` and `nn.functional` by family."""
from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from ..ops.base import OPS
from . import entries, families
from .decisions import DECISIONS
from .docstrings import first_paragraph, inline
from .families import Family, sorted_into
from .names import ABSENT, is_static
from .pages import Page, about, contents, module_entries, page, slug
from .signatures import signature_of

# Each page's modules: the first names it, the others are sections of it.
MODULES = [
    ["linalg"], ["fft"], ["special"], ["signal.windows"], ["sparse"], ["masked"], ["nested"],
    ["nn.init"], ["nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations"], ["nn.parallel"],
    ["nn.attention", "nn.attention.flex_attention"],
    ["optim"], ["optim.lr_scheduler"],
    ["autograd", "autograd.functional", "autograd.forward_ad"], ["func"], ["amp"], ["distributions"], ["random"],
    ["serialization", "package", "utils.npz"], ["utils.data"], ["utils.checkpoint"],
    ["utils.tensorboard", "utils.flop_counter", "utils.dlpack", "profiler"],
    ["distributed", "distributed.nn.functional", "distributed.optim", "distributed.algorithms.join",
     "distributed.device_mesh"],
    ["distributed.checkpoint"],
    ["multiprocessing"], ["cuda"], ["accelerator"], ["overrides"], ["library"],
    ["symbolic"], ["layers"], ["layers.utils"], ["graph"],
    ["fx", "fx.subgraph_rewriter", "fx.passes.shape_prop", "fx.passes.split_module", "fx.experimental.optimization",
     "fx.experimental.const_fold", "fx.experimental.proxy_tensor"], ["export"], ["experiment", "experiment.callbacks"],
    ["viz", "viz.collectives"], ["onnx"], ["hub"], ["legacy", "legacy.optim", "legacy.nngraph"], ["legacy.nn"],
]
INTO_TENSOR = "../tensor.md"
Things = list[tuple[str, Any]]


@cache
def functions() -> dict[Family, Things]:
    """Return the functions of the root package by family, without forms in place that have a function of their own."""
    from ..api import FUNCTIONS
    return sorted_into(families.FUNCTIONS,
                       [(name, f) for name, f in FUNCTIONS.items() if not name.startswith("_") and not _in_place(name)])


def _in_place(name: str) -> bool:
    from ..api import FUNCTIONS
    return name.endswith("_") and name[:-1] in FUNCTIONS


@cache
def root_entries() -> dict[str, str]:
    """Return the place of each root function's entry, relative to docs/reference/."""
    return {name: f"functions/{family.page}.md#{slug(name)}" for family, things in functions().items()
            for name, _ in things}


def function_pages() -> Iterator[Page]:
    """Yield the pages of the root's functions, and the list of all of them."""
    from .._tensor import Tensor
    from ..api import FUNCTIONS
    for family, things in functions().items():
        blocks = [contents(name for name, _ in things)]
        for name, thing in things:
            also = [f"[`Tensor.{name}`]({INTO_TENSOR})"] if hasattr(Tensor, name) else []
            also += [f"`torch.{name}_`"] if f"{name}_" in FUNCTIONS else []
            also += [f"`Tensor.{name}_`"] if hasattr(Tensor, f"{name}_") else []
            blocks.extend(entries.function(name, thing, name, f"- **Also**: {', '.join(also)}" if also else ""))
        yield page(f"functions/{family.page}.md", family.title, family.about[0].upper() + family.about[1:] + ".",
                   blocks, 3)
    rows = [(f"[`{name}`]({place})", entries.summary(FUNCTIONS[name]))
            for name, place in sorted(root_entries().items())]
    yield page("functions.md", "Functions", "All functions of the root, `torch.f` for each f, by name; most are "
                                            "methods of Tensor, too.",
               [entries.table(rows, "function", "purpose")])


def tensor_page() -> Page:
    """Return the page of Tensor: a row for each member, and a link where the function of the same name has an entry."""
    from .._tensor import Tensor
    rows, names = [], dict(entries.tensor_members())
    for name, member in names.items():
        if name.endswith("_") and name[:-1] in names:
            continue
        place = root_entries().get(name)
        shown = (f"[`{name}`]({place})" if place
                 else f"`{name}{signature_of(member, not is_static(name)) if callable(member) else ''}`")
        rows.append((shown, entries.summary(member)))
    in_place = [f"`{name}`" for name in names if name.endswith("_") and name[:-1] in names]
    blocks = ["A name with a link has the arguments of that function, less the first, which is the tensor.",
              entries.table(rows, "member", "purpose"),
              "## In place", "Each of these takes the arguments of the method without `_`, writes the result into the "
              "tensor, and returns the tensor. The result must have the tensor's shape, and a dtype that the tensor's "
              "dtype can hold.",
              " ".join(in_place)]
    return page("tensor.md", "Tensor", about(Tensor), blocks)


def layer_pages() -> Iterator[Page]:
    """Yield the pages of `nn` and `nn.functional`."""
    from .. import nn
    from ..nn import functional
    classes = [(n, c) for n, c in vars(nn).items() if isinstance(c, type) and not n.startswith("_")]
    for family, things in sorted_into(families.LAYERS, classes).items():
        blocks = [contents(f"nn.{name}" for name, _ in things)]
        for name, thing in things:
            blocks.extend(entries.kind(name, thing, f"nn.{name}"))
        yield page(f"nn/{family.page}.md", f"tensorgrad.nn: {family.title}", family.about + ".", blocks, 3)
    root = {name: f"../{place}" for name, place in root_entries().items()}
    named = [(n, f) for n in functional.__all__ if callable(f := getattr(functional, n)) and not n.startswith("_")]
    for family, things in sorted_into(families.FUNCTIONAL, named).items():
        elsewhere = {name: root[name] for name, thing in things if name in root and _shared(name, thing)}
        blocks = [contents(f"F.{name}" for name, _ in things if name not in elsewhere)]
        blocks.extend(module_entries(functional, "F.", [name for name, _ in things], elsewhere))
        yield page(f"nn.functional/{family.page}.md", f"tensorgrad.nn.functional: {family.title}",
                   family.about[0].upper() + family.about[1:] + ".", blocks, 3)


def _shared(name: str, thing: Any) -> bool:
    """Return True if a function of a namespace and the root's function of the same name have one entry."""
    from ..api import FUNCTIONS
    root = FUNCTIONS[name]
    return root is thing or (signature_of(root), first_paragraph(root)) == (signature_of(thing), first_paragraph(thing))


def module_page(names: list[str]) -> Page:
    """Return the page of a module, with a section for each further module."""
    blocks = []
    for i, name in enumerate(names):
        module = import_module(f"tensorgrad.{name}")
        public = [n for n in sorted(module.__all__) if callable(thing := getattr(module, n)) and thing is not str
                  and not n.startswith("_")]
        prefix = f"{name}." if i else ""
        blocks += [f"## tensorgrad.{name}", about(module)] if i else []
        own = (f"{prefix}{n}" for n in public if entries.is_ours(getattr(module, n)))
        blocks += [contents(own), *module_entries(module, prefix, public, {})]
    module = import_module(f"tensorgrad.{names[0]}")
    return page(f"{names[0]}.md", f"tensorgrad.{names[0]}", about(module), blocks)


def op_page() -> Page:
    """Return the op table: each op's definition, formula and gradients."""
    rows = []
    for name, op in sorted(OPS.items()):
        if op.__module__.startswith("tensorgrad."):
            path, line = entries.formulas(op).source
            rows.append((f"[`{name}`](../../{path}#L{line})", inline(first_paragraph(op)), entries.forward_of(name),
                         entries.gradients_of(name)))
    return page("ops.md", "The op table", "Every op, its formula and its gradients.",
                [OPS_INTRO, entries.table(rows, "op", "computes", "formula", "gradients")])


OPS_INTRO = """A name leads to the op's definition. Formulas are read from the definitions: g is the gradient of the
result `out` (g₀, g₁ … of several results). They hold for real numbers and for arrays that are not empty. Σ, max and mean
are along the op's axis, · is element by element, @ the product of matrices. The engine sums gradients over axes along
which an operand was broadcast. Where a formula is long or loops, the table says "see the source"; ⋯ replaces a detail
that the source shows."""  # noqa: E501


def absent_page() -> Page:
    """Return the page of PyTorch's names that are absent."""
    rows = [(inline(reason), f"`{_readable(pattern)}`") for reason, pattern in ABSENT.items()]
    return page("absent.md", "Absent names", "Names of PyTorch that tensorgrad does not have, and why.",
                ["`*` means any letters; names are listed without `torch.` and `Tensor.`.",
                 entries.table(rows, "purpose", "names")])


def _readable(pattern: str) -> str:
    for mark, shown in ((r"\w+", "*"), (r"\w*", "*"), (r"\d+", "*"), (r"(Tensor\.)?", ""), (r"Tensor\.", ""),
                        (r"\.", "."), ("(?!Function$|Module$)", ""), ("|", ", ")):
        pattern = pattern.replace(mark, shown)
    return pattern


def decisions_page() -> Page:
    """Return the page of decisions where an older spelling and PyTorch's differ."""
    intro = ("Names that this project's first version, or a package that it includes, spelled in another way than "
             "PyTorch. A name of PyTorch's has PyTorch's meaning; older spellings exist beside it where they do not "
             "contradict it.")
    rows = [(i, inline(before), inline(now)) for i, before, now in DECISIONS]
    return page("decisions.md", "Decisions", "Older spellings, and the one that holds.",
                [intro, entries.table(rows, "id", "earlier, or in question", "now")])


def pages() -> Iterator[Page]:
    """Yield all pages of the reference, in the order of the index."""
    yield tensor_page()
    yield from function_pages()
    yield from layer_pages()
    for names in MODULES:
        yield module_page(names)
    yield op_page()
    yield absent_page()
    yield decisions_page()
