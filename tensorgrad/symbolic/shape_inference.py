"""Shapes of the results of modules and functions, inferred by running them on fake tensors.

A function runs in two worlds that give unknown sizes different values: a size of the result that differs between the
worlds is unknown, too.
"""
from __future__ import annotations

from typing import Any

from .. import api as tg
from ..core.tape import TensorBase
from .fake_tensors import SIZES, NoValues, fake
from .nesting import mapped
from .side_effects import quietly

__all__ = ["infer", "merge"]


def is_shape(value: Any) -> bool:
    """Return True for a shape: a tuple of sizes, some of which may be None."""
    return (isinstance(value, tuple) and not hasattr(value, "_fields")
            and all(n is None or isinstance(n, int) and not isinstance(n, bool) for n in value))


def infer(function: Any, *shapes: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Return the shapes of the results of a module or function for tensors of these shapes, nested in lists, tuples and
    dicts.

    None is an unknown size. `dtype` is one dtype for all tensors, or a structure nested like the shapes. Nothing is
    computed and nothing changes, unless the function reads values: then it runs on zeros.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic.shape_inference import infer
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
                error.add_note(f"The sizes that are not known were {SIZES[1]} here; with {SIZES[0]} in their place, "
                               f"there was no error.")
            raise
    return merge(results[0], results[-1])


def unknown(shapes: Any) -> bool:
    """Return True if any size in a nest of shapes is None."""
    if is_shape(shapes):
        return None in shapes
    return (isinstance(shapes, (list, tuple, dict))
            and any(map(unknown, shapes.values() if isinstance(shapes, dict) else shapes)))


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
    """Return the function's result in a world: for fake tensors, or for zeros if it reads values."""
    def zeros(shape: Any, kind: Any) -> Any:
        return tg.zeros([SIZES[world] if n is None else n for n in shape], dtype=kind)

    def made(make: Any) -> list[Any]:
        return [tensors_of(make, s, kind) for s, kind in zip(shapes, kinds, strict=True)]
    try:
        with quietly(function):
            return function(*made(lambda shape, kind: fake(shape, kind, world)), **kwargs)
    except NoValues:
        with quietly(function):
            return function(*made(zeros), **kwargs)


def merge(first: Any, second: Any) -> Any:
    """Return the shapes of results from two worlds, None where the sizes differ; leaves that are no tensors pass
    through.

    >>> from tensorgrad.symbolic.fake_tensors import fake
    >>> from tensorgrad.symbolic.shape_inference import merge
    >>> merge([fake((None, 3)), "x"], [fake((None, 3), world=1), "x"])
    [(None, 3), 'x']
    """
    def one(a: Any, b: Any) -> Any:
        if not isinstance(a, TensorBase):
            return a
        if a.ndim != b.ndim:
            raise RuntimeError(f"the number of axes depends on sizes that are not known: {tuple(a.shape)} and "
                               f"{tuple(b.shape)}")
        return tuple(n if n == m else None for n, m in zip(a.shape, b.shape, strict=True))
    return mapped(one, first, second)
