"""Products of vectors, matrices and stacks of them.

https://pytorch.org/docs/stable/torch.html#blas-and-lapack-operations
"""
from __future__ import annotations

from math import prod
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..advice import misfit
from ..core.casting import is_half, result_type
from ..core.dispatch import SCALAR_TYPES, namespace, xp
from ..storage.sparse import pattern_of
from ._arguments import (
    C_NAMES,
    check_elements,
    check_list,
    check_product,
    check_tensor,
    converted,
    in_dtype,
    integer,
    normalize_dim,
    promoted,
    refuse_complex32,
    warn,
)
from ._halves import once_rounded
from ._kinds import Dtype, Ints1, Number, Tensors
from ._linalg import inverse_of
from ._register import public

# ── products ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _same_dtype(a: Any, b: Any) -> None:
    if a.array.dtype != b.array.dtype:
        if a.array.dtype.kind == "b" and b.array.ndim > 2 and a.array.shape[-1:] == b.array.shape[-2:][:1]:
            raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
        if a.array.ndim == b.array.ndim == 1:
            _check_vectors(a, b, "dot")
        if b.array.ndim == 1:
            _check_sum_dtypes(b, a, b)
        if a.array.ndim == 1 and b.array.ndim > 2:
            _check_sum_dtypes(a, b, a)
        if b.array.ndim > 2:
            raise misfit(f"expected scalar type {SCALAR_TYPES[a.dtype.name]} but found {SCALAR_TYPES[b.dtype.name]}")
        check_product(a, b)


def _check_sum_dtypes(input: Any, matrix: Any, vec: Any) -> None:
    """RuntimeError unless input, matrix and vector have one dtype."""
    if not input.array.dtype == matrix.array.dtype == vec.array.dtype:
        kinds = (SCALAR_TYPES[t.dtype.name] for t in (input, matrix, vec))
        raise misfit("addmv input tensors must have the same dtype, but got {}, {}, and {}".format(*kinds))


@public(out="same")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """out[…, i, j] = Σₖ input[…, i, k]·other[…, k, j]; a vector counts as a row on the left, as a column on the right.

    Input: (*, n, k) or (k), (*, k, m) or (k), of one dtype; leading axes broadcast
    Output: (*, n, m), without the axes that a vector lacks
    Errors: RuntimeError if k differs, the leading axes do not broadcast, the dtypes differ, or an operand is 0-d;
        NotImplementedError for booleans
    https://pytorch.org/docs → torch.matmul

    >>> import tensorgrad as torch
    >>> torch.matmul(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """
    check_tensor(input, "matmul", "input", 1)
    check_tensor(other, "matmul", "other", 2)
    _same_dtype(input, other)
    if not input.array.ndim or not other.array.ndim:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {input.array.ndim}D and "
                           f"{other.array.ndim}D")
    return xp.matmul(input, other)


def _check_ranks(tensors: dict[str, Any], ndim: int, what: str) -> None:
    for name, t in tensors.items():
        if t.array.ndim != ndim:
            raise RuntimeError(f"{name} must be a {what}")


def _wider(dtype: Any, *tensors: Any) -> tuple[Any, ...]:
    """The tensors in the dtype that their product is to be added up in."""
    return tensors if dtype is None else tuple(in_dtype(t, dtypes.as_dtype(dtype)) for t in tensors)


def _check_wider(name: str, dtype: Any, a: Any, b: Any) -> None:
    """Raise NotImplementedError unless `dtype` is the matrices' dtype, or float32 for halves."""
    kinds = a.dtype, b.dtype, dtypes.as_dtype(dtype)
    if len(set(kinds)) > 1 and kinds not in ((dtypes.float16, dtypes.float16, dtypes.float32),
                                             (dtypes.bfloat16, dtypes.bfloat16, dtypes.float32)):
        raise NotImplementedError(f"Could not run 'aten::{name}.dtype' with arguments from the "
                                  f"'{a.device.type.upper()}' backend: out_dtype= takes the dtype of the matrices, and "
                                  f"float32 for halves, but got {kinds[2]} for {kinds[0]} and {kinds[1]}")


