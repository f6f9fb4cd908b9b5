"""Python's operators on tensors. The common cases go straight through the dispatcher's fast paths."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .._tensor import Tensor
from .._tensor.torch_function import ARMED, arm, overriding, state
from ..advice import wrote
from ..core.dispatch import NUMBERS, PLAIN, binary, fresh, unary, xp
from ..core.inplace import in_place
from ..core.mode import mode
from ..dtype import FROM_NUMPY
from ..ops.base import OPS
from ..runtime.numpy_state import compute
from ..storage.cpu import NumpyStorage
from . import comparison, math, matrix, pointwise


def operand(value: Any) -> Any:
    """Convert the other operand; return NotImplemented for objects of foreign classes.

    NumPy arrays give NotImplemented, too. Python then asks the array, which computes `tensor ∘ array`, with the result
    wrapped by `Tensor.__array_wrap__`, and raises TypeError for `array ∘ tensor`.
    """
    if isinstance(value, (Tensor, int, float, complex)):
        return value
    if isinstance(value, np.generic):
        if isinstance(value, (np.longdouble, np.clongdouble)):
            return float(value) if isinstance(value, np.longdouble) else complex(value)
        return value if isinstance(value, (np.number, np.bool_)) else NotImplemented
    return NotImplemented


def foreign(name: str, a: Any, b: Any) -> Any:
    """Let the other operand's class answer if it overrides functions, and is seen for the first time."""
    if state.classes and not ARMED and overriding((a, b)):
        arm()
        return getattr(Tensor, name)(a, b)
    return NotImplemented


def _self(value: Any) -> Any:
    """Check the receiver of a method, which may be no tensor if the method was taken from the class."""
    if not isinstance(value, Tensor):
        raise TypeError(f"descriptor requires a 'torch._C.TensorBase' object but received '{type(value).__name__}'")
    return value


def forward(name: str, op: str, function: Callable[..., Any], numbers: Any = NUMBERS) -> Callable[[Any, Any], Any]:
    """Return a method for `a ∘ b`: a fast path of the op; `function` takes other kinds of operands."""
    def other_ways(a: Any, b: Any) -> Any:
        other = operand(b)
        if other is NotImplemented and name == "__eq__" and isinstance(b, np.ndarray) and b.dtype in FROM_NUMPY:
            other = fresh(b, NumpyStorage)      # `==` alone takes an array as a tensor
        return foreign(name, a, b) if other is NotImplemented else function(_self(a), other)
    return binary(OPS[op], other_ways, numbers)


