"""DOCS.md and the stub are up to date with the code, and every block of code in the documents runs."""
import ast
import functools
import re
import types

import pytest
from support import ROOT, fresh_process

import tensorgrad
from tensorgrad.docs.decisions import DECISIONS
from tensorgrad.docs.names import absent


def blocks(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def test_what_is_generated_is_up_to_date():
    fresh_process("from tensorgrad.docs import main\nassert main(['--check']) == 0, 'run python -m tensorgrad.docs'")


@pytest.mark.parametrize("name", ["README.md", "DOCS.md"])
def test_code_blocks_run_one_after_the_other(name):
    found = blocks(name)
    assert found, f"{name} shows no code"
    fresh_process("\n".join(found))


def test_the_stub_is_python_and_knows_every_public_method():
    tree = ast.parse((ROOT / "tensorgrad" / "_tensor" / "tensor.pyi").read_text(encoding="utf-8"))
    (stub,) = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    named = {n.name if isinstance(n, ast.FunctionDef) else n.target.id for n in stub.body}
    assert {n for n in dir(tensorgrad.Tensor) if not n.startswith("_")} <= named


def test_public_functions_say_what_they_do():
    silent = [name for name, f in tensorgrad.api.FUNCTIONS.items() if not (f.__doc__ or "").strip()]
    assert not silent


def test_modules_say_what_they_take_and_give():
    nn = tensorgrad.nn
    families = {"Module", "Container", "Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"}
    layers = {n: c for n, c in vars(nn).items() if isinstance(c, type) and issubclass(c, nn.Module) and n not in families}
    assert len(layers) > 140
    missing = {n: [b for b in ("Parameters:", "Input:", "Output:", "Weights:") if b not in (c.__doc__ or "")] for n, c in layers.items()}
    containers = {"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "DataParallel"}
    assert not {n: m for n, m in missing.items() if m and n not in containers}


# ── the list of what is not there ─────────────────────────────────────────────────────────────────────────────────────


NAMESPACES = ("", "Tensor", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations", "optim",
              "optim.lr_scheduler", "linalg", "fft", "special", "signal.windows", "distributions", "autograd.functional", "func", "cuda", "amp", "random")


def public_names(home):
    """Names of functions and classes that belong to PyTorch: those that it lists, or those that it defines."""
    listed = home.__all__ if hasattr(home, "__all__") and home.__name__ != "torch" else [n for n in dir(home) if not n.startswith("_")]
    return [n for n in listed if callable(value := getattr(home, n)) and not isinstance(value, types.ModuleType) and n != "Tensor"
            and str(getattr(value, "__module__", None) or "torch").startswith(("torch", "builtins"))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_names_of_pytorch_are_there_or_listed(namespace):
    torch = pytest.importorskip("torch")
    home, ours = (functools.reduce(getattr, filter(None, namespace.split(".")), library) for library in (torch, tensorgrad))
    missing = [f"{namespace}.{n}".lstrip(".") for n in public_names(home) if not hasattr(ours, n)]
    assert not [name for name in missing if absent(name) is None]


def test_names_that_are_there_are_not_listed_as_absent():
    torch = pytest.importorskip("torch")
    listed = [n for n in public_names(torch) if absent(n) and hasattr(tensorgrad, n)]
    assert not [n for n in listed if not n.endswith("Type")]


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_decisions_have_an_id_each():
    """A5, A86, A88 among them; no id is decided twice."""
    ids = [name for row in DECISIONS for name in re.findall(r"[AKSTX]\d+", row[0])]
    assert len(ids) == len(set(ids)) and {"A5", "A53", "A55", "A58", "A86", "A88"} <= set(ids)
    text = (ROOT / "DOCS.md").read_text(encoding="utf-8")
    assert all(f"| {row[0]} |" in text for row in DECISIONS)
