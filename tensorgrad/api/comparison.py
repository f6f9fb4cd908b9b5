"""Comparisons, logic and bits, element by element. https://pytorch.org/docs/stable/torch.html#comparison-ops"""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.casting import result_type
from ..core.dispatch import SCALAR_TYPES, xp
from ._arguments import check_tensor, check_tensors, in_dtype, promoted, refuse_complex32
from ._kinds import Number
from ._register import public
from ._sparse import rules
from .creation import ones_like

# ── orders ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@public(inplace=True, out=True)
def eq(input: Tensor, other: Tensor | Number) -> Tensor:
    """input = other, element by element.

    Input: two tensors that broadcast, or a tensor and a number
    Output: the broadcast shape, bool
    Errors: RuntimeError if the shapes do not broadcast; TypeError if the first is no tensor
    https://pytorch.org/docs → torch.eq

    >>> import tensorgrad as torch
    >>> torch.eq(torch.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    check_tensor(input, "eq", "input", 1)
    return xp.equal(input, other)


@public("not_equal", inplace=True, out=True)
def ne(input: Tensor, other: Tensor | Number) -> Tensor:
    """input ≠ other, element by element.

    Input: two tensors that broadcast, or a tensor and a number
    Output: the broadcast shape, bool
    Errors: RuntimeError if the shapes do not broadcast; TypeError if the first is no tensor
    https://pytorch.org/docs → torch.ne

    >>> import tensorgrad as torch
    >>> torch.ne(torch.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    check_tensor(input, "ne", "input", 1)
    return xp.not_equal(input, other)


@public("less", inplace=True, out=True)
def lt(input: Tensor, other: Tensor | Number) -> Tensor:
    """input < other, element by element.

    Input: two tensors that broadcast, or a tensor and a number
    Output: the broadcast shape, bool
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError if one is complex; TypeError if the first
        is no tensor
    https://pytorch.org/docs → torch.lt

    >>> import tensorgrad as torch
    >>> torch.lt(torch.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    check_tensor(input, "lt", "input", 1)
    return xp.less(input, other)


@public("less_equal", inplace=True, out=True)
def le(input: Tensor, other: Tensor | Number) -> Tensor:
    """input ≤ other, element by element.

    Input: two tensors that broadcast, or a tensor and a number
    Output: the broadcast shape, bool
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError if one is complex; TypeError if the first
        is no tensor
    https://pytorch.org/docs → torch.le

    >>> import tensorgrad as torch
    >>> torch.le(torch.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    check_tensor(input, "le", "input", 1)
    return xp.less_equal(input, other)


@public("greater", inplace=True, out=True)
def gt(input: Tensor, other: Tensor | Number) -> Tensor:
    """input > other, element by element.

    Input: two tensors that broadcast, or a tensor and a number
    Output: the broadcast shape, bool
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError if one is complex; TypeError if the first
        is no tensor
    https://pytorch.org/docs → torch.gt

    >>> import tensorgrad as torch
    >>> torch.gt(torch.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    check_tensor(input, "gt", "input", 1)
    return xp.greater(input, other)


@public("greater_equal", inplace=True, out=True)
def ge(input: Tensor, other: Tensor | Number) -> Tensor:
    """input ≥ other, element by element.

    Input: two tensors that broadcast, or a tensor and a number
    Output: the broadcast shape, bool
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError if one is complex; TypeError if the first
        is no tensor
    https://pytorch.org/docs → torch.ge

    >>> import tensorgrad as torch
    >>> torch.ge(torch.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    check_tensor(input, "ge", "input", 1)
    return xp.greater_equal(input, other)


# ── likeness of whole tensors ─────────────────────────────────────────────────────────────────────────────────────────


@public()
def equal(input: Tensor, other: Tensor) -> bool:
    """Return True if two tensors have equal shapes and elements.

    Input: (*) and (*), of any dtypes
    Output: a bool; False if the shapes differ
    Errors: TypeError if one is no tensor
    https://pytorch.org/docs → torch.equal

    >>> import tensorgrad as torch
    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    check_tensor(other, "equal", "other", 2)
    if type(input._storage).rank or type(other._storage).rank:
        raise RuntimeError("Batching rule not implemented for aten::equal. We could not generate a fallback.")
    if input.array.shape != other.array.shape:
        return False
    refuse_complex32(input, "equal_cpu" if input is not other else "equal_notnan_cpu")
    return bool(xp.all(xp.equal(input, other)).item())


@public()
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """|input − other| ≤ atol + rtol·|other|, element by element.

    Infinities are close to themselves, and NaN to NaN if equal_nan.

    Input: two tensors of one dtype that broadcast
    Output: the broadcast shape, bool
    Errors: RuntimeError if the dtypes differ, a tolerance is negative, or the shapes do not broadcast
    https://pytorch.org/docs → torch.isclose

    >>> import tensorgrad as torch
    >>> torch.isclose(torch.tensor([1., 2.]), torch.tensor([1. + 1e-7, 2.1]))
    tensor([ True, False])
    """
    if input.array.dtype != other.array.dtype:
        raise RuntimeError(f"{SCALAR_TYPES[input.dtype.name]} did not match {SCALAR_TYPES[other.dtype.name]}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    close = xp.equal(input, other)
    if equal_nan:
        close = xp.logical_or(close, xp.logical_and(isnan(input), isnan(other)))
    if not rtol and not atol:
        return close
    if input.array.dtype.kind in "biu":
        input, other = (in_dtype(t, dtypes.float64) for t in (input, other))
    apart = xp.absolute(xp.subtract(input, other))
    allowed = xp.add(xp.multiply(xp.absolute(other), rtol), atol)
    return xp.logical_or(close, xp.logical_and(xp.isfinite(apart), xp.less_equal(apart, allowed)))


@public()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return True if `isclose` holds everywhere.

    Input: two tensors of one dtype that broadcast
    Output: a bool
    Errors: RuntimeError if the dtypes differ, a tolerance is negative, or the shapes do not broadcast
    https://pytorch.org/docs → torch.allclose

    >>> import tensorgrad as torch
    >>> torch.allclose(torch.tensor([1., 2.]), torch.tensor([1., 2. + 1e-6]))
    True
    """
    return bool(xp.all(isclose(input, other, rtol, atol, equal_nan)).item())


@public(method=False, out="same")
def isin(elements: Tensor | Number, test_elements: Tensor | Number, *, assume_unique: bool = False,
         invert: bool = False) -> Tensor:
    """True where an element is in `test_elements`.

    With invert, true where an element is not.

    Input: elements (*) and test elements of any shape; either, but not both, may be a number
    Output: (*), bool
    Errors: RuntimeError if one is complex or bool; TypeError if both are numbers
    https://pytorch.org/docs → torch.isin

    >>> import tensorgrad as torch
    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
    tensor([False,  True, False])
    """
    for value in (elements, test_elements):
        if isinstance(value, (bool, complex)):
            raise RuntimeError(f"Unsupported input type encountered for isin(): "
                               f"{'Bool' if isinstance(value, bool) else 'ComplexDouble'}")
    if not isinstance(test_elements, Tensor):
        test_elements = elements.new_tensor(test_elements, dtype=result_type(elements, test_elements))
    if not isinstance(elements, Tensor):
        elements = test_elements.new_tensor(elements, dtype=result_type(test_elements, elements))
    for t in (elements, test_elements):
        if dtypes.letter(t.array.dtype) in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {SCALAR_TYPES[t.dtype.name]}")
    elements, test_elements = promoted(elements, test_elements)
    flat = xp.reshape(test_elements, (test_elements.array.size,))
    if not flat.array.size:
        found = xp.not_equal(elements, elements)
    else:
        ranked = xp.sort_dim(flat, axis=0)[0]
        place = xp.minimum(xp.search_sorted(ranked, elements), flat.array.size - 1)
        place = xp.reshape(place, (elements.array.size,))
        found = xp.equal(xp.reshape(xp.take_along_axis(ranked, place, axis=0), elements.array.shape), elements)
    return xp.logical_not(found) if invert else found


# ── kinds of number ───────────────────────────────────────────────────────────────────────────────────────────────────


@public()
def isnan(input: Tensor) -> Tensor:
    """True where an element is NaN. https://pytorch.org/docs → torch.isnan

    >>> import tensorgrad as torch
    >>> torch.isnan(torch.tensor([1., float('nan')]))
    tensor([False,  True])
    """
    return xp.isnan(input)


@public()
def isinf(input: Tensor) -> Tensor:
    """True where an element is infinite. https://pytorch.org/docs → torch.isinf

    >>> import tensorgrad as torch
    >>> torch.isinf(torch.tensor([1., float('-inf')]))
    tensor([False,  True])
    """
    return xp.isinf(input)


@public()
def isfinite(input: Tensor) -> Tensor:
    """True where an element is neither infinite nor NaN. https://pytorch.org/docs → torch.isfinite

    >>> import tensorgrad as torch
    >>> torch.isfinite(torch.tensor([1., float('inf'), float('nan')]))
    tensor([ True, False, False])
    """
    return xp.isfinite(input)


def _infinite(input: Any, name: str, value: float) -> Any:
    if input._storage.dense is not None:
        return rules().mapped(input, lambda values: _infinite(values, name, value))
    if input.dtype.is_complex:
        raise RuntimeError(f"{name} does not support complex inputs.")
    return xp.equal(input, value) if input.array.dtype.kind in "fV" else xp.isinf(input)


@public(out=True)
def isposinf(input: Tensor) -> Tensor:
    """True where an element is +∞.

    Input: (*), real
    Output: (*), bool
    Errors: RuntimeError if the input is complex
    https://pytorch.org/docs → torch.isposinf

    >>> import tensorgrad as torch
    >>> torch.isposinf(torch.tensor([1., float('inf'), -float('inf')]))
    tensor([False,  True, False])
    """
    return _infinite(input, "isposinf", float("inf"))


@public(out=True)
def isneginf(input: Tensor) -> Tensor:
    """True where an element is −∞.

    Input: (*), real
    Output: (*), bool
    Errors: RuntimeError if the input is complex
    https://pytorch.org/docs → torch.isneginf

    >>> import tensorgrad as torch
    >>> torch.isneginf(torch.tensor([1., float('inf'), -float('inf')]))
    tensor([False, False,  True])
    """
    return _infinite(input, "isneginf", -float("inf"))


@public()
def isreal(input: Tensor) -> Tensor:
    """True where the imaginary part is zero. https://pytorch.org/docs → torch.isreal

    >>> import tensorgrad as torch
    >>> torch.isreal(torch.tensor([1+0j, 1j]))
    tensor([ True, False])
    """
    return xp.equal(xp.imag(input), 0) if input.dtype.is_complex else ones_like(input, dtype=dtypes.bool)


@public()
def is_nonzero(input: Tensor) -> bool:
    """Return True if the only element is nonzero.

    Input: one element, of any shape
    Output: a bool
    Errors: RuntimeError if there are several elements, or none
    https://pytorch.org/docs → torch.is_nonzero

    >>> import tensorgrad as torch
    >>> torch.is_nonzero(torch.tensor([0.5]))
    True
    """
    check_tensor(input, "is_nonzero", "input", 1)
    return bool(input)


# ── logic ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@public(inplace=True, out=True)
def logical_not(input: Tensor) -> Tensor:
    """True where an element is zero. https://pytorch.org/docs → torch.logical_not

    >>> import tensorgrad as torch
    >>> torch.logical_not(torch.tensor([0., 2.]))
    tensor([ True, False])
    """
    return xp.logical_not(input)


@public(inplace=True, out=True)
def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """True where both elements are nonzero.

    Input: two tensors that broadcast, of any dtypes
    Output: the broadcast shape, bool
    Errors: RuntimeError if the shapes do not broadcast; TypeError if one is no tensor
    https://pytorch.org/docs → torch.logical_and

    >>> import tensorgrad as torch
    >>> torch.logical_and(torch.tensor([True, True]), torch.tensor([0, 2]))
    tensor([False,  True])
    """
    check_tensors(input, other, "logical_and")
    return xp.logical_and(input, other)


@public(inplace=True, out=True)
def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """True where either element is nonzero.

    Input: two tensors that broadcast, of any dtypes
    Output: the broadcast shape, bool
    Errors: RuntimeError if the shapes do not broadcast; TypeError if one is no tensor
    https://pytorch.org/docs → torch.logical_or

    >>> import tensorgrad as torch
    >>> torch.logical_or(torch.tensor([True, False]), torch.tensor([0, 0]))
    tensor([ True, False])
    """
    check_tensors(input, other, "logical_or")
    return xp.logical_or(input, other)


@public(inplace=True, out=True)
def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """True where exactly one element is nonzero.

    Input: two tensors that broadcast, of any dtypes
    Output: the broadcast shape, bool
    Errors: RuntimeError if the shapes do not broadcast; TypeError if one is no tensor
    https://pytorch.org/docs → torch.logical_xor

    >>> import tensorgrad as torch
    >>> torch.logical_xor(torch.tensor([True, True]), torch.tensor([0, 2]))
    tensor([ True, False])
    """
    check_tensors(input, other, "logical_xor")
    return xp.logical_xor(input, other)


# ── bits ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@public(inplace=True, out=True)
def bitwise_not(input: Tensor) -> Tensor:
    """The bits inverted; logical not for bools.

    Input: (*), integer or bool
    Output: (*), of the input's dtype
    Errors: NotImplementedError if the input is floating or complex
    https://pytorch.org/docs → torch.bitwise_not

    >>> import tensorgrad as torch
    >>> torch.bitwise_not(torch.tensor([0, 5])), torch.bitwise_not(torch.tensor([True]))
    (tensor([-1, -6]), tensor([False]))
    """
    return xp.bitwise_not(input)


@public(inplace=True, out=True)
def bitwise_and(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The bits that are set in both.

    Input: two tensors that broadcast, or a tensor and a number: integers or bools
    Output: the broadcast shape, of the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError if one is floating or complex; TypeError if
        both are numbers
    https://pytorch.org/docs → torch.bitwise_and

    >>> import tensorgrad as torch
    >>> torch.bitwise_and(torch.tensor([6]), torch.tensor([3]))
    tensor([2])
    """
    return xp.bitwise_and(input, other)


@public(inplace=True, out=True)
def bitwise_or(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The bits that are set in either.

    Input: two tensors that broadcast, or a tensor and a number: integers or bools
    Output: the broadcast shape, of the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError if one is floating or complex; TypeError if
        both are numbers
    https://pytorch.org/docs → torch.bitwise_or

    >>> import tensorgrad as torch
    >>> torch.bitwise_or(torch.tensor([6]), torch.tensor([3]))
    tensor([7])
    """
    return xp.bitwise_or(input, other)


@public(inplace=True, out=True)
def bitwise_xor(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The bits that are set in exactly one.

    Input: two tensors that broadcast, or a tensor and a number: integers or bools
    Output: the broadcast shape, of the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError if one is floating or complex; TypeError if
        both are numbers
    https://pytorch.org/docs → torch.bitwise_xor

    >>> import tensorgrad as torch
    >>> torch.bitwise_xor(torch.tensor([6]), torch.tensor([3]))
    tensor([5])
    """
    return xp.bitwise_xor(input, other)


@public(inplace=True, out=True)
def bitwise_left_shift(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The bits moved up by `other` places: input · 2^other.

    Input: two tensors that broadcast, or a tensor and a number: integers
    Output: the broadcast shape, of the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError if both are bools, or one is floating or
        complex
    https://pytorch.org/docs → torch.bitwise_left_shift

    >>> import tensorgrad as torch
    >>> torch.bitwise_left_shift(torch.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """
    return xp.left_shift(input, other)


@public(inplace=True, out=True)
def bitwise_right_shift(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The bits moved down by `other` places: ⌊input / 2^other⌋.

    Input: two tensors that broadcast, or a tensor and a number: integers
    Output: the broadcast shape, of the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError if both are bools, or one is floating or
        complex
    https://pytorch.org/docs → torch.bitwise_right_shift

    >>> import tensorgrad as torch
    >>> torch.bitwise_right_shift(torch.tensor([4, 13]), 2)
    tensor([1, 3])
    """
    return xp.right_shift(input, other)
