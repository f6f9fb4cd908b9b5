"""Compiled kernels as a whole: switched on and off, for every set of instructions, and NumPy without them."""
import os
import shutil
import subprocess
import sys

import pytest
from sanitized import KERNEL_TESTS
from support import ROOT, cpu_only, fresh_process

import tensorgrad as tg
from tensorgrad.runtime.native import native

built = pytest.mark.skipif(native is None, reason="the kernels are not built")


OTHER_TESTS = ["tests/test_ops.py", "tests/nn/test_layers.py", "tests/nn/test_functional.py",
               "tests/kernels/test_attention.py", "tests/core/test_memory.py",
               "tests/optim/test_optimizers.py", "tests/kernels/test_compiled_indexing.py"]


def run_tests(*arguments, **environment):
    """These tests in a process with these variables."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-s", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"TENSORGRAD_KERNELS": ""} | environment,
                          capture_output=True, text=True)
    assert not done.returncode, done.stdout[-3000:] + done.stderr[:3000]
    return done.stdout


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
    program = ("import tensorgrad as t; x = t.ones(4, 1024).requires_grad_(); x.softmax(-1)[:, 3].sum().backward(); "
               "print(t.backends.compiled.is_enabled())")
    if kernels == "none of these":
        assert "it may be 'reference', 'numpy' or nothing" in fresh_process(program, fails=True,
                                                                            TENSORGRAD_KERNELS=kernels)
    else:
        assert fresh_process(program, TENSORGRAD_KERNELS=kernels) == "False\n"


@cpu_only
@built
def test_a_broken_library_is_left_out(tmp_path):
    package = tmp_path / "tensorgrad"
    shutil.copytree(ROOT / "tensorgrad", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    (package / "_compiled.abi3.so").write_bytes(b"no library")
    program = ("import tensorgrad as t; print(t.__file__, t.backends.compiled.is_available(), (t.eye(64) @ "
               "t.eye(64)).trace())")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert done.stdout.split() == [str(package / "__init__.py"), "False", "tensor(64.)"]


@pytest.mark.long
@cpu_only
@built
@pytest.mark.parametrize("instructions", ["AVX2", "baseline"])
def test_other_instructions_give_the_same_results(instructions):
    if instructions != fresh_process("from tensorgrad.runtime.native import native; print(native.instructions)",
                                     TENSORGRAD_INSTRUCTIONS=instructions).strip():
        pytest.skip(f"this processor has no {instructions}")
    assert " passed" in run_tests(*KERNEL_TESTS, TENSORGRAD_INSTRUCTIONS=instructions)


@pytest.mark.long
@cpu_only
@pytest.mark.skipif(not tg.backends.compiled.is_enabled(), reason="all tests run without the compiled kernels")
def test_numpy_alone():
    assert " passed" in run_tests(*OTHER_TESTS, TENSORGRAD_KERNELS="numpy")


@cpu_only
@built
def test_unknown_instructions():
    assert "it may be 'AVX-512', 'AVX2', 'baseline' or nothing" in fresh_process("import tensorgrad", fails=True,
                                                                                 TENSORGRAD_INSTRUCTIONS="AVX-1024")


def test_without_the_compiled_part_nothing_asks_for_it():
    """The modules of compiled kernels may be imported, and are no examples to run."""
    assert " passed" in run_tests("tensorgrad/kernels", "tests/optim/test_optimizers.py", TENSORGRAD_PURE="1")
    program = ("import tensorgrad.kernels.optimizer_compiled, tensorgrad as t; w = t.ones(2, requires_grad=True); "
               "w.sum().backward(); ")
    assert (fresh_process(program + "t.optim.SGD([w], 1.0).step(); print(w.tolist())", TENSORGRAD_PURE="1")
            == "[0.0, 0.0]\n")
