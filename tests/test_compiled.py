"""Compiled kernels as a whole: built without warnings, switched on and off, right under the sanitizers."""
import os
import shutil
import subprocess
import sys

import pytest
from support import ROOT, cpu_only, fresh_process

import tensorgrad as tg
from tensorgrad._native import native

BUILD = ROOT / "native" / "build.py"
compiler = pytest.mark.skipif(shutil.which(os.environ.get("CC", "cc")) is None or os.name == "nt", reason="no C compiler")
built = pytest.mark.skipif(native is None, reason="the kernels are not built")


@cpu_only
@compiler
def test_the_kernels_compile_without_a_warning(tmp_path):
    done = subprocess.run([sys.executable, BUILD, tmp_path, "-Werror"], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["_compiled.abi3.so"]


@cpu_only
@built
def test_they_can_be_switched_off():
    x = tg.randn(64, 512)
    ours = x.softmax(-1)
    assert tg.backends.compiled.is_available() and tg.backends.compiled.is_enabled()
    with tg.backends.compiled.flags(enabled=False):
        assert not tg.backends.compiled.is_enabled() and "not in use" in tg.__config__.show()
        tg.testing.assert_close(x.softmax(-1), ours)
    assert tg.backends.compiled.is_enabled() and native.instructions in tg.__config__.show()
    assert tg.equal(x.softmax(-1), ours)


@cpu_only
@pytest.mark.parametrize("kernels", ["numpy", "reference", "none of these"])
def test_the_environment_chooses(kernels):
    program = "import tensorgrad as t; x = t.ones(4, 1024).requires_grad_(); x.softmax(-1)[:, 3].sum().backward(); print(t.backends.compiled.is_enabled())"
    if kernels == "none of these":
        assert "it may be 'reference', 'numpy' or nothing" in fresh_process(program, fails=True, TENSORGRAD_KERNELS=kernels)
    else:
        assert fresh_process(program, TENSORGRAD_KERNELS=kernels) == "False\n"


@cpu_only
@built
def test_a_broken_library_is_left_out(tmp_path):
    package = tmp_path / "tensorgrad"
    shutil.copytree(ROOT / "tensorgrad", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    (package / "_compiled.abi3.so").write_bytes(b"no library")
    program = "import tensorgrad as t; print(t.__file__, t.backends.compiled.is_available(), (t.eye(64) @ t.eye(64)).trace())"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert done.stdout.split() == [str(package / "__init__.py"), "False", "tensor(64.)"]
