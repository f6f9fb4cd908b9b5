"""Configurations are checked as a whole: what is refused, and what the messages say."""
from pathlib import Path
from typing import Annotated, Literal

import pytest

import tensorgrad as torch
from tensorgrad.experiment import checking, datasets, models
from tensorgrad.experiment.checking import Spec, check, checked
from tensorgrad.experiment.config import loads
from tests.experiment.test_config import PLAIN, mistakes_of


def checked_lines(text, **changes):
    return [str(mistake) for mistake in check({**loads(text), **changes})]


def test_E25_the_plain_form_has_no_mistake():
    value = loads(PLAIN)
    assert check(value) == [] and checked(value) is value
    assert (
        check(
            {
                **value,
                "cmd_args": {"config": "a.yaml", "gpu": "0"},
                "resume": None,
                "callbacks": None,
                "val_dataset": None,
                "scheduler": None,
            }
        )
        == []
    )


def test_E34_ten_mistakes_give_ten_lines():
    text = """
train_dataset:
  dataset: {name: mnist-dss}
  batch_size: 0
  shufle: true
model: {name: resnet18, args: {num_classes: ten}}
optimizer: {name: SGD, args: {learning_rate: 0.1}}
scheduler: {name: StepLR, args: {gamma: 0.5}}
loss: {name: mnist_ce, args: {label_smoothing: "0.1"}}
epoch_max: 5.5
epoch_save: true
sed: 1
"""
    lines = mistakes_of(checked, loads(text))
    assert [line.split(": ")[0] for line in lines] == [
        "train_dataset.dataset.name",
        "train_dataset.batch_size",
        "train_dataset.shufle",
        "model.args.num_classes",
        "optimizer.args.learning_rate",
        "scheduler.args.step_size",
        "loss.args.label_smoothing",
        "epoch_max",
        "epoch_save",
        "sed",
    ]
    assert lines[0].endswith(
        "no dataset is called 'mnist-dss'; nearest: mnist-ds; registered: mnist, mnist-dm, mnist-ds"
    )
    assert lines[1].endswith("expected at least 1, not 0")
    assert lines[2].endswith(
        "unknown key; nearest: shuffle; allowed: dataset, batch_size, shuffle, num_workers, drop_last"
    )
    assert lines[3].endswith("expected int, not 'ten'") and "allowed: lr, momentum" in lines[4]
    assert lines[5].endswith("missing: int") and lines[6].endswith(
        "expected number, not '0.1' (without quotes it is one)"
    )
    assert "nearest: seed" in lines[9]


def test_E25_missing_and_misspelled_keys_are_one_mistake():
    value = loads(PLAIN)
    value["modell"] = value.pop("model")
    del value["loss"]
    assert [mistake.path for mistake in check(value)] == ["modell", "loss"]
    assert [mistake.message for mistake in check({})] == [
        "missing: mapping",
        "missing: model {name, args}",
        "missing: loss {name, args}",
        "missing: optimizer {name, args}",
        "missing: int, at least 1",
    ]


@pytest.mark.parametrize(
    "optimizer, line",
    [
        ("SGD", "optimizer: expected optimizer {name, args}, not 'SGD'"),
        ({"args": {}}, "optimizer.name: missing: text"),
        ({"name": 3}, "optimizer.name: expected text, not 3"),
        ({"name": "os.system"}, None),
        ({"name": "SGD", "args": [1]}, "optimizer.args: expected mapping, or null, not a list of 1"),
        (
            {"name": "SGD", "args": {"lr": -1}},
            "optimizer.args: SGD refuses them: ValueError: Invalid learning rate: -1",
        ),
        (
            {"name": "Adam", "args": {"betas": [0.9, 2.0]}},
            "optimizer.args: Adam refuses them: ValueError: Invalid beta parameter at index 1: 2.0",
        ),
        ({"name": "Adam", "args": {"betas": 0.9}}, "optimizer.args.betas: expected list, not 0.9"),
        ({"name": "Adam", "args": {"amsgrad": 1}}, "optimizer.args.amsgrad: expected true or false, not 1"),
        ({"name": "SGD", "args": {"params": []}}, None),
        ({"name": "SGD", "args": {"lr": True}}, "optimizer.args.lr: expected number, not true"),
    ],
)
def test_E9_mistakes_of_optimizers(optimizer, line):
    [told] = checked_lines(PLAIN, optimizer=optimizer)
    assert told == line or (line is None and told.startswith("optimizer."))


@pytest.mark.parametrize("spec", [{"name": name} for name in checking.registries()["optimizer"].names()])
def test_E9_every_optimizer_by_its_name(spec):
    assert checked_lines(PLAIN, optimizer=spec) == []


