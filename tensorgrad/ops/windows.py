"""Windows of convolution, pooling and folding: their number, and their elements."""
from __future__ import annotations

from itertools import product


def output_length(size, kernel, stride, padding, dilation):
    """Return the number of windows along each dimension, with equal padding on both sides."""
    return tuple((d + 2 * p - e * (k - 1) - 1) // s + 1
                 for d, k, s, p, e in zip(size, kernel, stride, padding, dilation, strict=True))


def window_count(reach, kernel, stride, dilation):
    """Return the number of windows along each dimension of an input that includes its border."""
    return output_length(reach, kernel, stride, (0,) * len(reach), dilation)


def window_count_along(reach, kernel, stride, dilation=1):
    """Return the number of windows along one dimension of an input that includes its border."""
    return output_length((reach,), (kernel,), (stride,), (0,), (dilation,))[0]


def input_length(length, kernel, stride, padding, dilation):
    """Return the least input size with `length` windows, which a transposed convolution's result has."""
    return tuple((n - 1) * s - 2 * p + e * (k - 1) + 1
                 for n, k, s, p, e in zip(length, kernel, stride, padding, dilation, strict=True))


def pooled_length(size, kernel, stride, padding, dilation=1, ceil_mode=False):
    """Return the number of pooling windows along one dimension.

    Ceil mode adds one that starts within the input or left padding.
    """
    count = window_count_along(size + 2 * padding + (stride - 1 if ceil_mode else 0), kernel, stride, dilation)
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def with_border(size, widths):
    """Return the size of an input with its border, given widths (before, after)."""
    return tuple(d + a + b for d, (a, b) in zip(size, widths, strict=True))


def positions(kernel, length, stride, dilation):
    """Yield for each position in the window the elements of the padded input there: (position, slices)."""
    for place in product(*map(range, kernel)):
        yield place, tuple(slice(k * e, k * e + (n - 1) * s + 1, s)
                           for k, e, n, s in zip(place, dilation, length, stride, strict=True))


def places_along(axis, kernel, stride, count):
    """Return for each position in the windows along an axis the elements there."""
    return [(slice(None),) * axis + (slice(j, j + (count - 1) * stride + 1, stride),) for j in range(kernel)]
