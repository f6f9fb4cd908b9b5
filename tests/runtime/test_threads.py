"""Threads that help the caller's: how soon those of BLAS sleep, and on which processors those of the native pool
run.
"""
import os
import subprocess
import sys

import pytest
from support import cpu_only

import tensorgrad as tg
from tensorgrad.runtime import blas, thread_pool
from tensorgrad.runtime.native import native

pytestmark = cpu_only


def run(code, **variables):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True,
                          env={**os.environ, **variables}, timeout=60)


# ── OpenBLAS ──────────────────────────────────────────────────────────────────────────────────────────────────────────


ASK = """
import os
import tensorgrad as torch
from tensorgrad.runtime.blas import open_blas, watches_long
blas = open_blas()
print(watches_long(), blas and getattr(blas.library, "openblas_thread_timeout", int)(), os.environ.get("OPENBLAS_THREAD_TIMEOUT"), end=" ")
torch.set_num_threads(2)
x = torch.arange(600. * 600).reshape(600, 600).double() % 7
y = x @ x
print(torch.equal(y, torch.tensor(x.numpy().astype(int) @ x.numpy().astype(int)).double()), torch.get_num_threads())
"""  # noqa: E501
shows_all = pytest.mark.skipif(not hasattr(blas.open_blas() and blas.open_blas().library, "openblas_thread_timeout"),
                               reason="NumPy's BLAS hides it")


@shows_all
@pytest.mark.parametrize("first", ["", "import numpy\n"])
@pytest.mark.parametrize("power, long", [("11", "False"), ("27", "True")])
def test_how_long_threads_of_blas_watch_is_the_programs_to_set(first, power, long):
    done = run(first + ASK, TENSORGRAD_KERNELS="numpy", OPENBLAS_THREAD_TIMEOUT=power)
    assert done.stdout.split() == [long, power, power, "True", "2"], done.stderr


@shows_all
@pytest.mark.parametrize("first, long, power", [("", "False", blas.WATCH), ("import numpy\n", "True", "0")])
def test_threads_of_a_blas_that_is_loaded_with_the_package_sleep_soon(monkeypatch, first, long, power):
    monkeypatch.delenv(blas.TIMEOUT, raising=False)
    done = run(first + ASK, TENSORGRAD_KERNELS="numpy")
    assert done.stdout.split() == [long, power, "None", "True", "2"], done.stderr


def test_threads_of_ours_leave_the_processors_to_those_of_blas_that_do_not_sleep(monkeypatch, threads):
    monkeypatch.setattr(thread_pool, "native", None)
    monkeypatch.setattr(thread_pool, "watches_long", lambda: True)
    assert thread_pool.available(1e9) == 1
    monkeypatch.setattr(thread_pool, "watches_long", lambda: False)
    assert thread_pool.available(1e9) == (2 if thread_pool.can_start() else 1)


def test_show_config_names_the_blas(monkeypatch):
    monkeypatch.setattr(blas, "open_blas", lambda: blas.OpenBlas(None, lambda n: None, lambda: 1, "Haswell"))
    assert "BLAS: OpenBLAS for Haswell" in tg.__config__.show()
    monkeypatch.setattr(blas, "open_blas", lambda: None)
    assert "BLAS: not OpenBLAS" in tg.__config__.show()


def test_without_a_way_to_reach_it_blas_is_left_alone():
    done = run("import sys; sys.modules['ctypes'] = None; import tensorgrad as t; t.set_num_threads(1); "
               "print(t.ones(2).sum().item(), t.__config__.show())")
    assert done.stdout.startswith("2.0") and "BLAS: not OpenBLAS" in done.stdout, done.stderr


# ── affinity of the native pool ───────────────────────────────────────────────────────────────────────────────────────


PLACES = """
import os, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)         # fork beside threads
import tensorgrad as torch
before = os.sched_getaffinity(0)
main = threading.get_native_id()
torch.set_num_threads(2)
def check():
    for _ in range(50):                     # the system may move this thread while it looks
        x = torch.ones(512, 512)
        x @ x
        x.exp()
        tasks = {int(task): os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")}
        assert tasks.pop(main) == before, "the caller goes where the system likes"
        told = [may for may in tasks.values() if may < before]
        if told and all(len(before - may) == 1 for may in told):
            return True
    print(tasks, before)
check() and print("parent", end=" ", flush=True)
if not (child := os.fork()):
    main = threading.get_native_id()
    check() and print("child", end=" ", flush=True)
    os._exit(0)
os.waitpid(child, 0)
check() and print("again")
"""


@pytest.mark.skipif(native is None, reason="there are no compiled kernels")
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
                    reason="threads have no choice of where to run")
def test_helpers_of_compiled_loops_run_where_their_caller_does_not():
    """In both processes after a fork, too."""
    done = run(PLACES, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
    assert done.stdout.split() == ["parent", "child", "again"], done.stdout + done.stderr


def test_numbers_of_threads_fit_an_int():
    import tensorgrad
    before = tensorgrad.get_num_threads()
    for number, told in (1 << 31, "long$"), (-1 << 63, "long$"), (1 << 63, "long long$"):
        for setter in tensorgrad.set_num_threads, tensorgrad.set_num_interop_threads:
            with pytest.raises(ValueError, match=f"Overflow when unpacking {told}"):
                setter(number)
    assert tensorgrad.get_num_threads() == before
