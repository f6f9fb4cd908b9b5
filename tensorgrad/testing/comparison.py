"""assert_close: compare tensors, numbers, and containers of them within tolerances."""
from __future__ import annotations

import cmath
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import api as tg
from ..api import Tensor

TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
              "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}
OLDER_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}
NUMBERS = (bool, int, float, complex, np.number, np.bool_)


class _Rules:
    """The tolerances and the properties to compare. ValueError unless both rtol and atol are given, or neither."""

    def __init__(self, rtol: Any, atol: Any, **checks: bool) -> None:
        if (rtol is None) != (atol is None):
            given, missing = ("atol", "rtol") if rtol is None else ("rtol", "atol")
            raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
        self.rtol, self.atol = rtol, atol
        self.allow_subclasses, self.equal_nan, self.device, self.dtype, self.layout, self.stride = checks.values()

    def tolerances(self, *dtypes: str) -> tuple[float, float]:
        """Return (rtol, atol): as given, or the widest of the dtypes' defaults."""
        if self.rtol is not None:
            return self.rtol, self.atol
        both = [TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(r for r, _ in both), max(a for _, a in both)


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
                 check_dtype: bool = True, check_layout: bool = True,
                 check_stride: bool = False,
                 msg: str | Callable[[str], str] | None = None) -> None:
    """Raise AssertionError, with the greatest difference, unless |actual − expected| ≤ atol + rtol · |expected| and
    shapes and dtypes agree.

    https://pytorch.org/docs → torch.testing.assert_close
    """
    __tracebackhide__ = True
    rules = _Rules(rtol, atol, allow_subclasses=allow_subclasses, equal_nan=equal_nan, device=check_device,
                   dtype=check_dtype, layout=check_layout,
                   stride=check_stride)
    found = _difference(actual, expected, rules, ())
    if found is not None:
        message, path = found
        if path:
            message += f"\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in path)}"
        raise AssertionError(message if msg is None else msg(message) if callable(msg) else msg)


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
                    equal_nan: bool = True, msg: str = "") -> None:
    """Like `assert_close`, but numbers and arrays become tensors, and dtypes and devices may differ.
    https://pytorch.org/docs → torch.testing.assert_allclose
    """
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
                  "Please use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
                  "https://github.com/pytorch/pytorch/issues/61844.", FutureWarning, stacklevel=2)
    actual = actual if isinstance(actual, Tensor) else tg.tensor(actual)
    expected = expected if isinstance(expected, Tensor) else tg.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = (max(pair)
                      for pair in zip(*(OLDER_TOLERANCES.get(t.dtype.name, (0.0, 0.0)) for t in (actual, expected)),
                                      strict=True))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False,
                 msg=msg or None)


def _difference(actual: Any, expected: Any, rules: _Rules, path: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]] | None:
    """Return (description of the difference, path), or None."""
    if _both(actual, expected, Sequence) and not _any(actual, expected, str):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path
        return _first(_difference(a, e, rules, (*path, i))
                      for i, (a, e) in enumerate(zip(actual, expected, strict=True)))
    if _both(actual, expected, Mapping):
        if actual.keys() != expected.keys():
            return ("The keys of the mappings do not match:\n"
                    f"Missing keys in the actual mapping: {sorted(expected.keys() - actual.keys(), key=str)}\n"
                    f"Additional keys in the actual mapping: {sorted(actual.keys() - expected.keys(), key=str)}"), path
        return _first(_difference(actual[key], expected[key], rules, (*path, key)) for key in actual)
    message = _of_leaves(actual, expected, rules)
    return None if message is None else (message, path)


def _both(a: Any, b: Any, kind: Any) -> bool:
    return isinstance(a, kind) and isinstance(b, kind)


def _any(a: Any, b: Any, kind: Any) -> bool:
    return isinstance(a, kind) or isinstance(b, kind)


def _first(found: Any) -> Any:
    return next((difference for difference in found if difference is not None), None)


def _of_leaves(actual: Any, expected: Any, rules: _Rules) -> str | None:
    if _any(actual, expected, type(None)):
        return None if actual is expected else f"None mismatch: {actual} is not {expected}"
    if _both(actual, expected, (bool, np.bool_)):
        return None if bool(actual) is bool(expected) else f"Booleans mismatch: {bool(actual)} is not {bool(expected)}"
    if _both(actual, expected, NUMBERS):
        return _of_numbers(actual, expected, rules)
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if (related and (rules.allow_subclasses or type(actual) is type(expected))
            and _both(actual, expected, (Tensor, np.ndarray))):
        return _of_tensors(*(tg.as_tensor(value).detach() for value in (actual, expected)), rules)
    raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")


def _of_numbers(actual: Any, expected: Any, rules: _Rules) -> str | None:
    actual, expected = (value.item() if isinstance(value, np.generic) else value for value in (actual, expected))
    if rules.dtype and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    names = {int: "int64", float: "float64", complex: "complex128", bool: "bool"}
    rtol, atol = rules.tolerances(names[type(actual)], names[type(expected)])
    if actual == expected or rules.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return None
    difference, tolerance = abs(actual - expected), atol + rtol * abs(expected)
    if cmath.isfinite(difference) and difference <= tolerance:
        return None
    return _scalars(actual, expected, difference, rtol, atol)


