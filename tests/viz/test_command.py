"""`python -m tensorgrad.viz program.py --out graph.html`: unchanged programs, what is drawn of them, exit statuses and
messages.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

from tensorgrad.viz.__main__ import Wanted, parsed

TRAINING = """
import sys
import torch
from torch import nn

def train(net, steps):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    x, y = torch.tensor([[0., 1.], [1., 1.]]), torch.tensor([[1.], [0.]])
    for step in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        if step == 2:
            print(f"third loss {loss.item():.6f} gradient {net[0].bias.grad[0].item():.6f}")
        optimizer.step()

torch.manual_seed(0)
train(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), int(sys.argv[1]))
"""


@pytest.fixture
def program(tmp_path):
    """Run a program under the command: (exit status, what it printed, messages, the picture or None)."""
    def run(code, *arguments, out="graph.svg", before=(), name="program.py"):
        (tmp_path / name).write_text(code, encoding="utf-8")
        (tmp_path / out).unlink(missing_ok=True)
        command = [sys.executable, "-W", "error", "-m", "tensorgrad.viz", *before, name, "--out", out, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=120,
                              env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"})
        picture = tmp_path / out
        return (done.returncode, done.stdout, done.stderr, picture.read_text(encoding="utf-8") if picture.exists()
                else None)
    return run


def titles(svg):
    return re.findall(r"<text[^>]*>([^<]*)", svg)


@pytest.mark.parametrize(("out", "begins"),
                         [("a/b/graph.html", "<!doctype html>"), ("graph.svg", "<svg"), ("graph.dot", "digraph")])
def test_an_unchanged_program_is_drawn(program, out, begins):
    status, printed, messages, picture = program(TRAINING, "5", out=out)
    assert status == 0 and printed.startswith("third loss")
    assert picture.lower().startswith(begins)
    assert "linear" in picture and "tanh" in picture and "mse_loss" in picture and "0.weight" in picture
    assert "The last loss of program.py" in picture or out.endswith(".dot")
    assert re.search(r"graph\.\w+: the graph of the last loss, 4 steps", messages) and messages.count("\n") == 1


def test_it_is_the_last_loss_with_the_numbers_of_its_backward(program):
    """The optimizer has since written over the parameters, and the backward has freed what it went through."""
    status, printed, _, text = program(TRAINING, "3", "--explain", out="steps.txt")
    assert status == 0
    loss, gradient = map(float, re.fullmatch(r"third loss (\S+) gradient (\S+)\n", printed).groups())
    assert float(re.search(r"Backprop of \w+ = (\S+)", text)[1]) == pytest.approx(loss, rel=1e-3)
    assert (float(re.search(r"0\.bias\.grad += \[([^,]+),", text)[1].replace("−", "-"))
            == pytest.approx(gradient, rel=1e-3))


def test_the_program_sees_no_difference(program):
    """Its freed graph is freed, its gradients are its own, and what it prints is what it prints alone."""
    code = TRAINING + """
net = nn.Linear(2, 1)
loss = net(torch.ones(2)).exp().sum()
loss.backward()
try:
    loss.backward()
except RuntimeError as error:
    print("second time:", str(error)[:45])
