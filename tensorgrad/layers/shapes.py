"""Shapes of results: of slices, views, convolutions and pooling. None is an unknown size.

The engine's own functions and modules compute them, on tensors without numbers. Unknown sizes take two values in turn:
a size of the result that differs between the two is unknown. An impossible result is an AssertionError with the shapes
and the engine's message; for a slice, PyTorch's IndexError or ValueError.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import api as tg
from ..nn import modules as nn
from ..symbolic.fake_tensors import fake
from .structures import is_mapping, is_sequence, recursive_compare, recursive_flatten, recursive_map

__all__ = ["ShapeSlice", "get_dim", "get_dim_from_shape", "get_shape", "is_sequence_shape", "is_simple_shape",
           "is_valid_shape", "numel", "print_shape", "shape_avgpool1d", "shape_avgpool2d", "shape_avgpool3d",
           "shape_avgpoolnd", "shape_conv1d", "shape_conv2d", "shape_conv3d", "shape_convnd", "shape_equals",
           "shape_maxpool1d", "shape_maxpool2d", "shape_maxpool3d", "shape_maxpoolnd", "shape_poolnd", "shape_slice",
           "shape_transpose_conv1d", "shape_transpose_conv2d",
           "shape_transpose_conv3d",
           "shape_transpose_convnd",
           "shape_view"]


# ── what is a shape ───────────────────────────────────────────────────────────────────────────────────────────────────


def is_simple_shape(shape: Any) -> bool:
    """Return True for the shape of a single tensor: a list or tuple of positive integers, or None for unknown sizes.

    >>> is_simple_shape((None, 3)), is_simple_shape([2, 0]), is_simple_shape([(2, 3)])
    (True, False, False)
    """
    return is_sequence(shape) and all(n is None or isinstance(n, (int, np.integer)) and not isinstance(n, bool)
                                      and n > 0 for n in shape)


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
                             comparator=lambda one, other: len(one) == len(other)
                             and tuple(one[start:]) == tuple(other[start:]))


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
    """The shape of a tensor of this shape after `[index]`: integers, slices, None, an ellipsis, and lists and tensors
    of indices or truth values.

    Errors: IndexError for an index out of range, too many of them, or index tensors that do not fit together;
    ValueError for a step that is not positive.

    >>> shape_slice((4, None, 6), (slice(1, None), ..., slice(None, None, 4))), shape_slice((4, 5), [0, 2, 2])
    ((3, None, 2), (3, 5))
    """
    parts = tuple(map(_as_index, index if isinstance(index, tuple) else (index,)))
    many = 2 + 2 * max(map(_reach, parts), default=0)           # more than any index
    masks = {n for part in parts if isinstance(part, tg.Tensor) and part.dtype is tg.bool for n in part.shape}
    sizes, found = _first_fit([(many, *masks) if n is None else (n,) for n in shape], parts)
    # another size changes the result, or is refused: then the index implies it
    for axis, n in enumerate(shape):
        for other in (1, many + 1) if n is None else ():
            try:
                changed = _sliced([*sizes[:axis], other, *sizes[axis + 1:]], parts)
            except IndexError:
                continue
            found = _merged(found, changed)
    return found


def _first_fit(candidates: Any, parts: Any) -> Any:
    """Return the first choice of candidates for sizes for which the index is valid, and the shape of the result."""
    refusals = []
    for sizes in itertools.product(*candidates):
        try:
            return sizes, tuple(_sliced(sizes, parts))
        except IndexError as error:
            refusals.append(error)
    raise refusals[0]


def _sliced(shape: Any, parts: Any) -> Any:
    return fake(shape, tg.bool)[parts].shape


def _as_index(part: Any) -> Any:
    """Return numbers, lists and arrays as tensors."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    array = part.detach().cpu().numpy() if isinstance(part, tg.Tensor) else np.asarray(part)
    if array.dtype.kind not in "iub" and array.size:
        raise IndexError(f"tensors used as indices must be integers or truth values, not {array.dtype}")
    return tg.tensor(array if array.size else array.astype(np.int64))


