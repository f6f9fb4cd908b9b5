"""The benchmark: equal results of both libraries in every row, and a correct report. Nothing is timed here."""
import importlib
import io
import os
import pickle
import re
import shutil
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from support import DEVICE

import tensorgrad
from benchmarks import machinery, others, worker
from benchmarks.distributed import kept
from benchmarks.others.functions import Optimizer
from benchmarks.processes import Process
from benchmarks.report import Report, cell, chart, columns_of, geometric_mean, markdown
from benchmarks.run import main
from benchmarks.timing import Budget, Case, Measurement, quartiles
from benchmarks.workloads import CANNOT, PYTORCH, Problem, Workload, disagreement

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="the benchmark compares on the CPU")
ROWS = [(group, row) for group in worker.GROUPS for row in worker.workloads(group)]


@contextmanager
def dtype_of(group, engines):
    """Training is compared in double: tiny networks normalize over a handful of numbers, and in float32 a ReLU at 0
    falls to one side or the other.
    """
    for engine in engines:
        engine.set_default_dtype(engine.float64 if group == "training" else engine.float32)
    try:
        yield
    finally:
        for engine in engines:
            engine.set_default_dtype(engine.float32)


@pytest.mark.parametrize("group, row", [(group, row) for group, row in ROWS if row.make is not machinery.nothing],
                         ids=lambda value: getattr(value, "name", value))
def test_both_libraries_compute_the_same(group, row):
    engines = tensorgrad, pytest.importorskip("torch")
    with dtype_of(group, engines):
        compare(*(row.make(engine, True) for engine in engines))


def compare(ours, theirs):
    expected = theirs.results()
    assert expected and disagreement(ours.results(), expected) == ""
    for case in (ours, theirs):                                 # what is timed runs, more than once
        for _ in range(2):
            case.run(*[case.prepare()] if case.prepare else ())


def test_names_tell_rows_apart():
    names = [(group, row.name) for group, row in ROWS]
    assert len(set(names)) == len(names) > 150


@pytest.mark.parametrize("theirs, words", [
    ([1.0, 2.0], ""), ([1.0, 2.1], "result 0 is off by 0.1"), ([[1.0, 2.0]], "has shape"),
    ([1.0, float("nan")], "off by nan")])
def test_differences_are_found(theirs, words):
    found = disagreement([tensorgrad.tensor([1.0, 2.0])], [tensorgrad.tensor(theirs)])
    assert words in found and bool(words) == bool(found)
    assert "2 results" in disagreement(2 * [tensorgrad.ones(1)], [tensorgrad.ones(1)])


def test_statistics():
    assert quartiles([3.0]) == (3.0, 3.0, 3.0) and quartiles([1.0, 2.0, 3.0]) == (1.5, 2.0, 2.5)
    assert geometric_mean([0.5, 8.0]) == pytest.approx(2.0) and geometric_mean([]) is None
    assert machinery.exponent([1, 10, 100], [5, 500, 50000]) == pytest.approx(2.0)


def answers_to(*requests, module="tensorgrad"):
    """Return a worker's description of itself, and its answers."""
    asked, answers = io.BytesIO(b"".join(map(pickle.dumps, requests))), io.BytesIO()
    worker.serve(1, module, asked, answers)
    answers.seek(0)
    return [pickle.load(answers) for _ in range(1 + len(requests))]


def test_a_worker_answers_and_says_what_failed(monkeypatch, capsys):
    def fails(engine, tiny):
        raise ZeroDivisionError("no luck")

    def refuses(engine, tiny):
        raise Problem(CANNOT)
    monkeypatch.setattr(machinery, "ROWS",
                        [Workload("one", lambda engine, tiny, by=2.0: Case(list, lambda: [engine.ones(2) * by])),
                         Workload("two", fails), Workload("three", refuses)])
    wrong = [("make", "machinery", name, {}) for name in ("two", "three", "four")]
    about, (one, none), (fill, _), (time, _), *problems = answers_to(
        ("make", "machinery", "one", {"by": 3.0}), ("fill", Budget()), ("block", 2, Budget()), *wrong)
    assert (about["versions"][-1] == f"tensorgrad {tensorgrad.__version__}" and one[0].tolist() == [3.0, 3.0]
            and none == "" and fill > 1 and time > 0)
    assert [problem for _, problem in problems] == [
        "failed: ZeroDivisionError: no luck", CANNOT,
        "failed: ValueError: not enough values to unpack (expected 1, got 0)"]
    assert "no luck" in capsys.readouterr().err


