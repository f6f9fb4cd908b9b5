"""The device the tests run on, one thread for each of them, and nothing left behind.

    DEVICE=cpu     NumPy (the default)
    DEVICE=cuda    CuPy on a GPU; without one, two simulated devices whose arrays refuse to mix with host arrays
"""
import gc
import multiprocessing
import os
import random
import signal
import sys

import pytest
from support import CHOICES, DEVICE

collect_ignore = ["distributed/programs", "experiment/killed"]      # programs that tests run
# tests start hundreds of processes: the first writes the package's bytecode, and the others need not compile it
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure(config):
    # as a shell starts what runs in its background: tests and their processes are interrupted, too
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if DEVICE not in CHOICES:
        raise pytest.UsageError(f"DEVICE={DEVICE}: choose one of {', '.join(CHOICES)}")


def pytest_collection_modifyitems(items):
    """Run long tests first, so that no process waits for another's last test in the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish():
    """Leave the million objects of pytest and of modules out of collections, each of which would take half a second."""
    gc.collect()
    gc.freeze()


def pytest_report_header():
    simulated = os.environ.get("TENSORGRAD_SIMULATED_CUDA") and DEVICE == "cuda"
    return f"device: {DEVICE}{' (simulated)' if simulated else ''}"


@pytest.fixture
def device():
    """The device under test. New tensors are made there while the test runs."""
    import tensorgrad
    with tensorgrad.device(DEVICE) as chosen:
        yield chosen


@pytest.fixture
def threads(request):
    """Set the number of threads for a test: two, or its indirect parameter."""
    import tensorgrad
    before, number = tensorgrad.get_num_threads(), getattr(request, "param", 2)
    tensorgrad.set_num_threads(number)
    yield number
    tensorgrad.set_num_threads(before)


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """Modes and defaults that a test changes and does not restore would change what later tests see. And each test
    begins with the same random numbers, whichever tests its process has run before."""
    import numpy as np

    import tensorgrad
    from tensorgrad.api._arguments import WARNED
    from tensorgrad.core.mode import mode

    def state():
        defaults = tensorgrad.get_default_dtype(), tensorgrad.get_default_device()
        return mode.grad, mode.inference, mode.watching.anomaly, mode.watching.hooks, mode.batches, defaults
    before = state()
    WARNED.clear()
    random.seed(0), np.random.seed(0), tensorgrad.manual_seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(0)       # of the CPU alone, for `torch.manual_seed` is slow
    yield
    assert state() == before


@pytest.fixture
def forking():
    """While the test runs, processes begin as forks, in which functions run that cannot be pickled.

    From 3.14 on, that is not Python's default.
    """
    before = multiprocessing.get_start_method(allow_none=True)
    if "fork" in multiprocessing.get_all_start_methods():
        multiprocessing.set_start_method("fork", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)


@pytest.fixture
def two_devices(monkeypatch):
    """Two simulated CUDA devices, whatever the tests run on."""
    from support import has_gpu

    from tensorgrad.storage import Storage, cuda
    if DEVICE == "cuda" and has_gpu():
        pytest.skip("about simulated devices")
    before = dict(Storage.by_device)
    monkeypatch.setenv("TENSORGRAD_SIMULATED_CUDA", "2")
    cuda.device_count.cache_clear()
    yield
    Storage.by_device.clear()
    Storage.by_device.update(before)
    cuda.device_count.cache_clear()