def _reach(part: Any) -> int:
    """Return the greatest absolute value of the numbers in a part of an index."""
    if isinstance(part, slice):                 # up to 2²⁰: a slice may reach beyond the end
        return min(max(abs(n or 0) for n in (part.start, part.stop, part.step)), 1 << 20)
    return max(map(abs, part.reshape(-1).tolist()), default=0) if isinstance(part, tg.Tensor) else 0


def shape_view(shape: Any, *args: Any) -> tuple[int | None, ...]:
    """Return the shape of `tensor.view(*args)`, or `view(shape)`.

    A single size may be -1; None means the tensor's unknown sizes.

    Errors: AssertionError if there are two -1, or the number of elements does not fit.

    >>> shape_view((4, 3, 10), -1, 6), shape_view((None, 3, 4), None, -1), shape_view((None, 3, 4), -1, 12)
    ((20, 6), (None, 12), (None, 12))
    """
    target = list(args[0] if len(args) == 1 and is_sequence(args[0]) else args)
    here, there = list(shape).count(None), target.count(None)
    factor = math.prod(abs(n) or 1 for n in target if n is not None)        # so that -1 finds a whole number

    def world(n: int) -> Any:
        wanted = _filled(target, n)
        if here > there and -1 not in target:           # an unknown size accounts for the rest
            if not there:
                rest = iter([-1, *[1] * here])
                fake(wanted).view([next(rest) if size is None else size for size in shape])
                return wanted
            wanted[target.index(None)] = -1
        return fake(_filled(shape, n)).view(wanted).shape
    try:
        if here < there:
            raise ValueError("more sizes are not known than before")
        return _merged(world(2 * factor), world(4 * factor))
    except (RuntimeError, ValueError) as error:
        raise AssertionError(f"a tensor of shape {tuple(shape)} cannot be viewed as {tuple(target)}: "
                             f"{_first_line(error)}") from None


def _filled(shape: Any, n: int) -> list[int]:
    """Return the sizes with `n` for each unknown one."""
    return [n if size is None else size for size in shape]


def _merged(one: Any, other: Any) -> tuple[int | None, ...]:
    """Return the sizes that two shapes share; None where they differ."""
    return tuple(n if n == m else None for n, m in zip(one, other, strict=True))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


# ── convolutions and pooling ──────────────────────────────────────────────────────────────────────────────────────────


def _after(dim: int, shape: Any, has_batch: bool, kind: str, make: Any, room: int) -> Any:
    """Return the shape of the result of a module for an input of this shape; a tuple of shapes for several results.

    `make(cls, channels)` makes the module, of the class `kind` in so many dimensions. Unknown sizes are multiples of
    `room`, which is more than a window reaches.
    """
    axes = dim + (2 if has_batch else 1)
    if len(shape) != axes:
        raise AssertionError(f"the input must have {axes} sizes ({'batch, ' if has_batch else ''}channels and {dim} in "
                             f"space), got {tuple(shape)}")
    cls = getattr(nn, f"{kind}{dim}d")
    invalid = f"shape after {'pooling' if 'Pool' in kind else 'convolution'} is invalid: {tuple(shape)}"
    try:
        worlds = []
        for n in (room, 2 * room) if None in shape else (room,):
            x = fake(_filled(shape, n))
            with tg.no_grad(), tg.device("meta"):
                worlds.append(make(cls, x.shape[-dim - 1])(x))
    except (RuntimeError, ValueError, TypeError) as error:
        raise AssertionError(f"{invalid}: {_first_line(error)}") from None
    results = [world if isinstance(world, tuple) else (world,) for world in worlds]
    shapes = tuple(_merged(one.shape, other.shape) for one, other in zip(results[0], results[-1], strict=True))
    if any(0 in found for found in shapes):
        raise AssertionError(f"{invalid} would become {shapes[0]}")
    return shapes if isinstance(worlds[0], tuple) else shapes[0]


