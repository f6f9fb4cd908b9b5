"""Rules of functions of nested tensors: one for each group of functions.

A rule is `rule(func, name, args, kwargs)`; overrides are off while it runs. The rule calls the function on the values,
which lack the axis of the components: axis d of a nested tensor is axis d − 1 of its values.
"""
from __future__ import annotations

from typing import Any

from .. import api as tg
from .base import plain
from .ragged import NestedInt, of_lengths
from .rules import Rules
from .tensor import NestedTensor, is_nested, like, nested, outer_shape

# elementwise functions, of one or of several tensors
ELEMENTWISE = """abs absolute acos arccos acosh angle asin arcsin asinh atan arctan atanh atan2 add addcdiv addcmul
bitwise_and bitwise_not bitwise_or bitwise_xor ceil celu clamp clamp_max clamp_min clip conj_physical copysign cos cosh
deg2rad digamma div divide dropout alpha_dropout elu eq erf erfc erfinv exp exp2 expm1 fill floor floor_divide
float_power fmax fmin fmod frac ge gelu greater greater_equal gt hardshrink hardsigmoid hardswish hardtanh
heaviside hypot isfinite isinf isnan isneginf isposinf isreal ldexp le leaky_relu lerp less less_equal lgamma
log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit logsigmoid lt
masked_fill maximum minimum mish mul multiply nan_to_num ne neg negative nextafter not_equal positive pow prelu
rad2deg real reciprocal relu relu6 remainder round rrelu rsqrt rsub rtruediv selu sgn sigmoid sign signbit silu
sin sinc sinh softplus softshrink softsign sqrt square sub subtract tan tanh tanhshrink threshold true_divide
trunc where xlogy zero copy clone contiguous detach to float double half bfloat16 int long short char byte bool
cpu cuda type type_as zeros_like ones_like empty_like full_like rand_like randn_like randint_like bernoulli
normal uniform data grad apply _to_copy threshold_backward""".split()
# functions of the values as a whole, and of the tape
PLAIN = """element_size is_floating_point is_complex is_signed is_inference storage_offset get_device backward
register_hook retain_grad requires_grad_ detach_ data_ptr _is_view is_pinned is_conj is_neg __hash__ __dir__
__contains__ item __bool__ __float__ __int__ register_post_accumulate_grad_hook""".split()


def _property(func: Any, args: Any) -> Any:
    """Read or write a property of the values: tensors of their shape are nested."""
    x = args[0]
    if getattr(func, "__self__", None) is tg.Tensor.T:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    if getattr(func, "__self__", None) is tg.Tensor.mT:
        return rule.of["transpose"](tg.transpose, "transpose", (x, -2, -1), {})
    if getattr(func, "__self__", None) is tg.Tensor._base:
        return func(x)
    found = func(x, *(plain(a) if is_nested(a) else a for a in args[1:]))
    return like(x, found) if isinstance(found, tg.Tensor) and found.array.shape == x.array.shape else found


rule = Rules(lambda name: NotImplementedError(f"aten.{name}.default"), _property)


def axis_of(x: Any, dim: int) -> int:
    """Return the number of an axis, counted from the front; PyTorch's IndexError if it is out of range."""
    ndim = x.ndim
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return int(dim) % ndim


def inner_axis(x: Any, dim: int, name: str, ragged: bool = False) -> int:
    """Return the axis of the values; PyTorch's RuntimeError for the batch axis and the ragged axis."""
    axis = axis_of(x, dim)
    if axis == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if axis == x._ragged_idx and not ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return axis - 1


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(outer_shape(x) if is_nested(x) else x.shape)


# ── elements ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@rule(" ".join(PLAIN))
def plainly(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)


