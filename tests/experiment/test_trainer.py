"""Trainer and Module: loops, hooks, logged values, forms of optimizers, options."""

import math
import os
import signal
import threading

import experiment_parts as parts
import pytest
from experiment_parts import Line, data, loader, rows
from support import cpu_only, fresh_process

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.experiment import Callback, DataModule, Module, Run, Trainer

pytestmark = cpu_only


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def trainer(**options):
    return Trainer(**{"max_epochs": 1, "accelerator": "cpu"} | options)


HOOKS = [name for name in dir(Callback) if name.startswith("on_") or name in ("setup", "teardown")]


class Called(Callback):
    """A callback that notes every hook."""

    def __init__(self, calls):
        self.calls = calls


for _name in HOOKS:
    setattr(Called, _name, lambda self, trainer, *args, _name=_name: self.calls.append(_name))


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_hand(module, batches, epochs=1, accumulate=1, clip=None):
    """The loop that a person writes."""
    optimizer = module.configure_optimizers()
    for _ in range(epochs):
        for i, batch in enumerate(batches):
            if i % accumulate == 0:
                optimizer.zero_grad()
            (module.loss(batch) / accumulate).backward()
            if (i + 1) % accumulate == 0 or i + 1 == len(batches):
                if clip is not None:
                    nn.utils.clip_grad_norm_(module.parameters(), clip)
                optimizer.step()
    return module


@pytest.mark.parametrize("options", [{}, {"accumulate_grad_batches": 4}, {"gradient_clip_val": 0.1}])
def test_E38_a_fit_is_the_loop_by_hand(options):
    batches = list(loader(shuffle=False))
    torch.manual_seed(1)
    ours = Line()
    torch.manual_seed(1)
    theirs = by_hand(Line(), batches, 3, options.get("accumulate_grad_batches", 1), options.get("gradient_clip_val"))
    made = trainer(max_epochs=3, **options)
    made.fit(ours, batches)
    assert parts.equal(ours.state_dict(), theirs.state_dict())
    steps = 3 * math.ceil(len(batches) / options.get("accumulate_grad_batches", 1))
    assert (made.global_step, made.current_epoch, made.estimated_stepping_batches) == (steps, 3, steps)
    assert made.state.finished and made.state.fn == "fit"


def test_E38_accumulated_gradients_step_at_the_end_of_data_without_a_length():
    class Endless:
        def __iter__(self):
            return iter(list(loader(shuffle=False)))

    torch.manual_seed(1)
    ours = Line()
    torch.manual_seed(1)
    theirs = by_hand(Line(), list(loader(shuffle=False)), 1, 4)
    made = trainer(accumulate_grad_batches=4)
    made.fit(ours, Endless(), loader())
    assert made.global_step == 2 and "val_loss" in made.callback_metrics and made.num_training_batches == math.inf
    assert parts.equal(ours.state_dict(), theirs.state_dict())


def test_E38_a_step_without_a_loss_is_skipped():
    class Skips(Line):
        def training_step(self, batch, batch_idx):
            return None if batch_idx % 2 else {"loss": self.loss(batch), "more": 1}

    made = trainer()
    made.fit(Skips(), loader())
    assert made.global_step == 3


def test_E38_steps_may_leave_out_the_index_and_losses_are_checked():
    class Short(Line):
        def training_step(self, batch):
            return {"loss": self.loss(batch)}

        def validation_step(self, batch):
            self.log("val_loss", self.loss(batch))

    made = trainer()
    made.fit(Short(), loader(), loader())
    assert made.global_step == 6

    class Wrong(Line):
        def training_step(self, batch, batch_idx):
            return self.wrong

    for wrong, kind in (({"los": 1}, KeyError), (1.0, TypeError)):
        module = Wrong()
        module.wrong = wrong
        with pytest.raises(kind, match="loss"):
            trainer().fit(module, loader())


