"""Products of matrices of 8 bits, and products with an activation: what quantized layers call in PyTorch."""
from __future__ import annotations

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import xp
from ._arguments import normalize_dim
from ._kinds import Number
from ._register import public
from .activation import relu
from .matrix import addmm, matmul

NAMES = {"float32": "float", "float64": "double", "int32": "int", "int64": "long int", "int16": "short int",
         "int8": "signed char", "uint8": "unsigned char", "bool": "bool"}        # PyTorch's, in these errors


@public(method=False, out="same", name="_int_mm")
def int_mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices of int8, in int32 (torch._int_mm).

    Input: input (n, k) of int8 or uint8, mat2 (k, m) of int8
    Output: (n, m) of int32
    Errors: RuntimeError for other dtypes, numbers of dimensions, or sizes that do not fit

    >>> import tensorgrad as torch
    >>> a = torch.full((1, 300), 127, dtype=torch.int8)
    >>> torch._int_mm(a, a.t())
    tensor([[4838700]], dtype=torch.int32)
    """
    if input.ndim != 2:
        raise RuntimeError(f"int_mm_out_cpu: Expected self to be of dimension 2 but got {input.ndim}")
    normalize_dim(1, mat2.ndim)
    for name, t, kinds, wanted in (("self", input, ("int8", "uint8"), "int8 or uint8"),
                                   ("mat2", mat2, ("int8",), "of type int8")):
        if t.dtype.name not in kinds:
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} dtype to be {wanted} but got "
                               f"{NAMES.get(t.dtype.name, t.dtype.name)}")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {input.shape[1]} and "
                           f"{mat2.shape[0]}")
    # BLAS, exact: sums stay below 2⁵³ for all sizes that memory holds
    return matmul(input.double(), mat2.double()).to(dtypes.int64).to(dtypes.int32)


@public(method=False, name="_weight_int8pack_mm")
def weight_int8pack_mm(input: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """input · mat2ᵀ · scales, for weights of int8 with a scale for each output (torch._weight_int8pack_mm).

    Input: input (n, k) of float32 or 16 bits, mat2 (m, k) of int8, scales (m) of the input's dtype
    Output: (n, m) in the input's dtype
    Errors: RuntimeError for other dtypes, or sizes that do not fit

    >>> import tensorgrad as torch
    >>> torch._weight_int8pack_mm(torch.ones(1, 2), torch.tensor([[3, 4]], dtype=torch.int8), torch.tensor([0.5]))
    tensor([[3.5000]])
    """
    where = "_weight_int8pack_mm_cpu : "
    normalize_dim(1, input.ndim)
    if input.dtype not in (dtypes.float32, dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(f"{where}expect A to be either 32-bit or 16-bit float tensor.")
    if input.ndim != 2 or input.stride(1) != 1:
        raise RuntimeError(f"{where}A must be contiguous on the last dimension.")
    if mat2.dtype is not dtypes.int8:
        raise RuntimeError(f"{where}expect B to be int8 tensor.")
    if mat2.ndim != 2 or mat2.shape[1] != input.shape[1]:
        raise RuntimeError(f"{where}expect B.size(1) == {input.shape[1]}")
    if scales.shape != mat2.shape[:1]:
        raise RuntimeError(f"{where}expect scales to be 1d tensor with size {mat2.shape[0]}")
    if scales.dtype is not input.dtype:
        kinds = [dtypes.SCALAR_TYPES[t.dtype.name] for t in (input, scales)]
        raise RuntimeError(f"expected scalar type {kinds[0]} but found {kinds[1]}")
    return (matmul(input.float(), mat2.float().t()) * scales.float()).to(input.dtype)


@public(method=False, out="same", name="_addmm_activation")
def addmm_activation(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1,
                     use_gelu: bool = False) -> Tensor:
    """`addmm`, and relu of it, or gelu (torch._addmm_activation).

    Input: input broadcastable to (n, m), mat1 (n, k), mat2 (k, m), of one dtype
    Output: (n, m)
    Errors: as `addmm`

    >>> import tensorgrad as torch
    >>> torch._addmm_activation(torch.zeros(2), torch.eye(2), torch.tensor([[1., -2.], [3., 4.]]))
    tensor([[1., 0.],
            [3., 4.]])
    """
    out = addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return xp.gelu(out) if use_gelu else relu(out)
