"""A run on disk: metrics.csv, locks, what is kept of where it comes from, and what happens when it is killed or the
disk is full."""

import csv
import errno
import io
import json
import math
import os
import random
import shutil
import signal
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from support import ROOT, fresh_process

import tensorgrad as tg
from tensorgrad.experiment import files, metrics, shim
from tensorgrad.experiment.config import ConfigError
from tensorgrad.experiment.events import Scalars
from tensorgrad.experiment.run import Run
from tensorgrad.experiment.seeding import seed_everything


def rows(run, path="metrics.csv"):
    """The rows of metrics.csv as dicts. Each line must have all cells: what a strict reader asks for."""
    text = ((run if isinstance(run, Path) else run.path) / path).read_text(encoding="utf-8")
    assert text.endswith("\n")
    head, *rest = csv.reader(io.StringIO(text), strict=True)
    assert all(len(row) == len(head) for row in rest)
    return [dict(zip(head, row)) for row in rest]


def without_time(run):
    return [{k: v for k, v in row.items() if k != "time"} for row in rows(run)]


@pytest.fixture
def run(tmp_path):
    with Run(tmp_path / "run", events=False, quiet=True) as run:
        yield run


# ── metrics ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_have_the_columns_in_order_of_appearance(run):
    run.log(0, loss=0.5)
    run.log(1, {"train/loss": 0.25}, acc=True)
    run.log(2, loss=tg.tensor(0.1, requires_grad=True), epoch=1)
    run.log(1, loss=np.float32(2), note='a "word", more')
    assert list(rows(run)[0]) == ["step", "epoch", "time", "loss", "train/loss", "acc", "note"]
    assert without_time(run) == [
        {"step": "0", "epoch": "", "loss": "0.5", "train/loss": "", "acc": "", "note": ""},
        {"step": "1", "epoch": "", "loss": "", "train/loss": "0.25", "acc": "True", "note": ""},
        {"step": "2", "epoch": "1", "loss": "0.10000000149011612", "train/loss": "", "acc": "", "note": ""},
        {"step": "1", "epoch": "", "loss": "2.0", "train/loss": "", "acc": "", "note": 'a "word", more'},
    ]


def test_numbers_read_back_exactly(run):
    numbers = [
        0.1,
        -0.5,
        1e-300,
        math.pi,
        1 / 3,
        float("inf"),
        float("-inf"),
        float("nan"),
        2**60,
        -7,
        np.int64(3),
        tg.tensor(2.5, dtype=tg.float64),
    ]
    for number in numbers:
        run.log(None, x=number)
    found = [float(row["x"]) for row in rows(run)]
    np.testing.assert_array_equal(found, [float(n) for n in numbers])
    assert [int(row["step"]) for row in rows(run)] == list(range(len(numbers)))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " =1", "x;=1", "＝1"])
def test_no_cell_starts_a_formula(run, text):
    run.log(0, {text: text, "b": -0.5})
    [head, row] = csv.reader(io.StringIO((run.path / "metrics.csv").read_text()), strict=True)
    for cell in (head[2], row[2]):
        for part in cell.split(";"):
            assert part.lstrip()[:1] not in ("=", "+", "-", "@", "\t", "\r", "＝")
    assert row[3] == "-0.5"


def test_names_and_texts_stay_on_their_line(run):
    run.log(0, {'a,"b\n"': "x\ny,\0\x1b[2J\u2028\udcff"})
    assert len((run.path / "metrics.csv").read_bytes().split(b"\n")) == 3
    assert rows(run)[0]['a,"b\\n"'] == r"x\ny,\x00\x1b[2J\u2028\udcff"


