"""How the package is built: imports point down, optional packages stay optional, files and classes stay small."""
import ast
import json
import sys
from pathlib import Path

import pytest
from support import ROOT, fresh_process

from tensorgrad.docs.layers import MODULES, PACKAGE, RANK, imports, inner, rank, syntax, within
from tensorgrad.runtime.collecting import Paused


@pytest.fixture(scope="module", autouse=True)
def syntax_trees():
    """Read all syntax trees without collections, which would take most of the time; drop the trees in the end."""
    with Paused():
        yield
    syntax.cache_clear()


# Imports inside a function that reach up, and why they may. The list may only become shorter: an entry that no import
# needs any more is an error.
UPWARD = {
    ("_C", "nn"): "the arguments of Module.to",
    ("viz.__main__", "__main__"): "the command that draws a program runs it as `python -m tensorgrad` does",
    ("api", "array_api"): "the namespace that a tensor names as its own",
    ("api.conversion", "multiprocessing"): "moving a tensor to memory that processes share",
    ("utils.data.distributed", "distributed"): "the processes among which samples are shared out",
    ("utils.collect_env", "__init__"): "the package's version",
    ("utils._selective_checkpoint", "_ops"): "functions by the names that torch.ops gives them",
    ("api", "nn"): "torch.f where the function lives in nn.functional",
    ("core.engine", "interpret.batching"): "grad(is_grads_batched=True) is a vmap",
    ("graph.checking", "nn"): "what a node of the kind call_module must name",
}
UPWARD_TODAY = 10

# Modules that need each other, each once imports inside of functions are counted. These may only become fewer and
# smaller.
CIRCLES = {frozenset(names.split()) for names in (
    "layers.base layers.graph_spec layers.spec symbolic.exporting symbolic.model",
    "experiment.module experiment.optimization experiment.resuming",
    "experiment.trainer_calls experiment.trainer",
    "experiment.show.several experiment.sweeps",
    "symbolic.data symbolic.tracing",
    "symbolic.drawing symbolic.graph_algorithms")}
LOADED_LATER = ("nn optim distributions func utils viz linalg fft special cuda symbolic layers experiment "
                "serialization testing".split())


# ── imports ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_module_has_a_layer_and_every_layer_modules():
    assert not [module for module in MODULES if rank(module) is None]
    assert not [name for name in RANK if not any(within(module, name) for module in MODULES)]
    unnamed = [module for module in MODULES if module not in RANK
               and module.partition(".")[0] in ("storage", "ops", "core", "interpret")]
    assert not unnamed, "each module of the core has a place of its own in tensorgrad/docs/layers.py"


def exception_for(module, target):
    """The entry of UPWARD that explains an import, or None."""
    return next(((who, whom) for who, whom in UPWARD if within(module, who) and within(target, whom)), None)


def upward(module):
    """(target, whether it is inside a function, line) of each import from a higher layer."""
    for name, inside, line in imports(MODULES[module]):
        target = inner(name)
        if target is not None and rank(target) > rank(module):
            yield target, inside, line


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module):
    for target, inside, line in upward(module):
        place = f"{MODULES[module].relative_to(ROOT)}:{line}"
        assert inside and exception_for(module, target), f"{place} imports {target}, which lies above it"


def test_exceptions_become_fewer():
    needed = {exception_for(module, target) for module in MODULES for target, _, _ in upward(module)}
    assert not set(UPWARD) - needed, "no import needs these entries of UPWARD any more"
    assert len(UPWARD) == UPWARD_TODAY, "there is a new entry; or one less, then make UPWARD_TODAY smaller"


def edges(lazy):
    """{module: the modules of the package that it imports}, with those inside of functions if `lazy`."""
    return {module: {target for name, inside, _ in imports(path) if (lazy or not inside)
                     and (target := inner(name)) in MODULES}
            for module, path in MODULES.items()}


