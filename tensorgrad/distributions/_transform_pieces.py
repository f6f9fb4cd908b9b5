"""Transforms of separate parts of a tensor."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from ._transform import Transform
from .utils import lazy_property, sum_rightmost

if TYPE_CHECKING:
    from .._tensor import Tensor


class _Pieces(Transform):
    """Base of CatTransform and StackTransform."""

    def __init__(self, tseq: Any, dim: Any, cache_size: Any) -> None:
        constraints.require(all(isinstance(t, Transform) for t in tseq),
                            "All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> Any:
        return all(t.bijective for t in self.transforms)

    def _check_dim(self, z, name, length, what, subject="tensor"):
        constraints.require(-z.dim() <= self.dim < z.dim(),
                            f"dim {self.dim} out of range for {subject} with {z.dim()} dimensions")
        constraints.require(z.size(self.dim) == length,
                            f"{name}.size({self.dim}) = {z.size(self.dim)} must equal {what} {length}")

    def _call(self, x):
        return self._join([t(z) for t, z in zip(self.transforms, self._split(x, "x"), strict=True)])

    def _inverse(self, y):
        return self._join([t.inv(z) for t, z in zip(self.transforms, self._split(y, "y"), strict=True)])

    def _log_dets(self, x, y):
        parts = self._split(x, "x", "x"), self._split(y, "y", "y")
        return [t.log_abs_det_jacobian(a, b) for t, a, b in zip(self.transforms, *parts, strict=True)]


class CatTransform(_Pieces):
    """Transforms of consecutive pieces, of the lengths given (1 each), along a dimension."""

    _arguments = ("transforms", "dim", "lengths")

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None,
                 cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        constraints.require(len(self.lengths) == len(self.transforms),
                            f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        return sum(self.lengths)

    def _split(self, z, name, subject="tensor"):
        self._check_dim(z, name, self.length, "length", subject)
        return z.split(self.lengths, self.dim)

    def _join(self, parts):
        return tg.cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = [sum_rightmost(term, max(self.event_dim - t.event_dim, 0))
                 for t, term in zip(self.transforms, self._log_dets(x, y), strict=True)]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return tg.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Pieces):
    """Transforms of the slices along a dimension."""

    _arguments = ("transforms", "dim")

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _split(self, z, name, subject="tensor"):
        self._check_dim(z, name, len(self.transforms), "len(transforms)", subject)
        return z.unbind(self.dim)

    def _join(self, parts):
        return tg.stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self._join(self._log_dets(x, y))

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
