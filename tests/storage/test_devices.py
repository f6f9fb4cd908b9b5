"""Devices: CUDA as it is simulated, CUDA that is not there, and devices that a program brings itself."""
import math
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from support import DEVICE, fresh_process, has_gpu

import tensorgrad
from tensorgrad.core.dispatch import OpDispatch
from tensorgrad.storage import CudaStorage, Storage, stubs
from tensorgrad.storage import cuda as cuda_storage

REFUSED = pytest.mark.parametrize("where", ["cuda:0", "cuda:1"])


@pytest.fixture
def cuda(monkeypatch):
    """Two simulated devices, and the counts of what is moved to and from them."""
    from tensorgrad.storage.simulated import transfers
    if DEVICE == "cuda" and has_gpu():
        pytest.skip("about simulated devices")
    before = dict(Storage.by_device)
    monkeypatch.setenv("TENSORGRAD_SIMULATED_CUDA", "2")
    cuda_storage.device_count.cache_clear()
    yield transfers
    Storage.by_device.clear()
    Storage.by_device.update(before)
    cuda_storage.device_count.cache_clear()


# ── simulated CUDA ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tensors_go_to_a_device_and_come_back(cuda):
    x = tensorgrad.tensor([1., 2.])
    y = x.to("cuda")
    assert y.device == "cuda:0" == tensorgrad.device("cuda", 0) and y.is_cuda and not y.is_cpu and y.get_device() == 0
    assert x.cuda(1).device == "cuda:1" and y.to("cuda:1").device.index == 1 and y.cpu().tolist() == [1., 2.]
    assert y.to("cuda:0") is y and y.cuda() is y and y.to("cuda:0", copy=True) is not y and x.cpu() is x
    assert repr(y) == "tensor([1., 2.], device='cuda:0')"
    assert y.to("cpu", tensorgrad.float64).dtype == tensorgrad.float64
    assert y.type() == "torch.cuda.FloatTensor"


def test_what_is_computed_stays_on_the_device(cuda):
    x = tensorgrad.tensor([[1., 2.], [3., 4.]], device="cuda:1")
    made = [x + 1, x @ x, x.sum(), x.exp(), x > 2, x.argmax(), x.t(), x[0], x[[1, 0]], x[x > 1], x.double(),
            tensorgrad.zeros_like(x), x.new_ones(2), tensorgrad.cat([x, x]), x.max(0).values, x.sort().indices,
            x.mean(), x.clone(), x.detach(), 1 - x,
            tensorgrad.rand_like(x)]
    assert {str(t.device) for t in made} == {"cuda:1"}


def test_transfers_are_counted(cuda):
    cuda.update(to_device=0, to_host=0, between=0)
    x = tensorgrad.ones(4, device="cuda")
    w = tensorgrad.ones(4, device="cuda").requires_grad_()
    start = dict(cuda)
    ((x * w + 1).exp().sum() * 2).backward()
    assert cuda == start, "computing needs no transfer"
    x.tolist(), x.sum().item(), x.cpu(), x.to("cuda:1")
    assert cuda["to_host"] == start["to_host"] + 3 and cuda["between"] == start["between"] + 1


def on(where):
    """A tensor on a device, and one on the CPU."""
    return tensorgrad.ones(2, 2, device=where), tensorgrad.ones(2, 2)


MIXED = {
    "add": lambda c, h: c + h, "reflected": lambda c, h: h - c, "matmul": lambda c, h: c @ h,
    "where": lambda c, h: tensorgrad.where(c > 0, c, h),
    "cat": lambda c, h: tensorgrad.cat([h, c]), "stack": lambda c, h: tensorgrad.stack([c, h]),
    "compare": lambda c, h: c == h,
    "in place": lambda c, h: c.add_(h), "maximum": lambda c, h: tensorgrad.maximum(c, h),
    "mask": lambda c, h: c.masked_fill(h > 0, 1.),
    "lerp": lambda c, h: tensorgrad.lerp(c, c, h),
}


