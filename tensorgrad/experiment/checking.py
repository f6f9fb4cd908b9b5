"""All mistakes of a configuration at once, before anything is made or read.

A configuration describes a *plain* run (it has `model`) or a *trainer's* (it has `train_wrapper`). Each of its mappings
has a table of fields: those of the top level and of loaders are written here, those of `args` are the
parameters of the registered class, by name, annotation and default.

>>> for mistake in check({"model": {"name": "mpl"}, "train_dataset": {"dataset": {"name": "mnist-ds"}, "batch_sise": 8},
...                       "loss": {"name": "mse"}, "optimizer": {"name": "SGD", "args": {"lr": "fast"}}, "epoch_max": 0}):
...     print(mistake.path)
model.name
train_dataset.batch_sise
optimizer.args.lr
epoch_max
"""  # noqa: E501

from __future__ import annotations

import inspect
import os
import types
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from .. import api as tg
from .. import nn, optim
from .config import ConfigError, Mistake, at, plain, shown
from .registry import Registry, alternatives, nearest
from .schedules import make_lr_scheduler, make_optimizer


class Spec(NamedTuple):
    """Marks an annotated parameter, `Annotated[dict, Spec("model")]`, as the spec of a registered class.

    Kind `any`: the name may be in any registry. needs: a method that the class must have.
    """

    kind: str
    needs: str = ""


class Least(NamedTuple):
    """The smallest number that an annotated parameter takes."""

    number: float


class Given(NamedTuple):
    """Marks a key that a configuration must not have, and says why."""

    why: str


class Field(NamedTuple):
    """The constraints on the value of a key: its annotation, and if it is required or may be null."""

    annotation: Any = Any
    required: bool = False
    nullable: bool = False


Fields = dict[str, Field]
MODEL, LOSS, OPTIMIZER = (Annotated[dict, Spec(kind)] for kind in ("model", "loss", "optimizer"))
DATASET, DATA_MODULE = Annotated[dict, Spec("dataset")], Annotated[dict, Spec("dataset", "train_dataloader")]
WRAPPER = Annotated[dict, Spec("model", "training_step")]
SCHEDULER = Annotated[dict, Spec("scheduler")] | None
CALLBACKS = list[Annotated[dict, Spec("callback")]] | None
COUNT = Annotated[int, Least(1)]


@dataclass(frozen=True, eq=False)
class Section:
    """Marks a mapping with the fields of a table; or with those that a constructor takes, but for keys that the run
    gives, and the reasons.

    machine: keywords whose values depend on the machine, which may be another one.
    """

    fields: Fields | None = None
    module: str = ""
    name: str = ""
    given: Mapping[str, str] = field(default_factory=dict)
    machine: tuple[str, ...] = ()


LOADER = Annotated[
    dict,
    Section(
        {
            "dataset": Field(DATASET, True),
            "batch_size": Field(COUNT, True),
            "shuffle": Field(bool),
            "num_workers": Field(Annotated[int, Least(0)]),
            "drop_last": Field(bool),
        }
    ),
]
PARAMS = Annotated[
    dict,
    Section(
        module=".trainer",
        name="Trainer",
        machine=("accelerator", "devices", "strategy", "process_group_backend"),
        given={
            "run": "the run is the one that reads this configuration",
            "callbacks": "they are listed under `callbacks`, at the top of the configuration",
        },
    ),
]
CHECKPOINT = Annotated[
    dict,
    Section(
        module=".callbacks", name="ModelCheckpoint", given={"dirpath": "checkpoints go to the directory of the run"}
    ),
]


