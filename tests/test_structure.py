"""How the package is built: imports point down, optional packages stay optional, files and classes stay small."""
import ast
import json
import sys
from functools import cache
from pathlib import Path

import pytest
from support import ROOT, fresh_process

PACKAGE = ROOT / "tensorgrad"

# From the ground up. A module may import from its own layer and from those before it.
LAYERS = [
    "_missing _companions _blas _native guest _unsupported _warnings _escaping torch_version dtype device size threads affinity sharing "
    "generator _streams _printing",
    "storage",
    "ops",
    "const",
    "core interpret autograd dispatch ops.dispatch",
    "kernels",
    "_copying _keywords _overriding",
    "_tensor overrides _C",
    "api return_types",
    "graph",
    "settings amp nn optim utils func cuda accelerator linalg fft special signal random distributions storages serialization multiprocessing "
    "autograd.gradcheck autograd.functional autograd.forward_ad autograd.profiler autograd.grad_mode autograd.anomaly_mode futures functional types hub "
    "graph.inputs graph.lowered graph.lowering",
    "_VF array_api viz docs testing symbolic layers experiment distributed legacy jit backends version compiler "
    "_jit_annotations _ops _custom_ops _subclasses _tensor_str "
    "_dynamo _jit_internal _utils ao cpu export fx library mps mtia nested onnx profiler quantization sparse xpu utils.collect_env",
    "_as_torch __init__ __main__ __config__",
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}

# Imports inside a function that reach up, and why they may.
UPWARD = {
    ("_C", "nn"): "the arguments of Module.to",
    ("_tensor", "api.creation"): "Tensor(...), the old constructor, makes tensors",
    ("_tensor", "viz"): "Tensor.render draws the graph",
    ("viz.__main__", "__main__"): "the command that draws a program runs it as `python -m tensorgrad` does",
    ("_tensor", "utils"): "pickling and printing of rarer kinds",
    ("_tensor", "serialization"): "torch.save's way to pickle a storage",
    ("overrides", "nn"): "the list of what can be overridden",
    ("autograd.graph", "api"): "tools over the public functions",
    ("_overriding", "api._parsing"): "an error is put in PyTorch's words, once a call has failed",
    ("api", "array_api"): "the namespace that a tensor names as its own",
    ("api.conversion", "storages"): "a tensor's memory as bytes",
    ("storage", "storages"): "torch.storage's classes",
    ("api.conversion", "multiprocessing"): "moving a tensor to memory that processes share",
    ("utils.data.distributed", "distributed"): "the processes among which samples are shared out",
    ("utils.collect_env", "__init__"): "the package's version",
    ("utils._selective", "_ops"): "functions by the names that torch.ops gives them",
    ("graph", "nn"): "the modules that a graph's nodes name",
    ("api", "nn"): "torch.f where the function lives in nn.functional",
}
LOADED_LATER = "nn optim distributions func utils viz linalg fft special cuda symbolic layers experiment serialization testing".split()


def name_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def syntax(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path):
    """(module, whether it is inside a function, line) of each import."""
    package = ["tensorgrad", *path.relative_to(PACKAGE).parts[:-1]]

    def absolute(node, alias):
        if isinstance(node, ast.Import):
            return alias.name
        base = ".".join([*package[:len(package) - node.level + 1], *([node.module] if node.module else [])]) if node.level else node.module
        full = f"{base}.{alias.name}"
        return full if full.removeprefix("tensorgrad.") in MODULES else base

    def walk(node, inside):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.Import, ast.ImportFrom)):
                yield from ((absolute(child, alias), inside, child.lineno) for alias in child.names)
            yield from walk(child, inside or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return sorted(set(walk(syntax(path), False)))


def rank(module):
    """The layer of a module: its own, or that of the package around it."""
    while module not in RANK and "." in module:
        module = module.rpartition(".")[0]
    return RANK.get(module)


def inner(name):
    """A module of the package as it is called here, or None."""
    return name.removeprefix("tensorgrad.") if name.startswith("tensorgrad.") else "__init__" if name == "tensorgrad" else None


def within(module, package):
    return module == package or module.startswith(package + ".")


# ── imports ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_module_has_a_layer():
    assert not [module for module in MODULES if rank(module) is None]


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module):
    path = MODULES[module]
    for name, inside, line in imports(path):
        target = inner(name)
        if target is None or rank(target) <= rank(module):
            continue
        explained = inside and any(within(module, who) and within(target, whom) for who, whom in UPWARD)
        assert explained, f"{path.relative_to(ROOT)}:{line} imports {name}, which lies above it"