def _room(size: Any, step: Any, more: Any = 0) -> int:
    """Return a number above `size · step + more`, for options of one number or several."""
    most = [max(option) if is_sequence(option) else option or 0 for option in (size, step, more)]
    return 1 + max(most[0] * most[1] + most[2], 0)


def shape_convnd(dim: int, input_shape: Any, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, has_batch: bool = False, *, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> tuple[int | None, ...]:
    """The shape after a convolution over `dim` axes of an input of shape (channels, …), or (batch, channels, …) if it
    `has_batch`.

    (n + 2·padding − dilation·(kernel_size − 1) − 1) // stride + 1 for each axis; padding may be 'same' or 'valid'. The
    other arguments of a convolution may be given, too, and change nothing. Errors: AssertionError if there is no such
    result.

    >>> shape_convnd(2, (None, 3, 32, None), 8, 3, padding="same", has_batch=True), shape_convnd(1, (4, 10), 6, 3, stride=2)
    ((None, 8, 32, None), (6, 4))
    """  # noqa: E501
    def make(cls: Any, channels: int) -> Any:
        return cls(channels, out_channels, kernel_size, stride, padding, dilation, groups, bias=False)
    return _after(dim, input_shape, has_batch, "Conv", make, groups * _room(kernel_size, dilation, stride))


def shape_transpose_convnd(dim: int, input_shape: Any, out_channels: int, kernel_size: Any, stride: Any = 1,
                           padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
                           dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None, *,
                           has_batch: bool = False) -> tuple[int | None, ...]:
    """The shape after a transposed convolution: (n − 1)·stride − 2·padding + dilation·(kernel_size − 1) +
    output_padding + 1 for each axis.

    Errors: AssertionError if there is no such result, or output_padding is not smaller than stride or dilation.

    >>> shape_transpose_convnd(2, (8, 7, None), 3, 4, stride=2, padding=1, output_padding=1)
    (3, 15, None)
    """
    def make(cls: Any, channels: int) -> Any:
        return cls(channels, out_channels, kernel_size, stride, padding, output_padding, groups, False, dilation)
    return _after(dim, input_shape, has_batch, "ConvTranspose", make, groups * _room(2, padding))


def shape_poolnd(dim: int, input_shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                 ceil_mode: bool = False, has_batch: bool = False) -> tuple[int | None, ...]:
    """The shape after pooling. The stride is the kernel's size by default; with `ceil_mode`, a window may reach over
    the end if it starts inside.

    Errors: AssertionError if there is no such result.

    >>> shape_poolnd(2, (16, 50, None), 3), shape_poolnd(1, (None, 16, 50), 3, ceil_mode=True, has_batch=True)
    ((16, 16, None), (None, 16, 17))
    """
    return shape_maxpoolnd(dim, input_shape, kernel_size, stride, padding, dilation, False, ceil_mode,
                           has_batch=has_batch)  # type: ignore[no-any-return]


def shape_maxpoolnd(dim: int, input_shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                    dilation: Any = 1, return_indices: bool = False, ceil_mode: bool = False, *,
                    has_batch: bool = False) -> Any:
    """`shape_poolnd` with the arguments of max pooling; a pair of shapes with `return_indices`."""
    def make(cls: Any, channels: int) -> Any:
        return cls(kernel_size, stride, padding, dilation, return_indices, ceil_mode)
    return _after(dim, input_shape, has_batch, "MaxPool", make, _room(kernel_size, dilation, stride))


def shape_avgpoolnd(dim: int, input_shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None, *,
                    has_batch: bool = False) -> tuple[int | None, ...]:
    """`shape_poolnd` with the arguments of average pooling, which in three dimensions takes no kernel that is larger
    than the input, whatever the padding."""
    def make(cls: Any, channels: int) -> Any:
        return cls(kernel_size, stride, padding, ceil_mode, count_include_pad)
    return _after(dim, input_shape, has_batch, "AvgPool", make, _room(kernel_size, 1, stride))  # type: ignore[no-any-return]


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