@pytest.mark.parametrize(
    "value",
    [tg.ones(2), np.ones((1, 1)), None, [1.0], 1j, tg.tensor(1j), b"x", "long" * 100, {"a": [1]}, object()],
    ids=lambda v: type(v).__name__,
)
def test_other_values_are_refused_by_name(run, value):
    with pytest.raises(TypeError, match="my loss"):
        run.log(0, {"fine": 1.0, "my loss": value})
    assert rows(run) == [] and run.state_dict()["rows"] == 0


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda r: r.log(0.5, a=1), TypeError),
        (lambda r: r.log("x", a=1), TypeError),
        (lambda r: r.log(0, {1: 2}), TypeError),
        (lambda r: r.log(0, {"": 2}), ValueError),
        (lambda r: r.log(0, {"n" * 300: 2}), ValueError),
        (lambda r: r.log(0, time=3), ValueError),
        (lambda r: r.log(0, {"a/b": 1, "a": {"b": 2}}), ValueError),
        (lambda r: r.log(2**70, a=1), ValueError),
        (lambda r: r.log(0, a=10**400), OverflowError),
        (lambda r: r.log(0, {f"n{i}": i for i in range(5000)}), ValueError),
    ],
)
def test_bad_calls_log_nothing(run, call, error):
    with pytest.raises(error):
        call(run)
    assert rows(run) == []
    run.log(0, a=1)


def test_E29_groups_of_scalars_are_columns(run):
    run.log(1, lr=0.1, loss={"train": 0.5, "val": 0.75})
    assert without_time(run) == [{"step": "1", "lr": "0.1", "loss/train": "0.5", "loss/val": "0.75"}]


def test_no_short_row_is_appended_across_the_end_of_a_page(run):
    """File systems show what is appended page by page, and a reader may come between two pages."""
    path, appended = run.path / "metrics.csv", 0
    for i in range(1500):
        before = path.stat()
        run.log(i, loss=i / 7, text="a" * (i * i % 90), **({"new": 1} if i == 700 else {}))
        after = path.stat()
        if before.st_ino == after.st_ino:
            assert before.st_size // 4096 == (after.st_size - 1) // 4096
            appended += 1
    assert appended > 1450
    times = [float(row["time"]) for row in rows(run)]
    assert (
        times == sorted(times)
        and times[-1] < 60
        and [row["step"] for row in rows(run)] == [str(i) for i in range(1500)]
    )


def test_a_reader_sees_whole_rows_at_any_moment(run):
    seen, end, errors = [], threading.Event(), []

    def reader():
        while not end.is_set():
            try:
                seen.append(len(rows(run)))
            except Exception as error:
                errors.append(error)

    thread = threading.Thread(target=reader)
    thread.start()
    for i in range(400):
        run.log(i, {"loss": i / 7, "text": "a" * (i % 50), **({f"new {i}": 1} if i % 100 == 50 else {})})
    end.set()
    thread.join()
    assert not errors and seen == sorted(seen) and len(rows(run)) == 400


def test_threads_share_a_run(run):
    threads = [
        threading.Thread(target=lambda k=k: [run.log(i, {"a": k, f"of {k}": i}) for i in range(50)]) for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows(run)) == 200 == run.state_dict()["rows"]


# ── resuming ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_resumed_run_cuts_what_came_after_the_checkpoint(tmp_path):
    with Run(tmp_path / "a", {"lr": 0.1}, events=False, quiet=True) as run:
        for step in range(5):
            run.log(step, loss=step / 3, text="a,b")
        state = run.state_dict()
        run.log(5, loss=9.0, epoch=1, other="=1")
        before = (run.path / "metrics.csv").read_bytes()
    assert tg.load(save(state, tmp_path / "state.pt"), weights_only=True) == state
    with Run(tmp_path / "a", resume=True, events=False, quiet=True) as again:
        assert again.resumed and again.config == {"lr": 0.1} and (again.path / "metrics.csv").read_bytes() == before
        again.load_state_dict(state)
        assert list(rows(again)[0]) == ["step", "time", "loss", "text"] and len(rows(again)) == 5
        again.log(None, loss=1.0)
        last = rows(again)[-1]
        assert last["step"] == "5" and float(last["time"]) >= float(rows(again)[-2]["time"])
    log = (tmp_path / "a" / "log.txt").read_text()
    assert "\nresumed " in log and "rows cut from metrics.csv: 1" in log
    about = json.loads((tmp_path / "a" / "run.json").read_text())
    assert len(about["sessions"]) == 2 and about["status"] == "finished"


