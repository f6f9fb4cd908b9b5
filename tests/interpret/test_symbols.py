"""Fake tensors: every function returns the shapes, dtypes and strides that it returns for tensors with values."""
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from samples import SAMPLES

import tensorgrad as tg
from tensorgrad import nn
from tensorgrad.interpret.symbol_storage import NoValues
from tensorgrad.nn.parameter import is_lazy
from tensorgrad.symbolic.fake_tensors import fake, fake_like, is_fake
from tensorgrad.symbolic.nesting import mapped
from tensorgrad.symbolic.shape_inference import infer
from tensorgrad.symbolic.side_effects import quietly
from tests.as_torch.test_architectures import CASES as ARCHITECTURES
from tests.as_torch.test_architectures import program
from tests.nn.test_layers import CASES as LAYERS
from tests.nn.test_layers import build, given
from tests.nn.test_layers import pytestmark as warned
from tests.ops.test_op_table import CASES as OPERATIONS
from tests.ops.test_op_table import run

pytestmark = warned
# the ops whose results have a shape that only the values tell
DEPEND_ON_VALUES = set("bincount distinct distinct_slices".split())
# Ops whose kernels leave results in memory as it suits them, and one that goes from one device to another: with fake
# tensors, nobody calls it.
LAID_OUT = set(
    "convolution_input columns_added window_spread fourier_transform half_spectrum from_half_spectrum".split())
MOVES = {"to_device"}
LAID_OUT_LAYERS = {"Fold"}
# each cluster of classes gets those rows whose targets are in it
LOOK_AT_VALUES = {"AdaptiveLogSoftmaxWithLoss"}


def described(tree, strides=True):
    """Nested results as shapes, dtypes and strides."""
    return mapped(lambda x: (tuple(x.shape), x.dtype, x.stride() if strides else None) if isinstance(x, tg.Tensor)
                  else x, tree)


# ── the ops of the table ──────────────────────────────────────────────────────────────────────────────────────────────


def selects(op, arrays):
    """Return True if a mask determines the number of elements, other than for a single value that is put there."""
    arrays = [a for a in arrays if isinstance(a, np.ndarray)]
    if op.opname == "index_put":
        return arrays[1].size != 1 and any(a.dtype == "bool" for a in arrays[2:])
    return op.opname == "index" and any(a.dtype == "bool" for a in arrays[1:])


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning", "ignore:ComplexHalf support")
@pytest.mark.parametrize(("op", "sample"),
                         [pytest.param(op, sample, id=label) for op, sample, label in OPERATIONS
                          if op.opname not in MOVES and "shapes" not in sample.skipped])
def test_ops(op, sample):
    tried = 0
    for dtype in ("float32", "float64", "float16", "bfloat16", "complex64"):
        if dtype == "complex64" and op.opname == "standard_gamma":
            continue
        arrays = sample.draw("float32" if dtype == "bfloat16" else dtype)
        inputs = [tg.tensor(a, dtype=tg.bfloat16 if dtype == "bfloat16" and a.dtype == "float32" else None)
                  if isinstance(a, np.ndarray) else a
                  for a in arrays]
        try:
            expected = run(op, sample, inputs)
        except (NotImplementedError, TypeError, ValueError, RuntimeError):              # not for this dtype
            continue
        tried += 1
        by_values = op.opname in DEPEND_ON_VALUES or selects(op, arrays)
        with quietly():
            if by_values:
                with pytest.raises(NoValues):
                    run(op, sample, fake_like(inputs))
            else:
                strides = op.opname not in LAID_OUT and (op.opname, dtype) != ("attention", "bfloat16")
                assert described(run(op, sample, fake_like(inputs)), strides) == described(expected, strides), dtype
    assert tried


def test_every_exception_is_sampled():
    assert set(SAMPLES) >= DEPEND_ON_VALUES | LAID_OUT | MOVES


