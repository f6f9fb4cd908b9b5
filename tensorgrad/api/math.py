"""Arithmetic of two tensors or more, element by element, and Python's operators.

https://pytorch.org/docs/stable/torch.html#pointwise-ops
"""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.casting import result_type
from ..core.dispatch import SCALAR_TYPES, xp
from ..core.undefined import undefined
from ._arguments import (
    C_NAMES,
    LEAST_LARGEST,
    broadcast_shape,
    check_tensor,
    check_tensors,
    converted,
    in_dtype,
    promoted,
    refuse,
    refuse_complex32,
)
from ._halves import once_rounded
from ._kinds import Number, Operand
from ._register import public

# ── sums and differences ──────────────────────────────────────────────────────────────────────────────────────────────


def _scaled(input: Any, other: Any, alpha: Any) -> Any:
    """alpha · other, for a sum with `input`."""
    target = result_type(input, other)
    if isinstance(alpha, bool) and target.category != dtypes.BOOL:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and target.category <= dtypes.INTEGER:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and not target.is_complex:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if not isinstance(other, Tensor):
        return other * alpha if target.category != dtypes.BOOL else bool(other and alpha)
    return xp.multiply(in_dtype(other, target), alpha if target.category != dtypes.BOOL else bool(alpha))


@public(inplace=True, out=True)
def add(input: Tensor, other: Operand, *, alpha: Number = 1) -> Tensor:
    """input + alpha·other, broadcast.

    Input: input and other, or a number, in shapes that broadcast; any dtype
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, or for an alpha that is a fraction, beside integers, or
        complex, beside real numbers
    https://pytorch.org/docs → torch.add

    >>> import tensorgrad as torch
    >>> torch.add(torch.tensor([1., 2.]), torch.tensor([10., 20.]), alpha=2)
    tensor([21., 42.])
    """
    return xp.add(input, other if alpha == 1 and alpha is not True else _scaled(input, other, alpha))


def _check_difference(input: Any, other: Any) -> None:
    bools = [isinstance(t, bool) or isinstance(t, Tensor) and t.array.dtype.kind == "b" for t in (input, other)]
    if all(bools):
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                           "`logical_xor()` operator instead.")
    if any(bools):
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
                           "invert a mask, use the `~` or `logical_not()` operator instead.")


@public("subtract", inplace=True, out=True)
def sub(input: Tensor, other: Operand, *, alpha: Number = 1) -> Tensor:
    """input − alpha·other, broadcast.

    Input: input and other, or a number, in shapes that broadcast; any dtype but bool
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, for bools, or for an alpha that is a fraction, beside integers,
        or complex, beside real numbers
    https://pytorch.org/docs → torch.sub

    >>> import tensorgrad as torch
    >>> torch.sub(torch.tensor([5., 6.]), 2)
    tensor([3., 4.])
    """
    _check_difference(input, other)
    return xp.subtract(input, other if alpha == 1 and alpha is not True else _scaled(input, other, alpha))


@public(method=False)
def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """other − alpha·input, broadcast.

    Input: input and other, or a number, in shapes that broadcast; any dtype but bool
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, for bools, or for an alpha that is a fraction, beside integers,
        or complex, beside real numbers
    https://pytorch.org/docs → torch.rsub

    >>> import tensorgrad as torch
    >>> torch.rsub(torch.tensor([1., 2.]), 10)
    tensor([9., 8.])
    """
    check_tensor(input, "rsub", "input", 1)
    _check_difference(input, other)
    return xp.rsub(input if alpha == 1 and alpha is not True else _scaled(other, input, alpha), other)


# ── products and quotients ────────────────────────────────────────────────────────────────────────────────────────────