def test_the_package_is_never_imported_by_its_own_name():
    """Relative imports keep a copy of the package working under any name."""
    absolute = [f"{path.relative_to(ROOT)}:{node.lineno}" for path in MODULES.values() for node in ast.walk(syntax(path))
                if isinstance(node, ast.Import) and any(alias.name.partition(".")[0] == "tensorgrad" for alias in node.names)
                or isinstance(node, ast.ImportFrom) and not node.level and node.module.partition(".")[0] == "tensorgrad"]
    assert not absolute


def outside(path):
    """The packages from outside that a file imports, and whether inside a function."""
    return {(name.partition(".")[0], inside) for name, inside, _ in imports(path)
            if inner(name) is None and name.partition(".")[0] not in sys.stdlib_module_names}


def test_only_numpy_is_imported_outright():
    required = {(str(path.relative_to(ROOT)), name) for path in MODULES.values() for name, inside in outside(path) if not inside and name != "numpy"}
    assert not required


def test_only_the_cuda_backend_imports_cupy():
    users = {str(path.relative_to(PACKAGE)) for path in MODULES.values() for name, _ in outside(path) if name == "cupy"}
    assert users <= {"storage/cuda.py"} | {str(p.relative_to(PACKAGE)) for p in (PACKAGE / "kernels").glob("*cuda*.py")} and users


def test_formulas_know_nothing_of_tensors():
    """ops/ sees arrays through xp only; nn sees no arrays."""
    for module, path in MODULES.items():
        names = {name for name, _, _ in imports(path)}
        if within(module, "ops") and module != "ops.dispatch":
            assert not [n for n in names if inner(n) and not (within(inner(n), "ops") or within(inner(n), "storage"))], module
        if within(module, "nn"):
            assert "numpy" not in names, module


# ── what import loads ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_import_loads_numpy_and_the_standard_library_only(record_property):
    program = """
import json, sys, threading, time
start = time.perf_counter(); import numpy; middle = time.perf_counter(); import tensorgrad; end = time.perf_counter()
print(json.dumps([sorted(sys.modules), threading.active_count(), (end - start) / (middle - start)]))
"""
    loaded, threads, ratio = json.loads(fresh_process(program))
    record_property("import time, over NumPy's", round(ratio, 2))
    packages = {name.partition(".")[0] for name in loaded}
    foreign = {name for name in packages - sys.stdlib_module_names - {"tensorgrad", "numpy"} if not name.startswith(("_", "site", "sitecustomize"))}
    assert not foreign
    assert threads == 1
    assert not [name for name in loaded if any(within(name, f"tensorgrad.{part}") for part in LOADED_LATER)]


def test_parts_are_loaded_when_they_are_used():
    parts = ["nn", "optim", "utils", "special", "cuda", "autograd.function", "autograd.graph", "const", "random", "storage", "dispatch"]
    program = f"import tensorgrad; print(*[eval('tensorgrad.' + part).__name__.removeprefix('tensorgrad.') for part in {parts}])"
    assert fresh_process(program).split() == parts


def test_import_changes_nothing_but_numpys_warnings():
    program = """
import json, os, random, signal, sys, warnings
import numpy
def state():
    return [dict(os.environ), sys.path, warnings.filters, sys.getrecursionlimit(), random.getstate(), numpy.random.get_state()[1].tolist(),
            signal.getsignal(signal.SIGINT), sys.excepthook, sys.displayhook, numpy.get_printoptions()]
before = repr(state())
import tensorgrad
print(repr(state()) == before)
"""
    assert fresh_process(program).strip() == "True"


# ── size ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_classes_are_short():
    long = {f"{path.relative_to(ROOT)}: "
            f"{node.name}": node.end_lineno - node.lineno + 1 for path in MODULES.values() for node in ast.walk(syntax(path))
            if isinstance(node, ast.ClassDef) and node.end_lineno - node.lineno >= 450}
    assert not long


def test_the_rules_are_seen_to_be_broken(tmp_path, monkeypatch):
    """The reader of imports finds those of each kind."""
    file = PACKAGE / "ops" / "made_up.py"
    monkeypatch.setattr(Path, "read_text", lambda self, encoding=None: (
        "import cupy\nfrom ..api import creation\nfrom .. import nn\ndef f():\n    from ..core.dispatch import xp\n    import numpy.linalg\n"))
    syntax.cache_clear()
    try:
        found = imports(file)
    finally:
        syntax.cache_clear()
    assert found == [("cupy", False, 1), ("numpy.linalg", True, 6), ("tensorgrad.api.creation", False, 2), ("tensorgrad.core.dispatch", True, 5),
                     ("tensorgrad.nn", False, 3)]
    assert rank("api.creation") > rank("ops.made_up") < rank("nn")
