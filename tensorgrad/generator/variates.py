"""The arithmetic behind `Generator`: how PyTorch turns uniform numbers into others, to the last bit.

PyTorch's kernels use fused multiply-add (FMA), which rounds `a*b + c` once. NumPy has none, so it is computed: single
precision in doubles, where the product is exact; double precision with the rounding errors carried along. Logarithm,
sine and cosine of the single precision normals are the Cephes polynomials.
"""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..dtype import FROM_NUMPY, holds_complex, letter
from ..messages.warn_once import warn
from ..runtime import small_floats

Array = np.ndarray[Any, Any]
Draw = Callable[[], float]

CHUNK = 1 << 15  # values made at a time, so that the work arrays stay in the processor's cache
BLOCK = 16  # PyTorch turns uniforms into normals by blocks: eight radii, eight angles


# ── rounding ──────────────────────────────────────────────────────────────────────────────────────────────────────


def single(x: Array) -> Array:
    """Doubles rounded to single precision."""
    return x.astype(np.float32).astype(np.float64)


def fma_single(a: Array, b: Any, c: Any) -> Array:
    """`a*b + c`, rounded once to single precision (but for one case in about 2**30 that is rounded twice)."""
    t = a * b
    t += c
    return t.astype(np.float32).astype(np.float64)


def fma(a: Array, b: float, c: float) -> Array:
    """`a*b + c`, rounded once to double precision."""
    if b == 1 or c == 0 or not 1e-280 < abs(b) < 1e280:  # a single rounding anyway, or halves that would overflow
        return a * b + c
    p = a * b
    a_high, a_low = halves(a)
    b_high, b_low = halves(b)
    p_error = a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)
    s = p + c
    c_rounded = s - p
    s_error = (p - (s - c_rounded)) + (c - c_rounded)
    return s + (s_error + p_error)


def halves(x: Any) -> tuple[Any, Any]:
    """A double as the sum of two with half as many bits, whose products are exact (Veltkamp)."""
    t = x * (2.0 ** 27 + 1)
    high = t - (t - x)
    return high, x - high


