"""The layers of the package from the lowest up, and a reader of its imports: docs/ has a map of them, and tests
check the code against them."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = Path(__file__).parents[1]


class Layer(NamedTuple):
    """A part of the package.

    Its modules import from their own rank and from those below; each string of `ranks` names the modules of one.
    """

    name: str
    about: str
    ranks: list[str]


# A module that is not named has the rank of the package around it. In the core, `each` module has its own rank, and all
# are named.
each = str.split
LAYERS = [
    Layer("facts", "dtypes, devices, random streams, threads", [
        "messages runtime torch_version dtype nominal_dtypes device size generator as_torch.companions "
        "_tensor.printing"]),
    Layer("storage", "where memory lives: one class for each backend", each(
        "storage.layout storage.out_of_memory storage.base storage.cpu storage.simulated storage.cuda storage.sparse "
        "storage.sparse_patterns storage storage.stubs")),
    Layer("ops", "what is computed: a formula forward, and one for the gradient of each input", [*each(
        "ops.base ops.signatures ops.windows ops._airy_function ops._special_functions ops._bessel_functions "
        "ops._lapack ops.shape ops.comparison ops.elementwise ops.views ops.indexing ops.reduction ops.transcendental "
        "ops.activation ops.polynomials ops.special ops.reparameterization ops.matrix ops.linear ops.embedding "
        "ops.sparse ops.sorting ops.cumulative ops.linalg ops.factorizations ops.fourier ops.convolution ops.pooling "
        "ops.resampling ops.normalization ops.attention ops.recurrent ops.loss ops.ctc ops.stubs ops"), "const"]),
    Layer("core", "modes, the tape, the dispatcher that writes it, the sweep back", [*each(
         "core core.mode core.vmap_hooks core.class_hooks core.node core.plan core.unbroadcast core.tape "
         "core.module_calls advice core.stale core.fast_path core.formats core.casting core.dispatch core.step "
         "core.accumulating core.step_names core.optimizer_kernels core.undefined core.hooks core.fused core.inplace "
         "core.lazy_copies core.anomaly core.sweep core.composed core.engine"),
         "dispatch ops.dispatch"]),
    Layer("kernels", "better implementations of some ops on some backends", ["kernels"]),
    Layer("interpret", "other readings of the ops: batches, tangents, shapes without values", each(
        "interpret interpret._batched_subscripts interpret._batched_ops interpret.batched interpret.batch_views "
        "interpret.batching "
        "interpret.sparse interpret.sparse_rules interpret.sparse_products autograd.function interpret.forward "
        "interpret.symbol interpret.symbol_functions interpret.symbol_storage "
        "interpret.aten_rules interpret.aten_parts interpret.class_dispatch "
        "autograd.grad_mode autograd.anomaly_mode autograd.variable autograd.graph autograd")),
    Layer("Tensor", "an array, its storage, its node: conversions, printing, copies, and no maths", [
        "_tensor.dlpack _tensor.states _tensor.sparse_copying _tensor.copying _tensor.usual_types "
        "_tensor.torch_function",
        "_tensor overrides _C"]),
    Layer("api", "PyTorch's spelling: signatures, checks of arguments, docstrings",
          ["autograd.forward_ad autograd.profiler autograd.profiler_names "
           "autograd.profiler_trace _C._profiler", "api return_types"]),
    Layer("graph", "recorded programs: one mutable graph of nodes", ["graph"]),
    Layer("training", "modules, optimizers, function transforms, files, data, devices", [
        "runtime.settings amp nn optim utils func cuda accelerator linalg fft special signal random "
        "distributions serialization multiprocessing autograd.sparse_gradcheck autograd.gradcheck "
        "_vmap_internals autograd.functional futures functional types hub __future__ graph.inputs graph.lowered "
        "graph.replay graph.lowering"]),
    Layer("tools", "pictures, symbolic models, exports, experiments, PyTorch's further modules", [
        "_VF "
        "array_api viz docs testing symbolic layers experiment distributed jit backends version compiler benchmark "
         "_aten_images _aten _logging _unregistered _ops _custom_ops _subclasses _custom_op _tensor_str _copying "
         "storages _dynamo "
         "_inductor _functorch _library _higher_order_ops _jit_internal _linalg_utils _lobpcg _lowrank _prims_common "
         "_refs _utils _utils_internal _export ao cpu export fx library masked monitor mps mtia nested onnx package "
         "profiler quantization quasirandom sparse xpu utils.collect_env", "legacy"]),
    Layer("package", "`import tensorgrad as torch`", ["as_torch __init__ __main__ __config__"]),
]
RANK = {name: rank for rank, names in enumerate(names for layer in LAYERS for names in layer.ranks)
        for name in names.split()}
LAYER_OF = {name: layer for layer in LAYERS for names in layer.ranks for name in names.split()}


def name_of(path: Path) -> str:
    """Return a module's name in the table: without the package's name, `__init__` for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> list[tuple[str, bool, int]]:
    """Return (module, True inside a function, line) of each import, except those for type checkers."""
    package = [PACKAGE.name, *path.relative_to(PACKAGE).parts[:-1]]

    def absolute(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
        if isinstance(node, ast.Import):
            return alias.name
        base = (".".join([*package[:len(package) - node.level + 1], *([node.module] if node.module else [])])
                if node.level else node.module or "")
        full = f"{base}.{alias.name}"
        return full if full.removeprefix(f"{PACKAGE.name}.") in MODULES else base

    def walk(statements: list[Any], inside: bool) -> Iterator[tuple[str, bool, int]]:
        for statement in statements:
            if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
                continue
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                yield from ((absolute(statement, alias), inside, statement.lineno) for alias in statement.names)
            within_function = inside or isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef))
            for block in ("body", "orelse", "handlers", "finalbody", "cases"):
                yield from walk(getattr(statement, block, []), within_function)
    return sorted(set(walk(syntax(path).body, False)))


def named(module: str) -> str:
    """Return the table's entry of a module: its own, or that of the package around it."""
    while module not in RANK and "." in module:
        module = module.rpartition(".")[0]
    return module


def rank(module: str) -> int | None:
    return RANK.get(named(module))


def inner(name: str) -> str | None:
    """Return the table's name of a module of the package, or None for others."""
    return (name.removeprefix(f"{PACKAGE.name}.") if name.startswith(f"{PACKAGE.name}.") else "__init__"
            if name == PACKAGE.name else None)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")
