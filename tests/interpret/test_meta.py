"""The device "meta": each function gives the shapes, dtypes and strides that it gives on the CPU, and computes
nothing.
"""
import copy
import io
import pickle

import numpy as np
import pytest
from side_by_side import same

import tensorgrad as tg
from tensorgrad import nn
from tensorgrad.interpret.symbol_storage import FakeStorage, MetaStorage, NoValues, SymbolStorage
from tensorgrad.symbolic.fake_tensors import fake
from tests.interpret.test_symbols import DEPEND_ON_VALUES, LAID_OUT, MOVES, selects
from tests.ops.test_op_table import CASES, pulled

BIG = 1 << 20


def facts(value):
    """Nested tensors as shapes, strides, dtypes, devices."""
    if isinstance(value, (list, tuple)):
        return [facts(part) for part in value]
    return tuple(value.shape), value.stride(), str(value.dtype), value.device.type, value.requires_grad


# ── the ops of the table, and their gradients ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("op", "sample"),
                         [pytest.param(op, sample, id=label) for op, sample, label in CASES
                          if op.opname not in MOVES and "shapes" not in sample.skipped])
def test_ops(op, sample):
    arrays = sample.draw("float32")
    if (op.opname in DEPEND_ON_VALUES or selects(op, arrays) or op.opname == "index_put"
            and any(a.dtype == "bool" for a in arrays[2:])):
        with pytest.raises(NoValues):
            pulled(op, sample, arrays, put=lambda a: tg.tensor(a, device="meta"),
                   upstream=[np.ones(arrays[0].shape, "float32")])
        return
    outputs, upstream, gradients, _ = pulled(op, sample, arrays)
    found, _, learnt, _ = pulled(op, sample, arrays, put=lambda a: tg.tensor(a, device="meta"), upstream=upstream)
    strides = op.opname not in LAID_OUT | {"attention"}         # recorded, its definition runs, and on the CPU a kernel
    for expected, meta in zip([*outputs, *gradients.values()], [*found, *learnt.values()], strict=True):
        if not isinstance(expected, tg.Tensor):
            assert type(meta) is type(expected)
            continue
        assert (meta.is_meta and meta.shape == expected.shape and meta.dtype == expected.dtype
                and meta.requires_grad == expected.requires_grad)
    assert not strides or [facts(x)[1] for x in found] == [facts(x)[1] for x in outputs]


# ── nothing is computed ───────────────────────────────────────────────────────────────────────────────────────────────


def test_sizes_cost_nothing():
    x = tg.rand(BIG, BIG, device="meta", requires_grad=True)
    y = nn.functional.dropout((x @ x.t()).relu() + tg.randn(BIG, device="meta"), 0.5)
    y[y > 1], y[0] = 0, tg.ones(BIG, device="meta")
    y.softmax(-1).sum().backward()
    assert x.grad.shape == (BIG, BIG) and x.grad.is_meta


@pytest.mark.parametrize("make", [lambda: tg.empty(1 << 61, device="meta"),
                                  lambda: tg.empty(1 << 40, 1, device="meta") + tg.empty(1, 1 << 40, device="meta"),
                                  lambda: tg.empty(1, device="meta").expand(1 << 40, 1 << 40)])
def test_sizes_that_no_number_holds(make):
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        make()


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_training(kind):
    state = tg.get_rng_state()
    with tg.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 1000, 3), nn.BatchNorm2d(1000), nn.ReLU(), nn.Flatten(),
                              nn.Linear(1000 * 254 * 254, 10))
        images, classes = tg.rand(10**6, 3, 256, 256), tg.randint(10, (10**6,))
    optimizer = getattr(tg.optim, kind)(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), classes).backward()
        optimizer.step()
    assert (all(p.is_meta and p.grad.shape == p.shape for p in model.parameters())
            and tg.equal(tg.get_rng_state(), state))


# ── what PyTorch says ─────────────────────────────────────────────────────────────────────────────────────────────────