def test_E38_hooks_in_order():
    calls = []

    class Noted(Line):
        def training_step(self, batch, batch_idx):
            calls.append("training_step")
            return self.loss(batch)

        def validation_step(self, batch, batch_idx):
            calls.append("validation_step")

    made = trainer(callbacks=Called(calls), limit_train_batches=1, limit_val_batches=1, num_sanity_val_steps=1)
    made.fit(Noted(), loader(), loader())
    validation = [
        "on_validation_start",
        "on_epoch_start",
        "on_validation_epoch_start",
        "on_validation_batch_start",
        "validation_step",
        "on_validation_batch_end",
        "on_validation_epoch_end",
        "on_epoch_end",
        "on_validation_end",
    ]
    assert calls == [
        "on_init_start",
        "on_init_end",
        "setup",
        "on_fit_start",
        "on_sanity_check_start",
        *validation,
        "on_sanity_check_end",
        "on_train_start",
        "on_epoch_start",
        "on_train_epoch_start",
        "on_train_batch_start",
        "training_step",
        "on_before_zero_grad",
        "on_before_backward",
        "on_after_backward",
        "on_before_optimizer_step",
        "on_train_batch_end",
        *validation,
        "on_train_epoch_end",
        "on_epoch_end",
        "on_train_end",
        "on_fit_end",
        "teardown",
    ]
    for stage, call in (("test", made.test), ("predict", made.predict)):
        calls.clear()
        call(Noted(), loader())
        assert calls[0] == "setup" and calls[-1] == "teardown" and calls.count(f"on_{stage}_batch_end") == 6
        assert calls[1:4] == [f"on_{stage}_start", "on_epoch_start", f"on_{stage}_epoch_start"]


def test_E38_hooks_of_modules_and_old_ends_of_epochs():
    calls = []

    class Old(Line):
        def on_train_batch_start(self, batch, batch_idx):
            return -1 if batch_idx == 2 else None

        def training_epoch_end(self, outputs):
            calls.append([float(output) for output in outputs])

        def validation_step(self, batch, batch_idx):
            return batch_idx

        def validation_epoch_end(self, outputs):
            calls.append(outputs)

        def on_before_optimizer_step(self, optimizer):
            calls.append(type(optimizer).__name__)

    made = trainer()
    made.fit(Old(), loader(), loader())
    assert made.global_step == 2 and calls[:3] == ["Adam", "Adam", list(range(6))] and len(calls[3]) == 2


def test_E38_what_nobody_overrides_is_not_called():
    from tensorgrad.experiment.hooks import Hooks, ModuleHooks

    module = Line()
    found = Hooks(trainer(), module)
    assert not any(found.find(name) for name in dir(ModuleHooks) if name.startswith("on_") and "model_eval" not in name)
    module.on_train_start = lambda: None
    assert len(Hooks(trainer(), module).find("on_train_start")) == 1


def test_E38_optimizer_step_of_the_module_and_closures():
    class Warm(Line):
        def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):
            for group in optimizer.param_groups:
                group["lr"] = 0.1
            optimizer.step(closure=optimizer_closure)

    class Same(Line):
        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.1)

    class Closures(Line):
        def configure_optimizers(self):
            return torch.optim.LBFGS(self.parameters(), max_iter=3)

    states = []
    for kind in (Warm, Same):
        torch.manual_seed(1)
        module = kind()
        trainer(gradient_clip_val=0.5).fit(module, loader(shuffle=False))
        states.append(module.state_dict())
    assert parts.equal(*states)
    module = Closures()
    made = trainer(max_epochs=3)
    made.fit(module, loader(22))
    assert made.callback_metrics["loss"] < 1e-2 and made.global_step == 3


def test_E38_several_optimizers_share_a_backward_or_step_by_hand():
    class Both(Line):
        def configure_optimizers(self):
            return [torch.optim.SGD([self.line.weight], lr=0.1), torch.optim.Adam([self.line.bias], lr=0.1)]

    module = Both()
    before = {name: p.clone() for name, p in module.named_parameters()}
    trainer().fit(module, loader())
    assert all(bool((p != before[name]).any()) for name, p in module.named_parameters())

    class Manual(Both):
        automatic_optimization = False

        def training_step(self, batch, batch_idx):
            first, second = self.optimizers()
            self.toggle_optimizer(first)
            required = [p.requires_grad for p in self.parameters()]
            self.untoggle_optimizer(first)
            assert required == [True, False] and all(p.requires_grad for p in self.parameters())
            for optimizer in (first, second):
                optimizer.zero_grad()
            self.manual_backward(self.loss(batch))
            self.clip_gradients(first, 0.5)
            first.step()
            if batch_idx % 2:
                second.step()

    made = trainer()
    made.fit(Manual(), loader())
    assert made.global_step == 6

    class Older(Line):
        def training_step(self, batch, batch_idx, optimizer_idx):
            return self.loss(batch)

    with pytest.raises(TypeError, match="automatic_optimization = False"):
        trainer().fit(Older(), loader())