# ── modules ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def faked(tree):
    """Inputs of a module as fake tensors, a shape where the table has one."""
    if isinstance(tree, tg.Tensor):
        return fake_like(tree)
    if isinstance(tree, (tuple, list)):
        return type(tree)(map(faked, tree))
    return {k: faked(v) for k, v in tree.items()} if isinstance(tree, dict) else tree


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("name", "args", "kwargs", "x", "flags"), LAYERS)
def test_layers_give_the_same(name, args, kwargs, x, flags, training):
    real, module = (build(tg, name, args, kwargs).train(training) for _ in range(2))
    inputs = [given(tg, value) for value in x]
    options = inputs.pop() if isinstance(inputs[-1], dict) else {}
    held = {key: (value, value.clone(), value._version) for key, value in module.named_buffers() if not is_lazy(value)}
    state = tg.manual_seed(1).get_state()
    with quietly(module):
        if name in LOOK_AT_VALUES:
            with pytest.raises(NoValues):
                module(*faked(inputs), **faked(options))
            return
        found = module(*faked(inputs), **faked(options))
    assert name.startswith("Lazy") or tg.equal(tg.get_rng_state(), state)
    for key, value in module.named_buffers():
        if key in held:
            assert value is held[key][0] and tg.equal(value, held[key][1]) and value._version == held[key][2]
    tg.manual_seed(1)
    before = [p.detach().clone() for p in real.parameters() if not is_lazy(p)]
    with tg.no_grad():
        expected = real(*inputs, **options)
    strides = name not in LAID_OUT_LAYERS
    assert described(found, strides) == described(expected, strides)
    for one, other in zip(module.parameters(), before or real.parameters(), strict=True):
        assert not is_fake(one) and tg.equal(one, other)


@pytest.mark.parametrize("case", ARCHITECTURES, ids=[case.name for case in ARCHITECTURES])
def test_architectures(case):
    architecture = program(case.name, tg)
    tg.manual_seed(0)
    model, state = case.build(architecture), tg.get_rng_state()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    batch = [tg.tensor(array) for array in case.batch]
    with quietly(model):
        loss = case.loss(tg, architecture, model, *fake_like(batch))
    assert is_fake(loss) and loss.shape == () and tg.equal(tg.get_rng_state(), state)
    assert all(tg.equal(value, before[key]) for key, value in model.state_dict().items())
    state = [model.start(batch[0].shape[1])] if case.name == "lstm" else []
    inputs = [*batch[:2 if case.name == "bert" else 1], *state]
    with quietly(model):
        found = described(model(*fake_like(inputs)))
    assert found == described(model(*inputs))


# ── nothing is computed, nothing changes ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("layer", "shape", "expected"), [
    (lambda: nn.Conv2d(64, 64, 3), (10**6, 64, 4096, 4096), (10**6, 64, 4094, 4094)),
    (lambda: nn.ConvTranspose2d(64, 8, 4, 2, 1), (10**6, 64, 4096, 4096), (10**6, 8, 8192, 8192)),
    (lambda: nn.Sequential(nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(), nn.AvgPool2d(64)),
     (10**6, 3, 4096, 4096), (10**6, 3, 32, 32)),
    (lambda: nn.Sequential(nn.LayerNorm(512), nn.GELU(), nn.Linear(512, 8), nn.Softmax(-1)), (10**9, 10**4, 512),
     (10**9, 10**4, 8)),
    (lambda: nn.TransformerEncoderLayer(64, 4, 128), (10**6, 10**3, 64), (10**6, 10**3, 64)),
    (lambda: lambda x: tg.rand_like(x) + tg.zeros_like(x) + tg.ones(x.shape, device=x.device)
     + tg.randn(*x.shape, device=x.device),
     (10**6, 10**6), (10**6, 10**6)),
    (lambda: lambda x: x.sort(-1)[0].cumsum(0).flip(1).roll(3, 0).topk(5).indices, (10**6, 10**6), (10**6, 5)),
    (lambda: lambda x: nn.functional.cross_entropy(x, x.argmax(-1)), (10**9, 10**5), ()),
])
def test_sizes_cost_nothing(layer, shape, expected):
    assert infer(layer(), shape) == expected


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_time_costs_nothing(kind):
    layer = getattr(nn, kind)(8, 4096, device="meta")
    with quietly(layer):
        out, _ = getattr(nn, kind)(8, 16)(fake((10**5, None, 8)))
        wide, _ = layer(fake((10**5, None, 8)))
    assert out.shape == (10**5, 2, 16) and wide.shape == (10**5, 2, 4096)