@pytest.mark.parametrize(
    "scheduler, line",
    [
        (
            {"name": "LambdaLR"},
            "scheduler.args.lr_lambda: missing: function of the epoch {name, args}, or list of function of the epoch "
            "{name, args}",
        ),
        (
            {"name": "LambdaLR", "args": {"lr_lambda": {"name": "warmup", "args": {}}}},
            "scheduler.args.lr_lambda.name: no lr_lambda is called 'warmup'; nearest: warmup_lr; registered: warmup_lr",
        ),
        (
            {"name": "LambdaLR", "args": {"lr_lambda": [{"name": "warmup_lr", "args": {"start": "x"}}]}},
            "scheduler.args.lr_lambda[0].args.start: expected number, not 'x'",
        ),
        (
            {
                "name": "SequentialLR",
                "args": {
                    "milestones": [2],
                    "schedulers": [{"name": "StepLR", "args": {"step_size": 1}}, {"name": "StepLR"}],
                },
            },
            "scheduler.args.schedulers[1].args.step_size: missing: int",
        ),
        (
            {"name": "MultiStepLR", "args": {"milestones": [1, "x"]}},
            "scheduler.args.milestones[1]: expected int, not 'x'",
        ),
        ({"name": "OneCycleLR", "args": {"max_lr": 0.1}}, None),
        (
            {"name": "ReduceLROnPlateau", "interval": "stepp"},
            "scheduler.interval: expected 'step' or 'epoch', not 'stepp'; nearest: step",
        ),
    ],
)
def test_E7_mistakes_of_schedules(scheduler, line):
    [told] = checked_lines(PLAIN, scheduler=scheduler)
    assert told == line or (line is None and told.startswith("scheduler."))


@pytest.fixture
def registered():
    """A registry's new names go away after the test."""
    kept = [(registry, dict(registry._classes)) for registry in checking.registries().values() if registry.names()]
    yield
    for registry, classes in kept:
        registry._classes = classes


def test_E34_the_trainer_form_checks_nested_specs(registered):
    @models.register("wrap")
    class Wrap:
        def __init__(
            self, model_spec, loss_spec: dict, optim_spec, scheduler_spec=None, extra_spec=None, part_specs=()
        ):
            pass

        def training_step(self, batch, batch_idx):
            pass

    args = {
        "model_spec": {"name": "mlp", "args": {"in_dim": 2, "out_dim": "x", "hidden_list": [1, 2.5]}},
        "loss_spec": {"name": "mnist-ce"},
        "optim_spec": {"name": "Adam", "args": {"lrr": 1}},
        "scheduler_spec": {"name": "StepLR", "args": {"step_size": "1"}},
        "extra_spec": {"name": "mnist-ds", "args": {"trian": True}},
        "part_specs": [{"name": "mse"}, {"name": "nothing"}],
    }
    value = {
        "data_module": {"name": "mnist", "args": {"batch_size": "8"}},
        "train_wrapper": {"name": "wrap", "args": args},
    }
    assert [mistake.path for mistake in check(value)] == [
        "data_module.args.batch_size",
        "train_wrapper.args.model_spec.args.out_dim",
        "train_wrapper.args.model_spec.args.hidden_list[1]",
        "train_wrapper.args.loss_spec.name",
        "train_wrapper.args.optim_spec.args.lrr",
        "train_wrapper.args.scheduler_spec.args.step_size",
        "train_wrapper.args.extra_spec.args.trian",
        "train_wrapper.args.part_specs[1].name",
    ]
    good = {"model_spec": {"name": "resnet18"}, "loss_spec": {"name": "mnist_ce"}, "optim_spec": {"name": "SGD"}}
    assert (
        check(
            {
                "data_module": {"name": "mnist"},
                "train_wrapper": {"name": "wrap", "args": good},
                "seed": 3,
                "callbacks": [],
            }
        )
        == []
    )


def test_E34_a_wrapper_trains_and_a_data_module_loads(registered):
    @models.register("wrap")
    class Wrap:
        def training_step(self, batch, batch_idx):
            pass

    paths = {
        mistake.path: mistake.message
        for mistake in check({"data_module": {"name": "mnist-ds"}, "train_wrapper": {"name": "mlp"}})
    }
    assert (
        paths["data_module.name"] == "mnist-ds has no train_dataloader(); nearest: mnist-dm; allowed: mnist, mnist-dm"
    )
    assert (
        paths["train_wrapper.name"].startswith("mlp has no training_step(); ") and "wrap" in paths["train_wrapper.name"]
    )
    assert [
        mistake.path for mistake in check({"train_wraper": {"name": "wrap"}, "data_module": {"name": "mnist"}})
    ] == ["train_wraper"]