@pytest.mark.parametrize("form", range(7))
def test_E15_forms_of_configure_optimizers(form):
    class Forms(Line):
        def configure_optimizers(self):
            one = torch.optim.SGD(self.parameters(), lr=1.0)
            by_epoch = torch.optim.lr_scheduler.StepLR(one, 1, gamma=0.5)
            return [
                one,
                [one],
                ([one], [by_epoch]),
                {"optimizer": one, "lr_scheduler": by_epoch},
                {"optimizer": one, "lr_scheduler": {"scheduler": by_epoch, "interval": "step", "frequency": 2}},
                [{"optimizer": one, "lr_scheduler": {"scheduler": by_epoch}}],
                None,
            ][form]

    made = trainer(max_epochs=2, limit_train_batches=4)
    made.fit(Forms(), loader())
    rate = [1.0, 1.0, 0.25, 0.25, 1 / 16, 0.25, None][form]
    assert [group["lr"] for optimizer in made.optimizers for group in optimizer.param_groups] == (
        [rate] if form < 6 else []
    )
    assert len(made.lr_schedulers) == (2 <= form < 6)


def test_E15_plateaus_and_wrong_forms():
    class Plateau(Line):
        returned = None

        def configure_optimizers(self):
            one = torch.optim.SGD(self.parameters(), lr=1e-3)
            plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(one, "max", factor=0.5, patience=0)
            return (
                {"optimizer": one, "lr_scheduler": {"scheduler": plateau, "monitor": "val_loss"}}
                if self.returned is None
                else self.returned(one, plateau)
            )

    made = trainer(max_epochs=3)
    made.fit(Plateau(), loader(), loader())
    assert made.optimizers[0].param_groups[0]["lr"] < 1e-3
    for returned, kind, message in (
        (lambda one, plateau: 3, TypeError, "int"),
        (lambda one, plateau: [plateau], TypeError, "no optimizer"),
        (lambda one, plateau: {"optimiser": one}, ValueError, "'optimizer'"),
        (
            lambda one, plateau: {"optimizer": one, "lr_scheduler": {"scheduler": plateau, "intervall": "step"}},
            ValueError,
            "intervall",
        ),
        (
            lambda one, plateau: {
                "optimizer": one,
                "lr_scheduler": {"scheduler": plateau, "interval": "day", "monitor": "x"},
            },
            ValueError,
            "'day'",
        ),
        (lambda one, plateau: ([one], [plateau]), ValueError, "monitor"),
    ):
        module = Plateau()
        module.returned = returned
        with pytest.raises(kind, match=message):
            trainer().fit(module, loader())
    module = Plateau()
    module.returned = lambda one, plateau: {
        "optimizer": one,
        "lr_scheduler": {"scheduler": plateau, "monitor": "val_los"},
    }
    with pytest.raises(RuntimeError, match="'val_los'.*loss"):
        trainer().fit(module, loader(), loader())


@pytest.mark.parametrize("precision", ["64", "bf16-mixed", "16-mixed"])
def test_E38_precision(precision):
    seen = []

    class Seen(Line):
        def training_step(self, batch, batch_idx):
            out = self(batch)
            seen.append((out.dtype, batch[0].dtype))
            return (out - batch[1]).square().mean()

    module, default = Seen(), torch.get_default_dtype()
    before = module.line.weight.clone()
    trainer(precision=precision, gradient_clip_val=1.0).fit(module, loader())
    assert (
        seen[0]
        == {
            "64": (torch.float64, torch.float64),
            "bf16-mixed": (torch.bfloat16, torch.float32),
            "16-mixed": (torch.float16, torch.float32),
        }[precision]
    )
    assert bool((module.line.weight != before).any()) and torch.get_default_dtype() is default
    assert module.line.weight.dtype is (torch.float64 if precision == "64" else torch.float32)