@public("multiply", inplace=True, out=True)
def mul(input: Tensor, other: Operand) -> Tensor:
    """input · other, broadcast.

    Input: input and other, or a number, in shapes that broadcast; any dtype
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast
    https://pytorch.org/docs → torch.mul

    >>> import tensorgrad as torch
    >>> torch.mul(torch.tensor([[1.], [2.]]), torch.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return xp.multiply(input, other)


@public("divide", inplace=True, out=True)
def div(input: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """input / other, broadcast; optionally rounded to zero ('trunc') or down ('floor').

    Input: input and other, or a number, in shapes that broadcast; any dtype
    Output: the broadcast shape, in the promoted dtype; integers give the default floating point dtype, or integers with
        a rounding_mode
    Errors: RuntimeError if the shapes do not broadcast, for another rounding_mode, or for the rounded quotient of an
        integer by 0
    https://pytorch.org/docs → torch.div

    >>> import tensorgrad as torch
    >>> torch.div(torch.tensor([7., -7.]), 2), torch.div(torch.tensor([7, -7]), 2, rounding_mode='trunc')
    (tensor([ 3.5000, -3.5000]), tensor([ 3, -3]))
    """
    if rounding_mode is None:
        return xp.divide(input, other)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
                           f"'{rounding_mode}'")
    if rounding_mode == "floor":
        return xp.floor_divide(input, other)
    if result_type(input, other) is dtypes.bfloat16:
        return xp.trunc(xp.divide(input, other))          # which rounds to bfloat16 in between
    return xp.trunc_divide(input, other)


@public(inplace=True, out=True)
def true_divide(input: Tensor, other: Operand) -> Tensor:
    """input / other, broadcast.

    Input: input and other, or a number, in shapes that broadcast; any dtype
    Output: the broadcast shape, in the promoted dtype; integers give the default floating point dtype
    Errors: RuntimeError if the shapes do not broadcast
    https://pytorch.org/docs → torch.true_divide

    >>> import tensorgrad as torch
    >>> torch.true_divide(torch.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    """
    return xp.divide(input, other)


@public(inplace=True, out=True)
def floor_divide(input: Tensor, other: Tensor | Number) -> Tensor:
    """⌊input / other⌋, broadcast.

    Input: input and other, or a number, in shapes that broadcast; real numbers
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, or for an integer by 0; NotImplementedError for bools and
        complex numbers
    https://pytorch.org/docs → torch.floor_divide

    >>> import tensorgrad as torch
    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    return xp.floor_divide(input, other)


@public(inplace=True, out=True)
def remainder(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """input − other·⌊input / other⌋: the remainder with the sign of `other`, as in Python.

    Input: input and other, or a number, in shapes that broadcast; real numbers
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, or for an integer by 0; NotImplementedError for bools and
        complex numbers
    https://pytorch.org/docs → torch.remainder

    >>> import tensorgrad as torch
    >>> torch.remainder(torch.tensor([7, -7]), 3)
    tensor([1, 2])
    """
    return xp.remainder(input, other)


@public(inplace=True, out=True)
def fmod(input: Tensor, other: Tensor | Number) -> Tensor:
    """input − other·trunc(input / other): the remainder with the sign of `input`, as in C.

    Input: input and other, or a number, in shapes that broadcast; real numbers
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, or for an integer by 0; NotImplementedError for bools and
        complex numbers
    https://pytorch.org/docs → torch.fmod

    >>> import tensorgrad as torch
    >>> torch.fmod(torch.tensor([7, -7]), 3)
    tensor([ 1, -1])
    """
    check_tensor(input, "fmod", "input", 1)
    return xp.fmod(input, other)


@public(inplace=True, out=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """input + value·tensor1·tensor2, broadcast.

    Input: input, tensor1 and tensor2, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for three of bools; TypeError for numbers
    https://pytorch.org/docs → torch.addcmul

    >>> import tensorgrad as torch
    >>> torch.addcmul(torch.tensor([1.]), torch.tensor([2.]), torch.tensor([3.]), value=10)
    tensor([61.])
    """
    input, tensor1, tensor2 = _check_addc(input, tensor1, tensor2, "addcmul")
    if narrow := _narrow(input):
        return in_dtype(addcmul(*(in_dtype(t, dtypes.float32) for t in (input, tensor1, tensor2)), value=value), narrow)
    product = xp.multiply(tensor1, tensor2)
    value = _factor(value, input)
    return xp.add(input, product if value == 1 else xp.multiply(product, value))


@public(inplace=True, out=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """input + value·tensor1 / tensor2, broadcast.

    Input: input, tensor1 and tensor2, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, or for integers divided by integers; TypeError for numbers
    https://pytorch.org/docs → torch.addcdiv

    >>> import tensorgrad as torch
    >>> torch.addcdiv(torch.tensor([1.]), torch.tensor([3.]), torch.tensor([2.]))
    tensor([2.5000])
    """
    check_tensor(tensor1, "addcdiv", "tensor1", 2)
    check_tensor(tensor2, "addcdiv", "tensor2", 3)
    if all(t.array.dtype.kind in "biu" for t in (tensor1, tensor2)):
        raise RuntimeError("Integer division with addcdiv is no longer supported, and in a future  release addcdiv "
                           "will perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be "
                           "implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for "
                           "integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future "
                           "addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), "
                           "for all dtypes.")
    input, tensor1, tensor2 = _check_addc(input, tensor1, tensor2, "addcdiv")
    refuse_complex32(input, "addcdiv_cpu_out")
    if narrow := _narrow(input):
        return in_dtype(addcdiv(*(in_dtype(t, dtypes.float32) for t in (input, tensor1, tensor2)), value=value), narrow)
    quotient, value = xp.divide(tensor1, tensor2), _factor(value, input)
    return xp.add(input, quotient if value == 1 else xp.multiply(quotient, value))


def _narrow(x: Any) -> Any:
    """The dtype of floating point numbers of 16 bits: several steps on these are taken in single precision, and rounded
    once.
    """
    return x.dtype if x.array.dtype.itemsize == 2 and x.array.dtype.kind in "fV" else None


def _factor(value: Any, input: Any) -> Any:
    """Return the number in the operands' dtype; RuntimeError if the dtype cannot hold it."""
    kind = input.array.dtype.kind
    return converted(value, input.dtype) if isinstance(value, complex) and not input.dtype.is_complex else (
        int(value) if kind in "iu" else value)


def _check_addc(input: Any, tensor1: Any, tensor2: Any, name: str) -> tuple[Any, ...]:
    """The operands in the dtype of the result, in which all is computed."""
    check_tensor(tensor1, name, "tensor1", 2)
    check_tensor(tensor2, name, "tensor2", 3)
    if all(t.array.dtype.kind == "b" for t in (input, tensor1, tensor2)):
        raise NotImplementedError(f"\"{name}_cpu_out\" not implemented for 'Bool'")
    return ((input, tensor1, tensor2) if input.array.dtype == tensor1.array.dtype == tensor2.array.dtype
            else promoted(input, tensor1, tensor2))


@public(inplace=True, out=True)
def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """input + weight·(end − input), linear interpolation from `input` to `end`.

    Input: input, end and weight, or a number, of one floating point or complex dtype, in shapes that broadcast
    Output: the broadcast shape
    Errors: RuntimeError if the shapes do not broadcast, or for unlike dtypes; TypeError for an end that is a number;
        NotImplementedError for integers
    https://pytorch.org/docs → torch.lerp

    >>> import tensorgrad as torch
    >>> torch.lerp(torch.tensor([0., 10.]), torch.tensor([10., 20.]), 0.25)
    tensor([ 2.5000, 12.5000])
    """
    check_tensor(end, "lerp", "end", 2)
    for name, t in (("end", end), ("weight", weight)):
        if isinstance(t, Tensor) and t.array.dtype != input.array.dtype and not (name == "weight" and not t.array.ndim):
            wanted, got = (C_NAMES[d.dtype.name] for d in (input, t))
            raise RuntimeError(f"expected dtype {wanted} for `{name}` but got dtype {got}")
    kernel = f"lerp_kernel_{'tensor' if isinstance(weight, Tensor) and weight.array.ndim else 'scalar'}"
    refuse(input, "biu", kernel)
    refuse_complex32(input, kernel)
    return xp.lerp(input, end, weight)


# ── powers ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@public(inplace=True, out=True)
def pow(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:  # noqa: A001
    """input to the power of exponent, broadcast; either may be a number.

    Input: input and exponent, one of which may be a number, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, or for an integer to the power of a negative number;
        NotImplementedError for two of bools
    https://pytorch.org/docs → torch.pow

    >>> import tensorgrad as torch
    >>> torch.pow(torch.tensor([2., 3.]), 2), torch.pow(2, torch.tensor([2, 3]))
    (tensor([4., 9.]), tensor([4, 8]))
    """
    if isinstance(exponent, int) and exponent < 0 and isinstance(input, Tensor) and input.array.dtype.kind in "biu":
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if type(exponent) is int and exponent >= 1 << 63 and isinstance(input, Tensor) and input.array.dtype.kind in "biu":
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return xp.power(input, exponent) if isinstance(input, Tensor) else _in_rows(xp.power(input, exponent))


def _in_rows(x: Any) -> Any:
    """Return a base's powers, in row-major order whatever the order of the exponents."""
    return x if x.array.flags.c_contiguous else xp.contiguous(x)


@public(inplace=True, out=True)
def float_power(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """The power in double precision.

    Input: input and exponent, one of which may be a number, in shapes that broadcast
    Output: the broadcast shape, float64 or complex128
    Errors: RuntimeError if the shapes do not broadcast
    https://pytorch.org/docs → torch.float_power

    >>> import tensorgrad as torch
    >>> torch.float_power(torch.tensor([2, 3]), -1)
    tensor([0.5000, 0.3333], dtype=torch.float64)
    """
    target = dtypes.complex128 if result_type(input, exponent).is_complex else dtypes.float64
    return pow(*[in_dtype(t, target) if isinstance(t, Tensor) else t for t in (input, exponent)])


@public(inplace=True, out=True)
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """input · 2^other.

    Input: input and other, in shapes that broadcast
    Output: the broadcast shape; integers give the default floating point dtype
    Errors: RuntimeError if the shapes do not broadcast; TypeError for numbers
    https://pytorch.org/docs → torch.ldexp

    >>> import tensorgrad as torch
    >>> torch.ldexp(torch.tensor([1.]), torch.tensor([3]))
    tensor([8.])
    """
    check_tensors(input, other, "ldexp")
    out = _scaled_by_power(input, other)
    return (in_dtype(out, input.dtype) if other.array.dtype.kind in "biu" and input.array.dtype.kind not in "biu"
            else out)


@once_rounded
def _scaled_by_power(input: Any, other: Any) -> Any:
    return xp.multiply(input, xp.exp2(other))


@public(inplace=True, out=True)
def xlogy(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """input · ln(other), 0 where input is 0.

    Input: input and other, or a number, in shapes that broadcast; real numbers
    Output: the broadcast shape; integers give the default floating point dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.xlogy

    >>> import tensorgrad as torch
    >>> torch.xlogy(torch.tensor([0., 2.]), torch.tensor([0., 1.]))
    tensor([0., 0.])
    """
    return xp.xlogy(input, other)


# ── two tensors, no numbers ───────────────────────────────────────────────────────────────────────────────────────────


@public("arctan2", inplace=True, out=True)
def atan2(input: Tensor, other: Tensor) -> Tensor:
    """The angle of the point (other, input), from −π to π.

    Input: input and other, real numbers, in shapes that broadcast
    Output: the broadcast shape, in radians
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for complex numbers; TypeError for numbers
    https://pytorch.org/docs → torch.atan2

    >>> import tensorgrad as torch
    >>> torch.atan2(torch.tensor([1., -1.]), torch.tensor([0., 0.]))
    tensor([ 1.5708, -1.5708])
    """
    check_tensors(input, other, "atan2")
    return xp.arctan2(input, other)


@public(inplace=True, out=True)
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """√(input² + other²).

    Input: input and other, floating point, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for integers, bools and complex numbers;
        TypeError for numbers
    https://pytorch.org/docs → torch.hypot

    >>> import tensorgrad as torch
    >>> torch.hypot(torch.tensor([3.]), torch.tensor([4.]))
    tensor([5.])
    """
    check_tensors(input, other, "hypot")
    return xp.hypot(input, other)


@public(out=True)
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """ln(e^input + e^other), without overflow.

    Input: input and other, floating point or complex, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for integers and bools; TypeError for
        numbers
    https://pytorch.org/docs → torch.logaddexp

    >>> import tensorgrad as torch
    >>> torch.logaddexp(torch.tensor([100.]), torch.tensor([100.]))
    tensor([100.6931])
    """
    check_tensors(input, other, "logaddexp")
    return xp.logaddexp(_floats(input, other, "logaddexp"), other)


@public(out=True)
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """log₂(2^input + 2^other), without overflow.

    Input: input and other, floating point, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for integers, bools and complex numbers;
        TypeError for numbers
    https://pytorch.org/docs → torch.logaddexp2

    >>> import tensorgrad as torch
    >>> torch.logaddexp2(torch.tensor([3.]), torch.tensor([3.]))
    tensor([4.])
    """
    check_tensors(input, other, "logaddexp2")
    return xp.logaddexp2(_floats(input, other, "logaddexp2"), other)


def _floats(input: Any, other: Any, name: str) -> Any:
    if input.array.dtype.kind in "biu" and other.array.dtype.kind in "biu":
        broadcast_shape(input, other)
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for "
                                  f"'{SCALAR_TYPES[result_type(input, other).name]}'")
    return input


@public(inplace=True, out=True)
def copysign(input: Tensor, other: Tensor | Number) -> Tensor:
    """|input| with the sign of `other`.

    Input: input and other, or a number, in shapes that broadcast; real numbers
    Output: the broadcast shape; integers give the default floating point dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.copysign

    >>> import tensorgrad as torch
    >>> torch.copysign(torch.tensor([1., -2.]), -1)
    tensor([-1., -2.])
    """
    check_tensor(input, "copysign", "input", 1)
    return xp.copysign(input, other)


@public(inplace=True, out=True)
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next floating point number after `input`, towards `other`.

    Input: input and other, floating point, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for integers, bools and complex numbers;
        TypeError for numbers
    https://pytorch.org/docs → torch.nextafter

    >>> import tensorgrad as torch
    >>> torch.nextafter(torch.tensor([1.]), torch.tensor([2.])) - 1
    tensor([1.1921e-07])
    """
    check_tensors(input, other, "nextafter")
    return xp.nextafter(input, other)


@public(inplace=True, out=True)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below zero, 1 above, `values` at zero.

    Input: input and values, of one real dtype, in shapes that broadcast
    Output: the broadcast shape
    Errors: RuntimeError if the shapes do not broadcast, or for unlike dtypes or complex numbers
    https://pytorch.org/docs → torch.heaviside

    >>> import tensorgrad as torch
    >>> torch.heaviside(torch.tensor([-1., 0., 2.]), torch.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    if input.array.dtype != values.array.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    if input.dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    return undefined("heaviside", xp.heaviside(input, values), input, values)


@public(inplace=True, out=True)
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor of integers.

    Input: input and other, integers, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for other dtypes; TypeError for numbers
    https://pytorch.org/docs → torch.gcd

    >>> import tensorgrad as torch
    >>> torch.gcd(torch.tensor([12, 18]), torch.tensor([8, 12]))
    tensor([4, 6])
    """
    check_tensors(input, other, "gcd")
    return xp.gcd(input, other)


@public(inplace=True, out=True)
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple of integers.

    Input: input and other, integers, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for other dtypes; TypeError for numbers
    https://pytorch.org/docs → torch.lcm

    >>> import tensorgrad as torch
    >>> torch.lcm(torch.tensor([4, 6]), torch.tensor([6, 10]))
    tensor([12, 30])
    """
    check_tensors(input, other, "lcm")
    return xp.lcm(input, other)


# ── the greater, the less, and bounds ─────────────────────────────────────────────────────────────────────────────────


def _ordered(input: Any, other: Any, name: str) -> None:
    check_tensors(input, other, name)
    if input.dtype.is_complex or other.dtype.is_complex:
        raise RuntimeError(f"{name} not implemented for complex tensors.")


@public(out=True)
def maximum(input: Tensor, other: Tensor) -> Tensor:
    """The greater of two elements, NaN if either is; equal ones share the gradient.

    Input: input and other, real numbers, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, or for complex numbers; TypeError for numbers
    https://pytorch.org/docs → torch.maximum

    >>> import tensorgrad as torch
    >>> torch.maximum(torch.tensor([1., 5.]), torch.tensor([3., 2.]))
    tensor([3., 5.])
    """
    _ordered(input, other, "maximum")
    return xp.maximum(input, other)


@public(out=True)
def minimum(input: Tensor, other: Tensor) -> Tensor:
    """The lesser of two elements, NaN if either is; equal ones share the gradient.

    Input: input and other, real numbers, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, or for complex numbers; TypeError for numbers
    https://pytorch.org/docs → torch.minimum

    >>> import tensorgrad as torch
    >>> torch.minimum(torch.tensor([1., 5.]), torch.tensor([3., 2.]))
    tensor([1., 2.])
    """
    _ordered(input, other, "minimum")
    return xp.minimum(input, other)


@public(out=True)
def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The greater of two elements, or the one that is a number.

    Input: input and other, real numbers, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, or for complex numbers; TypeError for numbers
    https://pytorch.org/docs → torch.fmax

    >>> import tensorgrad as torch
    >>> torch.fmax(torch.tensor([1., float('nan')]), torch.tensor([3., 2.]))
    tensor([3., 2.])
    """
    _ordered(input, other, "fmax")
    return xp.fmax(input, other)


@public(out=True)
def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The lesser of two elements, or the one that is a number.

    Input: input and other, real numbers, in shapes that broadcast
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, or for complex numbers; TypeError for numbers
    https://pytorch.org/docs → torch.fmin

    >>> import tensorgrad as torch
    >>> torch.fmin(torch.tensor([1., float('nan')]), torch.tensor([3., 2.]))
    tensor([1., 2.])
    """
    _ordered(input, other, "fmin")
    return xp.fmin(input, other)


@public("clip", inplace=True, out=True)
def clamp(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """min(max(input, min), max): elements brought between two bounds, numbers or tensors.

    Where min is above max, the result is max.

    Input: (*), real numbers; min and max, both tensors that broadcast with it or both numbers, or None
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast, or without bounds; NotImplementedError for complex numbers;
        TypeError for a number and a tensor as bounds
    https://pytorch.org/docs → torch.clamp

    >>> import tensorgrad as torch
    >>> torch.clamp(torch.tensor([-2., 0.5, 2.]), -1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if input.dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if min is not None and max is not None and isinstance(min, Tensor) is not isinstance(max, Tensor):
        raise TypeError("clamp(): both bounds must be numbers, or both tensors")
    if isinstance(min if max is None else max, Tensor) and (min is None or max is None):
        return clamp_min(input, min) if max is None else clamp_max(input, max)  # type: ignore[arg-type]
    for bound in (min, max):
        if isinstance(bound, complex):
            raise NotImplementedError("clamp is not supported for complex types")
        if (bound.__class__ is float and abs(bound) > LEAST_LARGEST
                or bound.__class__ is int and not -128 <= bound < 128):
            converted(bound, result_type(input, bound))
    return xp.clamp(input, min, max)


@public(inplace=True, out=True)
def clamp_min(input: Tensor, min: Tensor | Number) -> Tensor:  # noqa: A002
    """Elements brought to a bound from below.

    Input: (*), real numbers; a tensor that broadcasts with it, or a number
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.clamp
    """
    return _bounded(input, min, None, min)


@public(inplace=True, out=True)
def clamp_max(input: Tensor, max: Tensor | Number) -> Tensor:  # noqa: A002
    """Elements brought to a bound from above.

    Input: (*), real numbers; a tensor that broadcasts with it, or a number
    Output: the broadcast shape, in the promoted dtype
    Errors: RuntimeError if the shapes do not broadcast; NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.clamp
    """
    return _bounded(input, None, max, max)


def _bounded(input: Any, least: Any, most: Any, bound: Any) -> Any:
    """Bring elements to one bound. Tensors are bounds of complex numbers in PyTorch's order of checks: shapes first."""
    op, other = ("minimum", "max") if least is None else ("maximum", "min")
    if not isinstance(bound, Tensor):
        if input.array.dtype.kind == "b" and isinstance(bound, bool):
            raise NotImplementedError(f"\"clamp_{other}_scalar_cpu\" not implemented for 'Bool'")
        if input.array.dtype.kind != "b" or isinstance(bound, complex):
            return clamp(input, least, most)
    elif "c" in (input.array.dtype.kind, bound.array.dtype.kind):
        broadcast_shape(input, bound)
        raise NotImplementedError(f"\"{op}_cpu\" not implemented for '{SCALAR_TYPES[result_type(input, bound).name]}'")
    elif input.array.dtype.kind != "b":
        return xp.clamp(input, least, most)
    return getattr(xp, op)(input, bound)
