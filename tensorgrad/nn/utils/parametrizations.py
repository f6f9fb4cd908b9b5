"""Three parametrizations: orthogonal matrices, weight normalization, spectral normalization."""
from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from ... import api as tg
from .. import functional as F
from ..modules.module import Module
from . import parametrize
from .spectral_norm import channel_dim
from .weight_norm import norm_except_dim, normalized_weight

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_named(module, name):
    tensor = getattr(module, name, None)
    if not isinstance(tensor, tg.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


# ── orthogonal ────────────────────────────────────────────────────────────────────────────────
class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    """Maps any matrix to one with orthonormal columns (or rows, if it is wide).

    With `use_trivialization`, the map's value is multiplied onto `base`, an orthogonal matrix that `right_inverse`
    chooses such that the map can start at the identity.
    """

    def __init__(self, weight: Any, orthogonal_map: Any, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        is_wide = X.size(-2) < X.size(-1)
        if is_wide:
            X = X.mT
        Q = _householder(X) if self.orthogonal_map is _OrthMaps.householder else _from_skew(X, self.orthogonal_map)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if is_wide else Q

    @tg.no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. "
                             f"Got a tensor of shape {Q.shape}.")
        is_wide = Q.size(-2) < Q.size(-1)
        tall = Q.mT if is_wide else Q
        if hasattr(self, "base"):
            self.base = _complete(tall)
            start = tg.zeros_like(Q)                # maps to the identity; _householder takes signs from the diagonal
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start
        if self.orthogonal_map is not _OrthMaps.householder:
            raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley "
                                      "parametrizations when use_trivialization=False.")
        reflectors = _reflectors(tall)
        return reflectors.mT if is_wide else reflectors


def _from_skew(X, orthogonal_map):
    """The first columns of exp(A) or (I - A/2)⁻¹ (I + A/2), where A is skew-symmetric, made of X's lower triangle."""
    n, k = X.shape[-2:]
    X = X.tril()
    if n != k:
        X = tg.cat([X, X.new_zeros(*X.shape[:-1], n - k)], dim=-1)
    A = X - X.mH
    if orthogonal_map is _OrthMaps.matrix_exp:
        Q = tg.matrix_exp(A)
    else:
        identity = tg.eye(n, dtype=A.dtype, device=A.device)
        Q = tg.linalg.solve(identity - A / 2, identity + A / 2)
    return Q if n == k else Q[..., :k]


def _householder(X):
    """The product of the reflections at X's columns below the diagonal; the diagonal itself has the signs."""
    A = X.tril(diagonal=-1)
    tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
    signs = X.diagonal(dim1=-2, dim2=-1).int()      # integers: nothing to differentiate
    return tg.linalg.householder_product(A, tau) * signs.unsqueeze(-2)


def _reflectors(Q):
    """An X for which `_householder(X)` is the orthogonal factor of Q."""
    A, tau = tg.geqrf(Q)
    signs = A.diagonal(dim1=-2, dim2=-1).sign()
    signs = tg.where(tau == 0, -signs, signs)       # this column needed no reflection
    A.diagonal(dim1=-2, dim2=-1).copy_(signs)
    return A


def _complete(Q):
    """A square orthogonal matrix whose first columns are those of Q, made orthonormal if they are not."""
    n, k = Q.shape[-2:]
    if n != k:
        extra = tg.randn(*Q.shape[:-1], n - k, dtype=Q.dtype, device=Q.device)
        return _make_orthogonal(tg.cat([Q, extra], dim=-1))
    return Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)


def _is_orthogonal(Q):
    n, k = Q.shape[-2:]
    identity = tg.eye(k, dtype=Q.dtype, device=Q.device)
    return tg.allclose(Q.mH @ Q, identity, atol=10.0 * n * tg.finfo(Q.dtype).eps)


def _make_orthogonal(A):
    """The orthogonal factor of A = QR, with R's diagonal positive."""
    X, tau = tg.geqrf(A)
    return tg.linalg.householder_product(X, tau) * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Module:
    """Keep a weight orthogonal: Qᵀ Q = I, or Q Qᵀ = I if it is wide.

    `orthogonal_map` is "matrix_exp" (the default for square matrices), "cayley" or "householder" (for others).
    See PyTorch's `torch.nn.utils.parametrizations.orthogonal`.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(4, 2)).weight
    >>> torch.allclose(weight @ weight.T, torch.eye(2), atol=1e-6)
    True
    """
    weight = _tensor_named(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        is_square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if is_square or weight.is_complex() else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")
    parametrization = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)


# ── weight normalization ──────────────────────────────────────────────────────────────────────
class _WeightNorm(Module):
    """(g, v) -> g · v / ‖v‖."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Tensor:
        return normalized_weight(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> Any:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Any:
    """Train length and direction of a weight separately: w = g · v / ‖v‖, norms taken over all dimensions but `dim`.

    See PyTorch's `torch.nn.utils.parametrizations.weight_norm`.

    >>> import tensorgrad as torch
    >>> sorted(torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3)).state_dict())
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename_old_keys(state_dict, prefix, *rest):
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename_old_keys)
    return module


# ── spectral normalization ────────────────────────────────────────────────────────────────────
class _SpectralNorm(Module):
    """w -> w / σ(w); the largest singular value σ = u · W v by power iteration, one step per training step or more."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.dim, self.eps = dim % ndim, eps
        if ndim > 1:                                # a vector's σ is its norm
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            u, v = (matrix.new_empty(size).normal_(0, 1) for size in matrix.shape)
            self.register_buffer("_u", self._normalize(u))
            self.register_buffer("_v", self._normalize(v))
            self._power_method(matrix, 15)

    def _normalize(self, vector):
        return F.normalize(vector, dim=0, eps=self.eps)

    def _reshape_weight_to_matrix(self, weight):
        return weight.movedim(self.dim, 0).flatten(1)

    @tg.no_grad()
    def _power_method(self, weight_mat, n_power_iterations):
        """Update u and v in place, so that copies of this module that share its buffers see the progress."""
        for _ in range(n_power_iterations):
            self._u.copy_(self._normalize(tg.mv(weight_mat, self._v)))
            self._v.copy_(self._normalize(tg.mv(weight_mat.mH, self._u)))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return self._normalize(weight)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()     # the buffers change before backward if there is another forward
        return weight / tg.vdot(u, tg.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """Keep the largest singular value of a weight at 1. See PyTorch's `torch.nn.utils.parametrizations.spectral_norm`.

    >>> import tensorgrad as torch
    >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 2))
    >>> bool((torch.linalg.matrix_norm(layer.weight, 2) - 1).abs() < 1e-2)
    True
    """
    weight = _tensor_named(module, name)
    dim = channel_dim(module) if dim is None else dim
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