def libm(name: str, x: Array, dtype: Any = np.float64) -> Array:
    """A function of the C library, as PyTorch calls it; NumPy's own is used where the last bit is rounded away."""
    if np.dtype(dtype) != np.float64:
        return getattr(np, name)(x)
    return np.fromiter(map(getattr(math, name), x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


# ── normals in blocks: Box and Muller with Cephes' single precision functions ─────────────────────────────────────


def singles(*constants: float) -> list[float]:
    return [float(np.float32(c)) for c in constants]


LOG = singles(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
              2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
SIN = singles(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COS = singles(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
LN2 = singles(-2.12194440e-4, 0.693359375)  # in two parts, the short one last
QUARTER_PI = singles(0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8)  # in three
FOUR_OVER_PI, TWO_PI = singles(4 / math.pi, 2 * math.pi)
SQRT_HALF = int(np.float32(math.sqrt(0.5)).view(np.int32))
MANTISSA = (1 << 23) - 1


def horner(x: Array, coefficients: list[float]) -> Array:
    y: Any = coefficients[0]
    for c in coefficients[1:]:
        y = fma_single(y, x, c)
    return y


def log_single(u: Array) -> Array:
    """ln u for float32 u > 0: with u = 2**e (1 + x), √½ <= 1 + x < √2, it is x - x²/2 + x³ P(x) + e ln 2."""
    bits = u.view(np.int32) - SQRT_HALF
    e = (bits >> 23).astype(np.float64)
    bits &= MANTISSA
    bits += SQRT_HALF
    x = bits.view(np.float32) - 1.0
    x = x.astype(np.float64)
    z = single(x * x)
    y = single(horner(x, LOG) * x)
    y = fma_single(y, z, single(e * LN2[0]))
    y = single(y - 0.5 * z)
    return fma_single(e, LN2[1], single(x + y))


def sincos_single(x: Array) -> tuple[Array, Array]:
    """Sine and cosine, as float32, of singles x >= 0: both polynomials on [-π/4, π/4], swapped and signed by octant."""
    octant = (x * FOUR_OVER_PI).astype(np.float32).astype(np.int32)
    octant += 1
    octant &= ~1
    y = octant.astype(np.float64)
    for part in QUARTER_PI:
        x = fma_single(y, -part, x)
    z = single(x * x)
    cos = single(horner(z, COS) * z)
    cos = fma_single(cos, z, -0.5 * z) + 1.0
    sin = single(horner(z, SIN) * z)
    sin = sin * x + x
    s, c = sin.astype(np.float32).view(np.int32), cos.astype(np.float32).view(np.int32)
    swap = octant << 30  # bit 1 of the octant, spread over the word
    swap >>= 31
    swap &= s ^ c
    s ^= swap
    c ^= swap
    s ^= (octant & 4) << 29  # the sine is negative in octants 4 to 7, the cosine in 2 to 5
    c ^= (octant + 2 & 4) << 29
    return s.view(np.float32), c.view(np.float32)


def box_muller_single(u1: Array, u2: Array) -> tuple[Array, Array]:
    """Return two float32 normals, √(-2 ln u1) cos 2πu2 and √(-2 ln u1) sin 2πu2, from float32 uniforms (0 < u1 <=
    1).
    """
    radius = np.sqrt((-2.0 * log_single(u1)).astype(np.float32))
    sin, cos = sincos_single((u2 * np.float32(TWO_PI)).astype(np.float64))
    return cos * radius, sin * radius


def box_muller(u1: Array, u2: Array, log: str = "log") -> tuple[Array, Array]:
    """Return two float64 normals, see `box_muller_single`; `log="log1p"` takes 1 - u1 for u1.
    """
    radius = np.sqrt(-2.0 * libm(log, u1 if log == "log" else -u1))
    angle = 2.0 * math.pi * u2
    return radius * libm("cos", angle), radius * libm("sin", angle)


def normal_blocks(u: Array, mean: float, std: float) -> Array:
    """Normals in place of uniforms, whose number is a multiple of 16, in blocks of 16."""
    transform, scaled = (box_muller_single, scaled_single) if u.dtype == np.float32 else (box_muller, fma)
    for start in range(0, u.size, CHUNK):
        block = u[start:start + CHUNK].reshape(-1, 2, BLOCK // 2)
        first, second = transform(1 - block[:, 0].ravel(), block[:, 1].ravel())
        block[:, 0] = scaled(first, std, mean).reshape(-1, BLOCK // 2)
        block[:, 1] = scaled(second, std, mean).reshape(-1, BLOCK // 2)
    return u


def scaled_single(z: Array, std: float, mean: float) -> Array:
    """`z*std + mean` of float32 numbers, rounded once to single precision."""
    std, mean = singles(std, mean)
    if std == 1:
        return z + np.float32(mean)  # 0 too, for it makes -0 positive
    return fma_single(z.astype(np.float64), std, mean)


# ── samplers that reject: each takes as many uniforms as it happens to need ───────────────────────────────────────


def poisson(rate: float, uniform: Draw) -> float:
    """Draw a Poisson number: by products of uniforms for a small rate, else Hörmann's transformed rejection (PTRS)."""
    if not rate >= 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if rate == 0:
        return 0.0
    if rate > 1e18:         # no integer holds a result so large
        return -2.0**63
    if rate < 10:
        return poisson_product(rate, uniform)
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    box = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= box:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        ratio = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if ratio <= -rate + k * log_rate - math.lgamma(k + 1.0):
            return float(k)


def poisson_product(rate: float, uniform: Draw) -> float:
    limit, product, count = math.exp(-rate), uniform(), 0.0
    while product > limit:
        product *= uniform()
        count += 1
    return count


def binomial(count: float, p: float, uniform: Draw) -> float:
    """Draw a binomial number: by sums of geometric ones where few successes are expected, else by rejection (BTRS)."""
    if count <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return count
    if p != p:
        return math.nan
    if p > 0.5:
        return count - binomial_half(count, 1 - p, uniform)
    return binomial_half(count, p, uniform)


def binomial_half(count: float, p: float, uniform: Draw) -> float:
    if count * p >= 10:
        return binomial_rejection(count, p, uniform)
    log_q, trials, successes = math.log1p(-p), 0.0, 0.0
    while (trials := trials + math.ceil(math.log(uniform()) / log_q)) <= count:
        successes += 1
    return successes


def binomial_rejection(count: float, p: float, uniform: Draw) -> float:
    deviation = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre, box, odds = count * p + 0.5, 0.92 - 4.2 / b, p / (1 - p)
    alpha, mode = (2.83 + 5.1 / b) * deviation, math.floor((count + 1) * p)
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + centre)
        if k < 0 or k > count:
            continue
        if us >= 0.07 and v <= box:
            return float(k)
        bound = ((mode + 0.5) * math.log((mode + 1) / (odds * (count - mode + 1)))
                 + (count + 1) * math.log((count - mode + 1) / (count - k + 1))
                 + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
                 + stirling_tail(mode) + stirling_tail(count - mode) - stirling_tail(k) - stirling_tail(count - k))
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return float(k)


STIRLING = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
            0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287)


def stirling_tail(k: float) -> float:
    """Return ln k! minus Stirling's approximation, (k + ½) ln(k + 1) − (k + 1) + ½ ln 2π."""
    if k < len(STIRLING):
        return STIRLING[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


THIRD, SQUEEZE = singles(1 / 3, 0.0331)  # PyTorch writes them with an f


def gamma(alpha: Any, uniform: Draw, normal: Draw) -> float:
    """Draw a standard gamma number (Marsaglia and Tsang); `alpha` is a NumPy scalar, whose precision counts."""
    scale, one = 1.0, alpha.dtype.type(1)
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = (1 - uniform()) ** float(one / alpha)
        alpha = alpha + one
    d = float(alpha - alpha.dtype.type(THIRD))
    c = 1 / math.sqrt(9 * d) if d > 0 else math.nan
    while True:
        while (y := 1 + c * (x := normal())) <= 0:
            pass
        v, u, xx = y * y * y, 1 - uniform(), x * x
        if u < 1 - SQUEEZE * xx * xx or math.log(u) < 0.5 * xx + d * (1 - v + math.log(v)):
            return scale * d * v


# ── filling arrays ────────────────────────────────────────────────────────────────────────────────────────────────


def fill(shape: Any, dtype: Any, draw: Callable[[int], Array],
         formula: Callable[[Array], Array] | None = None) -> Array:
    """Fill an array with raw draws, or with `formula` of them, a chunk at a time."""
    out = np.empty(shape, dtype)
    flat = out.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        part = flat[start:start + CHUNK]
        values = draw(part.size)
        small_floats.fill(part, values if formula is None else cast(formula(values), out.dtype))
    return out


def cast(values: Array, dtype: np.dtype[Any]) -> Array:
    """Cast to a dtype as C++ does: from double to 16-bit floats through single precision."""
    if values.dtype == dtype:
        return values
    with np.errstate(over="ignore"):
        if dtype.itemsize == 2 and values.dtype == np.float64:
            values = values.astype(np.float32)
        return small_floats.convert(values, dtype)


def as_shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return FROM_NUMPY[dtype].to_real().numpy  # type: ignore[no-any-return]


def paired(parts: Array, dtype: np.dtype[Any]) -> Array:
    """Complex numbers from real and imaginary parts along the last axis."""
    if dtype.itemsize == 4:
        warn(small_floats.EXPERIMENTAL)
    return parts.view(dtype).reshape(parts.shape[:-1])


class Type(NamedTuple):
    """A dtype's names and limits, for the checks of arguments."""
    name: str  # PyTorch's
    c_name: str
    digits: int = 0  # of the significand
    limit: float = 0.0  # the greatest finite number


NAMED = {
    "float16": Type("Half", "c10::Half", 11, 65504.0),
    "bfloat16": Type("BFloat16", "c10::BFloat16", 8, (2 - 2.0 ** -7) * 2.0 ** 127),
    "float32": Type("Float", "float", 24, (2 - 2.0 ** -23) * 2.0 ** 127),
    "float64": Type("Double", "double", 53, (2 - 2.0 ** -52) * 2.0 ** 1023),
    "complex32": Type("ComplexHalf", "c10::complex<c10::Half>"),
    "complex64": Type("ComplexFloat", "c10::complex<float>"),
    "complex128": Type("ComplexDouble", "c10::complex<double>"),
    "bool": Type("Bool", "bool"), "uint8": Type("Byte", "unsigned char"), "int8": Type("Char", "signed char"),
    "int16": Type("Short", "short int"), "int32": Type("Int", "int"), "int64": Type("Long", "long int"),
    "uint16": Type("UInt16", "short unsigned int"), "uint32": Type("UInt32", "unsigned int"),
    "uint64": Type("UInt64", "long unsigned int"),
}


class _Types(dict[Any, Type]):
    """A cache of `Type` by NumPy dtype: the name of a dtype is slow to look up."""

    def __missing__(self, dtype: Any) -> Type:
        self[dtype] = found = NAMED[FROM_NUMPY[dtype].name]
        return found


TYPES = _Types()


# ── checks ────────────────────────────────────────────────────────────────────────────────────────────────────────


def expect_floating(dtype: np.dtype[Any], kernel: str) -> None:
    if letter(dtype) not in "fV":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{TYPES[dtype].name}'")


def expect_double_or_float(dtype: np.dtype[Any], kernel: str) -> None:
    if dtype not in (np.float32, np.float64):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{TYPES[dtype].name}'")


def expect_common(dtype: np.dtype[Any], kernel: str, kinds: str) -> None:
    if letter(dtype) not in kinds or dtype.kind == "u" and dtype.itemsize > 1:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{TYPES[dtype].name}'")


def expect_64_bits(dtype: np.dtype[Any]) -> None:
    if dtype.name in ("uint8", "int8", "int16", "int32"):
        raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16")
    if FROM_NUMPY[dtype].name not in ("int64", "float64", "float32", "bfloat16"):
        raise NotImplementedError("\"random_full_64_bits_range_kernel_cpu\" not implemented for "
                                  f"'{TYPES[dtype].name}'")


def check_bounds(low: float, high: float, dtype: np.dtype[Any]) -> None:
    expect_floating(dtype, "check_uniform_bounds")
    name, c_name, _, limit = TYPES[dtype]
    if -limit <= low <= high <= limit and high - low <= limit:
        return
    for bound, what in ((low, "from"), (high, "to")):
        if not -limit <= bound <= limit:
            raise RuntimeError(f"{what} is out of bounds for {c_name}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    raise RuntimeError(f"uniform_ expects to-from <= std::numeric_limits<{name}>::max(), but found to={high:g} and "
                       f"from={low:g} which result in to-from to exceed the limit")


def greatest(dtype: np.dtype[Any]) -> int:
    """The greatest integer that `random_` makes."""
    if dtype.kind == "b":
        return 1
    digits = TYPES[dtype].digits
    return 1 << digits if digits else int(np.iinfo(dtype).max)


def integer_range(low: int, high: int | None, dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and the greatest integer, moved inwards if rounding to the dtype would leave the range."""
    if high is not None and low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if holds_complex(dtype):
        what = "random_from_to_impl" if high is None else "check_random_bounds"
        raise RuntimeError(f"{what} handles only integral, floating-point and boolean types")
    last = greatest(dtype) if high is None else int(high) - 1
    if dtype.kind in "fV":
        low = inwards(low, 1, dtype)
        if high is None and low >= last:
            raise RuntimeError("random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to "
                               f"dtype, but got from={low} > to_inc={last}")
        if high is not None:
            last = inwards(int(high), -1, dtype) - 1
            if low > last:
                raise RuntimeError("random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
                                   f"but got from={low} >= to={last + 1}")
    check_integers(low, last, dtype)
    return low, last


def inwards(bound: int, step: int, dtype: np.dtype[Any]) -> int:
    """`bound`, or a number of the dtype further inside where its inner neighbour, rounded to the dtype, is outside."""
    rounded = float(small_floats.wide(cast(np.array(float(bound + step)), dtype)))
    if math.isinf(rounded):
        rounded = -2.0 ** 63  # C++'s cast to an integer
    if (rounded >= bound) == (step > 0):
        return bound
    return int(rounded) + step * (1 << abs(bound + step).bit_length() - TYPES[dtype].digits)


def check_integers(low: int, last: int, dtype: np.dtype[Any]) -> None:
    _, c_name, digits, limit = TYPES[dtype]
    if digits:
        least, most = -limit, limit
    elif dtype.kind == "b":
        least, most = 0, 1
    else:
        least, most = np.iinfo(dtype).min, min(np.iinfo(dtype).max, (1 << 63) - 1)
    for bound, what in ((low, "from"), (last, "to - 1")):
        if not least <= bound <= most:
            raise RuntimeError(f"{what} is out of bounds for {c_name}")
        if digits and abs(bound) > 1 << digits:
            warnings.warn(f"{what} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {c_name} "
                          "can support discrete uniform distribution only within this range. This warning will become "
                          "an error in version 1.7 release, please fix the code in advance", stacklevel=5)


def check_randperm(n: int, dtype: np.dtype[Any]) -> None:
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    expect_common(dtype, "randperm", "fViu")
    if dtype.kind in "iu" and n - 1 > np.iinfo(dtype).max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    name, _, digits, _ = TYPES[dtype]
    if dtype.kind == "f" and n > (1 << digits) + 1:
        most = "2049" if name == "Half" else f"2^{digits}+1"
        raise RuntimeError(f"n cannot be greater than {most} for {name} type.")


def check_binomial(count: np.dtype[Any], p: np.dtype[Any]) -> None:
    for dtype, what in ((count, "count"), (p, "prob")):
        if letter(dtype) not in "fV":
            raise ValueError(f"binomial only supports floating-point dtypes for {what}, got: {TYPES[dtype].name}")
    if p != count:
        raise RuntimeError(f"Found dtype {TYPES[p].name} but expected {TYPES[count].name}")
    expect_double_or_float(count, "binomial_cpu")


def check_multinomial(weights: Array, n: int, replacement: bool) -> None:
    if letter(weights.dtype) not in "fV":
        raise RuntimeError("multinomial only supports floating-point dtypes for input, got: "
                           f"{TYPES[weights.dtype].name}")
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if n <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and n > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    weights = small_floats.wide(weights)
    wrong = weights[~(np.isfinite(weights) & (weights >= 0))]
    if wrong.size and replacement and n > 1:
        fault = "= infinity or NaN" if wrong[0] > 0 else "< 0"
        raise RuntimeError(f"invalid multinomial distribution (encountering probability entry {fault})")
    if wrong.size:
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not np.all(np.any(weights > 0, axis=-1)):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
