"""Operators that move elements and make tensors. https://onnx.ai/onnx/operators/"""
from __future__ import annotations

from typing import Any

from ... import api as torch
from ...nn import functional as F
from ._table import number, numbers, operator
from ._types import dtype_of


@operator("Shape")
def shape(x: Any, *, start: int = 0, end: int | None = None) -> Any:
    return torch.tensor(list(x.shape[start:end]), dtype=torch.int64)


@operator("Size")
def size(x: Any) -> Any:
    return torch.tensor(x.numel(), dtype=torch.int64)


@operator("Reshape")
def reshape_to(x: Any, *, shape: Any, consumed_inputs: Any = None) -> Any:
    return reshape(x, shape)


@operator("Reshape", since=5)
def reshape(x: Any, shape: Any, *, allowzero: int = 0) -> Any:
    """A size 0 means the size of x, unless `allowzero` is set."""
    sizes = numbers(shape)
    if not allowzero:
        sizes = [x.shape[i] if n == 0 else n for i, n in enumerate(sizes)]
    return x.reshape(sizes)


@operator("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    before = 1
    for n in x.shape[:axis + x.ndim if axis < 0 else axis]:
        before *= n
    return x.reshape(before, x.numel() // before if before else 0)


@operator("Transpose")
def transpose(x: Any, *, perm: Any = None) -> Any:
    return x.permute(perm if perm is not None else list(range(x.ndim))[::-1])


@operator("Squeeze")
def squeeze_axes(x: Any, *, axes: Any = None) -> Any:
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


@operator("Squeeze", since=13)
def squeeze(x: Any, axes: Any = None) -> Any:
    return squeeze_axes(x, axes=None if axes is None else numbers(axes))


@operator("Unsqueeze")
def unsqueeze_axes(x: Any, *, axes: Any) -> Any:
    last = x.ndim + len(axes)
    for axis in sorted(axis % last for axis in axes):
        x = x.unsqueeze(axis)
    return x


@operator("Unsqueeze", since=13)
def unsqueeze(x: Any, axes: Any) -> Any:
    return unsqueeze_axes(x, axes=numbers(axes))


@operator("Expand")
def expand(x: Any, shape: Any) -> Any:
    """Broadcast x and the shape with each other."""
    return x.expand(torch.broadcast_shapes(tuple(x.shape), tuple(numbers(shape))))


@operator("Tile")
def tile(x: Any, repeats: Any) -> Any:
    return x.repeat(numbers(repeats)) if x.ndim else x


@operator("Concat")
def concat(*values: Any, axis: int = 1) -> Any:
    return torch.cat(values, axis)


@operator("Split", outputs=True)
def split_sizes(x: Any, *, axis: int = 0, split: Any = None, outputs: int) -> Any:
    return _split(x, axis, split, outputs)


@operator("Split", since=13, outputs=True)
def split(x: Any, sizes: Any = None, *, axis: int = 0, num_outputs: int | None = None, outputs: int) -> Any:
    return _split(x, axis, None if sizes is None else numbers(sizes), num_outputs or outputs)


def _split(x: Any, axis: int, sizes: Any, count: int) -> Any:
    """Split into parts of the given sizes, or into equal parts of which the last may be smaller."""
    if sizes is None:
        n = x.shape[axis]
        part = -(-n // count)
        sizes = [min(part, max(n - part * i, 0)) for i in range(count)]
    return tuple(torch.split(x, list(sizes), axis))


@operator("Slice")
def slice_axes(x: Any, *, starts: Any, ends: Any, axes: Any = None) -> Any:
    return slice_(x, starts, ends, axes)


@operator("Slice", since=10)
def slice_(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    firsts = numbers(starts)
    places = list(range(len(firsts))) if axes is None else numbers(axes)
    strides = [1] * len(firsts) if steps is None else numbers(steps)
    parts: list[Any] = [slice(None)] * x.ndim
    turned = []
    for axis, first, end, step in zip(places, firsts, numbers(ends), strides, strict=True):
        axis %= x.ndim
        if step > 0:
            parts[axis] = slice(first, end, step)
            continue
        rows = range(x.shape[axis])[slice(first, end if end >= -x.shape[axis] else None, step)]
        parts[axis] = slice(rows[-1], rows[0] + 1, -step) if len(rows) else slice(0, 0)
        turned.append(axis)
    found = x[tuple(parts)]
    return found.flip(turned) if turned else found


@operator("Pad")
def pad_fixed(x: Any, *, pads: Any = None, paddings: Any = None, mode: str = "constant", value: float = 0.0) -> Any:
    return pad(x, pads if pads is not None else paddings, value, mode=mode)


@operator("Pad", since=11, fixed=(2,))
def pad(x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Any:
    given = numbers(pads)
    places = [axis % x.ndim for axis in (range(x.ndim) if axes is None else numbers(axes))]
    widths = {axis: (given[i], given[i + len(places)]) for i, axis in enumerate(places)}
    if mode == "constant":
        flat = [n for axis in reversed(range(x.ndim)) for n in widths.get(axis, (0, 0))]
        return F.pad(x, flat, value=0 if value is None else number(value))
    for axis, (before, after) in widths.items():
        x = x.index_select(axis, _mirrored(x.shape[axis], before, after, mode))
    return x


def _mirrored(n: int, before: int, after: int, mode: str) -> Any:
    """Return which elements of an axis the padded axis has."""
    places = torch.arange(-before, n + after)
    if mode == "wrap":
        return places % n
    if mode == "edge":
        return places.clamp(0, n - 1)
    period = max(2 * (n - 1), 1)
    places = (places % period + period) % period
    return torch.where(places < n, places, period - places)


@operator("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = x.shape
    b = in_blocks(blocksize)
    if mode == "CRD":
        return F.pixel_shuffle(x, b)
    return x.reshape(n, b, b, c // b ** 2, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // b ** 2, h * b, w * b)


def in_blocks(size: int) -> int:
    """Return the size of a block. ValueError if it is no size."""
    if size < 1:
        raise ValueError(f"blocksize must be 1 or more, not {size}")
    return size


@operator("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int) -> Any:
    n, c, h, w = x.shape
    b = in_blocks(blocksize)
    return x.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4).reshape(n, c * b ** 2, h // b, w // b)


@operator("ReverseSequence")
def reverse_sequence(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    steps = torch.arange(x.shape[time_axis]).reshape([-1 if i == time_axis else 1 for i in range(x.ndim)])
    many = lengths.reshape([-1 if i == batch_axis else 1 for i in range(x.ndim)])
    return x.gather(time_axis, torch.where(steps < many, many - 1 - steps, steps).expand(x.shape))


@operator("Trilu")
def trilu(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    return (torch.triu if upper else torch.tril)(x, 0 if k is None else number(k))


@operator("EyeLike")
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0) -> Any:
    ones = torch.ones(x.shape, dtype=x.dtype if dtype is None else dtype_of(dtype))
    return torch.triu(torch.tril(ones, k), k)


# ── new tensors ───────────────────────────────────────────────────────────────────────────────────────────────────────


@operator("Constant")
def constant(*, value: Any = None, sparse_value: Any = None, value_float: Any = None, value_floats: Any = None,
             value_int: Any = None, value_ints: Any = None, value_string: Any = None, value_strings: Any = None) -> Any:
    for made, dtype in ((value_float, torch.float32), (value_floats, torch.float32), (value_int, torch.int64),
                        (value_ints, torch.int64)):
        if made is not None:
            return torch.tensor(made, dtype=dtype)
    return value if value is not None else sparse_value


@operator("ConstantOfShape")
def constant_of_shape(shape: Any, *, value: Any = None) -> Any:
    if value is None:
        return torch.zeros(numbers(shape))
    return torch.full(numbers(shape), value.item(), dtype=value.dtype)


@operator("Range")
def range_(start: Any, limit: Any, delta: Any) -> Any:
    first, step = number(start), number(delta)
    count = max(0, -int(-((number(limit) - first) / step) // 1))
    return (torch.arange(count).to(start.dtype) * step + first).to(start.dtype)


@operator("OneHot")
def one_hot(indices: Any, depth: Any, values: Any, *, axis: int = -1) -> Any:
    """values[1] where the index of a row is the place along the new axis, else values[0]; negative indices count from
    the end."""
    n = int(number(depth))
    places = indices.long()
    places = torch.where(places < 0, places + n, places).unsqueeze(axis if axis >= 0 else axis)
    steps = torch.arange(n).reshape([-1 if i == axis % places.ndim else 1 for i in range(places.ndim)])
    return torch.where(places == steps, values[1], values[0])


@operator("Bernoulli")
def bernoulli(x: Any, *, dtype: int | None = None, seed: float | None = None) -> Any:
    return torch.bernoulli(x, generator=_generator(seed)).to(x.dtype if dtype is None else dtype_of(dtype))


@operator("RandomNormal")
def random_normal(*, shape: Any, mean: float = 0.0, scale: float = 1.0, seed: float | None = None,
                  dtype: int = 1) -> Any:
    return torch.randn(shape, generator=_generator(seed), dtype=dtype_of(dtype)) * scale + mean


@operator("RandomNormalLike")
def random_normal_like(x: Any, *, mean: float = 0.0, scale: float = 1.0, seed: float | None = None,
                       dtype: int | None = None) -> Any:
    made = torch.randn(x.shape, generator=_generator(seed), dtype=x.dtype if dtype is None else dtype_of(dtype))
    return made * scale + mean


@operator("RandomUniform")
def random_uniform(*, shape: Any, low: float = 0.0, high: float = 1.0, seed: float | None = None,
                   dtype: int = 1) -> Any:
    return torch.rand(shape, generator=_generator(seed), dtype=dtype_of(dtype)) * (high - low) + low


@operator("RandomUniformLike")
def random_uniform_like(x: Any, *, low: float = 0.0, high: float = 1.0, seed: float | None = None,
                        dtype: int | None = None) -> Any:
    made = torch.rand(x.shape, generator=_generator(seed), dtype=x.dtype if dtype is None else dtype_of(dtype))
    return made * (high - low) + low


@operator("Multinomial")
def multinomial(x: Any, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Any:
    return torch.multinomial(torch.softmax(x, -1), sample_size, True, generator=_generator(seed)).to(dtype_of(dtype))


def _generator(seed: float | None) -> Any:
    return None if seed is None else torch.Generator().manual_seed(int(seed))
