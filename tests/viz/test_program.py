"""Explanations as programs: what is in them, what has none, and that the formulas in them are those of the engine."""
import json

import numpy as np
import pytest
from random_programs import leaves_of
from random_programs import program as random_program
from samples import SAMPLES

import tensorgrad as torch
from tensorgrad.api._sparse import rules
from tensorgrad.core.dispatch import xp
from tensorgrad.ops.base import OPS
from tensorgrad.viz import explain
from tensorgrad.viz.expression_trees import Formula, Unable
from tensorgrad.viz.program import MOST, program
from tests.viz.test_explain import PROGRAMS

nn, F = torch.nn, torch.nn.functional
UNABLE = {"function": "Cube is a function of the program's own",
          "complex_numbers": "its numbers are complex, or in half precision",
          "bfloat16": "its numbers are complex, or in half precision",
          "bfloat16_writes": "its numbers are complex, or in half precision"}


@pytest.mark.parametrize("made", PROGRAMS, ids=[p.__name__ for p in PROGRAMS])
def test_programs_of_all_kinds(made):
    loss, _ = made(torch)
    found = program(explain(loss))
    assert found["able"] is (made.__name__ not in UNABLE)
    assert found.get("why") == UNABLE.get(made.__name__)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_rules_are_the_ops_own():
    x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([[3.0, 4.0]], requires_grad=True)
    found = program(explain((x * w).mean(1), torch.ones(1), names={"x": x, "w": w}))
    multiply, mean = found["steps"]
    assert [leaf["name"] for leaf in found["leaves"]] == ["x", "w"] and multiply["op"] == "multiply"
    assert multiply["inputs"] == [["a", ["place", "0"]], ["b", ["place", "1"]]]
    assert ([rule["value"] for rule in multiply["rules"]]
            == [["call", "multiply", [["name", "g"], ["name", name]], {}] for name in "ba"])
    assert mean["value"] == ["op", "/", ["call", "sum", [["name", "x"]], {"axis": [1], "keepdims": False}], ["is", 2]]
    share = ["op", "/", ["call", "reshape", [["name", "g"]], {"shape": [1, 1]}], ["is", 2]]
    assert mean["rules"] == [{"target": "2", "input": "x", "shape": [1, 2], "locals": [],
                              "value": ["call", "broadcast_to", [share], {"shape": [1, 2]}]}]


def test_an_op_that_others_define_has_the_rule_that_is_printed():
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    step, = program(explain(F.cross_entropy(x, torch.tensor([1])), names={"x": x}))["steps"]
    assert step["op"] == "cross_entropy" and '["op", "-", ' in json.dumps(step["rules"][0])         # softmax − onehot


def test_an_op_whose_rule_is_told_in_words_is_written_as_its_definition():
    x, lstm = torch.ones(2, 1, 1, requires_grad=True), nn.LSTM(1, 2)
    found = program(explain(lstm(x)[0].sum(), names={"x": x}))
    assert ({step["number"] for step in found["steps"]} == {1, 2}
            and [step["op"] for step in found["steps"]].count("tanh") == 4)


def test_later_writes_do_not_reach_it():
    x, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
    found = explain((x * y).sum(), names={"x": x})
    with torch.no_grad():
        x.fill_(7.0)
        y.fill_(7.0)
    made = program(found)
    assert made["leaves"][0]["value"]["data"] == [1.0, 2.0] and made["constants"]["c0"]["data"] == [3.0, 4.0]


def test_leaves_written_over_since_have_none():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = (x + torch.ones(2)).sum()
    with torch.no_grad():
        x.fill_(7.0)
    assert program(explain(loss, names={"x": x})) == {"able": False,
                                                      "why": "the values of x are gone, or were written over since"}


