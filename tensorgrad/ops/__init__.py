"""The op table: pure formulas, one file a family."""
from importlib import import_module as _import_module
from typing import Any as _Any

from .base import OPS, Composite, Elementwise, Floating, Op, Pair

FAMILIES = ("elementwise", "transcendental", "special", "polynomials", "comparison", "shape", "indexing", "embedding",
            "sparse", "views", "reduction", "cumulative", "sorting", "matrix", "linear", "linalg", "factorizations",
            "fourier", "convolution", "pooling", "activation", "attention", "normalization", "loss", "ctc",
            "resampling", "reparameterization", "recurrent")
for _family in FAMILIES:
    _import_module(f"{__name__}.{_family}")

__all__ = ["FAMILIES", "OPS", "Composite", "Elementwise", "Floating", "Op", "Pair"]


def __getattr__(name: str) -> _Any:
    """Return a namespace of operators by PyTorch's names, such as `aten`, which a module far above has."""
    if not name.startswith("_"):
        by_name = _import_module(f"{__name__.partition('.')[0]}._ops")
        if name in ("aten", "higher_order", "prim", "prims") or any(each.startswith(f"{name}::")
                                                                    for each in by_name.OPERATORS):
            return getattr(by_name.ops, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