@REFUSED
@pytest.mark.parametrize("name", MIXED)
def test_tensors_of_different_devices_do_not_mix(cuda, where, name):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two "
                                           "devices, c") as error:
        MIXED[name](*on(where))
    assert "cpu" in str(error.value) and where in str(error.value)


def test_meta_tensors_do_not_mix_with_others():
    real, meta = tensorgrad.ones(2), tensorgrad.ones(2, device="meta")
    for call, told in ((lambda: real + meta, "meta is not on the expected device cpu!"),
                       (lambda: tensorgrad.cat([meta, real]), "cpu is not on the expected device meta!")):
        with pytest.raises(RuntimeError, match=f"^Tensor on device {told}"):
            call()


def test_tensors_of_two_cuda_devices_do_not_mix(cuda):
    a, b = tensorgrad.ones(2, device="cuda:0"), tensorgrad.ones(2, device="cuda:1")
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cuda:1!"):
        a + b
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cuda:1!"):
        a * b.sum()


def test_numbers_on_the_cpu_go_along(cuda):
    c, s = tensorgrad.tensor([1., 2.], device="cuda:1", requires_grad=True), tensorgrad.tensor(3., requires_grad=True)
    y = c * s + s - tensorgrad.tensor(1)
    assert y.device == "cuda:1" and (s * c).device == "cuda:1"
    y.sum().backward()
    assert c.grad.tolist() == [3., 3.] and c.grad.device == "cuda:1"
    assert s.grad.item() == 5. and s.grad.device == "cpu"
    assert (c > tensorgrad.tensor(1.5)).tolist() == [False, True]


def test_gradients_of_numbers_that_went_along_can_be_differentiated(cuda):
    c, s = tensorgrad.tensor([1., 2.], device="cuda"), tensorgrad.tensor(3., requires_grad=True)
    g, = tensorgrad.autograd.grad((c * s * s).sum(), s, create_graph=True)
    assert g.device == "cpu" and g.item() == 18.
    assert tensorgrad.autograd.grad(g, s)[0].item() == 6.


def test_gradients_cross_devices(cuda):
    x = tensorgrad.tensor([1., 2.], requires_grad=True)
    h = (x * 2).to("cuda:0")
    k = (h * h).to("cuda:1")
    (k * 3).cpu().sum().backward()
    assert x.grad.tolist() == [24., 48.] and x.grad.device == "cpu"
    g, = tensorgrad.autograd.grad(((x * x).to("cuda:0") * 2).sum(), x, create_graph=True)
    assert tensorgrad.autograd.grad(g.sum(), x)[0].tolist() == [4., 4.]


def test_an_upstream_gradient_from_elsewhere_is_refused(cuda):
    x = tensorgrad.ones(2, device="cuda").requires_grad_()
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cuda:0 but got cpu"):
        (x * 2).backward(tensorgrad.ones(2))
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with device type 'cpu' to a tensor with "
                                           "device type 'cuda'"):
        x.grad = tensorgrad.ones(2)


def test_hooks_see_tensors_of_the_right_device(cuda):
    x, seen = tensorgrad.ones(2).requires_grad_(), []
    y = x.to("cuda")
    y.register_hook(lambda g: seen.append(g.device))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.extend([inputs[0].device, outputs[0].device]))
    y.sum().backward()
    assert seen == ["cuda:0", "cpu", "cuda:0"]


def test_indices_from_the_cpu_may_be_used_on_a_device(cuda):
    c = tensorgrad.tensor([1., 2., 3.], device="cuda")
    i = tensorgrad.tensor([2, 0])
    assert c[i].tolist() == [3., 1.] and c[i].device == "cuda:0"
    assert c[tensorgrad.tensor([True, False, True])].tolist() == [1., 3.]
    c[i] = 0.
    c[tensorgrad.tensor([1])] = tensorgrad.tensor(5.)
    assert c.tolist() == [0., 5., 0.]
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device as the indexed "
                                           "tensor"):
        tensorgrad.ones(3)[i.cuda()]


