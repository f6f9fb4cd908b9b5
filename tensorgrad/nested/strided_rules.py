"""Rules of functions of strided nested tensors, see strided.py: on the buffer, on its description, or by components."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import api as tg
from .._tensor.torch_function import state
from .operations import ELEMENTWISE, PLAIN
from .rules import Rules
from .strided import (
    NO_SIZES,
    StridedNested,
    alike,
    axis_of,
    buffer,
    component,
    components,
    content,
    is_strided,
    joined,
    rows,
    strided,
    view_of,
)

# functions of one tensor that also run on buffers with gaps
ANY_BUFFER = frozenset("to float double half bfloat16 int long short char byte bool cpu cuda type clone detach dropout "
                       "fill zero empty_like data grad copy".split())
ADDED = ("add", "sub", "copy")          # functions that run on contiguous copies where the components' offsets differ
NO_AUTHOR = ("is not supported at the moment if you need this feature, please open an issue on github describing your "
             "use case.")


def refuse(name: str) -> NotImplementedError:
    return NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend. This "
                               "could be because the operator doesn't exist for this backend, or was omitted during "
                               "the selective/custom build process (if using custom build).")


def _property(func: Any, args: Any) -> Any:
    """Read or write a property of the buffer: tensors of its length are nested."""
    x, own = args[0], getattr(func, "__self__", None)
    if own is tg.Tensor.T:
        raise refuse("permute")
    if own is tg.Tensor.mT:
        return transposed(x, -2, -1)
    if own is tg.Tensor._base:
        return func(x)
    found = func(x, *(buffer(a) if is_strided(a) else a for a in args[1:]))
    same = isinstance(found, tg.Tensor) and found.array.shape == x.array.shape
    return alike(x, found) if same else found


rule = Rules(refuse, _property)


@rule(" ".join(PLAIN))
def plainly(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)


@rule("_native_multi_head_attention _transformer_encoder_layer_fwd")
def padded(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Let the function pad the components itself, with methods of nested tensors."""
    before, state.classes = state.classes, True
    try:
        return func.__wrapped__(*args, **kwargs)
    finally:
        state.classes = before


# ── elements ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@rule(" ".join(ELEMENTWISE))
def elementwise(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Apply f to the buffers, whose components must have equal sizes and offsets."""
    base = name.rstrip("_")
    nested = [a for a in (*args, *kwargs.values()) if is_strided(a)]
    x = nested[0]
    if base == "contiguous" or kwargs.get("memory_format") is tg.contiguous_format:
        x, kwargs = contiguous(x), {key: value for key, value in kwargs.items() if key != "memory_format"}
        if base == "contiguous":
            return x
        args = (x, *args[1:])
    elif kwargs.get("memory_format") not in (None, tg.preserve_format):
        shown = "".join(word.capitalize() for word in str(kwargs["memory_format"]).partition(".")[2].split("_"))
        raise RuntimeError("Nested tensor clone supports Preserve and Contiguous memory formats, called clone with "
                           f"memory format: {shown}" if base == "clone" else "empty_like_nested only supports memory "
                           f"format Preserve or Contiguous, but got {shown} instead.")
    if base not in ("to", "fill"):
        _check_operands(base, args, kwargs)
    if base == "fill" and isinstance(args[1], tg.Tensor) and args[1].ndim:
        raise RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with "
                           f"{args[1].ndim} dimensions.")
    if len(nested) > 1 and base != "to":
        if all((a._sizes == x._sizes).all() for a in nested) and base in ADDED:
            args = tuple(contiguous(a) if is_strided(a) and not (name.endswith("_") and a is args[0]) else a
                         for a in args)
            x = next(a for a in args if is_strided(a))
        _check_places(base, x, nested if base not in ADDED else [a for a in args if is_strided(a)])
    elif base not in ANY_BUFFER and len(args) == 1 and not x.is_contiguous():
        raise RuntimeError("NestedTensor must be contiguous to get buffer.")
    flat = [buffer(a) if is_strided(a) else a for a in args]
    named = {key: buffer(a) if is_strided(a) else a for key, a in kwargs.items() if key != "layout"}
    found = func(*flat, **named)
    if name.endswith("_") and is_strided(args[0]):
        return args[0]
    if not isinstance(found, tg.Tensor):
        return found
    return x if found is flat[0] else alike(x, found)


def _check_operands(name: str, args: Any, kwargs: Any) -> None:
    """Raise PyTorch's errors for a nested tensor and a dense one with axes, and for other sizes."""
    tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, tg.Tensor)]
    sides = [is_strided(a) for a in tensors]
    if not sides[0] and tensors[0].array.ndim == 0 and len(args) == 2 and name in ("mul", "add", "sub", "div"):
        return
    if any(not side and t.array.ndim for side, t in zip(sides, tensors, strict=True)):
        kinds = ["nested" if side else "non-nested" for side in sides[:2]]
        raise RuntimeError(f"Expected both self and other to be nested, but got a {kinds[0]} self and {kinds[1]} other")
    sizes = [t._sizes for t in tensors if is_strided(t)]
    if any(one.shape != sizes[0].shape or (one != sizes[0]).any() for one in sizes[1:]):
        if name == "copy":
            raise RuntimeError("copy_ only supports tensors that are the same size for Nested implementations")
        short = {"multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub"}.get(name, name)
        raise RuntimeError(f"{short} does not support broadcasting when given a NestedTensor")


