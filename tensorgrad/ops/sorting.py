"""Order: sorting, selecting by rank, searching in sorted sequences, counting."""
from __future__ import annotations

from math import prod

from .base import Op
from .reduction import Choice, Extreme, shared_by_all, to_chosen, without
from .shape import Movement


def order(xp, x, axis, descending=False):
    """The stable sorting permutation; NaN counts as the greatest."""
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable")
    backwards = xp.argsort(xp.flip(x, axis), axis=axis, kind="stable")
    return xp.flip(x.shape[axis] - 1 - backwards, axis)


def part(x, axis, start, stop):
    """The elements from start to stop along an axis."""
    return x[(slice(None),) * axis + (slice(start, stop),)]


# ── sorted, or chosen by rank ─────────────────────────────────────────────────────────────────────────────────────────


class Sort(Choice):
    """The elements in order along an axis, and where each came from"""

    in_order = True
    opname = "sort_dim"

    def forward(xp, x, *, axis, descending=False):
        indices = order(xp, x, axis, descending)
        return xp.take_along_axis(x, indices, axis=axis), indices.copy()

    def grad_x(xp, g, indices, x_shape, axis):
        return xp.place_along_axis(g[0], indices, shape=x_shape, axis=axis)


class Topk(Choice):
    """The k greatest, or least, elements along an axis, and where they are"""

    def forward(xp, x, *, k, axis, largest=True, sorted=True):
        indices = part(order(xp, x, axis, largest), axis, 0, k).copy()
        return xp.take_along_axis(x, indices, axis=axis), indices

    def grad_x(xp, g, indices, x_shape, axis):
        return xp.place_along_axis(g[0], indices, shape=x_shape, axis=axis)


class Kthvalue(Choice):
    """The k-th least element along an axis, and where it is"""

    row_major = True

    def forward(xp, x, *, k, axis, keepdims=False):
        indices = part(order(xp, x, axis), axis, k - 1, k)
        return without(xp, (xp.take_along_axis(x, indices, axis=axis), indices.copy()), axis, keepdims)

    grad_x = to_chosen