def circles(graph):
    """The sets of modules of which each imports each other, directly or not.

    S. R. Kosaraju's way: see where one comes from, then who comes there.
    """
    def walk(start, graph, seen, order):
        waiting = [(start, iter(graph[start]))]
        seen.add(start)
        while waiting:
            node, rest = waiting[-1]
            for other in rest:
                if other not in seen:
                    seen.add(other)
                    waiting.append((other, iter(graph[other])))
                    break
            else:
                order.append(node)
                waiting.pop()
    order, seen = [], set()
    for node in graph:
        if node not in seen:
            walk(node, graph, seen, order)
    back = {node: {other for other in graph if node in graph[other]} for node in graph}
    found, seen = set(), set()
    for node in reversed(order):
        if node not in seen:
            walk(node, back, seen, circle := [])
            found |= {frozenset(circle)} if len(circle) > 1 else set()
    return found


def test_no_circle_of_imports_at_load_time():
    assert circles(edges(lazy=False)) == set()


def test_circles_of_all_imports_become_fewer():
    """None is new or larger than it was, and none that is gone or smaller stays in the list."""
    assert circles(edges(lazy=True)) == CIRCLES


def test_nothing_imports_what_was_removed_from_pytorch():
    outside = [module for module in MODULES if not within(module, "legacy")]
    assert (len(outside) < len(MODULES) and not [m for m in outside
                                                 if any(within(inner(name) or "", "legacy")
                                                        for name, _, _ in imports(MODULES[m]))])


# ── who defines what ──────────────────────────────────────────────────────────────────────────────────────────────────


def at_load_time(node):
    """The statements of a module that run when it is imported, but for the bodies of classes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child
            yield from at_load_time(child)
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from at_load_time(child)


def root_of(node):
    """The name that an expression such as `name.a[0].b()` begins with, or None."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def names_in(target):
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def targets(statement):
    """Yield the targets that a statement assigns to, deletes, or sets by `setattr`."""
    found = statement.targets if isinstance(statement, (ast.Assign, ast.Delete)) else \
        [statement.target] if isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For)) else []
    for target in found:
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    if (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
            and getattr(statement.value.func, "id", "") in ("setattr", "delattr")):
        yield ast.Attribute(statement.value.args[0], ast.unparse(statement.value.args[1]))


def patches(path):
    """(line, expression) of each attribute of another module's object that a module assigns when it is loaded."""
    foreign = set()
    for statement in at_load_time(syntax(path)):
        if isinstance(statement, ast.ImportFrom) and (statement.level or statement.module == "tensorgrad"):
            foreign |= {alias.asname or alias.name for alias in statement.names}
        elif isinstance(statement, ast.For) and root_of(statement.iter) in foreign:
            foreign |= names_in(statement.target)           # of OPS.values(), say
        elif (isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Name, ast.Attribute))
              and root_of(statement.value) in foreign):
            # another name for it
            foreign |= {name for target in statement.targets if isinstance(target, ast.Name)
                        for name in names_in(target)}
        for target in targets(statement):
            if isinstance(target, ast.Attribute) and root_of(target) in foreign:
                yield statement.lineno, ast.unparse(target)


def test_no_module_assigns_attributes_of_what_others_define():
    """The lower module declares a hook: a method to override, a table to register in.

    The API makes Tensor's public methods.
    """
    found = {f"{path.relative_to(ROOT)}:{line} {target}" for module, path in MODULES.items()
             for line, target in patches(path)
             if not (within(module, "api") and target.startswith("Tensor."))}
    assert not found


# ── packages from outside ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_package_is_never_imported_by_its_own_name():
    """Relative imports keep a copy of the package working under any name."""
    absolute = [f"{path.relative_to(ROOT)}:{node.lineno}" for path in MODULES.values()
                for node in ast.walk(syntax(path))
                if isinstance(node, ast.Import) and any(alias.name.partition(".")[0] == "tensorgrad"
                                                        for alias in node.names)
                or isinstance(node, ast.ImportFrom) and not node.level
                and node.module.partition(".")[0] == "tensorgrad"]
    assert not absolute


def outside(path):
    """The packages from outside that a file imports, and whether inside a function."""
    return {(name.partition(".")[0], inside) for name, inside, _ in imports(path)
            if inner(name) is None and name.partition(".")[0] not in sys.stdlib_module_names}


def test_only_numpy_is_imported_outright():
    required = {(str(path.relative_to(ROOT)), name) for path in MODULES.values()
                for name, inside in outside(path) if not inside and name != "numpy"}
    assert not required