@public(out="same")
def mm(input: Tensor, mat2: Tensor, out_dtype: Dtype | None = None) -> Tensor:
    """The product of two matrices, which may be added up in a wider dtype.

    Input: (n, k), (k, m), of one dtype
    Output: (n, m), of out_dtype if that is given
    Errors: RuntimeError if an operand is not 2-D, k or the dtypes differ; NotImplementedError unless out_dtype is the
        operands' dtype, or float32 for halves
    https://pytorch.org/docs → torch.mm

    >>> import tensorgrad as torch
    >>> torch.mm(torch.tensor([[1., 2.]]), torch.tensor([[3.], [4.]]))
    tensor([[11.]])
    """
    if out_dtype is not None:
        _check_wider("mm", out_dtype, input, mat2)
    _check_ranks({"self": input, "mat2": mat2}, 2, "matrix")
    return matmul(*_wider(out_dtype, input, mat2))


@public(out="same")
def bmm(input: Tensor, mat2: Tensor, out_dtype: Dtype | None = None) -> Tensor:
    """Multiply two stacks of matrices, pair by pair.

    Input: (b, n, k), (b, k, m), of one dtype
    Output: (b, n, m), of out_dtype if that is given
    Errors: RuntimeError if an operand is not 3-D, or b, k or the dtypes differ; NotImplementedError for booleans, or
        unless out_dtype is the operands' dtype, or float32 for halves
    https://pytorch.org/docs → torch.bmm

    >>> import tensorgrad as torch
    >>> torch.bmm(torch.ones(5, 2, 3), torch.ones(5, 3, 4)).shape
    torch.Size([5, 2, 4])
    """
    if out_dtype is not None:
        _check_wider("bmm", out_dtype, input, mat2)
    _check_ranks({"batch1": input, "batch2": mat2}, 3, "3D tensor")
    (count, _, k), shape = input.array.shape, mat2.array.shape
    if shape[:2] != (count, k):
        raise misfit(f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {k}] but got: "
                     f"[{shape[0]}, {shape[1]}].")
    if input.array.dtype.kind == "b":
        raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
    return matmul(*_wider(out_dtype, input, mat2))


