"""Configurations as YAML: read under limits, changed from the command line, written back.

A text may come from anywhere. A configuration is read as a stream of events, and nothing of it is kept beyond the
limits: SIZE bytes, DEPTH levels, NODES values after aliases are written out. A configuration is made of mappings with
text keys, lists, texts, numbers, truth values and null; tags make nothing. Each mistake has its line, and all that can
be found are told at once.

>>> config = loads("optimizer: {name: SGD, args: {lr: 1e-1}}")
>>> override(config, ["optimizer.args.lr=0.5"])
{'optimizer': {'name': 'SGD', 'args': {'lr': 0.5}}}
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, NamedTuple

from ..messages.escaping import escaped
from ..messages.extras import install

SIZE = 1_000_000  # bytes of a text
DEPTH = 32  # mappings and lists within each other
NODES = 10_000  # values and keys, aliases written out
DIGITS = 400  # characters of a number
MOST = 10**DIGITS
NULL = "null"  # the key under which the spec of a layer has positional arguments, and its text
LONGEST = 80  # characters of a value that a message shows

FLOAT = re.compile(
    r"""[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?
                       |[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|\.(?:inf|Inf|INF))$|\.(?:nan|NaN|NAN)$""",
    re.VERBOSE,
)
PLAIN_KEY = re.compile(r"[^\s.\[\]='\"]+")


class Mistake(NamedTuple):
    """A mistake at a path of a configuration; an empty path means the whole text."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(ValueError):
    """A configuration with mistakes; the message has a line for each.

    >>> print(ConfigError([Mistake("model.args.out_dim", "missing"), Mistake("seed", "not a number")]))
    model.args.out_dim: missing
    seed: not a number
    """

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = [Mistake(escaped(path), escaped(message)) for path, message in mistakes]
        super().__init__(self.mistakes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.mistakes))


def at(path: str, key: Any) -> str:
    """The path of a key, or of an index, below a path.

    >>> at("model.args", "hidden_list"), at("callbacks", 0), at("", "two words")
    ('model.args.hidden_list', 'callbacks[0]', "['two words']")
    """
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not PLAIN_KEY.fullmatch(key):
        return f"{path}[{key[:LONGEST]!r}]"
    return f"{path}.{key[:LONGEST]}" if path else key[:LONGEST]


def shown(value: Any) -> str:
    """A value as messages show it: short, and escaped."""
    if isinstance(value, (Mapping, list, tuple)):
        return f"a {'mapping' if isinstance(value, Mapping) else 'list'} of {len(value)}"
    text = (
        {None: "null", True: "true", False: "false"}.get(value)
        if value is None or isinstance(value, bool)
        else repr(value)
    )
    return escaped(text if text is not None and len(text) <= LONGEST else f"{str(text)[:LONGEST]}…")


# ── reading ───────────────────────────────────────────────────────────────────────────────────
def load(path: Any) -> dict[str, Any]:
    """The configuration in a file of YAML, or of JSON if its name ends in `.json`.

    ConfigError with all mistakes; OSError if the file cannot be read; no more than SIZE bytes are. ImportError without
    PyYAML (the extra `yaml`).
    """
    with open(path, "rb") as file:
        text = file.read(SIZE + 1)
    try:
        return (_loads_json if os.fsdecode(path).endswith(".json") else loads)(text)
    except ConfigError as error:
        error.add_note(f"in {escaped(os.fsdecode(path))}")
        raise


