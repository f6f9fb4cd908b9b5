"""Products of sparse matrices with dense ones, under older names. https://pytorch.org/docs/stable/sparse.html"""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import namespace, xp
from ..storage.sparse import pattern_of
from ._kinds import Number
from ._register import public
from ._sparse import rules
from .matrix import mm
from .sparse import sparse_coo_tensor
from .sparse_methods import _no_kernel


def _expect_sparse(x: Any, name: str) -> Any:
    own = pattern_of(x)
    if own is None or own.layout is not dtypes.sparse_coo:
        _no_kernel(name, x)
    return own


@public(method=False)
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix with a dense one, with a sparse first and a dense second dimension.

    Input: mat1 (n, k), sparse_coo; mat2 (k, m)
    Output: (n, m), with a value for each row of mat1 that has one
    Errors: NotImplementedError unless mat1 is sparse_coo; RuntimeError if k or the dtypes differ
    https://pytorch.org/docs → torch.hspmm

    >>> import tensorgrad as torch
    >>> torch.hspmm(torch.tensor([[0., 0.], [1., 2.]]).to_sparse(), torch.ones(2, 1)).indices()
    tensor([[1]])
    """
    own = _expect_sparse(mat1, "hspmm")
    product = mm(mat1, mat2)
    rows = own.backend.module.unique(own.indices[0])
    places = type(own)(rows.reshape(1, -1), tuple(product.shape), own.backend, True)
    return rules().at(xp, product, places)  # type: ignore[no-any-return]


@public(method=False)
def hsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`hspmm`. https://pytorch.org/docs → torch.hspmm

    >>> import tensorgrad as torch
    >>> torch.hsmm(torch.eye(2).to_sparse(), torch.ones(2, 1)).to_dense()
    tensor([[1.],
            [1.]])
    """
    return hspmm(mat1, mat2)


@public()
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta·input + alpha·(mat1 @ mat2) of sparse matrices input and mat1, as a sparse one.

    Input: input (n, m) and mat1 (n, k), sparse_coo; mat2 (k, m), dense
    Output: (n, m), sparse_coo, not coalesced: the values of the input, and the product's in all rows that mat1 has
    Errors: RuntimeError unless the layouts are these, and sizes and dtypes fit
    https://pytorch.org/docs → torch.sspaddmm

    >>> import tensorgrad as torch
    >>> x = torch.eye(2).to_sparse()
    >>> torch.sspaddmm(x, x, torch.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    if pattern_of(input) is None or pattern_of(mat1) is None or pattern_of(mat2) is not None:
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    product = hspmm(mat1, mat2)
    if tuple(input.shape) != tuple(product.shape):
        raise RuntimeError(f"sspaddmm: Argument #1: Expected dim 0 size {product.shape[0]}, got {input.shape[0]}"
                           if input.shape[0] != product.shape[0] else
                           f"sspaddmm: Argument #1: Expected dim 1 size {product.shape[1]}, got {input.shape[1]}")
    return spread(input * beta, product * alpha)


def spread(first: Any, product: Any) -> Any:
    """The values of two sparse matrices together; those of the second are whole rows."""
    one, two = pattern_of(first), pattern_of(product)
    module, width = two.backend.module, two.shape[1]
    places = module.stack([module.repeat(two.indices[0], width), module.tile(module.arange(width), two.count)])
    table, numbers = namespace(two.backend), rules().values
    both = type(two)(module.concatenate([one.indices, places], axis=1), two.shape, two.backend)
    values = table.concat([numbers(table, first), table.reshape(numbers(table, product), (-1,))], axis=0)
    return xp.sparse_tensor(values, pattern=both)


@public()
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix with a dense one, as a sparse one.

    Input: (n, k), sparse_coo; mat2 (k, m), dense
    Output: (n, m), sparse_coo
    Errors: as for sspaddmm
    https://pytorch.org/docs → torch.smm

    >>> import tensorgrad as torch
    >>> torch.smm(torch.eye(2).to_sparse(), torch.ones(2, 2))._nnz()
    4
    """
    if pattern_of(input) is None:
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    none = sparse_coo_tensor(size=(input.shape[0], mat2.shape[-1]), dtype=input.dtype, device=input.device)
    return sspaddmm(none, input, mat2)


@public("dsmm", method=False)
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mm`. https://pytorch.org/docs → torch.mm

    >>> import tensorgrad as torch
    >>> torch.spmm(torch.eye(2).to_sparse(), torch.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    return mm(input, mat2)  # type: ignore[no-any-return]


@public(method=False)
def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`sspaddmm`. https://pytorch.org/docs → torch.sspaddmm

    >>> import tensorgrad as torch
    >>> x = torch.eye(2).to_sparse()
    >>> torch.saddmm(x, x, torch.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)  # type: ignore[no-any-return]
