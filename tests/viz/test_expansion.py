"""Opened steps of an explanation: the parts compute the step's result and gradients, under common names."""
import cProfile
import re

import numpy as np
import pytest
from random_programs import leaves_of
from random_programs import program as random_program
from support import cpu_only

import tensorgrad as torch
from tensorgrad.storage.cpu import NumpyStorage
from tensorgrad.viz import explain
from tensorgrad.viz.expansion import LARGEST, Copier
from tensorgrad.viz.textbook_gradients import DEFINITIONS

pytestmark = cpu_only
nn, F = torch.nn, torch.nn.functional


ALIVE = []          # leaves: as in programs, they outlive the loss


def drawn(*shape, dtype=torch.float64):
    rng = np.random.default_rng(len(shape) + sum(shape))
    ALIVE.append(torch.tensor(rng.normal(size=shape), dtype=dtype, requires_grad=True))
    return ALIVE[-1]


def recurrent(layer, **options):
    module = layer(2, 3, **options).double()
    ALIVE.append(module)
    y, state = module(drawn(4, 2, 2))
    return (y * y).sum() + sum((s ** 3).sum() for s in (state if isinstance(state, tuple) else (state,)))


def packed(layer):
    rows = nn.utils.rnn.pack_padded_sequence(drawn(3, 2, 2), [3, 1])
    ALIVE.append(layer(2, 3).double())
    return (ALIVE[-1](rows)[0].data ** 2).sum()


def pooled(shape, *window, **options):
    function = {3: F.max_pool1d, 4: F.max_pool2d, 5: F.max_pool3d}[len(shape)]
    return function(drawn(*shape), *window, **options)


# op, a loss with a step of it, and names that its parts have to have
CASES = {
    "cross_entropy": ("cross_entropy", lambda: F.cross_entropy(drawn(4, 3), torch.tensor([0, 2, 1, 1])),
                      {"log_p", "picked"}),
    "cross_entropy, weighted": ("cross_entropy",
                                lambda: F.cross_entropy(drawn(4, 3), torch.tensor([0, 2, 1, 1]),
                                                        drawn(3).detach().abs()), {"losses"}),
    "cross_entropy, ignored": ("cross_entropy", lambda: F.cross_entropy(drawn(4, 3), torch.tensor([0, -100, 1, 1])),
                               {"kept"}),
    "cross_entropy, ignored, summed": ("cross_entropy",
                                       lambda: F.cross_entropy(drawn(3, 3), torch.tensor([0, 2, 1]), ignore_index=2,
                                                               reduction="sum"),
                                       {"kept"}),
    "layer norm": ("native_layer_norm", lambda: F.layer_norm(drawn(4, 3), (3,), drawn(3), drawn(3)),
                   {"mean", "centred", "variance"}),
    "layer norm without weights": ("native_layer_norm", lambda: F.layer_norm(drawn(4, 2, 3), (2, 3)),
                                   {"mean", "centred", "variance"}),
    "batch norm": ("native_batch_norm", lambda: F.batch_norm(drawn(4, 3, 2), None, None, drawn(3), drawn(3),
                                                             training=True), {"mean", "variance"}),
    "batch norm in evaluation": ("affine_by_channel",
                                 lambda: F.batch_norm(drawn(4, 3), drawn(3).detach(), drawn(3).detach() ** 2, drawn(3),
                                                      drawn(3)),
                                 {"scale", "shift"}),
    "group norm": ("native_group_norm", lambda: F.group_norm(drawn(2, 4, 3), 2, drawn(4), drawn(4)),
                   {"mean", "centred", "variance"}),
    "rms norm": ("rms_norm", lambda: F.rms_norm(drawn(4, 3), (3,), drawn(3)), set()),
    "max_pool": ("max_pool", lambda: pooled((2, 2, 4, 6), 2), {"windows"}),
    "max_pool, padded": ("max_pool", lambda: pooled((1, 2, 5, 7), 3, 2, 1), {"windows"}),
    "max_pool, dilated": ("max_pool", lambda: pooled((2, 1, 9), 3, stride=2, dilation=2), {"windows"}),
    "max_pool, in space": ("max_pool", lambda: pooled((1, 1, 3, 4, 3), 2, 1), {"windows"}),
    "LSTM": ("lstm_layer", lambda: recurrent(nn.LSTM), {"i₀", "f₀", "candidate₀", "o₀", "c₀", "h₀", "h₂"}),
    "LSTM with a projection, backwards": ("lstm_layer", lambda: recurrent(nn.LSTM, proj_size=2, bidirectional=True),
                                          {"candidate₂"}),
    "LSTM of sequences of two lengths": ("lstm_layer", lambda: packed(nn.LSTM), {"candidate₁"}),
    "GRU": ("gru_layer", lambda: recurrent(nn.GRU), {"r₀", "n₀", "h₀", "n₃"}),
    "RNN": ("rnn_layer", lambda: recurrent(nn.RNN, nonlinearity="relu"), {"h₀", "z₃"}),
    "attention": ("attention", lambda: F.scaled_dot_product_attention(drawn(1, 1, 64, 8), drawn(1, 1, 64, 8),
                                                                      drawn(1, 1, 64, 8)), {"scores"}),
    "convolution": ("convolution", lambda: F.conv2d(drawn(2, 2, 5, 4), drawn(4, 1, 3, 2), None, 2, 1, groups=2),
                    {"columns"}),
    "transposed convolution": ("convolution_input", lambda: F.conv_transpose1d(drawn(2, 2, 4), drawn(2, 3, 3), None, 2),
                               {"columns", "rows"}),
    "linear": ("linear", lambda: F.linear(drawn(4, 3), drawn(2, 3), drawn(2)), set()),
    "mean": ("mean", lambda: drawn(4, 3).mean(1), set()),
    "var": ("variance", lambda: drawn(4, 3).var(1), set()),
    "mse": ("mse_loss", lambda: F.mse_loss(drawn(4, 3), drawn(4, 3) * 2), set()),
    "std": ("deviation", lambda: drawn(4, 3).std(1, correction=0), set()),
    "gelu": ("gelu", lambda: F.gelu(drawn(4)), set()),
}


