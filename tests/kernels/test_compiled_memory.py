"""The memory of large arrays (native/memory.c): kept when it is freed, given back, right in every way that NumPy asks
for it.
"""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from support import fresh_process

import tensorgrad as torch
import tensorgrad.runtime.native as home
from tensorgrad.runtime.native import native
from tensorgrad.runtime.numpy_state import Region

pytestmark = pytest.mark.skipif(native is None or os.environ.get("TENSORGRAD_MEMORY") == "system",
                                reason="memory is NumPy's own")
MEGABYTE = 1 << 20


def handler():
    return np._core._multiarray_umath.get_handler_name()


@pytest.fixture(autouse=True)
def region():
    """Where NumPy has this memory."""
    with Region():
        yield


def test_arrays_of_a_region_have_it_and_their_memory_is_used_again():
    assert handler() == "tensorgrad"
    home.empty_memory()
    a = np.ones(MEGABYTE, np.uint8)
    where, (live, _, _) = a.ctypes.data, native.memory_use()
    assert where % 64 == 0 and live >= MEGABYTE
    del a
    assert native.memory_use()[1] >= MEGABYTE
    b = np.zeros(MEGABYTE, np.uint8)
    assert b.ctypes.data == where and not b.any()
    del b
    assert home.empty_memory() >= MEGABYTE and native.memory_use()[1] == 0


def test_no_more_is_kept_than_was_needed_at_once():
    home.empty_memory()
    start = native.memory_use()[0]
    for size in range(1, 200):
        np.empty(size * 100_003, np.uint8)
    live, kept, peak = native.memory_use()
    assert live == start and kept <= peak + peak // 8 + 8 * MEGABYTE


def test_a_larger_block_serves_before_anything_is_given_back():
    """Sizes that come again and again in one order, each larger than a sixteenth of the largest: their memory is asked
    for once.
    """
    home.empty_memory()
    sizes = [8 * MEGABYTE, 3 * MEGABYTE, MEGABYTE, 5 * MEGABYTE, 2 * MEGABYTE, 6 * MEGABYTE] * 3

    def addresses():
        found = set()
        for size in sizes:
            a, b = np.empty(size, np.uint8), np.empty(size // 2 + 1, np.uint8)
            found |= {a.ctypes.data, b.ctypes.data}
        return found
    for _ in range(20):
        addresses()
    assert addresses() == addresses()


def test_a_convolution_borrows_what_it_copies_to():
    """The copy of its source with zeros around is there for the call alone; then its memory is for others, such as the
    next convolution.
    """
    x, w = torch.randn(32, 8, 28, 28), torch.randn(16, 8, 3, 3)
    home.empty_memory()
    start = native.memory_use()[0]
    torch.nn.functional.conv2d(x, w, padding=2)
    live, kept, peak = native.memory_use()
    assert live == start and kept == peak - start >= 32 * 4 * (8 * 28 * 28 + 16 * 30 * 30)
    torch.nn.functional.conv2d(x, w, padding=2)
    assert native.memory_use() == (live, kept, peak)


def test_where_memory_is_the_systems_it_is_so_for_convolutions():
    program = ("import tensorgrad as t; from tensorgrad.runtime.native import native; t.conv2d(t.ones(32, 8, 28, 28), "
               "t.ones(16, 8, 3, 3), padding=2); ")
    assert fresh_process(program + "print(native.memory_use())", TENSORGRAD_MEMORY="system") == "(0, 0, 0)\n"


@pytest.mark.parametrize("sizes", [(10, 100_000, 10, 300_000, 200_000, 5, 1_000_000),
                                   (70_000, 70_001, 140_000, 0, 100_000)])
def test_resized_arrays_keep_their_elements(sizes):
    a = np.arange(sizes[0], dtype=float)
    for before, after in zip(sizes, sizes[1:]):
        a.resize(after, refcheck=False)
        n = min(before, after, *sizes)
        assert a.size == after and np.array_equal(a[:n], np.arange(n)) and not a[before:].any()


def test_arrays_that_numpy_grows():
    assert np.array_equal(np.fromiter(range(300_000), np.int64), np.arange(300_000))
    assert np.array_equal(np.array([str(i) for i in range(20_000)])[[0, -1]], ["0", "19999"])


def test_memory_of_other_handlers_is_freed_where_it_came_from():
    made = []
    # a new thread begins with NumPy's own
    worker = threading.Thread(target=lambda: made.append((handler(), np.ones(MEGABYTE))))
    worker.start()
    worker.join()
    live = native.memory_use()[0]
    assert made[0][0] == "default_allocator"
    made.clear()
    assert native.memory_use()[0] == live


def test_threads_take_and_free_at_once():
    wrong = []

    def work(number):
        draw = np.random.default_rng(number)
        for _ in range(200):
            with Region():
                a = np.full(int(draw.integers(20_000, 200_000)), number, np.float32)
            if not (a == number).all():
                wrong.append(number)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def run(code, **variables):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True,
                          env={**os.environ, **variables}, timeout=60)


def test_what_is_too_much_of_a_larger_block_is_given_back():
    """Run in a new process, in which nothing has been missed before."""
    code = """
import numpy as np, tensorgrad
from tensorgrad.runtime.native import native
from tensorgrad.runtime.numpy_state import Region
MEGABYTE = 1 << 20
Region().__enter__()
start = native.memory_use()[0]
where = np.ones(8 * MEGABYTE, np.uint8).ctypes.data
a = np.ones(2 * MEGABYTE, np.uint8)
live, kept, peak = native.memory_use()
assert a.ctypes.data == where and 2 * MEGABYTE <= live - start < 3 * MEGABYTE and not kept and peak - start >= 8 * MEGABYTE
b = np.zeros(6 * MEGABYTE, np.uint8)
assert a.all() and not b.any()
"""  # noqa: E501
    done = run(code)
    assert not done.returncode, done.stderr


def test_arrays_outlive_the_interpreter_and_children_of_fork_go_on():
    code = """
import os, sys, numpy as np, tensorgrad
a = np.ones(1 << 20)
child = os.fork()
b = np.full(1 << 20, 2.0)
assert a.sum() + b.sum() == 3 << 20
if not child:
    del a
    os._exit(int(np.zeros(1 << 20).any()))
assert os.waitpid(child, 0)[1] == 0
sys.kept, np.kept = a, [b]
"""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_the_variable_switches_it_off():
    code = "import numpy, tensorgrad; print(numpy._core._multiarray_umath.get_handler_name())"
    assert run(code, TENSORGRAD_MEMORY="system").stdout.strip() == "default_allocator"
    assert "TENSORGRAD_MEMORY is 'x'" in run(code, TENSORGRAD_MEMORY="x").stderr


def test_tracemalloc_and_sizes_are_numpys():
    import tracemalloc
    tracemalloc.start()
    try:
        a = np.ones(MEGABYTE)
        assert sys.getsizeof(a) >= a.nbytes and tracemalloc.get_traced_memory()[0] >= a.nbytes
        del a
        assert tracemalloc.get_traced_memory()[0] < MEGABYTE
    finally:
        tracemalloc.stop()
