"""Deferred calls: a target with arguments that contain nodes at any depth."""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..graph.nesting import leaves, mapped
from ..graph.targets import OPERATORS, SIGNS, Unpack
from ..nn import Module

LAYERS = {operator.add: "AddOpLayer", operator.sub: "SubOpLayer", operator.mul: "MulOpLayer",
          operator.mod: "ModOpLayer", operator.matmul: "MatmulOpLayer"}


@dataclass(frozen=True)
class Method:
    """Calls a method of its first argument."""

    name: str

    def __call__(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(owner, self.name)(*args, **kwargs)


@dataclass(frozen=True)
class Attribute:
    """Reads an attribute of its argument."""

    name: str

    def __call__(self, owner: Any) -> Any:
        return getattr(owner, self.name)


@dataclass(frozen=True)
class Call:
    """`target(*args, **kwargs)`, not yet done."""

    target: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def leaves(self) -> Iterator[Any]:
        """Yield the leaves of the arguments, from left to right."""
        for value in (*self.args, *self.kwargs.values()):
            yield from leaves(value)

    def filled(self, function: Callable[[Any], Any]) -> Call:
        """Return the call with `function(leaf)` in place of each leaf."""
        return Call(self.target, tuple([mapped(function, a) for a in self.args]),
                    {k: mapped(function, v) for k, v in self.kwargs.items()})

    def run(self) -> Any:
        return self.target(*self.args, **self.kwargs)

    def modules(self) -> list[Module]:
        """Return the modules among the target and the arguments."""
        return [m for m in (self.target, *self.leaves()) if isinstance(m, Module)]

    def title(self) -> str:
        """Return the step's name in summaries and pictures."""
        target = self.target
        if isinstance(target, Module):
            return str(target._get_name()).replace(".", "_")
        if isinstance(target, Attribute):
            return f"GetAttr({target.name})"
        if isinstance(target, Method):
            return target.name
        if isinstance(target, Unpack):
            return "UnpackLayer"
        if target is operator.getitem:
            return "SliceLayer"
        if target in LAYERS:
            return LAYERS[target]
        name = str(getattr(target, "__name__", type(target).__name__)).replace(".", "_")
        if isinstance(owner := getattr(target, "__self__", None), type):            # Square.apply
            name = f"{owner.__name__}_{name}"
        own = (target in OPERATORS or target in SIGNS
               or (getattr(target, "__module__", None) or "").startswith("tensorgrad"))
        return name if own else f"wrap({name})"
