"""Names of calls in profiles: those of PyTorch's operators, such as `aten::add`.

A profile sees calls of public functions, and names each after the operator that PyTorch runs for it.
"""
from __future__ import annotations

from typing import Any

from ..core.tape import TensorBase
from ..overrides import resolve_name

# queries that run no operator, and backward, whose steps have entries of their own
SILENT = frozenset(
    "backward __array__ __array_wrap__ __deepcopy__ __dlpack__ __dlpack_device__ __format__ __len__ __repr__ _is_view "
    "as_subclass data_ptr dim dim_order element_size get_device is_complex is_conj is_contiguous is_floating_point "
    "is_inference is_neg is_shared is_storage is_tensor ndimension nelement numel register_hook "
    "register_post_accumulate_grad_hook requires_grad_ retain_grad share_memory_ size storage storage_offset "
    "storage_type stride typename untyped_storage".split())
PROPERTIES = {"T": "numpy_T", "mT": "mT", "H": "matrix_H", "mH": "mH", "real": "real", "imag": "imag"}
RENAMED = {"cross_entropy": "cross_entropy_loss", "nll_loss": "nll_loss_nd", "logsigmoid": "log_sigmoid",
           "fold": "col2im", "grid_sample": "grid_sampler", "affine_grid": "affine_grid_generator",
           "numpy": "detach", "tolist": "item", "__bool__": "is_nonzero", "__abs__": "abs", "__neg__": "neg",
           "__invert__": "bitwise_not", "__rsub__": "rsub", "__rpow__": "pow", "__rtruediv__": "div",
           "__rdiv__": "div", "__reversed__": "flip", "__pos__": "positive", "__truediv__": "div",
           "__itruediv__": "div_", "__mod__": "remainder", "__imod__": "remainder_", "__rmod__": "remainder",
           "__floordiv__": "floor_divide", "__rfloordiv__": "floor_divide", "__ifloordiv__": "floor_divide_",
           **dict.fromkeys("__float__ __int__ __index__ __complex__".split(), "item"),
           **dict.fromkeys("as_tensor asarray from_dlpack from_numpy frombuffer new_tensor tensor".split(),
                           "lift_fresh"),
           **dict.fromkeys("bfloat16 bool byte cdouble cfloat char cpu cuda double float half int long short type "
                           "type_as".split(), "to")}
# functions that PyTorch writes in Python: they have no operator of their own
COMPOSED = frozenset(
    "dropout1d dropout2d dropout3d gaussian_nll_loss gumbel_softmax interpolate linear_cross_entropy "
    "local_response_norm lp_pool1d lp_pool2d lp_pool3d lu max_unpool1d multi_head_attention_forward "
    "multilabel_soft_margin_loss normalize pca_lowrank svd_lowrank triplet_margin_with_distance_loss unique "
    "unravel_index upsample upsample_bilinear upsample_nearest".split())


def name_of(function: Any, args: tuple[Any, ...]) -> str | None:
    """Return the name of a call; None if it has no entry.

    >>> import tensorgrad as torch
    >>> x = torch.ones(2, 2)
    >>> [name_of(f, (x, 0)) for f in (torch.mm, torch.Tensor.__add__, torch.Tensor.__getitem__, torch.Tensor.size)]
    ['aten::mm', 'aten::add', 'aten::select', None]
    """
    name: str = getattr(function, "__name__", "?")
    if name in SILENT or name == "__set__":
        return None
    if name == "__get__":
        found = PROPERTIES.get((resolve_name(function) or "").split(".")[-2:][0])
        return None if found is None else f"aten::{found}"
    if name in COMPOSED:
        return resolve_name(function) or name
    if name in ("__getitem__", "__setitem__"):
        return f"aten::{_indexing(args[1], name == '__setitem__')}"
    if name in RENAMED:
        return f"aten::{RENAMED[name]}"
    if name.startswith("__"):
        bare = name.strip("_")
        return f"aten::{bare[1:]}_" if bare[0] == "i" else f"aten::{bare.removeprefix('r')}"
    return f"aten::{name}"


def _indexing(index: Any, writes: bool) -> str:
    """Return the operator of an index: of a list or tensor, else of a number, else of slices."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, (TensorBase, list)) for part in parts):
        return "index_put_" if writes else "index"
    return "copy_" if writes else "select" if any(type(part) is int for part in parts) else "slice"
