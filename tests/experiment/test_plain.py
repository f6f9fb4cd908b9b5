"""The plain loop: E23 to E32."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import experiment_project as project
import pytest
from experiment_project import rows, run

import tensorgrad as tg
from tensorgrad.experiment import models, plain

pytest.importorskip("yaml")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A project with a finished run, `save/_plain`."""
    with project.inside(project.write(tmp_path_factory.mktemp("plain"))) as folder:
        assert run("configs/plain.yaml") == 0
        yield folder


@pytest.fixture
def save(finished):
    return finished / "save"


def checkpoint(path):
    return tg.load(path, weights_only=True)


def same(a, b, path=""):
    """Assert that two checkpoints hold the same bits, but for times and what was changed on the command line."""
    if isinstance(a, tg.Tensor):
        assert a.dtype == b.dtype and a.numpy().tobytes() == b.numpy().tobytes(), path
    elif isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for key in a:
            if key not in ("elapsed", "config", "run"):
                same(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{path}[{i}]")
    else:
        assert a == b or a != a and b != b, path


def equal_runs(one, two):
    same(checkpoint(one / "ckpt/epoch-last.pth"), checkpoint(two / "ckpt/epoch-last.pth"))
    assert rows(one) == rows(two)


# ── what a run leaves ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_E23_E30_files_of_a_run(save):
    path = save / "_plain"
    assert {"config.yaml", "log.txt", "ckpt", "img", "tensorboard", "src", "metrics.csv", "run.json"} <= {
        p.name for p in path.iterdir()
    }
    names = {p.name for p in (path / "ckpt").iterdir()}
    assert {"epoch-last.pth", "epoch-2.pth", "epoch-4.pth", "epoch-best.pth", "step-last.pth"} == names


def test_E24_E26_E28_lines_of_the_log(save):
    log = (save / "_plain/log.txt").read_text()
    assert "Global seed set to 42\n" in log
    assert (
        "train dataset: size=48\n  img: shape=(8,), dtype=float32\n  label: int\n" in log
        and "val dataset: size=16\n" in log
    )
    lines = re.findall(
        r"^epoch (\d+)/4, train: loss=\d+\.\d{4}, [\d.]+[smh] [\d.]+[smh]/[\d.]+[smh]$", log, re.MULTILINE
    )
    assert lines == ["1", "2", "3", "4"]
    last = re.search(r"epoch 4/4, .* ([\d.]+s)/([\d.]+s)$", log, re.MULTILINE)
    assert last[1] == last[2]


def test_E24_the_seed_decides_everything(save, capsys):
    assert run("configs/plain.yaml", "--tag", "again") == 0
    equal_runs(save / "_plain", save / "_plain_again")
    assert run("configs/plain.yaml", "seed=43", "epoch_max=1", "--tag", "other") == 0
    assert rows(save / "_plain")[2] != rows(save / "_plain_other")[2]


def test_E25_a_number_may_be_written_1e_4(save):
    Path("configs/floats.yaml").write_text(Path("configs/plain.yaml").read_text().replace("5.e-2", "1e-4"))
    assert run("configs/floats.yaml", "epoch_max=1") == 0
    assert checkpoint(save / "_floats/ckpt/epoch-last.pth")["optimizer"]["args"] == {"lr": 1e-4}


def test_E27_E29_scalars(save):
    head, *lines = rows(save / "_plain")
    assert {"lr", "loss/train", "accuracy/train", "loss/val", "accuracy/val"} <= set(head)
    assert [line[head.index("epoch")] for line in lines] == ["0", "1", "2", "3", "4"]
    losses, rates = ([float(line[head.index(name)]) for line in lines[1:]] for name in ("loss/train", "lr"))
    assert losses[-1] < losses[0] and rates == [0.05, 0.05, 0.025, 0.025]
    assert any((save / "_plain/tensorboard").rglob("events*"))


def test_E30_a_checkpoint_is_complete_by_itself(save):
    state = checkpoint(save / "_plain/ckpt/epoch-last.pth")
    assert state["epoch"] == 4 and state["config"]["model"] == {"name": "tiny", "args": {"width": 6}}
    assert (
        set(state["model"]) == {"name", "args", "sd"} == set(state["optimizer"])
        and state["optimizer"]["name"] == "Adam"
    )
    assert set(state["model"]["sd"]) == {"net.0.weight", "net.0.bias", "net.3.weight", "net.3.bias"}
    assert checkpoint(save / "_plain/ckpt/epoch-2.pth")["epoch"] == 2
    model = models.make(state["model"], load_sd=True).eval()
    batch = {"img": tg.ones(2, 8)}
    wanted = plain.Plain(state["config"], state).eval().model(batch)
    assert tg.equal(model(batch), wanted) and model.net[0].weight.shape == (6, 8)


def test_E30_pytorch_reads_it(save):
    torch = pytest.importorskip("torch")
    state = torch.load(save / "_plain/ckpt/epoch-last.pth", weights_only=True)
    mine = checkpoint(save / "_plain/ckpt/epoch-last.pth")["model"]["sd"]["net.0.weight"]
    assert state["model"]["sd"]["net.0.weight"].tolist() == mine.tolist()


def test_E32_the_best_epoch_is_kept(save):
    head, first, *lines = rows(save / "_plain")
    values = [float(line[head.index("loss/val")]) for line in lines]
    assert (
        len(values) == 4 and first[head.index("loss/train")] == "" and first[head.index("loss/val")]
    )  # before training
    assert checkpoint(save / "_plain/ckpt/epoch-best.pth")["epoch"] == values.index(min(values)) + 1
    assert run("configs/plain.yaml", "epoch_val=2", "--tag", "seldom") == 0
    head, _, *lines = rows(save / "_plain_seldom")
    assert [bool(line[head.index("loss/val")]) for line in lines] == [False, True, False, True]


def test_E32_without_validation_data(save):
    config = Path("configs/plain.yaml").read_text()
    Path("configs/alone.yaml").write_text(
        "".join(
            line + "\n" for line in config.splitlines() if not line.startswith(("val", "epoch_val", "sched", "loss:"))
        )
        + "loss: {name: mnist_ce}\nscheduler: {name: ReduceLROnPlateau, args: {patience: 0, threshold: 10.0}}\n"
    )
    assert run("configs/alone.yaml") == 0
    assert rows(save / "_alone")[0] == ["step", "epoch", "loss/train", "accuracy/train", "lr"]
    assert not (save / "_alone/ckpt/epoch-best.pth").exists()


# ── going on ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", [3, 6, 13])
def test_E31_interrupted_and_resumed_is_as_never_stopped(save, step, capsys):
    tag = f"int{step}"
    at = [f"callbacks[0].args.step={step}", "callbacks[0].args.what=SIGINT"]
    assert run("configs/plain.yaml", *at, "--tag", tag) == 130
    out = capsys.readouterr().out
    command = re.search(r"To go on: python -m tensorgrad.experiment (run .*)$", out, re.MULTILINE)[1]
    assert command == f"run configs/plain.yaml --tag {tag} --gpu cpu --resume"
    assert run(*command.split()[1:], "callbacks[0].args.step=-1") == 0
    equal_runs(save / "_plain", save / f"_plain_{tag}")


def test_E31_killed_and_resumed_is_as_never_stopped(save, finished):
    for step in (1, 9):  # before the first checkpoint, in the middle of an epoch
        words = [
            "configs/plain.yaml",
            "callbacks[0].args.what=SIGKILL",
            f"callbacks[0].args.step={step}",
            "--name",
            f"kill{step}",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "tensorgrad.experiment", "run", *words],
            env=project.ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            check=False,
            cwd=finished,
        )
        assert done.returncode == -signal.SIGKILL
        assert run("configs/plain.yaml", "--name", f"kill{step}", "--resume", "callbacks[0].args.step=-1") == 0
        equal_runs(save / "_plain", save / f"kill{step}")


