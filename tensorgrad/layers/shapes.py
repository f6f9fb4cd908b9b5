"""Shapes of results, by arithmetic: of slices, views, convolutions and pooling. None is an unknown size.

An impossible result is an AssertionError that tells the shapes; for a slice, PyTorch's IndexError or ValueError.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import api as tg
from ..ops.windows import input_length, pooled_length
from .structures import is_mapping, is_sequence, recursive_compare, recursive_flatten, recursive_map

__all__ = ["ShapeSlice", "get_dim", "get_dim_from_shape", "get_shape", "is_sequence_shape", "is_simple_shape", "is_valid_shape", "numel", "print_shape",
           "shape_avgpool1d", "shape_avgpool2d", "shape_avgpool3d", "shape_avgpoolnd", "shape_conv1d", "shape_conv2d", "shape_conv3d", "shape_convnd",
           "shape_equals", "shape_maxpool1d", "shape_maxpool2d", "shape_maxpool3d", "shape_maxpoolnd", "shape_poolnd", "shape_slice",
           "shape_transpose_conv1d", "shape_transpose_conv2d", "shape_transpose_conv3d", "shape_transpose_convnd", "shape_view"]


def check(condition: Any, message: str) -> None:
    if not condition:
        raise AssertionError(message)


# ── what is a shape ───────────────────────────────────────────────────────────────────────────────────────────────────


def is_simple_shape(shape: Any) -> bool:
    """Return True for the shape of a single tensor: a list or tuple of positive integers, or None for unknown sizes.

    >>> is_simple_shape((None, 3)), is_simple_shape([2, 0]), is_simple_shape([(2, 3)])
    (True, False, False)
    """
    return is_sequence(shape) and all(n is None or isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n > 0 for n in shape)


def is_sequence_shape(shape: Any) -> bool:
    """Return True for a list or tuple of shapes, which may be nested themselves.

    >>> is_sequence_shape([(2, 3), {"a": (4,)}]), is_sequence_shape((2, 3))
    (True, False)
    """
    return is_sequence(shape) and len(shape) > 0 and all(map(is_valid_shape, shape))


def is_valid_shape(shape: Any) -> bool:
    """Return True for a shape, or a list, tuple or dict of shapes, to any depth."""
    if is_mapping(shape):
        return len(shape) > 0 and all(map(is_valid_shape, shape.values()))
    return is_simple_shape(shape) or is_sequence_shape(shape)


# ── questions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def get_shape(structure: Any) -> Any:
    """The shape of a tensor, or of each tensor in a structure. None stays None.

    >>> import tensorgrad as torch
    >>> get_shape({"a": torch.ones(2, 3), "b": [torch.ones(4), None]})
    {'a': (2, 3), 'b': [(4,), None]}
    """
    return recursive_map(structure, lambda x: tuple(x.shape), is_base=lambda x: hasattr(x, "shape"), leave_none=True)


def get_dim_from_shape(shape: Any) -> Any:
    """The number of axes for each shape in a structure of shapes.

    >>> get_dim_from_shape([(2, 3), (None,)])
    [2, 1]
    """
    return recursive_map(shape, len, is_base=is_simple_shape, leave_none=True)


def get_dim(structure: Any) -> Any:
    """The number of axes of each tensor in a structure."""
    return get_dim_from_shape(get_shape(structure))


def numel(x: Any) -> int | None:
    """The number of elements of all tensors, or of all shapes, in a structure; None if a size is not known.

    >>> numel((2, 3)), numel([(2, 3), (4,)]), numel((None, 3))
    (6, 10, None)
    """
    shapes = recursive_flatten(x if is_valid_shape(x) else get_shape(x), is_base=is_simple_shape, leave_none=True)
    return None if any(n is None for shape in shapes for n in shape) else sum(map(math.prod, shapes))


def print_shape(*structures: Any) -> None:
    """Print the shapes of tensors, or of structures of them.

    >>> import tensorgrad as torch
    >>> print_shape(torch.ones(2, 3), [torch.ones(4)])
    (2, 3) [(4,)]
    """
    print(*map(get_shape, structures))


def shape_equals(a: Any, b: Any, ignore_batch_dim: bool = False) -> bool:
    """Return True if two shapes, or structures of shapes, are equal; `ignore_batch_dim` ignores their first sizes.

    >>> shape_equals([2, 3], (2, 3)), shape_equals({"x": (2, 3)}, {"x": (5, 3)}, ignore_batch_dim=True)
    (True, True)
    """
    start = 1 if ignore_batch_dim else 0
    return recursive_compare(a, b, is_base=is_simple_shape,
                             comparator=lambda one, other: len(one) == len(other) and tuple(one[start:]) == tuple(other[start:]))


# ── slices and views ──────────────────────────────────────────────────────────────────────────────────────────────────


class ShapeSlice:
    """`ShapeSlice(shape)[index]` is the shape of `tensor[index]`.

    >>> ShapeSlice((None, 8, 5))[:, 2:, ..., -1]
    (None, 6)
    """

    def __init__(self, shape: Any) -> None:
        self.shape = tuple(shape)

    def __getitem__(self, index: Any) -> tuple[int | None, ...]:
        return shape_slice(self.shape, index)


def shape_slice(shape: Any, index: Any) -> tuple[int | None, ...]:
    """The shape of a tensor of this shape after `[index]`: integers, slices, None, an ellipsis, and lists and tensors of indices or truth values.

    Errors: IndexError for an index out of range, too many of them, or index tensors that do not fit together; ValueError for a step that is not positive.

    >>> shape_slice((4, None, 6), (slice(1, None), ..., slice(None, None, 4))), shape_slice((4, 5), [0, 2, 2])
    ((3, None, 2), (3, 5))
    """
    items = [_array(item) for item in (index if isinstance(index, tuple) else (index,))]
    used = sum(_axes(item) for item in items)
    if used > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    items = _filled(items, len(shape) - used)
    axis, sizes, gathered = 0, list[Any](), list[Any]()
    for item in items:
        here, axis = shape[axis:axis + _axes(item)], axis + _axes(item)
        if item is None:
            sizes.append(1)
        elif isinstance(item, slice):
            sizes.append(_sliced(here[0], item))
        elif isinstance(item, int):
            if here[0] is not None and not -here[0] <= item < here[0]:
                raise IndexError(f"index {item} is out of bounds for dimension {axis - 1} with size {here[0]}")
        else:
            gathered.append((len(sizes), _indexed(here, item)))
    if gathered:
        sizes = _joined(sizes, gathered)
    return tuple(sizes)


def _array(item: Any) -> Any:
    """Index tensors, lists and truth values as arrays; numbers as int."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    array = item.detach().cpu().numpy() if isinstance(item, tg.Tensor) else np.asarray(item)
    if array.dtype.kind not in "iub" and array.size:
        raise IndexError(f"tensors used as indices must be integers or truth values, not {array.dtype}")
    return int(array) if array.ndim == 0 and array.dtype.kind in "iu" else array


