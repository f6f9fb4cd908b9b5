"""The modules of 2016: every class against differences, those that are still there against today's, containers,
weights, hand-written modules.
"""
import io
import warnings

import pytest
from support import cpu_only

import tensorgrad as tg
from tensorgrad.legacy import convert, nn
from tensorgrad.legacy.nn import criterions, table, weighted
from tensorgrad.legacy.nn.tape import flat, mapped

pytestmark = cpu_only


def real(*sizes):
    count = tg.Size(sizes).numel()
    return (tg.arange(1., count + 1, dtype=tg.float64) * 1.7).sin().view(sizes) * 1.3


def positive(*sizes):
    return real(*sizes).abs() + 0.5


CONNECTED = tg.tensor([[0, 0], [1, 0], [1, 1], [0, 2]])


def pooled(pool, x):
    pool.forward(x)
    return pool


# The arguments of each class, and an input.
CASES = {
    "Abs": ((), real(3, 4)), "AddConstant": ((3,), real(3, 4)), "Clamp": ((-.5, .5), real(3, 4)),
    "Contiguous": ((), real(3, 4).t()), "Copy": (("torch.DoubleTensor", "torch.DoubleTensor"), real(3)),
    "ELU": ((), real(3, 4)), "Exp": ((), real(3)), "HardShrink": ((), real(3, 4)), "HardTanh": ((), real(3, 4)),
    "Identity": ((), real(3)), "LeakyReLU": ((), real(3, 4)), "Log": ((), positive(3)), "LogSigmoid": ((), real(3)),
    "LogSoftMax": ((), real(3, 4)), "MulConstant": ((2,), real(3)),
    "Normalize": ((2,), real(3, 4)), "Power": ((3,), positive(3)), "RReLU": ((), real(3, 4)), "ReLU": ((), real(3, 4)),
    "ReLU6": ((), real(3, 4) * 8), "Sigmoid": ((), real(3)), "SoftMax": ((), real(3, 4)), "SoftMin": ((), real(3, 4)),
    "SoftPlus": ((), real(3)), "SoftShrink": ((), real(3, 4)), "SoftSign": ((), real(3)),
    "SpatialSoftMax": ((), real(2, 3, 2, 2)), "Sqrt": ((), positive(3)), "Square": ((), real(3)), "Tanh": ((), real(3)),
    "TanhShrink": ((), real(3)), "Threshold": ((.1, -2), real(3, 4)), "Dropout": ((), real(3, 4)),
    "SpatialDropout": ((), real(2, 3, 2, 2)), "VolumetricDropout": ((), real(2, 3, 2, 2, 2)),
    "CAddTable": ((), [real(3), real(3)]), "CDivTable": ((), [real(3), positive(3)]),
    "CMulTable": ((), [real(3), positive(3), real(3)]), "CSubTable": ((), [real(3), positive(3)]),
    "CosineDistance": ((), [real(3, 4), positive(3, 4)]), "DotProduct": ((), [real(3, 4), positive(3, 4)]),
    "FlattenTable": ((), [real(2), [real(3), [real(1)]]]),
    "Index": ((0,), [real(4, 2), tg.tensor([0, 2, 2])]),
    "JoinTable": ((1,), [real(2, 2), real(2, 3)]),
    "MM": ((True, False), [real(3, 2), positive(3, 4)]),
    "MV": ((), [real(3, 2), positive(2)]),
    "MaskedSelect": ((), [real(4), tg.tensor([1, 0, 1, 1]).byte()]),
    "MixtureTable": ((), [positive(3, 2), [real(3, 4), positive(3, 4)]]),
    "NarrowTable": ((1, 2), [real(1), real(2), real(3)]), "PairwiseDistance": ((2,), [real(3, 4), positive(3, 4)]),
    "SelectTable": ((1,), [real(1), real(2)]), "SplitTable": ((1,), real(2, 3)), "Max": ((1,), real(3, 4)),
    "Mean": ((1,), real(3, 4)), "Min": ((0,), real(3, 4)), "Narrow": ((1, 1, 2), real(3, 4)),
    "Padding": ((1, -2, 7), real(2, 3)), "Replicate": ((3, 1), real(2, 2)), "Reshape": ((2, 2), real(3, 4)),
    "Select": ((1, 2), real(3, 4)), "Squeeze": ((), real(3, 1)), "Sum": ((1, True), real(3, 4)),
    "Transpose": (((0, 1), (1, 2)), real(2, 3, 4)), "Unsqueeze": ((1,), real(3)), "View": ((2, -1), real(4, 2)),
    "Linear": ((4, 3), real(5, 4)), "Add": ((4,), real(3, 4)), "Bilinear": ((2, 3, 4), [real(5, 2), positive(5, 3)]),
    "CMul": ((4,), real(3, 4)), "Cosine": ((4, 3), real(5, 4)), "Euclidean": ((4, 3), real(5, 4)),
    "WeightedEuclidean": ((4, 3), real(5, 4)), "LookupTable": ((6, 3), tg.tensor([[0, 2], [5, 2]])),
    "Mul": ((), real(3)), "PReLU": ((4,), real(3, 4)),
    "PartialLinear": ((4, 3), real(5, 4)),
    "BatchNormalization": ((4,), real(5, 4)),
    "SpatialBatchNormalization": ((2,), real(3, 2, 2, 2)),
    "VolumetricBatchNormalization": ((2,), real(3, 2, 2, 2, 2)),
    "SpatialConvolution": ((2, 3, 2, 3, 1, 2, 1, 0), real(2, 2, 5, 6)),
    "SpatialDilatedConvolution": ((2, 3, 2, 2, 1, 1, 0, 0, 2, 1), real(2, 2, 5, 6)),
    "SpatialFullConvolution": ((2, 3, 2, 3, 2, 1, 0, 1, 1, 0), real(2, 2, 4, 3)),
    "SpatialConvolutionLocal": ((2, 3, 5, 4, 2, 3), real(2, 2, 4, 5)),
    "SpatialConvolutionMap": ((CONNECTED, 2, 3), real(2, 2, 5, 5)),
    "SpatialFullConvolutionMap": ((CONNECTED, 2, 3), real(2, 2, 4, 4)),
    "SpatialMaxPooling": ((2, 3), real(2, 2, 6, 6)), "SpatialAveragePooling": ((2, 3), real(2, 2, 6, 6)),
    "SpatialAdaptiveMaxPooling": ((2, 3), real(2, 2, 6, 6)),
    "SpatialFractionalMaxPooling": ((2, 2, 3, 3), real(1, 2, 7, 7)),
    "SpatialLPPooling": ((2, 2, 2, 2), real(1, 2, 4, 4)),
    "SpatialMaxUnpooling": ((pooled(nn.SpatialMaxPooling(2, 2), real(1, 2, 4, 4)),), real(1, 2, 2, 2)),
    "SpatialCrossMapLRN": ((3,), real(1, 4, 3, 3)), "SpatialReflectionPadding": ((1, 2, 1, 1), real(1, 2, 4, 4)),
    "SpatialReplicationPadding": ((1,), real(1, 2, 3, 3)), "SpatialZeroPadding": ((1, -1), real(1, 1, 3, 3)),
    "SpatialSubSampling": ((2, 2, 2), real(1, 2, 4, 4)),
    "SpatialSubtractiveNormalization": ((2, tg.ones(3, 3)), real(1, 2, 5, 5)),
    "SpatialDivisiveNormalization": ((2, tg.ones(3, 3)), real(1, 2, 5, 5)),
    "SpatialContrastiveNormalization": ((2, tg.ones(3)), real(1, 2, 5, 5)),
    "SpatialUpSamplingNearest": ((2,), real(1, 2, 2, 2)),
    "TemporalConvolution": ((3, 4, 2), real(2, 5, 3)), "TemporalMaxPooling": ((2,), real(6, 3)),
    "TemporalSubSampling": ((3, 2), real(2, 6, 3)),
    "VolumetricConvolution": ((2, 3, 2, 3, 2), real(1, 2, 4, 5, 4)),
    "VolumetricFullConvolution": ((2, 3, 2, 3, 2), real(1, 2, 2, 3, 2)),
    "VolumetricMaxPooling": ((2, 2, 2), real(1, 2, 4, 4, 4)),
    "VolumetricAveragePooling": ((2, 2, 2), real(1, 2, 4, 4, 4)),
    "VolumetricMaxUnpooling": ((pooled(nn.VolumetricMaxPooling(2, 2, 2), real(1, 2, 4, 4, 4)),), real(1, 2, 2, 2, 2)),
    "VolumetricReplicationPadding": ((1,), real(1, 1, 2, 2, 2)),
}
# what they give backward is not the derivative of what they compute
NOT_THE_GRADIENT = {"GradientReversal", "L1Penalty"}
signs = tg.tensor([1., -1., 1., -1.], dtype=tg.float64)
LOSSES = {
    "AbsCriterion": ((), real(3, 4), positive(3, 4)),
    "BCECriterion": ((), real(3, 4).sigmoid(), (real(3, 4) > 0).double()),
    "ClassNLLCriterion": ((tg.tensor([1., 2., 3.]).double(),), real(4, 3), tg.tensor([0, 2, 1, 1])),
    "ClassSimplexCriterion": ((5,), real(3, 5), tg.tensor([0, 4, 2])),
    "CosineEmbeddingCriterion": ((.2,), [real(4, 3), positive(4, 3)], signs),
    "CrossEntropyCriterion": ((), real(4, 3), tg.tensor([0, 2, 1, 1])),
    "DistKLDivCriterion": ((), real(3, 4), positive(3, 4)),
    "HingeEmbeddingCriterion": ((), real(4), signs), "L1Cost": ((), real(4), None),
    "L1HingeEmbeddingCriterion": ((20,), [real(4), positive(4)], -1),
    "MSECriterion": ((), real(3, 4), positive(3, 4)), "MarginCriterion": ((), real(4), signs),
    "MarginRankingCriterion": ((.3,), [real(4), positive(4)], signs),
    "MultiLabelMarginCriterion": ((), real(2, 4), tg.tensor([[1, 3, -1, 0], [0, -1, 2, 1]])),
    "MultiLabelSoftMarginCriterion": ((), real(3, 4), (real(3, 4) > 0).double()),
    "MultiMarginCriterion": ((2,), real(4, 3), tg.tensor([0, 2, 1, 1])),
    "SmoothL1Criterion": ((), real(3, 4), positive(3, 4)), "SoftMarginCriterion": ((), real(4), signs),
    "SpatialClassNLLCriterion": ((), real(2, 3, 2, 2), tg.arange(8).view(2, 2, 2) % 3),
    "WeightedMSECriterion": ((positive(4),), real(3, 4), positive(3, 4)),
}


