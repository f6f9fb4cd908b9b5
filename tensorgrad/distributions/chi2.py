"""Sums of squares of normal numbers."""
from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of df squares: Gamma(df/2, ½). → torch.distributions.Chi2

    >>> import tensorgrad as torch
    >>> torch.distributions.Chi2(torch.tensor([3.])).variance
    tensor([6.])
    """

    arg_constraints = {"df": constraints.positive}
    _expands = Gamma._expands

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self):
        return self.concentration * 2
