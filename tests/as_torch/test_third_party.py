"""Packages that are Python over PyTorch, unchanged, with this package in PyTorch's place: their programs print what
they print with PyTorch.
"""
import importlib.util
import json
import os
import subprocess
import sys
from functools import cache

import pytest
from support import ROOT, cpu_only

from tests.as_torch.test_programs import NUMBER, numbers

FOLDER = ROOT / "tests" / "as_torch" / "third_party"
PACKAGES = {        # program: what it imports
    "averages_and_activations.py": "entmax opt_einsum pytorch_msssim torch_ema", "einops_layers.py": "einops",
    "event_files.py": "tensorboardX", "metrics.py": "torchmetrics", "model_summary.py": "torchinfo",
    "more_optimizers.py": "torch_optimizer",
    "neural_ode.py": "torchdiffeq",
    "safetensors_files.py": "safetensors",
}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}


def missing(program):
    return [name for name in ("torch", *PACKAGES[program].split()) if importlib.util.find_spec(name) is None]


def ran(*arguments):
    done = subprocess.run([sys.executable, *arguments], cwd=FOLDER, env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=120)
    assert not done.returncode, done.stderr
    return done.stdout


@cache
def printed_with_pytorch():
    return json.loads(ran(str(FOLDER.parent / "programs" / "_run_all.py"),
                          *(program for program in PACKAGES if not missing(program))))


@cpu_only
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the programs that run PyTorch are forked")
@pytest.mark.parametrize("program", PACKAGES)
def test_a_package_does_what_it_does_with_pytorch(program):
    if absent := missing(program):
        pytest.skip(f"not installed: {', '.join(absent)}")
    ours, theirs = (text.splitlines() for text in (ran("-m", "tensorgrad", program), printed_with_pytorch()[program]))
    assert len(theirs) >= 5
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        assert NUMBER.sub("#", one) == NUMBER.sub("#", other)
        assert numbers(one) == pytest.approx(numbers(other), rel=1e-3, abs=1e-4, nan_ok=True), (one, other)


def test_programs_are_all_listed_and_unchanged():
    assert sorted(PACKAGES) == sorted(path.name for path in FOLDER.glob("[a-z]*.py") if path.name != "conftest.py")
    for program in PACKAGES:
        text = (FOLDER / program).read_text(encoding="utf-8")
        assert "import torch" in text and "tensorgrad" not in text