def test_E31_a_damaged_checkpoint_is_passed_over(save, capsys):
    assert run("configs/plain.yaml", "epoch_max=3", "--tag", "torn") == 0
    last = save / "_plain_torn/ckpt/epoch-last.pth"
    last.unlink()
    last.write_bytes(b"PK\x03\x04 torn")
    with pytest.warns(UserWarning, match="cannot be read"):
        assert run("configs/plain.yaml", "epoch_max=4", "--tag", "torn", "--resume") == 0
    equal_runs(save / "_plain", save / "_plain_torn")


def test_E31_run_step_and_load_optimizer(save, capsys):
    path = str(save / "_plain/ckpt/epoch-2.pth")
    before = checkpoint(path)

    def state(tag, *words):
        assert run("configs/plain.yaml", *words, "--tag", tag, "--resume", path) == 0
        return checkpoint(save / f"_plain_{tag}/ckpt/epoch-last.pth"), rows(save / f"_plain_{tag}")

    same(state("on", "model.args.width=9")[0], checkpoint(save / "_plain/ckpt/epoch-last.pth"))  # its own specs
    _, table = state("from1", "run_step=false", "epoch_max=2")
    assert [line[0] for line in table[1:]] == ["6", "12"] and float(table[1][table[0].index("lr")]) == 0.05
    fresh, table = state("fresh", "load_optimizer=false", "epoch_max=3", "optimizer.args.lr=0.5")
    assert (
        fresh["epoch"] == 3
        and [line[0] for line in table[1:]] == ["18"]
        and float(table[1][table[0].index("lr")]) == 0.025
    )
    assert (
        fresh["optimizer"]["sd"]["state"][0]["step"].item() == 6
        and before["optimizer"]["sd"]["state"][0]["step"].item() == 12
    )
    kept, _ = state("kept", "run_step=false", "epoch_max=1")
    assert kept["optimizer"]["sd"]["state"][0]["step"].item() == 18
    assert (save / "_plain/ckpt/epoch-2.pth").exists()