def _check_places(name: str, x: Any, others: Any) -> None:
    for part, values in (("strides", "_steps"), ("offsets", "_starts")):
        if any((getattr(a, values) != getattr(x, values)).any() for a in others):
            raise RuntimeError(f"{name} requires {part} to match when given NestedTensors")


def contiguous(x: Any) -> Any:
    """Return the nested tensor with contiguous components, one after another."""
    return x if x.is_contiguous() else joined(components(x))


# ── layers ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@rule("linear")
def linear(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, weight = args[0], args[1] if len(args) > 1 else kwargs["weight"]
    if not is_strided(x):
        raise RuntimeError("linear(): the weight and bias of dense tensors must not be nested")
    if is_strided(weight):
        raise RuntimeError("Linear does not support nested weight when input is a nested tensor.")
    if not x.is_contiguous():
        raise RuntimeError("for now linear only supports contiguous nested tensor")
    if x.ndim != 3 or weight.ndim != 2:
        raise RuntimeError(f"Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: "
                           f"{x.ndim}. Dense tensor dim: {weight.ndim}")
    last = _last(x)
    if last != weight.shape[1]:
        raise RuntimeError("Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) 'last_dim' to "
                           f"equal 'weight.size(1), but got: last_dim = {last}, and weight.size(1) = "
                           f"{weight.shape[1]}")
    out = func(content(x).view(-1, last), *args[1:], **kwargs)
    return strided(out.reshape(-1), _with_last(x, weight.shape[0]))


def _last(x: Any) -> int:
    """Return the length of the last axis, in which all components agree."""
    lengths = x._sizes[:, -1].tolist()
    if len(set(lengths)) > 1:
        raise RuntimeError("Expected all tensors in nested tensor to have the same trailing dimension, instead last "
                           f"dimension equals:  {lengths[0]}")
    return int(lengths[0])


def _with_last(x: Any, length: int) -> Any:
    sizes = x._sizes.copy()
    sizes[:, -1] = length
    return sizes


@rule("embedding")
def embedding(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x = contiguous(args[0])
    if x.ndim > 2:
        raise RuntimeError("Expected indices.dim() < 3 to be true, but got false.")
    out = func(content(x), *args[1:], **kwargs)
    width = np.full((len(x._sizes), 1), out.shape[-1])
    return strided(out.reshape(-1), np.concatenate([x._sizes, width], axis=1))


@rule("layer_norm")
def layer_norm(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, shape = args[0], tuple(args[1] if len(args) > 1 else kwargs["normalized_shape"])
    sizes = x._sizes[:, x.ndim - 1 - len(shape):] if len(shape) < x.ndim else x._sizes
    if len(shape) >= x.ndim or (sizes != sizes[:1]).any():
        raise RuntimeError("normalized_shape extends into irregular dimensions for the nested tensor")
    for place, (wanted, found) in enumerate(zip(shape, sizes[0].tolist(), strict=True)):
        if wanted != found:
            raise RuntimeError(f"The shape at dimension {place}of normalized_shape doesn't match the input")
    flat = content(contiguous(x)).view(-1, *shape)
    return strided(func(flat, *args[1:], **kwargs).reshape(-1), x._sizes)


@rule("softmax log_softmax")
def softmax(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, *rest = args
    dim = rest.pop(0) if rest else kwargs.pop("dim")
    if not len(x._sizes):
        return x
    axis = axis_of(x, dim)
    if axis == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return joined([func(part, axis - 1, *rest, **kwargs) for part in components(x)])


@rule("bmm")
def bmm(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Multiply component by component; one operand may be a dense batch."""
    a, b = args
    for place, t in enumerate(args, 1):
        if t.ndim != 3:
            raise RuntimeError(f"batch{place} must be a 3D tensor")
    one, two = (components(t) if is_strided(t) else list(t.unbind()) for t in args)
    if len(one) != len(two):
        raise RuntimeError(f"Expected size for the 1st dimension of batch2 tensor to be: {len(one)} but got: "
                           f"{len(two)}.")
    for number, (p, q) in enumerate(zip(one, two, strict=True)):
        if p.shape[1] != q.shape[0]:
            raise RuntimeError(f"{number}-th nested matrices in batch cannot be multiplied ({p.shape[0]}x{p.shape[1]} "
                               f"and {q.shape[0]}x{q.shape[1]})")
    return joined([p @ q for p, q in zip(one, two, strict=True)])


@rule("matmul")
def matmul(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    a, b = args
    if is_strided(a) and not is_strided(b) and a.ndim > 3 and b.ndim == 2:
        return joined([part @ b for part in components(a)])
    if not is_strided(a) or not is_strided(b):
        one, two = ("nested" if is_strided(t) else "non-nested" for t in args)
        raise RuntimeError(f"Expected both to be nested, but got a {one} self and {two} other")
    for place, t in (("1st", a), ("2nd", b)):
        if t.ndim < 3:
            raise RuntimeError("matmul: For nested tensors, only inputs with >= 3 dims are currently supported. "
                               f"{place} input has rank: {t.ndim}")
    if a.ndim != b.ndim:
        raise RuntimeError("matmul: both inputs must have the same rank")
    if len(a._sizes) != len(b._sizes):
        raise RuntimeError("matmul: Expected size for the 1st dimension of 2nd input tensor to be: "
                           f"{len(a._sizes)} but got: {len(b._sizes)}.")
    for one, two in zip(a._sizes.tolist(), b._sizes.tolist(), strict=True):
        if one[:-2] != two[:-2]:
            raise RuntimeError("matmul: For nested tensors, batch dimensions must have the same sizes, found "
                               f"{one[:-2]} and {two[:-2]}")
        if one[-1] != two[-2]:
            raise RuntimeError("matmul: Nested tensors cannot be matrix multiplied, last dimension of self has sizes "
                               f"{one[-1]}")
    return joined([p @ q for p, q in zip(components(a), components(b), strict=True)])


@rule("scaled_dot_product_attention")
def attention(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    given = dict(zip(("query", "key", "value", "attn_mask", "dropout_p", "is_causal"), args)) | kwargs
    operands = [given.pop(key) for key in ("query", "key", "value")]
    if not all(map(is_strided, operands)):
        raise RuntimeError("scaled_dot_product_attention: Expected query, key and value to be nested tensors")
    if given.get("attn_mask") is not None:
        raise RuntimeError("_scaled_dot_product_attention: Nested tensors for query / key are not supported when an "
                           "explicit attn_mask is set")
    if given.get("is_causal"):
        raise RuntimeError("_scaled_dot_product_attention: Nested tensors for query / key are not supported when "
                           "is_causal=True")
    if not all(t.is_contiguous() for t in operands):
        raise RuntimeError("scaled_dot_product_attention: If inputs are nested tensors they must be contiguous")
    return joined([func(*parts, **given) for parts in zip(*map(components, operands), strict=True)])


@rule("sum")
def total(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    given = dict(zip(("dim", "keepdim"), args[1:])) | kwargs
    x, dims = args[0], given.pop("dim", None)
    if dims is None:
        raise refuse("sum")
    dims = tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if len(dims) != 1:
        raise RuntimeError("NestedTensor only allows reduction of a single dimension for now.")
    axis = axis_of(x, dims[0])
    if axis != x.ndim - 1:
        raise RuntimeError("NestedTensor can only be reduced across the last dimension for now got dimension "
                           f"{axis} instead.")
    if not given.pop("keepdim", False):
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    if not x.is_contiguous():
        raise RuntimeError("NestedTensor does not support reductions when the input is noncontiguous for now.")
    return joined([func(part, -1, keepdim=True, **given) for part in components(x)])


# ── components and their axes ─────────────────────────────────────────────────────────────────────────────────────────


@rule("unbind")
def unbind(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim", 0)
    if axis_of(x, dim) != 0:
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
    return tuple(components(x))


@rule("select")
def select(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, dim, index = [*args, *kwargs.values()]
    axis = axis_of(x, dim)
    if axis == 0:
        return _numbered(x, index)
    lengths = x._sizes[:, axis - 1]
    if index < 0 or (lengths <= index).any():
        number = 0 if index < 0 else int(np.argmax(lengths <= index))
        raise IndexError(f"index {index} is out of bounds for dimension {axis - 1} of the {number}th constituent "
                         f"tensor with size {lengths[number]}")
    sizes, steps = (np.delete(part, axis - 1, axis=1) for part in (x._sizes, x._steps))
    return view_of(x, sizes, steps, x._starts + index * x._steps[:, axis - 1])


def _numbered(x: Any, number: int) -> Any:
    count = len(x._sizes)
    if not -count <= number < count:
        raise IndexError(f"index {number} is out of bounds for dimension 0 with size {count}")
    return component(x, number)


@rule("__getitem__")
def getitem(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, index = args
    first, *rest = index if isinstance(index, tuple) else (index,)
    if first is Ellipsis and not rest:
        return x
    if first is None:
        return rule.of["unsqueeze"](func, "unsqueeze", (x, 0), {})
    if not isinstance(first, int) or isinstance(first, bool):
        raise refuse("index.Tensor" if isinstance(first, tg.Tensor) else "slice.Tensor")
    found = _numbered(x, first)
    return found[tuple(rest)] if rest else found


@rule("narrow")
def narrow(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, dim, start, length = [*args, *kwargs.values()]
    if axis_of(x, dim) != 0:
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    if not x.is_contiguous():
        raise RuntimeError("narrow(): only contiguous nested tensors supported")
    if start + length > len(x._sizes):
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({len(x._sizes)}).")
    part = slice(start, start + length)
    return view_of(x, x._sizes[part], x._steps[part], x._starts[part])


@rule("transpose swapaxes swapdims")
def transpose(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, first, second = [*args, *kwargs.values()]
    return transposed(x, first, second)


def transposed(x: Any, first: int, second: int) -> Any:
    one, two = axis_of(x, first), axis_of(x, second)
    if 0 in (one, two):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    order = list(range(x.ndim - 1))
    order[one - 1], order[two - 1] = order[two - 1], order[one - 1]
    return view_of(x, x._sizes[:, order], x._steps[:, order], x._starts)


@rule("unsqueeze")
def unsqueeze(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, dim = args[0], args[1] if len(args) > 1 else kwargs["dim"]
    axis = axis_of(x, dim, 1)
    if axis == 0:
        raise RuntimeError(f"unsqueeze(): For nested tensors, unsqueezing dimension 0 {NO_AUTHOR}")
    step = x._sizes[:, axis - 1] * x._steps[:, axis - 1] if axis < x.ndim else np.ones(len(x._sizes), dtype="int64")
    return view_of(x, np.insert(x._sizes, axis - 1, 1, axis=1), np.insert(x._steps, axis - 1, step, axis=1),
                   x._starts)


@rule("squeeze")
def squeeze(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim")
    if dim is None:
        raise RuntimeError("squeeze(): For nested tensors, squeeze without the dim argument is not supported at the "
                           "moment, however you can use squeeze(Tensor self, int dim) instead if you need this "
                           "feature, please open an issue on github describing your use case.")
    axis = axis_of(x, dim)
    if axis == 0:
        raise RuntimeError(f"squeeze(): For nested tensors, squeezing dimension 0 {NO_AUTHOR}")
    if (x._sizes[:, axis - 1] != 1).any():
        return x
    if x.ndim == 2:
        raise RuntimeError("squeeze(): For nested tensors, squeezing a nested tensor of singleton tensors is not "
                           "supported at the moment, if you need this feature, please open an issue on github "
                           "describing your use case.")
    return view_of(x, *(np.delete(part, axis - 1, axis=1) for part in (x._sizes, x._steps)), x._starts)


@rule("view reshape")
def view(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Reshape each component; −1 keeps the length of the axis."""
    x, *rest = args
    shape = list(rest[0] if rest and isinstance(rest[0], (tuple, list)) else rest or kwargs.get("shape", ()))
    if not len(x._sizes):
        raise RuntimeError("empty nested tensor cannot be reshaped")
    if not shape:
        raise RuntimeError("shape '[]' is invalid for a nested tensor")
    if shape[0] != len(x._sizes):
        raise RuntimeError(f"{name}: For now nested {name} cannot change or infer the implicit batch dimension")
    if len(shape) > x.ndim and shape[1:x.ndim].count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if -1 in shape[x.ndim:]:
        raise RuntimeError("nested tensor does not infer shape")
    found = []
    for part, size in zip(components(x), x._sizes.tolist(), strict=True):
        wanted = [size[place] if n == -1 else n for place, n in enumerate(shape[1:])]
        if tg.Size(wanted).numel() != tg.Size(size).numel():
            raise RuntimeError(f"shape '{shape}' is invalid for input of size {tg.Size(size).numel()}")
        found.append(getattr(part.detach(), "view" if name == "view" else "reshape")(wanted))
    if name == "reshape" and any(new.data_ptr() != old.data_ptr() for new, old in zip(found, components(x))):
        return joined([part.reshape(new.shape) for part, new in zip(components(x), found, strict=True)])
    sizes, steps = (np.asarray([getattr(new, key)() for new in found], dtype="int64") for key in ("size", "stride"))
    return view_of(x, sizes, steps, x._starts)


@rule("chunk split split_with_sizes")
def split(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Split along the last axis, into views."""
    x, sizes = args[0], args[1] if len(args) > 1 else next(iter(kwargs.values()))
    dim = args[2] if len(args) > 2 else kwargs.get("dim", 0)
    if name == "split" and isinstance(sizes, int):
        raise refuse("split.Tensor")
    name, shown = ("chunk", "Chunk for nested tensors") if name == "chunk" else (
        "split_with_sizes", "split_with_sizes for nested tensors")
    if axis_of(x, dim) != x.ndim - 1:
        raise RuntimeError(f"{shown} is currently only supported for the last dimension.")
    if not x.is_contiguous():
        raise RuntimeError(f"{name} expects `self` to be contiguous.")
    last = _last(x)
    if name == "chunk":
        if last % sizes:
            raise RuntimeError("Chunk for nested tensors is only supported for nested tensors with trailing dimension "
                               f"divisible by chunks, got: {last} % {sizes} != 0")
        sizes = [last // sizes] * sizes
    if sum(sizes) != last:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {last} (input tensor's size at "
                           f"dimension {x.ndim - 1}), but got split_sizes={list(sizes)}")
    ends = np.cumsum(sizes).tolist()
    return tuple(view_of(x, _with_last(x, n), x._steps, x._starts + end - n)
                 for n, end in zip(sizes, ends, strict=True))


@rule("cat concat concatenate")
def cat(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Concatenate lists of components, or along another axis the components with equal numbers."""
    tensors, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim", 0)
    if not all(map(is_strided, tensors)):
        raise RuntimeError("cat(): expected each tensor in given list to be nested")
    x, axis = tensors[0], axis_of(next(filter(is_strided, tensors)), dim)
    if axis == 0:
        if not all(t.is_contiguous() for t in tensors):
            raise RuntimeError("Expected each tensor in given list to be contiguous.")
        return joined([part for t in tensors for part in components(t)])
    if not all(t.is_contiguous() for t in tensors):
        raise RuntimeError("cat(): only contiguous nested tensors are supported")

    def others(t: Any) -> Any:
        return np.delete(t._sizes, axis - 1, axis=1).tolist()
    if any(t.ndim != x.ndim or others(t) != others(x) for t in tensors):
        raise RuntimeError("cat(): expected all nested tensors to have matching ragged structures outside of the "
                           "concatenated dim")
    if len(x._sizes) and (x._sizes[:, 1:] != x._sizes[:1, 1:]).any():
        raise RuntimeError("cat(): only nested tensors with a single ragged dim next to the batch dim are supported")
    return joined([tg.cat(parts, axis - 1) for parts in zip(*map(components, tensors), strict=True)])


@rule("is_same_size")
def is_same_size(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    a, b = args
    if not (is_strided(a) and is_strided(b)):
        said = ["nested" if is_strided(t) else "not nested" for t in args]
        raise RuntimeError(f"Expected both self and other to be nested tensors. Self is {said[0]}. While Other is "
                           f"{said[1]}.")
    return bool(a._sizes.tolist() == b._sizes.tolist())


@rule("tolist numpy __array__ flatten")
def refused(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    raise RuntimeError(NO_SIZES if name != "tolist" else NO_SIZES.replace("sizes", "strides"))


StridedNested.rules.append(rule.apply)
__all__ = ["contiguous", "rows"]
