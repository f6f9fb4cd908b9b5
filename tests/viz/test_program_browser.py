"""Programs of explanations in a browser: run again there with other numbers, they give the engine's results.

A single page runs them all.
"""
import json
from pathlib import Path

import numpy as np
import pytest
from browser import opened
from random_programs import leaves_of
from random_programs import program as random_program

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.viz import explain
from tensorgrad.viz.expression_trees import FUNCTIONS, packed
from tensorgrad.viz.program import program
from tensorgrad.viz.text import script
from tests.viz.test_program import loss_of, samples

F = torch.nn.functional

CHANGES = 1, 2, 3
EVALUATOR = Path(explain.__code__.co_filename).with_name("evaluator.js").read_text(encoding="utf-8")

# For each run: how far the loss and each gradient are off. In double precision relative to the largest number of the
#     gradient, or to a millionth of
# the largest of all gradients on the way; in float32, whose gradients may be what large terms leave of each other, as
# `allclose` has it: x to 1 + |x|.
RUN = """() => {
  const {programs, runs} = JSON.parse(document.getElementById("data").textContent);
  const number = x => typeof x === "string" ? {inf: Infinity, "-inf": -Infinity, nan: NaN}[x] : x;
  const largest = data => data.reduce((most, x) => Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most, 1e-12);
  function off(got, expected, scaled) {
    if (got === undefined || String(got.shape) !== String(expected.shape)) return "shape";
    const data = expected.data.map(number), scale = scaled(data);
    const worst = Math.max(0, ...data.map((x, i) => Object.is(x, got.data[i]) || x === got.data[i] ? 0 : Math.abs(x - got.data[i]) / scale(x)));
    return Number.isNaN(worst) ? "nan" : worst;
  }
  const machines = programs.map(Evaluator);
  return runs.map(({program, leaves, double, single}) => {
    const machine = machines[program], given = {}, root = programs[program].root;
    for (const [name, x] of Object.entries(leaves)) given[name] = {shape: x.shape, data: x.data.map(number)};
    const exact = machine.run(given, {double: true}), rounded = machine.run(given);
    const most = Math.max(...[...Object.values(exact.gradients), exact.values[root]].map(g => largest([...g.data])));
    const all = (found, expected, scaled) => [off(found.values[root], expected.loss, scaled),
      ...Object.entries(expected.gradients).map(([place, g]) => off(found.gradients[place], g, scaled))];
    return {double: all(exact, double, data => { const scale = Math.max(largest(data), most * 1e-6); return () => scale; }),
            single: single ? all(rounded, single, () => x => 1 + Math.abs(x)) : [],
            float32: Object.values(rounded.gradients).every(g => g.data instanceof Float32Array)};
  });
}"""  # noqa: E501


def expected_of(made, loss, leaves):
    gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True, retain_graph=True)
    places = {leaf["name"]: leaf["place"] for leaf in made["leaves"]}
    return {"loss": packed(loss.detach().numpy()),
            "gradients": {places[name]: packed(g.numpy()) for name, g in zip(leaves, gradients, strict=True)
                          if g is not None}}


def run_of(made, double, single=None):
    """Return the page's input: a program, leaves, and the engine's results for (loss, leaves) in double and in single
    precision.
    """
    return {"program": made, "leaves": {name: packed(leaf.detach().numpy()) for name, leaf in double[1].items()},
            "double": expected_of(made, *double), "single": expected_of(made, *single) if single else None}


def op_runs():
    """Every op that can be evaluated, with inputs that are a little larger."""
    runs = {}
    for name, row, arrays, loss, leaves in samples():
        made = program(explain(loss, names=leaves))
        if made["able"]:
            near = [np.asarray(a * 1.01) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in arrays]
            single = [a.astype("float32") if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in near]
            runs[name] = run_of(made, loss_of(name, row, near), loss_of(name, row, single))
    assert len(runs) >= 220
    return runs


def net(seed, change, made, dtype=torch.float64):
    """A loss of layers on leaves; `change` draws their parameters anew, so that signs and the largest elements are
    others.
    """
    torch.manual_seed(seed)
    layers, inputs = made()
    x = torch.tensor(np.random.default_rng([seed, change]).normal(size=inputs), dtype=dtype, requires_grad=True)
    leaves = {"x": x}
    for i, parameter in enumerate(layers.to(dtype).parameters()):
        drawn = np.random.default_rng([i, seed, change]).normal(size=tuple(parameter.shape)) * 0.7
        leaves[f"w{i}"] = parameter
        parameter.data = torch.tensor(drawn, dtype=dtype)
    torch.manual_seed(seed)             # dropout drops the same
    out = layers(x)
    while isinstance(out, tuple):
        out = out[0]
    return ((out * torch.arange(1, out.numel() + 1, dtype=dtype).reshape(out.shape)).sum() * 0.1 + (out * out).sum(),
            leaves)