def _axes(item: Any) -> int:
    """Return the number of the tensor's axes that an item of an index consumes."""
    return 0 if item is None or item is Ellipsis else item.ndim if isinstance(item, np.ndarray) and item.dtype.kind == "b" else 1


def _filled(items: list[Any], gap: int) -> list[Any]:
    """Replace the first ellipsis, or else the end, by `gap` full slices.

    IndexError if a second ellipsis would have axes to replace.
    """
    gaps = [i for i, item in enumerate(items) if item is Ellipsis]
    first, *others = gaps or [len(items)]
    if gap and any(map(_axes, items[others[0]:] if others else ())):
        raise IndexError("an index can only have a single ellipsis ('...')")
    rest = [item for item in items[first:] if item is not Ellipsis]
    return [*items[:first], *[slice(None)] * gap, *rest]


def _sliced(size: int | None, part: slice) -> int | None:
    if part.step is not None and part.step <= 0:
        raise ValueError("step must be greater than zero")
    if size is not None:
        return len(range(size)[part])
    shortest, longest = (len(range(n)[part]) for n in (1, 2 ** 62))        # equal for every size, or unknown
    return shortest if shortest == longest else None


def _indexed(sizes: Any, array: Any) -> tuple[int, ...]:
    """Return the shape of an index array's result, after checking it against the sizes it indexes."""
    if array.dtype.kind == "b":
        if any(n is not None and n != m for n, m in zip(sizes, array.shape, strict=True)):
            raise IndexError(f"the shape of the mask {list(array.shape)} does not match the shape of the indexed tensor {list(sizes)}")
        return int(array.sum()),
    if sizes[0] is not None and array.size and not -sizes[0] <= array.min() <= array.max() < sizes[0]:
        raise IndexError(f"index is out of bounds for dimension with size {sizes[0]}")
    return array.shape  # type: ignore[no-any-return]


def _joined(sizes: list[Any], gathered: list[tuple[int, tuple[int, ...]]]) -> list[Any]:
    """Insert the broadcast axes of index arrays: at the arrays' position if they are adjacent, else in front."""
    places = [place for place, _ in gathered]
    try:
        common = np.broadcast_shapes(*(shape for _, shape in gathered))
    except ValueError:
        raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                         f"{', '.join(str(list(shape)) for _, shape in gathered)}") from None
    at = places[0] if places[0] == places[-1] else 0
    return [*sizes[:at], *common, *sizes[at:]]


