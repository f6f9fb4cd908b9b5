"""Modules of settings, such as `torch._dynamo.config`: programs set their names, for good or for a block."""
from __future__ import annotations

import copy
import pickle
from contextlib import ContextDecorator
from types import ModuleType
from typing import Any

__all__ = ["ConfigModule", "Group", "install_config_module"]


class Group:
    """Settings under one name, as `config.triton.cudagraphs` is."""

    def __init__(self, **settings: Any) -> None:
        vars(self).update(settings)


class Patch(ContextDecorator):
    """Changes of settings that hold in a `with` block, or while a decorated function runs."""

    def __init__(self, module: ConfigModule, changes: dict[str, Any]) -> None:
        self.module, self.changes = module, changes

    def _recreate_cm(self) -> Patch:        # each call of a decorated function has its own settings to return to
        return Patch(self.module, self.changes)

    def __enter__(self) -> None:
        self.before = {name: self.module._find(name) for name in self.changes}
        self.module._change(self.changes)

    def __exit__(self, *exception: object) -> None:
        self.module._change(self.before)


class ConfigModule(ModuleType):
    """A module whose public names are settings; a dotted name is a setting in a group.

    `_aliases` of the module holds {older name: name}.
    """

    def __getattr__(self, name: str) -> Any:
        aliases: dict[str, str] = vars(self).get("_aliases", {})
        if name in aliases:
            return getattr(self, aliases[name])
        raise AttributeError(f"{self.__name__.replace('tensorgrad.', 'torch.', 1)}.{name} does not exist")

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(vars(self).get("_aliases", {}).get(name, name), value)

    def _find(self, name: str) -> Any:
        found: Any = self
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def _change(self, changes: dict[str, Any]) -> None:
        for name, value in changes.items():
            group, _, last = name.rpartition(".")
            setattr(self._find(group) if group else self, last, value)

    def patch(self, arg1: str | dict[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> Patch:
        """Return a context manager and decorator that changes settings and puts them back.

        >>> import tensorgrad as torch
        >>> with torch._dynamo.config.patch(recompile_limit=3):
        ...     torch._dynamo.config.recompile_limit
        3
        """
        return Patch(self, {arg1: arg2} if isinstance(arg1, str) else {**(arg1 or {}), **kwargs})

    def get_config_copy(self) -> dict[str, Any]:
        """Return {name: value} of all settings, groups' under dotted names; values are copies."""
        flat: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Group):
                flat.update({f"{name}.{inner}": held for inner, held in vars(value).items()})
            elif not name.startswith("_") and not isinstance(value, (ModuleType, type)):
                flat[name] = value
        return copy.deepcopy(flat)

    to_dict = shallow_copy_dict = get_config_copy

    def save_config(self) -> bytes:
        """Return the settings as bytes for `load_config`."""
        return pickle.dumps(self.get_config_copy(), protocol=2)

    def load_config(self, maybe_pickled_config: bytes | dict[str, Any]) -> None:
        """Take the settings that `save_config` or `get_config_copy` returned."""
        held = maybe_pickled_config
        self._change(held if isinstance(held, dict) else pickle.loads(held))


def install_config_module(module: ModuleType) -> None:
    """Make a module of settings out of a module that has been read: `sys.modules[__name__]`, on its last line."""
    module.__class__ = ConfigModule
