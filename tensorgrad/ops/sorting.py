"""Order: sorting, selecting by rank, searching in sorted sequences, counting."""
from __future__ import annotations

from math import prod

from numpy import dtype as of

from ..storage.base import NoValues
from .base import AlongAxis, Op
from .reduction import Choice, Extreme, shared_by_all, to_chosen, without
from .shape import Movement


def part(x, axis, start, stop):
    """The elements from start to stop along an axis."""
    return x[(slice(None),) * axis + (slice(start, stop),)]


class Order(AlongAxis):
    """The places of the elements in order along an axis: equal ones keep theirs, NaN is the greatest"""

    kinds = "biuf"

    def forward(xp, x, *, axis, descending=False):
        return xp.order(x, axis=axis, descending=descending)

    def infer(x, *, axis, descending=False):
        return x.shape, of("int64")


# ── sorted, or chosen by rank ─────────────────────────────────────────────────────────────────────────────────────────


class Sort(Choice):
    """The elements in order along an axis, and where each came from"""

    in_order = True
    opname = "sort_dim"

    def forward(xp, x, *, axis, descending=False):
        indices = xp.order(x, axis=axis, descending=descending)
        return xp.take_along_axis(x, indices, axis=axis), indices

    def infer(x, *, axis, descending=False):
        return [(x.shape, x.dtype), (x.shape, of("int64"))]

    def grad_x(xp, g, indices, x_shape, axis):
        return xp.place_along_axis(g[0], indices, shape=x_shape, axis=axis)


class Topk(Choice):
    """The k greatest, or least, elements along an axis, and where they are"""

    def forward(xp, x, *, k, axis, largest=True, sorted=True):
        indices = xp.contiguous(part(xp.order(x, axis=axis, descending=largest), axis, 0, k))
        return xp.take_along_axis(x, indices, axis=axis), indices

    def infer(x, *, k, axis, **params):
        shape = (*x.shape[:axis], k, *x.shape[axis + 1:])
        return [(shape, x.dtype), (shape, of("int64"))]

    def grad_x(xp, g, indices, x_shape, axis):
        return xp.place_along_axis(g[0], indices, shape=x_shape, axis=axis)


class Kthvalue(Choice):
    """The k-th least element along an axis, and where it is"""

    row_major = True

    def forward(xp, x, *, k, axis, keepdims=False):
        indices = xp.contiguous(part(xp.order(x, axis=axis), axis, k - 1, k))
        return without(xp, (xp.take_along_axis(x, indices, axis=axis), indices), axis, keepdims)

    grad_x = to_chosen