def test_every_class_has_a_case():
    assert (set(CASES) | NOT_THE_GRADIENT == {*table.LAYERS, *weighted.LAYERS}
            and set(LOSSES) == set(criterions.CRITERIONS))


def slopes_agree(loss, tensor, gradient):
    """The derivative along three directions agrees with the gradient."""
    for k in range(3):
        way = (tg.arange(1., tensor.numel() + 1, dtype=tg.float64) * (1.3 + k)).cos().view(tensor.shape)
        kept = tensor.clone()
        tensor.copy_(kept + 1e-6 * way)
        up = loss()
        tensor.copy_(kept - 1e-6 * way)
        down = loss()
        tensor.copy_(kept)
        assert abs((up - down) / 2e-6 - float((gradient * way).sum())) < 1e-4 * (1 + abs(up)), (up - down) / 2e-6


def made(name, cases=CASES):
    tg.manual_seed(0)
    args, *data = cases[name]
    return getattr(nn, name)(*args).double(), *(mapped(lambda t: t.clone(), x) for x in data)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    m, x = made(name)

    def run():
        tg.manual_seed(1)           # dropout and its kin draw alike each time
        return m.forward(x)
    g = mapped(lambda t: (tg.arange(1., t.numel() + 1, dtype=tg.float64) + 0.5).cos().view(t.shape), run())
    weights, gradients = m.parameters()
    m.zeroGradParameters()
    run()
    found = m.backward(x, g)
    twice = [w.clone() for w in gradients]
    m.accGradParameters(x, g, 2)
    assert all(tg.allclose(now, 3 * before) for now, before in zip(gradients, twice))

    def loss():
        return sum(float((o * w).sum()) for o, w in zip(flat(run()), flat(g)))
    for tensor, gradient in [*((t, d) for t, d in zip(flat(x), flat(found)) if t.is_floating_point()),
                             *zip(weights, twice)]:
        assert gradient.shape == tensor.shape
        slopes_agree(loss, tensor, gradient)
    assert name in repr(m) and m.clearState() is m and not m.output.numel()
    assert len(weights) == (len(m.learned) if m.row.shapes else 0)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_criterions(name):
    m, x, y = made(name, LOSSES)
    assert isinstance(m.forward(x, y), float)
    found = m.backward(x, y)
    for tensor, gradient in zip(flat(x), flat(found)):
        slopes_agree(lambda: m.forward(x, y), tensor, gradient)


