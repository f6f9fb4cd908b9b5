"""Trainer: its options, when a fit ends, validates, and how much of the data it takes."""

import signal

import experiment_parts as parts
import pytest
from experiment_parts import Line, loader, rows
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.experiment import Callback, Run, Trainer

pytestmark = cpu_only


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def trainer(**options):
    return Trainer(**{"max_epochs": 1, "accelerator": "cpu"} | options)


def test_E34_max_steps_max_time_and_min_epochs():
    made = trainer(max_epochs=None, max_steps=8)
    made.fit(Line(), loader(), loader())
    assert (
        (made.global_step, made.current_epoch) == (8, 1)
        and made.max_epochs == -1
        and "val_loss" in made.callback_metrics
    )
    made = trainer(max_epochs=-1, max_time={"seconds": 0})
    made.fit(Line(), loader())
    assert made.global_step == 0
    assert Trainer().max_epochs == 1000

    class Stops(Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            trainer.should_stop = True

    for least, steps in (({}, 1), ({"min_steps": 4}, 4), ({"min_epochs": 2}, 12)):
        made = trainer(max_epochs=5, callbacks=[Stops()], **least)
        made.fit(Line(), loader())
        assert made.global_step == steps


@pytest.mark.parametrize(
    "options, count",
    [
        ({"limit_train_batches": 2}, 2),
        ({"limit_train_batches": 0.5}, 3),
        ({"limit_train_batches": 0}, 0),
        ({"limit_train_batches": 100}, 6),
        ({"overfit_batches": 2}, 2),
        ({"fast_dev_run": True}, 1),
        ({"fast_dev_run": 3}, 3),
    ],
)
def test_E34_limits(options, count, tmp_path):
    with Run(tmp_path / "run", events=False, quiet=True) as run:
        made = trainer(run=run, **options)
        seen = []

        class Seen(Line):
            def training_step(self, batch, batch_idx):
                seen.append(batch[0])
                return super().training_step(batch, batch_idx)

            def validation_step(self, batch, batch_idx):
                super().validation_step(batch, batch_idx)
                seen.append(batch[0])

        made.fit(Seen(), loader(), loader(2))
    assert made.global_step == count
    if "overfit_batches" in options:
        assert parts.equal(seen[:2], seen[2:]) and parts.equal(
            seen[:2], [x for x, _ in list(loader(shuffle=False))[:2]]
        )
    assert len(rows(tmp_path / "run")) == (0 if "fast_dev_run" in options else 1)
    assert (tmp_path / "run" / "ckpt" / "last.ckpt").exists() == ("fast_dev_run" not in options)


@pytest.mark.parametrize(
    "options, at",
    [
        ({}, [6, 12]),
        ({"val_check_interval": 0.5}, [3, 6, 9, 12]),
        ({"val_check_interval": 4}, [4, 10]),
        ({"check_val_every_n_epoch": 2}, [12]),
        ({"val_check_interval": 5, "check_val_every_n_epoch": None}, [5, 10]),
    ],
)
def test_E32_when_validations_come(options, at):
    seen = []

    class Seen(Line):
        def on_validation_start(self):
            seen.append(self.global_step)
            assert not self.training

        def on_validation_end(self):
            assert self.trainer.state.stage == "validate" and not self.training

    module = Seen()
    module.dropout.eval()
    trainer(max_epochs=2, **options).fit(module, loader(), loader())
    assert seen == at and module.training and not module.dropout.training


def test_E34_options_that_are_wrong():
    for options, kind, message in (
        ({"max_epoch": 3}, TypeError, "'max_epoch'; the nearest is 'max_epochs'"),
        ({"precision": "8"}, ValueError, "bf16-mixed"),
        ({"strategy": "fsdp"}, ValueError, "ddp_spawn"),
        ({"limit_val_batches": 1.5}, ValueError, "0.0 to 1.0"),
        ({"max_epochs": "3"}, TypeError, "max_epochs"),
        ({"accumulate_grad_batches": 0}, ValueError, "at least 1"),
        ({"gradient_clip_algorithm": "abs"}, ValueError, "'value'"),
        ({"max_time": "1h"}, ValueError, "DD:HH:MM:SS"),
        ({"accelerator": "tpu"}, ValueError, "gpu"),
        ({"callbacks": [1]}, TypeError, "Callback"),
        ({"devices": 0}, ValueError, "devices"),
    ):
        with pytest.raises(kind, match=message):
            Trainer(**options)
    for module, message in ((nn.Linear(1, 1), "Linear, a plain nn.Module"), (3, "int"), (None, "None")):
        with pytest.raises(TypeError, match=message):
            Trainer().fit(module, loader())
    with pytest.raises(ValueError, match="train_dataloader"):
        Trainer().fit(Line())
    with pytest.raises(TypeError, match="cannot be iterated"):
        Trainer().fit(Line(), 3)
    with pytest.raises(ValueError, match="takes at least"):
        trainer(limit_train_batches=0.01).fit(Line(), loader())


def test_E38_process_settings_are_as_before():
    class Seen(Line):
        def training_step(self, batch, batch_idx):
            assert torch.are_deterministic_algorithms_enabled() and torch.is_anomaly_enabled()
            return super().training_step(batch, batch_idx)

    before = signal.getsignal(signal.SIGINT)
    with torch.no_grad():
        made = trainer(deterministic=True, detect_anomaly=True)
        made.fit(Seen(), loader())
        assert not torch.is_grad_enabled()
    assert made.global_step == 6 and not torch.are_deterministic_algorithms_enabled() and not torch.is_anomaly_enabled()
    assert signal.getsignal(signal.SIGINT) is before
