"""Graphs for many sizes: guards on what programs ask about sizes, symbolic arithmetic, and the bounds on memory."""
import sys
from pathlib import Path

import pytest

import tensorgrad as torch
from tensorgrad import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import sized_programs  # noqa: E402

F = nn.functional
pytestmark = pytest.mark.filterwarnings("ignore:.*gradient.*")



def families(compiled):
    return list(compiled.explain().program.families)


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def agree(run, *inputs_of, sizes=(2, 3, 7), dynamic=True):
    """Compare a program and its compiled form at several sizes; return the latter."""
    compiled = torch.compile(run, dynamic=dynamic)
    for n in sizes:
        inputs = [make(n) for make in inputs_of]
        sized_programs.agree(sized_programs.outcome(compiled, inputs), sized_programs.outcome(run, inputs), n)
    return compiled


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(64, 4))
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x + self.table[:x.size(1)]) / x.shape[1]


def causal(x):
    n = x.size(-2)
    scores = (x @ x.transpose(-1, -2) / x.size(-1)).masked_fill(torch.tril(torch.ones(n, n)) == 0, float("-inf"))
    return scores.softmax(-1) @ x


ONE_GRAPH = {
    "positions": (Positions(), lambda n: torch.randn(2, n, 4)),
    "causal attention": (causal, lambda n: torch.randn(2, n, 4)),
    "odd pictures": (nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.AvgPool2d(2, ceil_mode=False),
                                   nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)).eval(),
                     lambda n: torch.randn(n, 3, 2 * n + 9, n + 11)),
    "LSTM": (nn.LSTM(3, 4, batch_first=True).eval(), lambda n: torch.randn(2, n, 3)),
    "padding": (lambda x: F.pad(x, (0, -x.shape[1] % 8)), lambda n: torch.randn(3, n)),
    "interpolate": (lambda x: F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] + 3)),
                    lambda n: torch.randn(1, 2, n, n + 1)),
    "top half": (lambda x: x.topk(x.shape[0] // 2)[0] + 1 / x.shape[0], lambda n: torch.randn(n)),
    "numbers": (lambda x: (x * 2, x.shape[0] * 2, x.numel() / 2, -x.size(0) % 4), lambda n: torch.randn(n, 2)),
    "scalars": (lambda x: (torch.full((2,), x.shape[0]), torch.full((2,), x.shape[0] / 2), x.long() + x.shape[0],
                           x.half() / x.shape[0], torch.arange(x.shape[0]), torch.arange(x.shape[0] * 1.5),
                           x.long().masked_fill(x > 0, x.shape[0]), x.clamp(x.shape[0] - 3, x.shape[0])),
                lambda n: torch.randn(n, 2)),
    "writes": (lambda x: torch.zeros(len(x.shape), x.shape[0]).index_fill(1, torch.tensor([0]), 2) + x.shape[0],
               lambda n: torch.randn(n, 2)),
}


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_one_graph_serves_all_sizes(name):
    compiled = agree(*ONE_GRAPH[name])
    graph, = compiled.explain().graphs
    assert graph.family is not None and not compiled.explain().reasons


def test_lengths_of_a_batch():
    def masked(x, lengths):
        return x * (torch.arange(x.shape[1])[None] < lengths[:, None])
    compiled = agree(masked, lambda n: torch.randn(2, n), lambda n: torch.tensor([1, n]))
    assert len(compiled.explain().graphs) == 1


ASKING = {
    "equal": lambda x: x * 2 if x.shape[0] == 5 else x + 1, "remainder": lambda x: x * (x.size(0) % 3 + 1),
    "branch on a remainder": lambda x: x * 2 if x.size(0) % 3 == 1 else x - 1,
    "chained": lambda x: x * 2 if 2 < x.shape[0] <= 8 else x + 1, "in": lambda x: x * 2 if x.shape[0] in (3, 8) else x,
    "a set": lambda x: x * 2 if x.shape[0] in {3, 8} else x + 1, "text": lambda x: x + len(f"{x.shape[0]}") * 1.5,
    "table": lambda x: x * [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1, 1][x.shape[0]], "loop": lambda x: sum(x[i] for i in
                                                                                                range(x.shape[0])),
    "float": lambda x: x * float(x.shape[0]) ** 0.5, "int": lambda x: x + int(x.shape[0] * 0.5),
    "least": lambda x: F.pad(x, (max(0, 6 - x.shape[0]), min(x.shape[0], 7))),
    "pieces": lambda x: torch.cat(x.split(3)[::-1]) + 0, "repeated list": lambda x: x + len([0] * x.shape[0]),
    "unbound": lambda x: sum(row * i for i, row in enumerate(x)), "type": lambda x: x + (type(x.shape[0]) is int),
    "index": lambda x: x + range(100)[x.shape[0]], "bool": lambda x: x * 2 if x.shape[0] - 3 else x + 1,
    "shape": lambda x: x * 2 if x.shape == (3,) else x + 1, "sorted": lambda x: x + sorted([4, x.shape[0], 6])[1],
}


@pytest.mark.parametrize("name", ASKING)
def test_answers_about_sizes_are_guards(name):
    agree(ASKING[name], torch.randn, sizes=(5, 2, 3, 8, 4, 5))


def test_layouts_are_guards():
    def run(x):
        return (x * 1.5).view(-1) * 2
    compiled = torch.compile(run, dynamic=True)
    for n in (2, 3, 4):
        x = torch.randn(n, 5)
        assert torch.equal(compiled(x), run(x))
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            compiled(torch.randn(5, n).T)


def test_sizes_that_vary_are_found():
    compiled = torch.compile(nn.Sequential(nn.Linear(4, 3), nn.Tanh()))
    for n in (2, 3, 4, 1, 9, 9):
        compiled(torch.randn(n, 4))
    shown = compiled.explain()
    assert [graph.family is None for graph in shown.graphs] == [True, False, True]      # first, others, one row
    assert "float32[s0, 4]" in str(shown) and "planned for 3 sizes" in str(shown)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 3
    static = torch.compile(torch.nn.ReLU(), dynamic=False)
    for n in (2, 3, 4):
        static(torch.randn(n))
    assert len(static.explain().graphs) == 3 and not families(static)


def test_stances_and_limits_count_one_graph(monkeypatch):
    compiled = torch.compile(nn.Sequential(nn.Linear(4, 3)), dynamic=True)
    compiled(torch.randn(2, 4))
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(torch.randn(3, 4))
        with pytest.raises(RuntimeError, match="Detected recompile"):
            compiled(torch.randn(3, 4, dtype=torch.float64))
    from tensorgrad.compiler import families as module
    monkeypatch.setattr(module, "MOST_KEPT", 4)
    for n in range(2, 30):
        assert compiled(torch.randn(n, 4)).shape == (n, 3)
        compiled(torch.randn(7, 4))                 # in use: its plan stays
    program = compiled.explain().program
    assert program.count == 1 and sum(map(len, program.entries.values())) == 4
    assert any(entry.inputs == "float32[7, 4]" and entry.calls > 20 for kept in program.entries.values()
               for entry in kept)


def test_marks():
    def special(x):
        return x * 2 if x.shape[0] == 5 else x + 1
    x = torch.randn(5, 3)
    torch._dynamo.mark_dynamic(x, 0)
    with pytest.raises(torch._dynamo.exc.ConstraintViolationError,
                       match=r"You marked L\['x'\].size\(\)\[0\] as dynamic but your code specialized it to be a "
                             r"constant \(5\)"):
        torch.compile(special)(x)
    y = torch.randn(5, 3)
    torch._dynamo.maybe_mark_dynamic(y, 0)
    assert torch.equal(torch.compile(special)(y), y * 2)
    compiled = torch.compile(lambda x: x + 1, dynamic=True)
    for n in (2, 3):
        z = torch.randn(n, 4)
        torch._dynamo.mark_static(z, 0)
        compiled(z)
    assert len(compiled.explain().graphs) == 2


def test_parameters_and_attributes_may_change():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.by = nn.Linear(4, 4), 2

        def forward(self, x):
            return self.layer(x) * self.by * x.shape[0]
    model = Scaled()
    compiled = torch.compile(model, dynamic=True)
    for change in (lambda: None, lambda: model.layer.weight.data.mul_(2), lambda: setattr(model, "by", 3)):
        change()
        for n in (2, 3, 4):
            x = torch.randn(n, 4)
            torch.testing.assert_close(compiled(x), model(x))
    assert len(families(compiled)) == 2


def test_frozen_models_take_other_sizes():
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    xs = [torch.randn(n, 4) for n in (2, 3, 9)]
    want = list(map(model, xs))
    compiled = torch.compile(model, dynamic=True, freeze=True)
    for x, y in zip(xs, want, strict=True):
        torch.testing.assert_close(compiled(x), y)
    with pytest.raises(RuntimeError, match="The original parameters have been discarded"):
        model(xs[0])


def test_random_programs():
    for seed in range(3):
        exec(compile(sized_programs.program(seed), f"<program {seed}>", "exec"), sized_programs.names())
