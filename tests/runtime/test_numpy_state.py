"""A good guest: whoever else is in the process finds NumPy, BLAS, the C library and Python as they left them, whatever
the package does.
"""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as torch
from tensorgrad.runtime import numpy_state
from tensorgrad.runtime.blas import open_blas
from tensorgrad.runtime.native import native

pytestmark = cpu_only

LOOK = """
import ctypes, gc, locale, signal, sys, threading, warnings
import numpy as np

def heap():
    "Whether the C library maps a block of 200 KB by itself, as it does until it is told otherwise."
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return None
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]
    library.mallinfo2.restype = Info
    library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    before = library.mallinfo2().hblks
    block = library.malloc(200 << 10)
    after = library.mallinfo2().hblks
    return after - before                 # not freed: that would move the threshold

def blas():
    from pathlib import Path
    for path in (Path(np.__path__[0]).parent / "numpy.libs").glob("*openblas*"):
        library = ctypes.CDLL(str(path))
        for name in ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads", "openblas_get_num_threads64_", "openblas_get_num_threads"):
            if hasattr(library, name):
                return getattr(library, name)(), getattr(library, "openblas_thread_timeout", int)()

def numpys():
    return {"errors": np.geterr(), "call": np.geterrcall(), "buffer": np.getbufsize(), "handler": np._core.multiarray.get_handler_name(),
            "of an array": np._core.multiarray.get_handler_name(np.empty(1 << 20)), "print": np.get_printoptions(), "BLAS": blas()}

def look():
    return {**numpys(), "heap": heap(), "signals": [signal.getsignal(s) for s in sorted(signal.valid_signals()) if s not in (9, 19)],
            "filters": list(warnings.filters), "locale": locale.setlocale(locale.LC_ALL), "recursion": sys.getrecursionlimit(),
            "switch": sys.getswitchinterval(), "gc": (gc.get_threshold(), gc.isenabled()), "excepthook": sys.excepthook,
            "trace": (sys.gettrace(), sys.getprofile()), "rounding": 0.1 + 0.2, "modules": [name for name in ("torch", "scipy") if name in sys.modules]}

def same(what, before, after):
    assert before == after, (what, {name: (before[name], after[name]) for name in before if before[name] != after[name]})
"""  # noqa: E501

PROGRAM = LOOK + """
CHOICES
before = look()
import tensorgrad as torch
import tensorgrad.nn.functional as F
same("import", before, look())

seen = []
def note(name):
    seen.append(name)
    same(name, {**before, "heap": 0}, {**look(), "heap": 0})

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        note("forward of a Function")
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        note("backward of a Function")
        return (g @ g.mT) @ g / 1e30

class Overrides(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        note("__torch_function__")
        return super().__torch_function__(function, types, args, kwargs)

torch.set_num_threads(2)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                            torch.nn.Linear(8 * 16 * 16, 300), torch.nn.Tanh(), torch.nn.Linear(300, 10))
model[1].register_forward_hook(lambda *_: note("hook of a module"))
model[5].register_full_backward_hook(lambda *_: note("backward hook of a module"))
model[7].weight.register_hook(lambda g: note("hook of a tensor"))
model[7].weight.register_post_accumulate_grad_hook(lambda p: note("hook after a gradient"))
optimizer = torch.optim.Adam(model.parameters())
optimizer.register_step_post_hook(lambda *_: note("hook of an optimizer"))

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        note("item of a data set")
        return torch.randn(3, 32, 32), i % 10

for x, y in torch.utils.data.DataLoader(Data(), batch_size=16):
    note("DataLoader")
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (note("pack"), t)[1], lambda t: (note("unpack"), t)[1]):
        kept = (model(x).exp() * 2).log()
    loss = F.cross_entropy(Own.apply(kept), y) + torch.linalg.svdvals(torch.randn(90, 90))[0] * 0
    note("forward")
    loss.backward()
    note("backward")
    optimizer.step()
    note("step")
torch.ones(3, 3).as_subclass(Overrides) / 0
torch.utils.checkpoint.checkpoint(lambda t: (note("recomputation"), t.exp())[1], torch.ones(3, requires_grad=True), use_reentrant=False).sum().backward()
torch.func.vmap(lambda t: (note("vmap"), t / 0)[1])(torch.ones(3, 2))
torch.autograd.gradcheck(lambda t: (note("gradcheck"), t * t)[1], torch.ones(3, dtype=torch.float64, requires_grad=True))
(torch.randn(200, 200).to(torch.complex64) @ torch.randn(200, 200).to(torch.complex64)).abs().sum()
repr(torch.tensor([1e300, float("inf")], dtype=torch.float64).float()), torch.tensor(1e300).half()
note("after all")
threading.Thread(target=lambda: ((torch.randn(300, 300, requires_grad=True) / 0).exp().sum().backward(), seen.append("thread"))).start()
for thread in threading.enumerate():
    if thread is not threading.current_thread() and not thread.daemon:
        thread.join()
note("end")
expected = '''hook of a module|backward hook of a module|hook of a tensor|hook after a gradient|hook of an optimizer|item of a data set|DataLoader|pack|unpack|
forward|backward|step|forward of a Function|backward of a Function|__torch_function__|recomputation|vmap|gradcheck|after all|thread|end'''
assert not (missing := {name.strip() for name in expected.split("|")} - {*seen}), missing
print("as found")
"""  # noqa: E501
CHOICES = ["", 'np.seterr(all="raise"); np.setbufsize(4096); sys.setrecursionlimit(1234)',
           'np.seterr(all="call"); np.seterrcall(print)']


