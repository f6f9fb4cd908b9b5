"""Rules of functions of MaskedTensors: each group has one rule for the mask of the result.

https://pytorch.org/docs/stable/masked.html#supported-operators
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ... import api as tg
from .. import _reductions, _scans
from . import sparse
from .core import RULES, MaskedTensor, checked, masked, tensors_match

UNARY = frozenset("""abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh
bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma
log log10 log1p log2 logit i0 isnan nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn
signbit sin sinc sinh sqrt square tan tanh trunc""".split())
BINARY = frozenset("""add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div
divide floor_divide fmod logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge
greater greater_equal gt less_equal lt less maximum minimum fmax fmin not_equal rsub rtruediv""".split())
VIEWS = frozenset("""atleast_1d broadcast_tensors broadcast_to cat chunk column_stack concat concatenate dsplit expand
expand_as flatten hsplit hstack meshgrid narrow ravel reshape reshape_as select split split_with_sizes stack t
transpose swapaxes swapdims tensor_split unflatten unfold unsafe_chunk unsafe_split unsqueeze view view_as vsplit vstack
__getitem__""".split())
COPIES = frozenset("""clone contiguous detach to float double half int long short char byte bool cpu cuda
ones_like type""".split())
REDUCTIONS = frozenset("sum mean amin amax argmin argmax prod all norm var std".split())
# Functions of the tape, and queries that return no tensors.
PLAIN = frozenset("""size dim ndimension numel nelement stride is_contiguous is_floating_point is_complex is_signed
element_size storage_offset get_device is_tensor backward retain_grad register_hook is_same_size data_ptr requires_grad_
detach_ copy_ __len__ __hash__ __dir__ __deepcopy__""".split())
NUMBERS = frozenset("item __bool__ __int__ __float__ __index__ __format__".split())
OPERATORS = dict(zip(
    "__and__ __rand__ __or__ __ror__ __xor__ __rxor__ __lshift__ __rshift__ __invert__ __eq__ __floordiv__ __pow__ "
    "__rsub__ __rtruediv__ __matmul__".split(),
    "bitwise_and bitwise_and bitwise_or bitwise_or bitwise_xor bitwise_xor bitwise_left_shift bitwise_right_shift "
    "bitwise_not eq floor_divide pow rsub rtruediv matmul".split()))


def apply(func: Any, args: Any, kwargs: Any) -> Any:
    """Compute a function whose arguments contain MaskedTensors. Raises TypeError, after a warning, for most.

    Overrides are off: `func` takes MaskedTensors for the tensors of their values.
    """
    if func.__name__ in ("__get__", "__set__"):
        return of_property(func, args)
    name = func.__name__.partition(".")[0]          # an overload of an operator is one of its names
    name = OPERATORS.get(name, name)
    plain = name.endswith("__") or not name.endswith("_")
    group = GROUP_OF.get(name) or (None if plain else IN_PLACE.get(name[:-1]))
    if group is None:
        warnings.warn(f"{name} is not implemented in __torch_dispatch__ for MaskedTensor.\nIts values are the tensor "
                      f"get_data(), its mask is get_mask().", UserWarning, stacklevel=4)
        raise TypeError(f"Multiple dispatch failed for 'torch._ops.aten.{name}.default'; all __torch_dispatch__ "
                        f"handlers returned NotImplemented:\n\n  - tensor subclass {MaskedTensor!r}")
    if not args and "input" in kwargs:
        args, kwargs = (kwargs["input"],), {key: value for key, value in kwargs.items() if key != "input"}
    return group(func, name, args, kwargs)


def of_property(func: Any, args: Any) -> Any:
    """Read or write a property of a MaskedTensor: tensors have its mask."""
    found = func(*args)
    if not isinstance(found, tg.Tensor):
        return found
    return masked(found, args[0].get_mask() if found.shape == args[0].shape else func(args[0].get_mask()))


def is_masked(x: Any) -> bool:
    return isinstance(x, MaskedTensor)


def masks_of(value: Any) -> Any:
    """Return the arguments with masks in place of MaskedTensors."""
    if is_masked(value):
        return value.get_mask()
    if isinstance(value, (tuple, list)):
        return type(value)(map(masks_of, value))
    return value


def wrapped(data: Any, mask: Any) -> Any:
    """Return tensors with their masks as MaskedTensors."""
    if isinstance(data, (tuple, list)):
        return type(data)(map(wrapped, data, mask))
    return masked(*checked(data.as_subclass(tg.Tensor), mask))


# ── the groups ────────────────────────────────────────────────────────────────────────────────────────────────────────


def plainly(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    if name == "is_contiguous":
        has_strides(args[0])
    return func(*args, **kwargs)


def has_strides(x: Any) -> None:
    """Raise PyTorch's error for a tensor of sparse values."""
    if sparse.is_sparse(x):
        raise ValueError("MaskedTensors with sparse data do not have is_contiguous")