EVERY: Fields = {
    "seed": Field(Annotated[int, Least(0)] | None),
    "callbacks": Field(CALLBACKS),
    "cmd_args": Field(dict | None),
    "resume": Field(str | None),
}
PLAIN: Fields = {
    "train_dataset": Field(LOADER, True),
    "val_dataset": Field(LOADER | None),
    "model": Field(MODEL, True),
    "loss": Field(LOSS, True),
    "optimizer": Field(OPTIMIZER, True),
    "scheduler": Field(SCHEDULER),
    "epoch_max": Field(COUNT, True),
    "epoch_val": Field(COUNT | None),
    "epoch_save": Field(COUNT | None),
    "step_save": Field(COUNT | None),
    "run_step": Field(bool),
    "load_optimizer": Field(bool),
    **EVERY,
}
TRAINER: Fields = {
    "data_module": Field(DATA_MODULE, True),
    "train_wrapper": Field(WRAPPER, True),
    "trainer_params": Field(PARAMS | None),
    "checkpoint": Field(CHECKPOINT | None),
    **EVERY,
}

# Keys of a spec beside name and args: the state that checkpoints add, and when a trainer steps a schedule.
SPEC_KEYS: dict[str, Fields] = {
    "scheduler": {"interval": Field(Literal["step", "epoch"]), "frequency": Field(COUNT), "monitor": Field(str)}
}
# The kind of a spec by words in the name of the parameter that takes it.
KIND_OF_WORD = {
    "model": "model",
    "loss": "loss",
    "optim": "optimizer",
    "optimizer": "optimizer",
    "scheduler": "scheduler",
    "dataset": "dataset",
    "data": "dataset",
    "callback": "callback",
}
PARTS_OF_SCHEDULES = {
    "schedulers": list[Annotated[dict, Spec("scheduler")]],
    "lr_lambda": Annotated[dict, Spec("lr_lambda")] | list[Annotated[dict, Spec("lr_lambda")]],
}
OTHERS = "**"  # the field of a constructor that takes any keyword


def registries() -> dict[str, Registry]:
    """Return the registry of each kind of spec."""
    from . import callbacks, datasets, losses, models, schedules

    return {
        "model": models.registry,
        "dataset": datasets.registry,
        "loss": losses.registry,
        "callback": callbacks.registry,
        "optimizer": schedules.optimizers,
        "scheduler": schedules.schedulers,
        "lr_lambda": schedules.lr_lambdas,
    }


def form(config: Mapping[str, Any]) -> str:
    """Return the form that a configuration has, or comes closest to: `plain` or `trainer`."""
    known = {
        name: sum(key in config for key in fields.keys() - EVERY.keys())
        for name, fields in (("plain", PLAIN), ("trainer", TRAINER))
    }
    if "train_wrapper" in config or "model" in config:
        return "trainer" if "train_wrapper" in config else "plain"
    return max(known, key=lambda name: known[name])


def check(config: Any) -> list[Mistake]:
    """All mistakes of a configuration: keys that nothing knows, with the nearest spelling, missing ones, names that are
    not registered, values of the wrong type, and what optimizers and schedules refuse. None of its data is read.

    >>> config = {"train_dataset": {"dataset": {"name": "mnist-ds"}, "batch_size": 8}, "loss": {"name": "mnist_ce"},
    ...           "optimizer": {"name": "SGD"}, "epoch_max": 1, "model": {"name": "resnet18", "args": {"num_clases": 10}}}
    >>> print(*check(config))
    model.args.num_clases: unknown key; nearest: num_classes; allowed: num_classes
    """  # noqa: E501
    if not isinstance(config, Mapping):
        return [Mistake("", f"a configuration is a mapping of keys to values, not {shown(config)}")]
    try:
        config = plain(config)
    except ConfigError as error:
        return error.mistakes
    checker = _Checker()
    checker.mapping(config, TRAINER if form(config) == "trainer" else PLAIN, "")
    return checker.mistakes


def checked(config: Any) -> Any:
    """Return the configuration if it has no mistake, else raise ConfigError with all of them."""
    if mistakes := check(config):
        raise ConfigError(mistakes)
    return config


