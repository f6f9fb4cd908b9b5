"""Functions of one tensor, element by element. https://pytorch.org/docs/stable/torch.html#pointwise-ops"""
from __future__ import annotations

import re
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from . import return_types
from ._arguments import LEAST_LARGEST, check_long, check_tensor, converted, integer
from ._register import FUNCTIONS, public
from ._sparse import rules

# ── simple functions: name and aliases, op, formula, an example, its result ───────────────────────────────────────────

PLAIN_FUNCTIONS = """
abs absolute   absolute    |x|                         [-1.5, 2.]  [1.5000, 2.0000]
acos arccos    arccos      cos⁻¹ x                     [0., 1.]    [1.5708, 0.0000]
acosh arccosh  arccosh     cosh⁻¹ x                    [1., 2.]    [0.0000, 1.3170]
asin arcsin    arcsin      sin⁻¹ x                     [0., 1.]    [0.0000, 1.5708]
asinh arcsinh  arcsinh     sinh⁻¹ x                    [0., 1.]    [0.0000, 0.8814]
atan arctan    arctan      tan⁻¹ x                     [0., 1.]    [0.0000, 0.7854]
atanh arctanh  arctanh     tanh⁻¹ x                    [0., 0.5]   [0.0000, 0.5493]
cos            cos         cos x                       [0., 1.]    [1.0000, 0.5403]
cosh           cosh        cosh x                      [0., 1.]    [1.0000, 1.5431]
deg2rad        deg2rad     x·π / 180                   [0., 180.]  [0.0000, 3.1416]
exp            exp         eˣ                          [0., 1.]    [1.0000, 2.7183]
exp2           exp2        2ˣ                          [0., 3.]    [1., 8.]
expm1          expm1       eˣ − 1, exact near 0        [0., 1.]    [0.0000, 1.7183]
log            log         ln x                        [1., 10.]   [0.0000, 2.3026]
log10          log10       log₁₀ x                     [2., 5.]    [0.3010, 0.6990]
log1p          log1p       ln(1 + x), exact near 0     [0., 1.]    [0.0000, 0.6931]
log2           log2        log₂ x                      [1., 8.]    [0., 3.]
rad2deg        rad2deg     x·180 / π                   [0., 1.]    [ 0.0000, 57.2958]
reciprocal     reciprocal  1 / x                       [2., 4.]    [0.5000, 0.2500]
rsqrt          rsqrt       1 / √x                      [1., 4.]    [1.0000, 0.5000]
sigmoid        sigmoid     1 / (1 + e⁻ˣ)               [0., 1.]    [0.5000, 0.7311]
sin            sin         sin x                       [0., 1.]    [0.0000, 0.8415]
sinc           sinc        sin(πx) / (πx), 1 at 0      [0., 0.5]   [1.0000, 0.6366]
sinh           sinh        sinh x                      [0., 1.]    [0.0000, 1.1752]
sqrt           sqrt        √x                          [1., 4.]    [1., 2.]
tan            tan         tan x                       [0., 1.]    [0.0000, 1.5574]
tanh           tanh        tanh x                      [0., 1.]    [0.0000, 0.7616]
"""


REAL = ("deg2rad", "rad2deg")        # ops of real numbers only
ERRORS_OF_REAL = "\nErrors: RuntimeError for complex numbers"


def _real(run: Any, name: str) -> Any:
    def checked(input: Any) -> Any:
        if input.dtype.is_complex:
            raise RuntimeError(f"{name} is not supported for complex tensors.")
        return run(input)
    return checked


def _plain(names: list[str], op: str, maths: str, example: str, result: str) -> None:
    run = getattr(xp, op)
    if op in REAL:
        run = _real(run, op)

    def function(input: Tensor) -> Tensor:
        return run(input)
    function.__name__ = function.__qualname__ = names[0]
    function.__code__ = function.__code__.replace(co_name=names[0])
    about = ("any dtype but bool\nOutput: the input's shape and dtype; real for complex numbers\nErrors: "
             "NotImplementedError for bools" if op == "absolute" else
             f"{'real numbers' if op in REAL else 'any dtype'}\nOutput: the input's shape; integers give the default "
             f"floating point dtype{ERRORS_OF_REAL if op in REAL else ''}")
    function.__doc__ = (f"{maths}, element by element.\n\nInput: (*), {about}\nhttps://pytorch.org/docs → "
                        f"torch.{names[0]}\n\n>>> import tensorgrad as torch\n>>> "
                        f"torch.{names[0]}(torch.tensor({example}))\ntensor({result})\n")
    public(*names[1:], inplace=True, out=True)(function)
    globals()[names[0]] = FUNCTIONS[names[0]]


for _row in PLAIN_FUNCTIONS.strip().splitlines():
    _names, _op, _maths, _example, _result = re.split(r"\s{2,}", _row)
    _plain(_names.split(), _op, _maths, _example, _result)


