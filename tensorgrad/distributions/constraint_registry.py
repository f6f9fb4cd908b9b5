"""Map constraints to transforms of unconstrained tensors.

https://pytorch.org/docs → torch.distributions.constraint_registry

>>> import tensorgrad as torch
>>> from tensorgrad.distributions import constraints
>>> torch.distributions.biject_to(constraints.greater_than(2.))(torch.tensor([0., 1.]))
tensor([3.0000, 4.7183])
"""
from __future__ import annotations

from typing import Any

from . import constraints, transforms
from .utils import NUMBER

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from constraint classes to functions that make a transform for a constraint."""

    def __init__(self) -> None:
        self._registry = {}
        super().__init__()

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Register a function for a constraint (an instance or a class), or return a decorator.

        TypeError for anything else.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Return the transform onto a constraint's set. NotImplementedError if there is none for its class."""
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints") from None
        return factory(constraint)


biject_to = ConstraintRegistry()         # bijections
transform_to = ConstraintRegistry()      # transforms that suit optimizers better, not always bijective


def between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, NUMBER) and low == 0 and isinstance(high, NUMBER) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def above(constraint: Any) -> Any:
    return transforms.ComposeTransform([transforms.ExpTransform(),
                                        transforms.AffineTransform(constraint.lower_bound, 1)])


def below(constraint: Any) -> Any:
    return transforms.ComposeTransform([transforms.ExpTransform(),
                                        transforms.AffineTransform(constraint.upper_bound, -1)])


for _registry in (biject_to, transform_to):
    for _region, _transform in {
        constraints.real: lambda c: transforms.identity_transform,
        constraints.greater_than: above, constraints.greater_than_eq: above, constraints.less_than: below,
        constraints.interval: between, constraints.half_open_interval: between,
        constraints.corr_cholesky: lambda c: transforms.CorrCholeskyTransform(),
        constraints.independent: lambda c, to=_registry: transforms.IndependentTransform(to(c.base_constraint),
                                                                                         c.reinterpreted_batch_ndims),
        constraints.cat: lambda c, to=_registry: transforms.CatTransform([to(part) for part in c.cseq], c.dim,
                                                                         c.lengths),
        constraints.stack: lambda c, to=_registry: transforms.StackTransform([to(part) for part in c.cseq], c.dim),
    }.items():
        _registry.register(_region, _transform)

biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda c: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda c: transforms.PositiveDefiniteTransform())