# ── fields of signatures ──────────────────────────────────────────────────────────────────────
def fields_of(made: Any, skip: int = 0, by_default: bool = False) -> Fields:
    """Return the fields that stand for a constructor's parameters after the first `skip`.

    OTHERS is among them if the constructor takes any keyword or has no signature.
    by_default: True restricts an unannotated parameter to values of its default's type.
    """
    if getattr(made, "__init__", None) is nn.Module.__init__:
        return {}
    try:
        parameters = list(inspect.signature(made).parameters.values())[skip:]
    except (TypeError, ValueError):
        return {OTHERS: Field()}
    hints = _hints(made)
    fields = {}
    for p in parameters:
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            annotation = hints.get(p.name, Any)
            if p.name.endswith(("_spec", "_specs")):
                annotation = _spec_annotation(p, annotation)
            elif annotation is Any and by_default:
                annotation = _type_of_default(p.default)
            fields[p.name] = Field(annotation, p.default is p.empty, p.default is None)
        elif p.kind is p.VAR_KEYWORD:
            fields[OTHERS] = Field()
    return fields


def _hints(made: Any) -> dict[str, Any]:
    """Return the annotations of a constructor's parameters, without those that cannot be evaluated."""
    function = made.__init__ if isinstance(made, type) else made
    function = inspect.unwrap(getattr(function, "__func__", function))
    space = getattr(function, "__globals__", {})
    hints = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, space)  # the source of a class, never a config
            except Exception:
                continue
        hints[name] = annotation
    return hints


def _spec_annotation(parameter: inspect.Parameter, annotation: Any) -> Any:
    """Return the annotation of a parameter `KIND_spec` (a spec of that kind) or `KIND_specs` (a list of specs)."""
    if "Spec(" in str(annotation):
        return annotation
    words = parameter.name.lower().split("_")[:-1]
    kind = next((KIND_OF_WORD[word] for word in reversed(words) if word in KIND_OF_WORD), "any")
    marked = Annotated[dict, Spec(kind)]
    return list[marked] if parameter.name.endswith("s") else marked  # type: ignore[valid-type]


def _type_of_default(default: Any) -> Any:
    if isinstance(default, (int, float)):
        return type(default) if isinstance(default, bool) else float
    if isinstance(default, str):
        return str
    return list if isinstance(default, (tuple, list)) else Any


