"""python -m tensorgrad.experiment: E18 to E22, E33, E34, E37, E42, sweeps and comparisons."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import experiment_project as project
import pytest
from experiment_project import rows, run

import tensorgrad as tg
from tensorgrad.experiment import launch, sweeps
from tensorgrad.experiment.__main__ import main
from tensorgrad.experiment.config import load
from tests.experiment.test_plain import same

pytest.importorskip("yaml")
PLAIN, TRAINER = "configs/plain.yaml", "configs/trainer.yaml"
SHORT = ["epoch_max=1", "step_save=null"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with project.inside(project.write(tmp_path_factory.mktemp("commands"))) as folder:
        yield folder


@pytest.fixture
def small(folder, tmp_path, monkeypatch):
    """Another working directory, with the project's configurations at hand."""
    monkeypatch.chdir(tmp_path)
    return str(folder / PLAIN)


# ── new ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_E42_new_writes_a_project_that_runs(tmp_path, capsys):
    target = tmp_path / "demo"
    assert main(["new", str(target)]) == 0
    assert {p.name for p in target.iterdir()} == {
        "callbacks",
        "configs",
        "datasets",
        "load",
        "losses",
        "models",
        "tests",
        "train.py",
        "train_pl.py",
        "utils.py",
        "README.md",
        ".gitignore",
    }
    assert [p.name for p in tmp_path.iterdir()] == ["demo"] and os.stat(target).st_mode & 0o777 == 0o777 & ~_umask()
    with project.inside(target):
        blocks = re.findall(r"```yaml\n(.*?)```", Path("README.md").read_text(), re.DOTALL)
        assert len(blocks) == 2
        for i, block in enumerate(blocks):
            Path(f"configs/block{i}.yaml").write_text(block)
            assert run(f"configs/block{i}.yaml") == 0
        import utils

        assert utils.time_text(60) == "1.0m"
        code = re.search(r"```python\n(.*?)```", Path("README.md").read_text(), re.DOTALL)[1].replace(
            "_mnist", "_block0"
        )
        names = {}
        exec(code, names)
        assert names["model"]({"img": tg.zeros(2, 1, 28, 28)}).shape == (2, 10)
    capsys.readouterr()


def test_E42_the_projects_own_tests_pass(tmp_path):
    assert main(["new", str(tmp_path / "demo")]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "error", "tests"],
        cwd=tmp_path / "demo",
        env=project.ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout


