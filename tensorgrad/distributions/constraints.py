"""Constraints: the sets of valid parameters and values.
https://pytorch.org/docs/stable/distributions.html#module-torch.distributions.constraints

A constraint's `check(value)` is a tensor of bools, one for each element of the batch: `event_dim` dimensions of the
value are checked together. Constraints that depend on other parameters are marked `dependent`.

>>> import tensorgrad as torch
>>> torch.distributions.constraints.positive.check(torch.tensor([-1., 2.]))
tensor([False,  True])
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import api as tg
from .utils import same_as

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric",
    "unit_interval",
]


def require(true: Any, message: Any) -> None:
    if not true:
        raise AssertionError(message)


class Constraint:
    """A set of valid values, which `check` tests for."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Any:
        """Return a tensor of bools: True for each event of the value that is valid."""
        raise NotImplementedError(f"{self.__class__} does not implement check")

    def __repr__(self) -> str:
        return self.__class__.__name__[1:] + "()"


# ── regions that depend on other things ───────────────────────────────────────────────────────────────────────────────


class _Dependent(Constraint):
    """A constraint that depends on an instance; the class itself knows at most `is_discrete` and `event_dim`."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> Any:
        """Return a dependent constraint with these properties set."""
        return _Dependent(is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, x: Tensor) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> Any:
    """Return True if a constraint depends on an instance of its class.

    >>> import tensorgrad as torch
    >>> torch.distributions.constraints.is_dependent(torch.distributions.Uniform.support)
    True
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint; accessed on the class, it is a dependent constraint itself."""

    def __init__(self, fn: Callable[..., Any] | None = None, *, is_discrete: bool | None = NotImplemented,
                 event_dim: int | None = NotImplemented) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> Any:
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# ── regions made of others ────────────────────────────────────────────────────────────────────────────────────────────


class _IndependentConstraint(Constraint):
    """The base constraint, required of all elements of the last `reinterpreted_batch_ndims` dimensions."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: Any) -> None:
        require(isinstance(base_constraint, Constraint),
                f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        require(isinstance(reinterpreted_batch_ndims, int),
                f"reinterpreted_batch_ndims must be an int, got {type(reinterpreted_batch_ndims).__name__}")
        require(reinterpreted_batch_ndims >= 0, f"reinterpreted_batch_ndims must be >= 0, got "
                                                f"{reinterpreted_batch_ndims}")
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = same_as("base_constraint.is_discrete")

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Any:
        valid, n = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if valid.dim() < n:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return valid.reshape(valid.shape[:valid.dim() - n] + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: a value is valid if it is so for all components."""

    def __init__(self, base_constraint: Any) -> None:
        require(isinstance(base_constraint, Constraint),
                f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    is_discrete = same_as("base_constraint.is_discrete")
    event_dim = same_as("base_constraint.event_dim")

    def check(self, value: Tensor) -> Any:
        valid = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return valid.reshape(valid.shape[:value.dim() - self.event_dim] + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Sequence(Constraint):
    """Constraints on the parts of a tensor along a dimension."""

    def __init__(self, cseq: Any, dim: Any = 0) -> None:
        require(all(isinstance(c, Constraint) for c in cseq), "All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> Any:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> Any:
        return max(c.event_dim for c in self.cseq)

    def _check_dim(self, value):
        require(-value.dim() <= self.dim < value.dim(),
                f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_Sequence):
    """Pieces of a tensor, of the lengths given, each with its constraint."""

    def __init__(self, cseq: Any, dim: Any = 0, lengths: Any = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        require(len(self.lengths) == len(self.cseq),
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    def check(self, value: Tensor) -> Any:
        self._check_dim(value)
        ends = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        return tg.cat([c.check(value.narrow(self.dim, start, n))
                       for c, start, n in zip(self.cseq, ends, self.lengths, strict=True)], self.dim)


class _Stack(_Sequence):
    """Slices of a tensor along a dimension, each with its constraint."""

    @property
    def event_dim(self) -> int:
        dim = super().event_dim
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Any:
        self._check_dim(value)
        return tg.stack([c.check(value.select(self.dim, i))
                         for i, c in zip(range(value.size(self.dim)), self.cseq, strict=False)], self.dim)


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Real(Constraint):
    """Any number, but not nan."""

    def check(self, value: Tensor) -> Any:
        return value == value


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Constraints whose bounds are their attributes."""

    def __repr__(self) -> str:
        return f"{self.__class__.__name__[1:]}({', '.join(f'{name}={bound}' for name, bound in vars(self).items())})"


class _Above(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _GreaterThan(_Above):
    """x > lower_bound"""

    def check(self, value: Tensor) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """x ≥ lower_bound"""

    def check(self, value: Tensor) -> Any:
        return self.lower_bound <= value


class _LessThan(_Below):
    """x < upper_bound"""

    def check(self, value: Tensor) -> Any:
        return value < self.upper_bound


class _Interval(_Between):
    """lower_bound ≤ x ≤ upper_bound"""

    def check(self, value: Tensor) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """lower_bound ≤ x < upper_bound"""

    def check(self, value: Tensor) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Between):
    """Whole numbers from lower_bound to upper_bound"""

    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Below):
    """Whole numbers up to upper_bound"""

    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Whole numbers from lower_bound on"""

    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


# ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class _OneHot(Constraint):
    """Vectors of zeros with a single 1."""

    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Any:
        return boolean.check(value).all(-1) & value.sum(-1).eq(1)


class _Simplex(Constraint):
    """Numbers of at least 0 with the sum 1, to within 1e-6."""

    event_dim = 1

    def check(self, value: Tensor) -> Any:
        return tg.all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Numbers of at least 0 with a sum of at most upper_bound."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Any:
        return (x >= 0).all(dim=-1) & (x.sum(dim=-1) <= self.upper_bound)


# ── matrices ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _LowerTriangular(Constraint):
    """Zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Any:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangles with a positive diagonal."""

    def check(self, value: Tensor) -> Any:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: lower triangles with a positive diagonal and rows of length 1."""

    def check(self, value: Tensor) -> Any:
        tolerance = tg.finfo(value.dtype).eps * value.size(-1) * 10
        lengths = tg.linalg.norm(value.detach(), dim=-1)
        return super().check(value) & (lengths - 1).abs().le(tolerance).all(dim=-1)


class _Square(Constraint):
    """As many rows as columns."""

    event_dim = 2

    def check(self, value: Tensor) -> Any:
        return tg.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=tg.bool, device=value.device)


