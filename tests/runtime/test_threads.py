"""Threads that help the caller's: how soon those of BLAS sleep, and on which processors all of them run."""
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from support import cpu_only

import tensorgrad as tg
from tensorgrad.runtime import affinity, blas, thread_pool
from tensorgrad.runtime.native import native

pytestmark = cpu_only


def run(code, **variables):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env={**os.environ, **variables}, timeout=60)


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
"""
shows_all = pytest.mark.skipif(not hasattr(blas.open_blas() and blas.open_blas().library, "openblas_thread_timeout"), reason="NumPy's BLAS hides it")


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
    done = run("import sys; sys.modules['ctypes'] = None; import tensorgrad as t; t.set_num_threads(1); print(t.ones(2).sum().item(), t.__config__.show())")
    assert done.stdout.startswith("2.0") and "BLAS: not OpenBLAS" in done.stdout, done.stderr


# ── affinity ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def told(monkeypatch):
    """Helpers of a caller on a processor: set `here`, `allowed` and `count`, call `keep_off()`, and read the result
    in `places`."""
    told = SimpleNamespace(here=0, allowed={0, 1, 2}, count=2, places=[])
    monkeypatch.setattr(affinity, "current", lambda: told.here)
    monkeypatch.setattr(os, "sched_getaffinity", lambda which: set(told.allowed), raising=False)
    told.keep_off = affinity.Helpers(lambda: told.count, lambda count, places: told.places.append(places)).keep_off
    return told


def test_helpers_are_told_when_their_caller_has_moved(told):
    told.keep_off()
    told.keep_off()
    assert told.places == [{1, 2}]
    told.here = 2
    told.keep_off()
    assert told.places == [{1, 2}, {0, 1}]


def test_helpers_are_told_anew_when_other_numbers_of_threads_are_wanted(told, threads):
    told.keep_off()
    tg.set_num_threads(3)
    told.keep_off()
    assert told.places == [{1, 2}, {1, 2}]


@pytest.mark.parametrize("allowed, count", [({0}, 1), ({0, 1}, 2), ({0, 1, 2}, 3)])
def test_helpers_for_whom_there_are_too_few_other_processors_run_on_all(told, allowed, count):
    told.allowed, told.count = allowed, count
    told.keep_off()
    assert told.places == [allowed]


def test_helpers_that_could_not_be_told_are_told_later(told):
    told.count = None
    told.keep_off()
    assert not told.places
    told.count = 1
    told.keep_off()
    told.keep_off()
    assert told.places == [{1, 2}]


PLACES = """
import os, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)         # fork beside threads
import tensorgrad as torch
from tensorgrad.runtime import native, thread_pool
before = os.sched_getaffinity(0)
main = threading.get_native_id()
torch.set_num_threads(2)
def check():
    for _ in range(50):                     # the system may move this thread while it looks
        x = torch.ones(512, 512)
        x @ x
        if native.native is None:
            thread_pool.WORTH = 1
            thread_pool.share(lambda part: None, range(2))
            thread_pool.share(lambda part: None, range(2))
        else:
            x.exp()
        tasks = {int(task): os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")}
        assert tasks.pop(main) == before, "the caller goes where the system likes"
        told = [may for may in tasks.values() if may < before]
        if len(told) >= EXPECTED and all(len(before - may) == 1 for may in told):
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
several = pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="threads have no choice of where to run")


@several
@pytest.mark.parametrize("pure", ["1", pytest.param("0", marks=pytest.mark.skipif(native is None, reason="there are no compiled kernels"))])
def test_helpers_run_where_their_caller_does_not(pure):
    """BLAS's and ours; those of the pool of compiled loops; and in both processes after a fork."""
    ours = 2 if getattr(blas.open_blas() and blas.open_blas().library, "openblas_setaffinity", None) else 1
    code = PLACES.replace("EXPECTED", str(ours if pure == "1" else 1))
    done = run(code, TENSORGRAD_PURE=pure, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
    assert done.stdout.split() == ["parent", "child", "again"], done.stdout + done.stderr
