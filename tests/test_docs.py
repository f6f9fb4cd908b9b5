"""DOCS.md and the stub are what the code says, and every block of code in the documents runs."""
import ast
import re

import pytest
from support import ROOT, fresh_process

import tensorgrad


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
    tree = ast.parse((ROOT / "tensorgrad" / "_tensor.pyi").read_text(encoding="utf-8"))
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