def loads(text: str | bytes) -> dict[str, Any]:
    """The configuration that a YAML text describes. ConfigError with all mistakes, each with its line; an empty text is
    an empty configuration.

    >>> loads("a: 1e-4\\nb: [yes, null, text]")
    {'a': 0.0001, 'b': [True, None, 'text']}
    """
    return _mapping({} if (value := _parse(text)) is None else value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError([Mistake("", f"a configuration is a mapping of keys to values, not {shown(value)}")])
    return value


def _loads_json(text: bytes) -> dict[str, Any]:
    _check_size(text)
    mistakes: list[Mistake] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        mistakes.extend(
            Mistake("", f"the key {shown(key)} occurs twice in a mapping") for key in _repeated(key for key, _ in items)
        )
        return dict(items)

    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        raise ConfigError([Mistake("", f"this is not JSON: {str(error)[:200]}")]) from None
    if mistakes:
        raise ConfigError(mistakes)
    return _mapping(plain(value))


def _repeated(keys: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            yield key
        seen.add(key)


def _check_size(text: str | bytes) -> None:
    if len(text) > SIZE or (
        isinstance(text, str) and not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > SIZE
    ):
        raise ConfigError([Mistake("", f"a configuration has at most {SIZE:,} bytes, and this text has more")])


def _parse(text: str | bytes) -> Any:
    """The value that one YAML document describes."""
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"a configuration is a str or bytes, not {type(text).__name__}")
    _check_size(text)
    yaml = _yaml()
    try:
        reader = _Reader(text)
        value = reader.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        said = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise ConfigError([Mistake("", f"{place}this is not YAML: {said[:300]}")]) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise ConfigError([Mistake("", f"this is not YAML: {' '.join(str(error).split())[:300]}")]) from None
    if reader.mistakes:
        raise ConfigError(reader.mistakes)
    return value


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise ImportError(f"configurations as YAML need PyYAML: {install('yaml')}") from None
    return yaml


@cache
def _loader() -> Any:
    """Return PyYAML's safe loader, changed to read 1e-4 as a number and dates as strings; on libyaml's parser if there
    is one."""
    yaml = _yaml()

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    Loader.yaml_implicit_resolvers = _resolvers(Loader, "float", "timestamp", "value")
    return Loader


def _resolvers(cls: Any, *without: str) -> dict[str, Any]:
    """Return the rules that resolve plain scalars: PyYAML's except those in `without`, and a rule for floats like
    1e-4.
    """
    left_out = {f"tag:yaml.org,2002:{kind}" for kind in without}
    kept = {
        first: [pair for pair in pairs if pair[0] not in left_out]
        for first, pairs in cls.yaml_implicit_resolvers.items()
    }
    for first in "-+0123456789.":
        kept[first] = [*kept.get(first, ()), ("tag:yaml.org,2002:float", FLOAT)]
    return kept


class _Refused(Exception):
    """A text that is not read any further."""


class _Anchored(NamedTuple):
    """The value of an anchor, with its number of nodes and its height, which an alias counts against the limits."""

    value: Any
    nodes: int
    height: int


class _Reader:
    """A pass over the events of a text, which builds its value and counts nodes and levels."""

    def __init__(self, text: str | bytes) -> None:
        self.yaml = _yaml()
        self.loader = _loader()(text)
        self.mistakes: list[Mistake] = []
        self.anchors: dict[str, _Anchored | None] = {}  # None: not complete yet
        self.nodes = self.deepest = 0
        kinds = {kind: kind for kind in ("null", "bool", "int", "float", "str")} | {"merge": "str"}
        self.scalars = {
            f"tag:yaml.org,2002:{kind}": getattr(self.loader, f"construct_yaml_{made}") for kind, made in kinds.items()
        }

    def document(self) -> Any:
        try:
            self.loader.get_event()
            if self.loader.check_event(self.yaml.StreamEndEvent):
                return None
            self.loader.get_event()
            value = self._value(self.loader.get_event(), "", 0)
            self.loader.get_event()
            if not self.loader.check_event(self.yaml.StreamEndEvent):
                self._refuse(
                    "", self.loader.peek_event(), "a configuration is one document, and here a second one begins"
                )
            return value
        except _Refused:
            return None
        finally:
            self.loader.dispose()

    def _mistake(self, path: str, event: Any, message: str) -> None:
        self.mistakes.append(Mistake(path, f"line {event.start_mark.line + 1}: {message}"))

    def _refuse(self, path: str, event: Any, message: str) -> None:
        self._mistake(path, event, message)
        raise _Refused

    def _count(self, path: str, event: Any, nodes: int, depth: int) -> None:
        self.nodes += nodes
        self.deepest = max(self.deepest, depth)
        if self.nodes > NODES:
            self._refuse(path, event, f"a configuration has at most {NODES:,} values, aliases written out")
        if depth > DEPTH:
            self._refuse(path, event, f"a configuration is nested {DEPTH} deep at most")

    def _value(self, event: Any, path: str, depth: int) -> Any:
        """The value that begins with an event; depth: the mappings and lists around it."""
        if isinstance(event, self.yaml.AliasEvent):
            return self._alias(event, path, depth)
        before, outer, self.deepest = self.nodes, self.deepest, depth
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        if isinstance(event, self.yaml.ScalarEvent):
            self._count(path, event, 1, depth)
            value = self._scalar(event, path)
        else:
            self._count(path, event, 1, depth + 1)
            kind = "seq" if isinstance(event, self.yaml.SequenceStartEvent) else "map"
            if event.tag not in (None, "!", f"tag:yaml.org,2002:{kind}"):
                self._mistake(path, event, f"the tag {shown(event.tag)} is refused: a configuration is plain data")
            value = self._sequence(path, depth + 1) if kind == "seq" else self._pairs(path, depth + 1)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(value, self.nodes - before, self.deepest - depth)
        self.deepest = max(outer, self.deepest)
        return value

    def _alias(self, event: Any, path: str, depth: int) -> Any:
        """Return a copy of the anchored value, counted as if it were written out."""
        if event.anchor not in self.anchors:
            self._refuse(path, event, f"the alias {shown('*' + event.anchor)} comes before its anchor")
        anchored = self.anchors[event.anchor]
        if anchored is None:
            self._refuse(path, event, f"the alias {shown('*' + event.anchor)} refers to a value that contains it")
        assert anchored is not None
        self._count(path, event, anchored.nodes, depth + anchored.height)
        return deepcopy(anchored.value)

    def _sequence(self, path: str, depth: int) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := self.loader.get_event(), self.yaml.SequenceEndEvent):
            values.append(self._value(event, f"{path}[{len(values)}]", depth))
        return values

    def _pairs(self, path: str, depth: int) -> dict[str, Any]:
        """Read a mapping; keys merged from `<<` come last and override no key that is written."""
        pairs: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := self.loader.get_event(), self.yaml.MappingEndEvent):
            merge = isinstance(event, self.yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]
            key = event.value if merge else self._value(event, path, depth)
            if key is None and isinstance(event, self.yaml.ScalarEvent) and event.value == "null":
                key = NULL
            if not isinstance(key, str):
                quoted = "" if isinstance(key, (dict, list)) else "; put it in quotes"
                self._mistake(path, event, f"keys are texts, not {shown(key)}{quoted}")
                key = shown(key)
            elif key in pairs:
                self._mistake(at(path, key), event, "the key occurs twice in its mapping")
            value = self._value(self.loader.get_event(), at(path, key), depth)
            if merge:
                self._merge(merged, value, path, event)
            else:
                pairs[key] = value
        return {**merged, **pairs}

    def _merge(self, merged: dict[str, Any], value: Any, path: str, event: Any) -> None:
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, dict):
                self._mistake(path, event, f"'<<' takes a mapping, or a list of them, not {shown(part)}")
            else:
                merged.update({key: held for key, held in part.items() if key not in merged})

    def _scalar(self, event: Any, path: str) -> Any:
        node = self.yaml.ScalarNode(event.tag, event.value)
        tag = (
            event.tag
            if event.tag not in (None, "!")
            else self.loader.resolve(self.yaml.ScalarNode, event.value, event.implicit)
        )
        if tag not in self.scalars:
            self._mistake(path, event, f"the tag {shown(tag)} is refused: a configuration is plain data")
            return None
        if tag.endswith((":int", ":float")) and len(event.value) > DIGITS:
            self._mistake(path, event, f"a number of more than {DIGITS} characters")
            return None
        try:
            value = self.scalars[tag](node)
        except (ValueError, KeyError, TypeError, IndexError):
            self._mistake(path, event, f"{shown(event.value)} is no {tag.rpartition(':')[2]}")
            return None
        if why := _unfit(value):
            self._mistake(path, event, why)
        return value