class Pretended:
    """In place of a process: results, and the times of blocks; a Problem where it has none."""

    rest = 0.0

    def __init__(self, column, results, times=()):
        self.column, self.results, self.times = column, results, iter(times)

    def make(self, group, name, **options):
        return [np.array(self.results)] if self.results is not None else None

    def fill(self, budget):
        return 1

    def block(self, runs, budget):
        if (found := next(self.times, None)) is None:
            raise Problem("failed: lost", self.column)
        return found


def measured(*processes, row=None, **budget):
    columns = {process.column: process for process in processes}
    return (row or Workload("any", None)).measure(columns, "ops", Budget(**{"rounds": 2, **budget}))


def test_columns_are_measured_in_the_same_rounds():
    found = measured(Pretended("compiled", [1.0], [1.0, 3.0]), Pretended("jax", None, [8.0, 8.0]),
                     Pretended(PYTORCH, [1.0], [2.0, 4.0]))
    assert found["compiled"] == Measurement(2.0, 3.0, (0.5625, 0.625, 0.6875)) and found["jax"].ratio == 3.0


def test_a_row_that_differs_or_fails_says_so():
    good, theirs = Pretended("compiled", [1.0], [1.0] * 4), Pretended(PYTORCH, [1.0], [1.0] * 6)
    found = measured(good, Pretended("numpy", [2.0], [1.0] * 4), Pretended("jax", [1.0], [1.0]), theirs)
    assert list(found) == ["compiled", "numpy", "jax"] and found["compiled"].ratio == 1.0
    assert (found["numpy"].problem == "differs: result 0 is off by 1, the largest number of PyTorch's is 1"
            and found["jax"].problem == "failed: lost")
    assert (measured(Pretended("compiled", [1.0], [1.0] * 4), Pretended(PYTORCH, [1.0]))
            == {"compiled": Measurement(problem="PyTorch failed: lost")})
    assert measured(Pretended("compiled", [1.0], [1.0, 2.0])) == {"compiled": Measurement(1.5)}


def test_how_time_grows():
    row = machinery.Growth("any", None, sizes=(1, 2, 4), argument="n")
    found = measured(Pretended("compiled", [1.0], [1.0, 4.0, 16.0]), Pretended(PYTORCH, [1.0], [1.0, 2.0, 4.0]),
                     row=row, rounds=1)
    assert found["compiled"] == Measurement(16.0, 4.0, (4.0, 4.0, 4.0),
                                            note="time grows with exponent 2.00, PyTorch's 1.00")


def test_what_is_measured_of_fresh_processes():
    row = machinery.Fresh("any", None, measured=lambda process: next(process.times), unit="B", rounds=2, first=1)
    found = measured(Pretended("numpy", None, [9.0, 1.0, 2.0]), Pretended(PYTORCH, None, [9.0, 4.0, 4.0]), row=row,
                     rounds=7)
    assert found["numpy"] == Measurement(1.5, 4.0, (0.3125, 0.375, 0.4375), unit="B")


@pytest.fixture
def report():
    made = Report("python -m benchmarks.run", 2, ["compiled", "numpy", "jax"], note="The neighbours were loud.")
    slow, fast, wide = (Measurement(1.5e-3, 1e-3, (low, middle, high))
                        for low, middle, high in ((1.4, 1.5, 1.6), (0.4, 0.5, 0.55), (1, 2, 3)))
    made.add("training", "", "a slow step", {"compiled": slow, "numpy": wide, "jax": fast})
    made.add("training", "", "a fast step", {"compiled": fast, "numpy": slow, "jax": Measurement(problem=CANNOT)})
    made.add("ops", "Sums", "broken", {"compiled": Measurement(problem="failed: OSError: gone"), "numpy": fast})
    made.add("machinery", "Memory", "bytes",
             {"compiled": Measurement(2.0 ** 21, None, None, "B"), "numpy": Measurement(2.0 ** 20, None, None, "B")})
    return made


