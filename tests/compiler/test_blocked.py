"""Pictures in blocks of channels: each kernel against its target's definition, and graphs against eager."""
from types import SimpleNamespace

import numpy as np
import pytest
from support import cpu_only, skip_file

from tensorgrad.runtime.native import native

if native is None:
    skip_file("the compiled kernels are not there")
import tensorgrad as tg
from tensorgrad import nn
from tensorgrad.backends import compiled
from tensorgrad.compiler.blocked import (
    BLOCK,
    BlockedBias,
    BlockedConvolution,
    BlockedDepthwise,
    BlockedMean,
    BlockedPool,
    BlockedScale,
    BlockedWeight,
    DepthwiseWeight,
    Following,
    FromBlocked,
    ToBlocked,
    WinogradWeight,
    blocked,
    unblocked,
)
from tensorgrad.compiler.emit import emitters_of
from tensorgrad.compiler.executable import Executable
from tensorgrad.compiler.packed import FOLLOWING
from tensorgrad.compiler.passes import optimize
from tensorgrad.compiler.targets import Activation
from tensorgrad.graph import lower
from tensorgrad.kernels.compiled import WANTED
from tensorgrad.ops.windows import output_length

pytestmark = cpu_only
PARAMS = {"leaky_relu": {"slope": 0.1}, "hardtanh": {"low": -0.5, "high": 1.5}, "elu": {"alpha": 0.7},
          "softplus": {"beta": 1.5, "threshold": 3.0}}
ACTIVATIONS = [Activation(name, tuple(PARAMS.get(name, {}).items())) for name in FOLLOWING[1:]]
RELU = Activation("relu")


class AtOnce:
    """A build whose arrays are NumPy's, and whose calls run at once."""

    def new(self, shape, dtype):
        return np.full(shape, 7, dtype)

    def whole(self, x):
        return np.ascontiguousarray(x)

    def reuse(self, x, shape, dtype):
        return x

    def view(self, x, shape, strides):
        return np.lib.stride_tricks.as_strided(x, shape, [x.itemsize * step for step in strides])

    def call(self, kernel, *arguments):
        assert getattr(native, kernel)(*arguments) is None


def emitted(target, *operands):
    """Return the result of a target's kernel, from copies of its operands."""
    emitter, = emitters_of(target)
    node = SimpleNamespace(target=target, meta={"shape": target.shape(*(x.shape for x in operands))})
    return emitter(AtOnce(), node, *(x.copy() for x in operands))


def check(target, *operands, tolerance=1e-5):
    with np.errstate(all="ignore"):
        wanted, found = target(*operands), emitted(target, *operands)
    finite = abs(wanted[np.isfinite(wanted)])
    assert found.shape == wanted.shape and found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * max(finite, default=1))
    return found


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def convolution(n, c, o, size, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, first=False,
                residual=True, activation=RELU, weight=BlockedWeight, x=None):
    """A convolution's target, and its operands."""
    y = output_length(size, kernel, stride, padding, dilation)
    x = numbers(n, c, *size) if x is None else x
    w = numbers(o, c // groups, *kernel, seed=1)
    if groups > 1:
        w = np.concatenate([weight()(part) for part in np.split(w, groups)])
    else:
        w = weight(first=True)(w) if first else weight()(w)
    target = BlockedConvolution(o, y, stride, padding, dilation, groups, first=first, winograd=weight is WinogradWeight,
                                following=Following(True, residual, activation))
    rest = [blocked(numbers(n, o, *y, seed=3))] if residual else []
    return target, x if first else blocked(x), w, BlockedBias()(numbers(o, seed=2)), *rest


CASES = [
    (1, 16, 16, (5, 5), (3, 3), (1, 1), (1, 1)), (2, 40, 24, (9, 31), (3, 3), (1, 1), (1, 1)),
    (1, 32, 48, (13, 15), (3, 2), (2, 3), (2, 0)), (1, 16, 70, (17, 16), (2, 4), (1, 1), (3, 2), (2, 3)),
    (1, 20, 33, (4, 30), (1, 1)), (3, 16, 8, (3, 2), (5, 5), (1, 1), (2, 3)), (2, 24, 16, (7, 7), (1, 1)),
    (17, 16, 20, (3, 3), (3, 3), (2, 2), (1, 1)), (5, 32, 40, (1, 1), (3, 3), (1, 1), (1, 1)),
    (1, 64, 32, (64, 64), (3, 3), (1, 1), (1, 1)), (2, 32, 16, (30, 40), (1, 1), (2, 2)),
    (2, 64, 96, (6, 8), (3, 3), (1, 1), (1, 0), (1, 1), 2), (1, 16, 5, (40, 3), (7, 1)),
]


@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_convolutions_of_all_kinds(threads):
    for case in CASES:
        check(*convolution(*case))
        if len(case) < 9:
            check(*convolution(*case, first=True, activation=None, residual=False))


@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_transposed_convolutions(threads):
    for n, c, o, size, kernel, stride, padding, dilation in [
            (1, 16, 16, (4, 4), (4, 4), (2, 2), (1, 1), (1, 1)), (2, 20, 40, (1, 1), (4, 4), (1, 1), (0, 0), (1, 1)),
            (1, 32, 3, (9, 20), (3, 5), (3, 2), (2, 1), (1, 2)), (6, 16, 24, (3, 2), (2, 2), (2, 1), (0, 1), (1, 1))]:
        size_of = [(m - 1) * s - 2 * p + d * (k - 1) + 1
                   for m, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)]
        target = BlockedConvolution(o, tuple(size_of), stride, padding, dilation, transposed=True,
                                    following=Following(activation=Activation("tanh")))
        check(target, blocked(numbers(n, c, *size)), BlockedWeight(transposed=True)(numbers(c, o, *kernel, seed=1)))


