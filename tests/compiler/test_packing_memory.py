"""Memory of packed weights: factors applied while packing, matrices packed where they are, tables kept once."""
import re

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.compiler import freezing, plan
from tensorgrad.compiler.blocked import BlockedWeight, WinogradWeight
from tensorgrad.compiler.executable import build
from tensorgrad.compiler.memory import MAPPED, template
from tensorgrad.compiler.packed import PackedRows, PackedWeight
from tensorgrad.compiler.passes import optimize
from tensorgrad.compiler.plan import Build
from tensorgrad.compiler.room import Room
from tensorgrad.graph import lower
from tensorgrad.kernels.compiled import WANTED
from tensorgrad.nn import functional as F

pytestmark = [cpu_only, pytest.mark.skipif(not WANTED, reason="without kernels, nothing is packed")]


@pytest.mark.parametrize("outs, ins", [(32, 16), (17, 5)])
@pytest.mark.parametrize("packing", [BlockedWeight(), BlockedWeight(first=True), WinogradWeight()], ids=repr)
def test_factors_of_outputs(packing, outs, ins):
    rng = np.random.default_rng(0)
    w, factors = rng.standard_normal((outs, ins, 3, 3)).astype("f4"), rng.standard_normal((outs, 1, 1, 1)).astype("f4")
    kept = w.copy()
    np.testing.assert_allclose(packing(w, factors), packing(w * factors), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(w, kept)


def test_folded_norms_make_no_copies_of_weights():
    net = nn.Sequential(nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 16, 1, bias=False),
                        nn.BatchNorm2d(16)).eval()
    x = torch.randn(1, 16, 9, 9)
    for each in net[1], net[4]:
        nn.init.uniform_(each.weight), nn.init.uniform_(each.running_mean), nn.init.uniform_(each.running_var)
    graph = optimize(lower(net, x))
    assert {len(node.meta["shape"]) for node in graph.nodes if "multiply" in node.name} <= {1}
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(net)(x), net(x))


def test_matrices_are_packed_where_they_are():
    for dtype in ("f4", "f8"):
        w = np.random.default_rng(0).standard_normal((96, 5)).astype(dtype)
        wanted, found = PackedWeight(True)(w), PackedWeight(True).over(w)
        np.testing.assert_array_equal(found, wanted)
        assert np.shares_memory(found, w)
    fixed = np.zeros((32, 4))
    fixed.flags.writeable = False
    for packing, other in [(PackedWeight(), np.zeros((32, 4))), (PackedWeight(True), np.zeros((33, 4))),
                           (PackedWeight(True), np.zeros((4, 32)).T), (PackedWeight(True), fixed)]:
        assert packing.over(other) is None