# ── signs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@public("negative", inplace=True, out=True)
def neg(input: Tensor) -> Tensor:
    """−x, element by element.

    Input: (*), any dtype but bool
    Output: the input's shape and dtype
    Errors: RuntimeError for bools
    https://pytorch.org/docs → torch.neg

    >>> import tensorgrad as torch
    >>> torch.neg(torch.tensor([1., -2.]))
    tensor([-1.,  2.])
    """
    if input.array.dtype.kind == "b":
        raise RuntimeError("Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert "
                           "a mask, use the `~` or `logical_not()` operator instead.")
    return xp.negative(input)


@public()
def positive(input: Tensor) -> Tensor:
    """The tensor itself.

    Input: (*), any dtype but bool
    Output: the input itself
    Errors: RuntimeError for bools
    https://pytorch.org/docs → torch.positive

    >>> import tensorgrad as torch
    >>> torch.positive(torch.tensor([-2.]))
    tensor([-2.])
    """
    if input.array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@public(inplace=True, out=True)
def sign(input: Tensor) -> Tensor:
    """−1, 0 or 1: the sign of real numbers.

    Input: (*), real numbers
    Output: the input's shape and dtype
    Errors: NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.sign

    >>> import tensorgrad as torch
    >>> torch.sign(torch.tensor([-3., 0., 2.]))
    tensor([-1.,  0.,  1.])
    """
    if input.dtype.is_complex:
        raise NotImplementedError("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
                                  "torch.sgn instead.")
    return xp.clone(input) if input.array.dtype.kind == "b" else xp.sign(input)


