"""Callbacks: checkpoints and their names, early stopping, learning rates, lines in logs, progress."""

import math
import pickle
import re
import sys
import types
import warnings

import pytest
from experiment_parts import Line, loader, rows
from support import cpu_only

import tensorgrad as torch
from tensorgrad.experiment import Run, Trainer, callbacks
from tensorgrad.experiment.callbacks import (
    BaseLogger,
    EarlyStopping,
    GlobalProgressBar,
    LearningRateMonitor,
    ModelCheckpoint,
    ProgressBar,
    TrainingPage,
)

pytestmark = cpu_only


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Told(Line):
    """Logs given values for each epoch."""

    def __init__(self, values, name="score"):
        super().__init__()
        self.values, self.name = values, name

    def on_train_epoch_end(self):
        self.log(self.name, self.values[self.current_epoch])


def fitted(values, *given, name="score", **options):
    module = Told(values, name)
    made = Trainer(
        **{"max_epochs": len(values), "callbacks": list(given), "accelerator": "cpu", "limit_train_batches": 2}
        | options
    )
    made.fit(module, loader())
    return made


def files(path):
    return sorted(p.name for p in path.iterdir())


# ── ModelCheckpoint ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_E35_the_best_checkpoints_and_the_last_are_kept(tmp_path):
    for mode, kept in (("min", [0, 3]), ("max", [1, 2])):
        save = ModelCheckpoint(tmp_path / mode, monitor="score", mode=mode, save_top_k=2)
        fitted([1.0, 5.0, 3.0, 0.5, 2.0], save)
        assert files(tmp_path / mode) == [
            *(f"epoch={e}-step={2 * e + 2}-score={[1, 5, 3, 0.5][e]:.4f}.ckpt" for e in kept),
            "last.ckpt",
        ]
        best = (
            tmp_path
            / mode
            / {"min": "epoch=3-step=8-score=0.5000.ckpt", "max": "epoch=1-step=4-score=5.0000.ckpt"}[mode]
        )
        assert save.best_model_path == str(best) and save.best_model_score == {"min": 0.5, "max": 5.0}[mode]
        assert set(save.best_k_models.values()) == ({1.0, 0.5} if mode == "min" else {5.0, 3.0})
        assert save.last_model_path == str(tmp_path / mode / "last.ckpt")
        assert torch.load(save.last_model_path, weights_only=True)["epoch"] == 4


@pytest.mark.parametrize(
    "options, names",
    [
        ({}, ["epoch=2-step=6.ckpt", "last.ckpt"]),
        ({"save_last": False}, ["epoch=2-step=6.ckpt"]),
        ({"save_top_k": 0}, ["last.ckpt"]),
        ({"save_top_k": -1}, ["epoch=0-step=2.ckpt", "epoch=1-step=4.ckpt", "epoch=2-step=6.ckpt", "last.ckpt"]),
        ({"every_n_epochs": 2}, ["epoch=1-step=4.ckpt", "last.ckpt"]),
        ({"every_n_train_steps": 5, "filename": "{step:03d}-{nothing}"}, ["last.ckpt", "step=005-nothing=nan.ckpt"]),
        ({"filename": "{epoch:02d}_{score:.1f}", "auto_insert_metric_name": False}, ["02_3.0.ckpt", "last.ckpt"]),
    ],
)
def test_E34_E35_when_and_how_checkpoints_are_named(tmp_path, options, names):
    fitted([1.0, 2.0, 3.0], ModelCheckpoint(**options), default_root_dir=tmp_path)
    assert files(tmp_path / "ckpt") == names
    last = tmp_path / "ckpt" / "last.ckpt"
    assert not last.exists() or torch.load(last, weights_only=True)["global_step"] == 6


def test_E35_names_of_metrics_are_safe_as_names_of_files(tmp_path):
    save = ModelCheckpoint(monitor="../val/acc: 1", save_last=False)
    fitted([0.5], save, name="../val/acc: 1", default_root_dir=tmp_path)
    (name,) = files(tmp_path / "ckpt")
    assert name == "epoch=0-step=2-.._val_acc_1=0.5000.ckpt"
    assert (
        ModelCheckpoint().format_checkpoint_name({"a": math.nan}, "{a.__class__}/../{a:>9}")
        == "a.__class__=nan_.._a_9=nan"
    )
    assert ModelCheckpoint().format_checkpoint_name({}, "..") == "checkpoint"


def test_E35_files_of_another_training_are_not_overwritten(tmp_path):
    for _ in range(2):
        fitted([1.0], ModelCheckpoint(tmp_path, save_last=False))
    assert files(tmp_path) == ["epoch=0-step=2-v1.ckpt", "epoch=0-step=2.ckpt"]


