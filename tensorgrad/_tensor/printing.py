"""The text of repr(tensor): numbers to words, words to nested brackets, and the notes behind them.

Everything here works on NumPy arrays and strings. A tensor elsewhere hands over `shown(array)`, brought to the host.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import compress, islice
from math import floor, inf, prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..runtime.small_floats import widen

# ── options ────────────────────────────────────────────────────────────────────────────────────
options = SimpleNamespace(precision=4, threshold=1000, edgeitems=3, linewidth=80, sci_mode=None)

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print: the digits, the number of elements from which on to summarise, and the width of lines.

    `profile` ("default", "short" or "full") is applied first. `sci_mode=None` chooses scientific notation by the
    values; every call without `sci_mode` resets it to None. PyTorch: torch.set_printoptions.

    >>> import tensorgrad as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1.12345])
    tensor([1.12])
    >>> torch.set_printoptions(profile="default")
    """
    chosen = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    given = {name: value for name, value in chosen.items() if value is not None}
    for name, value in {**_PROFILES.get(profile or "", {}), **given, "sci_mode": sci_mode}.items():
        setattr(options, name, value)


def get_printoptions() -> dict[str, Any]:
    """The current print options, as keyword arguments of `set_printoptions`.

    PyTorch: torch._tensor_str.get_printoptions.
    """
    return dict(vars(options))


@contextmanager
def printoptions(**changes: Any) -> Iterator[None]:
    """Change print options inside a `with` block; takes the arguments of `set_printoptions`.

    PyTorch: torch._tensor_str.printoptions.
    """
    before = get_printoptions()
    set_printoptions(**changes)
    try:
        yield
    finally:
        set_printoptions(**before)


