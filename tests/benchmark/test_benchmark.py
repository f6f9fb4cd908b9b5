"""`python -m tensorgrad.benchmark`: what it accepts and refuses, what it measures, its table and picture."""
import argparse
from xml.etree import ElementTree

import numpy as np
import pytest
from support import cpu_only

from tensorgrad.benchmark.__main__ import QUICK, main, shape
from tensorgrad.benchmark.comparing import disagreement
from tensorgrad.benchmark.comparison import Comparison, Found, Library, Row, resized
from tensorgrad.benchmark.processes import Problem
from tensorgrad.benchmark.report import picture, reference, table, text
from tensorgrad.benchmark.timing import Budget, alternate, quartiles

pytestmark = cpu_only
PROGRAM = """
import os
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.drop = torch.nn.Linear(4, 3), torch.nn.Dropout(0.9)

    def forward(self, x, y):
        return {"sum": self.drop(self.layer(x)) + y, "parts": [x, (y,)]}

def make():
    return Net(), torch.randn(2, 4), torch.ones(1, 3)

def lazily():
    return make

def alone():
    return Net()

def number():
    return 3

def nothing():
    pass

def mixed():
    return Net(), [1, 2]

def dies():
    os._exit(7)
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "model.py"
    file.write_text(PROGRAM)
    return file


# ── a run ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_program_is_measured(program, tmp_path, capsys):
    drawn = tmp_path / "picture.svg"
    assert main([f"{program}", "--quick", "--threads", "1", "--libraries", "compiled", "--batch", "3",
                 "--picture", str(drawn)]) == 0
    out = capsys.readouterr().out
    assert "float32[2, 4], float32[1, 3]; 1 thread\n" in out and "differs" not in out and "failed" not in out
    [line] = [line.split("|") for line in out.splitlines() if line.startswith("|")][2:]
    assert [cell.strip() for cell in line[1:3]] == ["3", "tensorgrad, compiled"]
    assert all("s" in cell for cell in line[3:5] + line[6:9]) and "MiB" in line[9]
    assert "GFLOP/s" in out and "GB/s" in out and "tensorgrad 0" in out
    assert len(ElementTree.fromstring(drawn.read_text()).findall(".//{*}rect")) == 8


def test_what_a_program_may_return(program):
    process = Library("eager", 1)
    try:
        assert [x.shape for x in process.ask("load", f"{program}:lazily")] == [(2, 4), (1, 3)]
        arrays = [np.ones((2, 4), "float32"), np.zeros((1, 3), "float32")]
        found = process.ask("make", arrays)
        assert [a.shape for a in found] == [(2, 3), (2, 4), (1, 3)]
        assert np.array_equal(found[0], process.ask("make", arrays)[0])         # in evaluation mode
        assert process.ask("load", f"{program}:alone") == []
        for name, words in [("number", "number returned 3; a module, or (module, inputs), was expected"),
                            ("nothing", "nothing returned None; a module"),
                            ("mixed", "mixed returned a tuple of (Net, list); a module"),
                            ("other", "has no function 'other': it defines make, lazily, alone, number, nothing")]:
            with pytest.raises(Problem) as problem:
                process.ask("load", f"{program}:{name}")
            assert words in str(problem.value)
        with pytest.raises(Problem, match="failed: its process ended with status 7"):
            process.ask("load", f"{program}:dies")
    finally:
        process.stop()


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("arguments, words", [
    (["no.py:make"], "no.py: there is no such file"), (["no.onnx"], "no.onnx: there is no such file"),
    (["README.md"], "README.md: a program, model.py:make, or an ONNX file, model.onnx, was expected"),
    (["model.py", "--picture", "x.gif"], "x.gif: a picture is an .svg or a .png")])
def test_what_is_refused(arguments, words, program, monkeypatch, capsys):
    monkeypatch.chdir(program.parent)
    assert main(arguments) == 1
    assert capsys.readouterr().err.strip() == words


@pytest.mark.parametrize("arguments", [["--batch", "0"], ["--threads", "x"], ["--shape", "1,a"],
                                       ["--libraries", "jax"]])
def test_options_that_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        main(["model.py", *arguments])
    assert arguments[0] in capsys.readouterr().err


def test_shapes():
    assert shape("1,3,8,8") == ("", (1, 3, 8, 8), "float32") and shape("ids=2,5:int64") == ("ids", (2, 5), "int64")
    assert shape("x=") == ("x", (), "float32")
    for wrong in ("a", "1,-2", "1:complex64", "x=1.5"):
        with pytest.raises(argparse.ArgumentTypeError, match="is no shape"):
            shape(wrong)


class Answers:
    """In place of a process of a library: what it would answer."""

    def __init__(self, **answers):
        self.answers = answers

    def ask(self, request, *arguments):
        return self.answers[request]


def test_inputs():
    comparison = Comparison("model.onnx", ["eager", "pytorch", "onnxruntime"], 1, [shape("x=3,7")])
    assert comparison.wanted == ["eager", "onnxruntime"]                        # PyTorch does not read ONNX
    comparison.processes["eager"] = Answers(signatures=[("x", ("n", 7), "float32"), ("ids", ("n", 5), "int64")])
    assert [(a.shape, str(a.dtype)) for a in comparison.inputs([])] == [((3, 7), "float32"), ((1, 5), "int64")]
    comparison.shapes = [shape("y=1")]
    with pytest.raises(Problem, match="the model has no input y: its inputs are x, ids"):
        comparison.inputs([])
    with pytest.raises(Problem, match="make returned a module without inputs: tell their shapes by --shape"):
        Comparison("m.py:make", ["eager"], 1).inputs([])
    assert resized(np.arange(6).reshape(3, 2), 4).tolist() == [[0, 1], [2, 3], [4, 5], [0, 1]]


# ── reports ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def found():
    rows = [Row("eager", 1, (1e-3, 2e-3, 3e-3), 0.5, 0.2, 50 * 2 ** 20), Row("compiled", 1, problem="differs: by 3"),
            Row("onnxruntime", 1, (4e-3, 5e-3, 6e-3), 1.25, 1.0, None)]
    return Found("<model>.py:make", 2, ["float32[1, 4]"], rows, ["tensorgrad 1"], "a machine")


def test_the_table(found):
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table(found).splitlines()]
    assert lines[2] == ["1", "tensorgrad, eager", "2 ms", "1 ms to 3 ms", "0.40", "500 ms", "200 ms", "300 ms",
                        "50 MiB"]
    assert lines[3][2] == "differs: by 3" and lines[4][2:] == ["5 ms", "4 ms to 6 ms", "1.00", "1.25 s", "1.00 s",
                                                               "250 ms", "–"]
    assert "Ratios are to onnxruntime." in text(found) and text(found).endswith("a machine")
    found.rows.pop()
    assert reference(found, 1).library == "eager" and reference(found, 2) is None


def test_the_picture(found):
    root = ElementTree.fromstring(picture(found))
    words = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"<model>.py:make", "batch 1", "tensorgrad, eager", "onnxruntime", "2 ms", "1.25 s", "50 MiB"} <= set(words)
    assert "tensorgrad, compiled" not in words
    widths = [float(element.get("width")) for element in root.iter() if element.get("height") == "16"]
    assert max(widths) == 250 * 1.0 and min(widths) >= 0


def test_turns():
    """Blocks alternate, A B B A, and stop at the limit."""
    calls = []

    class Case:
        rest = 0.0

        def __init__(self, name):
            self.name = name

        def fill(self, budget):
            return 1

        def block(self, runs, budget):
            calls.append(self.name)
            return 1.0
    times = alternate([Case("a"), Case("b")], Budget(rounds=3))
    assert "".join(calls) == "abbaab" and times == [[1.0] * 3] * 2
    assert len(alternate([Case("a")], Budget(rounds=9, limit=0.0, fewest=2))[0]) == 2
    assert quartiles([2.0]) == (2.0, 2.0, 2.0) and QUICK.rounds < Budget().rounds
    assert "off by nan" in disagreement([np.array([np.nan])], [np.array([1.0])], other="it")
