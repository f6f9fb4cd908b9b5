"""A hash of a tensor's values."""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .._tensor.torch_function import namespaced
from ..core.dispatch import SCALAR_TYPES, fresh
from ._arguments import check_tensor, normalize_dims
from ._register import write_out


def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0, out: Any = None) -> Tensor:
    """XOR of the elements' bits, widened to 64: floats as float64, integers and bools as int64.

    Input: (*), real; dim, the axes that are reduced, all by default; mode 0
    Output: (), or the shape without the axes of dim, or with 1 in their place if keepdim; uint64
    Errors: RuntimeError for another mode, for no elements without dim, and for axes named twice; IndexError for dim out
        of range; NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.hash_tensor

    >>> import tensorgrad as torch
    >>> torch.hash_tensor(torch.tensor([[1, 2], [3, 5]]), 1).tolist()
    [3, 6]
    """
    check_tensor(input, "hash_tensor", "input", 1)
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    axes = normalize_dims(dim, input.dim()) if dim not in ((), [], None) else tuple(range(input.dim()))
    if not input.numel() and dim in ((), [], None):
        raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the "
                           "reduction dim with the 'dim' argument.")
    for axis in axes if input.dim() else ():
        if not input.shape[axis]:
            raise IndexError(f"hash_tensor: Expected reduction dim {axis} to have non-zero size.")
    if input.dtype.is_complex:
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    wide = (input.detach().double() if input.is_floating_point() else input.detach().long()).contiguous()
    backend = type(wide._storage)
    bits = wide.array.view("uint64")
    result = backend.module.bitwise_xor.reduce(bits, axis=axes, keepdims=keepdim) if input.dim() else bits
    made: Any = fresh(backend.module.asarray(result), backend)
    return made if out is None else write_out(made, out, True, "hash_tensor")  # type: ignore[no-any-return]


globals().update(namespaced({"hash_tensor": hash_tensor}, __name__.partition(".")[0]))