CONVERTED = [name for name in CASES if (table.LAYERS | weighted.LAYERS)[name].today]


@pytest.mark.parametrize("name", CONVERTED)
def test_today_computes_what_it_did(name):
    m, x = made(name)
    if not m.parameters()[0] and name not in ("RReLU",) and "Dropout" not in name:
        m.evaluate()
    m.training()
    new = convert(m).double()
    tg.manual_seed(3)
    old = m.forward(x)
    tg.manual_seed(3)
    today = new(*x) if isinstance(x, list) else new(x)
    assert tg.equal(old, today) and new.training
    for kept, own in zip(m.parameters()[0], new.parameters()):
        assert tg.equal(kept.view(own.shape), own) and kept.data_ptr() != own.data_ptr()
    m.evaluate()
    assert (not convert(m).training and tg.equal(m.forward(x), convert(m).double()(*x) if isinstance(x, list)
                                                 else convert(m).double()(x)))


@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
@pytest.mark.parametrize("name", [name for name in LOSSES if criterions.CRITERIONS[name].today])
def test_todays_losses_are_theirs(name):
    m, x, y = made(name, LOSSES)
    new = convert(m)
    assert abs(m.forward(x, y) - float(new(*x, y) if isinstance(x, list) else new(x, y))) < 1e-12


