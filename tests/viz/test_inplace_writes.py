"""Writes in place are told and drawn as the statements of the program, with the numbers of backward."""
import re

import numpy as np
import pytest

import tensorgrad as torch
from tensorgrad.viz import explain, graph


def leaf():
    return torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [-1.0, 0.5, 2.0]], requires_grad=True)


def assigned(x, c):
    c[0] = 0
    c[:, 1] *= 2


def methods(x, c):
    c[0].zero_()
    c[2].mul_(x[0])
    c[1].exp_()


def between(x, c):
    c[1] += x.sum()              # the sum is computed between the selection of c[1] and the addition
    c[:, 0] -= x[:, 2]


def arrays(x, c):
    i = torch.tensor([0, 2])
    c[i] = x[:2]
    c[i, i] += 1
    c[x > 2] = 7.0


def transposed(x, c):
    c.t()[0] = x[0]
    c.view(-1)[4] = 3.0


def a_view_with_a_name(x, c):
    row = c[1]
    row *= x[0]
    row += row * 2


def a_part_that_is_used_again(x, c):
    part = c[0].clone()
    c[0] = part * x[1]
    c[0] *= part


# The statements that are told where c has a gradient before the first write.
STATEMENTS = {assigned: ["c[0] = 0", "c[:, 1] *= 2"], methods: ["c[0] = 0", "c[2] *= …", "c[1].exp_()"],
              between: ["c[1] += …", "c[:, 0] -= …"], arrays: ["c[…] = …", "c[…, …] = …"],
              transposed: ["c.t()[0] = …", "c.reshape((9,))[4] = 3"],
              a_view_with_a_name: ["c[1] *= …", "c[1] = …"],
              a_part_that_is_used_again: ["c[0] = …", "c[0] *= …"]}


@pytest.mark.parametrize("start", [lambda x: torch.zeros(3, 3), lambda x: x * 3], ids=["zeros", "tripled"])
@pytest.mark.parametrize("write", STATEMENTS, ids=lambda write: write.__name__)
def test_writes_have_the_numbers_of_backward(write, start):
    x = leaf()
    c = start(x)
    write(x, c)
    weights = torch.arange(1.0, 10.0).reshape(3, 3)
    loss = (c * c * weights).sum() + x.sum()
    found = explain(loss)
    loss.backward(retain_graph=True)
    (arrived,) = found.leaves
    np.testing.assert_array_equal(arrived.gradient.kept, x.grad.numpy())
    known = {found.name: found.start}
    for step in found.steps:
        for told in step.gives:
            before = known.get(told.node)
            assert (before is None) == (told.before is None)
            if before is not None:
                np.testing.assert_array_equal(before.kept, told.before.kept)
                np.testing.assert_allclose(told.before.kept + told.value.kept, told.total.kept, rtol=1e-6)
            known[told.node] = told.total
    titles = [node.title for node in graph(loss).model.nodes if node.kind == "step"]
    if start(x).requires_grad:
        assert {*STATEMENTS[write]} <= {*titles}
    assert not {"set_view", "copied", "filled"} & {*titles}
    assert "slice(" not in str(found) and str(found).count("copy_(") == 0


def test_a_statement_is_one_step_and_one_box():
    x = leaf()
    c = x * 1
    c[0] = 0
    c[:, 1] *= 2
    loss = c.sum()
    found = explain(loss)
    assert [step.op for step in found.forward] == ["multiply", "c[0] = 0", "c[:, 1] *= 2", "sum"]
    assert ([step.expression for step in found.forward] == ["x · 1", "c₀ with [0] = 0", "c₁ with [:, 1] = c₁[:, 1] · 2",
                                                            "Σ(c)"])
    assert ([step.values[0].kept.tolist() for step in found.forward[1:3]]
            == [[[0, 0, 0], [4, 5, 6], [-1, 0.5, 2]], [[0, 0, 0], [4, 10, 6], [-1, 1, 2]]])
    rules = {(told.target, told.named) for step in found.steps for told in step.gives}
    assert {("c₁", "g with [:, 1] = g[:, 1] · 2"), ("c₀", "g with [0] = 0")} <= rules
    for model in (found.model, graph(loss).model):
        assert ([node.title for node in model.nodes if node.kind == "step"]
                == ["multiply", "c[0] = 0", "c[:, 1] *= 2", "sum"])
    assert found.numbers[found.forward[1].node] == [2, 3, 4]


def test_many_writes_in_a_loop():
    x = torch.ones(40, requires_grad=True)
    c = torch.zeros(40)
    for k in range(40):
        c[k] = x[k] * k
    found = explain(c.sum())
    assert ([re.sub(r"v\d+", "v", step.op) for step in found.forward if "=" in step.op]
            == [f"c[{k}] = v" for k in range(40)])
    assert len([step for step in found.steps if step.op.startswith("c[")]) == 40
    assert found.leaves[0].gradient.kept.tolist() == [*range(40)]
