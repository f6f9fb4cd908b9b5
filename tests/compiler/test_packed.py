"""Products with packed weights against NumPy's in float64: sizes around those of tiles, residuals and activations."""
import numpy as np
import pytest
from support import cpu_only, skip_file

from tensorgrad.runtime.native import native

if native is None:
    skip_file("the compiled kernels are not there")
import tensorgrad as tg
from tensorgrad.compiler.executable import Executable
from tensorgrad.compiler.packed import FOLLOWING, PackedLinear, PackedWeight, columns, following, panels
from tensorgrad.compiler.passes import optimize
from tensorgrad.compiler.recurrent import GruSteps, LstmSteps, PackedGates
from tensorgrad.compiler.targets import Activation
from tensorgrad.graph import lower
from tensorgrad.kernels.compiled import WANTED

pytestmark = cpu_only
FEW = [(m, n, k) for m in range(1, 17) for n, k in ((1, 1), (31, 5), (70, 300))]
SIZES = [*FEW, (29, 33, 257), (40, 200, 64), (33, 600, 30), (400, 65, 40), (350, 300, 9), (2, 7, 5000), (20, 17, 3000)]
PARAMS = {"leaky_relu": {"slope": 0.1}, "hardtanh": {"low": -0.5, "high": 1.5}, "elu": {"alpha": 0.7},
          "celu": {"alpha": 0.6}, "softplus": {"beta": 1.5, "threshold": 3.0}}
ACTIVATIONS = [Activation(name, tuple(PARAMS.get(name, {}).items())) for name in (*FOLLOWING[1:], "celu")]


def called(x, packed, bias, residual, n, activation=None, out=None):
    (m, k), step = x.shape, x.strides[0] // x.itemsize
    out = np.empty((m, n), x.dtype) if out is None else out
    assert native.packed_linear(x, packed, bias, residual, out, m, n, k, step, *following(activation)) is None
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_products_of_all_sizes(threads, dtype):
    rng = np.random.default_rng(0)
    for m, n, k in SIZES:
        wide = rng.standard_normal((m, k + 3)).astype(dtype)
        w, bias = rng.standard_normal((n, k)).astype(dtype), rng.standard_normal(n).astype(dtype)
        residual = rng.standard_normal((m, n)).astype(dtype)
        packed = PackedWeight(transposed=True)(w)
        assert packed.shape == PackedWeight(transposed=True).shape(w.shape)
        for x in (wide[:, 2:-1], np.ascontiguousarray(wide[:, 2:-1])):
            exact, sizes = x.astype(float) @ w.astype(float).T, abs(x.astype(float)) @ abs(w.astype(float)).T + 2
            for b, r in ((None, None), (bias, None), (None, residual), (bias, residual)):
                wanted = exact + sum(term for term in (b, r) if term is not None)
                found = called(x, packed, b, r, n)
                assert (abs(found - wanted) <= 4 * np.finfo(dtype).eps * sizes).all(), (m, n, k)
                given = [term for term in (b, r) if term is not None]
                np.testing.assert_allclose(PackedLinear(n)(x, packed, *given), found, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_what_follows_a_product(activation, dtype):
    rng = np.random.default_rng(1)
    for m, n, k in ((3, 70, 8), (37, 45, 300)):
        x, w = 3 * rng.standard_normal((m, k)).astype(dtype) / k ** 0.5, rng.standard_normal((k, n)).astype(dtype)
        bias, residual = rng.standard_normal(n).astype(dtype), rng.standard_normal((m, n)).astype(dtype)
        residual[0, :5] = np.nan, np.inf, -np.inf, 1e30, -1e30
        packed = panels(w)
        plain = called(x, packed, bias, residual, n)
        with np.errstate(all="ignore"):
            wanted = activation(plain)
        np.testing.assert_allclose(called(x, packed, bias, residual, n, activation), wanted, rtol=1e-5, atol=1e-6)


def test_what_is_not_a_number_stays_in_its_row_or_column():
    x, w = np.ones((20, 40), "f4"), np.ones((40, 40), "f4")
    x[3, 7], w[5, 33] = np.nan, np.inf
    found = called(x, panels(w), None, None, 40)
    assert np.isnan(found[3]).all() and np.isinf(np.delete(found, 3, 0)[:, 33]).all()
    assert np.isfinite(np.delete(np.delete(found, 3, 0), 33, 1)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_panels_keep_a_weight(dtype):
    rng = np.random.default_rng(2)
    for k, n in ((1, 1), (5, 31), (17, 32), (33, 70)):
        w = rng.standard_normal((k, n)).astype(dtype)
        for given in (w, np.asfortranarray(w), np.repeat(w, 2, axis=1)[:, ::2], w[::-1]):
            packed = panels(given)
            np.testing.assert_array_equal(columns(packed, n), given)
            assert not packed.transpose(1, 0, 2).reshape(k, -1)[:, n:].any()


def test_calls_that_do_not_fit_are_refused():
    x, packed, out = np.ones((2, 3), "f4"), panels(np.ones((3, 5), "f4")), np.empty((2, 5), "f4")
    with pytest.raises(ValueError, match="weight has the shape"):
        native.packed_linear(x, packed[:, :2].copy(), None, None, out, 2, 5, 3, 3, 0)
    assert native.packed_linear(x, packed, None, None, out, 2, 5, 3, 3, len(FOLLOWING)) is NotImplemented
    assert native.packed_linear(x, packed.astype("f8"), None, None, out, 2, 5, 3, 3, 0) is NotImplemented
    assert native.packed_linear(x, packed, None, out, out, 2, 5, 3, 3, 0) is NotImplemented
    assert not PackedLinear(0)(np.ones((2, 3)), panels(np.ones((3, 0)))).size


# ── in graphs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def compiled(model, *inputs):
    """The targets of a model's graph after the passes, having compared what it computes with the model itself."""
    graph = optimize(lower(model, inputs))
    with tg.no_grad():
        wanted = model(*inputs)
    found = Executable(graph)([x.array for x in inputs])[0]
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-5)
    targets = [node.target for node in graph.nodes if node.op == "call_function"]
    return sorted(targets, key=lambda target: (isinstance(target, PackedLinear), getattr(target, "transposed", 0)))


@pytest.mark.skipif(not WANTED, reason="about compiled kernels")
def test_linear_layers_are_packed():
    tg.manual_seed(0)
    nn = tg.nn
    model = nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.Linear(7, 40, bias=False), nn.Hardtanh(-0.5, 2.0)).eval()
    assert compiled(model, tg.randn(2, 3, 5)) == [
        PackedWeight(True), PackedWeight(True), PackedLinear(7, True, activation=Activation("gelu")),
        PackedLinear(40, activation=Activation("hardtanh", (("high", 2.0), ("low", -0.5))))]
    w = nn.Parameter(tg.randn(5, 6))
    once = Holding(lambda self, x: (x @ self.w).relu() @ self.w.t() + x, w)
    assert compiled(once, tg.randn(9, 5)) == [
        PackedWeight(), PackedWeight(True), PackedLinear(6, activation=Activation("relu")),
        PackedLinear(5, residual=True)]