def theirs(torch, value):
    """Tensors of a nest as PyTorch's."""
    if isinstance(value, (list, tuple)):
        return [theirs(torch, v) for v in value]
    return torch.from_numpy(value.detach().numpy().copy()) if isinstance(value, tg.Tensor) else value


def agree(ours, found):
    for a, b in zip(flat(ours), found if isinstance(found, (list, tuple)) else [found], strict=True):
        assert (tuple(a.shape) == tuple(b.shape) and tg.allclose(a.double(), tg.from_numpy(b.detach().numpy()).double(),
                                                                 rtol=1e-9, atol=1e-11))


@pytest.mark.parametrize("name", [name for name in CONVERTED if name != "RReLU" and "Dropout" not in name])
def test_pytorch_computes_what_it_did(name):
    """Its module, made from the text of today's: outputs, and gradients of inputs and weights."""
    torch = pytest.importorskip("torch")
    m, x = made(name)
    new = convert(m).double()
    module = eval(repr(new), vars(torch.nn)).double()
    module.load_state_dict({key: theirs(torch, value) for key, value in new.state_dict().items()})
    given = [t.requires_grad_(t.is_floating_point()) for t in theirs(torch, flat(x))]
    out = module(*given)
    g = mapped(lambda t: (tg.arange(1., t.numel() + 1, dtype=tg.float64) + 0.5).cos().view(t.shape), m.forward(x))
    out.backward(theirs(torch, g))
    m.zeroGradParameters()
    agree(m.output, out)
    found = m.backward(x, g)
    agree([d for t, d in zip(flat(x), flat(found)) if t.is_floating_point()],
          [t.grad for t in given if t.requires_grad])
    for gradient, weight in zip(m.parameters()[1], module.parameters(), strict=True):
        agree(gradient.view(weight.shape), weight.grad)


@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
@pytest.mark.parametrize("name", [name for name in LOSSES if criterions.CRITERIONS[name].today])
def test_pytorchs_losses_are_theirs(name):
    torch = pytest.importorskip("torch")
    m, x, y = made(name, LOSSES)
    new = convert(m)
    options = {key: theirs(torch, getattr(new, key)) for key in ("reduction", "margin", "p", "weight")
               if getattr(new, key, None) is not None}
    given = [t.requires_grad_() for t in theirs(torch, flat(x))]
    value = getattr(torch.nn, type(new).__name__)(**options)(*given, theirs(torch, y))
    value.backward()
    assert abs(m.forward(x, y) - value.item()) < 1e-12
    agree(m.backward(x, y), [t.grad for t in given])