def save(state, path):
    tg.save(state, path)
    return path


def test_a_torn_line_is_dropped(tmp_path):
    with Run(tmp_path / "a", events=False, quiet=True) as run:
        run.log(0, loss=1.0)
    with open(tmp_path / "a" / "metrics.csv", "ab") as file:
        file.write(b"1,0.2,0.")
    with Run(tmp_path / "a", resume=True, events=False, quiet=True) as run:
        assert len(rows(run)) == 1
        run.log(None, loss=0.5)
        assert [row["step"] for row in rows(run)] == ["0", "1"]


def test_a_state_is_checked_before_anything_is_cut(run):
    run.log(0, loss=1.0)
    for state in (
        None,
        {},
        {"columns": ["step", "time"], "rows": -1},
        {"columns": "step", "rows": 1},
        {"columns": ["a"], "rows": 1},
        {"columns": ["step", "time", "a", "a"], "rows": 0},
        {"columns": ["step", "time"], "rows": True},
    ):
        with pytest.raises(ValueError, match="state of a Run"):
            run.load_state_dict(state)
    assert len(rows(run)) == 1


def test_rows_that_are_gone_are_told(tmp_path):
    with Run(tmp_path / "a", events=False, quiet=True) as run:
        run.log(0, loss=1.0)
        state = run.state_dict()
    (tmp_path / "a" / "metrics.csv").unlink()
    with Run(tmp_path / "a", resume=True, events=False, quiet=True) as run:
        with pytest.warns(RuntimeWarning, match="has 0 of the 1 rows"):
            run.load_state_dict(state)
        run.log(None, loss=2.0)
        assert list(rows(run)[0]) == ["step", "time", "loss"]


def test_resuming_nothing_begins_a_run(tmp_path):
    with Run(tmp_path / "new", {"a": 1}, resume=True, events=False, quiet=True) as run:
        assert not run.resumed
    with Run(tmp_path / "new", {"a": 2}, resume=True, events=False, quiet=True) as run:
        assert run.resumed and files.read_config(run.path) == {"a": 2}
    assert "config: a = 2, before 1" in (tmp_path / "new" / "log.txt").read_text()


@pytest.fixture
def fork():
    """Run a function in a forked process: (its process, what it writes to the file that it is given)."""
    if not hasattr(os, "fork"):
        pytest.skip("no forks here")

    def fork(function):
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about threads, of which there are none that matter
            child = os.fork()
        if child:
            os.close(write)
            children.append(child)
            return child, os.fdopen(read)
        try:
            with os.fdopen(write, "w") as out:
                function(out)
        finally:
            os._exit(0)

    children = []
    yield fork
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_killed_run_keeps_its_rows_and_its_lock_goes(tmp_path, fork):
    path = tmp_path / "run"

    def train(out):
        run = Run(path, {"lr": 0.1}, events=False, quiet=True)
        for step in range(10**9):
            run.log(step, loss=step / 7, text="some text", **({f"m{step}": 1} if step % 500 == 250 else {}))
            if step == 300:
                out.write("going\n")
                out.flush()

    process, out = fork(train)
    with out:
        assert out.readline() == "going\n"
        with pytest.raises(BlockingIOError, match=f"written by process {process}"):
            Run(path, resume=True, events=False, quiet=True)
        os.kill(process, signal.SIGKILL)
        assert out.read() == ""  # it is gone
    with Run(path, resume=True, events=False, quiet=True) as run:
        found = rows(run)
        assert run.resumed and len(found) >= 301
        assert all(float(row["loss"]) == i / 7 and row["step"] == str(i) for i, row in enumerate(found))


