"""viz.explain_nan: the step that made the first NaN or infinity, and nothing changes."""
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from support import ROOT

import tensorgrad as torch
from tensorgrad.viz import explain_nan
from tensorgrad.viz.nan_search import Found, Hunt

F = torch.nn.functional
INF, NAN = float("inf"), float("nan")


def leaf(*numbers):
    return torch.tensor(numbers, requires_grad=True)


def only(report):
    (origin,) = report.origins
    return origin


def test_log_of_zero():
    x = leaf(1., 0., 0.)
    report = explain_nan(x.log().sum())
    (origin,) = report.origins
    assert (origin.phase, origin.op, origin.certain) == ("forward", "log", True)
    assert origin.made == "log made an infinity from finite numbers: 2 of 3 elements of v1"
    assert origin.element == "[1], where x = 0: log(0) = −inf"
    assert [name for name, _ in origin.rows] == ["x"] and origin.rows[0][1].kept.tolist() == [1, 0, 0]
    assert "x.grad = [1, inf, inf]" in str(report) and not report.finite


def test_the_backward_of_sqrt_at_zero():
    x = leaf(4., 0.)
    origin = only(explain_nan(x.sqrt().sum()))
    assert (origin.phase, origin.op) == ("back", "sqrt")
    assert origin.made == "The backward of sqrt made an infinity from finite numbers: 1 of 2 elements of ∂L/∂x"
    assert origin.result[1][0] == "g / (2 · v1)" and origin.element == "[1], where v1 = 0, g = 1: 1 / (2 · 0) = inf"


def test_zero_by_zero():
    a, b = torch.tensor(0., requires_grad=True), torch.tensor(0.)
    origin = only(explain_nan(a / b))
    assert (origin.phase, origin.op, origin.made) == ("forward", "divide", "divide made a NaN from finite numbers: L")
    assert origin.result[1] == ("a / b", "0 / 0")


def test_exp_overflows_and_the_line_is_named():
    x = leaf(1., 1000.)
    with torch.viz.watch():
        loss = (x.exp() * 2).sum()          # this line
    report = explain_nan(loss)
    file, _, line = report.origins[0].source
    assert report.origins[0].op == "exp" and file == __file__ and line.endswith("# this line")
    assert "# this line" in report.text(width=200) and "viz.watch" not in str(report)
    assert "viz.watch" in str(explain_nan(x.exp().sum()))


@pytest.mark.parametrize("constant", [False, True])
def test_an_input_that_was_nan(constant):
    bad, good = torch.tensor([1., NAN], requires_grad=not constant), leaf(1., 0.)
    origin = only(explain_nan((good.sigmoid() * bad).sum()))
    assert (origin.phase, origin.op) == ("input", "multiply")
    assert (origin.made == "bad held NaN from the beginning, 1 of 2 elements: it goes into multiply, and no operation "
                           "made it")
    assert origin.element == "bad[1] = nan"


def test_an_input_without_a_name():
    origin = only(explain_nan((leaf(1., 2.) * torch.tensor([1., NAN])).sum(), names={}))
    assert origin.made.startswith("The input b of multiply held NaN")


def test_all_is_finite():
    x = leaf(1., 2.)
    report = explain_nan((x * x).sum())
    assert report.finite and report.origins == ()
    assert str(report) == "Everything that is known is finite: L, each step that led to it, and all gradients"


def test_where_hides_it_from_the_loss_but_not_from_the_gradient():
    x = leaf(0., 1.)
    loss = torch.where(x > 0, x.sqrt(), x).sum()
    assert loss.item() == 1
    origin = only(explain_nan(loss))
    assert ((origin.phase, origin.op) == ("back", "sqrt") and "a NaN from finite" in origin.made
            and "0 / (2 · 0) = nan" in origin.element)
    # an infinity that does not reach the loss is no excuse
    first, second = explain_nan(torch.where(x > 0, x.log(), x).sum()).origins
    assert ((first.phase, first.op, second.phase, second.op) == ("forward", "log", "back", "log")
            and "0 / 0 = nan" in second.element)


def test_an_infinity_that_was_put_in():
    """A mask is no culprit; what makes a NaN of it is."""
    x, mask = torch.zeros(2, 2, requires_grad=True), torch.tensor([[0., -INF], [0., 0.]])
    assert explain_nan(((x + mask).softmax(-1) ** 2).sum()).finite
    blind = torch.tensor([[0., 0.], [-INF, -INF]], requires_grad=True)
    origin = only(explain_nan((blind.softmax(-1) ** 2).sum()))
    assert origin.op == "softmax" and origin.made == "softmax made a NaN from an infinity: 2 of 4 elements of v1"


