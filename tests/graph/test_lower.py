"""Programs as graphs of the table's ops: their graphs compute what they do, for shapes alone or for values, and leave
them as they were.
"""
import copy
import operator
import pickle
import threading

import numpy as np
import pytest
from samples import SAMPLES
from sampling import Values
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.core.dispatch import apply
from tensorgrad.graph import CannotLower, Graph, Lowered, ReadsValues, lower
from tensorgrad.nn import functional as F
from tensorgrad.ops.base import OPS, Op
from tensorgrad.utils._pytree import tree_leaves

pytestmark = cpu_only
randn = torch.randn


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def calls(graph):
    return [node for node in graph.nodes if node.op == "call_function"]


def names(graph):
    return [node.target.opname for node in calls(graph) if isinstance(node.target, type)]


def same(program, *inputs, others=(), **kwargs):
    """Lower a program, and compare what its graph computes with what it does, on the inputs and on others of the same
    shapes. Gives the graph.
    """
    if isinstance(program, nn.Module):
        program.eval()
    graph = lower(program, inputs, kwargs)
    graph.lint()
    for given in (inputs, *others):
        with torch.no_grad():
            wanted = program(*copy.deepcopy(given), **kwargs)
            got = graph(*copy.deepcopy(given), **kwargs)
        assert type(got) is type(wanted) or isinstance(wanted, tuple) and isinstance(got, tuple)
        assert len(tensors(got)) == len(tensors(wanted))
        for g, w in zip(tensors(got), tensors(wanted), strict=True):
            assert g.dtype is w.dtype
            torch.testing.assert_close(g, w)
    for node in graph.nodes:
        if node.op != "output":
            assert node.op == "get_attr" or "value" not in node.meta or node.all_input_nodes
            assert {"shape", "dtype", "scope"} <= set(node.meta)
    return graph


# ── programs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def attention():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)


def cnn():
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                         nn.Conv2d(4, 6, 3, groups=2), nn.GroupNorm(2, 6), nn.GELU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Dropout(0.5),
                         nn.Linear(6, 5), nn.LogSoftmax(1))


class Recurrent(nn.Module):
    def __init__(self, cell, **options):
        super().__init__()
        self.embed, self.cell = nn.Embedding(11, 5), cell(5, 6, batch_first=True, **options)

    def forward(self, words):
        out, state = self.cell(self.embed(words))
        return {"out": out[:, -1], "state": state}