def weighted(out):
    return (out * torch.arange(1, out.numel() + 1, dtype=out.dtype).reshape(out.shape)).sum() if out.ndim else out


def number_of(found, op):
    return next(i for i, kept in enumerate(found.openable) if type(kept) is not str and kept.op.opname == op)


def agree(step, parts, bound=1e-9):
    """Assert that the leaves of the parts get the step's gradients, summed per input."""
    given = {}
    for told in step.gives:
        given[told.target] = given.get(told.target, 0) + told.value.kept
    assert {leaf.name: leaf.gradient.shape for leaf in parts.leaves} == {name: g.shape for name, g in given.items()}
    for leaf in parts.leaves:
        np.testing.assert_allclose(leaf.gradient.kept, given[leaf.name], bound, bound, err_msg=leaf.name)


@pytest.mark.parametrize("case", CASES)
def test_parts_give_what_the_step_gives(case, monkeypatch):
    monkeypatch.setattr("tensorgrad.viz.text.WHOLE", 10_000)
    op, made, names = CASES[case]
    found = explain(weighted(made()))
    ALIVE.clear()
    at = number_of(found, op)
    parts = found.open(at)
    agree(found.steps[at], parts)
    assert len(parts.steps) > 1 and names <= {name for step in parts.forward for name in step.result.split(", ")}
    assert all(told.rule and "see " not in told.rule for step in parts.steps for told in step.gives)
    assert not any(value is None for step in parts.forward for value in step.values)
    known = {name for name, _, _ in found.given} | {name for step in found.forward for name in step.result.split(", ")}
    assert not [told.target for step in parts.steps for told in step.gives
                if re.fullmatch(r"v\d+", told.target) and told.target not in known]


def test_it_reads_as_text():
    x = torch.tensor([[0.5, -1.0, 2.0]], requires_grad=True, dtype=torch.float64)
    parts = explain(F.cross_entropy(x, torch.tensor([2])), names={"x": x}).open(0)
    assert [f"{step.result} = {step.expression}" for step in parts.forward] == [
        "log_p = log_softmax(x)", "p1 = take_along_dim(log_p, [[2]], 1)", "picked = squeeze(p1)", "p2 = Σ(picked) / n",
        "L = −p2"]
    assert parts.text().split("\n")[0] == "Backprop of L = 0.2413 in 5 steps"
    assert ([leaf.name for leaf in parts.leaves] == ["x"]
            and [step.source[0].rpartition("/")[2] for step in parts.steps] == ["textbook_gradients.py"] * 5)


def test_inputs_and_results_keep_their_names():
    x, w = drawn(2, 3), drawn(3)
    y = F.layer_norm(x, (3,), w)
    found = explain((y * y).sum(), names={"x": x, "scale": w, "y": y})
    parts = found.open(number_of(found, "native_layer_norm"))
    assert parts.name == "y" and {leaf.name for leaf in parts.leaves} == {"x", "scale"}
    assert parts.start.kept.tolist() == (2 * y).tolist()
    centred = drawn(2, 3)               # a variable that is called as a part is
    found = explain(F.layer_norm(centred, (3,)).sum(), names={"centred": centred})
    parts = found.open(number_of(found, "native_layer_norm"))
    assert [leaf.name for leaf in parts.leaves] == ["centred"] and "centred′" in {step.result for step in parts.forward}


def test_a_gradient_of_several_results_starts_at_their_sum():
    found = explain(recurrent(nn.LSTM))
    parts = found.open(number_of(found, "lstm_layer"))
    assert parts.name == "L" and [step.op for step in parts.steps[:2]] == ["add", "add"]
    assert {"g₀", "g₁", "g₂"} <= {name for step in parts.steps for name, _ in step.rows}