@public(inplace=True, out=True)
def sgn(input: Tensor) -> Tensor:
    """x / |x|, and 0 at 0: the sign of a real number, the direction of a complex one.

    https://pytorch.org/docs → torch.sgn

    >>> import tensorgrad as torch
    >>> torch.sgn(torch.tensor([3+4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    return xp.sgn(input) if input.dtype.is_complex else sign(input)


@public(out=True)
def signbit(input: Tensor) -> Tensor:
    """True where the sign bit is set: below zero, or −0.

    Input: (*), real numbers
    Output: the input's shape, bool
    Errors: NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.signbit

    >>> import tensorgrad as torch
    >>> torch.signbit(torch.tensor([-1., -0., 0.]))
    tensor([ True,  True, False])
    """
    if input.dtype.is_complex:
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return xp.signbit(input)


# ── rounding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rounded(input: Any, op: str, name: str) -> Any:
    kind = input.array.dtype.kind
    if kind in "iu":
        return xp.clone(input)
    if input.dtype.is_complex:
        raise NotImplementedError(f"{name} is not supported for complex inputs")
    return getattr(xp, op)(input)


@public(inplace=True, out=True)
def floor(input: Tensor) -> Tensor:
    """⌊x⌋, the greatest integer that is not above x.

    Input: (*), real numbers
    Output: the input's shape and dtype
    Errors: NotImplementedError for bools and complex numbers
    https://pytorch.org/docs → torch.floor

    >>> import tensorgrad as torch
    >>> torch.floor(torch.tensor([1.5, -1.5]))
    tensor([ 1., -2.])
    """
    return _rounded(input, "floor", "floor")


@public(inplace=True, out=True)
def ceil(input: Tensor) -> Tensor:
    """⌈x⌉, the least integer that is not below x.

    Input: (*), real numbers
    Output: the input's shape and dtype
    Errors: NotImplementedError for bools and complex numbers
    https://pytorch.org/docs → torch.ceil

    >>> import tensorgrad as torch
    >>> torch.ceil(torch.tensor([1.5, -1.5]))
    tensor([ 2., -1.])
    """
    return _rounded(input, "ceil", "ceil")


@public("fix", inplace=True, out=True)
def trunc(input: Tensor) -> Tensor:
    """x without its fractional part.

    Input: (*), real numbers
    Output: the input's shape and dtype
    Errors: NotImplementedError for bools and complex numbers
    https://pytorch.org/docs → torch.trunc

    >>> import tensorgrad as torch
    >>> torch.trunc(torch.tensor([1.5, -1.5]))
    tensor([ 1., -1.])
    """
    return _rounded(input, "trunc", "trunc")


@public(inplace=True, out=True)
def frac(input: Tensor) -> Tensor:
    """x − trunc(x), the fractional part.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for other dtypes
    https://pytorch.org/docs → torch.frac

    >>> import tensorgrad as torch
    >>> torch.frac(torch.tensor([1.5, -1.5]))
    tensor([ 0.5000, -0.5000])
    """
    if input._storage.dense is not None:
        return rules().mapped(input, frac)  # type: ignore[no-any-return]
    if input.array.dtype.kind not in "fV":
        raise NotImplementedError(f"\"frac_cpu\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    return xp.subtract(input, xp.trunc(input))


@public(inplace=True, out=True)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:  # noqa: A001
    """x rounded to so many decimals, halves to even.

    Input: (*), real numbers
    Output: the input's shape and dtype
    Errors: NotImplementedError for bools and complex numbers
    https://pytorch.org/docs → torch.round

    >>> import tensorgrad as torch
    >>> torch.round(torch.tensor([0.5, 1.5, 1.25])), torch.round(torch.tensor([1.234]), decimals=2)
    (tensor([0., 2., 1.]), tensor([1.2300]))
    """
    check_long(decimals := integer(decimals, "decimals"))
    if input.array.dtype.kind in "iu" and not decimals:
        return xp.clone(input)
    if not -308 <= decimals <= 308 and input.array.dtype.kind in "fV":
        return xp.multiply(xp.round(input), float("nan"))       # no power of ten is that large
    return xp.round(input, decimals=decimals)


@public(inplace=True, out=True)
def nan_to_num(input: Tensor, nan: float | None = None, posinf: float | None = None,
               neginf: float | None = None) -> Tensor:
    """x with NaN and the infinities replaced: by default by 0 and the greatest and least numbers.

    Input: (*), any dtype
    Output: the input's shape and dtype
    https://pytorch.org/docs → torch.nan_to_num

    >>> import tensorgrad as torch
    >>> torch.nan_to_num(torch.tensor([float('nan'), float('inf'), 1.]), posinf=9.)
    tensor([0., 9., 1.])
    """
    if input.array.dtype.kind in "biu":
        return xp.clone(input)
    return xp.nan_to_num(input, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


@public(inplace=True, out=True)
def square(input: Tensor) -> Tensor:
    """x². https://pytorch.org/docs → torch.square

    >>> import tensorgrad as torch
    >>> torch.square(torch.tensor([3., -2.]))
    tensor([9., 4.])
    """
    return xp.square(input) if input.array.dtype.kind != "b" else xp.power(input, 2)


@public(inplace=True, out=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """ln(x / (1 − x)), the inverse of sigmoid, x first brought into [eps, 1 − eps].

    Input: (*), real numbers from 0 to 1; others give NaN without eps
    Output: the input's shape; integers give the default floating point dtype
    Errors: NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.logit

    >>> import tensorgrad as torch
    >>> torch.logit(torch.tensor([0.5, 1.]), eps=0.1)
    tensor([0.0000, 2.1972])
    """
    if (eps is not None and not -LEAST_LARGEST <= eps <= LEAST_LARGEST and input.array.dtype.kind in "fV"
            and input.array.dtype.itemsize <= 4):
        converted(eps, dtypes.float32)
    return xp.logit(input, eps=None if eps is None else float(eps))


@public(out="same")
def frexp(input: Tensor) -> return_types.frexp:
    """Mantissa and exponent: x = mantissa · 2^exponent, 0.5 ≤ |mantissa| < 1.

    Input: (*), floating point
    Output: mantissa, of the input's dtype, and exponent, int32, both in the input's shape
    Errors: RuntimeError for other dtypes
    https://pytorch.org/docs → torch.frexp

    >>> import tensorgrad as torch
    >>> torch.frexp(torch.tensor([6.])).exponent
    tensor([3], dtype=torch.int32)
    """
    from .return_types import frexp as result
    if not input.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return result(*xp.frexp(input))


# ── complex numbers ───────────────────────────────────────────────────────────────────────────────────────────────────


@public(method=False)
def real(input: Tensor) -> Tensor:
    """The real part, as a view; a real tensor itself. https://pytorch.org/docs → torch.real

    >>> import tensorgrad as torch
    >>> torch.real(torch.tensor([1+2j]))
    tensor([1.])
    """
    return xp.real(input) if input.dtype.is_complex else input


@public(method=False)
def imag(input: Tensor) -> Tensor:
    """The imaginary part, as a view.

    Input: (*), complex
    Output: (*), real
    Errors: RuntimeError for real numbers
    https://pytorch.org/docs → torch.imag

    >>> import tensorgrad as torch
    >>> torch.imag(torch.tensor([1+2j]))
    tensor([2.])
    """
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return xp.imag(input)


@public()
def conj(input: Tensor) -> Tensor:
    """The complex conjugate; a real tensor itself. https://pytorch.org/docs → torch.conj

    >>> import tensorgrad as torch
    >>> torch.conj(torch.tensor([1+2j]))
    tensor([1.-2.j])
    """
    return xp.conj(input) if input.dtype.is_complex else input


@public(inplace=True, out=True)
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate, in new memory. https://pytorch.org/docs → torch.conj_physical

    >>> import tensorgrad as torch
    >>> torch.conj_physical(torch.tensor([1+2j]))
    tensor([1.-2.j])
    """
    return xp.conj(input) if input.dtype.is_complex else input