def test_the_report(report):
    text = markdown(report, "chart.png")
    assert "| a slow step | 1.50 ms | 1.00 ms | 1.50 | 2.00 (1.00 to 3.00) | 0.50 (0.40 to 0.55) |" in text
    assert ("| *geometric mean* |  |  | *0.87* | *1.73* | *0.50* |" in text
            and "| *compiled kernels, the same rows* |  |  | *0.87* | *0.87* | *1.50* |" in text)
    assert "| Training steps | 0.87 | 1.73 | 1 | 0 | 1 | 0 |" in text
    assert ("| broken | 0.00 µs |" not in text and "failed: OSError: gone" in text
            and "| Operations | – | 0.50 | 0 | 0 | 0 | 1 |" in text)
    assert "The neighbours were loud." in text.partition("##")[0]
    assert "| bytes | 2.0 MiB |  | – | – |" in text and "![Ratios, row by row](chart.png)" in text
    assert cell(Measurement(1.0, 1.0, (1.0, 1.0, 1.0))) == "1.00"


def test_the_report_says_how_it_was_made_and_what_is_slower(report):
    text = markdown(report)
    method = re.findall(r"^\d+\. .*$", text.partition("\n| ")[0], flags=re.MULTILINE)
    assert len(method) == 10 and "below 1 tensorgrad is faster" in method[0] and "JAX" in method[-1]
    section = text.partition("## Slower than PyTorch")[2].partition("\n## ")[0]
    assert "in 1 of 2 rows with compiled kernels and 2 of 3 rows with NumPy alone" in section
    assert "| a slow step | Training steps | 1.50 | 2.00 (1.00 to 3.00) |" in section and "a fast step" not in section


def test_other_runtimes_are_measured_with_ours_in_inference():
    report = Report("", 1, ["compiled", "graph", "onnxruntime", "jax"])
    assert report.rounds_of("inference") == [["compiled", "graph", "onnxruntime"]]
    assert report.rounds_of("training") == [["compiled"], ["jax"]] and report.rounds_of("ops") == [["compiled"]]
    found = measured(Pretended("compiled", [1.0], [4.0, 6.0]), Pretended("graph", [1.0], [1.0, 2.0]),
                     Pretended("onnxruntime", [1.0], [2.0, 2.0]), Pretended(PYTORCH, [1.0], [4.0, 4.0]))
    assert found["graph"].runtime == (0.625, 0.75, 0.875) and found["compiled"].runtime[1] == 2.5
    for batch in (1, 32):
        report.add("inference", f"batch {batch}", f"net, batch {batch}", found)
    text = markdown(report)
    section = text.partition("### Against onnxruntime")[2]
    assert "| net, batch 32 | 2.50 | 0.75 |" in section
    assert "| *geometric mean, all rows* | *2.50* | *0.75* |" in section
    assert "| Inference | 1.25 | 0.38 | 0.50 | 0 | 0 | 2 | 0 |" in text and "`torch.compile(model)`" in text


@pytest.mark.parametrize("runtime", ["graph", "onnxruntime", "openvino"])
def test_runtimes_compute_what_the_module_does(runtime):
    if runtime != "graph":
        pytest.importorskip("onnx")
        pytest.importorskip(runtime)
    row = next(row for row in worker.workloads("inference") if row.name == "VAE 784-400-20, batch 32")
    ours, theirs = row.make(tensorgrad, True, runtime=runtime), row.make(tensorgrad, True)
    assert disagreement(ours.results(), theirs.results(), 1e-5) == ""
    ours.run()


def test_sections_that_a_run_does_not_write_are_kept(tmp_path):
    file = tmp_path / "report.md"
    assert kept(file) == ""
    file.write_text("# Benchmark\n\nold\n\n## Other runs and machines\n\na\n\n## Several processes\n\nb\n")
    assert kept(file) == "\n## Other runs and machines\n\na\n\n## Several processes\n\nb\n"
    file.write_text("# Benchmark\n\nold\n\n## Several processes\n\nb\n")
    assert kept(file) == "\n## Several processes\n\nb\n"


def test_other_libraries_are_timed_after_ours(report):
    """By themselves, and beside what was found before."""
    assert (report.rounds_of("training") == [["compiled", "numpy"], ["jax"]]
            and report.rounds_of("ops") == [["compiled", "numpy"]])
    report.add("ops", "Sums", "broken", {"jax": Measurement(1.0)})
    assert list(report.rows["ops", "Sums"]["broken"]) == ["compiled", "numpy", "jax"]


