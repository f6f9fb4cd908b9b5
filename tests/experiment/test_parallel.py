"""Trainers in several processes: they end as one process with batches of all of them, and files are the first one's."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import experiment_parts as parts
import pytest
from experiment_parts import Line, loader, rows
from support import COMMON, ROOT, cpu_only

import tensorgrad as torch
from tensorgrad.experiment import Run, Trainer
from tensorgrad.experiment.__main__ import main
from tensorgrad.experiment.callbacks import EarlyStopping, ModelCheckpoint
from tensorgrad.multiprocessing import ProcessRaisedException

pytestmark = cpu_only


class Shared(Line):
    """Logs values of each process, and fails in one of them on request."""

    def __init__(self, fails=-1, interrupts=-1):
        super().__init__(dropout=0.0)
        self.fails, self.interrupts = fails, interrupts

    def training_step(self, batch, batch_idx):
        rank = self.global_rank
        if rank == 1 and self.fails == batch_idx:
            raise ArithmeticError("the second process fails")
        if rank == 0 and self.interrupts == self.global_step:
            os.kill(os.getpid(), signal.SIGINT)
        for name in ("mean", "sum", "min", "max"):
            self.log(name, float(rank + 1), on_step=False, on_epoch=True, reduce_fx=name, sync_dist=True)
        self.log("own", float(rank))
        loss = self.loss(batch)
        self.log("loss", loss, on_step=True, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.loss(batch), sync_dist=True)


def fitted(path, devices, batch_size, resume=False, **told):
    torch.manual_seed(0)
    module = Shared(**told)
    with Run(path, resume=resume, events=False, quiet=True) as run:
        callbacks = [
            EarlyStopping("val_loss", patience=9),
            ModelCheckpoint(monitor="own", every_n_train_steps=2, save_top_k=-1),
        ]
        made = Trainer(
            max_epochs=2,
            run=run,
            devices=devices,
            strategy="ddp_spawn",
            accelerator="cpu",
            log_every_n_steps=2,
            callbacks=callbacks,
        )
        made.fit(module, loader(batch_size, shuffle=False), loader(batch_size), ckpt_path="last" if resume else None)
    return module, made


def test_E38_two_processes_are_one_with_twice_the_batch(tmp_path):
    # PyTorch's loader leaves a handler of its own where a test has used it
    before = signal.getsignal(signal.SIGCHLD)
    two, made = fitted(tmp_path / "two", 2, 4)
    one, alone = fitted(tmp_path / "one", 1, 8)
    for a, b in zip(two.parameters(), one.parameters()):
        assert torch.allclose(a, b, atol=1e-6)
    assert (made.global_step, made.world_size, made.is_global_zero) == (alone.global_step, 1, True)
    found, expected = rows(tmp_path / "two"), rows(tmp_path / "one")
    assert [list(row) for row in found] == [list(row) for row in expected]
    for name in ("loss_epoch", "val_loss", "loss_step"):
        pairs = [(row[name], other[name]) for row, other in zip(found, expected) if name in row]
        assert pairs and all(float(a) == pytest.approx(float(b), rel=1e-5) for a, b in pairs)
    last = found[-1]
    assert [float(last[name]) for name in ("mean", "sum", "min", "max")] == [1.5, 9.0, 1.0, 2.0] and found[0][
        "own"
    ] == "0.0"
    assert sorted(p.name for p in (tmp_path / "two" / "ckpt").iterdir()) == [
        *(f"epoch={s // 4}-step={s}-own=0.0000.ckpt" for s in (2, 4, 6)),
        "last.ckpt",
    ]
    state = torch.load(tmp_path / "two" / "ckpt" / "last.ckpt", weights_only=True)
    assert len(state["ranks"]) == 2 and signal.getsignal(signal.SIGCHLD) == before


def test_E37_E38_processes_are_interrupted_together_and_go_on(tmp_path):
    whole, _ = fitted(tmp_path / "whole", 2, 4)
    _, made = fitted(tmp_path / "run", 2, 4, interrupts=3)
    assert made.interrupted and made.global_step == 4
    module, made = fitted(tmp_path / "run", 2, 4, resume=True)
    assert (
        made.global_step == 6
        and parts.equal(whole.state_dict(), module.state_dict())
        and rows(tmp_path / "whole") == rows(tmp_path / "run")
    )


def test_E38_an_error_in_another_process_is_raised_at_once(tmp_path):
    before = torch.get_num_threads()
    with pytest.raises(ProcessRaisedException, match="ArithmeticError: the second process fails"):
        fitted(tmp_path / "run", 2, 4, fails=2)
    assert torch.get_num_threads() == before and not torch.distributed.is_initialized()


def test_E38_dp_on_a_cpu_is_one_process():
    torch.manual_seed(0)
    made = Trainer(max_epochs=1, devices=2, strategy="dp", accelerator="cpu")
    made.fit(Line(), loader())
    assert made.global_step == 6 and made.world_size == 1


GPUS = """
import sys
sys.path.insert(0, sys.argv[1])
import tensorgrad as torch
from experiment_parts import Line, loader
from tensorgrad.experiment import Trainer
for options in ({}, {"devices": 2, "strategy": "dp"}, {"devices": [1]}):
    torch.manual_seed(0)
    trainer, module = Trainer(max_epochs=2, accelerator="gpu", **options), Line()
    trainer.fit(module, loader(8, shuffle=False), loader(8))
    metrics = [float(trainer.callback_metrics[name]) for name in ("loss", "val_loss")]
    values = [*module.line.weight.flatten().tolist(), *metrics]
    print(module.device, trainer.global_step, [round(x, 4) for x in values])