def run(program, **variables):
    return subprocess.run([sys.executable, "-W", "error", "-W", "ignore:.*fork:DeprecationWarning", "-c", program],
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", **variables})


@pytest.mark.parametrize(("pure", "choice"), [*(("0", choice) for choice in CHOICES), ("1", CHOICES[1])])
def test_the_process_is_as_it_was_found(pure, choice):
    done = run(PROGRAM.replace("CHOICES", choice), TENSORGRAD_PURE=pure)
    assert done.stdout == "as found\n", done.stdout[-2000:] + done.stderr[-3000:]


def state():
    return np.geterr(), np.getbufsize(), np._core.multiarray.get_handler_name()


def test_errors_of_floating_point_are_silent_whatever_the_program_says_of_its_own():
    with np.errstate(all="raise"):
        assert ((torch.tensor([1.]) / 0).tolist() == [torch.inf] and (torch.tensor([1, 2]) / 0).tolist() == [torch.inf]
                * 2)
        assert (torch.tensor([-1.]).sqrt().isnan().all() and torch.tensor([1e30]).square().isinf().all()
                and torch.tensor(1e300).half().isinf())
        assert ((torch.tensor([1e-30]) * 1e-30).item() == 0
                and torch.tensor([1e300], dtype=torch.float64).float().isinf().all())
        x = torch.tensor([0., 1.], requires_grad=True)
        (x.log() * 0 + 1 / x).sum().backward()
        assert not x.grad.isfinite().all()
        y = torch.ones(3)
        y /= 0
        assert y.isinf().all()
        with pytest.raises(FloatingPointError):
            np.ones(1) / 0


def test_an_error_in_a_kernel_leaves_the_state_as_it_was():
    before = state()
    with pytest.raises(RuntimeError):
        torch.linalg.cholesky(-torch.eye(3))
    with pytest.raises(RuntimeError):
        torch.ones(3) + torch.ones(4)
    with pytest.raises(ZeroDivisionError):
        numpy_state.compute(lambda x: 1 / x, 0)
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).sum().backward()
    assert state() == before


def test_what_a_hook_changes_lasts():
    x, seen = torch.ones(3, requires_grad=True), []

    def hook(g):
        seen.append(np.geterr()["divide"])
        np.seterr(divide="raise")
    with np.errstate():
        for _ in range(2):
            y = x * 2
            y.register_hook(hook)
            x.register_hook(lambda g: seen.append(np.geterr()["divide"]))
            (y / 0).sum().backward()
            assert np.geterr()["divide"] == "raise"
    assert seen == ["warn", "raise", "raise", "raise", "raise"]


def test_a_backward_in_a_hook_is_a_region_of_its_own():
    x, seen = torch.ones(3, requires_grad=True), []

    def hook(g):
        with torch.enable_grad():
            (torch.ones(3, requires_grad=True) / 0).sum().backward()
        seen.append(state())
    x.register_hook(hook)
    before = state()
    (x / 0).sum().backward()
    assert seen == [before] == [state()]


@pytest.mark.skipif(open_blas() is None, reason="needs OpenBLAS")
@pytest.mark.skipif(native is None, reason="without compiled kernels products are BLAS's")
def test_blas_has_one_thread_in_regions_alone_in_all_of_them():
    blas, inside, free = open_blas(), threading.Event(), threading.Event()
    before = blas.get()
    blas.set(2)
    try:
        def other():
            with numpy_state.Region():
                inside.set()
                free.wait(60)
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(60)
        assert numpy_state.compute(blas.get) == 1
        assert blas.get() == 1
        with numpy_state.Region():
            free.set()
            thread.join()
            assert blas.get() == 1 and numpy_state.outside(blas.get) == 2
            assert blas.get() == 1
        assert blas.get() == 2
        # a choice that somebody makes meanwhile lasts
        assert numpy_state.compute(lambda: [blas.set(3)]) and blas.get() == 3
    finally:
        blas.set(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_a_region_ends_it_and_knows_of_no_other():
    program = LOOK + """
import os
import tensorgrad as torch
from tensorgrad.runtime import numpy_state
torch.set_num_threads(2)
before, inside, free = blas(), threading.Event(), threading.Event()
def other():
    with numpy_state.Region():
        inside.set()
        free.wait(60)
thread = threading.Thread(target=other)
thread.start()
assert inside.wait(60)
warnings.simplefilter("ignore", DeprecationWarning)
if not (child := os.fork()):
    assert blas() == before, blas()
    x = torch.randn(400, 400, requires_grad=True)
    (x @ x).exp().sum().backward()
    assert blas() == before and np.geterr()["divide"] == "warn"
    os._exit(0)
free.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0 and blas() == before
with numpy_state.Region():
    child = os.fork()
if not child:
    os._exit(0 if blas() == before and np.geterr()["divide"] == "warn" else 1)
assert os.waitpid(child, 0)[1] == 0
print("well")
"""
    done = run(program)
    assert done.stdout == "well\n", done.stderr