def test_large_programs_have_none():
    x = torch.ones(MOST // 2, requires_grad=True)
    assert program(explain(x.sum()))["able"]
    assert program(explain((x * 2).sum())) == {"able": False, "why": f"it computes more than {MOST} numbers"}


def test_rules_that_do_not_give_what_was_explained_are_refused():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    found = explain((x * x).sum(), names={"x": x})
    found.recorded.gradients[found.keys[found.leaves[0].node]][0] += 0.1
    assert program(found) == {"able": False, "why": "the rules, as read, do not give the gradient of x"}
    found = explain((x * x).sum(), names={"x": x})
    found.recorded.values[found.keys[found.root]] += 0.1
    assert program(found) == {"able": False, "why": "step 2, sum: the formula, as read, does not give its result"}


def test_constants_that_the_tape_does_not_keep_are_seen_in_results():
    x, mask = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([True, False, True])
    h = x.masked_fill(mask, -3.0)
    k = torch.where(mask, h, torch.tensor([4.0, 5.0, 6.0]))
    z = x * 1
    z[1:] = torch.tensor([8.0, 9.0])
    loss = (h * h + k * k + z * z).sum()
    inputs = [dict(step["inputs"]) for step in program(explain(loss, names={"x": x, "h": h, "k": k, "z": z}))["steps"]]
    assert {"value": ["is", -3.0]}.items() <= next(i for i in inputs if "value" in i and "mask" in i).items()


def loop(xp, x, *, times):
    sums = []
    for i in range(times):
        x = x * x if i else xp.tanh(2 * x)
        sums.append(xp.sum(x[1:], axis=0, keepdims=True) - 1)
    return xp.concat(sums, axis=0), x


def by_values(xp, x):
    while x[0] < 10:
        x = x * 2
    return x


def test_a_loop_is_as_many_lines_as_it_has_rounds():
    found = Formula(loop, {"x": np.array([0.5, 1.0, 2.0]), "times": 3})
    once, twice = np.tanh([1.0, 2.0, 4.0]), np.tanh([1.0, 2.0, 4.0]) ** 2
    np.testing.assert_allclose(found.value[0], [once[1:].sum() - 1, twice[1:].sum() - 1, (twice[1:] ** 2).sum() - 1])
    np.testing.assert_allclose(found.value[1], twice ** 2)
    assert [names for names, _ in found.locals[:3]] == [["t0"], ["t1"], ["t2"]] and len(found.locals) == 14
    assert (found.locals[1] == [["t1"], ["call", "tanh", [["name", "t0"]], {}]]
            and found.tree == ["list", ["name", "t13"], ["name", "t9"]])


def test_a_trace_follows_what_does_not_vary():
    """Constants in it are written as they are; and what depends on an array twice is not taken for a linear map of one
    of them.
    """
    def scaled(xp, x):
        for weight in (xp.arange(3) * 0.5, xp.ones_like(x)):
            x = xp.where(x > 0, x, -x) * weight
        return x
    found = Formula(scaled, {"x": np.array([-1.0, 2.0, 3.0])})
    assert found.value.tolist() == [0.0, 1.0, 3.0]
    assert ["array", {"shape": [3], "kind": "f", "data": [0.0, 0.5, 1.0]}] in found.locals[3][1]
    both = Formula(OPS["cross"].grad_b, {"g": np.array([1.0, 2.0, 3.0]), "a": np.array([0.5, 1.0, 0.0]), "axis": 0})
    assert {"g", "a"} <= set(json.dumps(both.locals).split('"')) and both.value.tolist() == [-3.0, 1.5, 0.0]


def test_what_goes_by_values_is_refused():
    with pytest.raises(Unable, match="more than an expression"):
        Formula(by_values, {"x": np.ones(3)})
    with pytest.raises(Unable, match="lu"):
        Formula(OPS["lu_factor"].forward, {"a": np.eye(3)})


# ── how much of the table there is a program for ──────────────────────────────────────────────────────────────────────


def loss_of(name, row, arrays):
    """A loss on the results of an op, and the leaves behind it; or None."""
    op = OPS[name]
    inputs = [torch.tensor(a).requires_grad_(a.dtype.kind == "f") if isinstance(a, np.ndarray) else a for a in arrays]
    leaves = {f"leaf_{i}": a for i, a in enumerate(a for a in inputs
                                                   if isinstance(a, torch.Tensor) and a.requires_grad)}
    given = row.prepared(inputs)
    out = getattr(xp, name)(*([given] if op.sequence else given), **row.params)
    outs = [o for o in (out if op.several else [out]) if o.requires_grad]
    weighted = [(o * torch.arange(1, o.numel() + 1).reshape(o.shape) * 0.1).sum() for o in outs]
    return (sum(weighted[1:], weighted[0]) if weighted else None), leaves


def samples():
    """(name, row, arrays, loss, leaves) of the differentiable ops of real numbers, whose gradients the engine gives."""
    rules()             # of sparse arrays, whose ops are called directly
    for name in SAMPLES:
        for row in SAMPLES[name][:1] if OPS[name].differentiable or OPS[name].composite else ():
            arrays = row.draw("float64")
            if any(isinstance(a, np.ndarray) and a.dtype.kind == "c" for a in arrays):
                continue
            loss, leaves = loss_of(name, row, arrays)
            if loss is not None and not loss.is_complex() and not any(o.is_complex() for o in leaves.values()):
                try:
                    torch.autograd.grad(loss, list(leaves.values()), retain_graph=True, allow_unused=True)
                except RuntimeError:
                    continue            # no formula for this input, or these options
                yield name, row, arrays, loss, leaves


def test_most_ops_can_be_evaluated():
    """Those that cannot are numerical methods and loops."""
    able, unable = set(), set()
    for name, _, _, loss, leaves in samples():
        (able if program(explain(loss, names=leaves))["able"] else unable).add(name)
    assert len(able) >= 220, sorted(unable)
    assert able >= set("""linear matmul convolution max_pool softmax cross_entropy native_layer_norm native_batch_norm
        attention gather set_view rnn_layer
        lstm_layer gru_layer solve_linear inverse_matrix determinant cholesky_factor qr_factor eigh_pairs
        svd_factor""".split())


def test_random_programs_can_be_evaluated():
    why = [program(explain(loss, names=leaves)).get("why")
           for loss, leaves in (random_program(seed, leaves_of(seed)) for seed in range(40))]
    assert why.count(None) == len(why), set(why)
