"""The base of all distributions: shapes, validation, expansion, printing."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from .utils import EMPTY, lazy_property

if TYPE_CHECKING:
    from .._tensor import Tensor
    from ..size import Size
    from .constraints import Constraint

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution, or a batch of them. https://pytorch.org/docs → torch.distributions.Distribution

    A sample's shape is sample_shape + batch_shape + event_shape: independent draws; independent variables, each with
    its own parameters; one variable. Parameters are checked against `arg_constraints`, values against `support`, unless
    validate_args is False: ValueError.

    >>> import tensorgrad as torch
    >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
    >>> d.batch_shape, d.sample((2,)).shape, d.log_prob(torch.tensor(0.)).shape
    (torch.Size([3]), torch.Size([2, 3]), torch.Size([3]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _expands: tuple[str, ...]             # attributes, tensors and distributions, whose shapes start with batch_shape
    _keeps: tuple[str, ...] = ()          # attributes that an expanded distribution copies unchanged

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set the default of `validate_args`. ValueError unless it is a bool."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape: Size = EMPTY, event_shape: Size = EMPTY,
                 validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _validate_parameters(self):
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                          "initialize the distribution with `validate_args=False` to turn off validation.",
                          stacklevel=4)
            return
        for name, constraint in arg_constraints.items():
            waits = name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property)
            if constraints.is_dependent(constraint) or waits:
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                                 f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid "
                                 f"values:\n{value}")

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to another batch shape, without a copy."""
        owner = next((cls for cls in type(self).__mro__ if "_expands" in vars(cls)), None)
        if owner is None:
            raise NotImplementedError(f"{self.__class__} does not implement expand")
        new = self._get_checked_instance(owner, _instance)
        batch_shape, mine = tg.Size(batch_shape), vars(self)
        for name in owner._expands:
            if name in mine:
                shape = mine[name].batch_shape if isinstance(mine[name], Distribution) else mine[name].shape
                setattr(new, name, mine[name].expand(batch_shape + shape[len(self._batch_shape):]))
        vars(new).update({name: mine[name] for name in owner._keeps if name in mine})
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls, _instance=None):
        """An empty instance to be expanded into, or the one given."""
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom "
                                      "__init__ method must also define a custom .expand() method.")
        return self.__new__(type(self)) if _instance is None else _instance

    # ── properties ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of a single variable."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        """Parameter names → the constraints that they must satisfy."""
        raise NotImplementedError(f"{self.__class__} does not implement arg_constraints")

    @property
    def support(self) -> Constraint | None:
        """The constraint that values must satisfy."""
        raise NotImplementedError(f"{self.__class__} does not implement support")

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError(f"{self.__class__} does not implement mean")

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError(f"{self.__class__} does not implement variance")

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    # ── methods ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def sample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        """Draw random numbers, without a gradient."""
        with tg.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = EMPTY) -> Tensor:
        """Draw random numbers as differentiable functions of the parameters."""
        raise NotImplementedError(f"{self.__class__} does not implement rsample")

    def sample_n(self, n: int) -> Tensor:
        """Deprecated: sample((n,))."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(tg.Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability, or of its density, at a value."""
        raise NotImplementedError(f"{self.__class__} does not implement log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        raise NotImplementedError(f"{self.__class__} does not implement cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the value x with P(X ≤ x) = value."""
        raise NotImplementedError(f"{self.__class__} does not implement icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError(f"{self.__class__} does not implement enumerate_support")

    def entropy(self) -> Tensor:
        """−E[ln p(x)]."""
        raise NotImplementedError(f"{self.__class__} does not implement entropy")

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return tg.exp(self.entropy())

    def _extended_shape(self, sample_shape=EMPTY):
        """The shape of a sample."""
        return tg.Size(sample_shape) + self._batch_shape + self._event_shape

    def _check(self, value):
        """Validate a value, unless validate_args is False."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value):
        """Raise ValueError unless a value has a shape that fits, and belongs to the support."""
        if not isinstance(value, tg.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, expected = value.size(), self._batch_shape + self._event_shape
        if shape[len(shape) - len(self._event_shape):] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {self._event_shape}.")
        if any(1 != i != j != 1 for i, j in zip(reversed(shape), reversed(expected), strict=False)):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `support` to enable sample validation. Please initialize "
                          "the distribution with `validate_args=False` to turn off validation.", stacklevel=4)
            return
        constraints.require(support is not None, "support is unexpectedly None")
        if not support.check(value).all():
            raise ValueError(f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be "
                             f"within the support ({support!r}) of the distribution {self!r}, but found invalid "
                             f"values:\n{value}")

    def __repr__(self) -> str:
        shown = {name: vars(self)[name] for name in self.arg_constraints if name in vars(self)}
        return (f"{self.__class__.__name__}("
                f"{', '.join(f'{name}: {v if v.numel() == 1 else v.size()}' for name, v in shown.items())})")
