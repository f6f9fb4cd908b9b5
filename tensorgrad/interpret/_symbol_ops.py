"""The ops of the table on symbols. Most run from their definitions, which are made of functions that know about shapes; here is what would be slow
that way, such as loops over time, and what would look at values."""
from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..storage.base import NoValues
from ..storage.cpu import NumpyStorage
from ._batched_ops import runner
from ._symbol import Symbol, laid
from ._symbol_functions import kind_of, of_matrices, shape_of, together

SAME = set("recurrence logcumsumexp standard_gamma standard_gamma_grad dirichlet_grad tril triu contiguous".split())      # as the first input
MATRICES = {"lu_factor": ("(m,n)->(m,n),(k),()", "xii"), "ldl_factor": ("(n,n)->(n,n),(n),()", "xii"), "matrix_exponential": ("(n,n)->(n,n)", "x"),
            "cholesky_factor": ("(n,n)->(n,n),()", "xi"), "cofactors": ("(n,n)->(n,n)", "x"), "solve_triangular": ("(n,n),(n,p)->(n,p)", "x")}


def rule_of(op: Any) -> Any:
    """The kernel of an op on symbols, from what its record says; None: its definition."""
    name = op.opname
    if op.infer is not None:
        return partial(inferred, op)
    if name in RULES:
        return RULES[name]
    if op.elementwise:
        return partial(elementwise, op)
    if name in SAME:
        return lambda x, *args, **params: Symbol(x.shape, x.dtype)
    if name in MATRICES:
        return lambda *args, **params: of_matrices(*MATRICES[name], *args)
    if op.by_values:
        return partial(refused, op.by_values)
    return partial(AROUND[name], op) if name in AROUND else None


def inferred(op: Any, *args: Any, **params: Any) -> Any:
    """New symbols, as the record's `infer` says."""
    found = op.infer(*args, **params)
    return tuple(Symbol(*one) for one in found) if op.several else Symbol(*found)


def refused(what: str, *args: Any, **params: Any) -> Any:
    raise NoValues(f"{what.strip('_').rstrip('2')}()")