def test_only_the_cuda_backend_imports_cupy():
    users = {str(path.relative_to(PACKAGE)) for path in MODULES.values() for name, _ in outside(path) if name == "cupy"}
    assert (users <= {"storage/cuda.py"} | {str(p.relative_to(PACKAGE))
                                            for p in (PACKAGE / "kernels").glob("*cuda*.py")} and users)


def test_formulas_know_nothing_of_tensors():
    """ops/ sees arrays through xp only; nn sees no arrays."""
    for module, path in MODULES.items():
        names = {name for name, _, _ in imports(path)}
        if within(module, "ops") and module != "ops.dispatch":
            assert not [n for n in names if inner(n)
                        and not (within(inner(n), "ops") or within(inner(n), "storage"))], module
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
    foreign = {name for name in packages - sys.stdlib_module_names - {"tensorgrad", "numpy"}
               if not name.startswith(("_", "site", "sitecustomize"))}
    assert not foreign
    assert threads == 1
    assert not [name for name in loaded if any(within(name, f"tensorgrad.{part}") for part in LOADED_LATER)]


def test_parts_are_loaded_when_they_are_used():
    parts = ["nn", "optim", "utils", "special", "cuda", "autograd.function", "autograd.graph", "const", "random",
             "storage", "dispatch"]
    program = (f"import tensorgrad; print(*[eval('tensorgrad.' + part).__name__.removeprefix('tensorgrad.') for part "
               f"in {parts}])")
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
"""  # noqa: E501
    assert fresh_process(program).strip() == "True"


# ── tests ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

BESIDE = {"campaign", "examples", "house", "packages"}    # folders of tests of what is no package of tensorgrad
# `python -m unittest discover tests` enters no folder
FOR_UNITTEST = {"test_nn.py", "test_ops.py", "test_optim.py", "test_train.py"}


def test_folders_of_tests_mirror_the_package():
    files = [path.relative_to(ROOT / "tests").parts for path in (ROOT / "tests").rglob("test_*.py")]
    assert {name for name, *rest in files if not rest} == FOR_UNITTEST, "the others are in the folder of what they test"
    assert not [names for names in files if len(names) > 1 and names[0] not in BESIDE
                and not (PACKAGE / names[0]).is_dir()]
    assert not [names for names in files if len(names) > 2]


# ── size ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_classes_are_short():
    long = {f"{path.relative_to(ROOT)}: "
            f"{node.name}": node.end_lineno - node.lineno + 1 for path in MODULES.values()
            for node in ast.walk(syntax(path))
            if isinstance(node, ast.ClassDef) and node.end_lineno - node.lineno >= 450}
    assert not long


def test_the_rules_are_seen_to_be_broken(monkeypatch):
    """The readers find imports and assignments of each kind."""
    def read(text, reader):
        monkeypatch.setattr(Path, "read_text", lambda self, encoding=None: text)
        syntax.cache_clear(), imports.cache_clear()
        try:
            return list(reader(PACKAGE / "ops" / "made_up.py"))
        finally:
            syntax.cache_clear(), imports.cache_clear()
    assert read("import cupy\nfrom ..api import creation\nfrom .. import nn\ndef f():\n    from ..core.dispatch import "
                "xp\n    import numpy.linalg\n",
                imports) == [
        ("cupy", False, 1), ("numpy.linalg", True, 6), ("tensorgrad.api.creation", False, 2),
        ("tensorgrad.core.dispatch", True, 5),
        ("tensorgrad.nn", False, 3)]
    assert (rank("api.creation") > rank("ops.made_up") < rank("nn") and rank("core.tape") < rank("core.dispatch")
            < rank("core.engine"))
    assert read("from .base import OPS, Node, table\nNode.pull, table[0] = 1, 2\nfor op in OPS.values():\n    if op:\n "
                "       op.pull = f\nsetattr(Node, 'x', 1)\nown = Node\nown.y = 2\ndef f():\n    Node.z = 3\n",
                patches) == [
        (2, "Node.pull"), (5, "op.pull"), (6, "Node.'x'"), (8, "own.y")]
    assert (circles({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a"}})
            == {frozenset("abc"), frozenset("de")})