class Median(Choice):
    """The middle element along an axis, the lower of two, and where it is; NaN if there is one"""

    row_major = True
    opname = "median_dim"

    def overload(self):
        return 1

    def forward(xp, x, *, axis, keepdims=False):
        places, n = order(xp, x, axis), x.shape[axis]
        nans = xp.sum(x != x, axis=axis, keepdims=True)
        rank = xp.where(nans > 0, n - nans, (n - 1) // 2)       # NaNs are sorted behind the numbers
        indices = xp.take_along_axis(places, rank, axis=axis)
        return without(xp, (xp.take_along_axis(x, indices, axis=axis), indices), axis, keepdims)

    grad_x = to_chosen


class MedianOfAll(Extreme):
    """The middle one of all elements, the lower of two; NaN if there is one"""

    torch_name = "Median"

    def forward(xp, x):
        line = xp.sort(x.reshape(-1))
        return xp.where(line[-1] != line[-1], line[-1], line[(x.size - 1) // 2])

    grad_x = shared_by_all


class NanmedianOfAll(Extreme):
    """The middle one of all elements that are numbers, the lower of two"""

    torch_name = "Nanmedian"

    def forward(xp, x):
        line = xp.sort(x.reshape(-1))
        return line[xp.maximum(x.size - xp.sum(x != x) - 1, 0) // 2]

    grad_x = shared_by_all


class Nanmedian(Choice):
    """The middle one of the numbers along an axis, the lower of two, and where it is"""

    row_major = True
    opname = "nanmedian_dim"

    def overload(self):
        return 1

    def forward(xp, x, *, axis, keepdims=False):
        places, n = order(xp, x, axis), x.shape[axis]
        numbers = n - xp.sum(x != x, axis=axis, keepdims=True)
        rank = xp.where(numbers > 0, (numbers - 1) // 2, 0)
        indices = xp.take_along_axis(places, rank, axis=axis)
        return without(xp, (xp.take_along_axis(x, indices, axis=axis), indices), axis, keepdims)

    grad_x = to_chosen


class Mode(Choice):
    """The most frequent element along an axis, the least of several, and the last place where it is"""

    row_major = True

    def forward(xp, x, *, axis, keepdims=False):
        places, n = order(xp, x, axis), x.shape[axis]
        sorted_ = xp.take_along_axis(x, places, axis=axis)
        count = xp.arange(n).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
        begins = part(sorted_, axis, 1, n) != part(sorted_, axis, 0, n - 1)
        begins = xp.concatenate([xp.ones_like(part(begins, axis, 0, 1) if n > 1 else sorted_, dtype=bool), begins], axis)
        start = xp.cummax(xp.where(begins, count, 0), axis=axis)[0]
        last = xp.expand_dims(xp.argmax(count - start, axis=axis), axis)
        indices = xp.take_along_axis(places, last, axis=axis)
        return without(xp, (xp.take_along_axis(x, indices, axis=axis), indices), axis, keepdims)

    grad_x = to_chosen


# ── places in sorted sequences ────────────────────────────────────────────────────────────────────────────────────────


class Searchsorted(Movement):
    """Where along the last axis each value would go so that the sequence stays sorted: before (or, on the right, after) equal elements"""

    opname = "search_sorted"

    def forward(xp, sequence, values, *, right=False):
        if sequence.ndim == 1:
            return xp.searchsorted(sequence, values, "right" if right else "left")
        low, high = xp.zeros(values.shape, dtype="int64"), xp.full(values.shape, sequence.shape[-1], dtype="int64")
        for _ in range(sequence.shape[-1].bit_length()):      # each row halves its interval
            middle = (low + high) // 2
            element = xp.take_along_axis(sequence, xp.minimum(middle, sequence.shape[-1] - 1), axis=-1)
            beyond = ~((element > values) | (values == values) & (element != element)) if right else \
                (element < values) | (element == element) & (values != values)
            live = low < high
            low, high = xp.where(live & beyond, middle + 1, low), xp.where(live & ~beyond, middle, high)
        return low


# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Bincount(Op):
    """How often each of 0, 1, … occurs, or the sum of the weights of its occurrences"""

    def forward(xp, x, weights, *, minlength=0):
        return xp.bincount(x, weights, minlength)


class Histc(Op):
    """How many elements lie in each of equal bins from low to high"""

    kinds = "fiuV"

    def forward(xp, x, *, bins, low, high):
        x, low, high = x.ravel(), xp.asarray(low, dtype=x.dtype), xp.asarray(high, dtype=x.dtype)
        x = x[(x >= low) & (x <= high)]
        places = ((x - low) * bins / (high - low)).astype("int64")
        return xp.bincount(xp.minimum(places, bins - 1), minlength=bins)


class Distinct(Op):
    """The distinct elements, sorted; where each element of x went among them; how often each occurs"""

    outputs = ("values", "inverse", "counts")
    by_values = "_unique2"

    def forward(xp, x):
        values, inverse, counts = xp.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
        return values, inverse.reshape(x.shape), counts


class DistinctSlices(Op):
    """The distinct slices along the first axis: of all of them, sorted, or of neighbours only; the place of each, their counts"""

    row_major = True
    outputs = ("values", "inverse", "counts")
    by_values = "unique_dim"

    def forward(xp, x, *, neighbours=False):
        n = x.shape[0]
        rows = x.reshape(n, prod(x.shape[1:]))
        places = xp.arange(n) if neighbours or not rows.size else xp.lexsort(rows.T[::-1])
        rows = rows[places]
        begins = xp.concatenate([xp.ones(min(n, 1), dtype=bool), (rows[1:] != rows[:-1]).any(1)])
        group = xp.cumsum(begins, axis=0) - 1
        inverse = xp.zeros(n, dtype="int64")
        inverse[places] = group
        return x[places][begins], inverse, xp.bincount(group, minlength=0)