class Tied(nn.Module):
    """Words to words, by one table."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(64, 6)
        self.out = nn.Linear(6, 64, bias=False)
        self.out.weight = self.table.weight

    def forward(self, words):
        return self.out(self.table(words).relu())


@torch.no_grad()
@pytest.mark.parametrize("reader", ["embedding", "index", "index_select"])
def test_a_frozen_table_is_there_once(monkeypatch, reader):
    monkeypatch.setattr(freezing, "LARGE", 0)
    model, words = Tied().eval(), torch.tensor([1, 63, 0, 31, 32, 1])
    if reader == "index":
        model.table.forward = lambda words: model.table.weight[words]
    elif reader == "index_select":
        model.table.forward = lambda words: model.table.weight.index_select(0, words)
    wanted, bad = model(words), torch.tensor([0, 64, 1, 1, 1, 1])
    try:
        model(bad)
    except IndexError as error:
        text = str(error).split("\n")[0]
    address = model.table.weight.data_ptr()
    run = torch.compile(model, freeze=True)
    torch.testing.assert_close(run(words), wanted)
    [[entry]] = run._compiled.entries.values()
    assert any(isinstance(node.target, PackedRows) for node in entry.run.graph.nodes) and not entry.run.left
    [packed] = [value for node, value in entry.run._settled[0].items() if isinstance(node.target, PackedWeight)]
    assert packed.ctypes.data == address
    with pytest.raises(IndexError, match=re.escape(text)):
        run(bad)
    torch.testing.assert_close(run(words), wanted)


HOLDERS = {"array": lambda w: w.detach().numpy(), "view": lambda w: w.detach()[3:], "parameter": lambda w: w,
           "transpose": lambda w: w.data.t(), "storage": lambda w: w.untyped_storage(), "alias": lambda w: w.data,
           "exported": lambda w: np.from_dlpack(w.detach()), "bytes": lambda w: memoryview(w.detach().numpy())}


@torch.no_grad()
@pytest.mark.parametrize("holder", HOLDERS)
def test_weights_that_others_hold_keep_their_values(monkeypatch, holder):
    monkeypatch.setattr(freezing, "LARGE", 0)
    model, x = nn.Sequential(nn.Linear(6, 64)).eval(), torch.randn(5, 6)
    held, wanted = HOLDERS[holder](model[0].weight), model(x)
    before = np.array(np.frombuffer(bytes(held), "f4") if holder == "storage" else held.detach()
                      if isinstance(held, torch.Tensor) else held)
    torch.testing.assert_close(torch.compile(model, freeze=True)(x), wanted)
    after = np.frombuffer(bytes(held), "f4") if holder == "storage" else held.detach() if isinstance(
        held, torch.Tensor) else held
    np.testing.assert_array_equal(np.array(after), before)


@torch.no_grad()
@pytest.mark.parametrize("reads", [lambda w, i: F.embedding(i, w).relu() @ w.t() + w.sum(),
                                   lambda w, i: w.t()[:, i].t() @ w.t()], ids=["sum", "columns"])
def test_a_weight_read_in_other_ways_is_not_shared(reads):
    model, words = nn.Module(), torch.tensor([1, 5, 7, 9, 3])
    model.w = nn.Parameter(torch.randn(64, 6))
    model.forward = lambda words: reads(model.w, words)
    wanted, graph = model(words), lower(model, words)
    np.testing.assert_allclose(build(graph, None, lambda: None)([words.numpy()])[0], wanted.numpy(), 1e-5, 1e-5)
    assert not any(isinstance(node.target, PackedRows) for node in graph.nodes)


def test_large_templates_are_mapped():
    for size in (MAPPED - 1, MAPPED, 1 << 30):
        memory = template(size, 16)
        assert memory.nbytes == size and memory.ctypes.data % 64 == 16


def refuses(*args, **params):
    raise MemoryError


@torch.no_grad()
@pytest.mark.parametrize("freeze", [False, True])
@pytest.mark.parametrize("stage", [(Build, "plan"), (Room, "reserve"), (plan, "template")], ids=lambda stage: stage[1])
def test_without_memory_calls_run_eagerly_and_nothing_is_lost(monkeypatch, stage, freeze):
    monkeypatch.setattr(Room, "of", lambda self, size: setattr(self, "left", size) or self)
    model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)).eval(), torch.randn(5, 64)
    wanted, run = model(x), torch.compile(model, freeze=freeze)
    with monkeypatch.context() as short:
        short.setattr(*stage, refuses)
        assert torch.equal(run(x), wanted)
    assert "there is no memory for its plan or its weights" in str(run.explain())
    assert torch.equal(run(x), wanted) and torch.equal(model(x), wanted)
    torch.testing.assert_close(run(x[:2]), wanted[:2])


@torch.no_grad()
def test_a_run_without_memory_for_its_arena_goes_on_in_python():
    class Short:
        def run(self, arrays):
            raise MemoryError
    model, x = nn.Sequential(nn.Linear(6, 4), nn.ReLU()).eval(), torch.randn(5, 6)
    made = build(lower(model, x))
    made._settled = made._settled[0], Short()
    np.testing.assert_allclose(made([x.numpy()])[0], model(x).numpy(), 1e-5, 1e-6)
