"""The op table: pure formulas, one file a family."""
from importlib import import_module as _import_module

from .base import OPS, Composite, Elementwise, Floating, Op, Pair

FAMILIES = ("elementwise", "transcendental", "special", "polynomials", "comparison", "shape", "indexing", "embedding",
            "sparse", "views", "reduction", "cumulative", "sorting", "matrix", "linear", "linalg", "factorizations",
            "fourier", "convolution", "pooling", "activation", "attention", "normalization", "loss", "ctc",
            "resampling", "reparameterization", "recurrent")
for _family in FAMILIES:
    _import_module(f"{__name__}.{_family}")

__all__ = ["FAMILIES", "OPS", "Composite", "Elementwise", "Floating", "Op", "Pair"]