@public(out=True)
def angle(input: Tensor) -> Tensor:
    """The angle in the complex plane, in radians: 0 or π for real numbers.

    Input: (*), any dtype
    Output: the input's shape, real, in radians
    https://pytorch.org/docs → torch.angle

    >>> import tensorgrad as torch
    >>> torch.angle(torch.tensor([1j, -1+0j]))
    tensor([1.5708, 3.1416])
    """
    return xp.angle(input)


def _check_parts(first: Any, second: Any) -> None:
    """Raise RuntimeError unless two tensors have one floating point dtype, to make a complex tensor."""
    names = [SCALAR_TYPES[t.dtype.name] for t in (first, second)]
    if any(t.array.dtype.kind != "f" for t in (first, second)):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and "
                           f"{names[1]}")
    if names[0] != names[1]:
        raise RuntimeError(f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second "
                           f"argument")


@public(name="complex", method=False, out="same")
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    """real + i·imag.

    Input: real and imag, of one floating point dtype (no bfloat16), in shapes that broadcast
    Output: the broadcast shape, complex
    Errors: RuntimeError for other or unlike dtypes, or if the shapes do not broadcast
    https://pytorch.org/docs → torch.complex

    >>> import tensorgrad as torch
    >>> torch.complex(torch.tensor([1.]), torch.tensor([2.]))
    tensor([1.+2.j])
    """
    _check_parts(real, imag)
    return xp.make_complex(real, imag)


@public(method=False, out="same")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """abs·(cos angle + i·sin angle).

    Input: abs and angle, in radians, of one floating point dtype (no bfloat16), in shapes that broadcast
    Output: the broadcast shape, complex
    Errors: RuntimeError for other or unlike dtypes, or if the shapes do not broadcast
    https://pytorch.org/docs → torch.polar

    >>> import tensorgrad as torch
    >>> torch.polar(torch.tensor([2.]), torch.tensor([0.]))
    tensor([2.+0.j])
    """
    _check_parts(abs, angle)
    return xp.make_complex(xp.multiply(abs, xp.cos(angle)), xp.multiply(abs, xp.sin(angle)))


@public()
def view_as_real(input: Tensor) -> Tensor:
    """A view with the real and imaginary parts along a new last axis.

    Input: (*), complex
    Output: (*, 2), real
    Errors: RuntimeError for real numbers
    https://pytorch.org/docs → torch.view_as_real

    >>> import tensorgrad as torch
    >>> torch.view_as_real(torch.tensor([1+2j]))
    tensor([[1., 2.]])
    """
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return xp.view_as_real(input)


@public()
def view_as_complex(input: Tensor) -> Tensor:
    """A complex view whose real and imaginary parts are the last axis, of two elements.

    Input: (*, 2), float16, float32 or float64, the last axis with stride 1
    Output: (*), complex
    Errors: RuntimeError for other dtypes, shapes or strides
    https://pytorch.org/docs → torch.view_as_complex

    >>> import tensorgrad as torch
    >>> torch.view_as_complex(torch.tensor([[1., 2.]]))
    tensor([1.+2.j])
    """
    array = input.array
    if array.dtype.kind != "f":
        raise RuntimeError(f"view_as_complex is only supported for half, float and double tensors, but got a tensor of "
                           f"scalar type: {SCALAR_TYPES[input.dtype.name]}")
    if not array.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if array.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if array.size and array.strides[-1] != array.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step % 2 for step in input.stride()[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if input.storage_offset() % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return xp.view_as_complex(input)


# Conjugates and negatives are never put off here, so there is nothing to find out or to resolve.


@public()
def is_conj(input: Tensor) -> bool:
    """Return False: conjugation is never deferred here. https://pytorch.org/docs → torch.is_conj"""
    check_tensor(input, "is_conj", "input", 1)
    return False


@public()
def is_neg(input: Tensor) -> bool:
    """Return False: negation is never deferred here. https://pytorch.org/docs → torch.is_neg"""
    check_tensor(input, "is_neg", "input", 1)
    return False


@public()
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself, its conjugation done. https://pytorch.org/docs → torch.resolve_conj"""
    return _same(input)


@public()
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself, its negation done. https://pytorch.org/docs → torch.resolve_neg"""
    return _same(input)


def _same(input: Any) -> Any:
    if not isinstance(input, Tensor):
        raise TypeError("no tensor")
    return input


def _part(look: Any) -> Any:
    """A property: the real or imaginary part, which can be assigned to."""
    return property(look, lambda self, value: look(self).__setitem__(..., value), doc=look.__doc__)


Tensor.real, Tensor.imag = _part(real), _part(imag)  # type: ignore[attr-defined]