def _scalars(actual: Any, expected: Any, difference: Any, rtol: float, atol: float) -> str:
    exact = rtol == atol == 0
    relative = difference / abs(expected) if expected != 0 else float("inf")
    return (f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {difference}{'' if exact else f' (up to {atol} allowed)'}\n"
            f"Relative difference: {relative}{'' if exact else f' (up to {rtol} allowed)'}")


def _of_tensors(actual: Any, expected: Any, rules: _Rules) -> str | None:
    if (wrong := _attributes(actual, expected, rules)) is not None:
        name, one, other = wrong
        return f"The values for attribute '{name}' do not match: {one} != {other}."
    if actual.is_nested and actual.layout is tg.jagged:
        actual, expected = actual.values(), expected.values()
    if actual.layout is not tg.strided or expected.layout is not tg.strided:
        return _of_sparse(actual, expected, rules)
    rtol, atol = rules.tolerances(actual.dtype.name, expected.dtype.name)
    if actual.is_meta and expected.is_meta:
        return None     # meta tensors have no values
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype is not expected.dtype:
        common = tg.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(common), expected.to(common)
    return _of_values(actual, expected, rules, rtol, atol)


def _of_values(actual: Any, expected: Any, rules: _Rules, rtol: float, atol: float,
               name: str = "Tensor-likes") -> str | None:
    """Describe how the values of two tensors differ, or return None."""
    small = actual.dtype.is_floating_point and actual.dtype.itemsize == 1
    if small and (rtol or atol):
        return (f"Rtol={rtol} and atol={atol} are not supported for bitwise comparison of low dimensional floats. "
                "Please use rtol=0.0 and atol=0.0.")
    wrong_ones = ~tg.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=rules.equal_nan)
    count, total = int(wrong_ones.sum()), actual.numel()
    if not count:
        return None
    if not actual.ndim and not small:
        one, other = actual.item(), expected.item()
        return _scalars(one, other, abs(one - other), rtol, atol)
    exact = rtol == atol == 0
    head = [f"{name} are not {'equal' if exact else 'close'}!", "",
            f"Mismatched elements: {count} / {total} ({count / total:.1%})"]
    if small:       # their differences are no numbers of their dtype
        head[0] = f"{name} are not 'equal'!"
        return "\n".join([*head, f"The first mismatched element is at index {_greatest(wrong_ones.to(tg.uint8))[1]}."])
    if not actual.dtype.is_floating_point and not actual.dtype.is_complex:
        actual, expected = actual.to(tg.int64), expected.to(tg.int64)
    absolute = tg.where(wrong_ones, tg.abs(actual - expected), 0)
    relative = tg.where(wrong_ones, absolute / tg.abs(expected), 0)
    lines = [f"Greatest {name} difference: {value} at index {place}{'' if exact else f' (up to {allowed} allowed)'}"
             for name, (value, place), allowed in (("absolute", _greatest(absolute), atol),
                                                   ("relative", _greatest(relative), rtol))]
    return "\n".join([*head, *lines])


LAYOUTS = {tg.sparse_csr: ("CSR", "crow_indices", "col_indices"), tg.sparse_csc: ("CSC", "ccol_indices", "row_indices"),
           tg.sparse_bsr: ("BSR", "crow_indices", "col_indices"), tg.sparse_bsc: ("BSC", "ccol_indices", "row_indices"),
           tg.sparse_coo: ("COO", "_indices")}


def _of_sparse(actual: Any, expected: Any, rules: _Rules) -> str | None:
    """Describe how two sparse tensors differ: in the numbers of values, in their places, or in themselves."""
    if actual.layout is not expected.layout:
        return _of_tensors(actual.to_dense(), expected.to_dense(), rules)
    kind, *parts = LAYOUTS[actual.layout]
    if kind == "COO" and actual.sparse_dim() != expected.sparse_dim():
        return ("The number of sparse dimensions in sparse COO tensors does not match: "
                f"{actual.sparse_dim()} != {expected.sparse_dim()}")
    if kind == "COO" and actual.is_coalesced() is not expected.is_coalesced():
        actual, expected = actual.coalesce(), expected.coalesce()
    if actual._nnz() != expected._nnz():
        return (f"The number of specified values in sparse {kind} tensors does not match: {actual._nnz()} != "
                f"{expected._nnz()}")
    for part in parts:
        found = _of_values(*(getattr(t, part)() for t in (actual, expected)), rules, 0, 0,
                           f"Sparse {kind} {part.lstrip('_')}")
        if found is not None:
            return found
    values = [t._values() if kind == "COO" else t.values() for t in (actual, expected)]
    common = tg.promote_types(values[0].dtype, values[1].dtype)
    return _of_values(*(v.to(common) for v in values), rules,
                      *rules.tolerances(actual.dtype.name, expected.dtype.name), f"Sparse {kind} values")


def _greatest(values: Any) -> tuple[Any, tuple[int, ...]]:
    flat = int(values.argmax())
    return values.reshape(-1)[flat].item(), tuple(int(i) for i in np.unravel_index(flat, tuple(values.shape)))


def _attributes(actual: Any, expected: Any, rules: _Rules) -> tuple[str, Any, Any] | None:
    for name, wanted in (("shape", True), ("layout", rules.layout), ("stride()", rules.stride),
                         ("device", rules.device), ("dtype", rules.dtype)):
        if not wanted:
            continue
        one, other = (getattr(t, name.removesuffix("()")) for t in (actual, expected))
        if name.endswith("()"):
            one, other = one(), other()
        if one != other:
            return name, one, other
    return None
