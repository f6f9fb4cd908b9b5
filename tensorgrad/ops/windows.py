"""Windows that convolution, pooling and folding go through: how many there are, and which elements they see."""
from __future__ import annotations

from itertools import product


def output_length(size, kernel, stride, padding, dilation):
    """How many windows there are along each dimension, with as much padding on both sides."""
    return tuple((d + 2 * p - e * (k - 1) - 1) // s + 1
                 for d, k, s, p, e in zip(size, kernel, stride, padding, dilation, strict=True))


def window_count(reach, kernel, stride, dilation):
    """How many windows there are along each dimension of an input that has its border."""
    return output_length(reach, kernel, stride, (0,) * len(reach), dilation)


def window_count_along(reach, kernel, stride, dilation=1):
    """How many windows there are along one dimension of an input that has its border."""
    return output_length((reach,), (kernel,), (stride,), (0,), (dilation,))[0]


def input_length(length, kernel, stride, padding, dilation):
    """The least size of an input with so many windows along each dimension: that of the result of a transposed convolution."""
    return tuple((n - 1) * s - 2 * p + e * (k - 1) + 1
                 for n, k, s, p, e in zip(length, kernel, stride, padding, dilation, strict=True))


def pooled_length(size, kernel, stride, padding, dilation=1, ceil_mode=False):
    """How many windows pooling has along one dimension; in ceil mode also the last that starts within the input or its left padding."""
    count = window_count_along(size + 2 * padding + (stride - 1 if ceil_mode else 0), kernel, stride, dilation)
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def with_border(size, widths):
    """The size of an input with its border, whose widths are given as (before, after)."""
    return tuple(d + a + b for d, (a, b) in zip(size, widths, strict=True))


def positions(kernel, length, stride, dilation):
    """For each place in the window, which elements of the padded input stand there: (place, slices)."""
    for place in product(*map(range, kernel)):
        yield place, tuple(slice(k * e, k * e + (n - 1) * s + 1, s)
                           for k, e, n, s in zip(place, dilation, length, stride, strict=True))


def places_along(axis, kernel, stride, count):
    """For each place in the windows along an axis, which elements stand there."""
    return [(slice(None),) * axis + (slice(j, j + (count - 1) * stride + 1, stride),) for j in range(kernel)]