@public(out="same")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector.

    Input: (n, k), (k), of one dtype
    Output: (n)
    Errors: RuntimeError unless they are a matrix and a vector with the same k and dtype
    https://pytorch.org/docs → torch.mv

    >>> import tensorgrad as torch
    >>> torch.mv(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """
    if not input.array.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    _check_matrix_vector(input, vec)
    return matmul(input, vec)


def _check_matrix_vector(matrix: Any, vec: Any) -> None:
    if (matrix.array.ndim, vec.array.ndim) != (2, 1):
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {matrix.array.ndim}, {vec.array.ndim}")


def _check_vectors(a: Any, b: Any, name: str) -> None:
    if a.array.ndim != 1 or b.array.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.array.ndim}D and {b.array.ndim}D tensors")
    if a.array.dtype != b.array.dtype:
        raise RuntimeError(f"{name} : expected both vectors to have same dtype, but found {SCALAR_TYPES[a.dtype.name]} "
                           f"and {SCALAR_TYPES[b.dtype.name]}")


@public(out="same")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Σ input·tensor of two vectors.

    Input: (n), (n), of one dtype
    Output: ()
    Errors: RuntimeError if they are not 1-D, or their lengths or dtypes differ
    https://pytorch.org/docs → torch.dot

    >>> import tensorgrad as torch
    >>> torch.dot(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor(11.)
    """
    check_tensor(tensor, "dot", "tensor", 2)
    _check_vectors(input, tensor, "dot")
    return xp.matmul(input, tensor)


@public(out="same")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Σ conj(input)·other of two vectors.

    Input: (n), (n), of one dtype
    Output: ()
    Errors: RuntimeError if they are not 1-D, or their lengths or dtypes differ
    https://pytorch.org/docs → torch.vdot

    >>> import tensorgrad as torch
    >>> torch.vdot(torch.tensor([1j]), torch.tensor([1j]))
    tensor(1.+0.j)
    """
    check_tensor(other, "vdot", "other", 2)
    _check_vectors(input, other, "dot")
    if input.dtype.is_complex:
        refuse_complex32(input, "vdot")
        input = xp.conj(input)
    return xp.matmul(input, other)


@public(out="same")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Σ input·other along the last axis of each.

    Input: (*, k), (**, k), of one dtype; a 0-d operand multiplies the other
    Output: (*, **)
    Errors: RuntimeError if k or the dtypes differ
    https://pytorch.org/docs → torch.inner

    >>> import tensorgrad as torch
    >>> torch.inner(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """
    if not (input.array.ndim and other.array.ndim):
        return xp.multiply(input, other)
    if input.array.shape[-1] != other.array.shape[-1]:
        raise RuntimeError("inner() the last dimension must match on both input tensors but got shapes "
                           f"{list(input.array.shape)} and {list(other.array.shape)}")
    return tensordot(input, other, ([-1], [-1]))


@public("ger", out=True)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """out[i, j] = input[i]·vec2[j].

    Input: (n), (m); the dtypes promote
    Output: (n, m)
    Errors: RuntimeError if an operand is not 1-D
    https://pytorch.org/docs → torch.outer

    >>> import tensorgrad as torch
    >>> torch.outer(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    for name, t in (("self", input), ("vec2", vec2)):
        if t.array.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {t.array.ndim}-D")
    return xp.multiply(xp.expand_dims(input, -1), vec2)


@public()
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix' diagonal.

    Input: (n, m), any dtype but bool
    Output: ()
    Errors: RuntimeError if the input is not 2-D; NotImplementedError for booleans
    https://pytorch.org/docs → torch.trace

    >>> import tensorgrad as torch
    >>> torch.trace(torch.tensor([[1., 2.], [3., 4.]]))
    tensor(5.)
    """
    if input.array.dtype.kind == "b" or input.dtype is dtypes.complex32:
        raise NotImplementedError(f"\"trace\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    if input.array.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.array.ndim}")
    return xp.sum(xp.diagonal(input), axis=None, keepdims=False)


def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """Σ conj(x)·y along an axis. https://pytorch.org/docs → torch.linalg.vecdot

    >>> import tensorgrad as torch
    >>> torch.linalg.vecdot(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """
    _same_dtype(x, y)
    refuse_complex32(x, "vdot")
    product = xp.multiply(xp.conj(x) if x.dtype.is_complex else x, y)
    return xp.sum(product, axis=(normalize_dim(dim, product.array.ndim),), keepdims=False)


# ── a sum and a product ───────────────────────────────────────────────────────────────────────────────────────────────


@once_rounded
def _plus_product(input: Any, a: Any, b: Any, multiply: Any, beta: Any, alpha: Any) -> Any:
    """beta·input + alpha·multiply(a, b)"""
    return _plus(input, multiply(a, b), beta, alpha)


def _plus(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """beta·input + alpha·product; nothing of `input` shows if beta is 0."""
    if input.array.dtype != product.array.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {SCALAR_TYPES[input.dtype.name]} and "
                           f"{SCALAR_TYPES[product.dtype.name]}")
    if beta != 1 or alpha != 1:
        beta, alpha = converted(beta, input.dtype), converted(alpha, input.dtype)
        if input.array.dtype.kind in "iu":
            beta, alpha = int(beta), int(alpha)
    _check_expands(input.array.shape, product.array.shape)
    if alpha != 1:
        product = xp.multiply(product, alpha)
    if beta == 0 and pattern_of(product) is not None:
        input = xp.zeros_like(input)
    elif beta == 0:
        return xp.where(xp.ones_like(product, dtype=dtypes.bool), product, input)
    return xp.add(input if beta == 1 else xp.multiply(input, beta), product)


def _check_expands(shape: Any, target: Any) -> None:
    if len(shape) > len(target):
        raise RuntimeError(f"The number of sizes provided ({len(target)}) must be greater or equal to the number of "
                           f"dimensions in the tensor ({len(shape)})")
    for i in range(-1, -len(shape) - 1, -1):
        if shape[i] not in (1, target[i]):
            raise misfit(f"The expanded size of the tensor ({target[i]}) must match the existing size ({shape[i]}) at "
                               f"non-singleton dimension {len(target) + i}.  Target sizes: {list(target)}.  Tensor "
                               f"sizes: {list(shape)}")


@public(inplace=True, out="same")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1,
          out_dtype: Dtype | None = None) -> Tensor:
    """beta·input + alpha·(mat1 @ mat2).

    Input: input broadcastable to (n, m), mat1 (n, k), mat2 (k, m), all of one dtype
    Output: (n, m), of out_dtype if that is given
    Errors: RuntimeError if a factor is not 2-D, k or the dtypes differ, or input does not broadcast to (n, m);
        NotImplementedError unless out_dtype is the factors' dtype, or float32 for halves
    https://pytorch.org/docs → torch.addmm

    >>> import tensorgrad as torch
    >>> torch.addmm(torch.tensor([1.]), torch.tensor([[1., 2.]]), torch.tensor([[3.], [4.]]))
    tensor([[12.]])
    """
    if out_dtype is not None:
        _check_wider("addmm", out_dtype, mat1, mat2)
    for name, t in (("mat1", mat1), ("mat2", mat2)):
        if t.array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {t.array.ndim}-D tensor")
    if out_dtype is None:
        check_product(mat1, mat2, input)
    return _plus_product(*_wider(out_dtype, input, mat1, mat2), matmul, beta, alpha)