def reflected(name: str, function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """`b ∘ a` where a is no Tensor."""
    def method(b: Tensor, a: Any) -> Tensor:
        other = operand(a)
        return foreign(name, b, a) if other is NotImplemented else function(other, _self(b))
    return method


def in_its_place(op: str, function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """`a ∘= b`: straight into the memory of `a` where nothing has to be recorded."""
    def method(a: Tensor, b: Any) -> Tensor:
        if directly(op, a, b):
            return a
        b = operand(b)
        if b is NotImplemented:
            return b
        try:
            return in_place(a, function, b)
        except NotImplementedError:
            from ._parsing import does_not_fit
            if (refusal := does_not_fit(a, [b])) is None:
                raise
        return refusal.result()
    return method


def directly(op: str, a: Any, b: Any, alpha: Any = 1) -> bool:
    """Compute into `a` by one call of the module's function or kernel; return False if autograd or `b` prevents it."""
    if (type(a) not in PLAIN or a.origin is not None or (mode.record and a._node is not None) or a._storage.inference
            or mode.watching.writing is not None):
        return False
    x, backend = a.array, type(a._storage)
    if type(b) in PLAIN:
        y = b.array
        if (y.dtype is not x.dtype or type(b._storage) is not backend or b._storage is a._storage
                or (mode.record and b.node is not None)):
            return False
        if y.shape != x.shape and y.ndim:
            return False
    else:
        y = b
        if type(b) not in NUMBERS:
            return False
    flags = getattr(x, "flags", None)          # arrays of other devices need not have any
    if flags is None or not flags.c_contiguous or not getattr(flags, "writeable", True):
        return False
    tensor = y is not b
    if x.dtype.kind != "f" and not (x.dtype.kind == "i" and op in WHOLE and (tensor or type(y) is int and y in SMALL)):
        return False
    ufunc = OPS[op].kernels[backend]
    ours = hasattr(ufunc, "writes")
    if not ours and ufunc is not getattr(backend.module, op, None):
        return False
    if alpha == 1:
        try:
            if ours:
                ufunc(x, y, out=x)
            else:
                compute(ufunc, x, y, out=x)
        except TypeError:       # bit operations on floats: the general method raises the error
            return False
    elif type(alpha) not in NUMBERS or not getattr(ufunc, "scaled", None) or not ufunc.scaled(x, y, alpha):
        return False
    a._storage.wrote()
    if a._node is not None:
        wrote(a._storage.written, a._storage.written)
    return True


ALPHA = {"alpha"}
# ops with integer results for integers; numbers that fit all integer dtypes
WHOLE, SMALL = {"add", "subtract", "multiply"}, range(-128, 128)


def with_lane(op: str, general: Callable[..., Any]) -> Callable[..., Any]:
    """An in-place method that writes directly where it can."""
    @wraps(general)
    def method(self: Tensor, other: Any, **options: Any) -> Any:
        return (self if options.keys() <= ALPHA and directly(op, self, other, **options)
                else general(self, other, **options))
    return method


def _reflected_divide(b: Tensor, a: Any) -> Tensor:
    """Return (1 / b)·a, rounded twice as in PyTorch."""
    if isinstance(a, np.ndarray):
        try:
            return xp.reciprocal(_self(b)) * a
        except TypeError:
            return NotImplemented
    a = a if isinstance(a, Tensor) else operand(a)
    return NotImplemented if a is NotImplemented else math.mul(xp.reciprocal(_self(b)), a)


def _matmul(a: Any, b: Any) -> Any:
    return matrix.matmul(a, b) if isinstance(a, Tensor) and isinstance(b, Tensor) else NotImplemented


def _invert(x: Tensor) -> Tensor:
    if x.array.dtype.kind not in "biu":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return xp.bitwise_not(x)


ARITHMETIC = {"add": ("+", "add", math.add), "sub": ("-", "subtract", math.sub), "mul": ("*", "multiply", math.mul),
              "truediv": ("/", "divide", math.div), "floordiv": ("//", "floor_divide", math.floor_divide),
              "mod": ("%", "remainder", math.remainder), "pow": ("**", "power", math.pow),
              "and": ("&", "bitwise_and", comparison.bitwise_and), "or": ("|", "bitwise_or", comparison.bitwise_or),
              "xor": ("^", "bitwise_xor", comparison.bitwise_xor),
              "lshift": ("<<", "left_shift", comparison.bitwise_left_shift),
              "rshift": (">>", "right_shift", comparison.bitwise_right_shift)}
COMPARISONS = {"eq": ("==", "equal"), "ne": ("!=", "not_equal"), "lt": ("<", "less"), "le": ("<=", "less_equal"),
               "gt": (">", "greater"),
               "ge": (">=", "greater_equal")}


def _attach(name: str, method: Any, doc: str) -> None:
    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", doc
    setattr(Tensor, name, method)


for _name, (_sign, _op, _function) in ARITHMETIC.items():
    _attach(f"__{_name}__", forward(f"__{_name}__", _op, _function), f"self {_sign} other")
    _attach(f"__r{_name}__", reflected(f"__r{_name}__", _function), f"other {_sign} self, where other is no tensor")
    _attach(f"__i{_name}__", in_its_place(_op, _function), f"self {_sign}= other, in place")
for _name, (_sign, _op) in COMPARISONS.items():
    _attach(f"__{_name}__", forward(f"__{_name}__", _op, getattr(comparison, _name)),
            f"self {_sign} other, element by element")

for _name, _op in {"add_": "add", "sub_": "subtract", "mul_": "multiply", "div_": "divide"}.items():
    setattr(Tensor, _name, with_lane(_op, getattr(Tensor, _name)))

_attach("__rsub__", forward("__rsub__", "rsub", math.rsub), "other - self, where other is no tensor")
_attach("__rtruediv__", _reflected_divide, "other / self, where other is no tensor")
_attach("__matmul__", forward("__matmul__", "matmul", _matmul, numbers=()), "self @ other: the matrix product")
_attach("__rmatmul__", reflected("__rmatmul__", _matmul), "other @ self, where other is no tensor")
_attach("__neg__", unary(OPS["negative"], pointwise.neg), "-self")
_attach("__invert__", _invert, "~self: not, bit by bit")
Tensor.__radd__, Tensor.__rmul__ = Tensor.__add__, Tensor.__mul__  # type: ignore[attr-defined]
Tensor.__pos__, Tensor.__abs__ = pointwise.positive, pointwise.abs  # type: ignore[attr-defined]
Tensor.__div__, Tensor.__rdiv__, Tensor.__idiv__ = Tensor.__truediv__, Tensor.__rtruediv__, Tensor.__itruediv__  # type: ignore[attr-defined]