def test_E34_annotations_are_the_schema(registered):
    @datasets.register("typed")
    class Typed:
        def __init__(
            self,
            a: int,
            b: float = 1,
            *,
            c: bool = True,
            d: str = "",
            e: list[int] = (),
            f: tuple[int, str] = (),
            g: dict[str, float] = None,
            h: Literal["min", "max"] = "min",
            i: "int | list[int] | None" = None,
            j: Path = "",
            k: "Unknown" = None,  # noqa: F821
            m=None,
            n: Annotated[dict, Spec("loss")] = None,
            o: list[Annotated[dict, Spec("model")]] = (),
        ):
            pass

    def lines(**args):
        return [
            str(m).removeprefix("train_dataset.dataset.args.")
            for m in check(
                {**loads(PLAIN), "train_dataset": {"batch_size": 1, "dataset": {"name": "typed", "args": args}}}
            )
        ]

    good = {
        "a": 1,
        "b": 2,
        "c": False,
        "d": "x",
        "e": [1],
        "f": [1, "x"],
        "g": {"x": 1},
        "h": "max",
        "i": [3],
        "j": "a/b",
        "k": 7,
        "m": [None],
        "n": {"name": "mse"},
        "o": [{"name": "resnet18"}],
    }
    assert lines(**good) == lines(**{**good, "i": None, "g": None, "b": 1.5, "n": None}) == lines(a=1) == []
    bad = {
        "a": True,
        "b": "x",
        "c": 0,
        "d": 1,
        "e": [1, None],
        "f": [1],
        "g": {"x": "y"},
        "h": "mim",
        "i": ["x"],
        "j": 3,
        "n": {"name": "mlp"},
        "o": [3],
    }
    assert [line.split(": ")[0] for line in lines(**bad)] == [
        "a",
        "b",
        "c",
        "d",
        "e[1]",
        "f",
        "g.x",
        "h",
        "i[0]",
        "j",
        "n.name",
        "o[0]",
    ]
    assert lines(a=None) == ["a: expected int, not null"] and lines() == ["a: missing: int"]
    assert lines(a=1, h="mim") == ["h: expected 'min' or 'max', not 'mim'; nearest: min"]


def test_E34_constructors_that_tell_nothing_take_anything(registered):
    @models.register("open")
    class Open(torch.nn.Module):
        def __init__(self, width: int, **rest):
            super().__init__()

    @models.register("empty")
    class Empty(torch.nn.Module):
        pass

    assert checked_lines(PLAIN, model={"name": "open", "args": {"width": 1, "else": 2}}) == []
    assert checked_lines(PLAIN, model={"name": "open", "args": {"width": "1"}}) == [
        "model.args.width: expected int, not '1' (without quotes it is one)"
    ]
    assert checked_lines(PLAIN, model={"name": "empty"}) == []
    assert checked_lines(PLAIN, model={"name": "empty", "args": {"x": 1}}) == [
        "model.args.x: unknown key; allowed: none"
    ]


def test_E34_check_reads_no_data(registered, monkeypatch):
    @datasets.register("explosive")
    class Explosive:
        def __init__(self, path: str):
            raise AssertionError("made")

    spec = {"dataset": {"name": "explosive", "args": {"path": "x"}}, "batch_size": 1}
    assert (
        checked_lines(
            PLAIN,
            train_dataset=spec,
            model={"name": "mlp", "args": {"in_dim": 10**9, "out_dim": 10**9, "hidden_list": []}},
        )
        == []
    )


def test_E34_what_is_no_config_at_all():
    assert [m.message for m in check([])] == ["a configuration is a mapping of keys to values, not a list of 0"]
    assert check({"model": object()})[0].path == "model" and check({1: 2})
    deep = {}
    for _ in range(5000):
        deep = {"model": deep}
    assert "32 deep" in check(deep)[0].message


def test_E34_trainer_params_are_those_of_the_trainer():
    pytest.importorskip("tensorgrad.experiment.trainer")
    value = {
        "data_module": {"name": "mnist"},
        "train_wrapper": {
            "name": "base",
            "args": {
                "model_spec": {"name": "resnet18"},
                "loss_spec": {"name": "mnist_ce"},
                "optim_spec": {"name": "SGD"},
            },
        },
    }
    good = {
        "trainer_params": {"max_epochs": 2, "strategy": "ddp_spawn", "log_every_n_steps": 10},
        "checkpoint": {"every_n_epochs": 1, "monitor": "loss"},
    }
    assert check({**value, **good}) == []
    bad = {"trainer_params": {"max_epoch": 2, "run": "x", "gradient_clip_val": "1"}, "checkpoint": {"mode": "minn"}}
    assert [mistake.path for mistake in check({**value, **bad})] == [
        "trainer_params.max_epoch",
        "trainer_params.run",
        "trainer_params.gradient_clip_val",
        "checkpoint",
    ]