def _umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_new_leaves_what_is_there(tmp_path, capsys, monkeypatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file"):
        assert main(["new", str(tmp_path / name)]) == 2
        assert "not an empty directory" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["new", str(tmp_path / "empty")]) == 0 and (tmp_path / "empty/train.py").exists()
    monkeypatch.setattr(Path, "write_bytes", lambda *a: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert main(["new", str(tmp_path / "none")]) == 2
    assert "No space left on device; nothing was written" in capsys.readouterr().err
    assert {p.name for p in tmp_path.iterdir()} == {"full", "file", "empty"} and [
        p.name for p in (tmp_path / "full").iterdir()
    ] == ["mine.txt"]


def test_the_templates_are_clean(tmp_path):
    ruff = next((path for path in (Path(sys.executable).with_name("ruff"),) if path.exists()), None)
    if ruff is None:
        pytest.skip("ruff is not installed")
    assert main(["new", str(tmp_path / "demo")]) == 0
    done = subprocess.run(
        [
            ruff,
            "check",
            "--isolated",
            "--line-length",
            "160",
            "--select",
            "E,F,W",
            "--per-file-ignores",
            "__init__.py:F401",
            tmp_path / "demo",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


# ── run ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", ["plain", "trainer"])
def test_E18_E33_flags_of_the_scripts(form, folder, capsys, monkeypatch):
    from tensorgrad.experiment.commands.run import script

    monkeypatch.setattr(sys, "argv", ["train.py", "-h"])
    with pytest.raises(SystemExit) as end:
        script(form, folder)
    text = capsys.readouterr().out
    assert end.value.code == 0 and all(
        flag in text for flag in ("--config", "--name", "--tag", "--gpu", "--resume", "--overwrite")
    )
    own, other, last = (
        (PLAIN, TRAINER, "epoch_max=1") if form == "plain" else (TRAINER, PLAIN, "trainer_params.max_epochs=1")
    )
    monkeypatch.setattr(sys, "argv", ["train.py", "--config", other])
    assert script(form, folder) == 2 and "form" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["train.py", "--config", own, "--name", f"script-{form}", "--gpu", "cpu", last])
    assert script(form, folder) == 0
    config = load(f"save/script-{form}/config.yaml")
    assert (
        config["cmd_args"] == {"config": own, "name": f"script-{form}", "tag": None, "gpu": "cpu", "resume": None}
        and config["resume"] is None
    )
    assert config["seed"] == 42 and list(config)[0] == ("train_dataset" if form == "plain" else "data_module")


def test_E19_names(folder, capsys):
    request = launch.Request(Path("configs/mnist.yaml"))
    assert str(request.path) == "save/_mnist"
    assert str(launch.Request(Path("mnist.yaml"), tag="a").path) == "save/_mnist_a"
    assert str(launch.Request(Path("mnist.yaml"), name="b", tag="a").path) == "save/b_a"
    for name in ("../x", "/x", "a/../../x"):
        assert run(PLAIN, "--name", name) == 2 and "no name of a run" in capsys.readouterr().err
    assert not Path("../x").exists()


def test_E20_devices(folder, capsys):
    assert launch.devices_of("cpu")[0] == launch.devices_of("-1")[0] == launch.devices_of("")[0] == "cpu"
    if not tg.cuda.is_available():
        assert main(["run", PLAIN, *SHORT, "--tag", "gpu", "--gpu", "0,1"]) == 0
        assert "No GPU can be used here: training on the CPU." in capsys.readouterr().out
    assert main(["run", PLAIN, "--gpu", "first"]) == 2 and "numbers of GPUs" in capsys.readouterr().err


def test_E21_nothing_is_removed_without_being_asked(folder, capsys):
    assert run(PLAIN, *SHORT, "--name", "_kept") == 0
    before = {p: p.read_bytes() for p in Path("save/_kept").rglob("*") if p.is_file()}
    assert run(PLAIN, *SHORT, "--name", "_kept") == 2
    assert "--resume continues it, --overwrite removes it first" in capsys.readouterr().err
    checkpoint = "save/_kept/ckpt/epoch-last.pth"
    assert (
        run(PLAIN, "--name", "_kept", "--resume", checkpoint, "--overwrite") == 2
        and "would remove the checkpoint" in capsys.readouterr().err
    )
    assert run(PLAIN, "--name", "_kept", "--resume", "--overwrite") == 2
    assert {p: p.read_bytes() for p in Path("save/_kept").rglob("*") if p.is_file()} == before
    assert run(PLAIN, "epoch_max=2", "--name", "_kept", "--resume", checkpoint) == 0
    assert len(rows(Path("save/_kept"))) == 4
    assert run(PLAIN, *SHORT, "--name", "_kept", "--overwrite") == 0 and len(rows(Path("save/_kept"))) == 3
    Path("save/mine").mkdir()
    Path("save/mine/file.txt").write_text("mine")
    assert run(PLAIN, *SHORT, "--name", "mine", "--overwrite") == 2 and os.listdir("save/mine") == ["file.txt"]


def test_E22_the_source_is_kept(folder):
    assert run(PLAIN, *SHORT, "--tag", "src") == 0
    names = {p.name for p in Path("save/_plain_src/src").iterdir()}
    assert {"train.py", "models", "configs"} <= names and not names & {"save", "load"}


def test_all_mistakes_at_once(folder, capsys):
    changes = [
        "model.name=tinny",
        "optimizer.args.lt=1",
        "epoch_max=0",
        "foo=1",
        "train_dataset.batch_sise=3",
        "loss=3",
        "seed=x",
        "epoch_val=soon",
        "scheduler.args.gamma=big",
        "val_dataset.batch_size=0",
    ]
    assert run(PLAIN, *changes, "--tag", "wrong") == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert (
        len(lines) == 10
        and lines[0].startswith("train_dataset.batch_sise: unknown key; nearest: batch_size")
        and not Path("save/_plain_wrong").exists()
    )
    assert "model.name: no model is called 'tinny'; nearest: tiny" in "\n".join(lines)
    for words, said in ((["none.yaml"], "none.yaml: No such file"), ([PLAIN, "--tag", "../../x"], "no name of a run")):
        assert run(*words) == 2 and said in capsys.readouterr().err


def test_no_config_names_a_module(folder, capsys):
    """Names are looked up in registries; packages have fixed names."""
    assert run(PLAIN, "model.name=os.system", "--tag", "evil") == 2
    assert "no model is called 'os.system'" in capsys.readouterr().err


def test_the_projects_code_may_be_wrong(tmp_path, capsys):
    project.write(tmp_path)
    (tmp_path / "losses/__init__.py").write_text("import no_such_module_anywhere\n")
    with project.inside(tmp_path):
        assert run(PLAIN) == 2
    assert "no_such_module_anywhere" in capsys.readouterr().err and not (tmp_path / "save").exists()


def test_a_failed_training_is_told(folder, capsys):
    assert run(PLAIN, "callbacks[0].args.step=8", "--tag", "fails") == 1
    told = capsys.readouterr()
    assert "RuntimeError: this went wrong" in told.err and "To go on: python -m tensorgrad.experiment run" in told.err
    assert json.loads(Path("save/_plain_fails/run.json").read_text())["status"] == "failed"


def test_save_may_be_unwritable(small, capsys):
    Path("save").write_text("a file")
    assert run(small, *SHORT) == 2
    error = capsys.readouterr().err
    assert "save" in error and "Traceback" not in error and Path("save").read_text() == "a file"


def test_going_on_uses_the_runs_own_configuration(folder, capsys):
    assert run(PLAIN, "epoch_max=1", "model.args.width=7", "--tag", "own") == 0
    capsys.readouterr()
    assert run(PLAIN, "epoch_max=2", "--tag", "own", "--resume") == 0
    out = capsys.readouterr().out
    assert "model.args.width=6; the run goes on with 7" in out and "epoch 2/2" in out
    assert run(PLAIN, *SHORT, "--tag", "nothing-yet", "--resume") == 0
    assert run(PLAIN, "--tag", "own", "--resume", "epoch_max=3") == 0 and "epoch 3/3" in capsys.readouterr().out


def test_E34_E37_the_trainers_form_goes_on_exactly(folder, capsys):
    assert run(TRAINER) == 0
    whole = Path("save/_trainer")
    assert {"last.ckpt"} < {p.name for p in (whole / "ckpt").iterdir()} and (
        whole / "default/version_0/hparams.yaml"
    ).exists()
    for step, what in ((5, "SIGINT"), (9, "raise")):
        name = f"t{step}"
        assert run(TRAINER, f"callbacks[0].args.step={step}", f"callbacks[0].args.what={what}", "--name", name) == (
            130 if what == "SIGINT" else 1
        )
        assert run(TRAINER, "--name", name, "--resume", "callbacks[0].args.step=-1") == 0
        one, two = (tg.load(path / "ckpt/last.ckpt", weights_only=True) for path in (whole, Path("save", name)))
        same(one["parts"], two["parts"])
        same(one["streams"], two["streams"])
        assert rows(whole) == rows(Path("save", name))
    assert run(TRAINER, "trainer_params.max_epochs=4", "--tag", "more", "--resume", "save/_trainer") == 0
    assert "Epoch 4/4" in capsys.readouterr().out


# ── sweep ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def states(name):
    return {run["name"]: run["status"] for run in json.loads(Path("save", name, "sweep.json").read_text())["runs"]}


def test_a_sweep_goes_on_after_a_failure(folder, capfd):
    words = [
        "sweep",
        PLAIN,
        *SHORT,
        "callbacks[0].args.what=SIGKILL",
        "--grid",
        "callbacks[0].args.step=-1,3",
        "model.args.width=4",
        "--name",
        "s",
        "--jobs",
        "2",
        "--gpu",
        "cpu",
    ]
    assert main(words) == 1
    out, err = capfd.readouterr()
    assert states("s") == {"0-step=-1,width=4": "finished", "1-step=3,width=4": "failed"}
    assert "1-step=3,width=4 failed with exit code -9" in out and "train dataset: size=48" in out and "--retry" in err
    assert re.search(r"^0-step=-1,width=4 +finished", out, re.MULTILINE)
    before = os.stat("save/s/0-step=-1,width=4/run.json").st_mtime_ns
    assert main(words) == 1 and states("s")["1-step=3,width=4"] == "failed"  # once is enough without --retry
    assert os.stat("save/s/0-step=-1,width=4/run.json").st_mtime_ns == before
    assert main([*words[:-4], "--grid", "model.args.width=4", "--name", "s"]) == 2  # another plan
    assert "another plan" in capfd.readouterr().err
    assert main(["show", "save/s"]) == 0
    out = capfd.readouterr().out
    assert "stopped" in out and "0-step=-1" in out


def test_an_interrupted_sweep_goes_on(folder, capfd):
    """A child tells its parent to stop, which then stops the child."""
    once = str(folder / "once")
    words = [
        "sweep",
        PLAIN,
        "epoch_max=2",
        "callbacks[0].args.what=parent-SIGINT",
        "callbacks[0].args.step=5",
        f"callbacks[0].args.once={once}",
        "--grid",
        "model.args.width=4,5",
        "--name",
        "i",
        "--gpu",
        "cpu",
    ]
    assert main(words) == 130
    assert "To go on: python -m tensorgrad.experiment sweep --resume i" in capfd.readouterr().err
    assert sorted(states("i").values()) == ["interrupted", "waiting"]
    assert main(["show", "save/i"]) == 0
    out = capfd.readouterr().out
    assert "waiting" in out and "interrupted" in out
    assert main(["sweep", "--resume", "i", "--gpu", "cpu"]) == 0
    assert set(states("i").values()) == {"finished"}
    assert "resumed" in Path("save/i/0-width=4/log.txt").read_text() and len(rows(Path("save/i/0-width=4"))) == 4


def test_a_killed_sweep_goes_on(folder, capfd):
    """A child kills its parent; it finishes its step, saves and ends."""
    once = str(folder / "killed")
    words = [
        PLAIN,
        "epoch_max=400",
        "callbacks[0].args.what=parent-SIGKILL",
        "callbacks[0].args.step=5",
        f"callbacks[0].args.once={once}",
        "--grid",
        "model.args.width=4",
        "--name",
        "k",
        "--gpu",
        "cpu",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tensorgrad.experiment", "sweep", *words],
        env=project.ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL and set(states("k").values()) == {"running"}
    sweep = sweeps.Sweep.load(Path("save/k"))
    left = sweep.look(False)
    assert [run["status"] for run in left] == ["interrupted"] and "Interrupted after step" in Path(
        "save/k/0-width=4/log.txt"
    ).read_text()


def test_plans_of_sweeps(folder, capsys):
    assert len(sweeps.grid(["a=1,2", "b=x,y,z"])) == 6
    drawn = sweeps.draws(50, ["lr=1e-4:1e-1:log", "width=2:4", "p=0:0.5", "kind=a,b"], seed=3)
    assert drawn == sweeps.draws(50, ["lr=1e-4:1e-1:log", "width=2:4", "p=0:0.5", "kind=a,b"], seed=3)
    assert all(
        1e-4 <= one["lr"] <= 1e-1 and one["width"] in (2, 3, 4) and 0 <= one["p"] <= 0.5 and one["kind"] in "ab"
        for one in drawn
    )
    assert {one["width"] for one in drawn} == {2, 3, 4} and 15 < sum(one["lr"] < 10**-2.5 for one in drawn) < 35
    assert main(["sweep", PLAIN, "--grid", "model.args.width=4,x", "model.args.with=1", "--name", "w"]) == 2
    assert set(capsys.readouterr().err.splitlines()) == {
        "model.args.with: unknown key; nearest: width; allowed: width",
        "model.args.width: expected int, not 'x'",
    }
    for wrong in (
        ["--grid", "a"],
        ["--random", "2", "lr=0:1:log"],
        ["--random", "x", "lr=0:1"],
        ["--random", "3", "lr=b:1"],
        ["--resume", "none"],
    ):
        config = [] if wrong[0] == "--resume" else [PLAIN]
        assert main(["sweep", *config, *wrong, "--name", "w"]) == 2
    with pytest.raises(SystemExit):
        main(["sweep", PLAIN])
    assert not Path("save/w").exists()


def test_a_sweep_has_no_more_threads_than_processors(folder, monkeypatch):
    monkeypatch.setattr(sweeps, "cores", lambda: 6)
    for jobs, at_a_time, threads in ((1, 1, 6), (4, 4, 1), (3, 3, 2), (99, 6, 1)):
        pool = sweeps.Pool(sweeps.Sweep(Path("save/x"), {"runs": []}), jobs, "cpu")
        assert (pool.jobs, pool.threads) == (at_a_time, threads)


# ── show ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_show_takes_what_there_is(folder, tmp_path, capsys):
    for name, change in (("a", "optimizer.args.lr=0.1"), ("b", "optimizer.args.lr=0.01")):
        assert run(PLAIN, *SHORT, change, "--name", f"show/{name}") == 0
    capsys.readouterr()
    assert main(["show", "save/show"]) == 0
    out = capsys.readouterr().out
    assert "optimizer.args.lr" in out and "cmd_args" not in out and re.search(r"^a +finished", out, re.MULTILINE)
    assert main(["show", "save/show", "--metric", "loss/val", "--html", str(tmp_path / "page.html")]) == 0
    out = capsys.readouterr().out
    assert "accuracy" not in out and "page.html" in out and "<!DOCTYPE html>" in (tmp_path / "page.html").read_text()
    Path("save/show/a/run.json").write_bytes(b"\xff{")
    Path("save/show/b/metrics.csv").write_bytes(b"")
    Path("save/show/b/config.yaml").unlink()
    Path("save/show/b/config.yaml").mkdir()
    assert main(["show", "save/show"]) == 0
    out = capsys.readouterr().out
    assert (
        "a: run.json cannot be read" in out
        and "b: config cannot be read" in out
        and "b: metrics.csv cannot be read" in out
    )
    assert main(["show", "save/show", "--metric", "los/val"]) == 2 and "nearest: loss/val" in capsys.readouterr().err
    assert main(["show", "nowhere"]) == 2 and "nowhere: There is no such directory" in capsys.readouterr().err


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_usage(capsys):
    assert main([]) == 2
    error = capsys.readouterr().err
    assert all(name in error for name in ("new", "run", "sweep", "show"))
    assert main(["rum"]) == 2 and "the nearest is run" in capsys.readouterr().err
    for name in ("new", "run", "sweep", "show"):
        with pytest.raises(SystemExit) as end:
            main([name, "--help"])
        assert end.value.code == 0 and f"tensorgrad.experiment {name}" in capsys.readouterr().out


def test_the_command_loads_little():
    code = (
        "import sys; from tensorgrad.experiment.__main__ import main; main(['--help']);"
        "print(sorted(n for n in sys.modules if n.startswith('tensorgrad.experiment')), 'yaml' in sys.modules, "
        "'tensorgrad.optim' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=project.ENVIRONMENT, capture_output=True, text=True, check=True
    )
    loaded = done.stdout.splitlines()[-1]
    assert "trainer" not in loaded and "plain" not in loaded and loaded.endswith("False False")


@pytest.mark.parametrize("change", [{"name": "../x"}, {"settings": ["--overwrite"]}, {"status": 3}, {"settings": 3}])
def test_a_damaged_plan_is_refused(change, small, capsys):
    run = {"name": "0", "settings": ["seed=1"], "status": "waiting"} | change
    Path("save/d").mkdir(parents=True)
    Path("save/d/sweep.json").write_text(json.dumps({"format": 1, "runs": [run]}))
    assert main(["sweep", "--resume", "d"]) == 2
    assert "sweep.json cannot be read" in capsys.readouterr().err