class Median(Choice):
    """The middle element along an axis, the lower of two, and where it is; NaN if there is one"""

    row_major = True
    opname = "median_dim"

    def overload(self):
        return 1

    def forward(xp, x, *, axis, keepdims=False):
        places, n = xp.order(x, axis=axis), x.shape[axis]
        nans = xp.sum(x != x, axis=axis, keepdims=True)
        rank = xp.where(nans > 0, n - nans, (n - 1) // 2)       # NaNs are sorted behind the numbers
        indices = xp.take_along_axis(places, rank, axis=axis)
        return without(xp, (xp.take_along_axis(x, indices, axis=axis), indices), axis, keepdims)

    grad_x = to_chosen


def in_order(xp, x):
    """Sort all elements."""
    return xp.sort_dim(xp.reshape(x, (prod(x.shape),)), axis=0)[0]


class MedianOfAll(Extreme):
    """The middle one of all elements, the lower of two; NaN if there is one"""

    torch_name = "Median"
    batch = "defined"

    def forward(xp, x):
        line = in_order(xp, x)
        return xp.where(line[-1] != line[-1], line[-1], line[(line.shape[0] - 1) // 2])

    grad_x = shared_by_all


class NanmedianOfAll(Extreme):
    """The middle one of all elements that are numbers, the lower of two"""

    torch_name = "Nanmedian"
    batch = "defined"

    def forward(xp, x):
        line = in_order(xp, x)
        return xp.embedding(line, xp.maximum(line.shape[0] - xp.sum(x != x) - 1, 0) // 2)

    grad_x = shared_by_all


class Nanmedian(Choice):
    """The middle one of the numbers along an axis, the lower of two, and where it is"""

    row_major = True
    opname = "nanmedian_dim"

    def overload(self):
        return 1

    def forward(xp, x, *, axis, keepdims=False):
        places, n = xp.order(x, axis=axis), x.shape[axis]
        numbers = n - xp.sum(x != x, axis=axis, keepdims=True)
        rank = xp.where(numbers > 0, (numbers - 1) // 2, 0)
        indices = xp.take_along_axis(places, rank, axis=axis)
        return without(xp, (xp.take_along_axis(x, indices, axis=axis), indices), axis, keepdims)

    grad_x = to_chosen


class Mode(Choice):
    """The most frequent element along an axis, the least of several, and the last place where it is"""

    row_major = True

    def forward(xp, x, *, axis, keepdims=False):
        places, n = xp.order(x, axis=axis), x.shape[axis]
        sorted_ = xp.take_along_axis(x, places, axis=axis)
        count = xp.reshape(xp.arange(n), tuple(n if d == axis else 1 for d in range(x.ndim)))
        begins = part(sorted_, axis, 1, n) != part(sorted_, axis, 0, n - 1)
        begins = xp.concat([xp.ones_like(part(begins, axis, 0, 1) if n > 1 else sorted_, dtype=bool), begins],
                           axis=axis)
        start = xp.cummax(xp.where(begins, count, 0), axis=axis)[0]
        last = xp.expand_dims(xp.argmax(count - start, axis=axis), axis)
        indices = xp.take_along_axis(places, last, axis=axis)
        return without(xp, (xp.take_along_axis(x, indices, axis=axis), indices), axis, keepdims)

    grad_x = to_chosen


# ── places in sorted sequences ────────────────────────────────────────────────────────────────────────────────────────


class Searchsorted(Movement):
    """The index along the last axis at which each value keeps the sequence sorted: before (or, on the right, after)
    equal elements
    """

    opname = "search_sorted"
    kinds = Op.kinds

    def forward(xp, sequence, values, *, right=False):
        n = sequence.shape[-1]
        low, high = xp.zeros(values.shape, dtype="int64"), xp.full(values.shape, n, dtype="int64")
        for _ in range(n.bit_length()):      # each row halves its interval
            middle = (low + high) // 2
            place = xp.minimum(middle, n - 1)
            element = (xp.embedding(sequence, place) if sequence.ndim == 1
                       else xp.take_along_axis(sequence, place, axis=-1))
            beyond = ~((element > values) | (values == values) & (element != element)) if right else \
                (element < values) | (element == element) & (values != values)
            live = low < high
            low, high = xp.where(live & beyond, middle + 1, low), xp.where(live & ~beyond, middle, high)
        return low

    def infer(sequence, values, *, right=False):
        return values.shape, of("int64")


# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Bincount(Op):
    """The number of times that each of 0, 1, … occurs, or the sum of the weights of its occurrences"""

    def forward(xp, x, weights, *, minlength=0):
        return xp.bincount(x, weights, minlength)

    def infer(x, weights, *, minlength=0):
        if prod(x.shape):
            raise NoValues("bincount()")
        return (minlength,), of("int64" if weights is None else "float64")


class Histc(Op):
    """The number of elements in each of equal bins from low to high"""

    kinds = "fiu"

    def forward(xp, x, *, bins, low, high):
        x, low, high = (xp.reshape(x, (prod(x.shape),)), xp.full((), low, dtype=x.dtype),
                        xp.full((), high, dtype=x.dtype))
        inside = (x >= low) & (x <= high)
        places = xp.cast((xp.where(inside, x, low) - low) * bins / (high - low), dtype="int64")
        # others go behind
        return xp.contiguous(xp.bincount(xp.where(inside, xp.minimum(places, bins - 1), bins), None,
                                         minlength=bins + 1)[:bins])

    def infer(x, *, bins, low, high):
        return (bins,), of("int64")


class Distinct(Op):
    """The distinct elements, sorted; where each element of x went among them; how often each occurs"""

    outputs = ("values", "inverse", "counts")
    by_values = "_unique2"

    def forward(xp, x):
        return xp.distinct(x)


class DistinctSlices(Op):
    """The distinct slices along the first axis: of all of them, sorted, or of neighbours only; the place of each, their
    counts
    """

    row_major = True
    outputs = ("values", "inverse", "counts")
    by_values = "unique_dim"

    def forward(xp, x, *, neighbours=False):
        return xp.distinct_slices(x, neighbours=neighbours)
