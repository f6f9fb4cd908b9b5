"""PyTorch's data types, their NumPy twins, and how they combine.

See https://pytorch.org/docs/stable/tensor_attributes.html#torch.dtype
"""
from __future__ import annotations

import threading
from typing import Any

import numpy as np

BOOL, INTEGER, FLOATING, COMPLEX = range(4)  # the categories that promotion compares first
CATEGORIES = {"b": BOOL, "i": INTEGER, "u": INTEGER, "f": FLOATING, "c": COMPLEX, "V": FLOATING}


class dtype:
    """A data type of PyTorch's.

    >>> import tensorgrad as torch
    >>> torch.float32, torch.float32.itemsize, torch.float32.is_floating_point
    (torch.float32, 4, True)
    """

    __slots__ = ("name", "category", "itemsize", "is_floating_point", "is_complex", "is_signed", "numpy")

    def __init__(self, name: str, kind: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize
        self.category = CATEGORIES[kind]
        self.is_floating_point, self.is_complex = kind in "fV", kind == "c"
        self.is_signed = kind not in "ub"
        # the dtype of arrays. NumPy has no bfloat16, float8 and complex32: their bits are bytes that NumPy moves but
        # does not compute with, under the dtype's name, see runtime/small_floats.py
        self.numpy: Any = np.dtype([(name, f"V{itemsize}")] if kind == "V" or name == "complex32" else name)

    @property
    def value(self) -> str:
        """The bare name, as the members of an enumeration have it: 'float32'."""
        return self.name

    def to_real(self) -> dtype:
        """The dtype of the real and imaginary parts."""
        return {"complex32": float16, "complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> dtype:
        """Return the complex dtype whose parts have this dtype, or the nearest one for bfloat16."""
        if self.category < FLOATING or self in EIGHT_BITS:
            raise RuntimeError(f"Unknown Complex ScalarType for {SCALAR_TYPES[self.name]}")
        return in_complex(self)

    def common(self, a: dtype, b: dtype) -> dtype | None:
        """Hook: return the common dtype of a and b, one of which is this; None: by the rules; RuntimeError if none."""
        return None

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return named, (self.name,)


def named(name: str) -> Any:
    """Return the dtype of a pickle. Pickles name this function, because the class may be renamed `torch.dtype`."""
    return globals()[name]


uint8 = dtype("uint8", "u", 1)
uint16 = dtype("uint16", "u", 2)
uint32 = dtype("uint32", "u", 4)
uint64 = dtype("uint64", "u", 8)
int8 = dtype("int8", "i", 1)
int16 = short = dtype("int16", "i", 2)
int32 = int = dtype("int32", "i", 4)
int64 = long = dtype("int64", "i", 8)
bfloat16 = dtype("bfloat16", "V", 2)
float16 = half = dtype("float16", "f", 2)
float32 = float = dtype("float32", "f", 4)
float64 = double = dtype("float64", "f", 8)
complex32 = chalf = dtype("complex32", "c", 4)
complex64 = cfloat = dtype("complex64", "c", 8)
complex128 = cdouble = dtype("complex128", "c", 16)
bool = dtype("bool", "b", 1)

ALL = (bool, uint8, int8, int16, int32, int64, uint16, uint32, uint64, float16, bfloat16, float32, float64,
       complex32, complex64, complex128)

# dtypes for storage and conversion alone: no op computes in them. (eps, largest, smallest normal number)
EIGHT_BITS = {dtype(name, "V", 1): limits for name, limits in {
    "float8_e4m3fn": (2.0 ** -3, 448.0, 2.0 ** -6), "float8_e5m2": (2.0 ** -2, 57344.0, 2.0 ** -14),
    "float8_e4m3fnuz": (2.0 ** -3, 240.0, 2.0 ** -7),
    "float8_e5m2fnuz": (2.0 ** -3, 57344.0, 2.0 ** -15), "float8_e8m0fnu": (1.0, 2.0 ** 127, 2.0 ** -127)}.items()}
float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu = EIGHT_BITS
float8_e8m0fnu.is_signed = False
NAMED = {d.name: d for d in (*ALL, *EIGHT_BITS)}
SCALAR_TYPES = {"bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
                "float16": "Half", "bfloat16": "BFloat16", "float32": "Float", "float64": "Double",
                "complex32": "ComplexHalf", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
                **{d.name: d.name.capitalize() for d in EIGHT_BITS},
                "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64"}   # the names in error messages
C_NAMES = {"bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int",
           "int64": "long int", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float",
           "float64": "double", "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>",
           "complex128": "c10::complex<double>",
           "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
           **{d.name: f"c10::{d.name.capitalize()}" for d in EIGHT_BITS}}             # in those of PyTorch's templates


class _FromNumpy(dict):  # type: ignore[type-arg]
    """NumPy dtype → PyTorch dtype. Other byte orders, platform aliases and ml_dtypes' dtypes are added on first use."""

    def __missing__(self, key: Any) -> dtype:
        found = NAMED.get(np.dtype(key).name)
        if found is None:
            raise TypeError(f"can't convert np.ndarray of type numpy.{np.dtype(key).type.__name__}. The only supported "
                            "types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
                            "uint64, uint32, uint16, uint8, and bool.")
        self[key] = found
        return found


FROM_NUMPY = _FromNumpy({d.numpy: d for d in NAMED.values()})


def holds_complex(dtype: Any) -> Any:
    """Return True for a NumPy dtype of complex numbers: of bytes that NumPy only moves, complex32 alone has four."""
    return dtype.kind == "c" or dtype.char == "V" and dtype.itemsize == 4


def letter(dtype: Any) -> Any:
    """Return NumPy's letter for the kind of a NumPy dtype; that of complex numbers for complex32."""
    return "c" if holds_complex(dtype) else dtype.kind


PYTHON = {type(True): bool, type(1): int64, type(1.0): float32, type(1j): complex64}


def as_dtype(spec: Any) -> dtype:
    """The dtype meant by a dtype, its name, a NumPy dtype or a Python type."""
    if isinstance(spec, dtype):
        return spec
    if isinstance(spec, str) and spec.removeprefix("torch.") in NAMED:
        return NAMED[spec.removeprefix("torch.")]
    if spec in PYTHON:
        return {type(1.0): float64, type(1j): complex128}.get(spec, PYTHON[spec])
    if isinstance(spec, (type, np.dtype)) and issubclass(getattr(spec, "type", spec), np.generic):
        return FROM_NUMPY[np.dtype(spec)]
    raise TypeError(f"dtype must be torch.dtype, not {spec if isinstance(spec, str) else type(spec).__name__}")


# ── promotion ─────────────────────────────────────────────────────────────────────────────────────────────────────

_SIGNED = (int8, int16, int32, int64)
_BARE_UNSIGNED = (uint16, uint32, uint64)


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype of a category not below either that holds both. https://pytorch.org/docs → promote_types

    >>> import tensorgrad as torch
    >>> torch.promote_types(torch.int64, torch.float16), torch.promote_types(torch.uint8, torch.int8)
    (torch.float16, torch.int16)
    """
    try:
        return _PROMOTED[type1, type2]
    except KeyError:
        a, b = as_dtype(type1), as_dtype(type2)
        _PROMOTED[a, b] = found = _promote(a, b)
        return found


NOMINAL: dict[str, dtype] = {}       # the dtypes that no tensor has, see nominal_dtypes.py
_PROMOTED: dict[tuple[dtype, dtype], dtype] = {}


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    for each in (a, b):
        if (common := each.common(a, b)) is not None:
            return common
    if a in EIGHT_BITS or b in EIGHT_BITS:
        raise RuntimeError(f"Promotion for Float8 Types is not supported, attempted to promote {SCALAR_TYPES[a.name]} "
                           f"and {SCALAR_TYPES[b.name]}")
    bare = a in _BARE_UNSIGNED or b in _BARE_UNSIGNED
    if bare and not (a.is_floating_point or b.is_floating_point):
        raise RuntimeError("Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
                           f"{SCALAR_TYPES[a.name]} and {SCALAR_TYPES[b.name]}")
    if a.category > b.category:
        a, b = b, a
    if b.is_complex:  # the parts must hold a's values as well
        return in_complex(promote_types(a.to_real(), b.to_real()))
    if a.category != b.category:
        return b
    if b.is_floating_point:
        return max(a, b, key=lambda d: d.itemsize) if a.itemsize != b.itemsize else float32
    if a.is_signed == b.is_signed or a.itemsize != b.itemsize:
        wider = max(a, b, key=lambda d: d.itemsize)
        return wider if wider.is_signed or a.is_signed == b.is_signed else _SIGNED[_SIGNED.index(wider) + 1]
    return int16  # uint8 with int8


def result_dtype(tensors: Any, scalars: Any, numbers: Any) -> dtype:
    """Combine the dtypes of tensors with dimensions, of 0-d tensors and of Python numbers, in this order of rank."""
    result: dtype | None = None
    for group in (numbers, scalars, tensors):
        combined: dtype | None = None
        for d in group:
            combined = d if combined is None else promote_types(combined, d)
        if combined is not None:
            result = combined if result is None else _outrank(combined, result)
    assert result is not None
    return result


def _outrank(higher: dtype, lower: dtype) -> dtype:
    """A lower rank counts only where its category is above the higher rank's."""
    if lower.category <= higher.category:
        return higher
    if higher.is_floating_point:
        return in_complex(higher)
    return lower if lower.is_complex else promote_types(higher, lower)


# ── defaults ──────────────────────────────────────────────────────────────────────────────────────────────────────

_default = float32


class _Thread(threading.local):
    """A thread's settings inside `with` blocks; they take precedence over the program's."""

    default: dtype | None = None


thread = _Thread()


def get_default_dtype() -> dtype:
    """The dtype that new floating point tensors get. https://pytorch.org/docs → get_default_dtype"""
    return thread.default or _default


def set_default_dtype(d: Any, /) -> None:
    """Set the dtype that new floating point tensors get. https://pytorch.org/docs → set_default_dtype"""
    global _default
    if not isinstance(d, (dtype, type)):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    d = as_dtype(d)
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _default = d


def default_complex() -> dtype:
    return in_complex(get_default_dtype())


def in_complex(dtype: dtype) -> dtype:
    """Return the complex dtype whose parts have a dtype; complex64, if there is none."""
    return (dtype if dtype.is_complex else complex128 if dtype is float64 else complex32 if dtype is float16 else
            complex64)


def of_number(kind: type) -> dtype:
    """Return the dtype of Python numbers of a type: of bool, int, float or complex."""
    found = PYTHON[kind]
    return (found if found.category < FLOATING else get_default_dtype() if found.category == FLOATING
            else default_complex())


def can_cast(from_: dtype, to: dtype) -> Any:
    """Return True if PyTorch lets the cast happen: `to` must not be of a lower category (bool, int, float, complex).

    https://pytorch.org/docs → can_cast
    """
    for place, (name, value) in enumerate((("from_", from_), ("to", to)), 1):
        if not isinstance(value, dtype):
            raise TypeError(f"can_cast(): argument '{name}' (position {place}) must be torch.dtype, not "
                            f"{type(value).__name__}")
    return from_.category <= to.category


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_limits(given: Any, name: str) -> dtype:
    """Return the dtype that `finfo` or `iinfo` was asked about."""
    try:
        return as_dtype(given)
    except TypeError:
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not "
                        f"{given.__class__.__name__}") from None


class finfo:
    """Limits of a floating point dtype. https://pytorch.org/docs → type-info

    >>> import tensorgrad as torch
    >>> torch.finfo(torch.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: dtype | None = None) -> None:
        d = get_default_dtype() if type is None else _with_limits(type, "finfo")
        if not (d.is_floating_point or d.is_complex):
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                            "'torch.finfo'")
        d = d.to_real()
        if d is bfloat16:  # 8 bits of exponent as float32, 7 of mantissa
            self.bits, self.eps, self.resolution = 16, 2.0 ** -7, 0.01
            self.max, self.smallest_normal = (2.0 - 2.0 ** -7) * 2.0 ** 127, 2.0 ** -126
        elif d in EIGHT_BITS:
            self.bits, self.resolution, (self.eps, self.max, self.smallest_normal) = 8, 1.0, EIGHT_BITS[d]
        else:
            info = np.finfo(d.numpy)
            self.bits, self.eps, self.resolution = info.bits, info.eps.item(), info.resolution.item()
            self.max, self.smallest_normal = info.max.item(), info.smallest_normal.item()
            self.resolution = 10.0 ** -info.precision
        self.min, self.tiny, self.dtype = (-self.max if d.is_signed else self.smallest_normal, self.smallest_normal,
                                           d.name)

    def __repr__(self) -> str:
        shown = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{n}={getattr(self, n):g}' for n in shown)}, dtype={self.dtype})"

    def __eq__(self, other: object) -> Any:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> Any:
        return hash(("finfo", self.dtype))


class iinfo:
    """Limits of an integer dtype. https://pytorch.org/docs → type-info

    >>> import tensorgrad as torch
    >>> torch.iinfo(torch.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    def __init__(self, type: dtype) -> None:
        d = _with_limits(type, "iinfo")
        if d.category > INTEGER:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if d is bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        info = np.iinfo(d.numpy)
        self.bits, self.min, self.max, self.dtype = info.bits, info.min, info.max, d.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> Any:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> Any:
        return hash(("iinfo", self.dtype))


class layout:
    """The memory layout of a tensor.

    Tensors are strided, sparse, or, if nested, jagged; see docs/guide/sparse.md.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided = layout("strided")
sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc = map(layout,
                                                                 ("sparse_coo", "sparse_csr", "sparse_csc",
                                                                  "sparse_bsr", "sparse_bsc"))
jagged = layout("jagged")


class memory_format:
    """PyTorch's memory formats, accepted wherever it takes them."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
