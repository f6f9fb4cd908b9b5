"""Sums keep none of their terms on the tape. What a number or a target was that something was added to, result and other term still tell."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..core.tape import TensorBase
from .steps import op_of

# op → the missing first and the missing second term, of the result y and the other term t
TERMS = {"add": (lambda y, t: y - t, lambda y, t: y - t),
         "subtract": (lambda y, t: y + t, lambda y, t: t - y),
         "rsub": (lambda y, t: t - y, lambda y, t: y + t)}
SLACK = 8          # units in the last place


def recovered(node: Any, known: Mapping[Any, Any], tensors: Iterable[Any]) -> dict[int, Any]:
    """{position: the term of a sum that was not kept}: the only tensor among these that it can have been, or the simplest number.

    >>> import tensorgrad as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> y = x + 0.1
    >>> recovered(y.grad_fn, {y.grad_fn: y, y.grad_fn.edges[0]: x}, [])
    {1: 0.1}
    """
    op = op_of(node)
    terms = TERMS.get(op.opname) if op is not None else None
    if terms is None or sum(e is None for e in node.edges) != 1:
        return {}
    position = 0 if node.edges[0] is None else 1
    y, t = numbers(known.get(node)), numbers(known.get(node.edges[1 - position]))
    if y is None or t is None or not y.size:
        return {}
    term = terms[position](y, t)
    slack = SLACK * np.finfo(node.dtype).eps * max(np.abs(y).max(), np.abs(t).max(), 1e-30)
    fits = {id(c.array): c for c in tensors if isinstance(c, TensorBase) and fitting(term, numbers(c), slack)}
    if len(fits) == 1:
        return {position: next(iter(fits.values()))}
    simple = float(f"{term.mean():.3g}")
    return {position: simple} if np.abs(term - simple).max() <= slack else {}


def numbers(tensor: Any) -> Any:
    """A tensor's real numbers, if they are at hand, in double precision."""
    array = getattr(tensor, "array", None)
    return np.asarray(array, np.float64) if isinstance(array, (np.ndarray, np.generic)) and array.dtype.kind in "fiu" else None


def fitting(term: Any, candidate: Any, slack: float) -> bool:
    if candidate is None or len(candidate.shape) > len(term.shape):
        return False
    if any(n not in (1, m) for n, m in zip(candidate.shape[::-1], term.shape[::-1])):
        return False
    return bool(np.abs(term - candidate).max() <= slack)
