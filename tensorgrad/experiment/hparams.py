"""Hyper-parameters: the arguments that a module or a data module was made with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from types import FrameType
from typing import Any

from .. import api as tg

__all__ = ["AttributeDict", "HasHyperparameters", "plain"]


class AttributeDict(dict):  # type: ignore[type-arg]
    """A dict whose values are attributes, too.

    >>> AttributeDict(lr=0.1).lr
    0.1
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"no hyper-parameter {name!r}; there are: {', '.join(map(str, self)) or 'none'}"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class HasHyperparameters:
    """Keeps the arguments of its constructor: `hparams`, which checkpoints and `hparams.yaml` keep, too."""

    def save_hyperparameters(
        self, *names: Any, ignore: Any = (), frame: FrameType | None = None, logger: bool = True
    ) -> None:
        """Keep the arguments of `__init__`, from which it is called: all of them, or those with these names; or a
        mapping that is given.

        >>> from tensorgrad.experiment import Module
        >>> class Net(Module):
        ...     def __init__(self, width, depth=2):
        ...         super().__init__()
        ...         self.save_hyperparameters()
        >>> Net(5).hparams
        {'width': 5, 'depth': 2}
        """
        if len(names) == 1 and isinstance(names[0], Mapping):
            found = dict(names[0])
        elif len(names) == 1 and not isinstance(names[0], str):
            found = dict(vars(names[0]))
        else:
            found = _arguments(self, frame or inspect.currentframe().f_back)  # type: ignore[union-attr]
            if missing := [name for name in names if name not in found]:
                raise ValueError(
                    f"save_hyperparameters: __init__ has no argument {', '.join(map(repr, missing))}; "
                    f"it has {', '.join(found)}"
                )
            found = {name: value for name, value in found.items() if not names or name in names}
        left_out = (ignore,) if isinstance(ignore, str) else tuple(ignore)
        self.hparams.update({name: _copied(value) for name, value in found.items() if name not in left_out})
        self.__dict__["_log_hparams"] = logger

    @property
    def hparams(self) -> AttributeDict:
        """The saved hyper-parameters, by key and by attribute."""
        return self.__dict__.setdefault("_hparams", AttributeDict())  # type: ignore[no-any-return]


def _arguments(owner: Any, frame: FrameType | None) -> dict[str, Any]:
    """Return the arguments of the constructors now running on `owner`, from the innermost frame outwards."""
    found: dict[str, Any] = {}
    while frame is not None and frame.f_code.co_name == "__init__":
        names, _, others, values = inspect.getargvalues(frame)
        if not names or values.get(names[0]) is not owner:
            break
        found.update({name: values[name] for name in names[1:] if name in values})
        if others is not None:
            found.update(values[others])
            found.pop(others, None)
        frame = frame.f_back
    return found


def _copied(value: Any) -> Any:
    return deepcopy(value) if isinstance(value, (dict, list, tuple, set)) else value


def plain(value: Any) -> tuple[bool, Any]:
    """Return (fits, plain value).

    `fits` is True if files can hold the value: numbers, strings, None, tensors, paths, lists and mappings of those.
    """
    if value is None or isinstance(value, (bool, int, float, str, tg.Tensor)):
        return True, value
    if isinstance(value, Path):
        return True, str(value)
    if isinstance(value, (list, tuple)):
        parts = [plain(part) for part in value]
        return all(fine for fine, _ in parts), type(value)(part for _, part in parts) if type(value) in (
            list,
            tuple,
        ) else [p for _, p in parts]
    if isinstance(value, Mapping):
        items = [(key, *plain(part)) for key, part in value.items()]
        return all(fine and isinstance(key, (str, int)) for key, fine, _ in items), {
            key: part for key, _, part in items
        }
    return False, None


def kept(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hyper-parameters that files can hold, as plain data."""
    found = {name: plain(value) for name, value in hparams.items()}
    return {name: value for name, (fine, value) in found.items() if fine}