"""


def test_E20_E38_gpus_and_replicas_end_alike():
    environment = os.environ | {"TENSORGRAD_SIMULATED_CUDA": "2", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", GPUS, str(COMMON)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    lines = ran.stdout.splitlines()
    assert [line.split(maxsplit=1)[0] for line in lines] == ["cuda:0", "cuda:0", "cuda:1"], ran.stderr
    assert len({line.split(maxsplit=1)[1] for line in lines}) == 1, lines


@pytest.fixture
def project(tmp_path):
    import experiment_project

    return experiment_project.write(tmp_path)


def launched(project, *command):
    """How `experiment run` ends under a launcher of two processes."""
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    words = [*command, "-m", "tensorgrad.experiment", "run", "configs/trainer.yaml", "--gpu", "cpu"]
    return lambda *more: subprocess.run(
        [*words, *more], cwd=project, env=environment, capture_output=True, text=True, timeout=120
    )


def test_E38_launched_processes_train_together_and_one_writes(project):
    """This package's launcher and MPI's produce equal rows; an interrupted training prints how to resume."""
    pytest.importorskip("yaml")
    run = launched(project, sys.executable, "-W", "error", "-m", "tensorgrad.distributed.run", "--nproc-per-node", "2")
    done = run("--name", "whole")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    lines = done.stdout.splitlines()
    assert all(line.startswith("[rank0]: ") for line in lines) and lines[-1] == "[rank0]: The run is in save/whole."
    state = torch.load(project / "save/whole/ckpt/last.ckpt", weights_only=True)
    assert len(state["ranks"]) == 2 and state["global_step"] == 9
    mpiexec = launcher_of_mpi()
    run = launched(project, mpiexec, "-n", "2", sys.executable, "-W", "error")
    done = run("--name", "part", "callbacks=[{name: at-step, args: {step: 4, what: SIGINT}}]")
    assert done.returncode == 130, done.stderr
    assert "Interrupted after step 4" in done.stdout and done.stdout.count("Epoch 1/3 ") == 1
    assert rows(project / "save/part") == rows(project / "save/whole")[: len(rows(project / "save/part"))]


def test_E38_processes_begin_if_all_can(project, monkeypatch, capsys):
    from tensorgrad.experiment import launch, parallel

    class Group(parallel.Alone):
        """A group of two processes that behave alike; only this one exists."""

        world, told = 2, None

        def first(self, value):
            return self.told or value

    monkeypatch.chdir(project)
    request = launch.Request(Path("configs/trainer.yaml"), ["trainer_params.max_epochs=x"])
    for rank, said in ((0, 1), (1, 0)):
        with monkeypatch.context() as several:
            several.setenv("RANK", str(rank))
            several.setenv("WORLD_SIZE", "2")
            assert main(["sweep", "configs/trainer.yaml", "--grid", "seed=1,2"]) == 2
            assert capsys.readouterr().err.count("A sweep starts processes of its own") == said
        group = Group()
        group.rank, group.told = rank, "told" if rank else None
        assert launch._together(request, group) == 2
        assert capsys.readouterr().err.count("max_epochs") == said


def launcher_of_mpi():
    from tensorgrad.layers.manager import _mpiexec

    pytest.importorskip("mpi4py")
    try:
        return _mpiexec()
    except RuntimeError as error:
        pytest.skip(str(error))


def test_E38_who_this_process_is(monkeypatch):
    from tensorgrad.experiment.parallel import launched, place

    for name in os.environ:
        if name.startswith(("PMI_", "OMPI_", "SLURM_", "MPI_")) or name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
            monkeypatch.delenv(name)
    assert not launched() and place() == (0, 0)
    for variables, expected in (
        ({"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}, (3, 1)),
        ({"RANK": "5", "WORLD_SIZE": "8"}, (5, 5)),
        ({"LOCAL_RANK": "2"}, (5, 2)),
    ):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert launched() and place() == expected


def test_E38_rank_zero_only(monkeypatch):
    from tensorgrad.experiment.parallel import rank_zero_only

    assert rank_zero_only(abs)(-2) == 2
    monkeypatch.setenv("RANK", "1")
    assert rank_zero_only(abs)(-2) is None and rank_zero_only(abs).__name__ == "abs"


def test_E38_the_backend_has_one_place(monkeypatch):
    from tensorgrad import distributed

    asked = []
    monkeypatch.setattr(distributed, "init_process_group", lambda *args, **options: asked.append((args, options)))
    monkeypatch.setattr(distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 3)
    from tensorgrad.experiment.parallel import joined

    for backend in ("mpi", None):
        with joined(backend, torch.device("cpu")) as group:
            assert (group.rank, group.world) == (1, 3)
    assert asked == [(("mpi",), {}), ((None,), {})]