# ── values ────────────────────────────────────────────────────────────────────────────────────
class _Checker:
    """A pass over a configuration that collects mistakes."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []
        self.registries = registries()

    def say(self, path: str, message: str) -> None:
        self.mistakes.append(Mistake(path, message))

    def mapping(self, value: Mapping[Any, Any], fields: Fields, path: str) -> None:
        """Check a mapping against its fields, in the order of its keys."""
        missing = [key for key in fields if fields[key].required and key not in value]
        for key, part in value.items():
            if not isinstance(key, str):
                self.say(path, f"keys are texts, not {shown(key)}")
            elif key in fields:
                if part is not None or not fields[key].nullable:
                    self.value(part, fields[key].annotation, at(path, key))
            elif OTHERS not in fields:
                allowed = [name for name in fields if not isinstance(fields[name].annotation, Given)]
                meant = nearest(key, [name for name in allowed if name not in value])
                if meant in missing:
                    missing.remove(meant)
                self.say(at(path, key), f"unknown key; {alternatives(key, allowed)}")
        for key in missing:
            self.say(at(path, key), f"missing: {described(fields[key].annotation)}")

    def value(self, value: Any, annotation: Any, path: str) -> None:
        """Check a value against an annotation."""
        if isinstance(annotation, Given):
            return self.say(path, f"not allowed: {annotation.why}")
        if get_origin(annotation) is Annotated:
            return self._marked(value, annotation, path)
        choices = _choices(annotation)
        if len(choices) > 1:
            if value is None and types.NoneType in choices:
                return None
            fitting = [choice for choice in choices if choice is not types.NoneType and _fits(value, choice)]
            if not fitting:
                return self.say(path, _expected(annotation, value))
            return self.value(value, fitting[0], path)  # its parts are checked, too
        if not _fits(value, annotation):
            return self.say(path, _expected(annotation, value))
        return self._parts(value, annotation, path)

    def _parts(self, value: Any, annotation: Any, path: str) -> None:
        """Check the items of a list or of a mapping against their annotation."""
        inner = get_args(annotation)
        if isinstance(value, (list, tuple)) and inner:
            fixed = get_origin(annotation) is tuple and inner[-1] is not Ellipsis
            if fixed and len(inner) != len(value):
                return self.say(path, f"expected a list of {len(inner)}, not {shown(value)}")
            for i, part in enumerate(value):
                self.value(part, inner[i] if fixed else inner[0], at(path, i))
        elif isinstance(value, Mapping) and len(inner) == 2:
            for key, part in value.items():
                self.value(part, inner[1], at(path, key))
        return None

    def _marked(self, value: Any, annotation: Any, path: str) -> None:
        """Check a value against an annotation with marks: a spec, a section, a least number."""
        base, *marks = get_args(annotation)
        before = len(self.mistakes)
        for mark in marks:
            if isinstance(mark, Spec):
                return self.spec(value, mark, path)
        self.value(value, base, path)
        for mark in marks:
            if len(self.mistakes) > before:
                return None
            if isinstance(mark, Section):
                self._section(value, mark, path)
            elif isinstance(mark, Least) and value < mark.number:
                self.say(path, f"expected at least {mark.number}, not {shown(value)}")
        return None

    def _section(self, value: Mapping[str, Any], mark: Section, path: str) -> None:
        """Check a mapping against a table, or against a constructor, which may refuse its values."""
        if mark.fields is not None:
            return self.mapping(value, mark.fields, path)
        before = len(self.mistakes)
        made = getattr(import_module(mark.module, __package__), mark.name)
        self.mapping(value, fields_of(made) | {key: Field(Given(why)) for key, why in mark.given.items()}, path)
        if len(self.mistakes) == before:
            self._tried(
                lambda: made(**{key: part for key, part in value.items() if key not in mark.machine}), mark.name, path
            )
        return None

    # ── specs ─────────────────────────────────────────────────────────────────────────────────
    def spec(self, value: Any, mark: Spec, path: str) -> None:
        """Check a spec {name, args} of a kind, and its args against the signature of the named class."""
        if not isinstance(value, Mapping):
            return self.say(path, f"expected {_noun(mark.kind)} {{name, args}}, not {shown(value)}")
        before = len(self.mistakes)
        fields = {
            "name": Field(str, True),
            "args": Field(dict | None),
            "sd": Field(Any),
            **SPEC_KEYS.get(mark.kind, {}),
        }
        self.mapping(value, fields, path)
        name = value.get("name")
        if len(self.mistakes) > before and not isinstance(name, str):
            return None
        kind, registry = self._registry(mark.kind, name)
        if name not in registry:
            return self.say(at(path, "name"), registry.unknown(name))
        if mark.needs and isinstance(registry[name], type) and not hasattr(registry[name], mark.needs):
            fit = [other for other in registry.names() if hasattr(registry[other], mark.needs)]
            return self.say(at(path, "name"), f"{name} has no {mark.needs}(); {alternatives(name, fit)}")
        args = {} if value.get("args") is None else value["args"]
        if not isinstance(args, Mapping):
            return None
        self._args(args, kind, registry[name], at(path, "args"), whole=len(self.mistakes) == before and (value, name))
        return None

    def _registry(self, kind: str, name: Any) -> tuple[str, Registry]:
        """Return the registry of a kind; for `any`, the registry that has the name."""
        if kind != "any":
            return kind, self.registries[kind]
        for found, registry in self.registries.items():
            if name in registry:
                return found, registry
        return "model", self.registries["model"]

    def _args(self, args: Mapping[str, Any], kind: str, made: Any, path: str, whole: Any) -> None:
        """Check the args of a spec; `whole`: the spec and its name, if it has no mistake so far."""
        before = len(self.mistakes)
        known = kind in ("optimizer", "scheduler")
        fields = fields_of(made, skip=int(known), by_default=known)
        if kind == "scheduler":
            fields.pop("optimizer", None)
            for name, annotation in PARTS_OF_SCHEDULES.items():
                if name in inspect.signature(made).parameters:
                    fields[name] = Field(annotation, True)
        self.mapping(args, fields, path)
        if known and whole and len(self.mistakes) == before:
            spec, name = whole
            parameters = [nn.Parameter(tg.zeros(1, 1))]
            self._tried(
                lambda: (
                    make_optimizer(parameters, spec)
                    if kind == "optimizer"
                    else make_lr_scheduler(optim.SGD(parameters, lr=1.0, momentum=0.9), spec)
                ),
                name,
                path,
            )

    def _tried(self, make: Callable[[], Any], name: str, path: str) -> None:
        """Construct a small object (an optimizer of one number, say) to learn which values its constructor refuses."""
        try:
            with warnings.catch_warnings(action="ignore"):
                make()
        except Exception as error:  # a constructor may raise anything
            reason = str(error).partition("\n")[0] or "without a reason"
            self.say(path, f"{name} refuses them: {type(error).__name__}: {reason}")


def _choices(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _fits(value: Any, annotation: Any) -> bool:
    """Return True if a value is of an annotation's type, or the type cannot be checked; items are not checked."""
    origin = get_origin(annotation) or annotation
    if origin is Annotated:
        return _fits(value, get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return any(_fits(value, choice) for choice in get_args(annotation))
    if origin is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(annotation))
    if origin in (None, types.NoneType):
        return value is None
    if not isinstance(origin, type):
        return True
    if origin is bool:
        return isinstance(value, bool)
    if origin in (int, float):
        return isinstance(value, (int, origin)) and not isinstance(value, bool)
    if origin is str or issubclass(origin, os.PathLike):
        return isinstance(value, str)
    if issubclass(origin, Mapping) or origin is Mapping:
        return isinstance(value, Mapping)
    if issubclass(origin, (Sequence, set, frozenset)) or origin is Iterable:
        return isinstance(value, (list, tuple))
    return True