def test_E35_within_epochs_it_saves_after_validations(tmp_path):
    save = ModelCheckpoint(tmp_path, monitor="val_loss", save_top_k=-1, save_last=False)
    made = Trainer(max_epochs=1, callbacks=save, val_check_interval=2, accelerator="cpu")
    made.fit(Line(), loader(), loader())
    assert [int(re.search(r"step=(\d+)", name)[1]) for name in files(tmp_path)] == [2, 4, 6]


def test_E35_what_is_wrong(tmp_path):
    with pytest.raises(ValueError, match="'score'.*nearest: scorn"):
        fitted([1.0], ModelCheckpoint(tmp_path, monitor="score"), name="scorn")
    for options in ({"mode": "best"}, {"save_top_k": -2}, {"every_n_epochs": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            ModelCheckpoint(**options)
    fitted([math.nan, 2.0, math.nan], save := ModelCheckpoint(tmp_path / "nan", monitor="score"))
    assert save.best_model_score == 2.0
    assert not any(
        isinstance(one, ModelCheckpoint)
        for one in Trainer(default_root_dir=tmp_path, enable_checkpointing=False).callbacks
    )


def test_E35_a_full_disk_leaves_earlier_checkpoints(tmp_path, monkeypatch):
    save = ModelCheckpoint(tmp_path, monitor="score", save_top_k=1)
    module, written = Told([3.0, 2.0, 1.0]), []

    def full(*args, **options):
        written.append(1)
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        return real(*args, **options)

    from tensorgrad import serialization

    real = serialization.save
    monkeypatch.setattr(serialization, "save", full)
    with pytest.raises(OSError, match="No space"):
        Trainer(max_epochs=3, callbacks=save, accelerator="cpu").fit(module, loader())
    assert files(tmp_path) == ["epoch=0-step=6-score=3.0000.ckpt", "last.ckpt"]


# ── EarlyStopping ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "options, values, epochs",
    [
        ({"patience": 2}, [5, 4, 4, 4, 1], 4),
        ({"patience": 2}, [5, 4, 4, 3, 3, 3, 3], 6),
        ({"patience": 2, "min_delta": 2.0}, [5, 4, 3.5, 1], 3),
        ({"mode": "max", "patience": 1}, [1, 2, 3, 2.5, 9], 4),
        ({}, [1, math.nan, 3], 2),
        ({"check_finite": False}, [1, math.nan, 3], 3),
        ({"stopping_threshold": 2.0}, [5, 3, 1.5, 1], 3),
        ({"divergence_threshold": 7.0}, [5, 8, 1], 2),
    ],
)
def test_E34_early_stopping(options, values, epochs):
    stop = EarlyStopping("score", **options)
    made = fitted([float(value) for value in values], stop)
    assert (
        made.current_epoch == epochs
        and made.should_stop == (stop.stopped_epoch > 0)
        and (epochs == len(values)) != made.should_stop
    )


def test_E34_early_stopping_needs_its_metric(capsys):
    with pytest.raises(RuntimeError, match="'scor'.*nearest: score"):
        fitted([1.0], EarlyStopping("scor"))
    assert fitted([1.0, 2.0], EarlyStopping("scor", strict=False)).current_epoch == 2
    assert fitted([1.0] * 9, EarlyStopping("score", patience=1, verbose=True), min_epochs=5).current_epoch == 5
    assert capsys.readouterr().out.startswith("Stopping: score has not been better than 1 for 1 checks\n")
    with pytest.raises(ValueError, match="mode"):
        EarlyStopping("score", mode="least")


# ── a page of the training ────────────────────────────────────────────────────────────────────────────────────────────


class Rectified(Line):
    """A line through a rectifier that is no module; one of its two units is dead in training, and alive in
    validation.
    """

    def __init__(self, breaks=None):
        super().__init__()
        self.hidden, self.breaks, self.losses = torch.nn.Linear(3, 2), breaks, []
        with torch.no_grad():
            self.hidden.weight.fill_(0.0)
            self.hidden.bias.copy_(torch.tensor([50.0, -50.0]))

    def training_step(self, batch, batch_idx):
        if self.global_step == self.breaks:
            raise ArithmeticError("broken")
        hidden = torch.nn.functional.relu(self.hidden(batch[0]))
        loss = (self.line(batch[0]) + hidden.sum() * 0).square().mean()
        self.losses.append(loss.item())
        return {"loss": loss}

    def validation_step(self, batch, batch_idx):
        with torch.enable_grad():
            torch.nn.functional.relu(self.hidden(batch[0]) + 100)


def test_a_fit_as_a_page(tmp_path):
    module, page = Rectified(), TrainingPage(every=2, title="My training")
    made = Trainer(max_epochs=2, callbacks=page, accelerator="cpu", default_root_dir=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.fit(module, loader(), loader())
    text = (tmp_path / "training.html").read_text(encoding="utf-8")
    steps = made.global_step
    assert (f"step {steps}, loss {module.losses[-1]:.3g}" in text and "My training" in text
            and "refresh" not in text.split("<style")[0])
    assert "relu after hidden" in text and "1 of 2" in text and steps > 2
    handle = torch.nn.Linear(1, 1)(torch.ones(1, 1))          # nobody watches any more
    assert page._seen is None and handle.grad_fn is not None


@pytest.mark.parametrize("options", [{"fast_dev_run": True}, {}])
def test_a_page_of_a_fit_that_breaks(tmp_path, options):
    made = Trainer(max_epochs=1, callbacks=TrainingPage(tmp_path / "deep" / "page.html"), accelerator="cpu", **options)
    if options:
        made.fit(Rectified(), loader())
        assert not (tmp_path / "deep").exists()
        return
    with pytest.raises(ArithmeticError):
        made.fit(Rectified(breaks=2), loader())
    assert "Ended after step 2 by ArithmeticError: broken" in (tmp_path / "deep"
                                                               / "page.html").read_text(encoding="utf-8")


def test_a_page_needs_its_optimizer(tmp_path):
    with pytest.raises(ValueError, match=r"TrainingPage\(optimizer=3\): the module has 1"):
        Trainer(max_epochs=1, callbacks=TrainingPage(tmp_path / "page.html", optimizer=3),
                accelerator="cpu").fit(Rectified(), loader())


# ── learning rates ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_E29_learning_rates_are_logged(tmp_path):
    class Rates(Line):
        def configure_optimizers(self):
            groups = [{"params": [self.line.weight], "lr": 1.0}, {"params": [self.line.bias], "lr": 0.5}]
            one = torch.optim.SGD(groups, momentum=0.9)
            return [one], [torch.optim.lr_scheduler.ExponentialLR(one, 0.5)]

    found = {}
    for interval in ("step", "epoch", None):
        with Run(tmp_path / str(interval), events=False, quiet=True) as run:
            monitor = LearningRateMonitor(interval, log_momentum=interval is None, log_weight_decay=interval is None)
            Trainer(max_epochs=2, run=run, callbacks=monitor, log_every_n_steps=4, accelerator="cpu").fit(
                Rates(), loader()
            )
        found[interval] = [
            (row["step"], row.get("lr-SGD/pg1"), row.get("lr-SGD/pg2")) for row in rows(tmp_path / str(interval))
        ]
    assert found["step"] == [
        ("4", "1.0", "0.5"),
        ("6", None, None),
        ("8", "0.5", "0.25"),
        ("12", "0.5", "0.25"),
        ("12", None, None),
    ]
    assert found["epoch"] == [
        ("4", None, None),
        ("6", "1.0", "0.5"),
        ("8", None, None),
        ("12", None, None),
        ("12", "0.5", "0.25"),
    ]
    assert all(rate is not None for _, rate, _ in found[None])
    assert (
        rows(tmp_path / "None")[0]["lr-SGD-momentum/pg1"] == "0.9"
        and "lr-SGD-weight_decay/pg2" in rows(tmp_path / "None")[0]
    )
    with pytest.raises(ValueError, match="logging_interval"):
        LearningRateMonitor("batch")


# ── lines and bars ────────────────────────────────────────────────────────────────────────────────────────────────────

EPOCH_LINE = re.compile(r"Epoch (\d)/(\d) loss=(\d+\.\d{4}), val_loss=\d+\.\d{4} (\d+\.\ds) (\d+\.\ds)/(\d+\.\ds)")


def test_E16_base_logger_writes_one_line_per_epoch(tmp_path, capsys):
    logger = callbacks.make(
        {"name": "base-logger", "args": {"save_path": tmp_path / "own", "config": {"b": 1, "a": [2]}}}
    )
    Trainer(max_epochs=3, callbacks=logger, accelerator="cpu").fit(Line(), loader(), loader())
    lines = (tmp_path / "own" / "log.txt").read_text().splitlines()
    assert [EPOCH_LINE.fullmatch(line).group(1, 2) for line in lines] == [("1", "3"), ("2", "3"), ("3", "3")]
    elapsed, total = EPOCH_LINE.fullmatch(lines[-1]).group(5, 6)
    assert elapsed == total and capsys.readouterr().out.splitlines() == lines
    if (tmp_path / "own" / "config.yaml").exists():
        assert (tmp_path / "own" / "config.yaml").read_text() == "b: 1\na: [2]\n"


def test_E16_base_logger_comes_with_a_run_and_leaves_its_config(tmp_path):
    with Run(tmp_path / "run", config={"given": True}, events=False, quiet=True) as run:
        made = Trainer(max_epochs=2, run=run, callbacks=BaseLogger(config={"other": 1}), accelerator="cpu")
        made.fit(Line(), loader(), loader())
        assert sum(isinstance(one, BaseLogger) for one in made.callbacks) == 1
        Trainer(max_epochs=1, run=run, accelerator="cpu").fit(Line(), loader(), loader())
    log = (tmp_path / "run" / "log.txt").read_text()
    assert len(EPOCH_LINE.findall(log)) == 3 and "other" not in "".join(
        p.read_text() for p in (tmp_path / "run").glob("config.*")
    )


class Bar:
    """A stand-in for tqdm that records what it shows."""

    made = []

    def __init__(self, **options):
        self.options, self.n, self.postfix, self.closed = options, options["initial"], {}, False
        self.made.append(self)

    def set_description(self, text, refresh=True):
        self.description = text

    def set_postfix(self, values, refresh=True):
        self.postfix = values

    def update(self, n):
        self.n += n

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    monkeypatch.setattr(Bar, "made", [])
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))
    return Bar.made