@public(inplace=True, out="same")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta·input + alpha·(mat @ vec).

    Input: input broadcastable to (n), mat (n, k), vec (k), all of one dtype
    Output: (n)
    Errors: RuntimeError if the factors are not a matrix and a vector, k or the dtypes differ, or input does not
        broadcast to (n)
    https://pytorch.org/docs → torch.addmv

    >>> import tensorgrad as torch
    >>> torch.addmv(torch.tensor([1.]), torch.tensor([[1., 2.]]), torch.tensor([3., 4.]))
    tensor([12.])
    """
    _check_matrix_vector(mat, vec)
    _check_sum_dtypes(input, mat, vec)
    return _plus_product(input, mat, vec, matmul, beta, alpha)


@public(inplace=True, out=True)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta·input + alpha·(vec1 ⊗ vec2).

    Input: input broadcastable to (n, m), vec1 (n), vec2 (m)
    Output: (n, m)
    Errors: RuntimeError if a vector is not 1-D, input does not broadcast to (n, m), or beta or alpha is a float for
        integers, or a bool unless the result is one
    https://pytorch.org/docs → torch.addr

    >>> import tensorgrad as torch
    >>> torch.addr(torch.zeros(2, 2), torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    for name, t in (("vec1", vec1), ("vec2", vec2)):
        if t.array.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {t.array.ndim}-D")
    kind = result_type(input, vec1, vec2)
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, bool) and kind.name != "bool":
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if isinstance(factor, (float, complex)) and kind.category < dtypes.FLOATING:
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    if input.dtype is vec1.dtype is vec2.dtype and is_half(input.array):
        refuse_complex32(input, "addr_cpu")
        return _plus_product(input, vec1, vec2, outer, beta, alpha)
    input, product = promoted(input, outer(vec1, vec2))
    if input.array.dtype.kind == "b":
        beta, alpha = bool(beta), bool(alpha)
    return _plus(input, product, beta, alpha)


@public(inplace=True, out="same")
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta·input + alpha·Σᵢ batch1[i] @ batch2[i].

    Input: input broadcastable to (n, m), batch1 (b, n, k), batch2 (b, k, m), all of one dtype
    Output: (n, m)
    Errors: RuntimeError if a stack is not 3-D, b, k or the dtypes differ, or input does not broadcast to (n, m)
    https://pytorch.org/docs → torch.addbmm

    >>> import tensorgrad as torch
    >>> torch.addbmm(torch.zeros(1, 1), torch.ones(5, 1, 2), torch.ones(5, 2, 1))
    tensor([[10.]])
    """
    input = input.expand(batch1.size(1), batch2.size(2))
    check_product(batch1, batch2, input)
    return _plus_product(input, batch1, batch2, _sum_of_products, beta, alpha)


def _sum_of_products(batch1: Any, batch2: Any) -> Any:
    return in_dtype(xp.sum(bmm(batch1, batch2), axis=(0,), keepdims=False), batch1.dtype)


