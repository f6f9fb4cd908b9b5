"""The steps of a loop as instructions of the kernel `loop`: one for most ops of the table, several for others.

An op without an instruction is traced: its definition runs on `Lane`s, as it does on arrays.
"""
from __future__ import annotations

from functools import cache, partial
from math import pi
from typing import Any, NamedTuple

import numpy as np

from ..ops.base import OPS
from ..ops.reduction import axes_of, norm
from ..runtime.native import native
from .loops import At, Loop, Step

BOOL = np.dtype(bool)
KINDS = {"f": "values", "d": "values", "?": "bytes", "B": "bytes", "int64": "int64"}
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


class Unserved(Exception):
    """The kernel has no instructions for a step."""


@cache
def kinds() -> dict[str, int]:
    """Return the numbers of the instructions, by name: those of the compiled module, or none without it."""
    return {name: k for k, name in enumerate(getattr(native, "loop_steps", "").split())}


def kind_of(dtype: Any) -> str:
    """Return which kind of the kernel's arrays an operand of a dtype is; "" if none."""
    dtype = np.dtype(dtype)
    return KINDS.get(dtype.char if dtype.char in "fd?B" else dtype.name, "")


FULL, ROW, DROPPED = 0, 1, 2    # a value has all elements; one for each row, with axes of length 1; without these axes


class Lane:
    """A value of a loop in the making, with the operators that definitions use. `at` is an input's or instruction's.

    `form` is FULL, ROW or DROPPED.
    """

    __slots__ = ("at", "dtype", "form", "made")

    def __init__(self, made: Instructions, at: tuple[str, int], dtype: Any, form: int = FULL) -> None:
        self.made, self.at, self.dtype, self.form = made, at, dtype, form
        made.forms[at] = form

    def _call(name: str, swapped: bool = False) -> Any:  # type: ignore[misc]
        def call(self: Lane, other: Any) -> Any:
            return self.made.op(name, other, self) if swapped else self.made.op(name, self, other)
        return call

    __add__, __radd__ = _call("add"), _call("add", True)
    __sub__, __rsub__ = _call("subtract"), _call("subtract", True)
    __mul__, __rmul__ = _call("multiply"), _call("multiply", True)
    __truediv__, __rtruediv__ = _call("divide"), _call("divide", True)
    __pow__ = _call("power")
    __lt__, __le__, __gt__, __ge__ = map(_call, ("less", "less_equal", "greater", "greater_equal"))
    __eq__, __ne__ = _call("equal"), _call("not_equal")
    __and__, __or__, __xor__ = map(_call, ("bitwise_and", "bitwise_or", "bitwise_xor"))
    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Any:
        return self.made.op("negative", self)

    def __invert__(self) -> Any:
        return self.made.op("bitwise_not", self)


class Instruction(NamedTuple):
    """Operands are ("in", k), ("at", k), or numbers; with `by_row`, the result is one number for each row."""

    name: str
    operands: tuple[Any, ...]
    by_row: bool