def test_copies_cross_devices(cuda):
    c = tensorgrad.zeros(2, device="cuda")
    c.copy_(tensorgrad.tensor([1., 2.]))
    h = tensorgrad.zeros(2)
    h.copy_(c)
    assert c.tolist() == h.tolist() == [1., 2.] and c.device == "cuda:0"
    c.data = tensorgrad.ones(3, device="cuda")
    assert c.shape == (3,)


def test_host_arrays_are_refused(cuda):
    c = tensorgrad.ones(2, device="cuda")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()"):
        c.numpy()
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        np.asarray(c)
    assert c.numpy(force=True).tolist() == [1., 1.]
    with pytest.raises(TypeError, match="host arrays do not mix"):
        c.array + np.ones(2)
    with pytest.raises(TypeError, match="do not mix"):
        c.array + tensorgrad.ones(2, device="cuda:1").array
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(c.array)


def test_the_default_device(cuda):
    with tensorgrad.device("cuda:1"):
        assert tensorgrad.ones(2).device == tensorgrad.tensor([1.]).device == tensorgrad.arange(3).device == "cuda:1"
        assert tensorgrad.randn(2).device == "cuda:1" and tensorgrad.ones(2, device="cpu").device == "cpu"
        with tensorgrad.device("cpu"):
            assert tensorgrad.ones(2).device == "cpu"
        assert tensorgrad.get_default_device() == "cuda:1"
    assert tensorgrad.ones(2).device == "cpu"
    tensorgrad.set_default_device("cuda")
    try:
        assert tensorgrad.ones(2).device == "cuda:0"
    finally:
        tensorgrad.set_default_device(None)
    assert tensorgrad.get_default_device() == "cpu"


def test_the_default_device_of_a_block_is_a_threads_own(cuda):
    found = []
    with tensorgrad.device("cuda"):
        thread = threading.Thread(target=lambda: found.append(tensorgrad.ones(1).device))
        thread.start()
        thread.join()
    assert found == ["cpu"]


def test_a_device_decorates(cuda):
    @tensorgrad.device("cuda:1")
    def make():
        return tensorgrad.zeros(2)
    assert make().device == "cuda:1" and tensorgrad.zeros(1).device == "cpu"


def test_the_current_device(cuda):
    with tensorgrad.cuda.device(1):
        assert tensorgrad.ones(1, device="cuda").device == "cuda:1" and tensorgrad.cuda.current_device() == 1
    assert (tensorgrad.ones(1, device="cuda").device == "cuda:0" and tensorgrad.cuda.device_count() == 2
            and tensorgrad.cuda.is_available())


def test_devices_that_there_are_not(cuda):
    with pytest.raises(RuntimeError, match="CUDA error: invalid device ordinal"):
        tensorgrad.ones(1, device="cuda:2")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda, .* device type at start of device string: foo"):
        tensorgrad.ones(1, device="foo")
    with pytest.raises(RuntimeError, match="Invalid device string: 'cuda:x'"):
        tensorgrad.device("cuda:x")


def test_views_and_writes_on_a_device(cuda):
    x = tensorgrad.zeros(2, 3, device="cuda")
    v = x[0]
    v.add_(1)
    x.t()[2] = 7.
    assert x.tolist() == [[1., 1., 7.], [0., 0., 7.]] and v.data_ptr() == x.data_ptr() and x[1].storage_offset() == 3
    a = tensorgrad.ones(2, device="cuda").requires_grad_()
    h = a * 2
    h[0].mul_(5)
    h.sum().backward()
    assert a.grad.tolist() == [10., 2.]


def test_a_kernel_for_cuda_serves_all_cuda_devices_and_no_other(cuda):
    calls = []

    def exp(x):
        calls.append(x.index)
        return x * 0 + 5
    with OpDispatch.override("exp", "cuda", exp):
        assert (tensorgrad.ones(1, device="cuda:0").exp().item() == 5.
                == tensorgrad.ones(1, device="cuda:1").exp().item())
        assert tensorgrad.ones(1).exp().item() == pytest.approx(math.e)
    assert calls == [0, 1] and tensorgrad.ones(1, device="cuda:0").exp().item() == pytest.approx(math.e)