@public(inplace=True, out="same")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1,
            out_dtype: Dtype | None = None) -> Tensor:
    """beta·input + alpha·(batch1[i] @ batch2[i]) for each i.

    Input: input broadcastable to (b, n, m), batch1 (b, n, k), batch2 (b, k, m), all of one dtype
    Output: (b, n, m), of out_dtype if that is given
    Errors: RuntimeError if a stack is not 3-D, b, k or the dtypes differ, or input does not broadcast to (b, n, m);
        NotImplementedError unless out_dtype is the stacks' dtype, or float32 for halves
    https://pytorch.org/docs → torch.baddbmm

    >>> import tensorgrad as torch
    >>> torch.baddbmm(torch.zeros(1), torch.ones(2, 1, 3), torch.ones(2, 3, 1)).flatten()
    tensor([3., 3.])
    """
    if out_dtype is not None:
        _check_wider("baddbmm", out_dtype, batch1, batch2)
    input = input.expand(batch1.size(0), batch1.size(1), batch2.size(2))
    if out_dtype is None and input.dtype is not batch1.dtype:
        kinds = (C_NAMES[t.dtype.name] for t in (input, batch1, batch2))
        raise RuntimeError("Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}".format(*kinds))
    return (_plus_product(input, batch1, batch2, bmm, beta, alpha) if out_dtype is None
            else _plus(*_wider(out_dtype, input), bmm(batch1, batch2, out_dtype), beta, alpha))


# ── products of many, and powers ──────────────────────────────────────────────────────────────────────────────────────


