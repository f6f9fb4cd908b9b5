"""Runs of modules without side effects: buffers and random generators are as they were, the tape records nothing."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CellType
from typing import Any

from .. import api as tg
from ..core.mode import mode
from ..generator import Generator
from ..nn.modules.module import Module
from ..nn.parameter import is_lazy
from .fake_tensors import is_fake
from .nesting import leaves

__all__ = ["quietly"]


@contextmanager
def quietly(*modules: Any) -> Iterator[None]:
    """A context manager in which running these modules has no side effects: buffers and random generators are kept, the
    tape records nothing.

    Writes of fake tensors to tensors with values are dropped.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic.fake_tensors import fake
    >>> from tensorgrad.symbolic.side_effects import quietly
    >>> norm = torch.nn.BatchNorm1d(3)
    >>> with quietly(norm):
    ...     shape = norm(fake((None, 3))).shape
    >>> shape, norm.num_batches_tracked
    (torch.Size([2, 3]), tensor(0))
    """
    kept = [Kept(part) for part in {id(part): part for each in modules for module in behind(each)
                                    for part in module.modules()}.values()]
    before, mode.quiet = mode.quiet, mode.quiet or Generator()
    try:
        with tg.no_grad():
            yield
    finally:
        mode.quiet = before
        for each in kept:
            each.restore()


def behind(function: Any) -> list[Any]:
    """Return the modules that a call may run: the function itself, the owner of the method, modules in its closure."""
    if isinstance(function, Module):
        return [function]
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if cell != CellType()]
    return [m for m in (getattr(function, "__self__", None), getattr(function, "func", None), *cells)
            if isinstance(m, Module)]


class Kept:
    """Saves a module's state that a run may change, to restore it: values of buffers, attributes that fake tensors may
    replace."""

    __slots__ = ("module", "buffers", "attributes")

    def __init__(self, module: Any) -> None:
        self.module = module
        self.buffers = [(name, b, None if b is None or is_lazy(b) else Contents(b))
                        for name, b in module._buffers.items()]
        self.attributes = dict(module.__dict__)

    def restore(self) -> None:
        for name, buffer, contents in self.buffers:
            if contents is not None:
                contents.restore()
                self.module._buffers[name] = buffer
        for held, before in ((self.module.__dict__, self.attributes), (self.module._parameters, {}),
                             (self.module._buffers, {})):
            for name in [name for name, value in held.items() if any(map(is_fake, leaves(value)))]:
                if name in before:
                    held[name] = before[name]
                else:
                    del held[name]


DATES = "written", "rebased", "version", "dates"


class Contents:
    """Saves a tensor's values and its storage's version counters, to restore them."""

    __slots__ = ("tensor", "array", "storage", "values", "dates")

    def __init__(self, tensor: Any) -> None:
        self.tensor, self.array, self.storage = tensor, tensor.array, tensor._storage
        self.values, self.dates = tensor.array.copy(), {name: getattr(tensor._storage, name) for name in DATES}

    def restore(self) -> None:
        """Restore the values and counters, if there was a write."""
        self.tensor.array, self.tensor._storage = self.array, self.storage
        if self.storage.version != self.dates["version"]:
            self.storage.assign(self.array, self.values)
            for name, date in self.dates.items():
                setattr(self.storage, name, date)