# ── logging ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_E38_logged_values(tmp_path):
    class Logs(Line):
        def training_step(self, batch, batch_idx):
            self.log("by_step", float(batch_idx))
            self.log("mean", torch.tensor([float(batch_idx)]), on_step=False, on_epoch=True, prog_bar=True)
            self.log("hidden", 1, logger=False)
            for how in ("sum", "min", max):
                self.log(getattr(how, "__name__", how), batch_idx, on_step=False, on_epoch=True, reduce_fx=how)
            self.log(
                "median",
                batch_idx,
                on_step=False,
                on_epoch=True,
                reduce_fx=lambda values: sorted(values)[len(values) // 2],
            )
            return super().training_step(batch, batch_idx)

        def on_train_epoch_end(self):
            self.log("at_end", 7.0)

    with Run(tmp_path / "run", events=False, quiet=True) as run:
        made = trainer(max_epochs=2, run=run, log_every_n_steps=4)
        made.fit(Logs(), loader(), loader())
        epoch = made.callback_metrics
        made.test(Logs(), loader())
        made.validate(Logs(), [loader(), loader()])
    weighted = sum(i * n for i, n in enumerate((4, 4, 4, 4, 4, 2))) / 22
    assert math.isclose(float(epoch["mean"]), weighted, rel_tol=1e-6) and made.num_val_batches == []
    assert [float(epoch[name]) for name in ("sum", "min", "max", "median", "at_end", "hidden")] == [15, 0, 5, 3, 7, 1]
    assert {"loss", "loss_step", "loss_epoch", "val_loss"} < set(epoch)
    found = rows(tmp_path / "run")
    assert [row["step"] for row in found] == ["4", "6", "8", "12", "12", "12", "12"][: len(found)]
    steps, epochs = [row for row in found if "by_step" in row], [row for row in found if "at_end" in row]
    assert [row["by_step"] for row in steps] == ["3.0", "1.0", "5.0"] and all(
        "loss_step" in row and "mean" not in row for row in steps
    )
    assert len(epochs) == 2 and all(
        {"loss_epoch", "val_loss", "mean"} < set(row) and "hidden" not in row for row in epochs
    )
    assert "test_loss" in found[-2] and {"val_loss/dataloader_idx_0", "val_loss/dataloader_idx_1"} < set(found[-1])


def test_E38_metrics_of_an_evaluation_only_run_are_logged(tmp_path):
    with Run(tmp_path / "run", events=False, quiet=True) as run:
        made = trainer(run=run, limit_test_batches=3)
        (found,) = made.test(Line(), loader())
        several = made.validate(Line(), [loader(), loader(2)])
    assert rows(tmp_path / "run")[0] == {"step": "0", "epoch": "0", "test_loss": repr(found["test_loss"])}
    assert [list(one) for one in several] == [["val_loss/dataloader_idx_0"], ["val_loss/dataloader_idx_1"]]


def test_E38_log_refuses():
    class Logs(Line):
        def training_step(self, batch, batch_idx):
            self.act(self)
            return super().training_step(batch, batch_idx)

    for act, kind in (
        (lambda m: m.log("x", torch.ones(2)), ValueError),
        (lambda m: m.log(3, 1.0), TypeError),
        (lambda m: m.log("x", 1, on_step=False, on_epoch=False), ValueError),
        (lambda m: m.log("x", 1, reduce_fx="mode"), ValueError),
    ):
        module = Logs()
        module.act = act
        with pytest.raises(kind, match="log|reduce_fx|name"):
            trainer().fit(module, loader())
    module = Line()
    module.log("nothing", 1.0)
    with pytest.raises(RuntimeError, match="attached"):
        module.trainer  # noqa: B018
    trainer().fit(module, loader())
    with pytest.raises(RuntimeError, match="nothing can be logged"):
        module.log("late", 1.0)


def test_E38_predictions_and_modes():
    module = Line(dropout=0.5)
    made = trainer()
    found = made.predict(module, loader(shuffle=False))
    assert torch.allclose(torch.cat(found), module.eval()(data().tensors[0])) and not found[0].requires_grad
    assert [len(one) for one in made.predict(module, [loader(), loader(11)])] == [6, 2]
    assert len(made.predict(module, [torch.ones(2, 3)] * 3)) == 3


# ── data ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_E13_data_modules_and_loaders_of_modules():
    calls = []

    class Data(DataModule):
        def __init__(self, batch_size=4):
            self.save_hyperparameters()

        def prepare_data(self):
            calls.append("prepare")

        def setup(self, stage):
            calls.append(stage)

        def teardown(self, stage):
            calls.append(f"no {stage}")

        def train_dataloader(self):
            return loader(self.hparams.batch_size)

        def val_dataloader(self):
            return [loader(), loader()]

        def transfer_batch_to_device(self, batch, device, dataloader_idx):
            calls.append(dataloader_idx)
            return super().transfer_batch_to_device(batch, device, dataloader_idx)

    made = trainer(limit_train_batches=1, limit_val_batches=1)
    made.fit(Line(), datamodule=Data(11))
    made.validate(Line(), Data())
    assert calls == ["prepare", "fit", 0, 0, 1, "no fit", "prepare", "validate", 0, 1, "no validate"]

    class Own(Line):
        def train_dataloader(self):
            return [{"x": torch.ones(2, 3, dtype=torch.float64)}]

        def training_step(self, batch, batch_idx):
            assert batch["x"].dtype is torch.float32
            return self(batch["x"]).sum()

        def on_before_batch_transfer(self, batch, dataloader_idx):
            return {"x": batch["x"].float()}

    made.fit(Own())
    assert made.global_step == 1


def test_E38_batches_move_to_devices():
    from collections import namedtuple

    from tensorgrad.experiment.batches import moved, size

    class Moves:
        def to(self, device):
            return device

    pair = namedtuple("pair", "a b")
    found = moved({"a": [torch.ones(2), "text"], "b": pair(torch.zeros(1), Moves())}, "meta")
    assert (
        found["a"][0].device.type == "meta"
        and found["a"][1] == "text"
        and type(found["b"]) is pair
        and found["b"].b == "meta"
    )
    assert [size(b) for b in (torch.ones(3, 2), [torch.tensor(1.0)], {"n": 1})] == [3, 1, 1]


# ── hyper-parameters and checkpoints of weights ───────────────────────────────────────────────────────────────────────


class Base(Module):
    def __init__(self, width, *rest, depth=2, **more):
        super().__init__()
        self.save_hyperparameters(ignore="secret")


class Derived(Base):
    def __init__(self, width=3, act=print, secret=1, name="x"):
        super().__init__(width, depth=7, act=act, secret=secret)


def test_E15_hyperparameters_of_the_constructors():
    made = Derived(5, name="y")
    assert made.hparams == {"width": 5, "depth": 7, "act": print, "name": "y"} and made.hparams.depth == 7
    with pytest.raises(AttributeError, match="width"):
        made.hparams.nothing  # noqa: B018

    class Some(Module):
        def __init__(self, a, b, spec):
            super().__init__()
            self.save_hyperparameters("a", "spec")

    spec = {"list": [1]}
    some = Some(1, 2, spec)
    spec["list"].append(2)
    assert some.hparams == {"a": 1, "spec": {"list": [1]}}


def test_E31_load_from_checkpoint_runs_nothing_of_the_file(tmp_path):
    class Objects(Line):
        def __init__(self, lr=0.05, dropout=0.0, act=None, other=1):
            super().__init__(lr, dropout)
            self.save_hyperparameters()

    module = Objects(0.5, act=print)
    made = trainer(default_root_dir=tmp_path)
    made.fit(module, loader())
    path = tmp_path / "ckpt" / "last.ckpt"
    state = torch.load(path, weights_only=True)
    assert state["hyper_parameters"] == {"lr": 0.5, "dropout": 0.0, "other": 1} and (
        state["epoch"],
        state["global_step"],
    ) == (0, 6)
    again = Objects.load_from_checkpoint(path, other=2)
    assert again.hparams == {"lr": 0.5, "dropout": 0.0, "act": None, "other": 2} and parts.equal(
        again.state_dict(), module.state_dict()
    )
    fresh = Line(0.5)
    assert made.test(fresh, loader(shuffle=False), ckpt_path=path) == made.test(
        module, loader(shuffle=False), ckpt_path="best"
    )
    made.save_checkpoint(tmp_path / "weights.ckpt", weights_only=True)
    with pytest.raises(ValueError, match="weights only"):
        trainer().fit(Line(), loader(), ckpt_path=tmp_path / "weights.ckpt")


def test_E36_hparams_yaml(tmp_path):
    yaml = pytest.importorskip("yaml")
    with Run(tmp_path / "run", events="default", quiet=True) as run:
        trainer(run=run).fit(Line(0.25), loader())
    (path,) = (tmp_path / "run").rglob("hparams.yaml")
    assert path.parent.name == "version_0" and yaml.safe_load(path.read_text()) == {"lr": 0.25, "dropout": 0.0}


def test_E38_modules_are_copied_and_pickled_without_their_trainer():
    import copy
    import pickle

    module = Line()
    trainer().fit(module, loader())
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert (
            twin.hparams == module.hparams
            and parts.equal(twin.state_dict(), module.state_dict())
            and "_trainer" not in vars(twin)
        )
    module.freeze()
    assert not module.training and not any(p.requires_grad for p in module.parameters())
    module.unfreeze()
    assert module.training and all(p.requires_grad for p in module.parameters()) and module.device.type == "cpu"


# ── errors, interrupts, the screen ────────────────────────────────────────────────────────────────────────────────────


def test_E38_exceptions_reach_callbacks_and_callers():
    seen = []

    class Sees(Callback):
        def on_exception(self, trainer, module, exception):
            seen.append((type(exception), trainer.state.status))

    class Fails(Line):
        def training_step(self, batch, batch_idx):
            raise ZeroDivisionError

    made = trainer(callbacks=Sees())
    with pytest.raises(ZeroDivisionError):
        made.fit(Fails(), loader())
    assert seen == [(ZeroDivisionError, "failed")] and made.state.status == "failed"
    made.fit(Line(), loader())
    assert made.state.finished


class Interrupts(Line):
    """Interrupts itself, as Ctrl-C does."""

    def __init__(self, at, times=1, stage="train"):
        super().__init__()
        self.at, self.times, self.stage = at, times, stage

    def training_step(self, batch, batch_idx):
        if self.stage == "train" and self.trainer.fit_loop.batches == self.at:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        if self.stage == "validate":
            os.kill(os.getpid(), signal.SIGINT)
        torch.rand(1)
        return super().validation_step(batch, batch_idx)


@pytest.mark.parametrize("stage, at, accumulate, step", [("train", 1, 1, 2), ("train", 2, 2, 2), ("validate", 0, 1, 6)])
def test_E37_an_interrupt_finishes_the_step_saves_and_says_how_to_go_on(tmp_path, stage, at, accumulate, step):
    before = signal.getsignal(signal.SIGINT)
    with Run(tmp_path / "run", events=False, quiet=True) as run:
        made = trainer(run=run, max_epochs=2, accumulate_grad_batches=accumulate)
        made.fit(Interrupts(at, stage=stage), loader(), loader())
        assert (
            made.interrupted
            and made.state.status == run.status == "interrupted"
            and signal.getsignal(signal.SIGINT) is before
        )
    assert run.status == "interrupted" and made.global_step == step
    assert "To go on" in (tmp_path / "run" / "log.txt").read_text()
    with Run(tmp_path / "run", resume=True, events=False, quiet=True) as run:
        made = trainer(run=run, max_epochs=2, accumulate_grad_batches=accumulate)
        module = Interrupts(-1)
        made.fit(module, loader(), loader(), ckpt_path="last")
    assert not made.interrupted and made.current_epoch == 2
    torch.manual_seed(0)
    whole = Interrupts(-1)
    trainer(max_epochs=2, accumulate_grad_batches=accumulate).fit(whole, loader(), loader())
    assert parts.equal(whole.state_dict(), module.state_dict())


def test_E37_the_second_interrupt_ends_at_once_and_other_threads_have_none():
    before = signal.getsignal(signal.SIGINT)
    made = trainer()
    with pytest.raises(KeyboardInterrupt):
        made.fit(Interrupts(1, times=2), loader())
    assert signal.getsignal(signal.SIGINT) is before and made.state.status == "interrupted"
    thread = threading.Thread(target=trainer().fit, args=(module := Line(), loader()))
    thread.start()
    thread.join()
    assert module.trainer.global_step == 6


def test_E38_nothing_is_printed_or_written_unasked(tmp_path):
    program = f"""
import os, sys
os.chdir({str(tmp_path)!r}); sys.path[:0] = {[str(parts.__file__.rpartition("/")[0]), str(os.getcwd())]!r}
from experiment_parts import Line, loader
from tensorgrad.experiment import Trainer
trainer = Trainer(max_epochs=1)
trainer.fit(Line(), loader(), loader())
trainer.validate(Line(), loader())
print(os.listdir("."))
"""
    assert fresh_process(program) == "[]\n"


def test_the_summary_of_the_model_is_the_table_of_torch_summary(capsys):
    module = Line()
    trainer(enable_model_summary=True, fast_dev_run=True, enable_progress_bar=False).fit(module, loader())
    assert str(torch.summary(module, row_settings=("var_names",), verbose=0)) in capsys.readouterr().out