class Instructions:
    """Instructions that compute in a dtype, equal ones only once.

    `ndim` is the number of the result's axes, `reduced` how many of them, at the end, are a row: 0 without reductions;
    `count` is the number of a row's elements.
    """

    def __init__(self, dtype: Any, ndim: int = 1, reduced: int = 0, count: int = 1) -> None:
        self.dtype, self.ndim, self.reduced, self.count = np.dtype(dtype), ndim, reduced, count
        self.rows: list[Instruction] = []
        self.forms: dict[Any, int] = {}
        self._known: dict[Any, int] = {}
        self._depth = 0

    def op(self, opname: str, *operands: Any, **params: Any) -> Any:
        """Add an op of the table. Unserved if it has no instructions."""
        if rule := RULES.get(opname):
            return rule(self, *operands, **params)
        if opname in kinds() and not params:
            return self.instruction(opname, *operands)
        op = OPS.get(opname)
        if op is None or not op.elementwise or self._depth > 8:
            raise Unserved(opname)
        self._depth += 1
        try:
            return op.forward(self, *operands, **params)
        except (AttributeError, TypeError) as error:
            raise Unserved(opname) from error
        finally:
            self._depth -= 1

    def __getattr__(self, opname: str) -> Any:              # `xp` of the definitions
        if opname.startswith("_"):
            raise AttributeError(opname)
        return partial(self.op, opname)

    def zeros_like(self, x: Lane) -> float:
        return 0.0

    def ones_like(self, x: Lane) -> float:
        return 1.0

    def full(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        return value

    def instruction(self, name: str, *operands: Any) -> Lane:
        values = operands[name == "where":]
        truth = name in TRUTHS or name == "where" and all(map(_is_truth, values))
        # arithmetic of truth values is not that of numbers, which they are beside numbers of the loop's dtype
        if not truth and name != "copy" and any(map(_is_truth, values)) and not any(
                isinstance(a, Lane) and a.dtype == self.dtype for a in values):
            raise Unserved(name)
        return self._added(name, operands, BOOL if truth else self.dtype, self._form(name, operands))

    def _form(self, name: str, operands: tuple[Any, ...]) -> int:
        forms = {a.form for a in operands if isinstance(a, Lane)}
        if DROPPED in forms and len(forms) > 1 and self.reduced < self.ndim:
            raise Unserved(f"{name} of rows and what was made of them, without their axes")
        return min(forms, default=FULL)

    def _added(self, name: str, operands: tuple[Any, ...], dtype: Any, form: int) -> Lane:
        of = tuple(a.at if isinstance(a, Lane) else a if isinstance(a, tuple) else _number(a) for a in operands)
        key = name, tuple(a if isinstance(a, tuple) else a.hex() for a in of)       # 0 and −0 differ
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append(Instruction(name, of, form != FULL))
        return Lane(self, ("at", self._known[key]), dtype, form)

    def of_many(self, name: str, x: Lane, axis: Any, keepdims: bool) -> Lane:
        """Add a reduction of rows."""
        if not isinstance(x, Lane) or x.form != FULL or x.dtype == BOOL or self.reduced != rows_of(axis, self.ndim):
            raise Unserved(name)
        before = self.rows[x.at[1]] if x.at[0] == "at" else None
        factors: tuple[Any, ...] = (x,)
        if (name in ("sum", "mean") and before is not None and before.name in ("multiply", "square")
                and all(self.forms.get(a) == FULL for a in before.operands)):
            name, factors = f"{name}_of_products", (before.operands * 2)[:2]
        return self._added(name, factors, self.dtype, ROW if keepdims else DROPPED)

    @property
    def in_parts(self) -> bool:
        """Return True if no element waits for a reduction of its row: then the row may have any length."""
        waits: set[int] = set()
        for at, (name, operands, by_row) in enumerate(self.rows):
            after = any(a[1] in waits for a in operands if isinstance(a, tuple) and a[0] == "at")
            if after and (not by_row or name in MANY):
                return False
            if after or name in MANY:
                waits.add(at)
        return True


def rows_of(axis: Any, ndim: int) -> int:
    """Return how many axes a reduction takes, if they are the last ones; else 0."""
    axes = axes_of(ndim, axis)  # type: ignore[no-untyped-call]
    return len(axes) if sorted(axes) == list(range(ndim - len(axes), ndim)) else 0


TRUTHS = frozenset("equal not_equal less less_equal logical_and logical_or logical_xor logical_not isnan isinf isfinite"
                   .split())


MANY = frozenset(["sum", "mean", "sum_of_products", "mean_of_products", "amax", "amin"])


def _is_truth(a: Any) -> bool:
    return isinstance(a, (bool, np.bool_)) or isinstance(a, Lane) and a.dtype == BOOL


def _number(a: Any) -> float:
    if not isinstance(a, NUMBERS):
        raise Unserved(str(a))
    try:
        return float(a)
    except OverflowError:
        raise Unserved(str(a)) from None


# ── ops that are other instructions ───────────────────────────────────────────────────────────────────────────────────


def _power(made: Instructions, x: Any, n: Any) -> Any:
    """xⁿ as eager kernels compute it: small whole n by products."""
    if isinstance(x, bool) or isinstance(n, bool):
        raise Unserved("power")
    if n in (0.5, -0.5) if isinstance(n, float) else False:
        return made.op("sqrt" if n > 0 else "rsqrt", x)
    if not isinstance(n, (int, float)) or not (abs(n) <= 16 and n == int(n) and n != 0):
        return made.instruction("power", x, n)
    out, square, left = None, x, abs(int(n))
    while left:
        if left & 1:
            out = square if out is None else made.op("multiply", out, square)
        left >>= 1
        if left:
            square = made.op("multiply", square, square)
    return made.op("divide", 1.0, out) if n < 0 else out


def _clamp(made: Instructions, x: Any, lo: Any, hi: Any) -> Any:
    x = x if lo is None else made.op("maximum", x, lo)
    return x if hi is None else made.op("minimum", x, hi)


def _cast(made: Instructions, x: Lane, *, dtype: Any) -> Any:
    """Numbers of another dtype are converted as they are read; here truth values become numbers, or the reverse."""
    if x.dtype == dtype:
        return x
    if dtype == BOOL:
        return made.instruction("not_equal", Lane(made, x.at, made.dtype, x.form), 0.0)
    if dtype != made.dtype or not (x.dtype == BOOL or x.at[0] == "in"):
        raise Unserved("cast")
    return Lane(made, x.at, dtype, x.form)


def _bits(name: str) -> Any:
    def rule(made: Instructions, *operands: Any) -> Any:
        if not all(map(_is_truth, operands)):
            raise Unserved(name)
        return made.instruction(name, *operands)
    return rule


def _reduction(name: str) -> Any:
    def rule(made: Instructions, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return made.of_many(name, x, axis, keepdims)
    return rule


def _variance(made: Instructions, x: Any, *, axis: Any = None, correction: float = 1, keepdims: bool = False) -> Any:
    if made.count - correction <= 0:
        raise Unserved("variance")
    away = x - made.of_many("mean", x, axis, True)
    return made.of_many("sum", away * away, axis, keepdims) / (made.count - correction)


def _truths(extreme: str) -> Any:
    """any, the greatest of truth values as numbers; all, the least"""
    def rule(made: Instructions, x: Lane, *, axis: Any = None, keepdims: bool = False) -> Any:
        truth = x if x.dtype == BOOL else x != 0
        return made.of_many(extreme, Lane(made, truth.at, made.dtype, truth.form), axis, keepdims) != 0
    return rule


def _log_sum_exp(made: Instructions, x: Any, *, axis: Any, keepdims: bool = False) -> Any:
    top = made.of_many("amax", x, axis, True)
    top = made.op("where", made.op("isfinite", top), top, 0.0)
    found = made.op("log", made.of_many("sum", made.op("exp", x - top), axis, True)) + top
    return found if keepdims else Lane(made, found.at, found.dtype, DROPPED)


def _vector_norm(made: Instructions, x: Any, *, ord: float = 2, axis: Any = None, keepdims: bool = False) -> Any:
    size = x if ord == 2 else made.op("absolute", x)
    return norm(made, size, ord, axis, keepdims)  # type: ignore[no-untyped-call]


def _log_add_exp(made: Instructions, a: Any, b: Any) -> Any:
    """max + log1p(exp(−|a − b|)), where infinities of one sign are no distance apart."""
    apart = made.op("absolute", made.op("subtract", a, b))
    apart = made.op("where", apart == apart, -apart, float("-inf"))
    return made.op("maximum", a, b) + made.op("log1p", made.op("exp", apart))


def _nan_to_num(made: Instructions, x: Lane, *, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    most = float(np.finfo(made.dtype).max)
    found = made.op("where", made.op("isnan", x), nan, x)
    for infinite, other in ((float("inf"), most if posinf is None else posinf),
                            (float("-inf"), -most if neginf is None else neginf)):
        found = made.op("where", x == infinite, other, found)
    return found


def _round(made: Instructions, x: Any, *, decimals: int = 0) -> Any:
    if decimals:
        raise Unserved("round")
    return made.instruction("round", x)


REDUCTIONS = frozenset("sum mean variance amax max amin min any all logsumexp vector_norm".split())
IN_TWO = frozenset(["variance", "logsumexp"])       # reductions whose rows are passed twice
RULES: dict[str, Any] = {
    "power": _power, "clamp": _clamp, "cast": _cast, "round": _round,
    "sum": _reduction("sum"), "mean": _reduction("mean"), "variance": _variance,
    "amax": _reduction("amax"), "max": _reduction("amax"), "amin": _reduction("amin"), "min": _reduction("amin"),
    "any": _truths("amax"), "all": _truths("amin"), "logsumexp": _log_sum_exp, "vector_norm": _vector_norm,
    "logaddexp": _log_add_exp, "nan_to_num": _nan_to_num, "clone": lambda made, x: x, "conj": lambda made, x: x,
    "signbit": lambda made, x: made.op("less", made.op("copysign", 1.0, x), 0.0),
    "deg2rad": lambda made, x: x * (pi / 180), "rad2deg": lambda made, x: x * (180 / pi),
    "greater": lambda made, a, b: made.op("less", b, a),
    "greater_equal": lambda made, a, b: made.op("less_equal", b, a),
    "rsub": lambda made, a, b: made.op("subtract", b, a),
    "sgn": lambda made, x: made.op("sign", x),
    "masked_fill": lambda made, x, value, mask: made.op("where", mask, value, x),
    "bitwise_and": _bits("logical_and"), "bitwise_or": _bits("logical_or"), "bitwise_xor": _bits("logical_xor"),
    "bitwise_not": _bits("logical_not"),
    "hardtanh": lambda made, x, *, low, high: made.instruction("hardtanh", x, low, high),
    "leaky_relu": lambda made, x, *, slope: made.instruction("leaky_relu", x, slope),
    "elu": lambda made, x, *, alpha, scale=1.0: made.instruction("elu", x, alpha * scale, scale, 1.0),
    "celu": lambda made, x, *, alpha: made.instruction("elu", x, alpha, 1.0, 1 / alpha),
    "softplus": lambda made, x, *, beta, threshold: made.instruction("softplus", x, beta, threshold, 1 / beta),
}


def instructions(loop: Loop, dtype: Any, operands: list[Any], forms: list[int] | None = None, **rows: int,
                 ) -> tuple[Instructions, list[Lane]]:
    """Return the instructions of a loop that computes in `dtype`, and its results, for operands of these dtypes.

    `rows` are the parameters of `Instructions`. Unserved if a step has no instructions.
    """
    made = Instructions(dtype, **rows)
    forms = forms or [FULL] * len(operands)
    values: list[Any] = [Lane(made, ("in", k), np.dtype(d), form)
                         for k, (d, form) in enumerate(zip(operands, forms, strict=True))]
    for step in loop.steps:
        given = [values[a.value] if isinstance(a, At) else a for a in step.operands]
        _check(step.opname, given, made)
        try:
            found = made.op(step.opname, *given, **dict(step.params))
        except ZeroDivisionError as error:
            raise Unserved(step.opname) from error
        if not isinstance(found, Lane):
            found = made.instruction("copy", found)
        values.append(found)
    results = [values[k] for k in loop.results]
    if any(x.dtype not in (made.dtype, BOOL) for x in results):
        raise Unserved("a result of another dtype")
    return made, [x if x.at[0] == "at" else made.instruction("copy", x) for x in results]


def served(opname: str, operands: list[Any], params: dict[str, Any], result: Any) -> bool:
    """Return True if a loop can compute an op for operands of these dtypes, and numbers, with a result of that dtype.

    Without the compiled module, NumPy computes the loop, step by step: it has all ops.
    """
    dtypes = [a for a in operands if isinstance(a, np.dtype)]
    dtype = next((d for d in (*dtypes, result) if d.char in "fd"), np.dtype(np.float32))
    if result not in (dtype, BOOL) or not all(map(kind_of, dtypes)):
        return False
    if not kinds():
        return True
    if opname in REDUCTIONS:
        return dtypes == [dtype] and result == dtype or opname in ("any", "all")
    numbers = iter(range(len(dtypes)))
    step = Step(opname, tuple(At(next(numbers)) if isinstance(a, np.dtype) else a for a in operands),
                tuple(params.items()))
    try:
        _, found = instructions(Loop(len(dtypes), (step,), (len(dtypes),)), dtype, dtypes)
    except Unserved:
        return False
    return found[0].dtype == result  # type: ignore[no-any-return]


def _check(opname: str, given: list[Any], made: Instructions) -> None:
    """Raise Unserved for operands of other dtypes, but where they are converted."""
    for a in given:
        if isinstance(a, Lane) and a.dtype not in (made.dtype, BOOL) and opname != "cast":
            raise Unserved(opname)