def _noun(kind: str) -> str:
    return {"any": "spec", "lr_lambda": "function of the epoch"}.get(kind, kind)


def described(annotation: Any) -> str:
    """Describe an annotation in words.

    >>> described(list[int] | None), described(Literal["min", "max"]), described(Annotated[dict, Spec("model")])
    ('list of int, or null', "'min' or 'max'", 'model {name, args}')
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        for mark in inner[1:]:
            if isinstance(mark, Spec):
                return f"{_noun(mark.kind)} {{name, args}}"
            if isinstance(mark, Least):
                return f"{described(inner[0])}, at least {mark.number}"
        return described(inner[0])
    if origin in (Union, types.UnionType):
        return ", or ".join([described(choice) for choice in inner])
    if origin is Literal:
        return " or ".join(map(shown, inner))
    if annotation in (None, types.NoneType):
        return "null"
    if annotation is Any or not isinstance(origin or annotation, type):
        return "any value"
    kind = origin or annotation
    if issubclass(kind, Mapping):
        return "mapping"
    if issubclass(kind, os.PathLike):
        return "path"
    if issubclass(kind, (Sequence, Iterable)) and kind is not str:
        return "list" + (f" of {described(inner[0])}" if inner else "")
    return {bool: "true or false", float: "number", str: "text"}.get(kind, kind.__name__)


def _expected(annotation: Any, value: Any) -> str:
    """Return the message that names the expected type and the value found, with a hint if there is one."""
    help_text = ""
    if isinstance(value, str):
        if (
            any(choice in (int, float, bool) for choice in _choices(annotation))
            and value.strip().lower().replace(".", "").lstrip("-+").isdigit()
        ):
            help_text = " (without quotes it is one)"
        elif get_origin(annotation) is Literal and (
            near := nearest(value, filter(lambda c: isinstance(c, str), get_args(annotation)))
        ):
            help_text = f"; nearest: {near}"
    return f"expected {described(annotation)}, not {shown(value)}{help_text}"