# ── directories ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_E21_nothing_is_removed_without_being_asked(tmp_path):
    path = tmp_path / "_run"
    with Run(path, events=False, quiet=True) as run:
        run.log(0, a=1)
    before = sorted(p.name for p in path.iterdir())
    with pytest.raises(FileExistsError, match=r"resume=True.*overwrite=True"):
        Run(path)
    assert sorted(p.name for p in path.iterdir()) == before
    (path / "ckpt" / "mine").write_text("x")
    with Run(path, resume=True, events=False, quiet=True):
        assert (path / "ckpt" / "mine").exists()
    with Run(path, overwrite=True, events=False, quiet=True) as run:
        assert not run.resumed and rows(run) == [] and not (path / "ckpt" / "mine").exists()
    with pytest.raises(ValueError, match="one of them"):
        Run(path, resume=True, overwrite=True)


def test_only_runs_are_overwritten_and_never_through_links(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("x")
    (other / "sub").mkdir()
    with pytest.raises(FileExistsError, match="no run.json"):
        Run(other, overwrite=True)
    (other / "run.json").write_text('{"scripts": {}}')
    with pytest.raises(FileExistsError, match="no run.json"):
        Run(other, overwrite=True)
    with Run(tmp_path / "real", events=False, quiet=True):
        pass
    os.symlink(tmp_path / "real", tmp_path / "link")
    with pytest.raises(FileExistsError, match="link"):
        Run(tmp_path / "link", overwrite=True)
    os.symlink(other, tmp_path / "real" / "img" / "out")
    with Run(tmp_path / "real", overwrite=True, events=False, quiet=True):
        pass
    assert (other / "thesis.tex").exists() and (tmp_path / "real" / "run.json").exists()


@pytest.mark.parametrize("name", ["log.txt", "metrics.csv", "run.json", "config.yaml", ".lock"])
def test_nothing_is_written_through_a_link(tmp_path, name):
    with Run(tmp_path / "a", {"a": 1}, events=False, quiet=True):
        pass
    target = tmp_path / "target"
    target.write_text("untouched")
    (tmp_path / "a" / name).unlink()
    os.symlink(target, tmp_path / "a" / name)
    with pytest.raises(OSError):
        Run(tmp_path / "a", {"a": 2}, resume=True, events=False, quiet=True)
    assert target.read_text() == "untouched"


def test_one_run_of_a_process_writes_a_directory(tmp_path, run):
    with pytest.raises(BlockingIOError, match=r"earlier Run of this process. Call its finish\(\)"):
        Run(run.path, resume=True)
    run.finish()
    Run(run.path, resume=True, events=False, quiet=True).finish()
    with pytest.raises(RuntimeError, match="has ended"):
        run.log(0, a=1)


def test_a_forked_process_does_not_write(run, fork):
    def child(out):
        try:
            run.log(0, a=1)
        except RuntimeError as error:
            out.write(str(error))

    _, out = fork(child)
    with out:
        assert "processes forked from it do not log" in out.read()
    run.log(0, a=1)
    assert len(rows(run)) == 1


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError) as caught:
            Run(path)
        assert str(tmp_path / "file") in str(caught.value) and caught.value.__cause__ is None
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize(
    "status, error",
    [
        ("finished", None),
        ("failed", ValueError("boom")),
        ("interrupted", KeyboardInterrupt()),
        ("finished", SystemExit(0)),
    ],
)
def test_the_status_says_how_a_run_ended(tmp_path, status, error):
    try:
        with Run(tmp_path / "a", events=False, quiet=True):
            if error is not None:
                raise error
    except BaseException as caught:
        assert caught is error
    about = json.loads((tmp_path / "a" / "run.json").read_text())
    assert about["status"] == status and about["ended"]
    assert ("failed: ValueError: boom" in (tmp_path / "a" / "log.txt").read_text()) == (status == "failed")


