"""Operators with indices. https://onnx.ai/onnx/operators/"""
from __future__ import annotations

from typing import Any

from ... import api as torch
from ._table import numbers, operator


def _wrapped(indices: Any, n: int) -> Any:
    """Return indices with those below 0 counted from the end; those outside become n, which the op that takes them
    refuses. No value is read, so a program with such steps can be lowered.
    """
    indices = indices.long()
    return torch.where(indices < 0, torch.where(indices < -n, n, indices + n), indices)


@operator("Gather")
def gather(x: Any, indices: Any, *, axis: int = 0) -> Any:
    axis %= x.ndim
    found = x[(slice(None),) * axis + (indices.reshape(-1).long(),)]        # counts from the end by itself
    return found.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1:]])


@operator("GatherElements")
def gather_elements(x: Any, indices: Any, *, axis: int = 0) -> Any:
    return x.gather(axis, _wrapped(indices, x.shape[axis]))


def _picked(x: Any, indices: Any, batch: int) -> tuple[Any, ...]:
    """Return the index of x for the rows of `indices`, with `batch` first axes in common."""
    last = indices.shape[-1]
    leading = []
    for i in range(batch):
        grid = torch.arange(x.shape[i]).reshape([-1 if i == j else 1 for j in range(indices.ndim - 1)])
        leading.append(grid.expand(indices.shape[:-1]))
    rest = [_wrapped(indices[..., i], x.shape[batch + i]) for i in range(last)]
    return (*leading, *rest)


@operator("GatherND")
def gather_nd(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    return x[_picked(x, indices, batch_dims)]


REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("Scatter ScatterElements")
def scatter_elements(x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none") -> Any:
    places = _wrapped(indices, x.shape[axis])
    if reduction == "none":
        return x.scatter(axis, places, updates)
    return x.scatter_reduce(axis, places, updates, REDUCTIONS[reduction])


@operator("ScatterND")
def scatter_nd(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    if reduction in ("none", "add"):
        return x.index_put(_picked(x, indices, 0), updates, accumulate=reduction == "add")
    depth = indices.shape[-1]
    flat = torch.zeros((), dtype=torch.int64)
    for i, place in enumerate(_picked(x, indices, 0)):
        if bool((place == x.shape[i]).any()):            # a flat index would be in another row
            raise IndexError(f"indices must be from {-x.shape[i]} to {x.shape[i] - 1}")
        flat = flat * x.shape[i] + place
    row = [1] * (x.ndim - depth)
    new = updates.reshape(-1, *x.shape[depth:])
    places = flat.reshape(-1, *row).expand(new.shape)
    return x.reshape(-1, *x.shape[depth:]).scatter_reduce(0, places, new, REDUCTIONS[reduction]).reshape(x.shape)


@operator("TensorScatter")
def tensor_scatter(past: Any, update: Any, starts: Any = None, *, axis: int = -2, mode: str = "linear") -> Any:
    """Write `update` into a cache along an axis, from each row's start on; "circular" goes on at the front."""
    axis %= past.ndim
    n = past.shape[axis]
    steps = torch.arange(update.shape[axis])
    first = torch.zeros(past.shape[0], dtype=torch.int64) if starts is None else starts.long()
    places = first.unsqueeze(1) + steps
    places = places % n if mode == "circular" else _wrapped(places, n)
    shape = [-1 if i == 0 else update.shape[axis] if i == axis else 1 for i in range(past.ndim)]
    return past.scatter(axis, places.reshape(shape).expand(update.shape), update)


@operator("NonZero")
def nonzero(x: Any) -> Any:
    return torch.nonzero(x if x.ndim else x.reshape(1)).t()[:x.ndim]


@operator("Compress")
def compress(x: Any, condition: Any, *, axis: int | None = None) -> Any:
    places = torch.nonzero(condition).reshape(-1)
    return (x.reshape(-1) if axis is None else x).index_select(0 if axis is None else axis, places)


@operator("Unique", outputs=True)
def unique(x: Any, *, axis: int | None = None, sorted: int = 1, outputs: int) -> Any:
    """The distinct elements, where each first is, which each element is, and how often each is there."""
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True, dim=axis)
    inverse = inverse.reshape(-1)
    places = torch.arange(inverse.numel())
    first = torch.full((counts.numel(),), inverse.numel(), dtype=torch.int64)
    first = first.scatter_reduce(0, inverse, places, "amin")
    if not sorted:
        order = torch.argsort(first)
        rank = torch.empty_like(order).scatter(0, order, torch.arange(order.numel()))
        values, first, counts = values.index_select(axis or 0, order), first[order], counts[order]
        inverse = rank[inverse]
    return (values, first, inverse, counts)[:max(outputs, 1)]


@operator("NonMaxSuppression", fixed=(2, 3, 4))
def non_max_suppression(boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None, *,
                        center_point_box: int = 0) -> Any:
    """Return rows (batch, class, box) of boxes that no better box of their class overlaps too much."""
    limit = 0 if most is None else int(numbers(most)[0])
    share = 0.0 if overlap is None else float(numbers(overlap)[0])
    corners = _corners(boxes, center_point_box)
    found = []
    for batch in range(scores.shape[0]) if limit else ():
        for kind in range(scores.shape[1]):
            for place in _best(corners[batch], scores[batch, kind], limit, share,
                               None if least is None else float(numbers(least)[0])):
                found.append([batch, kind, place])
    return torch.tensor(found, dtype=torch.int64).reshape(-1, 3)


def _corners(boxes: Any, centred: int) -> Any:
    a, b = boxes[..., :2], boxes[..., 2:]
    if centred:
        return torch.cat([a - b / 2, a + b / 2], -1)
    return torch.cat([torch.minimum(a, b), torch.maximum(a, b)], -1)


def _best(boxes: Any, scores: Any, limit: int, share: float, least: float | None) -> list[int]:
    order = torch.argsort(scores, descending=True, stable=True)
    if least is not None:
        order = order[scores[order] > least]
    kept: list[int] = []
    while order.numel() and len(kept) < limit:
        best, order = order[0], order[1:]
        kept.append(int(best.item()))
        sides = torch.clamp(torch.minimum(boxes[best, 2:], boxes[order, 2:])
                            - torch.maximum(boxes[best, :2], boxes[order, :2]), min=0)
        common = sides[:, 0] * sides[:, 1]
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        order = order[common <= share * (areas[best] + areas[order] - common)]
    return kept