def test_what_has_no_module_of_today_says_so():
    with pytest.raises(TypeError, match=r"legacy\.nn\.Euclidean has no module of today: ‖x − wⱼ‖ for each column of W"):
        convert(nn.Sequential(nn.Euclidean(2, 3)))


def test_a_network_of_todays_modules_has_its_gradients():
    """A whole network against today's: outputs, gradients of inputs and weights, in one dtype."""
    tg.manual_seed(0)
    old = nn.Sequential(nn.SpatialConvolution(1, 4, 3, 3, 1, 1, 1), nn.SpatialBatchNormalization(4), nn.ReLU(True),
                        nn.SpatialMaxPooling(2, 2), nn.View(-1, 36),
                        nn.Concat(1, nn.Linear(36, 2), nn.Sequential(nn.Linear(36, 3), nn.Tanh())),
                        nn.LogSoftMax())
    x, y = real(5, 1, 6, 6).float(), tg.tensor([0, 1, 2, 3, 4])
    loss = nn.ClassNLLCriterion()
    value = loss.forward(old.forward(x.clone()), y)
    first, rest = old.modules[:4], old.modules[5:]
    new = tg.nn.Sequential(convert(nn.Sequential(*first)), tg.nn.Flatten(), convert(nn.Sequential(*rest)))
    kept = x.clone()
    old.zeroGradParameters()
    old.forward(kept)
    found = old.backward(kept, loss.backward(old.output, y))
    leaf = x.clone().requires_grad_()
    today = tg.nn.functional.nll_loss(new(leaf), y)
    today.backward()
    assert abs(value - float(today.detach())) < 1e-6 and tg.allclose(found, leaf.grad, atol=1e-7)
    for gradient, weight in zip(old.parameters()[1], new.parameters()):
        assert tg.allclose(gradient.view(weight.shape), weight.grad, atol=1e-6)
    assert old.get(5).gradInput.shape == (5, 36) and tg.allclose(old.get(0).gradInput, found)


class Doubled(nn.Module):
    """Written by hand, as in 2016."""

    def __init__(self):
        super().__init__()
        self.weight, self.gradWeight = tg.tensor([2.]), tg.zeros(1)

    def updateOutput(self, input):
        self.output = input * self.weight
        return self.output

    def updateGradInput(self, input, gradOutput):
        self.gradInput = gradOutput * self.weight
        return self.gradInput

    def accGradParameters(self, input, gradOutput, scale=1):
        self.gradWeight += scale * (gradOutput * input).sum()


def test_hand_written_modules():
    x = tg.tensor([1., 3.])
    alone, inside = Doubled(), nn.Sequential(nn.Square(), Doubled(), nn.AddConstant(1))
    assert (alone.forward(x).tolist() == [2, 6] and alone.backward(x, tg.ones(2)).tolist() == [2, 2]
            and alone.gradWeight.item() == 4)
    assert inside.forward(x).tolist() == [3, 19] and inside.backward(x, tg.ones(2), 0.5).tolist() == [4, 12]
    assert inside.get(1).gradWeight.item() == 5 and inside.get(1).gradInput.tolist() == [2, 2]
    inside.updateGradInput(x, tg.ones(2))
    assert inside.get(1).gradWeight.item() == 5                 # nothing is added before accGradParameters


def test_containers_and_tables():
    x = tg.tensor([[1., 2.], [3., 4.]])
    both = nn.ConcatTable(nn.Identity(), nn.Square())
    assert [t.tolist() for t in both.forward(x)] == [x.tolist(), (x * x).tolist()]
    assert (tg.equal(both.backward(x, [tg.ones(2, 2), tg.ones(2, 2)]), 1 + 2 * x)
            and tg.equal(both.get(1).gradInput, 2 * x))
    apart = nn.ParallelTable(nn.MulConstant(2), nn.AddConstant(1))
    assert [t.tolist() for t in apart.forward([x, x])] == [(2 * x).tolist(), (x + 1).tolist()]
    assert [t.tolist() for t in apart.backward([x, x], [x, x])] == [(2 * x).tolist(), x.tolist()]
    sliced = nn.Parallel(0, 0, nn.Mul(), nn.Mul())
    sliced.get(0).weight.fill_(10), sliced.get(1).weight.fill_(-1)
    assert (sliced.forward(x).tolist() == [10, 20, -3, -4] and sliced.backward(x, tg.ones(4)).tolist()
            == [[10, 10], [-1, -1]])
    deep = nn.DepthConcat(1, nn.SpatialConvolution(1, 2, 3, 3), nn.SpatialConvolution(1, 1, 1, 1))
    assert (deep.forward(tg.ones(1, 1, 5, 5)).shape == (1, 3, 5, 5) and not deep.output[0, :2, 0].any()
            and deep.output[0, 2].all())
    assert both.size() == len(both) == 2 and both.insert(nn.Abs(), 0).get(0) is both[0]
    both.remove(0)
    assert [type(m).__name__ for m in both] == ["Identity", "Square"]
    with pytest.raises(IndexError, match="index should be between 0 and 2, got 5"):
        both.insert(nn.Abs(), 5)