@rule(" ".join(ELEMENTWISE))
def elementwise(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """f of the values; other tensors broadcast to the shape of the nested ones."""
    x = next(a for a in (*args, *kwargs.values()) if is_nested(a))
    if is_nested(args[0]) and (name == "contiguous" or name == "clone" and kwargs):
        x = packed(x)
        args = (x, *args[1:])

    def at_values(a: Any) -> Any:
        if isinstance(a, NestedInt):
            raise RuntimeError(f"NestedTensor {name}.Tensor: invalid argument {a}")
        return aligned(x, a, name, args) if isinstance(a, tg.Tensor) else a
    if name.endswith("_") and is_nested(args[0]):
        if name == "copy_" and is_nested(args[1]) and args[1]._ragged.size != x._ragged.size:
            raise RuntimeError("copy_(): expected compatible input and src shapes, but got: "
                               + " and ".join(str(outer_shape(a)) for a in args[:2]))
        func(args[0], *map(at_values, args[1:]), **{key: at_values(a) for key, a in kwargs.items()})
        return args[0]
    kwargs = {key: at_values(a) for key, a in kwargs.items() if key != "layout"}
    values = list(map(at_values, args))
    found = func(*values, **kwargs)
    if not isinstance(found, tg.Tensor):
        return found
    return x if found is values[0] and is_nested(args[0]) else like(x, found)


def packed(x: Any) -> Any:
    """Return the nested tensor without holes between components."""
    if x._ragged.lengths is None:
        return x
    ragged = of_lengths(x._ragged.counts, x._ragged.offsets.device)
    return nested(x._ragged.packed(plain(x), x._ragged_idx - 1), ragged, x._ragged_idx)


def aligned(x: Any, other: Any, name: str, args: Any) -> Any:
    """Return the values of an operand in a shape that broadcasts with the values of x."""
    if is_nested(other):
        if other._ragged.size == x._ragged.size and other._ragged_idx == x._ragged_idx:
            return plain(other)
        raise misfit(name, args)
    if not other.ndim:
        return other
    ndim, place = x.ndim, x._ragged_idx
    if other.ndim > ndim:
        raise misfit(name, args)
    sizes = (1,) * (ndim - other.ndim) + tuple(other.shape)
    other = other.reshape(sizes)
    if sizes[place] == 1:
        if sizes[0] == 1:
            return other.squeeze(0)
        if sizes[0] == x._ragged.batch:
            return x._ragged.spread(other.squeeze(place), place - 1)
    elif sizes[place] == x._ragged.longest and sizes[0] in (1, x._ragged.batch):
        return x._ragged.unpadded(other.expand(x._ragged.batch, *sizes[1:]), place - 1)
    raise misfit(name, args)


def misfit(name: str, args: Any) -> RuntimeError:
    shapes = " and ".join(str(shape_of(a)) for a in args if isinstance(a, tg.Tensor))
    return RuntimeError(f"cannot call binary pointwise function {name}.Tensor with inputs of shapes {shapes}")


# ── layers ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@rule("linear")
def linear(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x = args[0]
    if not is_nested(x) or x._ragged_idx == x.ndim - 1:
        raise RuntimeError("linear(): not supported for NestedTensor on ragged dim")
    return like(x, func(plain(x), *args[1:], **kwargs))


@rule("embedding")
def embedding(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    return like(args[0], func(plain(args[0]), *args[1:], **kwargs))


@rule("layer_norm rms_norm")
def layer_norm(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Norms over the last axes, none of which is ragged."""
    x, shape = args[0], args[1] if len(args) > 1 else kwargs["normalized_shape"]
    if x.ndim <= 2:
        raise RuntimeError(f"{name}(): not supported for NestedTensor objects with 2 or fewer dimensions")
    if len(shape) < x.ndim - x._ragged_idx or len(shape) < x.ndim and not any(isinstance(n, NestedInt) for n in shape):
        return like(x, func(plain(x), *args[1:], **kwargs))
    if name == "rms_norm":
        raise ValueError("rms_norm(): Normalization over the ragged dim not supported for nested tensors")
    if len(shape) >= x.ndim:
        raise RuntimeError("layer_norm(): not supported when normalizing over the batch dimension for NestedTensor")
    if x._ragged.lengths is not None:
        raise RuntimeError("layer_norm(): not supported where lengths is not None if operating on the ragged dimension "
                           "for NestedTensor")
    given = dict(zip(("weight", "bias", "eps"), args[2:])) | kwargs
    given.pop("normalized_shape", None)
    return like(x, _norm_of_components(x, len(shape), **given))


def _norm_of_components(x: Any, count: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """The layer norm over the last `count` axes, of which one is ragged."""
    values, place, ragged = plain(x), x._ragged_idx - 1, x._ragged
    axes = [axis for axis in range(values.ndim - count, values.ndim) if axis != place]
    sizes = ragged.index(ragged.counts) * tg.Size(values.shape[axis] for axis in axes).numel()

    def mean(numbers: Any) -> Any:
        """Return for each element the mean over its component."""
        sums = ragged.padded(numbers.sum(axes, keepdim=True) if axes else numbers, place).sum(place + 1, keepdim=True)
        means = sums / sizes.reshape(-1, *[1] * (sums.ndim - 1))
        return ragged.spread(means.squeeze(place + 1), place)
    centred = values - mean(values)
    found = centred * (mean(centred * centred) + eps).rsqrt()
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


@rule("softmax log_softmax")
def softmax(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Softmax along an axis of the values, or along the components, padded with −∞."""
    x, *rest = args
    dim = rest.pop(0) if rest else kwargs.pop("dim")
    axis = axis_of(x, dim)
    if axis == 0:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if axis != x._ragged_idx:
        return like(x, func(plain(x), axis - 1, *rest, **kwargs))
    if x._ragged.lengths is not None:
        raise RuntimeError(f"{name}(): not supported where lengths is not None if reducing across the ragged dimension "
                           "for NestedTensor")
    if x._ragged_idx > 1:
        raise RuntimeError(f"{name}(): not supported when reducing along the ragged dimension for ragged_idx > 1 for "
                           "NestedTensor")
    batch = x._ragged.padded(plain(x), axis - 1, -float("inf"))
    return like(x, x._ragged.unpadded(func(batch, axis, *rest, **kwargs), axis - 1))


@rule("matmul bmm")
def matmul(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Products with one matrix, with a matrix for each component, or of two nested tensors along their ragged axes."""
    a, b = args
    for key, t in (("input", a), ("mat2", b)):
        if name == "bmm" and t.ndim != 3:
            raise ValueError(f"bmm(): {key} must be 3D")
    if is_nested(a) and is_nested(b):
        if a._ragged_idx == a.ndim - 1 and b._ragged_idx == b.ndim - 2 and a._ragged.size == b._ragged.size:
            return func(*(t._ragged.padded(plain(t), t._ragged_idx - 1) for t in (a, b)))
    elif is_nested(a) and a._ragged_idx < a.ndim - 1:
        if b.ndim == 2:
            return like(a, func(plain(a), b))
        if b.ndim == a.ndim and b.shape[0] == a._ragged.batch:
            batch = a._ragged.padded(plain(a), a._ragged_idx - 1)
            return like(a, a._ragged.unpadded(func(batch, b), a._ragged_idx - 1))
    raise RuntimeError(f"matmul(): not supported between inputs of shapes "
                       f"{shape_of(a)} and {tg.Size(shape_of(b)) if not is_nested(b) else outer_shape(b)}")


@rule("scaled_dot_product_attention")
def attention(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Attention within each component, on padded components; a mask excludes the padding of the keys."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = {**dict(zip(names, args)), **kwargs}
    q, k, v = (given.pop(key) for key in names[:3])
    if given.pop("attn_mask", None) is not None:
        raise ValueError("Masks are not yet supported!")
    if not all(map(is_nested, (q, k, v))):
        shown = ", ".join(f"{'and ' * (n == 'value')}{n}.is_nested: {is_nested(t)}" for n, t in zip(names, (q, k, v)))
        raise ValueError(f"Expected query, key, and value to be nested tensors, but got {shown} instead.")
    if all(t._ragged_idx < t.ndim - 2 and t._ragged.size == q._ragged.size for t in (q, k, v)):
        return like(q, func(*map(plain, (q, k, v)), **given))           # along axes that are not ragged
    if k._ragged.counts.tolist() != v._ragged.counts.tolist():
        raise RuntimeError("scaled_dot_product_attention(): keys must be as long as values")
    padded = [t._ragged.padded(plain(t), t._ragged_idx - 1) for t in (q, k, v)]
    places = tg.arange(k._ragged.longest, device=padded[1].device)
    mask = places < k._ragged.index(k._ragged.counts).reshape(-1, *[1] * (k.ndim - 1))
    if given.pop("is_causal", False):
        mask = mask & (places <= tg.arange(q._ragged.longest, device=padded[0].device).unsqueeze(1))
    found = func(*padded, attn_mask=mask, **given)
    return like(q, q._ragged.unpadded(found, q._ragged_idx - 1))


# ── reductions ────────────────────────────────────────────────────────────────────────────────────────────────────────


# the padding that does not change a reduction along the components
PADDING: dict[str, Any] = dict(sum=0, mean=0, prod=1, any=False, all=True, amax=-float("inf"), max=-float("inf"),
                               argmax=-float("inf"), amin=float("inf"), min=float("inf"), argmin=float("inf"))


@rule(" ".join(PADDING))
def reduction(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    x, *rest = args
    dims = rest.pop(0) if rest and not isinstance(rest[0], bool) else kwargs.pop("dim", None)
    keepdim = bool(rest.pop(0) if rest else kwargs.pop("keepdim", False))
    if is_nested(dims):
        return elementwise(func, name, args, kwargs)
    if dims is None or dims == ():
        return func(plain(packed(x)), **kwargs)
    several = isinstance(dims, (tuple, list))
    axes = sorted(axis_of(x, d) for d in (dims if several else (dims,)))
    place = x._ragged_idx
    if place not in axes:
        if 0 in axes:
            raise RuntimeError(f"{name}(): reducing along the batch dimension but not the ragged dimension is not "
                               "supported for nested tensors")
        inner = [a - 1 for a in axes]
        found = func(plain(x), inner if several else inner[0], keepdim=keepdim, **kwargs)
        left = place if keepdim else place - sum(a < place for a in axes)
        parts = found if isinstance(found, tuple) else (found,)
        made = [like(x, part, left) for part in parts]
        return type(found)(made) if isinstance(found, tuple) and not hasattr(found, "_fields") else (
            type(found)(*made) if isinstance(found, tuple) else made[0])
    if 0 in axes:
        found = func(plain(packed(x)), [a - 1 for a in axes if a], keepdim=keepdim, **kwargs)
        return found.unsqueeze(0) if keepdim else found
    if len(axes) > 1:
        raise RuntimeError(f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested "
                           "tensors")
    return _along_components(func, name, x, keepdim, kwargs)


def _along_components(func: Any, name: str, x: Any, keepdim: bool, kwargs: Any) -> Any:
    """A reduction of each component along its ragged axis."""
    place, ragged, values = x._ragged_idx, x._ragged, plain(x)
    if ragged.lengths is not None:
        raise RuntimeError(f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested "
                           "tensors with holes")
    fill = PADDING[name]
    if abs(fill) == float("inf") and not values.is_floating_point():
        fill = (tg.iinfo(values.dtype).min if fill < 0 else tg.iinfo(values.dtype).max)
    if name == "mean":
        found = tg.sum(ragged.padded(values, place - 1), place, keepdim=keepdim, **kwargs)
        counts = ragged.index(ragged.counts).reshape(-1, *[1] * (found.ndim - 1))
        return found / counts
    return func(ragged.padded(values, place - 1, fill), place, keepdim=keepdim, **kwargs)


NestedTensor.rules.append(rule.apply)
__all__ = ["inner_axis", "packed"]