def test_the_chart(report, tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "chart.png"
    assert chart(report, file) and file.read_bytes().startswith(b"\x89PNG") and file.stat().st_size < 60_000
    assert not chart(Report("", 1, ["compiled"]), file)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_bar_stands_under_its_heading(number):
    headed = {heading: {f"{heading}{i}": ["bar"] for i in range(7)} for heading in "abc"}
    parts = columns_of(headed, number)
    assert len(parts) == number and max(map(len, parts)) - min(map(len, parts)) < 5
    assert ([name for part in parts for name, bars in part if bars]
            == [name for lines in headed.values() for name in lines])
    assert all(not part[0][1] and part[-1][1] for part in parts)


def test_a_lost_process_is_a_row_that_failed():
    process = Process("compiled", 1)
    about = "import pickle, sys; write = lambda x: (pickle.dump(x, sys.stdout.buffer), sys.stdout.flush()); "
    for program in (about + "write({}); sys.stdin.buffer.read(1); raise SystemExit(3)", "raise SystemExit(3)",
                    about + "sys.stdin.buffer.read(1); raise SystemExit(3)"):
        process.command = [sys.executable, "-c", program]
        with pytest.raises(Problem, match="failed: its process ended with status 3") as found:
            process.make("ops", "any")
        assert found.value.column == "compiled" and process.process is None


def test_a_process_of_each_column():
    processes = [Process(column, 1) for column in ("compiled", "numpy", "jax", PYTORCH)]
    assert [process.engine for process in processes] == ["tensorgrad", "tensorgrad", "benchmarks.others.jax", "torch"]
    assert [process.environment["TENSORGRAD_PURE"] for process in processes] == ["0", "1", "0", "0"]


def test_a_run_from_start_to_report(tmp_path, capsys):
    file = tmp_path / "report.md"
    main(["--only", "machinery", "--filter", r"Calls a \+ b", "--quick", "--columns", "numpy", "--threads", "1",
          "--out", str(file)])
    [line] = capsys.readouterr().out.splitlines()
    text = file.read_text(encoding="utf-8")
    assert line.startswith("a + b, recorded (1 element)") and "failed" not in line and line.split()[-1] in text
    assert ("| a + b, recorded (1 element) |" in text and "threads: 1" in text
            and f"tensorgrad {tensorgrad.__version__}" in text)


CAN = {"jax": "MLP MNIST ResNet-18 ViT char-GPT LSTM VAE DCGAN", "mygrad": "MLP MNIST ViT LSTM VAE",
       "autograd": "MLP ViT char-GPT LSTM VAE", "tinygrad": "MLP"}


@pytest.mark.parametrize("library, name", [(library, name) for library, names in CAN.items() for name in names.split()])
def test_other_libraries_train_as_pytorch_does(library, name):
    """tinygrad compiles for minutes: its other networks are compared before they are timed."""
    torch = pytest.importorskip("torch")
    pytest.importorskip(library, reason=f"{library} is not installed")
    if library == "tinygrad" and not shutil.which(os.environ.get("CC", "clang")):
        pytest.skip("tinygrad needs clang")
    [row] = [row for row in others.ROWS if row.name.startswith(name)]
    assert row.difference(importlib.import_module(f"benchmarks.others.{library}"), torch, tiny=True) == ""


def test_a_network_that_a_library_cannot_do():
    pytest.importorskip("torch")

    def trainer(task, check):
        assert (check and set(task.optimizers) == {"model"} and len(task.values) == 6
                and task.optimizers["model"].settings["lr"] == 0.1)
        raise NotImplementedError
    with pytest.raises(Problem, match=CANNOT):
        others.ROWS[0].make(SimpleNamespace(trainer=trainer), tiny=True)


@pytest.mark.parametrize("kind, settings", [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adam", {"betas": (0.5, 0.9)}), ("AdamW", {"weight_decay": 0.5})])
def test_the_optimizer_in_numpy(kind, settings):
    p = tensorgrad.tensor([1.0, -2.0], requires_grad=True)
    reference = getattr(tensorgrad.optim, kind)([p], lr=0.1, **settings)
    mine = Optimizer(kind, reference.defaults, ["p"])
    value = p.detach().numpy().copy()
    state = mine.state(np.zeros_like, {"p": value})["p"]
    for count in (1, 2, 3):
        p.grad = tensorgrad.tensor([0.5, float(count)])
        reference.step()
        value, state = mine.update(np, count, value, p.grad.numpy(), state)
    np.testing.assert_allclose(value, p.detach().numpy(), rtol=1e-6)


def test_options(capsys):
    with pytest.raises(SystemExit):
        main(["--columns", "jax"])
    assert "columns beside tensorgrad's" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
    assert "invalid choice" in capsys.readouterr().err