def test_E17_bars_over_epochs_and_over_batches(bars):
    Trainer(
        max_epochs=3, callbacks=[GlobalProgressBar(process_position=2), ProgressBar(refresh_rate=4)], accelerator="cpu"
    ).fit(Line(), loader())
    epochs, batches = bars
    assert (
        epochs.n == epochs.options["total"] == 3
        and epochs.closed
        and epochs.options["position"] == 2
        and list(epochs.postfix) == ["loss"]
    )
    assert batches.n == batches.options["total"] == 18 and batches.closed and batches.description == "Epoch 3/3"


def test_E17_bars_go_on_where_a_fit_does_and_can_be_disabled_and_pickled(bars, tmp_path):
    Trainer(max_epochs=2, default_root_dir=tmp_path, accelerator="cpu").fit(Line(), loader())
    bar, off = GlobalProgressBar(), GlobalProgressBar()
    off.disable()
    Trainer(max_epochs=3, default_root_dir=tmp_path, callbacks=[bar, off, ProgressBar()], accelerator="cpu").fit(
        Line(), loader(), ckpt_path="last"
    )
    assert [(one.options["initial"], one.n, one.options["total"]) for one in bars] == [(2, 3, 3), (12, 18, 18)]
    bar._shown = lambda: None
    assert (
        pickle.loads(pickle.dumps(bar)).enabled and pickle.loads(pickle.dumps(bar))._shown is None and not off.enabled
    )
    off.enable()
    assert off.enabled


