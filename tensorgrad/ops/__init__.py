"""The op table: pure formulas, one file a family."""
from importlib import import_module as _import_module

from .base import OPS, Composite, Elementwise, Floating, Op, Pair

FAMILIES = ("elementwise", "transcendental", "comparison", "shape", "indexing", "views", "reduction", "cumulative", "sorting", "matrix", "convolution", "pooling", "activation", "normalization", "loss", "recurrent")
for _family in FAMILIES:
    _import_module(f"{__name__}.{_family}")

__all__ = ["FAMILIES", "OPS", "Composite", "Elementwise", "Floating", "Op", "Pair"]
