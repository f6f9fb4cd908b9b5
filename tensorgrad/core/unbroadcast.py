"""Conversion of gradients to the shape and dtype of their edges: the adjoint of broadcasting."""
from __future__ import annotations

from typing import Any

from ..dtype import holds_complex
from ..runtime.small_floats import computed
from ..storage.out_of_memory import memory_error
from ..storage.sparse import pattern_of


def fitted(backend_xp: Any, ge: Any, edge: Any) -> Any:
    """Sum and cast a gradient to the shape and dtype of its edge."""
    if ge.shape != edge.shape:
        ge = checked(sum_to(backend_xp, ge, edge.shape), edge)
    if ge.dtype != edge.dtype:
        ge = ge.real if ge.dtype.kind == "c" and not holds_complex(edge.dtype) else ge
        ge = backend_xp.cast(ge, dtype=edge.dtype) if pattern_of(ge) is None else ge.astype(edge.dtype)
    return ge


def added(backend_xp: Any, a: Any, b: Any) -> Any:
    """Return the sum of two gradients of an edge."""
    if getattr(a.dtype, "kind", "") != "V":
        return a + b
    wide = computed(a.dtype)
    return backend_xp.cast(backend_xp.cast(a, dtype=wide) + backend_xp.cast(b, dtype=wide), dtype=a.dtype)


def checked(ge: Any, edge: Any) -> Any:
    if tuple(ge.shape) != tuple(edge.shape):
        raise RuntimeError(f"Function {edge.name()} was handed an invalid gradient: got {list(ge.shape)} but expected "
                           f"shape compatible with {list(edge.shape)}")
    return ge


def sum_to(xp: Any, g: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the axes that were broadcast: the adjoint of broadcasting."""
    lead = len(g.shape) - len(shape)
    if lead < 0:
        return g
    axes = (*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 != g.shape[i + lead]))
    summed = xp.sum(g, axis=axes, keepdims=True) if axes else g
    return xp.reshape(summed, shape) if lead else summed


def unpulled(node: Any, error: Exception) -> Exception:
    """Return PyTorch's error for a step whose pull failed: for memory, or since `x.data = …` changed a saved shape."""
    if (exhausted := memory_error(error, node.name())) is not None:
        return exhausted
    saved = node.saved
    replaced = ([v for v in saved if getattr(getattr(v, "_storage", None), "replaced", 0) > node.time]
                if type(saved) is tuple else [])
    if not replaced or isinstance(error, RuntimeError):
        return error
    shapes = ", ".join(str(list(v.array.shape)) for v in replaced)
    return RuntimeError(f"{node.name()} cannot use what it saved: the data of its arguments was replaced since the "
                        f"forward pass, by tensors of sizes {shapes} ({error})")
