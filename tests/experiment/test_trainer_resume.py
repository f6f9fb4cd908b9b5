"""A fit that is broken off at any moment and resumed from its last checkpoint ends bit-identical to an uninterrupted
one."""

import os
import random
from pathlib import Path

import experiment_parts as parts
import pytest
from experiment_parts import Line, loader, rows
from killing import Kill, finish, moments
from support import cpu_only

import tensorgrad as torch
from tensorgrad.experiment import Callback, Run, Trainer, streams
from tensorgrad.experiment.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from tensorgrad.experiment.hooks import ModuleHooks

pytestmark = cpu_only


class Broken(Exception):
    """As if the process were killed: nothing is saved any more."""


class Breaks(Callback):
    """Raises at the `at`-th call of any hook, and counts them."""

    def __init__(self, at=None):
        self.at, self.count = at, 0

    def _note(self, *args):
        self.count += 1
        if self.count == self.at:
            raise Broken


for _name in dir(ModuleHooks):
    if _name.startswith("on_") and hasattr(Callback, _name):
        setattr(Breaks, _name, Breaks._note)


class Last(Breaks):
    """Raises after all other callbacks."""

    order = 3


class Noisy(Line):
    """Draws from all streams, in training and in validation."""

    interval = "epoch"

    def __init__(self):
        super().__init__(dropout=0.3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.seen = 0

    def forward(self, batch):
        return self.line(self.dropout(self.norm(batch[0])))

    def training_step(self, batch, batch_idx):
        self.log("noise", random.random() + float(torch.rand(1)), on_step=True, on_epoch=True)
        self.log("least", float(batch[0].sum()), on_step=False, on_epoch=True, reduce_fx="min")
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        self.log("val_noise", torch.rand(()))
        super().validation_step(batch, batch_idx)

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.seen += 1

    def on_save_checkpoint(self, checkpoint):
        checkpoint["seen"] = self.seen

    def on_load_checkpoint(self, checkpoint):
        self.seen = checkpoint["seen"]

    def training_epoch_end(self, outputs):
        self.log("summed", sum(float(output) for output in outputs))

    def configure_optimizers(self):
        one = torch.optim.Adam(self.parameters(), lr=0.05)
        return {
            "optimizer": one,
            "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.ExponentialLR(one, 0.9), "interval": self.interval},
        }


class Iterated:
    """Yields the batches of a loader, without a state of its own."""

    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        return iter(list(self.inner))


CONFIGURATIONS = {
    "plain": {},
    "within epochs": {"val_check_interval": 0.5, "accumulate_grad_batches": 2},
    "limits": {"limit_train_batches": 4, "limit_val_batches": 2, "val_check_interval": 2},
    "across epochs": {"val_check_interval": 4, "check_val_every_n_epoch": None},
    "rarely": {"check_val_every_n_epoch": 2, "log_every_n_steps": 4, "max_steps": 15},
}


def fitted(path, options, at=None, last=False, kind=None, resume=False):
    """Run a fit: return (module, trainer, streams, count of hooks, callbacks), or None if it was broken off."""
    torch.manual_seed(3)
    random.seed(3)
    module = Noisy()
    module.interval = "step" if "limit_train_batches" in options else "epoch"
    train, validation = (
        loader(generator=torch.Generator().manual_seed(5)),
        loader(generator=torch.Generator().manual_seed(6)),
    )
    if kind == "iterated":
        train, validation = Iterated(loader()), Iterated(loader(shuffle=False))
    elif kind == "shared":
        validation = train = loader()
    elif kind == "global":
        train, validation = loader(), loader(shuffle=False)
    breaks = (Last if last else Breaks)(at)
    save = ModelCheckpoint(monitor="val_loss", save_top_k=2, every_n_train_steps=2, every_n_epochs=1)
    stop = EarlyStopping("val_loss", patience=4, min_delta=0.01, strict=False)
    with Run(path, resume=resume, events=False, quiet=True) as run:
        made = Trainer(
            **{
                "max_epochs": 3,
                "run": run,
                "log_every_n_steps": 2,
                "accelerator": "cpu",
                "callbacks": [breaks, save, stop, LearningRateMonitor()],
            }
            | options
        )
        try:
            made.fit(module, train, validation, ckpt_path="last" if resume else None)
        except Broken:
            return None
        return module, made, streams.state(), breaks.count, save, stop


def compared(path, whole, resumed):
    for one, other in zip(whole[:1], resumed[:1]):
        assert parts.equal(one.state_dict(), other.state_dict()) and one.seen == other.seen
    assert parts.equal(whole[1].optimizers[0].state_dict(), resumed[1].optimizers[0].state_dict())
    assert parts.equal(
        [one.state_dict() for one in whole[1].lr_schedulers], [one.state_dict() for one in resumed[1].lr_schedulers]
    )
    assert parts.equal(whole[2], resumed[2])
    assert (whole[1].global_step, whole[1].current_epoch) == (resumed[1].global_step, resumed[1].current_epoch)
    assert whole[4].state_dict() == resumed[4].state_dict() and whole[5].state_dict() == resumed[5].state_dict()
    assert sorted(p.name for p in (path / "whole" / "ckpt").iterdir()) == sorted(
        p.name for p in (path / "run" / "ckpt").iterdir()
    )
    assert rows(path / "whole") == rows(path / "run")
    assert whole[1].logged == resumed[1].logged and whole[1].known == resumed[1].known


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_E31_E37_a_fit_that_is_broken_off_ends_as_the_whole_one(tmp_path, name):
    options = CONFIGURATIONS[name]
    chosen, whole = random.Random(name), fitted(tmp_path / "whole", options)
    assert whole[0].seen >= 8
    broken = 0
    for i in range(2):
        path = tmp_path / str(i)
        path.mkdir()
        (path / "whole").symlink_to(tmp_path / "whole")
        at = chosen.randrange(10, whole[3])
        while (found := fitted(path / "run", options, at, last=i % 2, resume=(path / "run").exists())) is None:
            at, broken = chosen.randrange(10, whole[3]), broken + 1
        compared(path, whole, found)
    assert broken


@pytest.mark.parametrize("kind", ["iterated", "shared", "global"])
def test_E31_loaders_of_any_kind_go_on_in_an_epoch(tmp_path, kind):
    options = {"val_check_interval": 3}
    whole = fitted(tmp_path / "whole", options, kind=kind)
    assert fitted(tmp_path / "run", options, whole[3] * 2 // 3, kind=kind) is None
    compared(tmp_path, whole, fitted(tmp_path / "run", options, kind=kind, resume=True))


def test_E31_hooks_at_the_start_find_what_was_restored_and_cannot_disturb_it(tmp_path):
    class Disturbs(Callback):
        counted = 0

        def on_train_start(self, trainer, module):
            torch.rand(3)
            self.counted += 1
            self.found = trainer.global_step, module.line.weight.clone()
            with torch.no_grad():
                module.line.weight.zero_()

        on_train_epoch_start = on_train_start

        def state_dict(self):
            return {"counted": self.counted}

        def load_state_dict(self, state):
            self.counted = state["counted"]

    module = Line()
    made = Trainer(
        max_epochs=1,
        default_root_dir=tmp_path,
        callbacks=[Disturbs(), ModelCheckpoint(every_n_train_steps=4)],
        accelerator="cpu",
    )
    made.fit(module, loader())
    again, disturbs = Line(), Disturbs()
    resumed = Trainer(
        max_epochs=1, default_root_dir=tmp_path, callbacks=disturbs, limit_train_batches=5, accelerator="cpu"
    )
    resumed.fit(again, loader(), ckpt_path=tmp_path / "ckpt" / "epoch=0-step=4.ckpt")
    assert (
        disturbs.counted == 2
        and disturbs.found[0] == 4
        and resumed.global_step == 5
        and bool(again.line.weight.abs().sum() > 0.01)
    )


def test_E37_longer_trainings_go_on_from_shorter_ones(tmp_path):
    torch.manual_seed(1)
    whole = Line()
    Trainer(max_epochs=5, accelerator="cpu").fit(whole, loader())
    torch.manual_seed(1)
    first = Line()
    Trainer(max_epochs=2, default_root_dir=tmp_path, accelerator="cpu").fit(first, loader())
    for options in ({"max_steps": 15}, {"max_epochs": 5}):
        torch.manual_seed(7)
        last = Line()
        made = Trainer(default_root_dir=tmp_path, accelerator="cpu", **options)
        made.fit(last, loader(), ckpt_path="last")
    assert parts.equal(whole.state_dict(), last.state_dict()) and made.current_epoch == 5


def test_E37_a_damaged_last_checkpoint_is_passed_over(tmp_path):
    Trainer(max_epochs=2, default_root_dir=tmp_path, callbacks=ModelCheckpoint(save_top_k=-1), accelerator="cpu").fit(
        Line(), loader()
    )
    last = tmp_path / "ckpt" / "last.ckpt"
    last.unlink()
    last.write_bytes(b"PK" + bytes(100))
    made = Trainer(max_epochs=3, default_root_dir=tmp_path, accelerator="cpu")
    with pytest.warns(UserWarning, match="last.ckpt.*cannot be read"):
        made.fit(Line(), loader(), ckpt_path="last")
    assert made.ckpt_path.endswith("epoch=1-step=12.ckpt") and made.global_step == 18
    empty = Trainer(max_epochs=1, default_root_dir=tmp_path / "empty", accelerator="cpu")
    empty.fit(Line(), loader(), ckpt_path="last")
    assert empty.global_step == 6 and empty.ckpt_path is None
    with pytest.raises(FileNotFoundError):
        empty.fit(Line(), loader(), ckpt_path=tmp_path / "none.ckpt")


@pytest.mark.skipif(os.name != "posix", reason="processes are killed by SIGKILL")
@pytest.mark.parametrize(
    "kind, workers, kills",
    [
        ("classifier", 2, [Kill(3, 0.01), Kill(4, call="replace"), *moments(7, 4, 3)]),
        ("gan", 0, [Kill(5, call="replaced"), *moments(8, 5, 3)]),
    ],
)
def test_E31_a_killed_fit_ends_as_the_whole_one(tmp_path, kind, workers, kills):
    """Shuffling, dropout, workers that draw, validations within epochs, two optimizers: killed between steps and in the
    middle of saves."""
    program = Path(__file__).parent / "killed" / "fit.py"
    expected = finish(program, tmp_path / "whole", kind, workers)
    ended = finish(program, tmp_path / "killed", kind, workers, kills=kills)
    assert ended.killed == len(kills) and ended.digest == expected.digest