FACTS = """
x, x.t() + x.t(), x.t().contiguous(), x.half(), x.bfloat16() + 1, x.long() / 2
x + torch.tensor(1.), torch.tensor(1.) + x, x == x, torch.where(x > 0, x, x), x.masked_fill(x > 0, 1.)
torch.ones(2, 3).to("meta"), torch.ones(3, 2).t().to("meta"), x.to("meta:0"), torch.tensor([1, 2], device="meta"), x.new_tensor([1, 2])
torch.arange(5, device="meta"), torch.eye(3, device="meta"), torch.full((2,), 1, device="meta"), torch.linspace(0, 1, 5, device="meta")
torch.empty_strided((2, 3), (1, 2), device="meta"), x.view(3, 2), x.reshape(-1), x.expand(4, 2, 3), x.view(torch.int16)
x[torch.tensor([0, 1])], x[[0, 1]], x[torch.tensor([0, 1], device="meta")], x[:, 1]
torch.rand_like(x), torch.bernoulli(x), x.clone().normal_(), torch.multinomial(x, 2), torch.randperm(5, device="meta")
torch.bernoulli(x, generator=torch.Generator()), torch.nn.functional.dropout(x, 0.5), torch.nn.functional.rrelu(x, training=True)
torch.nn.functional.one_hot(torch.zeros(4, dtype=torch.long, device="meta"), 5), torch.linalg.svd(x)[0], torch.fft.rfft(x)
torch.nn.functional.embedding_bag(torch.zeros(2, 4, dtype=torch.long, device="meta"), torch.ones(10, 3, device="meta"))
torch.repeat_interleave(x, torch.tensor([1, 2], device="meta"), 0, output_size=3), torch.func.vmap(lambda v: v * 2)(x)
torch.func.grad(lambda v: (v * v).sum())(x), torch.func.jvp(torch.sin, (x,), (x,))[1], torch.func.jacrev(lambda v: v * v)(x[0])
x.copy_(torch.ones(2, 3)), x.add_(1), torch.nn.init.trunc_normal_(x), torch.nn.init.orthogonal_(x), x.resize_(3, 4)
copy.deepcopy(x), pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps(x.t())), pickle.loads(pickle.dumps(torch.nn.Parameter(x)))
torch.add(x, x, out=torch.empty(0, device="meta")), torch.nn.LSTM(3, 4, 2, device="meta")(torch.ones(5, 2, 3, device="meta"))[0]
""".strip().splitlines()  # noqa: E501
SAID = """
repr(x), f"{x}", str(x[0])
x.data_ptr(), x.untyped_storage().data_ptr(), x.untyped_storage().nbytes(), x.storage_offset(), x[1].storage_offset(), x.get_device(), x.type()
x.item()
bool(x[0, 0])
int(x[0, 0])
x.tolist()
x.numpy()
x.cpu()
torch.ones(2, 3).copy_(x)
x[5]
x.view(5)
x.__dlpack__()
x.__setitem__(0, torch.ones(4, device="meta"))
torch.nn.Linear(3, 2, device="meta").to("cpu")
x.__setitem__(x > 0, 1.), x.__setitem__(0, torch.ones(3)), x._version
""".strip().splitlines()  # noqa: E501
REFUSED = """
x + torch.ones(2, 3)
torch.ones(2, 3) + x
torch.cat([x, torch.ones(2, 3)])
torch.nn.Linear(3, 2, device="meta")(torch.ones(4, 3))
torch.nn.Linear(3, 2)(torch.ones(4, 3, device="meta"))
x.nonzero()
x[x > 0]
x.masked_select(x > 0)
x.unique()
torch.bincount(torch.zeros(3, dtype=torch.long, device="meta"))
torch.add(x, x, out=torch.ones(2, 3))
torch.add(torch.ones(2, 3), torch.ones(2, 3), out=x)
torch.ones(2, 3).__setitem__(0, x[0])
torch.repeat_interleave(x, torch.tensor([1, 2], device="meta"), 0)
torch.mm(x, x)
""".strip().splitlines()


def evaluated(torch, line):
    return eval(line, {"torch": torch, "x": torch.ones(2, 3, device="meta"), "copy": copy, "pickle": pickle})     # noqa: S307


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", FACTS)
def test_facts(line):
    torch = pytest.importorskip("torch")
    assert facts(evaluated(tg, line)) == facts(evaluated(torch, line))


@pytest.mark.parametrize("line", SAID)
def test_words(line):
    same(lambda torch: evaluated(torch, line))


@pytest.mark.parametrize("line", REFUSED)
def test_refusals(line):
    """The type of the error; PyTorch's messages name its own functions."""
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:        # noqa: PT011
        evaluated(torch, line)
    with pytest.raises(theirs.type):
        evaluated(tg, line)


def test_a_file(tmp_path):
    x = tg.empty(BIG, BIG, device="meta").t()
    file = io.BytesIO()
    tg.save({"x": x}, file)
    file.seek(0)
    assert facts(tg.load(file)["x"]) == facts(x) and len(file.getvalue()) < 4096


# ── how the two storages without numbers differ ───────────────────────────────────────────────────────────────────────


def test_meta_and_fake_tensors():
    meta, other, real = tg.empty(2, 3, device="meta"), fake((2, 3)), tg.ones(2, 3)
    assert (type(meta._storage) is MetaStorage and type(other._storage) is FakeStorage
            and type(meta.array) is type(other.array))
    assert {MetaStorage.__base__, FakeStorage.__base__} == {SymbolStorage}
    assert (other + real).is_cpu and (other + meta).is_cpu and other.device == "cpu"
    with pytest.raises(RuntimeError, match="Tensor on device cpu is not on the expected device meta!"):
        meta + real
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        meta.cpu()
    with pytest.raises(NoValues):
        other.numpy()
    assert np.shape(other.array) == (2, 3)
