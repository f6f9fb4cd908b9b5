"""Tensors that have a shape and a dtype, and no numbers; and the shapes that a function gives, worked out on those.

A size that is not known, such as that of the batch, is written None. A function then runs in two worlds, where the unknown sizes have different
values: what comes out differently depends on them, and is unknown, too.
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

SIZES = 2, 4, 1         # what unknown sizes are in the worlds. (Even, for what halves; more than one, for statistics over a batch; the third for what
#                         goes with other sizes, such as a sum with eight rows.)


def blank(shape: Any, dtype: Any = None, world: int = 0) -> Any:
    """A tensor without numbers; unknown sizes are those of the world.

    >>> from tensorgrad.symbolic.blank import blank
    >>> image = blank((None, 3, 8, 8))
    >>> (image.mean((2, 3)) @ blank((3, 5))).shape
    torch.Size([2, 5])
    """
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    return fresh(Symbol(shape_of(([SIZES[world] if n is None else n for n in shape],)), kind.numpy), SymbolStorage)


def is_blank(value: Any) -> bool:
    """Whether a value is a tensor without numbers."""
    return isinstance(value, TensorBase) and value._storage.hollow and type(value._storage) is SymbolStorage


def blank_like(tree: Any) -> Any:
    """The same nest of lists, tuples and dicts, with tensors without numbers in the places of those that have some.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic.blank import blank_like
    >>> blank_like({"x": [torch.ones(2, 3), 7]})
    {'x': [tensor(..., size=(2, 3)), 7]}
    """
    return mapped(lambda leaf: blank(leaf.shape, leaf.dtype) if isinstance(leaf, TensorBase) and not is_blank(leaf) else leaf, tree)


# ── without a trace ───────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def quietly(*modules: Any) -> Iterator[None]:
    """In a `with` block, running these modules leaves no trace: buffers and random generators stay as they are, nothing is recorded on the tape.

    Writes of what has no numbers, to tensors that have some, are dropped.

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
    """The modules that a call runs: the function itself, the one whose method it is, those in its closure."""
    if isinstance(function, Module):
        return [function]
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if cell != CellType()]
    return [m for m in (getattr(function, "__self__", None), getattr(function, "func", None), *cells) if isinstance(m, Module)]


class Kept:
    """What a module holds that running it may change: the values of its buffers, and attributes in whose place blanks may come."""

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
    """What a tensor holds, and the dates of the writes to it."""

    __slots__ = ("tensor", "array", "storage", "values", "dates")

    def __init__(self, tensor: Any) -> None:
        self.tensor, self.array, self.storage = tensor, tensor.array, tensor._storage
        self.values, self.dates = tensor.array.copy(), {name: getattr(tensor._storage, name) for name in DATES}

    def restore(self) -> None:
        """Put everything back, if there was a write."""
        self.tensor.array, self.tensor._storage = self.array, self.storage
        if self.storage.version != self.dates["version"]:
            self.storage.assign(self.array, self.values)
            for name, date in self.dates.items():
                setattr(self.storage, name, date)


# ── shapes of results ─────────────────────────────────────────────────────────────────────────────────────────────────


def is_shape(value: Any) -> bool:
    """Whether a value is a shape: a tuple of sizes, some of which may be unknown."""
    return isinstance(value, tuple) and not hasattr(value, "_fields") and all(n is None or isinstance(n, int) and not isinstance(n, bool) for n in value)


def infer(function: Any, *shapes: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """The shapes of what a module or function gives for tensors of these shapes, which may be nested in lists, tuples and dicts.

    None is a size that is not known. `dtype` is that of all tensors, or nested as the shapes are, one structure for each of them. Nothing is computed
    and nothing changes, unless the function looks at values: then it runs on zeros.

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
    """Whether a size is not known."""
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
    """What the function gives in a world: for blanks, or where it looks at values, for zeros."""
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
    """The shapes of results from two worlds: None where the sizes differ. What is no tensor is returned as it is.

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