def _unfit(value: Any) -> str | None:
    """Return the reason why no file can hold a scalar, or None."""
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        return "a text with half a surrogate pair, which no file can hold"
    if isinstance(value, int) and abs(value) >= MOST:
        return f"a number of more than {DIGITS} characters"
    return None


# ── plain data ────────────────────────────────────────────────────────────────────────────────
SCALARS: dict[type, Any] = {type(None): lambda value: None, bool: bool, str: str.__str__, int: int, float: float}


def plain(value: Any) -> Any:
    """A copy of a configuration as plain data: mappings as dict, tuples as lists, numbers of NumPy and 0-d tensors as
    Python's, paths as texts.

    ConfigError for what no file can hold, for keys that are no texts, and beyond the limits of depth and number.
    """
    mistakes: list[Mistake] = []
    copied = _plain(value, "", 0, [0], mistakes)
    if mistakes:
        raise ConfigError(mistakes)
    return copied


def _plain(value: Any, path: str, depth: int, seen: list[int], mistakes: list[Mistake]) -> Any:
    seen[0] += 1
    if seen[0] > NODES or depth > DEPTH:
        limit = f"is nested {DEPTH} deep at most" if depth > DEPTH else f"has at most {NODES:,} values"
        raise ConfigError([*mistakes, Mistake(path, f"a configuration {limit}")])
    for kind, made in SCALARS.items():  # subclasses, too, as enumerations of texts and NumPy's float64 are
        if isinstance(value, kind):
            if why := _unfit(value):
                mistakes.append(Mistake(path, why))
            return made(value)
    if isinstance(value, Mapping):
        result = {}
        for key, part in value.items():
            key = NULL if key is None else key
            if not isinstance(key, str) or _unfit(key):
                mistakes.append(Mistake(path, f"keys are texts that a file can hold, not {shown(key)}"))
            else:
                seen[0] += 1
                result[str.__str__(key)] = _plain(part, at(path, key), depth + 1, seen, mistakes)
        return result
    if isinstance(value, (list, tuple)):
        return [_plain(part, at(path, i), depth + 1, seen, mistakes) for i, part in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if (
        getattr(value, "shape", None) == ()
        and hasattr(value, "item")
        and isinstance(number := value.item(), (bool, int, float, str))
    ):
        return number
    mistakes.append(Mistake(path, f"a {type(value).__name__} is not plain data, so no configuration can hold it"))
    return None


def dump(config: Mapping[str, Any]) -> str:
    """A configuration as YAML, in the order of its keys; `loads` reads the same back.

    >>> print(dump({"seed": 1, "model": {"name": "mlp", "args": {"hidden_list": [4, 5]}}}), end="")
    seed: 1
    model:
      name: mlp
      args:
        hidden_list: [4, 5]
    """
    value = plain(config)
    _mapping(value)
    return _yaml().dump(
        value, Dumper=_dumper(), sort_keys=False, allow_unicode=True, default_flow_style=None, width=120
    )


@cache
def _dumper() -> Any:
    yaml = _yaml()

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

        def represent_str(self, data: str) -> Any:
            """Put strings with line breaks and control characters in double quotes, the only style that keeps them
            all.
            """
            return self.represent_scalar("tag:yaml.org,2002:str", data, None if data.isprintable() else '"')

        def represent_mapping(self, tag: str, mapping: Any, flow_style: Any = None) -> Any:
            return super().represent_mapping(tag, mapping, flow_style=False)

    Dumper.add_representer(str, Dumper.represent_str)
    Dumper.yaml_implicit_resolvers = _resolvers(Dumper)  # quote strings that a reader would take for another type
    return Dumper


# ── changes from the command line ─────────────────────────────────────────────────────────────
STEP = re.compile(r"\.?([^.\[\]=\s]+)|\[(-?\d{1,9})\]")


def override(config: Mapping[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """A copy of a configuration with changes such as `optimizer.args.lr=0.1`, `callbacks[0].name=early-stopping`,
    `model.args.hidden_list=[32, 32]`.

    Values are YAML. Keys that are not there are made, with the mappings above them; `check` finds those that nothing
    knows. An index is one of the list. ConfigError with all mistakes.

    >>> override({"optimizer": {"name": "SGD"}}, ["optimizer.args.lr=1e-3", "seed=7"])
    {'optimizer': {'name': 'SGD', 'args': {'lr': 0.001}}, 'seed': 7}
    """
    changed, mistakes = plain(config), []
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        try:
            if not equals:
                raise ConfigError([Mistake("", f"{shown(assignment)}: a change is written key.key=value")])
            _assign(changed, path.strip(), _override_value(path.strip(), text))
        except ConfigError as error:
            mistakes += error.mistakes
    if mistakes:
        raise ConfigError(mistakes)
    return plain(changed)


def _override_value(path: str, text: str) -> Any:
    try:
        return _parse(text)
    except ConfigError as error:
        raise ConfigError([Mistake(path, mistake.message) for mistake in error.mistakes]) from None


def _steps(path: str) -> list[str | int]:
    """The keys and indices of a path."""
    steps: list[str | int] = []
    position = 0
    while position < len(path):
        match = STEP.match(path, position)
        if match is None or (match[1] and (path[position] == ".") != bool(steps)):
            break
        steps.append(match[1] if match[1] else int(match[2]))
        position = match.end()
    if position < len(path) or not steps or isinstance(steps[0], int):
        raise ConfigError([Mistake("", f"{shown(path)} is no path: one is written key.key[0].key")])
    return steps


def _assign(config: dict[str, Any], path: str, value: Any) -> None:
    steps = _steps(path)
    holder: Any = config
    above = ""
    for step, following in zip(steps, [*steps[1:], None]):
        here = at(above, step)
        if isinstance(step, int):
            if not isinstance(holder, list):
                raise ConfigError([Mistake(above, f"no list, so it has no item [{step}]: {shown(holder)}")])
            if not -len(holder) <= step < len(holder):
                raise ConfigError([Mistake(here, f"the list has {len(holder)} items")])
        elif not isinstance(holder, dict):
            raise ConfigError([Mistake(above, f"no mapping, so it has no key {shown(step)}: {shown(holder)}")])
        if following is None:
            holder[step] = value
            return
        below = holder.get(step) if isinstance(holder, dict) else holder[step]
        if below is None:
            if isinstance(following, int):
                raise ConfigError([Mistake(here, f"is not there, so it has no item [{following}]")])
            below = holder[step] = {}
        holder, above = below, here
