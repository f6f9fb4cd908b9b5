"""Registries: classes by the names that configs use. A name in a config is a key of one of these tables, and never
becomes an import or an attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeVar

from ..messages.escaping import escaped

T = TypeVar("T")
LONGEST = 200  # characters of a name or value that a message shows


class UnknownName(KeyError):
    """A name that no registry has. The message lists the nearest spelling and the registered names."""

    def __str__(self) -> str:
        return str(self.args[0])


def nearest(name: Any, known: Iterable[str]) -> str | None:
    """The known name that comes closest to a misspelled one, or None.

    >>> nearest("resent18", ["mlp", "resnet18"])
    'resnet18'
    """
    lower = {key.lower(): key for key in known}
    found = get_close_matches(str(name)[:LONGEST].lower(), lower, 1)
    return lower[found[0]] if found else None


def alternatives(name: Any, known: Iterable[str], head: str = "allowed") -> str:
    """List the alternatives to an unknown name: the nearest spelling, then all.

    >>> alternatives("lrr", ["lr", "momentum"])
    'nearest: lr; allowed: lr, momentum'
    """
    known = list(known)
    near = nearest(name, known)
    return (f"nearest: {near}; " if near else "") + f"{head}: {', '.join(map(escaped, known)) or 'none'}"


class Registry:
    """Classes by name, of one kind.

    kind: the noun of messages, such as "model"; modules: those whose classes register themselves on import. They are
    imported when a name is first looked up.

    >>> shapes = Registry("shape")
    >>> @shapes.register("square")
    ... class Square:
    ...     def __init__(self, side=1):
    ...         self.side = side
    >>> shapes.make({"name": "square", "args": {"side": 3}}, args={"side": 5}).side
    5
    """

    def __init__(self, kind: str, *modules: str) -> None:
        self.kind, self._modules, self._loaded = kind, modules, False
        self._classes: dict[str, Any] = {}

    def _load(self) -> None:
        """Import the modules that register the built-in classes."""
        if not self._loaded:
            for module in self._modules:
                import_module(module)
            self._loaded = True

    def register(self, name: str, *, replace: bool = False) -> Callable[[T], T]:
        """A decorator that enters a class, or a function that makes an object, under a name, and returns it unchanged.

        ValueError if the name is taken, unless `replace` is true or a class of `__main__` is defined once more, as in a
        notebook.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"register() takes a name, as in @register('my-{self.kind}'), not {_short(name)}")

        def enter(made: T) -> T:
            if getattr(made, "__module__", None) not in self._modules:
                self._load()
            before = self._classes.get(name)
            if before is not None and not replace and not _defined_again(before, made):
                raise ValueError(
                    f"the {self.kind} {_short(name)} is registered already, as {_short(before)}; choose another name, "
                    "or pass replace=True"
                )
            self._classes[name] = made
            return made

        return enter

    def __getitem__(self, name: str) -> Any:
        """The class of a name. UnknownName (a KeyError) lists the registered ones."""
        self._load()
        if not isinstance(name, str) or name not in self._classes:
            raise UnknownName(self.unknown(name))
        return self._classes[name]

    def unknown(self, name: Any) -> str:
        """The message about a name that is not registered."""
        return f"no {self.kind} is called {_short(name)}; {alternatives(name, self.names(), 'registered')}"

    def __contains__(self, name: object) -> bool:
        self._load()
        return isinstance(name, str) and name in self._classes

    def names(self) -> list[str]:
        """The registered names, sorted."""
        self._load()
        return sorted(self._classes)

    def make(
        self,
        spec: Mapping[str, Any],
        args: Mapping[str, Any] | None = None,
        load_sd: bool = False,
        *,
        given: tuple[Any, ...] = (),
    ) -> Any:
        """The object that a spec `{name, args?, sd?}` describes.

        args override a deep copy of the spec's own; load_sd loads the state `sd` of the spec; given: positional
        arguments of the constructor, which no spec can hold. UnknownName for a name that is not registered, TypeError
        for a spec of another form, KeyError for a missing `sd`.
        """
        if not isinstance(spec, Mapping) or "name" not in spec:
            raise TypeError(f"a {self.kind} is specified as {{'name': …, 'args': {{…}}}}, not by {_short(spec)}")
        name, own = spec["name"], {} if spec.get("args") is None else spec["args"]
        if not isinstance(own, Mapping):
            raise TypeError(f"the args of the {self.kind} {_short(name)} are a mapping of keywords, not {_short(own)}")
        if load_sd and "sd" not in spec:
            raise KeyError(f"the spec of the {self.kind} {_short(name)} has no state 'sd' to load")
        constructor, own = self[name], {**deepcopy(dict(own)), **(args or {})}
        try:
            made = constructor(*given, **own)
        except Exception as error:
            error.add_note(f"while making the {self.kind} {_short(name)} with args {_short(own)}")
            raise
        if load_sd:
            made.load_state_dict(spec["sd"])
        return made

    def __repr__(self) -> str:
        return f"<Registry of {len(self._classes)} {self.kind}s>"


def _short(value: Any) -> str:
    """A value in a message, escaped, and cut where it is long."""
    text = repr(value)
    return escaped(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def _defined_again(before: Any, now: Any) -> bool:
    """Return True if `now` redefines a class of `__main__`, as a notebook cell that runs again does."""
    places = {(getattr(made, "__module__", None), getattr(made, "__qualname__", None)) for made in (before, now)}
    return before is now or (len(places) == 1 and places.pop()[0] == "__main__")