def test_steps_of_a_loop_are_groups():
    from tensorgrad.viz.notes import NOTES
    found = explain(recurrent(nn.GRU))
    parts = found.open(number_of(found, "gru_layer"))
    groups = [NOTES[step.node].group for step in parts.forward if step.node in NOTES]
    assert {("t = 0",), ("t = 3",), ()} <= set(groups)


def test_parts_can_be_opened():
    x = drawn(3, 4)
    parts = explain(F.cross_entropy(x, torch.tensor([0, 3, 1])), names={"x": x}).open(0)
    at = number_of(parts, "log_softmax")
    inner = parts.open(at)
    agree(parts.steps[at], inner)
    assert inner.name == "log_p"


def test_numbers_are_those_of_the_explanation():
    x, w = drawn(2, 3), drawn(3)
    found = explain(F.layer_norm(x, (3,), w).sum(), names={"x": x, "w": w})
    at = number_of(found, "native_layer_norm")
    before = found.open(at).text()
    with torch.no_grad():
        x.fill_(7.0)
        w.mul_(2)
    x.grad = None
    assert found.open(at).text() == before and x.grad is None
    first = explain(x.mean(), names={"x": x}).open(-1)
    assert [step.op for step in first.steps] == ["divide", "sum"]


def test_what_has_no_parts_says_so():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2
    x = drawn(3)
    with pytest.raises(ValueError, match="multiply is a single step: it has no parts"):
        explain((x * x).sum()).open(1)
    with pytest.raises(ValueError, match="its backward is a function of the program's own"):
        explain(Cube.apply(x).sum()).open(1)
    with pytest.raises(IndexError):
        explain(x.sum()).open(1)
    loss = F.linear(x, drawn(2, 3), drawn(2)).sum()
    ALIVE.clear()
    with pytest.raises(ValueError, match="the tape does not keep its input b"):         # a bias that is gone
        explain(loss).open(1)


def test_steps_whose_numbers_no_page_computes_open_too():
    """Complex numbers, half precision and what a profiler watches."""
    z = torch.tensor([1 + 2j, 0.5 - 1j], requires_grad=True)
    found = explain((z * (1 + 1j)).mean().abs())
    assert [step.op for step in found.open(number_of(found, "mean")).steps] == ["divide", "sum"]
    half = torch.tensor([0.5, 2.0], dtype=torch.bfloat16, requires_grad=True)
    found = explain(F.softplus(half).sum())
    assert len(found.open(number_of(found, "softplus")).steps) > 1
    profile = cProfile.Profile()
    profile.enable()
    try:
        parts = explain(F.mse_loss(drawn(3), drawn(4)[:3])).open(0)
        drawn(5)
    finally:
        profile.disable()
    assert len(parts.steps) == 3 and any("drawn" in str(entry.code) for entry in profile.getstats())


def test_too_many_numbers_are_not_kept():
    copier = Copier()
    row = np.ones(1)
    assert copier(row) is copier(row) and copier(3) == 3 and copier(None) is None
    with pytest.raises(ValueError, match=f"more than {LARGEST}"):
        copier(np.broadcast_to(row, (LARGEST,)))


def test_parts_that_do_not_give_the_gradient_are_refused(monkeypatch):
    def twice(xp, x, target, w, **options):
        return DEFINED(xp, x, target, w, **options) * 2
    DEFINED = DEFINITIONS["cross_entropy"]
    monkeypatch.setitem(DEFINITIONS, "cross_entropy", twice)
    with pytest.raises(ValueError, match="the parts of cross_entropy do not give its gradient here"):
        explain(F.cross_entropy(drawn(4, 3), torch.tensor([0, 2, 1, 1]))).open(0)


def test_definitions_are_those_of_the_ops():
    """Forward, on arrays."""
    rng = np.random.default_rng(0)
    x, target = rng.normal(size=(4, 3, 5)), rng.integers(0, 3, (4, 5))
    for name, inputs, options in (("cross_entropy", (x, target, None), {"reduction": "mean", "ignore_index": -100}),
                                  ("cross_entropy", (x, target, np.arange(3.0)),
                                   {"reduction": "none", "ignore_index": 1}),
                                  ("max_pool", (x,),
                                   {"kernel": (2, 3), "stride": (1, 2), "widths": ((1, 0), (1, 1)),
                                    "dilation": (2, 1)})):
        got = DEFINITIONS[name](NumpyStorage.xp, *inputs, **options)
        np.testing.assert_allclose(got, getattr(NumpyStorage.xp, name)(*inputs, **options), rtol=1e-12)


def test_steps_of_random_programs_open():
    """In single precision, as programs are; each step either opens or is a single one."""
    opened = 0
    for seed in range(12):
        loss, leaves = random_program(seed, leaves_of(seed, dtype="float32"))
        found = explain(loss, names=leaves)
        for at, step in enumerate(found.steps):
            try:
                parts = found.open(at)
            except ValueError as error:
                assert any(said in str(error) for said in ("a single step", "does not keep", "a write in place")), (
                    seed, step.op, str(error))
                continue
            opened += 1
            assert {leaf.name for leaf in parts.leaves} == {told.target for told in step.gives}
    assert opened > 20