@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_winograd(threads):
    for n, c, o, size, padding in [(1, 16, 16, (1, 1), (1, 1)), (2, 40, 72, (9, 7), (1, 1)),
                                   (1, 144, 16, (4, 33), (2, 0)), (3, 16, 40, (6, 6), (1, 3))]:
        case = convolution(n, c, o, size, (3, 3), (1, 1), padding, weight=WinogradWeight)
        wanted = convolution(n, c, o, size, (3, 3), (1, 1), padding)
        np.testing.assert_allclose(check(*case), wanted[0](*wanted[1:]), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("outs, ins", [(16, 32), (17, 5)])
def test_weights_of_winograd(monkeypatch, outs, ins):
    w = np.random.default_rng(0).standard_normal((outs, ins, 3, 3), "float32")
    found = WinogradWeight()(w)
    monkeypatch.setattr("tensorgrad.compiler.blocked.native", None)
    np.testing.assert_allclose(found, WinogradWeight()(w), rtol=0, atol=1e-6)
    assert not WinogradWeight().plain(found)[outs:].any() and not WinogradWeight().plain(found)[:, ins:].any()


def test_infinity_spreads_no_farther_than_in_the_direct_way():
    x = numbers(1, 20, 9, 9)
    x[0, 3, 4, 4], x[0, 5, 0, 8] = np.inf, np.nan
    for weight in (BlockedWeight, WinogradWeight):
        found = check(*convolution(1, 20, 24, (9, 9), (3, 3), (1, 1), (1, 1), weight=weight, x=x, activation=None))
        assert np.isfinite(unblocked(found, 24)).sum() == 24 * (81 - 9 - 4)
        assert np.isfinite(unblocked(found, 32)[:, 24:]).all()
    check(*convolution(1, 3, 24, (9, 9), (3, 3), first=True, residual=False, x=x[:, 3:6].copy()))


def test_activations_after_kernels():
    for activation in [None, *ACTIVATIONS]:
        for residual in (False, True):
            check(*convolution(1, 16, 32, (5, 9), (1, 1), activation=activation, residual=residual), tolerance=2e-5)
            check(*convolution(1, 16, 32, (5, 9), (3, 3), activation=activation, residual=residual,
                               weight=WinogradWeight), tolerance=2e-5)


@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_windows(threads):
    for c, size, kernel, stride, padding, dilation in [
            (16, (9, 9), (3, 3), (1, 1), (1, 1), (1, 1)), (40, (14, 29), (3, 3), (2, 2), (1, 1), (1, 1)),
            (5, (7, 3), (5, 2), (1, 3), (4, 2), (1, 1)), (16, (12, 25), (3, 3), (1, 1), (2, 2), (2, 2))]:
        x = numbers(2, c, *size)
        y = output_length(size, kernel, stride, padding, dilation)
        for rest in ([], [BlockedBias()(numbers(c, seed=2)), blocked(numbers(2, c, *y, seed=3))]):
            target = BlockedDepthwise(stride, padding, dilation, Following(bool(rest), bool(rest), ACTIVATIONS[2]))
            check(target, blocked(x), DepthwiseWeight()(numbers(c, 1, *kernel, seed=1)), *rest)
        x[0, 2, 3, 1], x[1, 0, 0, 0] = np.nan, -np.inf
        widths = tuple((min(p, k // 2), 0) for p, k in zip(padding, kernel, strict=True))
        for name, apart in (("max_pool", dilation), ("window_sum", (1, 1))):
            y = tuple((n + before - d * (k - 1) - 1) // s + 1
                      for n, (before, _), k, s, d in zip(size, widths, kernel, stride, apart, strict=True))
            check(BlockedPool(name, y, kernel, stride, widths, apart, 1.0 if name == "max_pool" else 0.3), blocked(x))


def test_copies_means_and_products():
    for c, h, w in [(1, 1, 1), (16, 5, 7), (37, 3, 11), (32, 1, 1)]:
        x = numbers(2, c, h, w)
        inside = emitted(ToBlocked(), x)
        np.testing.assert_array_equal(inside, blocked(x))
        np.testing.assert_array_equal(emitted(FromBlocked(c), inside), x)
        mean = check(BlockedMean(), inside)
        check(BlockedScale(), inside, mean)


def test_kernels_refuse_what_does_not_fit():
    target, *operands = convolution(1, 16, 16, (5, 5), (3, 3))
    for i in range(len(operands)):
        wrong = [x[..., :-1].copy() if i == k else x for k, x in enumerate(operands)]
        with pytest.raises(ValueError, match="has the shape"):
            emitted(target, *wrong)
        with pytest.raises(AssertionError):                     # not of float32: the call is refused
            emitted(target, *(x.astype(float) if i == k else x for k, x in enumerate(operands)))


# ── graphs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Net(nn.Module):
    """A net with chains, branches, parts side by side, a product with channels, and results that leave blocks."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.norm, self.late = nn.BatchNorm2d(32), nn.BatchNorm2d(32)
        self.scale = nn.Parameter(tg.rand(1, 32, 1, 1))
        self.deep = nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False)
        self.point, self.side = nn.Conv2d(32, 24, 1), nn.Conv2d(32, 24, 3, 2, 1)
        self.gate, self.up = nn.Conv2d(32, 32, 1), nn.ConvTranspose2d(48, 8, 4, 2, 1)

    def forward(self, x):
        x = tg.relu(self.norm(self.first(x)))
        y = nn.functional.hardswish(self.deep(x)) + x
        y = y * nn.functional.hardsigmoid(self.gate(y.mean((2, 3), keepdim=True)))
        y = x + 0.5 * tg.relu(self.late(y.clamp(-2, 2))) * self.scale
        small = nn.functional.max_pool2d(self.point(y), 3, 2, 1)
        both = tg.cat([self.side(y).sigmoid(), small], 1)       # 24 channels: not whole blocks
        return self.up(both), both.mean((2, 3)), tg.cat([y, x], 1), x.flip(1)


def names(graph):
    return [getattr(node.target, "__name__", "") for node in graph.nodes if node.op == "call_function"]


def test_graphs_agree_with_eager():
    tg.manual_seed(0)
    net = Net().eval()
    x = tg.randn(2, 3, 13, 10)
    with tg.no_grad():
        graph = lower(net, x)
        found, wanted = Executable(graph)([x.array]), net(x)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b.array, rtol=1e-5, atol=1e-5)
    made = names(graph)
    for name in ("blocked_first_convolution_relu", "blocked_depthwise_hardswish", "blocked_scale", "blocked_max_pool",
                 "blocked_mean", "blocked_transposed_convolution"):
        assert (name in made) == WANTED, made
    assert made.count("to_blocked") == WANTED and made.count("from_blocked") == 5 * WANTED


@pytest.mark.skipif(not WANTED, reason="about compiled kernels")
@pytest.mark.parametrize("winograd", [False, True, "always"])
def test_the_switch_of_winograd_decides(winograd):
    net = nn.Sequential(nn.Conv2d(4, 16, 3), nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 16, 3, 2)).eval()
    with tg.no_grad(), compiled.flags(enabled=True, winograd=winograd):
        graph = optimize(lower(net, tg.randn(1, 4, 12, 12)))
    expected = {False: 0, True: 1, "always": 1}[winograd]
    assert sum("winograd_convolution" in name for name in names(graph)) == expected


def test_other_kinds_stay_as_they_are():
    for net, x in [(nn.Conv2d(3, 16, 3).double(), tg.randn(1, 3, 5, 5).double()),
                   (nn.Conv1d(3, 16, 3), tg.randn(1, 3, 5)), (nn.Conv2d(3, 16, 1), tg.randn(0, 3, 5, 5)),
                   (nn.Conv2d(32, 32, 3, groups=4), tg.randn(1, 32, 5, 5)),
                   (nn.Conv2d(16, 16, 1, padding=2), tg.randn(1, 16, 5, 5))]:
        with tg.no_grad():
            graph = lower(net.eval(), x)
            found, = Executable(graph)([x.array])
            np.testing.assert_allclose(found, net(x).array, rtol=1e-5, atol=1e-5)
        assert not any("blocked" in name for name in names(graph))
    assert BLOCK == 16
