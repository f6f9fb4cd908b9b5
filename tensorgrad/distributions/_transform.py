"""The base of transforms, and transforms composed of others."""
from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from .utils import lazy_property, same_as, sum_rightmost

if TYPE_CHECKING:
    from .._tensor import Tensor
    from ..size import Size


class Transform:
    """An invertible function with the logarithm of its Jacobian's determinant. →
    torch.distributions.transforms.Transform

    A subclass defines `domain`, `codomain`, `bijective`, `_call`, `_inverse` and `log_abs_det_jacobian(x, y)`. With
    cache_size=1 the last pair (x, y) is cached: inverting the last result is then exact, and free.
    """

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint
    _arguments: tuple[str, ...] = ()      # the attributes to pass to __init__ for a copy

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv = None
        self._cached_x_y = None, None
        super().__init__()

    def __getstate__(self) -> Any:
        return vars(self) | {"_inv": None}

    @property
    def event_dim(self) -> int:
        """The number of dimensions that are transformed together."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> int:
        """+1 where the transform increases, −1 where it decreases: a number or a tensor."""
        raise NotImplementedError(f"{self.__class__} does not implement sign")

    def with_cache(self, cache_size: Any = 1) -> Any:
        """Return the transform with another size of cache."""
        if self._cache_size == cache_size:
            return self
        owner = next(cls for cls in type(self).__mro__ if "_arguments" in vars(cls))
        if owner is not Transform:
            return owner(*(getattr(self, name) for name in owner._arguments), cache_size=cache_size)
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: Any) -> Any:
        return self is other

    __hash__ = None

    def __call__(self, x: Tensor) -> Any:
        if not self._cache_size:
            return self._call(x)
        old_x, y = self._cached_x_y
        if x is not old_x:
            y = self._call(x)
            self._cached_x_y = x, y
        return y

    def _inv_call(self, y):
        if not self._cache_size:
            return self._inverse(y)
        x, old_y = self._cached_x_y
        if y is not old_y:
            x = self._inverse(y)
            self._cached_x_y = x, y
        return x

    def _call(self, x):
        raise NotImplementedError(f"{self.__class__} does not implement _call")

    def _inverse(self, y):
        raise NotImplementedError(f"{self.__class__} does not implement _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """ln |det dy/dx|."""
        raise NotImplementedError(f"{self.__class__} does not implement log_abs_det_jacobian")

    def __repr__(self) -> str:
        return self.__class__.__name__ + "()"

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of y for a shape of x."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of x for a shape of y."""
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> Any:
        return vars(self)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    bijective = same_as("_inv.bijective")
    sign = same_as("_inv.sign")

    def with_cache(self, cache_size: Any = 1) -> Any:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = None

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """The composition of transforms in order; the identity, if there is none."""

    _arguments = ("parts",)

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        needed = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            needed = max(needed + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return widened(self.parts[0].domain, needed, "domain")

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        needed = self.parts[0].domain.event_dim
        for part in self.parts:
            needed = max(needed + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return widened(self.parts[-1].codomain, needed, "codomain")

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> int:
        return reduce(mul, (part.sign for part in self.parts), 1)

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x: Tensor) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return tg.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        terms, event_dim = [], self.domain.event_dim
        for part, a, b in zip(self.parts, values, [*values[1:], y], strict=True):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(a, b), event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return reduce(add, terms)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


def widened(constraint: Any, event_dim: Any, what: Any) -> Any:
    """Return the constraint on events of `event_dim` dimensions."""
    more = event_dim - constraint.event_dim
    constraints.require(more >= 0, f"event_dim {event_dim} must be >= {what}.event_dim {constraint.event_dim}")
    return constraints.independent(constraint, more) if more else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """The base transform, with the last `reinterpreted_batch_ndims` dimensions as part of the event."""

    _arguments = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = same_as("base_transform.bijective")
    sign = same_as("base_transform.sign")

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Reshapes events. ValueError unless both shapes have the same number of elements."""

    bijective = True
    _arguments = ("in_shape", "out_shape")

    def __init__(self, in_shape: Size, out_shape: Size, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = tg.Size(in_shape), tg.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x):
        return x.reshape(batch(x, self.in_shape) + self.out_shape)

    def _inverse(self, y):
        return y.reshape(batch(y, self.out_shape) + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(batch(x, self.in_shape))

    def forward_shape(self, shape: Any) -> Any:
        return reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return reshaped(shape, self.out_shape, self.in_shape)


def batch(x: Tensor, event_shape: Any) -> Any:
    return x.shape[:x.dim() - len(event_shape)]


def reshaped(shape: Any, old: Any, new: Any) -> Any:
    """Return a shape with its trailing `old` replaced by `new`."""
    if len(shape) < len(old):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new
