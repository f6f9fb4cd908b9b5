"""Blank tensors, which have a shape and a dtype but no values, and the shapes of results inferred from them.

None is an unknown size, such as the batch's. A function runs in two worlds that give unknown sizes different values: a
size of the result that differs between the worlds is unknown, too.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CellType
from typing import Any

from .. import api as tg
from ..api.creation import shape_of
from ..core.dispatch import fresh
from ..core.mode import mode
from ..core.tape import TensorBase
from ..dtype import as_dtype, get_default_dtype
from ..generator import Generator
from ..interpret.symbols import NoValues, Symbol, SymbolStorage
from ..nn.modules.module import Module
from ..nn.parameter import is_lazy
from .nesting import leaves, mapped

__all__ = ["SIZES", "NoValues", "blank", "blank_like", "infer", "is_blank", "merge", "quietly"]

SIZES = 2, 4, 1         # the values of unknown sizes in the worlds: even, for code that halves them; above one, for statistics over a batch; 1 as the
#                         third, because it broadcasts with any size, such as in a sum with eight rows


def blank(shape: Any, dtype: Any = None, world: int = 0) -> Any:
    """Return a blank tensor; unknown sizes take the world's value.

    >>> from tensorgrad.symbolic.blank import blank
    >>> image = blank((None, 3, 8, 8))
    >>> (image.mean((2, 3)) @ blank((3, 5))).shape
    torch.Size([2, 5])
    """
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    return fresh(Symbol(shape_of(([SIZES[world] if n is None else n for n in shape],)), kind.numpy), SymbolStorage)


def is_blank(value: Any) -> bool:
    """Return True for a blank tensor."""
    return isinstance(value, TensorBase) and value._storage.hollow and type(value._storage) is SymbolStorage


def blank_like(tree: Any) -> Any:
    """Return the nest of lists, tuples and dicts with each tensor replaced by a blank one of its shape and dtype.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic.blank import blank_like
    >>> blank_like({"x": [torch.ones(2, 3), 7]})
    {'x': [tensor(..., size=(2, 3)), 7]}
    """
    return mapped(lambda leaf: blank(leaf.shape, leaf.dtype) if isinstance(leaf, TensorBase) and not is_blank(leaf) else leaf, tree)


# ── without a trace ───────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def quietly(*modules: Any) -> Iterator[None]:
    """A context manager in which running these modules has no side effects: buffers and random generators are kept, the
    tape records nothing.

    Writes of blank tensors to tensors with values are dropped.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic.blank import blank, quietly
    >>> norm = torch.nn.BatchNorm1d(3)
    >>> with quietly(norm):
    ...     shape = norm(blank((None, 3))).shape
    >>> shape, norm.num_batches_tracked
    (torch.Size([2, 3]), tensor(0))
    """
    kept = [Kept(part) for part in {id(part): part for each in modules for module in behind(each) for part in module.modules()}.values()]
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
    return [m for m in (getattr(function, "__self__", None), getattr(function, "func", None), *cells) if isinstance(m, Module)]


class Kept:
    """Saves a module's state that a run may change, to restore it: values of buffers, attributes that blanks may
    replace."""

    __slots__ = ("module", "buffers", "attributes")

    def __init__(self, module: Any) -> None:
        self.module = module
        self.buffers = [(name, b, None if b is None or is_lazy(b) else Contents(b)) for name, b in module._buffers.items()]
        self.attributes = dict(module.__dict__)

    def restore(self) -> None:
        for name, buffer, contents in self.buffers:
            if contents is not None:
                contents.restore()
                self.module._buffers[name] = buffer
        for held, before in ((self.module.__dict__, self.attributes), (self.module._parameters, {}), (self.module._buffers, {})):
            for name in [name for name, value in held.items() if any(map(is_blank, leaves(value)))]:
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


# ── shapes of results ─────────────────────────────────────────────────────────────────────────────────────────────────


def is_shape(value: Any) -> bool:
    """Return True for a shape: a tuple of sizes, some of which may be None."""
    return isinstance(value, tuple) and not hasattr(value, "_fields") and all(n is None or isinstance(n, int) and not isinstance(n, bool) for n in value)


def infer(function: Any, *shapes: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Return the shapes of the results of a module or function for tensors of these shapes, nested in lists, tuples and
    dicts.

    None is an unknown size. `dtype` is one dtype for all tensors, or a structure nested like the shapes. Nothing is
    computed and nothing changes, unless the function reads values: then it runs on zeros.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic.blank import infer
    >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten())
    >>> infer(net, (None, 3, 8, 8))
    (None, 288)
    """
    kinds = dtype if isinstance(dtype, (list, tuple)) and len(dtype) == len(shapes) else (dtype,) * len(shapes)
    results = []
    for world in range(2 if unknown(shapes) else 1):
        try:
            results.append(run(function, shapes, kinds, kwargs, world))
        except Exception as error:
            if world:
                error.add_note(f"The sizes that are not known were {SIZES[1]} here; with {SIZES[0]} in their place, there was no error.")
            raise
    return merge(results[0], results[-1])


def unknown(shapes: Any) -> bool:
    """Return True if any size in a nest of shapes is None."""
    if is_shape(shapes):
        return None in shapes
    return isinstance(shapes, (list, tuple, dict)) and any(map(unknown, shapes.values() if isinstance(shapes, dict) else shapes))


def tensors_of(make: Any, shapes: Any, dtype: Any) -> Any:
    """Tensors of nested shapes."""
    if is_shape(shapes):
        return make(shapes, dtype)
    if isinstance(shapes, dict):
        return {k: tensors_of(make, v, dtype[k] if isinstance(dtype, dict) else dtype) for k, v in shapes.items()}
    if isinstance(shapes, (list, tuple)):
        kinds = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(shapes)
        parts = [tensors_of(make, s, kind) for s, kind in zip(shapes, kinds, strict=True)]
        return type(shapes)(*parts) if hasattr(shapes, "_fields") else type(shapes)(parts)
    raise TypeError(f"a shape is a tuple of sizes, or None for those that are not known, but this is {shapes!r}")


def run(function: Any, shapes: Any, kinds: Any, kwargs: Any, world: int) -> Any:
    """Return the function's result in a world: for blanks, or for zeros if it reads values."""
    def zeros(shape: Any, kind: Any) -> Any:
        return tg.zeros([SIZES[world] if n is None else n for n in shape], dtype=kind)

    def made(make: Any) -> list[Any]:
        return [tensors_of(make, s, kind) for s, kind in zip(shapes, kinds, strict=True)]
    try:
        with quietly(function):
            return function(*made(lambda shape, kind: blank(shape, kind, world)), **kwargs)
    except NoValues:
        with quietly(function):
            return function(*made(zeros), **kwargs)


def merge(first: Any, second: Any) -> Any:
    """Return the shapes of results from two worlds, None where the sizes differ; leaves that are no tensors pass
    through.

    >>> from tensorgrad.symbolic.blank import blank, merge
    >>> merge([blank((None, 3)), "x"], [blank((None, 3), world=1), "x"])
    [(None, 3), 'x']
    """
    def one(a: Any, b: Any) -> Any:
        if not isinstance(a, TensorBase):
            return a
        if a.ndim != b.ndim:
            raise RuntimeError(f"the number of axes depends on sizes that are not known: {tuple(a.shape)} and {tuple(b.shape)}")
        return tuple(n if n == m else None for n, m in zip(a.shape, b.shape, strict=True))
    return mapped(one, first, second)