class Shared(nn.Module):
    """A decoder that shares its weight with the embedding, has a buffer, and a tensor that is neither."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("mask", torch.ones(3, 3).tril().bool())
        self.scale = torch.tensor(2.0)

    def forward(self, words):
        x = self.embed(words) * self.scale
        scores = (x @ x.mT).masked_fill(~self.mask, -torch.inf).softmax(-1)
        return self.head(scores @ x)


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3), nn.Softmax(-1)), lambda: randn(5, 4)),
    "cnn": (cnn, lambda: randn(2, 3, 8, 8)),
    "attention": (attention, lambda: randn(2, 5, 8)),
    "lstm": (lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True), lambda: torch.randint(0, 11, (2, 4))),
    "lstm, projected": (lambda: Recurrent(nn.LSTM, proj_size=3), lambda: torch.randint(0, 11, (2, 4))),
    "gru": (lambda: Recurrent(nn.GRU), lambda: torch.randint(0, 11, (2, 4))),
    "shared": (Shared, lambda: torch.randint(0, 7, (2, 3))),
    "transposed": (lambda: nn.Sequential(nn.ConvTranspose2d(2, 4, 3, 2, 1), nn.InstanceNorm2d(4, affine=True),
                                         nn.PReLU(), nn.Upsample(scale_factor=2)),
                   lambda: randn(2, 2, 4, 4)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    make, draw = MODELS[name]
    model = make()
    graph = same(model, draw(), others=[(draw(),)])
    state = dict(model.state_dict(keep_vars=True))
    named = {node.target for node in graph.nodes if node.op == "get_attr" and not node.target.startswith("_constant")}
    assert named <= {*state, "scale"} and {n for n, _ in model.named_parameters()} <= named
    assert all(graph.tensors[name] is state.get(name, getattr(model, "scale", None)) for name in named)
    assert [node.op for node in graph.nodes].count("placeholder") == 1


def through_views(x):
    y = x.clone()
    z = y.view(-1, 2, 2)
    z[:, 0, 1] = x[:, 0]
    y[:, 3].copy_(x[:, 1])
    first, _ = y.chunk(2, 1)
    first += 1
    rows = y.unbind(0)
    rows[1].mul_(3)
    z.transpose(1, 2)[0].sub_(1)
    return y, z, first


def into_new(x):
    y = torch.zeros(x.shape[0], 6)
    y[:, 1:4] = x[:, :3]
    y[:, 0] = 1.
    y[1].fill_(4)
    y[:, 2].mul_(3)
    part = y.t()[4:]
    part.copy_(x[:, 1])
    return y.add_(1), part


def at_masks_and_places(x):
    y = x.clone()
    y[x > 0] = 0.
    y[:, 0][x[:, 1] > 0] = 2
    y[torch.tensor([0, 1]), torch.tensor([1, 2])] = 5.
    y[:, [0, 2]] = x[:, [2, 0]]
    y[:2].diagonal().fill_(9)
    y[y > 8] = 7
    return y.index_put_((torch.tensor([0]),), torch.ones(4), accumulate=True), y[torch.arange(4) % 2 == 0, :3]


def in_columns(x):
    y = x.t().contiguous().t()
    y[1] = 7
    z = y.as_strided((2, 2), (1, 2))
    z += 1
    return y, z, x.t().contiguous().as_strided((3,), (2,), 1)


def constants_written_to(x):
    table = torch.arange(6).view(2, 3).float()
    row = table[1]
    table += 1
    before = row.clone()
    table[1] = x[0, :3]
    return table, row * 2, before, torch.ones(3).cumsum(0) * x[0, 0]


FUNCTIONS = {
    "views": through_views, "new": into_new, "masks and places": at_masks_and_places, "columns": in_columns,
    "constants": constants_written_to,
    "gathered": lambda x: (x.gather(1, x.argsort(1)), x.scatter_add(1, x.argsort(1), x),
                           x.scatter(1, x.argsort(1), 0.5), F.one_hot(x.argmax(1), 5)),
    "placed by an element": lambda x: (x[x[:, 0].argmax()], x[0, x[1].argmin()], x.index_select(0, x[0].argsort())),
    "complex": lambda x: (torch.fft.fft(x).abs(), torch.fft.irfft(torch.fft.rfft(x, dim=0), dim=0),
                          torch.complex(x, x + 1).conj() * 2j),
    "pieces": lambda x: (*x.chunk(2, 1), *x.split([1, 3], 1), x[..., ::2], x[:, None, -1],
                         torch.stack([x, x], 1).flatten(0, 1), x.roll(1, 0), x.flip(0)),
    "ordered": lambda x: (*x.sort(1), x.topk(2, dim=1), x.median(1).values, x.cummax(0).indices, x.max(),
                          x.kthvalue(2, 1)),
    "dtypes": lambda x: (x.double() + 1, x.to(torch.bfloat16) * 2, (x > 0).sum(), x.int() / 2, x.long() + 0.5,
                         x.half().float(), x.bool().any(1)),
    "matrices": lambda x: (torch.linalg.inv(x @ x.mT + 4 * torch.eye(4)), torch.einsum("ij,kj->ik", x, x),
                           torch.cdist(x, x + 1), torch.linalg.qr(x)),
    "losses": lambda x: (F.cross_entropy(x, x.argmax(1)), F.mse_loss(x, x * 2),
                         F.binary_cross_entropy(x.sigmoid(), x.sigmoid()), F.huber_loss(x, x * 3)),
    "dropout": lambda x: F.dropout(x, 0.5, training=False) * F.alpha_dropout(x, 0.5),
    "a tree": lambda x: {"a": [x + 1, (x * 2, None)], "n": 3},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    same(FUNCTIONS[name], randn(4, 4), others=[(randn(4, 4),)])


def test_arguments_that_are_nested():
    def program(pair, *more, scale=1.0, table=None, flag=False):
        total = pair[0] @ pair[1]["w"] + sum(more)
        return total * scale + table["b"] if flag else total
    graph = same(program, [randn(2, 3), {"w": randn(3, 2)}], randn(2), randn(2), scale=3.0,
                 table={"b": randn(2), "c": None}, flag=True)
    assert ([node.target for node in graph.nodes if node.op == "placeholder"]
            == ["pair_0", "pair_1_w", "more_0", "more_1", "table_b"])
    with pytest.raises(TypeError, match="not nested as those"):
        graph(randn(2, 3), {"w": randn(3, 2)})


def test_what_a_node_tells():
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 3)))
    graph = lower(model, randn(2, 4))
    assert [(n.name, n.target.opname, n.meta["scope"], n.meta["shape"]) for n in calls(graph)] == [
        ("linear", "linear", "0", (2, 8)), ("relu", "relu", "1.0", (2, 8)), ("linear_1", "linear", "1.1", (2, 3))]
    assert all(n.meta["dtype"] == np.float32 and issubclass(n.target, Op) for n in calls(graph))
    first, second = calls(lower(lambda x: (x +
                                           1) * 2, randn(2)))
    assert first.meta["source"].startswith(f"{__file__}:") and "value" not in first.meta
    several = lower(lambda x: x.max(1), randn(2, 3))
    assert [n.target for n in calls(several)] == [OPS["max_dim"], operator.getitem, operator.getitem]


# ── what is known ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_constants_are_folded():
    def program(x):
        return x + torch.tril(torch.ones(3, 3)) @ torch.full((3, 3), 2.0)
    graph = same(program, randn(3, 3))
    assert names(graph) == ["add"] and [str(n.target) for n in calls(lower(program, randn(3, 3), fold=False))] == [
        "make_ones", "<class 'tensorgrad.ops.shape.Tril'>", "make_full", "<class 'tensorgrad.ops.matrix.Matmul'>",
        "<class 'tensorgrad.ops.elementwise.Add'>"]


def test_parameters_are_no_constants():
    model = nn.Linear(3, 3)
    model.forward = lambda x: x @ (model.weight.t() * 2)
    graph = same(model, randn(2, 3))
    assert names(graph) == ["t", "multiply", "matmul"]
    with torch.no_grad():
        model.weight.fill_(1.0)
    torch.testing.assert_close(graph(torch.ones(1, 3)), torch.full((1, 3), 6.0))


def test_values_that_are_known_can_be_read():
    def program(x):
        n = int(torch.arange(5)[3])
        if torch.ones(3).sum() > 2 and torch.tensor(True):
            x = x * n
        return x[: len(torch.tensor([0, 1, 1]).nonzero())]
    assert names(same(program, randn(4))) == ["multiply", "get_slice"]


READING = {
    "if": lambda x: x * 2 if x.sum() > 0 else x, "item": lambda x: x * x.sum().item(),
    "float": lambda x: x * float(x[0]), "int": lambda x: x * int(x.sum()),
    "list": lambda x: x * len(x.tolist()), "numpy": lambda x: x * x.numpy().sum(), "mask": lambda x: x[x > 0].sum(),
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: torch.where(x > 0)[0], "unique": lambda x: x.unique(),
    "repeat": lambda x: x.repeat_interleave((x > 0).long()),
    "masked values": lambda x: x.clone().masked_scatter_(x > 0, x),
    "written": lambda x: operator.setitem(x.clone(), x > 0, x[:1].expand(3)),
    "equal": lambda x: x * torch.equal(x, x), "a size": lambda x: torch.zeros(int(x.argmax())),
    "text": lambda x: x if str(x) else x,
}


@pytest.mark.parametrize("name", READING)
def test_reading_values_is_refused_by_the_line(name):
    with pytest.raises(ReadsValues) as caught:
        lower(READING[name], torch.ones(3))
    line = READING[name].__code__.co_firstlineno
    assert caught.value.source == f"{__file__}:{line}" and str(caught.value).startswith(caught.value.source)


def test_reading_values_of_examples():
    def program(x):
        return x * 2 if x.sum() > 0 else x - x.max().item()
    sources = []
    graph = lower(program, torch.ones(3), reading=sources.append)
    assert names(graph)[-1] == "multiply" and sources == [f"{__file__}:{program.__code__.co_firstlineno + 1}"]
    other = lower(program, -torch.ones(3), reading=sources.append)
    torch.testing.assert_close(other(torch.zeros(3)), torch.ones(3))
    assert len(sources) == 3


def test_whole_ops_and_definitions():
    def program(x):
        return F.mse_loss(x.softmax(-1), x)
    inputs = randn(2, 3)
    assert names(lower(program, inputs)) == ["softmax", "mse_loss"]
    graph = lower(program, inputs, whole=lambda op, operands, params: op.opname != "mse_loss")
    assert "mse_loss" not in names(graph) and names(graph)[:2] == ["softmax", "subtract"]
    torch.testing.assert_close(graph(inputs), program(inputs))


def test_other_sizes():
    graph = lower(lambda x: x.flatten(1), randn(2, 3, 4), sizes={(0, 0): 5, (0, 2): 7})
    assert calls(graph)[0].meta["shape"] == (5, 21)
    taken = lower(lambda x: x * x.sum().item(), torch.ones(2), reading=lambda source: None, sizes={(0, 0): 5})
    torch.testing.assert_close(taken(torch.ones(5)), torch.full((5,), 5.0))


def test_nothing_is_computed():
    huge = torch.empty(1, device="meta").expand(1 << 20, 1 << 20)
    graph = lower(lambda x, w: (x @ w).relu().sum(), (huge, huge))
    assert names(graph) == ["matmul", "relu", "sum"]


# ── random numbers, gradients, copies ─────────────────────────────────────────────────────────────────────────────────


def test_random_numbers_are_drawn_anew():
    def program(x):
        return (x + torch.rand(3), torch.randint(0, 10, (20,)), torch.bernoulli(x.sigmoid()), torch.randperm(6),
                torch.normal(x, 2.0), F.dropout(x, 0.5))
    state = torch.get_rng_state()
    graph = lower(program, torch.zeros(3))
    assert torch.equal(torch.get_rng_state(), state)
    got, other = graph(torch.zeros(3)), graph(torch.zeros(3))
    torch.set_rng_state(state)
    for g, w in zip(got, program(torch.zeros(3)), strict=True):
        assert g.dtype is w.dtype
        torch.testing.assert_close(g, w)
    assert not torch.equal(got[0], other[0]) and not torch.equal(got[1], other[1])


def test_gradients_reach_the_parameters():
    model = cnn().eval()
    x, twin = randn(2, 3, 8, 8, requires_grad=True), None
    model(x).square().sum().backward()
    wanted, twin = [p.grad for p in model.parameters()], x.grad
    model.zero_grad()
    x.grad = None
    lower(model, x)(x).square().sum().backward()
    torch.testing.assert_close(x.grad, twin)
    for p, w in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(p.grad, w)


def test_gradients_through_writes():
    def program(x):
        y = torch.zeros(3, 4)
        y[:, 1:3] = x
        y[0].mul_(2)
        return (y * y).sum()
    x = randn(3, 2, requires_grad=True)
    program(x).backward()
    wanted, x.grad = x.grad, None
    lower(program, x)(x).backward()
    torch.testing.assert_close(x.grad, wanted)


def test_outputs_are_not_the_inputs_unless_the_program_says_so():
    model = nn.Linear(2, 2)
    model.forward = lambda x: (x, x.clone(), x.contiguous(), model.weight.clone(), x.clone())
    graph = lower(model, randn(2))
    x = randn(2)
    same_one, *copies = graph(x)
    assert same_one is x and not any(c.data_ptr() in (x.data_ptr(), model.weight.data_ptr())
                                     for c in (copies[0], *copies[2:]))
    assert len({c.data_ptr() for c in copies}) >= 3


def test_graphs_can_be_copied_changed_and_pickled():
    graph = lower(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), randn(2, 3))
    x = randn(2, 3)
    wanted = graph(x)
    for other in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert type(other) is Lowered
        torch.testing.assert_close(other(x), wanted)
    relu = calls(graph)[-1]
    with graph.inserting_before(relu):
        new = graph.call_function(OPS["tanh"], relu.args)
    relu.replace_all_uses_with(new)
    graph.erase_node(relu)
    graph.lint()
    assert not torch.equal(graph(x), wanted) and names(graph) == ["linear", "tanh"]


# ── the program afterwards ────────────────────────────────────────────────────────────────────────────────────────────


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("calls", torch.zeros(()))
        self.plain, self.many = torch.ones(3), [torch.ones(3)]

    def forward(self, x):
        self.calls += 1
        self.seen = self.norm(x) * self.plain + self.many[0] * self.calls
        return self.seen


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_left_as_it_was(fails):
    model = Stateful()
    before = {name: dict(m.__dict__) for name, m in model.named_modules()}
    values = copy.deepcopy(model.state_dict())
    if fails:
        with pytest.raises(ValueError, match="expected 2D or 3D input"):
            lower(model, randn(3))
    else:
        graph = lower(model, randn(4, 3))
        assert set(graph.written) == {"calls", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
        torch.testing.assert_close(graph(x := randn(4, 3)), copy.deepcopy(model)(x))
    assert {name: m.__dict__ for name, m in model.named_modules()} == before
    assert all(torch.equal(v, values[k]) for k, v in model.state_dict().items())
    assert type(torch.ones(1).array) is np.ndarray and torch.is_grad_enabled()


def test_writes_to_parameters_are_refused():
    with pytest.raises(CannotLower, match="test_lower.py.*a write in place to weight"):
        lower(nn.Embedding(5, 3, max_norm=0.1), torch.tensor([1, 2]), reading=lambda source: None)


def test_tensors_of_a_run_are_of_no_use_afterwards():
    kept = []
    lower(lambda x: kept.append(x + 1) or x, randn(2))
    with pytest.raises(ReadsValues, match="after its program was recorded"):
        kept[0] * 2
    with pytest.raises(ReadsValues, match="after its program was recorded"):
        kept[0].tolist()


def test_other_threads_see_nothing():
    kinds = []

    def program(x):
        thread = threading.Thread(target=lambda: kinds.append(type(torch.ones(2).array)))
        thread.start()
        thread.join()
        return x + 1
    lower(program, randn(2))
    assert kinds == [np.ndarray]


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────────────

BY_VALUES = {name for name, op in OPS.items() if op.by_values} | {"bincount"}


@pytest.mark.parametrize("name", [name for name, (row, *_) in SAMPLES.items()
                                  if name in OPS and name != "to_device" and "graph" not in row.skipped])
def test_the_table(name):
    """Each op of the table is one step of a graph, which computes the same on tensors; those whose shapes depend on
    values are refused.
    """
    op, row = OPS[name], SAMPLES[name][0]
    inputs = [torch.from_numpy(np.array(v.draw(np.random.default_rng(0), np.dtype("float32")))) if isinstance(v, Values)
              else
              torch.from_numpy(v.copy()) if isinstance(v, np.ndarray) else v for v in row.inputs]

    def program(*tensors):
        left = iter(tensors)
        args = [next(left) if isinstance(v, torch.Tensor) else v for v in inputs]
        made = apply(op, *([args] if op.sequence else args), **row.params)
        return tuple(made) if isinstance(made, list) else made
    given = [v for v in inputs if isinstance(v, torch.Tensor)]
    if name in BY_VALUES:
        with pytest.raises(ReadsValues):
            lower(program, tuple(given))
    else:
        same(program, *given)


# ── graphs of modules ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_graphs_of_modules_are_lowered():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval()
    graph = Graph(model)
    x = graph.placeholder("x")
    y = graph.call_module("1", (graph.call_module("0", (x,)),))
    graph.output([graph.call_method("relu", (y,)), y])
    low = lower(graph, (randn(2, 3),))
    given = randn(2, 3)
    torch.testing.assert_close(low(given), [model(given).relu(), model(given)])
    assert names(low) == ["linear", "affine_by_channel", "relu"] and low.tensors["0.weight"] is model[0].weight
    assert [n.target for n in low.nodes if n.op == "placeholder"] == ["x"] and calls(low)[0].meta["scope"] == "0"


def test_lowered_graphs_are_lowered_once_more():
    model = nn.Sequential(nn.Linear(3, 4), nn.Softmax(-1))
    first = lower(model, randn(2, 3))
    second = lower(first, randn(2, 3), whole=lambda op, operands, params: op.opname != "softmax")
    assert (names(second)[0] == "linear" and "softmax" not in names(second)
            and second.tensors["0.weight"] is model[0].weight)
    torch.testing.assert_close(second(x := randn(2, 3)), model(x))