class Holding(tg.nn.Module):
    """A module with a parameter `w`, whose forward is a function of the module and the input."""

    def __init__(self, function, w):
        super().__init__()
        self.function, self.w = function, w

    def forward(self, *inputs):
        return self.function(self, *inputs)


def test_a_table_of_embeddings_is_packed_for_many_rows_alone():
    tied = Holding(lambda self, words: self.w[words] @ self.w.t(), tg.nn.Parameter(tg.randn(11, 6)))
    assert not any(isinstance(target, PackedLinear) for target in compiled(tied, tg.tensor([1, 4])))
    assert any(isinstance(target, PackedLinear) for target in compiled(tied, tg.tensor([1, 4, 2, 0, 3]))) == WANTED


def test_packed_weights_follow_their_parameters():
    layer = tg.nn.Linear(5, 6)
    x, run = tg.randn(3, 5), Executable(lower(layer, tg.randn(3, 5)))
    for change in (lambda: None, lambda: layer.weight.mul_(2), lambda: layer.bias.add_(1)):
        with tg.no_grad():
            change()
        np.testing.assert_allclose(run([x.array])[0], layer(x).detach().numpy(), rtol=1e-5, atol=1e-6)


# ── recurrent layers ──────────────────────────────────────────────────────────────────────────────────────────────────


def steps(target, z, packed, bias, h, c):
    """Return what the kernel of LstmSteps or GruSteps computes."""
    (count, batch, _), n = z.shape, h.shape[-1]
    y, *last = np.empty((count, batch, n), z.dtype), np.empty_like(h), np.empty_like(h)
    if type(target) is LstmSteps:
        assert native.packed_lstm(z, packed, h, c, y, *last, count, batch, n, target.reverse) is None
        return y, *last
    assert native.packed_gru(z, packed, bias, h, y, last[0], count, batch, n, target.reverse) is None
    return y, last[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_steps_of_recurrent_layers(threads, dtype):
    rng = np.random.default_rng(3)
    for batch, n, count in [(1, 5, 3), (2, 40, 2), (3, 64, 4), (4, 33, 2), (15, 130, 3), (1, 160, 3), (32, 256, 3)]:
        h, c = rng.standard_normal((2, batch, n)).astype(dtype)
        for gates, target in ((4, LstmSteps()), (4, LstmSteps(True)), (3, GruSteps()), (3, GruSteps(True))):
            w = (2 * rng.standard_normal((gates * n, n)) / n ** 0.5).astype(dtype)
            z = 2 * rng.standard_normal((count, batch, gates * n)).astype(dtype)
            z[0, 0, :4], z[0, 0, n:n + 2] = (1e4, -1e4, np.inf, -np.inf), (100, -100)
            bias = rng.standard_normal(gates * n).astype(dtype) if gates == 3 and n > 5 else None
            packed = PackedGates(gates)(w)
            assert packed.shape == PackedGates(gates).shape(w.shape)
            wanted = target(z, packed, h, c) if gates == 4 else target(z, packed, bias, h)
            for found, exact in zip(steps(target, z, packed, bias, h, c), wanted, strict=True):
                np.testing.assert_allclose(found, exact, rtol=0, atol=4 * n ** 0.5 * np.finfo(dtype).eps)
    z[0, 0, n], z[0, 1, 7] = np.nan, np.nan
    y = steps(GruSteps(), z, packed, bias, h, c)[0]
    assert np.isnan(y[0, 0, 0]) and np.isnan(y[0, 1, 7]) and np.isnan(y[0]).sum() == 2


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"bidirectional": True, "num_layers": 2}], ids=str)
def test_recurrent_layers_are_packed(kind, options):
    tg.manual_seed(0)
    layer = getattr(tg.nn, kind)(6, 9, **options)
    targets = compiled(Holding(lambda self, x: self.w(x)[0] * 1, layer), tg.randn(4, 3, 6))
    count = sum(isinstance(target, (LstmSteps, GruSteps)) for target in targets)
    assert count == (4 if "num_layers" in options else 1) * WANTED
