"""Memory that runs out, and sizes that no memory holds: PyTorch's errors, before anything is made, and all stays as it
was.
"""
import subprocess
import sys

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as tg
from tensorgrad.nn import functional as F
from tensorgrad.storage.out_of_memory import memory_error

pytestmark = cpu_only
HUGE = 1 << 50          # elements that no address space holds

BEYOND = {
    "empty": lambda t: t.empty(1 << 62), "zeros": lambda t: t.zeros(1 << 62), "ones": lambda t: t.ones(1 << 61),
    "full": lambda t: t.full((1 << 62,), 1.0),
    "rand": lambda t: t.rand(1 << 62), "arange": lambda t: t.arange(1 << 62),
    "linspace": lambda t: t.linspace(0, 1, (1 << 63) - 1),
    "eye": lambda t: t.eye(1 << 31), "repeat": lambda t: t.ones(3).repeat(1 << 61),
    "new_zeros": lambda t: t.ones(1).new_zeros(1 << 62),
    "one_hot": lambda t: t.nn.functional.one_hot(t.tensor([1]), (1 << 63) - 1),
    "pad": lambda t: t.nn.functional.pad(t.ones(1, 4), (1 << 60, 1 << 60)),
    "adaptive_max_pool2d": lambda t: t.nn.functional.adaptive_max_pool2d(t.ones(1, 1, 4, 4), 1 << 40),
}


@pytest.mark.parametrize("name", BEYOND)
def test_sizes_beyond_all_memory(name):
    with pytest.raises(RuntimeError, match="^Storage size calculation overflowed"):
        BEYOND[name](tg)
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="^Storage size calculation overflowed with sizes"):
        BEYOND[name](torch)


REFUSED = {
    "empty": lambda t: t.empty(HUGE), "zeros": lambda t: t.zeros(HUGE), "randn": lambda t: t.randn(HUGE),
    "arange": lambda t: t.arange(HUGE),
    "an op": lambda t: t.ones(1).expand(HUGE).exp(), "two operands": lambda t: t.ones(1).expand(HUGE) + t.ones(1),
    "a copy": lambda t: t.ones(1).expand(HUGE).clone(),
    "a product": lambda t: t.ones(1 << 25, 1) @ t.ones(1, 1 << 25),
    "cat": lambda t: t.cat([t.ones(1).expand(HUGE)] * 2),
    "a pair": lambda t: t.nn.functional.gelu(t.ones(1, requires_grad=True).expand(HUGE)),
    "adaptive_avg_pool1d": lambda t:
    t.nn.functional.adaptive_avg_pool1d(t.ones(1, 1, 4), HUGE),
    "interpolate": lambda t: t.nn.functional.interpolate(t.ones(1, 1, 4), HUGE),
    "replicate": lambda t: t.nn.functional.pad(t.ones(1, 4), (HUGE, 1), "replicate"),
    "histc": lambda t: t.histc(t.ones(3), HUGE),
    "with replacement": lambda t: t.combinations(t.arange(100), 8, with_replacement=True),
    "fft": lambda t: t.fft.fft(t.ones(3), HUGE),
    "conv_transpose1d": lambda t: t.nn.functional.conv_transpose1d(t.ones(1, 1, 4), t.ones(1, 1, 2), stride=HUGE),
}


@pytest.mark.parametrize("name", REFUSED)
def test_memory_that_the_system_refuses(name):
    with pytest.raises(RuntimeError, match=r"Allocator: can't allocate memory: you tried to allocate \d+ bytes. Error "
                                           r"code 12 \(Cannot allocate mem") as found:
        REFUSED[name](tg)
    assert isinstance(found.value, MemoryError)


@pytest.mark.parametrize(("factor", "message"), [
    (1e9, r"Storage size calculation overflowed with sizes=\[1, 1, 4000000000, 4000000000\]"),
    (1e30, "value cannot be converted to type int64_t without overflow")])
def test_interpolation_that_no_memory_holds(factor, message):
    with pytest.raises(RuntimeError, match=message):
        tg.nn.functional.interpolate(tg.ones(1, 1, 4, 4), scale_factor=factor, mode="bilinear")


def test_the_error_is_pytorchs():
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as theirs:
        torch.empty(HUGE)
    with pytest.raises(RuntimeError) as ours:
        tg.empty(HUGE)
    assert str(ours.value) == f"{str(theirs.value).splitlines()[0]}\n(in empty)"
    with pytest.raises(TypeError, match="Overflow when unpacking long long"):
        tg.empty(1 << 63)


def test_an_error_of_python_itself_has_no_number_of_bytes():
    assert str(memory_error(MemoryError(), "sort")).endswith("DefaultCPUAllocator: can't allocate memory\n(in sort)")
    assert memory_error(ValueError("something else")) is None and memory_error(memory_error(MemoryError())) is None