@public(method=False)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of matrices, in the order that costs least.

    Input: (n₀, n₁), (n₁, n₂), …, of one dtype
    Output: (n₀, nₖ)
    Errors: RuntimeError if there is no matrix, one is not 2-D, neighbours do not fit, or the dtypes differ
    https://pytorch.org/docs → torch.chain_matmul

    >>> import tensorgrad as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):      # deprecated in favour of linalg.multi_dot
    ...     torch.chain_matmul(torch.ones(1, 2), torch.ones(2, 3), torch.ones(3, 1))
    tensor([[6.]])
    """
    warn("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
         "instead, which accepts a list of two or more tensors rather than multiple parameters.")
    matrices = matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else matrices
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    check_elements(matrices)
    for m in matrices:
        if m.array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m.array.ndim}, expected 2 instead.")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)


def multi_dot(tensors: Tensors) -> Tensor:
    """The product of matrices, in the order that costs least; the first and the last may be vectors.

    Input: (n₀, n₁) or (n₁), (n₁, n₂), …, (nₖ₋₁, nₖ) or (nₖ₋₁), of one dtype
    Output: (n₀, nₖ), without the axes that vectors lack
    Errors: RuntimeError if there are less than two tensors, one has another number of axes, neighbours do not fit, or
        the dtypes differ
    https://pytorch.org/docs → torch.linalg.multi_dot

    >>> import tensorgrad as torch
    >>> torch.linalg.multi_dot([torch.ones(2), torch.ones(2, 3), torch.ones(3)])
    tensor(6.)
    """
    check_list(tensors, "linalg_multi_dot")
    _check_chain(tensors)
    chain = list(tensors)
    row, column = chain[0].array.ndim == 1, chain[-1].array.ndim == 1
    if row:
        chain[0] = xp.expand_dims(chain[0], 0)
    if column:
        chain[-1] = xp.expand_dims(chain[-1], 1)
    sizes = [chain[0].array.shape[0], *(t.array.shape[1] for t in chain)]
    for i, t in enumerate(chain):
        if t.array.shape[0] != sizes[i]:
            raise RuntimeError(f"multi_dot(): tensors {i - 1} and {i} with shapes {list(chain[i - 1].array.shape)} and "
                               f"{list(t.array.shape)} cannot be multiplied")
    best = _cheapest_splits(sizes)

    def multiply(i: int, j: int) -> Any:
        return chain[i] if i == j else xp.matmul(multiply(i, best[i, j]), multiply(best[i, j] + 1, j))
    product = multiply(0, len(chain) - 1)
    return xp.reshape(product, product.array.shape[int(row):2 - int(column)]) if row or column else product


def _check_chain(tensors: Any) -> None:
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, t in enumerate(tensors):
        end = i in (0, len(tensors) - 1)
        if t.array.ndim not in ((1, 2) if end else (2,)):
            which = "first" if i == 0 else "last" if end else ""
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {t.array.ndim}D" if end else
                               f"multi_dot(): tensor {i} must be 2D but got {t.array.ndim}D")
        if t.array.dtype != tensors[0].array.dtype:
            first, other = C_NAMES[tensors[0].dtype.name], C_NAMES[t.dtype.name]
            raise RuntimeError(f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {first} and "
                               f"tensor {i} {other}")


def _cheapest_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Split each run of matrices so that the multiplications are fewest (dynamic programming)."""
    count = len(sizes) - 1
    cost, best = {(i, i): 0 for i in range(count)}, {}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            cost[i, j], best[i, j] = min((cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                                         for k in range(i, j))
    return best


@public(out="same")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """A square matrix to the power of n; the inverse for negative n.

    Input: (*, n, n); floating point or complex for negative powers
    Output: (*, n, n)
    Errors: RuntimeError if the matrices are not square, or are integers for negative n; LinAlgError if they are
        singular for negative n; TypeError if n is not an integer
    https://pytorch.org/docs → torch.linalg.matrix_power

    >>> import tensorgrad as torch
    >>> torch.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    n = integer(n, "n")
    shape = input.array.shape
    if len(shape) < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if shape[-1] != shape[-2]:
        raise RuntimeError(f"linalg.matrix_power: A must be batches of square matrices, but they are {shape[-2]} by "
                           f"{shape[-1]} matrices")
    if n == 0:
        return xp.copied(input, xp.broadcast_to(namespace(type(input._storage)).eye(shape[-1], dtype=input.dtype),
                                                shape=shape))
    if n < 0:
        input, n = inverse_of(input, "linalg.inv")[0], -n
    result = None
    while n:
        if n & 1:
            result = input if result is None else xp.matmul(result, input)
        n >>= 1
        if n:
            input = xp.matmul(input, input)
    return xp.clone(result) if result is input else result


# ── contractions ──────────────────────────────────────────────────────────────────────────────────────────────────────


@public(method=False, out="same")
def tensordot(a: Tensor, b: Tensor, dims: Ints1 = 2) -> Tensor:
    """Σ a·b over pairs of axes: the last `dims` of a with the first of b, or two lists of axes.

    Input: (*, k), (k, **) for the axes k that are summed, of one dtype
    Output: (*, **)
    Errors: RuntimeError if the summed axes do not match in number or size, `dims` is negative or above a number of
        axes, or the dtypes differ; IndexError if an axis is out of range
    https://pytorch.org/docs → torch.tensordot

    >>> import tensorgrad as torch
    >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(3, 4, 5)).shape
    torch.Size([2, 5])
    """
    if a.array.dtype != b.array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    first, second = _dot_axes(a, b, dims.tolist() if isinstance(dims, Tensor) else dims)
    m, n = a.array.shape, b.array.shape
    for i, j in zip(first, second, strict=True):
        if m[i] != n[j] and 1 not in (m[i], n[j]):
            at = i - (len(m) if isinstance(dims, int) else 0)
            raise RuntimeError(f"contracted dimensions need to match, but first has size {m[i]} in dim {at} and second "
                               f"has size {n[j]} in dim {j}")
        if m[i] != n[j]:      # an axis of length 1 is broadcast: sum the other one first
            a, b = (_folded(a, i), b) if n[j] == 1 else (a, _folded(b, j))
            m, n = a.array.shape, b.array.shape
    rows, columns = ([i for i in range(len(s)) if i not in axes] for s, axes in ((m, first), (n, second)))
    k = prod(m[i] for i in first)
    left = xp.reshape(arranged(a, (*rows, *first)), (prod(m[i] for i in rows), k))
    right = xp.reshape(arranged(b, (*second, *columns)), (k, prod(n[j] for j in columns)))
    return xp.reshape(xp.matmul(left, right), (*(m[i] for i in rows), *(n[j] for j in columns)))


def _folded(x: Any, axis: int) -> Any:
    return in_dtype(xp.sum(x, axis=(axis,), keepdims=True), x.dtype)


def arranged(x: Any, axes: Any) -> Any:
    """Permute the axes; return the tensor itself if the order does not change."""
    return x if list(axes) == list(range(len(axes))) else xp.permute_dims(x, axes=tuple(axes))


def _dot_axes(a: Any, b: Any, dims: Any) -> tuple[list[int], list[int]]:
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.array.ndim, b.array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(a.array.ndim - dims, a.array.ndim)), list(range(dims))
    if not isinstance(dims, (tuple, list)):
        raise RuntimeError("tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
                           f"containing two lists, but got dims={dims}")
    one, other = dims
    first, second = ([d] if isinstance(d, int) else list(d) for d in (one, other))
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    return [normalize_dim(d, a.array.ndim) for d in first], [normalize_dim(d, b.array.ndim) for d in second]


@public(out=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker's product: every element of `input` times the whole of `other`.

    Input: (n₁, …), (m₁, …); missing axes count as 1, the dtypes promote
    Output: (n₁·m₁, …)
    https://pytorch.org/docs → torch.kron

    >>> import tensorgrad as torch
    >>> torch.kron(torch.tensor([1, 2]), torch.tensor([1, 10]))
    tensor([ 1, 10,  2, 20])
    """
    ndim = max(input.array.ndim, other.array.ndim)
    m, n = ((1,) * (ndim - t.array.ndim) + t.array.shape for t in (input, other))
    left, right = (xp.reshape(t, tuple(size for pair in pairs for size in pair)) for t, pairs in (
        (input, ((i, 1) for i in m)), (other, ((1, j) for j in n))))
    return xp.reshape(xp.multiply(left, right), tuple(i * j for i, j in zip(m, n, strict=True)))


