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


@torch.no_grad()
def test_points_for_many_tiles_are_made_in_each_run():
    """They take no memory between runs, and none beside those of the next layer."""
    layers = [nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(3)]
    net, x = nn.Sequential(nn.Conv2d(16, 16, 1), *layers).eval(), torch.randn(1, 16, 32, 32)
    for layer in layers:
        nn.init.uniform_(layer[1].weight), nn.init.uniform_(layer[1].running_var)
    run = build(lower(net, x))
    made = [node for node in run.graph.nodes if isinstance(node.target, WinogradWeight)]
    assert [node.target.late for node in made] == [True] * 3 and not run.left
    assert run.memory["arena"] < 3 * x.numpy().nbytes + 2 * 4096 * 4
    for change in (lambda: None, lambda: net[1][0].weight.mul_(2), lambda: net[2][1].weight.mul_(-1)):
        change()
        np.testing.assert_allclose(run([x.numpy()])[0], net(x).numpy(), 1e-4, 1e-4)


def test_weights_are_packed_where_they_are():
    factors = np.arange(1, 33, dtype="f4")
    for packing, shape, *others in [(PackedWeight(True), (96, 5)), (BlockedWeight(), (32, 48, 3, 3)),
                                    (BlockedWeight(), (32, 48, 3, 3), factors)]:
        for dtype in ("f4", "f8"):
            w = np.random.default_rng(0).standard_normal(shape).astype(dtype)
            wanted, found = packing(w, *others), packing.over(w, *others)
            np.testing.assert_array_equal(found, wanted)
            assert np.shares_memory(found, w) and packing.stays(shape)
    for packing, shape in [(PackedWeight(), (32, 4)), (PackedWeight(True), (33, 4)), (BlockedWeight(), (32, 20, 3, 3)),
                           (BlockedWeight(first=True), (32, 16, 3, 3)), (BlockedWeight(True), (32, 16, 3, 3))]:
        assert not packing.stays(shape)


@torch.no_grad()
def test_a_frozen_convolution_packs_in_place(monkeypatch):
    monkeypatch.setattr(freezing, "LARGE", 0)
    net = nn.Sequential(nn.Conv2d(16, 32, 3, 2), nn.BatchNorm2d(32), nn.ReLU()).eval()
    nn.init.uniform_(net[1].weight), nn.init.uniform_(net[1].running_var)
    x, address = torch.randn(1, 16, 9, 9), net[0].weight.data_ptr()
    wanted, run = net(x), torch.compile(net, freeze=True)
    torch.testing.assert_close(run(x), wanted)
    [[entry]] = run._compiled.entries.values()
    assert address in [array.ctypes.data for array in entry.run._settled[0].values()]


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
