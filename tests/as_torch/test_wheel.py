"""as_torch.wheel: the wheel without code that satisfies packages which demand torch."""
import subprocess
import sys

import pytest
from support import ROOT

from tensorgrad.as_torch.wheel import write_wheel
from tensorgrad.version import __version__

PROGRAM = """
import importlib.metadata, importlib.util
print(importlib.metadata.version("torch"), importlib.util.find_spec("torch"))
"""


def test_pip_takes_it_for_torch(tmp_path):
    """pip installs the wheel, which meets a demand for a version of torch and brings no module."""
    pytest.importorskip("pip")
    wheel, site = write_wheel(tmp_path / "new" / "wheels"), tmp_path / "site"
    assert wheel.name == f"torch-{__version__}-py3-none-any.whl" and wheel.stat().st_size < 2000
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--find-links",
           str(wheel.parent), "--target", str(site)]
    subprocess.run([*pip, "torch>=2.4,<3,==2.13.0"], check=True, capture_output=True)
    assert not [path for path in site.rglob("*.py")]
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(site)!r}){PROGRAM}"],
                          capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(__version__), "None"]


def test_the_command(tmp_path):
    command = [sys.executable, "-m", "tensorgrad.as_torch.wheel"]
    done = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [done.stdout.strip()] == list(map(str, tmp_path.iterdir()))
    for wrong in ([], ["--help"]):
        assert b"usage" in subprocess.run([*command, *wrong], cwd=ROOT, capture_output=True).stderr
