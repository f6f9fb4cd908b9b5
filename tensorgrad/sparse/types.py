"""torch.sparse.FloatTensor and its like: constructors of PyTorch's first years."""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..api._sparse import empty_sparse
from ..api.sparse import sparse_coo_tensor
from ..dtype import NAMED, sparse_coo

NAMES = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16",
         "IntTensor": "int32", "LongTensor": "int64", "ShortTensor": "int16", "CharTensor": "int8",
         "ByteTensor": "uint8"}


class SparseType(type):
    """The class of these types: calling one makes a sparse_coo tensor, and instances are those of its dtype."""

    dtype: Any

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        if not args or all(isinstance(n, int) for n in args):
            size = args or (0,)
        elif len(args) == 1 and isinstance(args[0], (tuple, list)):
            size = tuple(args[0])
        else:
            return sparse_coo_tensor(*args, device=device)
        return empty_sparse(size, sparse_coo, cls.dtype, device)

    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, Tensor) and thing.layout is sparse_coo and thing.dtype is cls.dtype


TYPES: dict[str, Any] = {name: SparseType(name, (), {"__module__": "torch.sparse", "__doc__": (
    "Make a sparse_coo tensor: of sizes, or of indices, values and a size, as torch.sparse_coo_tensor does. "
    "https://pytorch.org/docs → torch.sparse_coo_tensor"), "dtype": NAMED[dtype]}) for name, dtype in NAMES.items()}
