"""Products of matrices on NumPy in pieces for which BLAS has the quicker kernels.

OpenBLAS has kernels for products of up to 10⁶ numbers; where rows are multiplied with rows, of up to 1,200 results. Found with OpenBLAS 0.3.31 and AVX-512,
one core, float32, in products and sums a nanosecond, at once and in pieces: a matrix (32, 144) with 512 columns 68 and 101, (24, 216) with 4,096 columns 63
and 105; 4 rows with 96, along 32,768 places, 8 and 53; 32 with 48, 44 and 84; 64 with 64, 67 and 76. With AVX2, for which it has none, pieces take as long or
a quarter longer: there products stay whole.
"""
from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from ..runtime.blas import open_blas

CORES = {"SkylakeX", "Cooperlake", "SapphireRapids"}       # OpenBLAS's names of processors for which it has such kernels
SMALL = 10 ** 6      # products of numbers in a small product
FEW = 4              # rows up to which a matrix is multiplied without a transposed copy
RESULTS = 1200       # results of a small product of rows with rows
LONG = 800           # terms of each sum in a small product
SHORT = 64           # places, or columns, below which pieces would be too many
MANY = 16            # the most small products to split a product into, if it has more results


@cache
def small_kernels() -> bool:
    """Return True if BLAS has kernels for small products."""
    blas = open_blas()
    return blas is not None and blas.core in CORES


def has_small_kernel(m: int, n: int, k: int, of_rows: bool) -> bool:
    """Return True if BLAS has a small kernel for (m, k) times (k, n); `of_rows`: the second is stored as (n, k)."""
    return m * n * k <= SMALL and not (of_rows and m * n > RESULTS) and small_kernels()


# ── a small matrix with columns, or rows ──────────────────────────────────────────────────────────────────────────────


def is_small(size: int) -> bool:
    """Return True if a matrix of `size` numbers is multiplied in pieces.

    For products with columns it should then be column-major, unless it has few rows; with rows, row-major.
    """
    return size * SHORT <= SMALL and small_kernels()


@lru_cache(1 << 10)
def parts(size: int, n: int) -> int:
    """Return into how many equal parts to split n columns, or rows, to be multiplied with a matrix of `size` numbers."""
    if size * n <= SMALL:
        return 1
    return next((q for q in range(-(-size * n // SMALL), n // SHORT + 1) if n % q == 0), 1)


def with_columns(matrix: Any, x: Any, out: Any) -> None:
    """Fill out (…, M, N) with a matrix (M, K) times (…, K, N)."""
    count = parts(matrix.size, x.shape[-1]) if small_kernels() else 1
    if count > 1:
        x, out = (a.reshape(*a.shape[:-1], count, -1).swapaxes(-3, -2) for a in (x, out))
    np.matmul(matrix, x, out=out)


def with_rows(x: Any, matrices: Any, out: Any) -> None:
    """Fill out (…, N, M) with (…, N, K) times matrices (…, K, M)."""
    *_, k, m = matrices.shape
    count = parts(k * m, x.shape[-2]) if small_kernels() else 1
    if count > 1:
        x, out = (a.reshape(*a.shape[:-2], count, -1, a.shape[-1]) for a in (x, out))
        matrices = matrices[..., None, :, :]
    np.matmul(x, matrices, out=out)


# ── rows with rows ────────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(1 << 10)
def pieces(m: int, n: int, k: int) -> tuple[int, int, int] | None:
    """Into how many equal parts to take m rows, n rows and the k places of a product; None: as it is."""
    count = next((q for q in range(-(-k // LONG), k // SHORT + 1) if k % q == 0), 0)
    of_larger = next((s for s in range(1, MANY + 1) if max(m, n) % s == 0 and m * n <= s * RESULTS), 0)
    if not (count and of_larger) or count == of_larger == 1:
        return None
    return (of_larger, 1, count) if m > n else (1, of_larger, count)


def rows_with_rows(a: Any, b: Any, out: Any = None) -> Any:
    """Σ a bᵀ over a stack: (…, M, K) and (…, N, K) to (M, N)."""
    *stack, m, k = a.shape
    n = b.shape[-2]
    parted = pieces(m, n, k) if small_kernels() else None
    if parted is None:
        if not stack:
            return np.matmul(a, b.T, out=out)
        return np.matmul(a, b.swapaxes(-2, -1)).sum(axis=tuple(range(len(stack))), out=out)
    of_m, of_n, of_k = parted
    a, b = a.reshape(-1, of_m, m // of_m, of_k, k // of_k), b.reshape(-1, of_n, n // of_n, of_k, k // of_k)
    found = np.matmul(a.transpose(0, 3, 1, 2, 4)[:, :, :, None], b.transpose(0, 3, 1, 4, 2)[:, :, None]).sum(axis=(0, 1)).swapaxes(1, 2).reshape(m, n)
    if out is None:
        return found
    out[...] = found
    return out