class Square(nn.Module):
    """The solution of a system of equations, with a determinant and eigenvalues."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.eye(3)), nn.Parameter(torch.ones(3, 1))

    def forward(self, x):
        a = self.weight @ self.weight.T + torch.eye(3)
        solved, values = torch.linalg.solve(a + x, self.bias), torch.linalg.eigvalsh(a)
        return torch.cat([solved[:, 0], values, torch.linalg.det(a + x)[None], torch.linalg.cholesky(a)[2],
                          torch.linalg.svdvals(x)])


NETS = {
    "a convolutional net": lambda: (nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                                  nn.Dropout(0.3), nn.Linear(8, 3)),
                                     (2, 1, 6, 6)),
    "relu": lambda: (nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 4), nn.LeakyReLU(), nn.Linear(4, 2),
                                   nn.Hardtanh()), (4, 3)),
    "pooling": lambda: (nn.Sequential(nn.MaxPool1d(3, 2, padding=1, dilation=1), nn.AdaptiveAvgPool1d(2),
                                      nn.Dropout1d(0.4)), (2, 3, 9)),
    "LSTM": lambda: (nn.LSTM(2, 3, num_layers=2), (4, 2, 2)),
    "GRU, both ways": lambda: (nn.GRU(2, 2, bidirectional=True), (3, 1, 2)),
    "RNN": lambda: (nn.RNN(2, 3, nonlinearity="relu", batch_first=True), (2, 4, 2)),
    "LSTM cell": lambda: (nn.LSTMCell(2, 3), (2, 2)),
    "a transformer": lambda: (nn.TransformerEncoderLayer(4, 2, 6, dropout=0.2), (3, 1, 4)),
    "equations": lambda: (Square(), (3, 3)),
    "batch norm": lambda: (nn.Sequential(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.ReLU(),
                                         nn.ConvTranspose1d(3, 1, 2, stride=2)), (2, 2, 5)),
}


def net_runs():
    runs = {}
    for seed, (name, layers) in enumerate(NETS.items()):
        loss, leaves = net(seed, 0, layers)
        made = program(explain(loss, names=leaves))
        assert made["able"], (name, made["why"])
        for change in CHANGES:
            runs[f"{name}, change {change}"] = run_of(made,
                                                      *[net(seed, change, layers, dtype)
                                                        for dtype in (torch.float64, torch.float32)])
    return runs


OPENED = {
    "leaky_relu": F.leaky_relu, "elu": F.elu, "clamp": lambda x: x.clamp(-0.5, 0.7), "softplus": F.softplus,
    "hardswish": F.hardswish,
    "smooth_l1": lambda x: F.smooth_l1_loss(x, torch.zeros_like(x), reduction="none"),
    "max_pool": lambda x: F.max_pool2d(x, 2, 1),
    "logsumexp": lambda x: x.logsumexp(1), "softshrink": F.softshrink, "mish": F.mish,
    "largest": lambda x: x.max(-1)[0], "sorted": lambda x: x.sort(-1)[0],
    "split": lambda x: torch.split(x, [1, 2], -1)[1],
}


def opened_runs():
    """The parts of a step, with inputs of other signs and order: masks and places follow."""
    runs = {}
    for name, function in OPENED.items():
        def result_of(change, function=function):
            x = torch.tensor(np.random.default_rng(change).normal(size=(1, 2, 3, 3)), requires_grad=True)
            return function(x), {"x": x}
        out, leaves = result_of(0)
        weights = torch.arange(1, out.numel() + 1, dtype=torch.float64).reshape(out.shape)
        parts = explain(out, weights, names=leaves).open(0)
        made = program(parts)
        assert made["able"], (name, made["why"])
        for change in CHANGES:
            out, leaves = result_of(change)
            gradient, = torch.autograd.grad(out, leaves["x"], weights)
            x, = made["leaves"]
            runs[f"parts of {name}, change {change}"] = {"program": made,
                                                         "leaves": {"x": packed(leaves["x"].detach().numpy())},
                                                         "single": None,
                "double": {"loss": packed(out.detach().numpy()), "gradients": {x["place"]: packed(gradient.numpy())}}}
    return runs


def explained_runs():
    """Explained programs: every place on the tape gets the gradient that the explanation shows."""
    runs = {}
    for seed in range(30):
        loss, leaves = random_program(seed, leaves_of(seed))
        found = explain(loss, names=leaves)
        made = program(found)
        if made["able"]:
            runs[f"explanation {seed}"] = run = run_of(made, (loss, leaves))
            run["double"]["gradients"] = {found.keys[told.node]: packed(told.total.kept) for step in found.steps
                                          for told in step.gives}
    assert len(runs) >= 25
    return runs


def test_programs_give_what_the_engine_gives():
    runs = net_runs() | op_runs() | opened_runs() | explained_runs()
    programs = list({id(run["program"]): run["program"] for run in runs.values()}.values())
    numbers = {id(made): i for i, made in enumerate(programs)}
    data = script({"programs": programs,
                   "runs": [run | {"program": numbers[id(run["program"])]} for run in runs.values()]})
    with opened(f"<!doctype html><meta charset=utf-8><title>t</title><script>{EVALUATOR}</script>"
                f"<script type=application/json id=data>{data}</script>") as page:
        assert set(page.evaluate("Evaluator({able: false, why: 'so'}).functions")) >= FUNCTIONS
        found = page.evaluate(RUN)
        for name, run in zip(runs, found, strict=True):
            assert run["float32"], name
            for precision, bound in ("double", 1e-9), ("single", 1e-5):
                assert all(isinstance(off, (int, float)) and off < bound for off in run[precision]), (name, precision,
                                                                                                      run[precision])
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        made = json.dumps(program(explain((x * x).sum(), names={"x": x})))
        assert page.evaluate(f"Evaluator({made}).run().gradients[0].data[1]") == 4
        assert page.evaluate(f"Evaluator({made}).run({{x: {{shape: [2], data: [5, 6]}}}}).values[0].data[1]") == 6
        for wrong, said in ("Evaluator({able: false, why: 'so'}).run()", "the program cannot be run: so"), \
                (f"Evaluator({made}).run({{x: {{shape: [1], data: [5]}}}})", "x has 2 elements, not 1"):
            with pytest.raises(Exception, match=said):
                page.evaluate(wrong)