def test_two_simulated_devices_in_a_process_of_their_own():
    program = "import tensorgrad as t; print(t.cuda.device_count(), (t.ones(2).cuda(1) * 2).sum().item())"
    assert fresh_process(program, TENSORGRAD_SIMULATED_CUDA="2").split() == ["2", "4.0"]


# ── CUDA that is not there ────────────────────────────────────────────────────────────────────────────────────────────

WITHOUT_CUPY = "import sys; sys.modules['cupy'] = None; import tensorgrad as t; "


@pytest.mark.parametrize("use", ["t.ones(1).cuda()", "t.zeros(1, device='cuda')", "t.ones(1).to('cuda:1')",
                                 "t.nn.Linear(1, 1).cuda()"])
def test_cuda_without_cupy_says_what_to_install(use):
    error = fresh_process(WITHOUT_CUPY + use, fails=True)
    assert "MissingCuda: CUDA tensors need CuPy" in error and "pip install cupy-cuda13x (the extra [cuda13])" in error


def test_cuda_without_cupy_is_not_available():
    assert fresh_process(WITHOUT_CUPY
                         + "print(t.cuda.is_available(), t.cuda.device_count(), t.device('cuda'))").split() == ["False",
                                                                                                                "0",
                                                                                                                "cuda"]


def test_cupy_without_a_gpu_says_so():
    """A CuPy that finds no device raises when it is asked for their number."""
    program = ("import sys, types; cupy = types.ModuleType('cupy'); cupy.cuda = "
               "types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=lambda: 1 / 0)); "
               "sys.modules['cupy'] = cupy; import tensorgrad as t; ")
    assert fresh_process(program + "t.ones(1).cuda()", fails=True) == "RuntimeError: No CUDA GPUs are available"
    assert fresh_process(program + "print(t.cuda.is_available())").strip() == "False"


def test_cupy_arrays_through_a_stand_in(monkeypatch):
    """The CuPy backend with NumPy as a stand-in for CuPy."""
    entered = []

    class Device:
        def __init__(self, index):
            self.index = index

        def __enter__(self):
            entered.append(self.index)

        def __exit__(self, *exception):
            pass
    cupy = SimpleNamespace(**{name: getattr(np, name) for name in dir(np) if not name.startswith("__")})
    cupy.cuda, cupy.asnumpy = SimpleNamespace(Device=Device, get_allocator=lambda: None,
                                              set_allocator=lambda allocator: None), np.asarray
    monkeypatch.setattr(cuda_storage, "import_cupy", lambda: cupy)
    monkeypatch.setattr(cuda_storage, "device_count", lambda: 2)
    before = dict(Storage.by_device)
    try:
        cuda_storage._cupy_backend("cuda:1", 1)
        backend = Storage.by_device["cuda:1"]
        x = tensorgrad.core.dispatch.fresh(backend.asarray([1., 2.]), backend).requires_grad_()
        (x * x).exp().sum().backward()
        assert x.grad.device == "cuda:1" and issubclass(backend, CudaStorage) and set(entered) == {1}
        assert x.grad.tolist() == pytest.approx([2 * math.e, 4 * math.e ** 4])
    finally:
        Storage.by_device.clear()
        Storage.by_device.update(before)


# ── a device of the program's own ─────────────────────────────────────────────────────────────────────────────────────