def test_an_error_leaves_all_as_it_was():
    x, y = tg.ones(1, requires_grad=True), tg.ones(2)
    x.exp().backward()
    before, version = x.grad.clone(), y._version
    for call in (lambda: x.expand(HUGE).exp().sum().backward(), lambda: y.add_(tg.ones(1).expand(HUGE).exp().sum()),
                 lambda: tg.add(y, tg.ones(1).expand(HUGE // 2, 2).exp(), out=y)):
        with pytest.raises(MemoryError):
            call()
    assert tg.equal(x.grad, before) and y._version == version and y.tolist() == [1, 1]
    x.exp().backward()


def test_the_way_back_names_its_step():
    x = tg.ones(1, requires_grad=True)
    wide = x.expand(HUGE)
    y = wide.select(0, 0)           # its gradient is as wide
    with pytest.raises(RuntimeError, match=r"can't allocate memory.*\n\(in \w*Backward0\)") as found:
        y.backward()
    assert isinstance(found.value, MemoryError) and x.grad is None


def test_under_a_limit():
    """The memory that kernels need, and that Python needs to report its lack."""
    resource = pytest.importorskip("resource")
    code = """
import resource
import tensorgrad as torch
from tensorgrad.runtime.native import empty_memory
x, w = torch.ones(1024, 1024, requires_grad=True), torch.ones(1024, requires_grad=True)
y = torch.nn.functional.layer_norm(x, (1024,), w, w).sum()
empty_memory()
with open("/proc/self/statm") as f: used = int(f.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 500_000, resource.RLIM_INFINITY))
for call in (lambda: x.softmax(-1), lambda: x.exp(), lambda: x.T.contiguous(), lambda: y.backward(retain_graph=True), lambda: x.detach().sort()):
    try:
        kept = call()
    except MemoryError as error:
        assert isinstance(error, RuntimeError) and "can't allocate memory: you tried" in str(error), error
    else:
        raise SystemExit("there was room")
assert x.grad is None and w.grad is None
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
y.backward()
print(x.grad.shape)
"""  # noqa: E501
    if not (hasattr(resource, "RLIMIT_AS") and sys.platform == "linux"):
        pytest.skip("the system keeps no limit")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "torch.Size([1024, 1024])", done.stderr


# ── absurd parameters ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_selections_that_have_no_room():
    with pytest.raises(RuntimeError, match="overflowed"):
        tg.combinations(tg.arange(10 ** 4), 8)
    with pytest.raises(RuntimeError, match="allocate|overflowed"):
        tg.ones(3).tensor_split(1 << 50)
    assert tg.combinations(tg.arange(3), 10 ** 6).shape == (0, 10 ** 6)
    assert [len(part) for part in tg.ones(7).tensor_split(3)] == [3, 2, 2]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("stride", [5, 10 ** 6, 3 * 10 ** 8])
def test_strides_that_lead_beyond_the_input(n, stride):
    torch = pytest.importorskip("torch")
    for name, given in (("conv", {"padding": 1}), ("max_pool", {"padding": 1}), ("max_pool", {"ceil_mode": True}),
                        ("avg_pool", {"ceil_mode": True, "padding": 1})):
        found = []
        for t in (tg, torch):
            x = t.arange(4.0 ** n).reshape(1, 1, *[4] * n).requires_grad_()
            second = t.ones(1, 1, *[2] * n, requires_grad=True) if name == "conv" else 2
            y = getattr(t.nn.functional, f"{name}{n}d")(x, second, stride=stride, **given)
            y.sum().backward()
            found.append((tuple(y.shape), y.tolist(), x.grad.tolist()))
        assert found[0] == found[1]


def test_numbers_that_pytorch_keeps_as_int():
    for pool in (F.max_pool2d, F.avg_pool2d):
        with pytest.raises(RuntimeError, match="value cannot be converted to type int without overflow"):
            pool(tg.ones(1, 1, 4, 4), 2, stride=1 << 31)
    x = tg.ones(1, 1, 4, 4, requires_grad=True)
    F.conv2d(x, tg.ones(1, 1, 2, 2), stride=1 << 31).sum().backward()
    assert x.grad.sum() == 4


def test_places_near_a_diagonal_of_a_tall_matrix():
    assert (tg.triu_indices(1 << 40, 3).shape == (2, 6) and tg.tril_indices(2, 1 << 40).tolist()
            == [[0, 1, 1], [0, 0, 1]])
    with pytest.raises(RuntimeError, match="row must be non-negative"):
        tg.tril_indices(-1, 2)


def test_pdist_takes_pairs_in_order():
    x = tg.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0], [6.0, 8.0]])
    np.testing.assert_allclose(tg.pdist(x).numpy(), [5, 1, 10, 18 ** 0.5, 5, 85 ** 0.5], rtol=1e-6)
