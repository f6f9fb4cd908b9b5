"""Rules of functions that move axes and elements: components and the ragged axis stay whole."""
from __future__ import annotations

from typing import Any

from .. import api as tg
from .operations import axis_of, inner_axis, packed, rule
from .ragged import NestedInt, of_lengths
from .tensor import is_nested, like, nested, outer_shape, plain


@rule("transpose swapaxes swapdims")
def transpose(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, *rest = args
    first, second = (axis_of(x, d) for d in (rest or kwargs.values()))
    if 0 in (first, second):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    place = {first: second, second: first}.get(x._ragged_idx, x._ragged_idx)
    return like(x, func(plain(x), first - 1, second - 1), place)


@rule("permute")
def permute(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, *rest = args
    given = rest or list(kwargs.values())
    dims = [axis_of(x, d) for d in (given[0] if isinstance(given[0], (tuple, list)) else given)]
    if len(dims) != x.ndim:
        raise ValueError(f"permute(): number of dimensions in the tensor input ({x.ndim}) does not match the length of "
                         f"the desired ordering of dimensions ({len(dims)}).")
    if len(set(dims)) != len(dims):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if dims[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return like(x, plain(x).permute([d - 1 for d in dims[1:]]), dims.index(x._ragged_idx))


@rule("unsqueeze")
def unsqueeze(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, dim = args[0], args[1] if len(args) > 1 else kwargs["dim"]
    axis = dim if dim >= 0 else dim + x.ndim + 1
    if axis == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return like(x, func(plain(x), axis - 1), x._ragged_idx + (axis <= x._ragged_idx))


@rule("squeeze")
def squeeze(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim")
    if dim is None:
        raise RuntimeError("squeeze(): For nested tensors, squeeze without the dim argument is not supported")
    axis = inner_axis(x, dim, "squeeze")
    found = func(plain(x), axis)
    return like(x, found, x._ragged_idx - (found.ndim < x.array.ndim and axis + 1 < x._ragged_idx))


@rule("view reshape _unsafe_view")
def view(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Reshape the components: the batch axis stays in front, the ragged axis stays whole, and −1 may name either."""
    x, *rest = args
    shape = list(rest[0] if rest and isinstance(rest[0], (tuple, list)) else rest or kwargs.get("shape", ()))
    old = outer_shape(x)
    place = next((i for i, n in enumerate(shape) if isinstance(n, NestedInt)), None)
    if place is None and -1 in shape[1:]:
        place = shape.index(-1, 1)
    if place is None or place == 0 or shape[0] not in (old[0], -1):
        raise RuntimeError(f"{name}(): cannot view shape {tuple(old)} as {shape}")
    wanted = [*shape[1:place], x.array.shape[x._ragged_idx - 1], *shape[place + 1:]]
    before = tg.Size(wanted[:place - 1]).numel()
    if -1 not in wanted and before != tg.Size(x.array.shape[:x._ragged_idx - 1]).numel():
        raise RuntimeError(f"{name}(): cannot view shape {tuple(old)} as {shape}")
    if name == "view" and x._ragged_idx != 1 and tuple(shape) != tuple(old):
        raise RuntimeError("view(): does not support ragged_idx != 1 except when inp._size == size. inp._size is "
                           f"({tuple(old)}) and size is ({shape}).")
    values = plain(x).contiguous() if name == "reshape" else plain(x)
    return like(x, func(values, wanted), place)


@rule("unflatten")
def unflatten(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, dim, sizes = [*args, *kwargs.values()]
    axis = inner_axis(x, dim, name)
    return like(x, func(plain(x), axis, sizes), x._ragged_idx + (len(sizes) - 1) * (axis + 1 < x._ragged_idx))


@rule("flatten")
def flatten(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    given = dict(zip(("start_dim", "end_dim"), args[1:])) | kwargs
    x, first, last = args[0], given.get("start_dim", 0), given.get("end_dim", -1)
    start, end = inner_axis(x, first, name, ragged=True), inner_axis(x, last, name, ragged=True)
    if start < x._ragged_idx - 1 <= end or start == x._ragged_idx - 1 < end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    return like(x, func(plain(x), start, end), x._ragged_idx - (end - start) * (end + 1 < x._ragged_idx))


@rule("expand expand_as")
def expand(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, *rest = args
    if name == "expand_as":
        rest = list(rest[0].shape)
    shape = list(rest[0] if isinstance(rest[0], (tuple, list)) else rest)
    if len(shape) != x.ndim or shape[0] not in (-1, x._ragged.batch) or (
            shape[x._ragged_idx] != x._ragged.size and shape[x._ragged_idx] != -1):
        raise RuntimeError(f"expand(): cannot expand shape {tuple(outer_shape(x))} -> {tuple(shape)}")
    shape[x._ragged_idx] = -1
    return like(x, plain(x).expand(shape[1:]))


@rule("select")
def select(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, dim, index = [*args, *kwargs.values()]
    if axis_of(x, dim) == 0:
        return component(x, index)
    axis = inner_axis(x, dim, name)
    return like(x, func(plain(x), axis, index), x._ragged_idx - (axis + 1 < x._ragged_idx))


def component(x: Any, number: int) -> Any:
    """Return the component with this number, as a tensor."""
    ragged = x._ragged
    if not -ragged.batch <= number < ragged.batch:
        raise IndexError("tuple index out of range")
    return plain(x).narrow(x._ragged_idx - 1, int(ragged.starts[number]), int(ragged.counts[number]))


@rule("unbind")
def unbind(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim", 0)
    if axis_of(x, dim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    ragged, place = x._ragged, x._ragged_idx
    if place < 1:
        raise RuntimeError("unbind(): nested tensor ragged_idx out of bounds (should be >= 1)")
    if (ragged.starts + ragged.counts).max(initial=0) > x.array.shape[place - 1]:
        raise RuntimeError("unbind(): nested tensor offsets and lengths do not match ragged_idx dimension")
    return tuple(component(x, i) for i in range(x._ragged.batch))


@rule("__getitem__")
def getitem(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Index a component and then into it, or slice axes that are not ragged."""
    x, index = args
    index = index if isinstance(index, tuple) else (index,)
    if Ellipsis in index:
        at = index.index(Ellipsis)
        index = (*index[:at], *[slice(None)] * (x.ndim - len(index) + 1), *index[at + 1:])
    first, *rest = index
    if isinstance(first, int) and not isinstance(first, bool):
        return component(x, first)[tuple(rest)] if rest else component(x, first)
    if first != slice(None):
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0")
    place = x._ragged_idx
    if any(part is None or isinstance(part, (tg.Tensor, list)) for part in rest) or (
            len(rest) >= place and rest[place - 1] != slice(None)):
        raise RuntimeError("slice(): not supported for NestedTensor on ragged dim")
    return like(x, plain(x)[tuple(rest)], place - sum(isinstance(part, int) for part in rest[:place - 1]))


@rule("chunk split split_with_sizes tensor_split unsafe_split unsafe_chunk")
def split(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, sizes = args[0], args[1] if len(args) > 1 else next(iter(kwargs.values()))
    dim = args[2] if len(args) > 2 else kwargs.get("dim", 0)
    if axis_of(x, dim) == 0 and name == "chunk":
        parts = plain(packed(x)).split(packed(x)._ragged.counts.tolist(), x._ragged_idx - 1)
        step = -(-len(parts) // sizes)
        groups = [parts[i:i + step] for i in range(0, len(parts), step)]
        return tuple(nested(tg.cat(g, x._ragged_idx - 1), of_lengths([p.shape[x._ragged_idx - 1] for p in g]),
                            x._ragged_idx) for g in groups)
    axis = inner_axis(x, dim, name if isinstance(sizes, int) else "split_with_sizes")
    return tuple(like(x, part) for part in func(plain(x), sizes, axis))


@rule("narrow")
def narrow(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, dim, *rest = [*args, *kwargs.values()]
    return like(x, func(plain(x), inner_axis(x, dim, name), *rest))


@rule("cat concat concatenate stack")
def cat(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Join nested tensors of the same shape along another axis."""
    parts, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim", 0)
    x = next(filter(is_nested, parts))
    if not all(is_nested(p) and p._ragged.size == x._ragged.size and p._ragged_idx == x._ragged_idx for p in parts):
        raise RuntimeError(f"{name}(): the nested tensors must have the same components' lengths")
    if name == "stack":
        axis = dim if dim >= 0 else dim + x.ndim + 1
        if axis == 0:
            raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
        return like(x, func([plain(p) for p in parts], axis - 1), x._ragged_idx + (axis <= x._ragged_idx))
    return like(x, func([plain(p) for p in parts], inner_axis(x, dim, name)))


@rule("is_same_size")
def is_same_size(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    a, b = args
    for word, t in (("self", a), ("other", b)):
        if not is_nested(t):
            raise ValueError("NestedTensor is_same_size_default(self: jt_all, other: jt_all): expected "
                             f"{word} to be a jagged layout NestedTensor")
    return tuple(outer_shape(a)) == tuple(outer_shape(b))


@rule("tolist numpy __array__")
def refused(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    rest = ", got NestedTensor" if name == "tolist" else "."
    raise RuntimeError(f".{name}() is not supported for tensor subclasses{rest}")


__all__ = ["component"]