@public(out="same")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """input × other of vectors with three elements along an axis: by default the first such axis.

    Input: two tensors of one dtype and number of axes, which broadcast, each of size 3 along dim
    Output: the broadcast shape
    Errors: RuntimeError if an axis is not of size 3, there is no such axis for the default, or the numbers of axes or
        the dtypes differ; IndexError if dim is out of range; NotImplementedError for booleans
    https://pytorch.org/docs → torch.cross

    >>> import tensorgrad as torch
    >>> torch.cross(torch.tensor([1., 0., 0.]), torch.tensor([0., 1., 0.]), dim=0)
    tensor([0., 0., 1.])
    """
    check_tensor(other, "cross", "other", 2)
    if input.array.ndim != other.array.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if dim is None:
        warn("Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly "
             "or simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of "
             "linalg.cross in a future release.")
        dim = next((i for i, n in enumerate(input.array.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    axis = normalize_dim(dim, input.array.ndim)
    sizes = [t.array.shape[axis] for t in (input, other)]
    if sizes != [3, 3]:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    input, other = _broadcast(input, other)
    if input.array.dtype.kind == "b":
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    if input.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {SCALAR_TYPES[input.dtype.name]} but found "
                           f"{SCALAR_TYPES[other.dtype.name]}")
    return xp.cross(input, other, axis=axis)


def _broadcast(*tensors: Any) -> Any:
    from .shape import broadcast_tensors
    return broadcast_tensors(*tensors)


# ── distances ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@public(method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """out[…, i, j] = ‖x1[…, i] − x2[…, j]‖ₚ.

    Input: (*, n, d), (*, m, d), floating point, of one dtype; leading axes broadcast
    Output: (*, n, m)
    Errors: RuntimeError if an operand has less than two axes, d or the dtypes differ, they are not floating point, or p
        is negative; ValueError for another compute_mode
    https://pytorch.org/docs → torch.cdist

    >>> import tensorgrad as torch
    >>> torch.cdist(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode is not None and compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    _check_points(x1, x2, p)
    mode = 0 if compute_mode is None else modes.index(compute_mode)
    many = max(x1.array.shape[-2], x2.array.shape[-2]) > 25
    if p == 2 and (mode == 1 or mode == 0 and many):      # the matrix product loses digits, but not time
        return xp.euclidean_distance(x1, x2)
    away = xp.subtract(xp.expand_dims(x1, -2), xp.expand_dims(x2, -3))
    return xp.vector_norm(away, ord=float(p), axis=(away.array.ndim - 1,))


def _check_points(x1: Any, x2: Any, p: float) -> None:
    for name, t in (("X1", x1), ("X2", x2)):
        if t.array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {t.array.ndim}D")
    for name, t in (("X1", x1), ("X2", x2)):
        if t.array.dtype.kind != "f":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {SCALAR_TYPES[t.dtype.name]}")
    if x1.array.shape[-1] != x2.array.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.array.shape[-1]} X2: "
                           f"{x2.array.shape[-1]}")
    if x1.array.dtype != x2.array.dtype:
        raise RuntimeError(f"expected scalar type {SCALAR_TYPES[x1.dtype.name]} but found "
                           f"{SCALAR_TYPES[x2.dtype.name]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
