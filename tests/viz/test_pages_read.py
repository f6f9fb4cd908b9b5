"""Saved pages, read: each rule, evaluated with the numbers that are shown, gives the gradient that is shown; and their
programs run in a browser.
"""
import numpy as np
import pytest
from browser import opened
from page_reader import WORDS, Reader, evaluated, read
from random_programs import leaves_of
from random_programs import program as random_program

import tensorgrad as torch
from tensorgrad.viz import explain
from tensorgrad.viz.text import script
from tests.viz.test_program_browser import CHANGES, EVALUATOR, NETS, RUN, net, run_of

F = torch.nn.functional
SEEDS = range(200)


def page_of(loss, leaves, name):
    """A page's program; its rules are checked, and counted by op."""
    made, gradients = read(explain(loss, names=leaves).html())
    assert gradients, name
    for told in gradients:
        got = evaluated(told)
        where = f"{name}, step {told.step}{', in parts' * told.inner}: {told.op}, {told.input}: {told.rule}"
        np.testing.assert_allclose(got, told.share, 0, told.slack, err_msg=where)
        total = told.share if told.before is None else told.before + told.share
        np.testing.assert_allclose(total, told.total, 0, told.slack + 1e-6 * np.abs(total).max(initial=0),
                                   err_msg=where)
    return made, gradients


def test_rules_give_what_is_shown_and_programs_what_the_engine_gives():
    """Random programs: with writes in place, views, shared weights, loops and gradients of gradients.

    Each runs with other leaves than those of its page.
    """
    programs, runs, ops, inner = [], {}, set(), 0
    for seed in SEEDS:
        loss, leaves = random_program(seed, leaves_of(seed))
        made, gradients = page_of(loss, leaves, f"program {seed}")
        assert made["able"], (seed, made["why"])
        ops |= {told.op for told in gradients}
        inner += sum(told.inner for told in gradients)
        programs.append(made)
        for change in CHANGES:
            runs[f"program {seed}, change {change}"] = run_of(made,
                                                              *[random_program(seed, leaves_of(seed, change, dtype))
                                                                for dtype in ("float64", "float32")])
    assert (inner > 1000 and len(ops) > 90 and ops >= {"matmul", "linear", "conv2d", "max_pool1d", "layer_norm",
                                                       "cross_entropy", "tanh_backward"})
    data = script({"programs": programs,
                   "runs": [run | {"program": i // len(CHANGES)} for i, run in enumerate(runs.values())]})
    with opened(f"<!doctype html><meta charset=utf-8><title>t</title><script>{EVALUATOR}</script>"
                f"<script type=application/json id=data>{data}</script>") as page:
        for name, run in zip(runs, page.evaluate(RUN), strict=True):
            assert run["float32"], name
            for precision, bound in ("double", 1e-9), ("single", 1e-5):
                assert all(isinstance(off, (int, float)) and off < bound for off in run[precision]), (name, precision,
                                                                                                      run[precision])


@pytest.mark.parametrize("name", ["a convolutional net", "relu", "batch norm"])
def test_rules_of_nets_give_what_is_shown(name):
    loss, leaves = net(3, 0, NETS[name])
    page_of(loss, leaves, name)


def test_a_wrong_rule_is_found():
    x = torch.tensor([[0.5, -1.0, 2.0]], requires_grad=True)
    told, = (told for told in read(explain(F.cross_entropy(x, torch.tensor([2])), names={"x": x}).html())[1]
             if not told.inner)
    assert np.abs(evaluated(told) - told.share).max() < 1e-7
    told.rule = told.rule.replace("−", "+")
    assert np.abs(evaluated(told) - told.share).max() > 0.5
    told.rule = "(softmax(x) − onehot(target)) · g / n / n ·"
    with pytest.raises((AssertionError, IndexError, KeyError, TypeError)):
        evaluated(told)


def test_the_reader_knows_no_engine():
    import page_reader
    assert (not [name for name, value in vars(page_reader).items()
                 if getattr(value, "__module__", "").startswith("tensorgrad")] and WORDS and Reader)