def test_what_the_tape_did_not_keep_is_said():
    a, b = torch.tensor(0., requires_grad=True), torch.tensor(0.)
    report = explain_nan((a - INF) * b)
    assert not report.origins[0].certain and "is the first step whose result is known to hold a NaN" in report.title
    assert "The tape did not keep all inputs" in str(report)


def test_two_large_gradients_overflow_in_their_sum():
    x, large = torch.tensor(0., requires_grad=True), torch.tensor(3e38)
    y = x * 1
    origin = only(explain_nan(y * large + y * large))
    assert origin.phase == "back" and origin.made.endswith("made an infinity from finite numbers: ∂L/∂y")
    assert (origin.result[1] == ("a sum of two gradients",) and [name for name, _ in origin.rows]
            == ["∂L/∂y before", "∂L/∂y from here"])


def test_large_arrays_are_searched_whole():
    x = torch.ones(100, 100)
    x[50, 60] = 0
    x.requires_grad_()
    origin = only(explain_nan(x.log().mean()))
    assert "1 of 10,000 elements" in origin.made and origin.element == "[50, 60], where x = 0: log(0) = −inf"


def test_nothing_changes_and_errors_are_those_of_backward():
    x = leaf(0., 1.)
    loss = x.sqrt().sum()
    explain_nan(loss)
    assert x.grad is None
    loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [INF, 0.5])
    with pytest.raises(RuntimeError, match="second time"):
        explain_nan(loss)
    with pytest.raises(RuntimeError, match="scalar outputs"):
        explain_nan(x.sqrt())
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        explain_nan(1.0)


def test_pages(tmp_path):
    evil = leaf(0., 1.)
    report = explain_nan(evil.log().sum(), names={"<b>": evil})
    page = report.save(tmp_path / "a" / "nan.html").read_text(encoding="utf-8")
    assert page == report.html() and "&lt;b&gt;" in page and "<h1>log made" in page and "<b>" not in page
    assert "http:" not in page and "https:" not in page
    assert report.save(tmp_path / "nan.txt").read_text(encoding="utf-8") == f"{report}\n"
    assert "<section>" in report._repr_html_() and "<html" not in report._repr_html_()


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────


PROGRAM = """
import torch
w = torch.nn.Parameter(torch.tensor([2., 1.]))
optimizer = torch.optim.SGD([w], lr=START)
for step in range(4):
    optimizer.zero_grad()
    loss = torch.log(w).sum()               # the line
    try:
        loss.backward()
    except Exception:
        print("held up")
    optimizer.step()
    print("after step", step)
"""


def command(folder, start, out):
    (folder / "program.py").write_text(PROGRAM.replace("START", start), encoding="utf-8")
    done = subprocess.run([sys.executable, "-W", "error", "-m", "tensorgrad.viz", "program.py", "--nan", "--out", out],
                          cwd=folder, capture_output=True, encoding="utf-8", timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"})
    return done, (folder / out).read_text(encoding="utf-8")


def test_the_command_stops_at_the_first_backward_that_is_not_finite(tmp_path):
    """w is [2, 1], and after a step of 1 along 1 / w [1.5, 0]."""
    done, text = command(tmp_path, "1.", "where.txt")
    assert done.returncode == 1 and done.stdout == "after step 0\n"
    assert ("where.txt: log made an infinity from finite numbers: 1 of 2 elements of v1 (in backward 2, after which"
            in done.stderr)
    text = " ".join(text.split())
    assert ("w = [1.5, 0]" in text and "[1], where w = 0: log(0) = −inf" in text
            and "program.py, line 7: loss = torch.log(w).sum()" in text)


def test_under_anomaly_mode():
    """Its error, which ends the backward where the NaN was made, ends the program as well."""
    w = torch.zeros(3, requires_grad=True)
    with Hunt() as hunt, torch.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss = (w.sqrt() * 0).sum()
        with pytest.raises(Found):
            loss.backward()
    assert (hunt.found and hunt.report().title == "The backward of sqrt made a NaN from finite numbers: 3 of 3 "
                                                  "elements of ∂L/∂w")
    with Hunt() as hunt, torch.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        h = w.exp()
        h += 1
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            h.sum().backward()
    assert not hunt.found


def test_the_command_says_that_all_is_finite(tmp_path):
    done, page = command(tmp_path, "0.01", "where.html")
    assert (done.returncode == 0 and done.stdout.count("after step") == 4
            and "no NaN or infinity in the loss and the gradients of 4 backwards" in done.stderr)
    assert page.startswith("<!DOCTYPE html>") and "Everything that is known is finite" in page
