"""Check of a collective's results against a plain sum, in the tensors' own precision and in float64."""
from __future__ import annotations

from functools import reduce
from typing import Any

from ...api.joining import cat

OPS = {"sum": "add", "product": "multiply", "min": "minimum", "max": "maximum"}
NAMES = {"sum": "sum", "product": "product", "min": "minimum", "max": "maximum"}


def check(kind: str, tensors: list[Any], results: list[Any], op: str, root: int) -> list[tuple[str, bool]]:
    """Sentences on the results, and whether each says something good."""
    if kind in ("all_gather", "broadcast"):
        expected = (tensors[root] if kind == "broadcast"
                    else cat([t.reshape(-1) for t in tensors]).reshape(results[0].shape))
        return [told(all(same(r, expected) for r in results), "All ranks hold the same bits, those that were sent.",
                     "The ranks do not hold what was sent.")]
    flat = [tensor.reshape(-1) for tensor in tensors]
    found = cat(results) if kind == "reduce_scatter" else results[root].reshape(-1)
    sentences = []
    if kind == "all_reduce":
        sentences.append(told(all(same(r, results[0]) for r in results), "All ranks hold the same bits.",
                              "The ranks hold different bits."))
    return sentences + accuracy(flat, found, op)


def accuracy(tensors: list[Any], found: Any, op: str) -> list[tuple[str, bool]]:
    """How far a reduction is from that in float64, and from that in the order of the ranks."""
    in_order, what = folded(tensors, op), NAMES[op]
    if not found.is_floating_point():
        return [told(same(found, in_order), f"They are the {what}.", f"They are not the {what}.")]
    exact = folded([tensor.double() for tensor in tensors], op)
    if same(found.double(), exact):
        return [(f"They are the {what}: float64 gives the same.", True)]
    scale = folded([tensor.double().abs() for tensor in tensors], op if op == "product" else "sum")
    error = ((found.double() - exact).abs() / scale.clamp(min=1e-300)).nan_to_num(0.0).max().item()
    bits = "Their bits are those" if same(found, in_order) else "Their bits are not those"
    return [(f"They are the {what} up to rounding: the largest error is {error:.1e} of the sum of magnitudes.".replace(
        "e-", "e−"), error < 1e-2),
            (f"{bits} of adding in the order of the ranks.", True)]


def folded(tensors: list[Any], op: str) -> Any:
    return reduce(lambda a, b: getattr(a, OPS[op])(b), tensors)


def same(a: Any, b: Any) -> bool:
    """True for equal values of one dtype, NaN included."""
    return bool(((a == b) | ((a != a) & (b != b))).all())


def told(holds: bool, good: str, bad: str) -> tuple[str, bool]:
    return (good if holds else bad, holds)


__all__ = ["check"]