def test_a_program_that_ends_without_finish_ends_its_runs(tmp_path):
    fresh_process(
        f"from tensorgrad.experiment.run import Run\nrun = Run({str(tmp_path / 'a')!r}, events=False)\n"
        "run.log(0, a=1)\n1 / 0",
        fails=True,
    )
    assert json.loads((tmp_path / "a" / "run.json").read_text())["status"] == "failed"
    run = Run(tmp_path / "b", events=False, quiet=True)
    run._at_exit()
    assert json.loads((tmp_path / "b" / "run.json").read_text())["status"] == "finished"


# ── a full disk ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Full:
    """os.write for a disk with room for so many bytes."""

    def __init__(self, room):
        self.room, self.write = room, os.write

    def __call__(self, descriptor, data):
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = self.write(descriptor, bytes(data)[: self.room])
        self.room -= done
        return done


def test_a_full_disk_keeps_rows_until_there_is_room(run, monkeypatch):
    run.log(0, loss=0.5)
    disk = Full(5)
    monkeypatch.setattr(metrics, "PATIENCE", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", disk)
        with pytest.warns(RuntimeWarning, match="(?s)No space left on device.*metrics.csv.*rows wait"):
            run.log(1, loss=0.25)
        run.log(2, loss=0.125)  # warns once
        assert len(rows(run)) == 1 and run.state_dict()["rows"] == 3
        disk.room = 10**6
        run.log(3, loss=0.0)
    assert [row["step"] for row in rows(run)] == ["0", "1", "2", "3"]


def test_rows_that_find_no_room_in_the_end_are_an_error(tmp_path, monkeypatch):
    run = Run(tmp_path / "a", events=False, quiet=True)
    run.log(0, loss=0.5)
    monkeypatch.setattr(os, "write", Full(0))
    with pytest.warns(RuntimeWarning):
        run.log(1, loss=0.25)
    with pytest.raises(OSError, match="could not be written and are lost: 1"):
        run.finish()
    monkeypatch.undo()
    assert len(rows(run)) == 1 and not list(run.path.glob("**/*.part"))
    Run(run.path, resume=True, events=False, quiet=True).finish()  # the lock is gone


def test_a_limit_of_the_system_is_a_full_disk(tmp_path, fork):
    resource = pytest.importorskip("resource")

    def train(out):
        warnings.simplefilter("ignore")
        run = Run(tmp_path / "a", events=False, quiet=True)
        run.log(0, loss=0.5)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        for step in range(1, 2000):
            run.log(step, loss=step / 3)
            if step == 1500:
                run.log(step, {"new column": 1})
        try:
            run.finish()
        except OSError as error:
            out.write(f"{error.errno} {error}")

    _, out = fork(train)
    with out:
        told = out.read()
    assert (
        told.startswith(f"{errno.EFBIG} ")
        and "Rows that could not be written and are lost: " in told
        and "metrics.csv" in told
    )
    found = rows(tmp_path / "a")
    assert 300 < len(found) < 2000 and all(row["step"] == str(i) for i, row in enumerate(found))
    assert not list((tmp_path / "a").glob(".*.part"))


def test_a_run_on_a_full_disk_is_not_begun(tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(files, "write", full)
    with pytest.raises(OSError, match="No space left"):
        Run(tmp_path / "a", events=False, quiet=True)
    monkeypatch.undo()
    Run(tmp_path / "a", resume=True, events=False, quiet=True).finish()


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_E23_files_of_a_run(tmp_path, capsys):
    config = {
        "zeta": 1,
        "alpha": {"path": Path("x") / "y", "sizes": (2, 3), "lr": 1e-05},
        "seed": 42,
        "cmd_args": {"config": "c.yaml"},
        "resume": None,
    }
    with Run(tmp_path / "a", config, snapshot=ROOT / "tensorgrad" / "experiment" / "show") as run:
        run.log(0, loss=0.5)
        run.print("Epoch 1/1", "loss=0.5")
    assert {p.name for p in run.path.iterdir()} >= {
        "run.json",
        "config.yaml",
        "log.txt",
        "metrics.csv",
        "ckpt",
        "img",
        "tensorboard",
        "src",
    }
    assert list(files.read_config(run.path)) == ["zeta", "alpha", "seed", "cmd_args", "resume"]
    assert files.read_config(run.path)["alpha"] == {"path": "x/y", "sizes": [2, 3], "lr": 1e-05}
    assert (run.path / "src" / "table.py").exists() and capsys.readouterr().out == "Epoch 1/1 loss=0.5\n"
    about = json.loads((run.path / "run.json").read_text())
    assert (
        about["packages"]["numpy"] == np.__version__
        and about["packages"]["tensorgrad"] == tg.__version__
        and about["command"]
    )
    assert about["started"] <= about["ended"] and "host" not in str(list(about))


def test_a_configuration_holds_plain_values(tmp_path):
    with pytest.raises(ConfigError, match=r"model.args\[1\]: a object is not plain data"):
        Run(tmp_path / "a", {"model": {"args": [1, object()]}})
    assert not (tmp_path / "a").exists()
    loop = {}
    loop["a"] = loop
    with pytest.raises(ConfigError, match="nested"):
        Run(tmp_path / "a", loop)


def test_E24_seeds_are_kept_and_give_equal_streams(run):
    def draws():
        return random.random(), np.random.rand(), tg.rand(3).tolist()

    seed_everything(42)
    first = draws()
    assert seed_everything(np.int64(42)) == 42 and draws() == first
    assert seed_everything(43) == 43 and draws() != first
    assert 0 <= seed_everything() < 1000
    for bad, error in ((-1, ValueError), (2**32, ValueError), ("1", TypeError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error):
            seed_everything(bad)


def test_E16_lines_of_the_log_are_escaped(tmp_path, capsys):
    with Run(tmp_path / "a", events=False) as run:
        run.print("Epoch 1/2", "loss=0.5000", "\x1b[2J\u202e\r")
        run.print("two\nEpoch 2/2 forged")
    lines = (run.path / "log.txt").read_text().splitlines()
    assert lines[1:] == [r"Epoch 1/2 loss=0.5000 \x1b[2J\u202e\r", "two", "    Epoch 2/2 forged"]
    assert capsys.readouterr().out.splitlines() == lines[1:]


def events(folder):
    """(step, tag, value) of all scalars, as TensorBoard reads them."""
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return sorted((e.step, tag, e.value) for tag in accumulator.Tags()["scalars"] for e in accumulator.Scalars(tag))


def test_E29_events_hold_the_scalars_and_forget_what_was_cut(tmp_path):
    with Run(tmp_path / "a", quiet=True) as run:
        run.log(1, lr=0.5, loss={"train": 0.25}, note="text", epoch=1)
        state = run.state_dict()
        run.log(2, lr=0.125, loss={"train": 4.0})
    with Run(tmp_path / "a", resume=True, quiet=True) as run:
        run.load_state_dict(state)
        run.log(2, lr=0.0625)
    assert events(run.path / "tensorboard") == [(1, "loss/train", 0.25), (1, "lr", 0.5), (2, "lr", 0.0625)]


def test_events_of_a_row_are_coded_as_messages_are():
    from tensorgrad.utils.tensorboard._wire import Event, Summary, Value

    for step, scalars in (
        (5, [("a/b", 0.5), ("µ" * 90, math.inf), ("z", 0.0)]),
        (0, [("x", True)]),
        (-3, [("x" * 300, 1e300)]),
        (2**40, [("x", 7)]),
    ):
        found = Scalars(step, scalars)
        values = [Value(tag=tag, simple_value=value if value != 1e300 else math.inf) for tag, value in scalars]
        assert (
            found.SerializeToString()
            == Event(step=step, wall_time=found.wall_time, summary=Summary(value=values)).SerializeToString()
        )


def test_events_that_cannot_be_written_do_not_end_a_training(tmp_path):
    with Run(tmp_path / "a", quiet=True) as run:
        (run.path / "tensorboard").rmdir()
        (run.path / "tensorboard").write_text("in the way")
        with pytest.warns(RuntimeWarning, match="No more events"):
            run.log(0, a=1)
        run.log(1, a=1)
    assert len(rows(run)) == 2


def test_E36_versions_of_events_have_their_hyperparameters(tmp_path):
    with Run(tmp_path / "a", {"lr": 0.1}, events="default", quiet=True) as run:
        run.log(0, a=1)
    with Run(tmp_path / "a", resume=True, events="default", quiet=True) as run:
        run.log_hyperparams({"model_spec": {"name": "mlp"}, "dtype": tg.float32})
        run.log(1, a=2)
    assert files.read_config(tmp_path / "a" / "default" / "version_0", "hparams") == {"lr": 0.1}
    assert files.read_config(tmp_path / "a" / "default" / "version_1", "hparams") == {
        "model_spec": {"name": "mlp"},
        "dtype": "torch.float32",
    }
    assert (
        all(list((tmp_path / "a" / "default" / f"version_{k}").glob("events.out*")) for k in (0, 1))
        and not (tmp_path / "a" / "tensorboard").exists()
    )
    for bad in ("../out", "", ".hidden", "a/b"):
        with pytest.raises(ValueError, match="events"):
            Run(tmp_path / "b", events=bad)
        assert not list((tmp_path / "b").glob("*/version*"))
        shutil.rmtree(tmp_path / "b", ignore_errors=True)


# ── init, log, finish ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_scripts_call_init_log_and_finish(tmp_path):
    run = shim.init(
        project="mnist",
        config={"lr": 0.1},
        dir=tmp_path,
        entity="me",
        tags=["a"],
        mode="offline",
        quiet=True,
        events=False,
    )
    shim.log({"loss": 0.5})
    shim.log({"loss": 0.25}, step=7)
    shim.log({"loss": 0.125, "epoch": 1})
    second = shim.init(project="mnist", dir=tmp_path, quiet=True, events=False)
    assert (
        run.status == "finished"
        and run.config == {"lr": 0.1}
        and json.loads((run.path / "run.json").read_text())["labels"] == {"tags": ["a"]}
    )
    assert [row["step"] for row in rows(run)] == ["0", "7", "8"] and (run.path.name, second.path.name) == (
        "run-1",
        "run-2",
    )
    shim.finish(exit_code=1)
    assert second.status == "failed"
    shim.finish()
    with pytest.raises(RuntimeError, match="call init"):
        shim.log({"a": 1})


def test_init_resumes_by_name_and_refuses_paths(tmp_path):
    shim.init(project="p", name="a", dir=tmp_path, quiet=True, events=False)
    shim.log({"x": 1})
    shim.finish()
    with pytest.raises(FileExistsError):
        shim.init(project="p", name="a", dir=tmp_path)
    assert shim.init(project="p", name="a", dir=tmp_path, resume="allow", quiet=True, events=False).resumed
    shim.finish()
    with pytest.raises(FileNotFoundError):
        shim.init(project="p", name="b", dir=tmp_path, resume="must")
    for name in ("../x", "a/b", "..", "", ".hidden", "a\0b"):
        with pytest.raises(ValueError, match="name"):
            shim.init(project="p", name=name, dir=tmp_path)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        shim.init(project="p", colour=1)


def test_a_file_that_no_run_wrote_is_not_taken_for_metrics(tmp_path):
    with Run(tmp_path / "a", events=False, quiet=True):
        pass
    (tmp_path / "a" / "metrics.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match="was not written by a Run"):
        Run(tmp_path / "a", resume=True)
    assert (tmp_path / "a" / "metrics.csv").read_text() == "x,y\n1,2\n"
    assert metrics.cells('"a""b",,1') == ['"a""b"', "", "1"]
