"""A graph without compiled kernels: steps of Python, and products in forms that NumPy computes faster."""
import numpy as np
import pytest
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.compiler.executable import Executable
from tensorgrad.compiler.over import OVER
from tensorgrad.compiler.passes.plain import for_numpy, worth_tiles
from tensorgrad.compiler.passes.rewriting import settled
from tensorgrad.compiler.steps import Steps
from tensorgrad.compiler.targets import Activation, Joined
from tensorgrad.compiler.values import computed
from tensorgrad.compiler.winograd import Winograd, WinogradKernels
from tensorgrad.graph import lower
from tensorgrad.kernels import compiled
from tensorgrad.ops.base import OPS

pytestmark = cpu_only
F = nn.functional


@pytest.fixture(autouse=True)
def without_kernels():
    """Executables as they are where there are no compiled kernels."""
    torch.manual_seed(4)
    before = compiled.enabled()
    compiled.enable(False)
    yield
    compiled.enable(before)


def build(program, *inputs):
    return Executable(lower(program, inputs))


def draw(*shape):
    return np.random.default_rng(5).standard_normal(shape, dtype=np.float32)


def names(executable):
    return [getattr(node.target, "__name__", "") for node in executable.graph.nodes]


def test_inputs_constants_and_outputs_have_memory_of_their_own():
    weight = torch.ones(3)
    executable = build(lambda x: (x, x[:1], weight, weight * 2, (y := x.exp()), y.t(), y + weight), torch.ones(2, 3))
    x = draw(2, 3)
    kept = x.copy()
    for _ in range(2):
        found = executable([x])
        wanted = [x, x[:1], np.ones(3), 2 * np.ones(3), np.exp(x), np.exp(x).T, np.exp(x) + 1]
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
        for got in found:
            got[...] = 7                                  # of no effect on anything but itself
    assert np.array_equal(x, kept) and weight.tolist() == [1, 1, 1]


def test_operands_are_written_over_only_where_nothing_reads_them_afterwards():
    def program(x, y):
        a = x * 2                                         # read again, by way of a view
        b = a.t()
        c = a.relu() + y
        d = (c - 1).tanh()
        return d * b.t(), c.sigmoid(), (y + y[:1]).exp(), (x + x).expand(2, 2, 3).clone() - 1
    x, y = torch.tensor(draw(2, 3)), torch.tensor(draw(3, 2)[:2, :2].repeat(2, 1)[:, :3])
    with torch.no_grad():
        wanted = program(x, y)
    for got, want in zip(build(program, x, y)([x.array, y.array]), wanted, strict=True):
        np.testing.assert_allclose(got, want.array, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(set(OVER) - {"add", "subtract", "multiply", "divide", "maximum", "minimum"}))