def unary(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """f(x): the mask of x."""
    if any(isinstance(a, tg.Tensor) for a in (*args[1:], *kwargs.values())):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    if sparse.is_sparse(args[0]):
        return sparse.elementwise(func, args, kwargs)
    found = func(*args, **kwargs)
    return found if found is args[0] else wrapped(found, args[0].get_mask())


def binary(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """f(x, y): the mask that both share, or the mask of the one that has it."""
    masks = [x.get_mask() for x in (*args, *kwargs.values()) if is_masked(x)]
    if not all(tensors_match(x, masks[0]) for x in masks[1:]):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    if any(map(sparse.is_sparse, args)):
        return sparse.elementwise(func, args, kwargs)
    found = func(*args, **kwargs)
    return found if found is args[0] else wrapped(found, masks[0].expand_as(found))


def view(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Move elements; the mask moves with them."""
    masks = func(*masks_of(args), **dict(zip(kwargs, masks_of(list(kwargs.values())))))
    return wrapped(func(*args, **kwargs), masks)


def copy(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Convert the tensor; its mask goes to the same device. `detach` makes a copy."""
    if name == "contiguous":
        has_strides(args[0])
    found = func(*args, **kwargs)
    if name == "detach":
        found = found.clone()
    if not isinstance(found, tg.Tensor) or is_masked(found):
        return found
    return wrapped(found, args[0].get_mask().to(device=found.device))


def reduction(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Reduce the valid elements; a result is valid if there is one."""
    x, *rest = args
    if not is_masked(x):
        return NotImplemented
    if sparse.is_sparse(x):
        if rest or kwargs.get("dim") is not None:
            return NotImplemented
        found = reduction(func, name, (sparse.valid(x),), kwargs)
        return masked(sparse.place(x, found.get_data()), found.get_mask()) if name in ("argmin", "argmax") else found
    mask = x.get_mask()
    if name == "all":
        found = x.get_data().masked_fill(~mask, True).all(*rest, **kwargs)
    else:
        norm = name == "norm"
        if norm:
            rest = rest or [kwargs.pop("p", 2.0)]
        kwargs |= dict(zip(("dim", "keepdim", "dtype"), rest[norm:]))
        found = getattr(_reductions, name)(x.get_data(), *rest[:norm], mask=mask, **kwargs)
    dim = kwargs.get("dim", rest[0] if name == "all" and rest else None)
    return wrapped(found, mask.any() if dim is None else mask.any(dim, kwargs.get("keepdim", found.ndim == x.ndim)))


def softmax(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Softmax among the valid elements: the mask of x."""
    x = args[0]
    return wrapped(_scans.softmax(x.get_data(), *args[1:], mask=x.get_mask(), **kwargs), x.get_mask())


def where(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Choose elements of x or y, and of their masks; all elements of a plain tensor are valid."""
    if len(args) != 3 or kwargs:
        given, of = (len(args), "args") if len(args) != 3 else (len(kwargs), "kwargs")
        raise ValueError(f"__torch_function__, torch.where: len({of}) must be {3 if of == 'args' else 0} but got "
                         f"{given}")
    masks = [x.get_mask() if is_masked(x) else tg.ones_like(x, dtype=tg.bool) for x in args[1:]]
    return wrapped(func(*args), tg.where(args[0], *masks))


def number(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Return the value of the only element, if it is valid."""
    if args[0].numel() == 1 and not args[0].get_mask().all():
        raise ValueError("__torch_dispatch__, aten._local_scalar_dense: expected a mask tensor")
    return func(*args, **kwargs)


def refused(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Refuse conversions to lists and arrays, which have no masks."""
    rest = f", got {type(args[0]).__name__}" if name == "tolist" else ""
    raise RuntimeError(f".{name}() is not supported for tensor subclasses{rest}.".removesuffix("." if rest else ""))


Group = Callable[[Any, str, Any, Any], Any]
GROUPS: dict[Group, frozenset[str]] = {
    unary: UNARY, binary: BINARY, view: VIEWS, copy: COPIES, reduction: REDUCTIONS, plainly: PLAIN, number: NUMBERS,
    sparse.converted: frozenset("to_dense to_sparse to_sparse_coo to_sparse_csr".split()),
    sparse.parts: frozenset({"_values", "_indices"}), softmax: frozenset({"softmax"}), where: frozenset({"where"}),
    refused: frozenset({"tolist", "numpy"})}
GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}
IN_PLACE = {name: GROUP_OF[name] for name in UNARY | BINARY}
RULES.append(apply)