def test_E17_plain_lines_without_tqdm_and_bars_on_terminals_only(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    Trainer(max_epochs=2, callbacks=[GlobalProgressBar(), ProgressBar()], accelerator="cpu").fit(Line(), loader())
    assert re.fullmatch(
        r"epochs: 1/2\nEpoch 1/2 loss=\S+  0\.\ds/0\.\ds\nepochs: 2/2\nEpoch 2/2 loss=\S+  0\.\ds/0\.\ds\n",
        capsys.readouterr().err,
    )
    for seen in (True, False):
        monkeypatch.setattr(sys, "stderr", types.SimpleNamespace(isatty=lambda seen=seen: seen))
        assert any(isinstance(one, ProgressBar) for one in Trainer().callbacks) == seen
        assert not any(isinstance(one, ProgressBar) for one in Trainer(enable_progress_bar=False).callbacks)


def test_E3_callbacks_by_name():
    assert {
        "base-logger",
        "model-checkpoint",
        "early-stopping",
        "learning-rate-monitor",
        "progress-bar",
        "global-progress-bar",
    } <= set(callbacks.names())
    assert callbacks.make({"name": "early-stopping"}, {"monitor": "x"}).monitor == "x"


def test_E38_callbacks_of_the_module_take_the_place_of_others(tmp_path):
    class Brings(Line):
        def configure_callbacks(self):
            return [ModelCheckpoint(tmp_path / "own")]

    Trainer(max_epochs=1, default_root_dir=tmp_path, accelerator="cpu").fit(Brings(), loader())
    assert files(tmp_path) == ["own"]