class Watched(nn.Module):
    """Draws numbers, writes into buffers in several ways, keeps its input, and may fail."""

    def __init__(self, fails=False):
        super().__init__()
        self.norm, self.drop, self.fails, self.seen = nn.BatchNorm1d(3), nn.Dropout(), fails, None
        self.register_buffer("count", tg.zeros(()))
        self.register_buffer("mean", tg.zeros(3))

    def forward(self, x):
        self.seen = x
        self.count += 1
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        self.mean.add_(1)
        y = self.drop(self.norm(x)) + tg.rand(3) + tg.rand(3, generator=GENERATOR)
        if self.fails:
            raise ValueError("as told")
        return y


GENERATOR = tg.Generator()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_running_quietly_leaves_no_trace(fails, zeros):
    module = Watched(fails)
    held = {key: (value, value.clone(), value._version) for key, value in module.named_buffers()}
    states = tg.get_rng_state(), GENERATOR.get_state()
    x = tg.zeros(4, 3) if zeros else fake((None, 3))
    try:
        with quietly(module):
            assert not module(x).requires_grad
    except ValueError:
        assert fails
    assert not is_fake(module.seen)
    for key, value in module.named_buffers():
        assert value is held[key][0] and tg.equal(value, held[key][1]) and value._version == held[key][2]
    assert tg.equal(states[0], tg.get_rng_state()) and tg.equal(states[1], GENERATOR.get_state())


def test_writes_of_fake_tensors_are_dropped():
    x, target = fake((3, 4)), tg.arange(12.0).reshape(3, 4)
    rows, version, before = tg.tensor([0, 1]), target._version, target.clone()
    writes = [lambda: target.add_(x), lambda: target.copy_(x), lambda: target.masked_fill_(x > 0, 1),
              lambda: tg.add(target, x, out=target),
              lambda: target.__setitem__(0, x[0]), lambda: target.__setitem__(rows, x[:2]),
              lambda: target.__setitem__(x[:, 0].long(), 1.0),
              lambda: target.__setitem__(x > 0, 1), lambda: target.index_put_((rows,), x[:2], accumulate=True),
              lambda: target.lerp_(x, 0.5)]
    for write in writes:
        with quietly(), quietly():
            write()
        with pytest.raises(NoValues):
            write()
    assert tg.equal(target, before) and target._version == version


def test_fake_tensors_can_be_written_to():
    x = fake((3, 4))
    version, y = x._version, x
    x.add_(1).relu_().normal_().bernoulli_(0.3)
    x[0], x[x > 0], x[:, 1] = 2, 0, tg.ones(3)
    x += fake((4,))
    assert x is y and x._version > version
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(fake((2, 3, 4)))
    with pytest.raises(RuntimeError, match="must match the existing size"):
        x[0] = fake((5,))


def test_threads_have_flags_of_their_own():
    def other():
        tg.zeros(2).copy_(fake((2,)))
    with quietly(), ThreadPoolExecutor(1) as pool, pytest.raises(NoValues):
        pool.submit(other).result()


@pytest.mark.parametrize("wrap", [nn.utils.parametrizations.spectral_norm, nn.utils.spectral_norm,
                                  nn.utils.parametrizations.weight_norm])
def test_reparameterized_weights(wrap):
    module = wrap(nn.Linear(3, 4))
    before = {key: value.clone() for key, value in module.state_dict().items()}
    assert infer(module, (None, 3)) == (None, 4)
    assert (all(tg.equal(value, before[key]) for key, value in module.state_dict().items())
            and not is_fake(module.weight))


def test_lazy_modules_get_real_parameters():
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(5))
    tg.manual_seed(3)
    assert infer(model, (None, 2, 6, 6)) == (None, 5)
    tg.manual_seed(3)
    other = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(5)).eval()
    other(tg.zeros(2, 2, 6, 6))
    for one, two in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        assert not is_fake(one) and tg.equal(one, two)


# ── values are refused ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ask", [
    lambda x: x.sum().item(), lambda x: bool(x.sum()), lambda x: float(x.sum()), lambda x: int(x.sum()),
    lambda x: x.tolist(), lambda x: x.numpy(),
    lambda x: [1][x.sum().long()], lambda x: np.asarray(x), lambda x: x.nonzero(),
    lambda x: tg.nonzero(x, as_tuple=True), lambda x: x[x > 0],
    lambda x: x.unique(), lambda x: x.masked_select(x > 0), lambda x: tg.where(x > 0), lambda x: tg.equal(x, x),
    lambda x: f"{x.sum():.2f}",
    lambda x: tg.zeros(x.sum().long()), lambda x: 3 in x, lambda x: x.long().bincount(), lambda x: pickle.dumps(x)])