kept = (net.weight ** 2).sum()
kept.backward(retain_graph=True)
kept.backward()
torch.autograd.backward([(net.bias * 2).sum()])
(g,) = torch.autograd.grad((net.weight ** 3).sum(), net.weight, create_graph=True)
g.sum().backward(create_graph=False)
print([round(v, 4) for p in net.parameters() for v in p.grad.flatten().tolist()], __name__, sys.argv)
"""
    (_, drawn, *_), alone = program(code, "4"), program(code.replace("import torch\n", "import tensorgrad as torch\n"),
                                                        "4")[1]
    assert drawn == alone and "second time: Trying to backward through the graph a second" in drawn
    assert "__main__ ['program.py', '4']" in drawn


def test_arguments_go_to_the_program(program):
    code = "import sys, torch\nprint(sys.argv[1:])\n(torch.ones(2, requires_grad=True) * 2).sum().backward()"
    assert program(code, "a", "--lr", "0.1", "-h")[:2] == (0, "['a', '--lr', '0.1', '-h']\n")
    assert program(code, "--", "--out", "x", "--explain")[:2] == (0, "['--out', 'x', '--explain']\n")


def test_without_a_backward_it_is_the_last_number(program):
    status, _, _, svg = program("import torch\nx = torch.ones(3, requires_grad=True)\ny = (x.exp() * 2).sum()\nz = y * "
                                "torch.ones(2)\n")
    assert status == 0 and {"exp", "sum"} <= set(titles(svg))
    assert titles(svg).count("multiply") == 1


def test_a_backward_in_a_function_with_a_gradient_and_several_outputs(program):
    code = ("import torch\nx = torch.tensor([1., 2.], requires_grad=True)\ndef f(x):\n    y = x.sin()\n    "
            "y.backward(torch.tensor([2., 3.]))\nf(x)\n")
    status, _, _, text = program(code, "--explain", out="steps.txt")
    assert status == 0 and "[2, 3]" in text and "sin" in text
    status, _, _, svg = program("import torch\nx = torch.ones(2, requires_grad=True)\ntorch.autograd.backward([x.sum()"
                                ", x.exp().sum()])\n")
    assert status == 0 and titles(svg).count("sum") == 2


def test_a_module_and_a_command(program, tmp_path):
    code = "import torch; (torch.ones(2, requires_grad=True) * 2).sum().backward(); print(__name__)"
    # the name of a module has no suffix: there is none
    assert program(code, before=("-m",), name="program")[0] == 1
    (tmp_path / "lesson.py").write_text(code, encoding="utf-8")
    for what in (["-m", "lesson"], ["-c", code]):
        done = subprocess.run([sys.executable, "-m", "tensorgrad.viz", "--out", "m.dot", *what], cwd=tmp_path,
                              capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}, timeout=120)
        assert (done.returncode, done.stdout) == (0, "__main__\n"), done.stderr


# ── programs that fail, and that have nothing to draw ─────────────────────────────────────────────────────────────────


def test_a_program_that_fails_has_its_traceback_and_is_drawn_as_far_as_it_got(program):
    code = ("import torch\nw = torch.ones(3, 2, requires_grad=True)\nh = (w * 2).tanh()\nprint('here')\ntorch.ones(4, "
            "2) @ h\n")
    status, printed, messages, svg = program(code)
    assert (status, printed) == (1, "here\n")
    assert "tanh" in titles(svg) and "matmul" in svg
    assert 'program.py", line 5, in <module>' in messages and "RuntimeError: mat1 and mat2" in messages
    assert "viz" not in messages.partition("RuntimeError")[0]
    assert "graph.svg: how far the program got: it failed at matmul" in messages


def test_a_program_that_fails_elsewhere_is_drawn_too(program):
    status, _, messages, svg = program("import torch\nw = torch.ones(3, requires_grad=True)\nloss = "
                                       "w.exp().sum()\nprint(unknown)\n")
    assert status == 1 and "NameError" in messages and messages.endswith("graph.svg: how far the program got\n")
    assert "exp" in titles(svg)


def test_exit_statuses_are_those_of_the_program(program):
    loss = "import sys, torch\n(torch.ones(2, requires_grad=True) * 2).sum().backward()\n"
    assert program(loss + "sys.exit(7)")[0] == 7
    status, _, messages, svg = program(loss + "sys.exit('enough')")
    assert status == 1 and messages.startswith("enough\n") and "multiply" in svg
    status, _, messages, svg = program("import torch\nraise SystemExit")
    assert status == 1 and "no graph to draw" in messages and svg is None
    status, _, messages, svg = program(loss + "raise KeyboardInterrupt")
    assert status == 130 and "KeyboardInterrupt" in messages


@pytest.mark.parametrize("code", ["print('no tensors')", "import torch\ntorch.ones(3).sum()",
                                  "import torch\ntorch.ones(3, requires_grad=True) * 2"])
def test_no_loss_is_said(program, code):
    status, _, messages, picture = program(code)
    assert status == 1 and picture is None
    assert (messages == "python -m tensorgrad.viz: there is no graph to draw: the program computed no loss from "
                        "tensors that require grad\n")


def test_a_program_that_is_not_there_or_no_python(program, tmp_path):
    done = subprocess.run([sys.executable, "-m", "tensorgrad.viz", "nowhere.py"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 2 and "can't open file" in done.stderr
    status, _, messages, _ = program("x = (")
    assert status == 1 and "SyntaxError" in messages


# ── the command line ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("line", "wanted"), [
    ("p.py", ("graph.html", False, ["p.py"])), ("p.py --out a.svg", ("a.svg", False, ["p.py"])),
    ("--out=a.dot p.py b", ("a.dot", False, ["p.py", "b"])),
    ("p.py --explain -x --out a.html y", ("a.html", True, ["p.py", "-x", "y"])),
    ("--explain -m p q -- --out", ("graph.html", True, ["-m", "p", "q", "--out"])),
    ("- a", ("graph.html", False, ["-", "a"])),
])
def test_what_a_command_line_asks_for(line, wanted):
    out, explain, arguments = wanted
    assert parsed(line.split()) == Wanted(Path(out).absolute(), explain, arguments)


def test_what_programs_are_called():
    assert ([Wanted(Path(), False, line.split()).name for line in ("a/b.py -c d", "-m a.b c", "-c pass", "-")]
            == ["b.py", "a.b", "a command", "a program"])


@pytest.mark.parametrize(("line", "message"), [
    ("--out", "a file is expected"), ("p.py --out", "a file is expected"), ("--fast p.py", "unknown option --fast"),
    ("-m", "argument expected"), ("p.py --out a.gif", "ends in one of .html, .svg, .dot, .png"),
    ("p.py --out a", "ends in one of"),
    ("--explain p.py --out a.svg", "ends in one of .html, .txt"),
    ("--nan p.py --out a.svg", "ends in one of .html, .txt"), ("p.py --nan --explain", "one of them"),
    ("--explain", "which program"), ("--", "which program")])
def test_wrong_command_lines_are_refused_before_anything_runs(line, message):
    with pytest.raises(ValueError, match=message):
        parsed(line.split())


def test_help(tmp_path):
    assert parsed(["-h"]) is None and parsed(["--explain", "--help"]) is None
    for line, status in ([], 2), (["-h"], 0), (["--fast"], 2):
        done = subprocess.run([sys.executable, "-m", "tensorgrad.viz", *line], capture_output=True, text=True,
                              cwd=tmp_path, timeout=120,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert (done.returncode == status and "usage: python -m tensorgrad.viz"
                in (done.stderr if status else done.stdout))