def test_written_over(name):
    params = {"hardtanh": {"low": -0.5, "high": 1.0}, "leaky_relu": {"slope": 0.1}}.get(name, {})
    for dtype in (np.float32, np.float64):
        x = np.concatenate([draw(50) * 3, [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(dtype)
        with np.errstate(all="ignore"):
            want = computed(OPS[name], (x,), params)
            found = OVER[name](x, **params)
        assert found is x
        np.testing.assert_allclose(found, want, rtol=1e-6 if dtype == np.float32 else 1e-13)
    assert np.isnan(OVER["leaky_relu"](np.full(1, np.nan), slope=2.0))


@pytest.mark.parametrize("name", ["sigmoid", "silu", "gelu_tanh", "hardswish"])
def test_large_arrays_are_written_over_in_pieces(name, monkeypatch):
    x = draw(3, 50)
    want = OVER[name](x.copy())
    monkeypatch.setattr("tensorgrad.compiler.over.LARGE", 100)
    monkeypatch.setattr("tensorgrad.compiler.over.PIECE", 16)
    for y in (x.copy(), np.asfortranarray(x)):
        assert OVER[name](y) is y
        np.testing.assert_allclose(y, want, rtol=1e-6)


@pytest.mark.parametrize(("rows", "turned"), [(1, True), (8, False), (60, True)])
def test_turned_weights(rows, turned):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.other = nn.Linear(6, 6), nn.Linear(6, 6, bias=False)

        def forward(self, x):
            return F.relu(self.linear(x) + x) @ self.other.weight + F.tanh(self.other(x))
    net, x = Net(), torch.tensor(draw(rows, 6))
    executable = build(net, x)
    assert any(name.startswith("turned") for name in names(executable)) == turned
    for _ in range(2):
        with torch.no_grad():
            np.testing.assert_allclose(executable([x.array])[0], net(x).array, atol=1e-5)
            net.linear.weight.mul_(-2)                    # which the turned weights follow
            net.linear.bias.zero_()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "outputs", "padding"), [
    ((1, 3, 7, 9), 5, (1, 1)), ((3, 2, 8, 6), 4, (0, 1)), ((2, 3, 41, 40), 2, (1, 0)), ((1, 2, 3, 3), 2, (0, 0)),
    ((2, 3, 4, 5), 3, (2, 2))])
def test_winograd(shape, outputs, padding, dtype):
    x, w = draw(*shape).astype(dtype), draw(outputs, shape[1], 3, 3).astype(dtype)
    joined = Joined("convolution", Activation("relu"), residual=True)
    how = dict(stride=(1, 1), padding=padding, dilation=(1, 1), groups=1)
    bias = draw(outputs).astype(dtype)
    residual = np.ones_like(computed(OPS["convolution"], (x, w, bias), how))
    want = joined(x, w, bias, residual, **how)
    found = Winograd(joined, padding)(x, w, bias, residual, WinogradKernels()(w))
    np.testing.assert_allclose(found, want, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_winograd_leaves_infinities_where_they_are():
    x, w = draw(1, 2, 8, 8), draw(2, 2, 3, 3)
    x[0, 0, 3, 3] = np.inf
    want = Joined("convolution")(x, w, None, stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1)
    found = Winograd(Joined("convolution"), (1, 1))(x, w, None, WinogradKernels()(w))
    assert np.isinf(want).sum() == 18
    np.testing.assert_allclose(found, want, atol=1e-5)


def test_convolutions_by_tiles():
    net = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 8, 3, stride=2),
                        nn.Conv2d(8, 8, 3, groups=2)).eval()
    x = torch.tensor(draw(1, 64, 20, 20))
    executable = build(net, x)
    assert [name for name in names(executable) if "convolution" in name and name.islower()] \
        == ["winograd_convolution_relu"]
    with torch.no_grad():
        np.testing.assert_allclose(executable([x.array])[0], net(x).array, atol=1e-5)
    assert not worth_tiles((64, 64, 3, 3), (1, 64, 4, 4)) and not worth_tiles((8, 8, 3, 3), (1, 8, 50, 50))


def test_nested_arguments_random_numbers_and_scalars():
    def program(x):
        return torch.cat([x, x + 1, torch.zeros(1)]), torch.rand(2), x.topk(2).indices, x.sum() * 2, x[[2, 0]]
    x = torch.tensor([3.0, 1.0, 2.0])
    executable = build(program, x)
    torch.manual_seed(1)
    found = executable([x.array])
    torch.manual_seed(1)
    wanted = program(x)
    assert all(np.array_equal(got, want.array) for got, want in zip(found, wanted, strict=True))
    assert all(type(got) is np.ndarray for got in found)
    assert not np.array_equal(executable([x.array])[1], found[1])


def test_values_are_dropped_after_their_last_use():
    graph = lower(lambda x: ((x + 1) * 2 - 3).exp(), torch.ones(2))
    for_numpy(graph)
    steps = Steps(graph, settled(graph))
    assert [len(step.ended) for step in steps._steps] == [1, 1, 1, 1]