def test_criterions_of_criterions():
    x, y = real(3, 4), positive(3, 4)
    several = nn.MultiCriterion().add(nn.MSECriterion(), 0.5).add(nn.AbsCriterion())
    assert abs(several.forward(x, y) - (0.5 * nn.MSECriterion().forward(x, y)
                                        + nn.AbsCriterion().forward(x, y))) < 1e-12
    slopes_agree(lambda: several.forward(x, y), x, several.backward(x, y))
    table_of = nn.ParallelCriterion().add(nn.MSECriterion()).add(nn.AbsCriterion(), 2)
    found = table_of.backward([x, x], [y, y])
    assert (tg.allclose(found[0], nn.MSECriterion().backward(x, y))
            and tg.allclose(found[1], 2 * nn.AbsCriterion().backward(x, y)))
    repeated = nn.ParallelCriterion(repeatTarget=True).add(nn.MSECriterion()).add(nn.MSECriterion())
    assert abs(repeated.forward([x, x], y) - 2 * nn.MSECriterion().forward(x, y)) < 1e-12
    module = nn.CriterionTable(nn.MSECriterion())
    assert abs(float(module.forward([x, y])) - nn.MSECriterion().forward(x, y)) < 1e-12
    assert tg.allclose(module.backward([x, y], tg.tensor(1.).double())[0], nn.MSECriterion().backward(x, y))
    corners = nn.ClassSimplexCriterion(5)
    assert corners.getPredictions(corners.simp).tolist() == [0, 1, 2, 3, 4]
    assert tg.allclose(corners.simp @ corners.simp.t(), tg.eye(5) * 1.25 - 0.25, atol=1e-6)


def test_softmax_knows_images_from_batches():
    for sizes, axis in [((4,), 0), ((2, 4), 1), ((4, 2, 3), 0), ((2, 4, 2, 3), 1)]:
        for kind in nn.SoftMax, nn.SpatialSoftMax:
            assert tg.allclose(kind().forward(real(*sizes)).sum(axis), tg.ones(1).double())


def test_gradients_that_are_not_derivatives():
    x = tg.tensor([1., -3.])
    turned, penalty = nn.GradientReversal(2), nn.L1Penalty(0.1)
    assert turned.forward(x).tolist() == [1, -3] and turned.backward(x, tg.tensor([1., 5.])).tolist() == [-2, -10]
    assert penalty.forward(x).tolist() == [1, -3] and abs(penalty.loss - 0.4) < 1e-6
    assert tg.allclose(penalty.backward(x, tg.ones(2)), tg.tensor([1.1, 0.9]))
    assert tg.allclose(nn.L1Penalty(0.1, True, False).backward(x, tg.ones(2)), tg.tensor([0.05, -0.05]))


