"""Random covariance matrices."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import log, nan
from typing import TYPE_CHECKING, Any

from .. import api as tg
from . import constraints
from ._gaussian import Triangular, factor, log_diagonal, one_covariance
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .utils import EMPTY, NUMBER, lazy_property

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Wishart"]

LOG_2 = log(2)


def multivariate_digamma(x: Tensor, p: Any) -> Any:
    """Σ ψ(x − j/2) for j < p"""
    constraints.require(x.gt((p - 1) / 2).all(), "Wrong domain for multivariate digamma function.")
    return tg.digamma(x.unsqueeze(-1) - tg.arange(p, dtype=x.dtype, device=x.device) / 2).sum(-1)


class Wishart(Triangular, ExponentialFamily):
    """Σ xᵢ·xᵢᵀ for df normal vectors of mean 0, with their covariance, its inverse or its Cholesky factor given. →
    torch.distributions.Wishart

    Drawn by Bartlett's decomposition. ValueError unless df > n − 1 for n × n matrices.

    >>> import tensorgrad as torch
    >>> torch.distributions.Wishart(torch.tensor([2.]), covariance_matrix=torch.eye(2)).mean
    tensor([[[2., 0.],
             [0., 2.]]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _expands, _keeps = (("df", "covariance_matrix", "precision_matrix", "scale_tril", "_dist_chi2"),
                        ("_unbroadcasted_scale_tril",))
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> Any:
        return {"covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
                "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self.event_shape[-1] - 1)}

    def __init__(self, df: Tensor | float, covariance_matrix: Tensor | None = None,
                 precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        name, matrix = one_covariance(covariance_matrix, precision_matrix, scale_tril, AssertionError)
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        n, like = matrix.shape[-1], {"dtype": matrix.dtype, "device": matrix.device}
        if isinstance(df, NUMBER):
            batch_shape, self.df = matrix.shape[:-2], tg.tensor(df, **like)
        else:
            batch_shape = tg.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        if self.df.le(n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        if self.df.lt(n).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < "
                          "ndim.", stacklevel=2)
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor(name, matrix)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - tg.arange(n, **like).expand(batch_shape + (-1,)))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        tril = self._unbroadcasted_scale_tril
        return self._broadcast(tg.cholesky_solve(tg.eye(tril.shape[-1], dtype=tril.dtype, device=tril.device), tril))

    def _matrices(self, x):
        """Add two axes to values of the batch, to multiply them with matrices."""
        return x.expand(self._batch_shape).unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        return self._matrices(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        return self._matrices(tg.where(factor <= 0, nan, factor)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        return self._matrices(self.df) * (V.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape):
        """(L·A)·(L·A)ᵀ for a lower triangle A: roots of chi-squared numbers on its diagonal, normal ones below."""
        n = self._event_shape[-1]
        diagonal = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = diagonal.clamp(min=tg.finfo(diagonal.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        rows, columns = tg.tril_indices(n, n, offset=-1, device=noise.device)
        noise[..., rows, columns] = tg.randn(sample_shape + self._batch_shape + (n * (n - 1) // 2,), dtype=noise.dtype,
                                             device=noise.device)
        half = self._unbroadcasted_scale_tril @ noise
        return half @ half.mT

    def _any_of_batch(self, flags):
        return flags.amax([-1 - i for i in range(len(self._batch_shape))]) if self._batch_shape else flags

    def rsample(self, sample_shape: Sequence[int] = EMPTY, max_try_correction: Any = 10) -> Tensor:
        sample_shape = tg.Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        # Like PyTorch, redraw (with its warning) where the first draws are positive definite, not where they are
        # singular.
        again = self._any_of_batch(self.support.check(sample))
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(max_try_correction):
                new = self._bartlett_sampling(again[again].shape)
                sample[again] = new
                again = again.masked_scatter(again, self._any_of_batch(~self.support.check(new)))
                if not again.any():
                    break
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        df, p, tril = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        trace = tg.cholesky_solve(value, tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        normalizer = -df * (p * LOG_2 / 2 + log_diagonal(tril)) - tg.mvlgamma(df / 2, p=p)
        return normalizer + (df - p - 1) / 2 * tg.linalg.slogdet(value).logabsdet - trace / 2

    def entropy(self) -> Tensor:
        df, p = self.df, self._event_shape[-1]
        volume = (p + 1) * (p * LOG_2 / 2 + log_diagonal(self._unbroadcasted_scale_tril))
        return volume + tg.mvlgamma(df / 2, p=p) - (df - p - 1) / 2 * multivariate_digamma(df / 2, p) + df * p / 2

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-tg.linalg.slogdet(-2 * x).logabsdet + LOG_2 * p) + tg.mvlgamma(half, p=p)
