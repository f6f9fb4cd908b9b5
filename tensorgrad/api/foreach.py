"""`torch._foreach_*`: a function of one tensor, mapped over lists of tensors.

Optimizers and clipping of gradients call them. Each is made here from the function for one tensor and from PyTorch's
signatures: an argument that is a list in the signature is zipped with the tensors, another one is shared by all.

>>> import tensorgrad as torch
>>> parameters, gradients = [torch.tensor([1., 2.]), torch.tensor(3.)], [torch.tensor([10., 20.]), torch.tensor(30.)]
>>> torch._foreach_add(parameters, gradients, alpha=0.5)
(tensor([ 6., 12.]), tensor(18.))
>>> _ = torch._foreach_mul_(parameters, 2)
>>> parameters
[tensor([2., 4.]), tensor(6.)]
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from .._tensor import Tensor
from .._tensor.torch_function import namespaced
from ..core import inplace
from ..dtype import SCALAR_TYPES
from ._parsing import parse
from ._register import FUNCTIONS
from ._signatures import Parameter, Signature, read
from .linalg import vector_norm

# names: PyTorch's signatures, in its order
TABLE = """
abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt
 sigmoid sign sin sinh sqrt tan tanh trunc zero clone max: self: Tensors
add: self: Tensors, scalar: Number; self: Tensors, scalars: Numbers;
 self: Tensors, other: Tensor, *, alpha: Number = 1; self: Tensors, other: Tensors, *, alpha: Number = 1
sub: self: Tensors, scalar: Number; self: Tensors, scalars: Numbers;
 self: Tensors, other: Tensors, *, alpha: Number = 1
mul div: self: Tensors, scalars: Numbers; self: Tensors, other: Tensor; self: Tensors, other: Tensors;
 self: Tensors, scalar: Number
clamp_max clamp_min maximum minimum: self: Tensors, scalar: Number; self: Tensors, scalars: Numbers;
 self: Tensors, other: Tensors
pow: self: Number, exponent: Tensors; self: Tensors, exponent: Number; self: Tensors, exponent: Numbers;
 self: Tensors, exponent: Tensors
pow_: self: Tensors, exponent: Number; self: Tensors, exponent: Numbers; self: Tensors, exponent: Tensors
addcdiv addcmul: self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Numbers;
 self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Tensor;
 self: Tensors, tensor1: Tensors, tensor2: Tensors, value: Number = 1
lerp: self: Tensors, tensors1: Tensors, weight: Number; self: Tensors, tensors1: Tensors, weight: Numbers;
 self: Tensors, tensors1: Tensors, weights: Tensors
norm: self: Tensors, ord: Number = 2, dtype: Dtype | None = None
powsum: self: Tensors, ord: Number = 2, dtype: Dtype | None = None
mm: self: Tensors, mat2: Tensors
copy: self: Tensors, src: Tensors, non_blocking: bool = False
"""
ROWS = {name: row.strip() for names, _, row in (line.partition(": ") for line in
                                                TABLE.replace("\n ", " ").strip().splitlines())
        for name in names.split()}
IN_PLACE_ONLY, OUT_OF_PLACE_ONLY = {"zero", "copy"}, {"clone", "max", "norm", "powsum", "mm"}
PACKED = {"addcdiv", "addcmul"}             # functions whose lists of numbers may be one tensor
BY_NAME = {"alpha", "dtype"}                # handed on by name, as are the numbers of PACKED, as `value`


class Column(NamedTuple):
    """An argument for each tensor: the elements of a list, or one value for all."""

    values: Any
    several: bool

    def of(self, place: int) -> Any:
        return self.values[place] if self.several else self.values


@cache
def known(name: str) -> tuple[Signature, ...]:
    """Return the signatures of `_foreach_<name>`."""
    return read(ROWS.get(name) or ROWS[name.removesuffix("_")], [])


# ── functions of one tensor that have no name of their own ────────────────────────────────────────────────────────────


def _maximum(x: Any) -> Any:
    if not x.numel():
        raise RuntimeError("_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is "
                           "undefined.")
    return x.max()


def _norm(x: Any, ord: Any = 2, dtype: Any = None) -> Any:
    if not x.numel() and ord in (float("inf"), -float("inf")):
        raise RuntimeError("_foreach_norm cannot compute the infinity norm on an empty tensor because the operation "
                           "does not have an identity")
    return vector_norm(x, ord, dtype=dtype)


def _power_sum(x: Any, ord: Any = 2, dtype: Any = None) -> Any:
    x = x if dtype is None else x.to(dtype)
    if x.array.dtype.kind in "biu":
        raise NotImplementedError(f"\"powsum_cpu\" not implemented for '{SCALAR_TYPES[x.dtype.name]}'")
    return x.abs().pow(ord).sum()


def _extremum(of_two: str, of_number: str) -> Callable[..., Any]:
    """maximum or minimum, of a tensor and a tensor or number."""
    def extremum(x: Any, other: Any) -> Any:
        return FUNCTIONS[of_two if isinstance(other, Tensor) else of_number](x, other)
    return extremum


OWN: dict[str, Callable[..., Any]] = {
    "max": _maximum, "norm": _norm, "powsum": _power_sum, "maximum": _extremum("maximum", "clamp_min"),
    "minimum": _extremum("minimum", "clamp_max")}


def _writing(bare: str) -> Callable[..., Any]:
    """Return the function that writes to one tensor: Tensor's method, if it has one."""
    method = getattr(Tensor, f"{bare}_", None)
    return method if method is not None else lambda x, *args: inplace.in_place(x, OWN[bare], *args)


# ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _column(name: str, p: Parameter, value: Any, count: int) -> Column:
    """Return an argument as a Column; RuntimeError unless it has an element for each of `count` tensors."""
    if p.kind == "Tensors" and len(value) != count:
        raise RuntimeError("_foreach_mm: self and mat2 must have the same number of tensors" if name == "mm" else
                           f"Tensor lists must have the same number of tensors, got {count} and {len(value)}")
    if p.kind == "Numbers" and len(value) != count:
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    if p.kind == "Tensor" and name in PACKED:
        if value.dim() != 1:
            raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {value.dim()} instead.")
        if not value.is_contiguous():
            raise RuntimeError("Expected scalars to be contiguous.")
        if len(value) != count:
            raise RuntimeError(f"Expected length of scalars to match input of length {count} but got {len(value)} "
                               "instead.")
        return Column(value.tolist(), True)
    if p.kind == "Tensor" and value.dim():
        raise RuntimeError(f"scalar tensor expected to be 0 dim but it has {value.dim()} dimensions and "
                           f"{value.numel()} elements.")
    return Column(value, p.kind in ("Tensors", "Numbers"))


def columns(name: str, signature: Signature, bound: dict[str, Any]) -> tuple[int, list[Column], dict[str, Column]]:
    """Return the number of tensors, and the Columns of positional and of keyword arguments."""
    kinds = {p.name: p for p in signature.parameters}
    count = next(len(bound[p.name]) for p in signature.parameters if p.kind == "Tensors")
    if not count:
        raise RuntimeError("Tensor list must have at least one tensor.")
    by_place, by_name = [], {}
    for key, value in bound.items():
        column = _column(name, kinds[key], value, count)
        if key in BY_NAME:
            by_name[key] = column
        elif name in PACKED and key in ("scalars", "value"):
            by_name["value"] = column
        else:
            by_place.append(column)
    return count, by_place, by_name


def _alike(found: list[Column]) -> bool:
    """Return True if the lists are uniform: a write fails for the first tensors, or not at all."""
    def facts(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return type(value)
        return type(value), value.array.dtype, value.requires_grad, value.is_leaf, value.device
    several = [column.values for column in found if column.several]
    return (all(len({facts(value) for value in values}) == 1 for values in several)
            and all(not isinstance(value, Tensor) or value.array.shape == row[0].array.shape
                    for row in zip(*several) for value in row))


def _write(name: str, count: int, by_place: list[Column], by_name: dict[str, Column]) -> None:
    """Write to the tensors; for mixed lists, after all results are known to fit."""
    if count == 1 or name in IN_PLACE_ONLY or _alike([*by_place, *by_name.values()]):
        _mapped(_writing(name), count, by_place, by_name)
        return
    results = _mapped(_function(name), count, by_place, by_name)
    targets = by_place[0].values
    for target, made in zip(targets, results, strict=True):
        inplace.check_mode(target)
        inplace.check_result(target, made)
        if made._node is not None:
            inplace.check(target)
    for target, made in zip(targets, results, strict=True):
        inplace.overwrite(target, made)


def _mapped(function: Callable[..., Any], count: int, by_place: list[Column], by_name: dict[str, Column]) -> list[Any]:
    return [function(*[c.of(i) for c in by_place], **{key: c.of(i) for key, c in by_name.items()})
            for i in range(count)]


def _function(bare: str) -> Any:
    return OWN.get(bare) or FUNCTIONS[bare]


def _made(name: str) -> Callable[..., Any]:
    """Return `_foreach_<name>`; with a trailing underscore it writes to the tensors, and returns their list."""
    full, bare, writes = f"_foreach_{name}", name.removesuffix("_"), name.endswith("_")

    def foreach(*args: Any, **kwargs: Any) -> Any:
        signature, bound = parse(known(name), full, args, kwargs)
        found = columns(bare, signature, bound)
        if not writes:
            return tuple(_mapped(_function(bare), *found))
        _write(bare, *found)
        return bound["self"]
    foreach.__name__ = foreach.__qualname__ = full
    foreach.__doc__ = (f"`Tensor.{bare}_` of each tensor of a list, which is returned." if writes else
                       f"`torch.{bare}` of each tensor of a list, as a tuple.")
    return foreach


NAMES = [name for bare in ROWS if not bare.endswith("_") for name in (bare, f"{bare}_")
         if not (name == bare and bare in IN_PLACE_ONLY or name != bare and bare in OUT_OF_PLACE_ONLY)]
globals().update(namespaced({f"_foreach_{name}": _made(name) for name in NAMES}, __name__.partition(".")[0]))