def shape_view(shape: Any, *args: Any) -> tuple[int | None, ...]:
    """Return the shape of `tensor.view(*args)`, or `view(shape)`.

    A single size may be -1; None means the tensor's unknown sizes.

    Errors: AssertionError if there are two -1, or the number of elements does not fit.

    >>> shape_view((4, 3, 10), -1, 6), shape_view((None, 3, 4), None, -1), shape_view((None, 3, 4), -1, 12)
    ((20, 6), (None, 12), (None, 12))
    """
    target = tuple(args[0]) if len(args) == 1 and is_sequence(args[0]) else args
    message = f"a tensor of shape {tuple(shape)} cannot be viewed as {target}"
    check(all(n is None or n == -1 or n >= 0 for n in target), f"{message}: sizes are not negative, but for one -1")
    check(target.count(-1) <= 1, f"{message}: only one size can be -1")
    unknown = [list(sizes).count(None) for sizes in (shape, target)]
    check(unknown[1] <= unknown[0], f"{message}: more sizes are not known than before")
    elements, others = math.prod(n for n in shape if n is not None), math.prod(n for n in target if n is not None and n != -1)
    if unknown[0] > unknown[1]:                     # the unknown size accounts for the rest
        check(-1 in target or unknown[1] or others % elements == 0, f"{message}: {others} elements are no multiple of {elements}")
        return tuple(None if n == -1 else n for n in target)
    check(elements == others if -1 not in target else others and elements % others == 0, f"{message}: {elements} elements do not fit")
    return tuple(elements // others if n == -1 else n for n in target)


# ── convolutions and pooling ──────────────────────────────────────────────────────────────────────────────────────────


def _for_each(dim: int, value: Any, name: str) -> tuple[int, ...]:
    """A number for each axis, from one for all or a sequence."""
    values = tuple(value) if is_sequence(value) else (value,) * dim
    check(len(values) == dim, f"{name} must be a number or {dim} numbers, got {value}")
    return values


def _split(dim: int, shape: Any, has_batch: bool) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """Split a shape into (batch and channels, spatial sizes)."""
    leading = 2 if has_batch else 1
    check(len(shape) == dim + leading, f"the input must have {dim + leading} sizes ({'batch, ' if has_batch else ''}channels and {dim} in space), got "
                                       f"{tuple(shape)}")
    return tuple(shape[:leading]), tuple(shape[leading:])


def _valid(shape: tuple[int | None, ...], before: Any, what: str) -> tuple[int | None, ...]:
    check(all(n is None or n > 0 for n in shape), f"shape after {what} is invalid: {tuple(before)} would become {shape}")
    return shape


def _check_groups(channels: int | None, out_channels: int, groups: int) -> None:
    check(groups > 0 and out_channels % groups == 0 and (channels is None or channels % groups == 0),
          f"{channels} channels to {out_channels} cannot be divided into {groups} groups")


def shape_convnd(dim: int, input_shape: Any, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 has_batch: bool = False, *, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> tuple[int | None, ...]:
    """The shape after a convolution over `dim` axes of an input of shape (channels, …), or (batch, channels, …) if it `has_batch`.

    (n + 2·padding − dilation·(kernel_size − 1) − 1) // stride + 1 for each axis; padding may be 'same' or 'valid'. The other arguments of a convolution
    may be given, too, and change nothing. Errors: AssertionError if there is no such result.

    >>> shape_convnd(2, (None, 3, 32, None), 8, 3, padding="same", has_batch=True), shape_convnd(1, (4, 10), 6, 3, stride=2)
    ((None, 8, 32, None), (6, 4))
    """
    (*batch, channels), sizes = _split(dim, input_shape, has_batch)
    _check_groups(channels, out_channels, groups)
    strides = _for_each(dim, stride, "stride")
    if padding == "same":
        check(set(strides) == {1}, "padding='same' is not supported for strided convolutions")
        return _valid((*batch, out_channels, *sizes), input_shape, "convolution")
    check(padding == "valid" or not isinstance(padding, str), f"padding must be a number, 'same' or 'valid', got {padding!r}")
    options = zip(sizes, _for_each(dim, kernel_size, "kernel_size"), strides, _for_each(dim, 0 if padding == "valid" else padding, "padding"),
                  _for_each(dim, dilation, "dilation"))
    return _valid((*batch, out_channels, *(None if each[0] is None else pooled_length(*each) for each in options)),
                  input_shape, "convolution")


def shape_transpose_convnd(dim: int, input_shape: Any, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                           groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None, *,
                           has_batch: bool = False) -> tuple[int | None, ...]:
    """The shape after a transposed convolution: (n − 1)·stride − 2·padding + dilation·(kernel_size − 1) + output_padding + 1 for each axis.

    Errors: AssertionError if there is no such result, or output_padding is not smaller than stride or dilation.

    >>> shape_transpose_convnd(2, (8, 7, None), 3, 4, stride=2, padding=1, output_padding=1)
    (3, 15, None)
    """
    (*batch, channels), sizes = _split(dim, input_shape, has_batch)
    _check_groups(channels, out_channels, groups)
    options = list(zip(sizes, *(_for_each(dim, value, name) for name, value in (
        ("kernel_size", kernel_size), ("stride", stride), ("padding", padding), ("output_padding", output_padding), ("dilation", dilation)))))
    check(all(extra < max(s, d) for _, _, s, _, extra, d in options), f"output padding {output_padding} must be smaller than either stride {stride} or "
                                                                      f"dilation {dilation}")
    length = [None if n is None else input_length((n,), (k,), (s,), (p,), (d,))[0] + extra for n, k, s, p, extra, d in options]
    return _valid((*batch, out_channels, *length), input_shape, "convolution")


def shape_poolnd(dim: int, input_shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
                 has_batch: bool = False) -> tuple[int | None, ...]:
    """The shape after pooling. The stride is the kernel's size by default; with `ceil_mode`, a window may reach over the end if it starts inside.

    >>> shape_poolnd(2, (16, 50, None), 3), shape_poolnd(1, (None, 16, 50), 3, ceil_mode=True, has_batch=True)
    ((16, 16, None), (None, 16, 17))
    """
    leading, sizes = _split(dim, input_shape, has_batch)
    options = zip(sizes, _for_each(dim, kernel_size, "kernel_size"), _for_each(dim, kernel_size if stride is None else stride, "stride"),
                  _for_each(dim, padding, "padding"), _for_each(dim, dilation, "dilation"))
    return _valid((*leading, *(None if n is None else _pooled(n, k, s, p, d, ceil_mode) for n, k, s, p, d in options)), input_shape, "pooling")


def _pooled(n: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    reach = dilation * (kernel - 1) + 1
    check(2 * padding <= reach, f"pad should be at most half of effective kernel size, but got pad={padding} and kernel_size={kernel}")
    windows: int = pooled_length(n, kernel, stride, padding, dilation, ceil_mode)
    return windows


def shape_maxpoolnd(dim: int, input_shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
                    ceil_mode: bool = False, *, has_batch: bool = False) -> Any:
    """`shape_poolnd` with the arguments of max pooling; a pair of shapes with `return_indices`."""
    shape = shape_poolnd(dim, input_shape, kernel_size, stride, padding, dilation, ceil_mode, has_batch)
    return (shape, shape) if return_indices else shape


def shape_avgpoolnd(dim: int, input_shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                    count_include_pad: bool = True, divisor_override: int | None = None, *, has_batch: bool = False) -> tuple[int | None, ...]:
    """`shape_poolnd` with the arguments of average pooling, which in three dimensions takes no kernel that is larger than the input, whatever the padding."""
    if dim == 3:
        _, sizes = _split(dim, input_shape, has_batch)
        check(all(n is None or k <= n for n, k in zip(sizes, _for_each(dim, kernel_size, "kernel_size"))),
              f"input image {tuple(sizes)} smaller than kernel size {kernel_size}")
    return shape_poolnd(dim, input_shape, kernel_size, stride, padding, 1, ceil_mode, has_batch)


def _over(dim: int, function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def shape_of(input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        return function(dim, input_shape, *args, **kwargs)
    shape_of.__name__ = shape_of.__qualname__ = name
    shape_of.__doc__ = f"`{function.__name__}` with dim={dim}."
    return shape_of


shape_conv1d, shape_conv2d, shape_conv3d = (_over(n, shape_convnd, f"shape_conv{n}d") for n in (1, 2, 3))
shape_transpose_conv1d, shape_transpose_conv2d, shape_transpose_conv3d = (
    _over(n, shape_transpose_convnd, f"shape_transpose_conv{n}d") for n in (1, 2, 3))
shape_maxpool1d, shape_maxpool2d, shape_maxpool3d = (_over(n, shape_maxpoolnd, f"shape_maxpool{n}d") for n in (1, 2, 3))
shape_avgpool1d, shape_avgpool2d, shape_avgpool3d = (_over(n, shape_avgpoolnd, f"shape_avgpool{n}d") for n in (1, 2, 3))