@lru_cache(4096)
def dtype_of(op: Any, kinds: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
    """The dtype of a result: that which NumPy gives for a single element."""
    ones = [None if k is None else np.ones(1, k) if isinstance(k, np.dtype) else k(1) for k in kinds]
    return runner(op, NumpyStorage)(*ones, **dict(params)).dtype


def elementwise(op: Any, *args: Any, **params: Any) -> Any:
    """Ops on each element."""
    arrays = [a for a in args if hasattr(a, "shape")]
    dtype = dtype_of(op, tuple(None if a is None else bool if a is True or a is False else kind_of(a) for a in args), tuple(params.items()))
    return laid(together(*map(shape_of, arrays)), dtype, *arrays)


def layer(op: Any, x: Any, *rest: Any, sizes: Any = None, **params: Any) -> Any:
    """A recurrent layer: the first step shows what all of them give."""
    first = x[:1] if sizes is None else x[:sizes[0]]
    y, *states = op.forward(Symbol.space, first, *rest, sizes=None if sizes is None else sizes[:1], **params)
    return Symbol((*x.shape[:-1], y.shape[-1]), y.dtype), *states


def attention(op: Any, query: Any, key: Any, value: Any, mask: Any, **params: Any) -> Any:
    """The heads of a token lie side by side, as in the kernels."""
    out = op.forward(Symbol.space, query, key, value, mask, **params)
    if query.ndim == 4 and query.dtype.itemsize > 2 and query.shape[:2] == key.shape[:2] == value.shape[:2] and query.size and key.size and value.size:
        return out.swapaxes(1, 2).copy().swapaxes(1, 2)
    return out


# ── windows ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fit(what: str, *pairs: tuple[int, int]) -> None:
    if any(n != m for n, m in pairs):
        raise ValueError(f"{what}: sizes do not fit: {', '.join(f'{n} and {m}' for n, m in pairs if n != m)}")


def lengths(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...]:
    """How many windows there are along each dimension."""
    return tuple((d + 2 * p - e * (k - 1) - 1) // s + 1 for d, k, s, p, e in zip(size, kernel, stride, padding, dilation, strict=True))


def convolution(x: Any, w: Any, b: Any, *, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    fit("convolution", (x.shape[1], w.shape[1] * groups))
    return Symbol((x.shape[0], w.shape[0], *lengths(x.shape[2:], w.shape[2:], stride, padding, dilation)), x.dtype)


def convolution_input(y: Any, w: Any, b: Any, *, size: Any, groups: int = 1, **params: Any) -> Any:
    fit("convolution", (y.shape[1], w.shape[0]))
    return Symbol((y.shape[0], w.shape[1] * groups, *size), y.dtype)


def convolution_weight(y: Any, x: Any, *, size: Any, groups: int = 1, **params: Any) -> Any:
    return Symbol((y.shape[1], x.shape[1] // groups, *size), y.dtype)


def columns(x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    return Symbol((*x.shape[:2], *kernel, *lengths(x.shape[2:], kernel, stride, padding, dilation)), x.dtype)


def columns_added(x: Any, *, size: Any, **params: Any) -> Any:
    return Symbol((*x.shape[:2], *size), x.dtype)


def window_sum(x: Any, *, kernel: Any, stride: Any, widths: Any, scale: Any = 1) -> Any:
    return Symbol(windowed(x, kernel, stride, widths, (1,) * len(kernel)), np.result_type(x.dtype, scale))


def window_spread(x: Any, *, size: Any, scale: Any = 1, **params: Any) -> Any:
    return Symbol((*x.shape[:x.ndim - len(size)], *size), np.result_type(x.dtype, scale))


def window_max(x: Any, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    shape = windowed(x, kernel, stride, widths, dilation)
    return Symbol(shape, x.dtype), Symbol(shape, np.int64)


def windowed(x: Any, kernel: Any, stride: Any, widths: Any, dilation: Any) -> tuple[int, ...]:
    ndim = len(kernel)
    return (*x.shape[:-ndim], *((d + a + b - e * (k - 1) - 1) // s + 1
                                for d, k, s, (a, b), e in zip(x.shape[-ndim:], kernel, stride, widths, dilation, strict=True)))


# ── others ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def cast(x: Any, *, dtype: Any) -> Any:
    return laid(x.shape, dtype, x)


def running_extreme(x: Any, *, axis: int) -> Any:
    return Symbol(x.shape, x.dtype), Symbol(x.shape, np.int64)


def histogram(x: Any, *, bins: int, **params: Any) -> Any:
    return Symbol((bins,), np.int64)


def ctc_loss(x: Any, labels: Any, steps: Any, counts: Any, **params: Any) -> Any:
    return Symbol((x.shape[1],), x.dtype)


def ctc_posterior(x: Any, labels: Any, steps: Any, counts: Any, **params: Any) -> Any:
    return Symbol(x.shape, x.dtype), Symbol((x.shape[1],), x.dtype)


def ldl_solve(ld: Any, pivots: Any, b: Any, **params: Any) -> Any:
    return of_matrices("(n,n),(n,p)->(n,p)", "x", ld, b)


def solve_linear(a: Any, b: Any) -> Any:
    return of_matrices("(n,n),(n,p)->(n,p)", "x", a, b), of_matrices("(n,n)->()", "i", a)


def pivot_order(pivots: Any, *, rows: int, back: bool = False) -> Any:
    return Symbol((*pivots.shape[:-1], rows), np.int64)


def truth(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return Symbol.module.any(x, axis=axis, keepdims=keepdims)


AROUND: dict[str, Any] = {"rnn_layer": layer, "lstm_layer": layer, "gru_layer": layer, "attention": attention}      # rules that run the definition
RULES: dict[str, Any] = {
    "convolution": convolution, "convolution_input": convolution_input, "convolution_weight": convolution_weight, "columns": columns,
    "columns_added": columns_added, "window_sum": window_sum, "window_spread": window_spread, "window_max": window_max,
    "max_pool": lambda x, **params: window_max(x, **params)[0], "cast": cast, "cummax": running_extreme, "cummin": running_extreme, "histc": histogram,
    "ctc_loss": ctc_loss, "ctc_posterior": ctc_posterior, "ldl_solve": ldl_solve, "solve_linear": solve_linear, "pivot_order": pivot_order,
    "any": truth, "all": truth,
}