class Grid:
    """A toy array: a flat Python list and a shape, without NumPy's functions and protocols."""

    dtype = np.dtype("float64")

    def __init__(self, cells, shape):
        self.cells, self.shape = list(cells), tuple(shape)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: len(self.cells))

    def copy(self, order="K"):
        return Grid(self.cells, self.shape)

    def each(self, function, other=None):
        if other is None:
            return Grid(map(function, self.cells), self.shape)
        if not isinstance(other, Grid):
            return Grid((function(a, other) for a in self.cells), self.shape)
        if self.shape == other.shape:
            return Grid(map(function, self.cells, other.cells), self.shape)
        short = other.cells * (self.size // other.size)        # broadcasting along the first axis is all that it can do
        return Grid(map(function, self.cells, short), self.shape)

    def __add__(self, other): return self.each(lambda a, b: a + b, other)
    def __sub__(self, other): return self.each(lambda a, b: a - b, other)
    def __mul__(self, other): return self.each(lambda a, b: a * b, other)
    def __truediv__(self, other): return self.each(lambda a, b: a / b, other)
    def __neg__(self): return self.each(lambda a: -a)
    def __setitem__(self, index, values): self.cells[:] = values.cells
    def __rsub__(self, other): return self.each(lambda a: other - a)
    __rmul__ = __mul__


@pytest.fixture
def toy():
    """A user's implementation of a new device: its arrays and its ops."""
    class ToyStorage(Storage):
        device = "toy"
        array_type = Grid

        @classmethod
        def asarray(cls, data, dtype=None):
            if isinstance(data, Grid):
                return data
            values = np.asarray(data, "float64")
            return Grid(values.ravel().tolist(), values.shape)

        @classmethod
        def host(cls, array):
            return np.array(array.cells).reshape(array.shape)

        @classmethod
        def aliases(cls, a, b):
            return a is b

    def matmul(a, b):
        (n, k), m = a.shape, b.shape[1]
        return Grid([sum(a.cells[i * k + p] * b.cells[p * m + j] for p in range(k)) for i in range(n)
                     for j in range(m)], (n, m))

    def transpose(a, *, axis1=-1, axis2=-2):
        n, m = a.shape
        return Grid([a.cells[i * m + j] for j in range(m) for i in range(n)], (m, n))

    def total(a, *, axis=None, keepdims=False):
        if axis is None or len(axis) == a.ndim:
            return Grid([sum(a.cells)], (1,) * a.ndim if keepdims else ())
        n, m = a.shape
        return Grid([sum(a.cells[i * m + j] for i in range(n)) for j in range(m)], (1, m) if keepdims else (m,))

    kernels = {
        "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
        "negative": lambda a: -a,
        "matmul": matmul, "t": transpose, "swapaxes": transpose, "sum": total, "tanh": lambda a: a.each(math.tanh),
        "square": lambda a: a * a, "reshape": lambda a, *, shape: Grid(a.cells, shape),
        "broadcast_to": lambda a, *, shape: Grid(a.cells * (math.prod(shape) // a.size), shape),
        "clone": lambda a: a.copy(),
    }
    for name, kernel in kernels.items():
        OpDispatch.register(name, "toy")(kernel)
    yield ToyStorage
    for name in kernels:
        OpDispatch.unregister(name, "toy")
    del Storage.by_device["toy"]


def train(device, steps=100):
    """A two-layer network learns XOR."""
    rng = np.random.default_rng(1)
    x, y, *weights = (tensorgrad.tensor(values, dtype=tensorgrad.float64).to(device) for values in (
        [[0., 0.], [0., 1.], [1., 0.], [1., 1.]], [[0.], [1.], [1.], [0.]], rng.standard_normal((2, 6)),
        rng.standard_normal(6),
        rng.standard_normal((6, 1))))
    w, b, v = weights = [t.requires_grad_() for t in weights]
    for _ in range(steps):
        loss = (((x @ w + b).tanh() @ v - y).square()).sum()
        loss.backward()
        with tensorgrad.no_grad():
            for t in weights:
                t.sub_(t.grad * 0.1)
                t.grad = None
    return loss.item()


def test_a_network_trains_on_a_device_of_the_programs_own(toy):
    loss = train("toy")
    assert loss < 0.01 and loss == pytest.approx(train("cpu"), rel=1e-6)


def test_tensors_on_a_device_of_the_programs_own(toy):
    x = tensorgrad.tensor([[1., 2.]], dtype=tensorgrad.float64, device="toy").requires_grad_()
    assert x.device == tensorgrad.device("toy") and type(x.array) is Grid and type((x + x).array) is Grid
    (x * x + x).sum().backward()
    assert x.grad.device == "toy" and x.grad.tolist() == [[3., 5.]] and x.cpu().device == "cpu"
    assert "device='toy'" in repr(x.detach()) and x.detach().cpu().numpy().tolist() == [[1., 2.]]
    with pytest.raises(RuntimeError, match="found at least two devices, toy and cpu!"):
        x + tensorgrad.ones(1, 2, dtype=tensorgrad.float64)
    h = x * 2
    y = h * h
    with tensorgrad.no_grad():
        h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_gradients_cross_to_a_device_of_the_programs_own(toy):
    x = tensorgrad.tensor([[1., 2.]], dtype=tensorgrad.float64, requires_grad=True)
    (x.to("toy") * 3).cpu().sum().backward()
    assert x.grad.tolist() == [[3., 3.]]


def test_an_op_that_a_device_cannot_do(toy):
    x = tensorgrad.tensor([[1., 2.]], dtype=tensorgrad.float64, device="toy")
    with pytest.raises(NotImplementedError, match="Could not run 'cos' on the device 'toy': no kernel is registered "
                                                  "for it"):
        x.cos()
    with pytest.raises(NotImplementedError, match="Could not run 'max' on the device 'toy'"):
        x.max()
    with pytest.raises(NotImplementedError, match="Could not run 'exp' on the device 'toy'"):   # what the formula needs
        x.softmax(1)
    with OpDispatch.override("cos", "toy", lambda a: a.each(math.cos)):
        assert x.cos().tolist() == [[math.cos(1.), math.cos(2.)]]


def test_a_device_has_one_index(toy):
    assert tensorgrad.ones(1, dtype=tensorgrad.float64, device="cpu").to("toy:0").device == "toy"
    with pytest.raises(RuntimeError, match="no storage backend is registered for the device toy:1: known are"):
        tensorgrad.ones(1).to("toy:1")


@pytest.mark.parametrize("said, missing", [
    ({}, "array_type, asarray, host"), ({"asarray": staticmethod(np.asarray), "array_type": np.ndarray}, "host"),
    ({"host": staticmethod(lambda array: array), "array_type": np.ndarray, "module": np}, "asarray")],
                         ids=["all", "host", "asarray"])
def test_a_device_that_says_too_little(said, missing):
    """A53: an incomplete storage fails where it is registered, and leaves nothing behind."""
    with pytest.raises(TypeError, match=f"Half cannot be the storage of the device 'half': it does not define "
                                        f"{missing}$"):
        type("Half", (stubs.Storage,), {"device": "half", **said})
    assert "half" not in Storage.by_device and stubs.Storage is Storage
    with pytest.raises(RuntimeError, match="Expected one of"):
        tensorgrad.device("half")


def test_a_device_may_be_like_another():
    """A53: attributes of base classes are inherited."""
    class Base(stubs.Storage):
        module, array_type = np, np.ndarray
        asarray, host = staticmethod(np.asarray), staticmethod(lambda array: array)

    class Demi(Base):
        device = "demi"
    try:
        assert tensorgrad.ones(2, device="demi").exp().device == "demi"
    finally:
        del Storage.by_device["demi"]


def test_a_device_that_computes_with_numpy_needs_no_kernels():
    """The minimal definition of a backend with a NumPy-like module; every op of the table runs from its formula."""
    class Other(Storage):
        device = "other"
        module = np
        array_type = np.ndarray
        asarray = staticmethod(np.asarray)
        host = staticmethod(lambda array: array)
    try:
        assert train("other") == pytest.approx(train("cpu"))
        x = tensorgrad.tensor([[1., 2.], [3., 5.]], device="other").requires_grad_()
        y = x.softmax(1).log().max(1).values.sum() + x[0, [1, 0]].std()
        y.backward()
        z = x.detach().cpu().requires_grad_()
        (z.softmax(1).log().max(1).values.sum() + z[0, [1, 0]].std()).backward()
        np.testing.assert_allclose(x.grad.cpu().numpy(), z.grad.numpy(), rtol=1e-5)
    finally:
        del Storage.by_device["other"]