class _Symmetric(_Square):
    """A = Aᵀ, to within 1e-6."""

    def check(self, value: Tensor) -> Any:
        is_square = super().check(value)
        return tg.isclose(value, value.mT, atol=1e-6).all(-2).all(-1) if is_square.all() else is_square


class _PositiveSemidefinite(_Symmetric):
    """Symmetric, with no negative eigenvalue."""

    def check(self, value: Tensor) -> Any:
        is_symmetric = super().check(value)
        return tg.linalg.eigvalsh(value).ge(0).all(-1) if is_symmetric.all() else is_symmetric


class _PositiveDefinite(_Symmetric):
    """Symmetric, with a Cholesky factor."""

    def check(self, value: Tensor) -> Any:
        is_symmetric = super().check(value)
        return tg.linalg.cholesky_ex(value).info.eq(0) if is_symmetric.all() else is_symmetric


dependent, dependent_property, independent = _Dependent(), _DependentProperty, _IndependentConstraint
cat, stack = _Cat, _Stack
real, boolean = _Real(), _Boolean()
greater_than, greater_than_eq, less_than, interval, half_open_interval = (_GreaterThan, _GreaterThanEq, _LessThan,
                                                                          _Interval, _HalfOpenInterval)
positive, nonnegative, unit_interval = _GreaterThan(0.0), _GreaterThanEq(0.0), _Interval(0.0, 1.0)
integer_interval, nonnegative_integer, positive_integer = (_IntegerInterval, _IntegerGreaterThan(0),
                                                           _IntegerGreaterThan(1))
real_vector, one_hot, simplex, multinomial = independent(real, 1), _OneHot(), _Simplex(), _Multinomial
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric, positive_semidefinite, positive_definite = (_Square(), _Symmetric(), _PositiveSemidefinite(),
                                                               _PositiveDefinite())