def test_values_are_refused(ask):
    with pytest.raises(NoValues, match="there are only shapes here"):
        ask(fake((2, 3)) if "bincount" not in ask.__code__.co_names else fake((6,)))
    assert isinstance(NoValues("this"), RuntimeError)


def test_shows_no_values():
    x = fake((2, 3), tg.int64)
    assert (repr(x) == "tensor(..., size=(2, 3), dtype=torch.int64)" and x.device == tg.device("cpu")
            and str(x.device) == "cpu")
    assert repr(x.device) == "device(type='cpu')" and hash(x.device) == hash(tg.device("cpu")) and x.is_cpu


# ── infer ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_unknown_sizes_in_any_place():
    conv = nn.Conv2d(3, 4, 3, padding=1)
    assert infer(conv, (None, 3, 8, 8)) == (None, 4, 8, 8)
    assert infer(conv, (5, 3, None, None)) == (5, 4, None, None)
    assert infer(conv, (5, 3, 8, 8)) == (5, 4, 8, 8)
    assert infer(lambda x: x.T, (3, None)) == (None, 3)
    assert infer(lambda x, y: tg.cat([x, y], 1), (None, 3), (None, 4)) == (None, 7)
    assert infer(nn.Embedding(10, 4), (None, 7), dtype=tg.int64) == (None, 7, 4)
    assert (infer(nn.LSTM(8, 16, 2, bidirectional=True, batch_first=True), (None, 5, 8))
            == ((None, 5, 32), ((4, None, 16), (4, None, 16))))


def test_nested_shapes_and_results():
    def function(tree, scale=1):
        (a, b), c = tree["pair"], tree["one"]
        return {"sum": (a + b) * scale, "rest": [c.max(0), "text", None]}
    found = infer(function, {"pair": [(None, 3), (3,)], "one": (4, 2)},
                  dtype={"pair": [tg.float32, tg.float64], "one": tg.int64}, scale=2)
    assert found["sum"] == (None, 3) and found["rest"][1:] == ["text", None]
    assert (type(found["rest"][0]).__name__ == "max" and found["rest"][0].values == (2,)
            and found["rest"][0].indices == (2,))
    assert infer(nn.CrossEntropyLoss(), (None, 4), (None,), dtype=(tg.float32, tg.int64)) == ()


def test_functions_that_look_at_values_run_on_zeros():
    norm, state = nn.BatchNorm1d(3), tg.get_rng_state()

    def function(x):
        return norm(x) + tg.rand(3), float(x.sum())
    assert infer(function, (None, 3)) == ((None, 3), 0.0)
    assert (norm.num_batches_tracked == 0 and tg.equal(norm.running_var, tg.ones(3))
            and tg.equal(tg.get_rng_state(), state))


def test_errors_pass_through():
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x5 and 3x4\)"):
        infer(nn.Linear(3, 4), (None, 5))
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        infer(lambda x: x.transpose(0, 1).view(6), (2, 3))
    with pytest.raises(RuntimeError, match=r"shape '\[2, 3\]' is invalid for input of size 12") as caught:
        infer(lambda x: x.reshape(2, 3), (None, 3))
    assert any("not known" in note for note in caught.value.__notes__)
    with pytest.raises(RuntimeError, match="how many results"):
        infer(lambda x: x.unbind(0), (None, 3))
    with pytest.raises(RuntimeError, match="number of axes"):
        infer(lambda x: x if len(x) == 2 else x[0], (None, 3))
    with pytest.raises(RuntimeError, match="negative dimension"):
        fake((3, -1))
    with pytest.raises(TypeError, match="a shape is a tuple"):
        infer(nn.Linear(3, 4), ["x"])


def test_fake_tensors_under_transforms():
    x = fake((5, 3, 4))
    assert tg.vmap(lambda a: (a @ a.T).softmax(-1))(x).shape == (5, 3, 3)
    assert tg.func.jacrev(lambda a: a.sin().sum(0))(fake((3, 4))).shape == (4, 3, 4)
    y = fake((3, 4)).requires_grad_()
    assert tg.autograd.grad(nn.functional.conv1d(y[None], tg.ones(2, 3, 2)).tanh().sum(), y)[0].shape == (3, 4)