def test_weights():
    tg.manual_seed(0)
    m = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x, g = real(4, 2).float(), tg.ones(4, 1)
    m.zeroGradParameters()
    m.forward(x), m.backward(x, g)
    before, gradients = ([t.clone() for t in ts] for ts in m.parameters())
    m.updateParameters(0.1)
    assert all(tg.allclose(now, w - 0.1 * d) for now, w, d in zip(m.parameters()[0], before, gradients))
    vector, steps = m.flattenParameters()
    assert vector.shape == steps.shape == (13,) and m.get(0).weight.data_ptr() == vector.data_ptr()
    vector.zero_()
    assert not m.get(2).bias.any() and not m.forward(x).any()
    m.reset(0.1)
    assert 0 < vector.abs().max() <= 0.1 * 3 ** 0.5
    twin, apart = m.clone("weight", "bias", "gradWeight", "gradBias"), m.clone()
    twin.get(0).weight.fill_(7)
    assert (m.get(0).weight == 7).all() and not (apart.get(0).weight == 7).any()
    shared = nn.Sequential(m.get(0), twin.get(0))
    assert shared.flattenParameters()[0].numel() == 9                 # weights in one memory are there once
    again = nn.Linear(2, 3).share(m.get(0), "weight")
    assert again.weight is m.get(0).weight and again.bias is not m.get(0).bias
    before = m.get(2).weight.clone()
    m.zeroGradParameters()
    m.forward(x), m.backwardUpdate(x, g, 0.5)
    assert not m.get(2).gradWeight.any() and not tg.equal(before, m.get(2).weight)
    part = nn.PartialLinear(4, 3)
    part.setPartition([2, 0])
    assert part.forward(real(5, 4).float()).shape == (5, 2)
    part.resetPartition()
    assert part.forward(real(5, 4).float()).shape == (5, 3)


def test_modes_types_and_searches():
    m = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.ConcatTable(nn.Linear(2, 1), nn.Linear(2, 1)))
    m.evaluate()
    assert not m.get(1).train and tg.equal(m.get(1).forward(tg.ones(3)), tg.ones(3))
    m.training()
    assert all(part.train for part in m.listModules()) and len(m.listModules()) == 6
    assert (m.type() == "torch.FloatTensor" and m.double() is m and m.type() == "torch.DoubleTensor"
            and m.get(0).weight.dtype == tg.float64)
    assert m.get(0).gradWeight.dtype == tg.float64 and m.float().get(0).bias.dtype == tg.float32
    found, around = m.findModules("nn.Linear")
    assert (found == [m.get(0), *m.get(2)] and around == [m, m.get(2), m.get(2)]
            and m.findModules(nn.Dropout)[0] == [m.get(1)])
    seen = []
    m.apply(lambda part: seen.append(type(part).__name__))
    assert seen[:3] == ["Sequential", "Linear", "Dropout"]
    changed = m.replace(lambda part: nn.Identity() if isinstance(part, nn.Dropout) else part)
    assert changed is m and type(m.get(1)) is nn.Identity
    with pytest.raises(TypeError, match=r"Linear\.__init__\(\): missing a required argument: 'outputSize'; it takes "
                                        r"\(inputSize, outputSize, bias=True\)"):
        nn.Linear(3)


def test_printing():
    assert repr(nn.Sequential(nn.SpatialConvolution(3, 16, 5, 5), nn.ReLU(True), nn.ConcatTable(nn.Linear(2, 3)))) == """nn.Sequential {
  [input -> (0) -> (1) -> (2) -> output]
  (0): nn.SpatialConvolution(3, 16, 5, 5, 1, 1, 0)
  (1): nn.ReLU(inplace=True)
  (2): nn.ConcatTable {
    (0): nn.Linear(2, 3)
  }
}"""  # noqa: E501


def test_files():
    m = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    x = real(4, 2).float()
    m.forward(x), m.backward(x, tg.ones(4, 3))
    file = io.BytesIO()
    tg.save(m, file)
    file.seek(0)
    again = tg.load(file, weights_only=False)
    assert tg.equal(again.forward(x), m.output) and tg.equal(again.get(0).gradWeight, m.get(0).gradWeight)
    file.seek(0)
    with pytest.raises(Exception, match="legacy"):
        tg.load(file)                       # classes come by name: a file of these is read where its reader says so


def test_in_place_and_stale_inputs():
    x = tg.tensor([-1., 2.])
    assert nn.ReLU(True).forward(x) is not None and x.tolist() == [0, 2]
    m, y = nn.Square(), tg.tensor([1., 2.])
    m.forward(y)
    y.mul_(3)
    assert m.backward(y, tg.ones(2)).tolist() == [6, 12]            # the input has changed, and the record is made anew
    other = tg.tensor([5., 5.])
    assert m.backward(other, tg.ones(2)).tolist() == [10, 10]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert m(y, tg.ones(2))[1].tolist() == [6, 12]