def test_E31_a_checkpoint_of_four_keys(save):
    """As the loop of long ago saved them."""
    state = checkpoint(save / "_plain/ckpt/epoch-2.pth")
    tg.save({key: state[key] for key in ("model", "optimizer", "epoch", "config")}, "old.pth")
    assert run("configs/plain.yaml", "--tag", "old", "--resume", "old.pth") == 0
    head, *lines = rows(save / "_plain_old")
    assert [float(line[head.index("lr")]) for line in lines] == [0.025, 0.025]
    assert run("configs/plain.yaml", "scheduler=null", "--tag", "old2", "--resume", "old.pth") == 0


def test_E31_what_is_no_checkpoint_is_refused(save, capsys):
    tg.save({"epoch": 1}, "odd.pth")
    for path, said in (("odd.pth", "no checkpoint of a plain run"), ("none.pth", "No such file")):
        assert run("configs/plain.yaml", "--tag", "odd", "--resume", path) == 2
        assert said in capsys.readouterr().err
    assert not (save / "_plain_odd").exists()


def test_a_full_disk_leaves_earlier_checkpoints(save, capsys):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        assert (
            run(
                "configs/plain.yaml",
                "step_save=5",
                "callbacks[0].args.what=full",
                "callbacks[0].args.step=7",
                "--tag",
                "full",
            )
            == 1
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    error = capsys.readouterr().err
    assert "Traceback" not in error and "OSError" in error and "To go on: " in error
    folder = save / "_plain_full/ckpt"
    assert not list(folder.glob(".*")) and checkpoint(folder / "epoch-last.pth")["epoch"] == 1
    assert run("configs/plain.yaml", "step_save=5", "--tag", "full", "--resume", "callbacks[0].args.step=-1") == 0
    equal_runs(save / "_plain", save / "_plain_full")