# ── the repr ───────────────────────────────────────────────────────────────────────────────────
def tensor_repr(
    array: np.ndarray | None,
    *,
    dtype_name: str,
    shape: tuple[int, ...] | None = None,
    device_text: str | None = None,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    prefix: str = "tensor",
    default_dtype_name: str = "float32",
    notes: Iterable[str] = (),
    contents: Any = None,
) -> str:
    """repr(tensor), as PyTorch writes it.

    contents: a text in place of the values, as subclasses give it.
    array: the values, or `shown(values)` with the full `shape` beside it; None (a tensor without data) prints "...".
    dtype_name, default_dtype_name: "float32" and so on; bfloat16 values may come as a float32 array.
    device_text: "cuda:0" where the device is worth a word, else None.
    notes: more text behind everything else, such as "tangent=...".
    """
    size = tuple(array.shape) if shape is None and array is not None else tuple(shape or ())
    indent = len(prefix) + 1
    suffixes = [f"device='{device_text}'"] if device_text else []
    inferred = {default_dtype_name}
    if contents is not None:
        body = str(contents)
        inferred |= {_complex_of(default_dtype_name), "int64", "bool"}
    elif array is None:
        body = "..."
        suffixes.append(f"size={size}")
    elif 0 in size:
        body = "[]"
        suffixes += [f"size={size}"] if len(size) != 1 else []
    else:
        body = _values(array, size, indent)
        suffixes += [f"size={size}"] if not options.edgeitems else []
        inferred |= {_complex_of(default_dtype_name), "int64", "bool"}
    if dtype_name not in inferred:
        suffixes.append(f"dtype=torch.{dtype_name}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    return _with_suffixes(f"{prefix}({body}", [*suffixes, *notes], indent)


def shown(array: Any) -> Any:
    """The part of an array (NumPy's or CuPy's) that its repr shows: of a large one, the edges of each long axis.

    >>> shown(np.arange(2000).reshape(2, 1000))
    array([[   0,    1,    2,  997,  998,  999],
           [1000, 1001, 1002, 1997, 1998, 1999]])
    """
    if array.ndim == 0 or array.size <= options.threshold:
        return array
    edge = options.edgeitems
    axes = [[*range(edge), *range(n - edge, n)] if n > 2 * edge else range(n) for n in array.shape]
    return array[np.ix_(*(np.array(axis, dtype=np.intp) for axis in axes))]


def _complex_of(default_dtype_name: str) -> str:
    return "complex128" if default_dtype_name == "float64" else "complex64"


def _with_suffixes(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """Return `text, suffix, suffix)`; a suffix that does not fit starts a new line, and the first with `new_line`."""
    column = len(text) - text.rfind("\n") + 1
    for place, suffix in enumerate(suffixes):
        column += len(suffix) + 2
        if column > options.linewidth or new_line and not place:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
    return text + ")"


# ── words in brackets ──────────────────────────────────────────────────────────────────────────
def _values(array: np.ndarray, shape: tuple[int, ...], indent: int) -> str:
    words, width = _words(shown(array))
    if not shape:
        return words[0]
    return _brackets(iter(words), shape, indent, width + 2, prod(shape) > options.threshold)


def _brackets(words: Iterator[str], shape: tuple[int, ...], indent: int, stride: int, summarize: bool) -> str:
    """The next words as nested lists; `stride` is how many columns a word and its comma take."""
    edge, (length, *inner) = options.edgeitems, shape
    cut = summarize and length > 2 * edge
    count = 2 * edge if cut else length
    comma = "," + "\n" * max(1, len(inner)) + " " * (indent + 1)
    if inner:
        rows = [_brackets(words, tuple(inner), indent + 1, stride, summarize) for _ in range(count)]
        if cut:
            rows.insert(edge, "...")
        return f"[{comma.join(rows)}]"
    row = list(islice(words, count))
    if cut:
        row.insert(edge, " ..." if edge else "...")
    per_line = max(1, floor((options.linewidth - indent) / stride))
    lines = [", ".join(row[i : i + per_line]) for i in range(0, len(row), per_line)]
    return f"[{comma.join(lines)}]"


# ── numbers to words ───────────────────────────────────────────────────────────────────────────
def _words(array: np.ndarray) -> tuple[list[str], int]:
    """Every number of an array as a word, and the width that they were padded to."""
    if array.dtype.kind == "V":         # bfloat16, float8, complex32: every value is a float32, or a complex64
        array = widen(array)
    if array.dtype.kind == "c":
        return _complex_words(array)
    words, width = _float_words(array) if array.dtype.kind == "f" else _exact_words(array)
    return [word.rjust(width) for word in words], width


def _exact_words(array: np.ndarray) -> tuple[list[str], int]:
    words = list(map(str, array.ravel().tolist()))
    return words, max(map(len, words), default=1)


def _complex_words(array: np.ndarray) -> tuple[list[str], int]:
    """Real parts are padded, imaginary parts follow at once: columns of complex numbers may be ragged."""
    reals, real_width = _words(array.real)
    imags, imag_width = _float_words(array.imag)
    words = [re + (im if im[0] in "+-" else "+" + im) + "j" for re, im in zip(reals, imags)]
    return words, real_width + imag_width + 1


def _float_words(array: np.ndarray) -> tuple[list[str], int]:
    """Floats, all in one notation; zeros and non-finite numbers take part in neither its choice nor the width."""
    flat = array.ravel()
    ordinary = np.isfinite(flat) & (flat != 0)
    template = _notation(flat[ordinary])
    text = "\n".join([template] * flat.size) % tuple(flat.tolist())
    if template.endswith("."):
        text = text.replace("nan.", "nan").replace("inf.", "inf")
    words = text.split("\n") if text else []
    return words, max(map(len, compress(words, ordinary.tolist())), default=1)


def _notation(values: np.ndarray) -> str:
    """The format of all floats of a tensor, chosen by the finite ones that are not zero."""
    if values.size == 0:
        return "%.0f."
    whole = bool((values == np.ceil(values)).all())
    scientific = options.sci_mode
    if scientific is None:
        sizes = np.abs(values)
        largest, smallest = float(sizes.max()), float(sizes.min())
        scientific = largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4
    if scientific:
        return f"%.{options.precision}e"
    return "%.0f." if whole else f"%.{options.precision}f"
