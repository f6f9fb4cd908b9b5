"""Checks of the arguments of collectives, with the errors of PyTorch's Gloo."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..dtype import FROM_NUMPY, SCALAR_TYPES
from .operations import ReduceOp, supports_complex

__all__ = ["NAMES", "check_list", "checked_op", "checked_root", "label", "parts", "unlike"]

LABELS = {"gloo": "Gloo", "mpi": "MPI", "nccl": "NCCL"}         # in PyTorch's messages


class _Names(dict[Any, tuple[str]]):
    """NumPy dtype → a tuple of PyTorch's name for it."""

    def __missing__(self, dtype: Any) -> tuple[str]:
        self[dtype] = found = (SCALAR_TYPES[FROM_NUMPY[dtype].name],)
        return found


NAMES = _Names()


def label(group: Any) -> str:
    """The name of a group's backend in messages."""
    return LABELS.get(group.name(), group.name())


def checked_op(op: Any, array: Any, what: str) -> ReduceOp:
    """The reduction of an argument, or of PyTorch's options. Errors: PyTorch's for one that the dtype does not have."""
    op = getattr(op, "reduceOp", op)
    if op.__class__ is not ReduceOp:
        raise TypeError(f"{what}(): incompatible function arguments. The reduction must be a "
                        f"torch.distributed.ReduceOp, not {op!r}")
    if op is ReduceOp.AVG and array.dtype.kind in "biu" and isinstance(array, numpy.ndarray):
        raise RuntimeError(f"result type Float can't be cast to the desired output type {NAMES[array.dtype][0]}")
    if op > ReduceOp.AVG and array.dtype.kind not in "biu":
        if op >= ReduceOp.BAND:
            raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
        if array.dtype.kind == "c" and not supports_complex(op):
            raise ValueError(f"{what} does not support {op} on complex tensors")
    return op


def checked_root(group: Any, root: Any, kind: str) -> int:
    """The root of an argument, or of PyTorch's options. Errors: RuntimeError for none of the ranks."""
    root = getattr(root, "rootRank", root)
    if not 0 <= root < group.size():
        raise RuntimeError(f"ProcessGroup{label(group)}::{kind}: invalid root rank: {root}")
    return root


def check_list(group: Any, kind: str, name: str, tensors: Any, like: Any) -> None:
    """Check a list of one tensor per rank. Errors: RuntimeError for another length, shape or dtype."""
    size = group.size()
    if len(tensors) != size:
        begins, count = f"ProcessGroup{label(group)}::{kind}:", len(tensors)
        raise RuntimeError(
            f"{begins} invalid output tensor list at index 0 (expected length {size}, got {count})"
            if kind == "allgather" else
            f"invalid {name} tensor list size, must be world size\nIt has {count} tensors for {size} ranks"
            if kind == "reduce_scatter" else
            f"{begins} Incorrect {name} list size {count}. {name.capitalize()} list size should be {size}, same as "
            f"size of the process group.")
    for i, tensor in enumerate(tensors):
        if tensor.array.shape != like.array.shape or tensor.array.dtype != like.array.dtype:
            raise unlike(group, kind, i, like, tensor)


def unlike(group: Any, kind: str, i: int, like: Any, tensor: Any) -> RuntimeError:
    """The error of a tensor that has another shape or dtype than another."""
    arrays = like.array, tensor.array
    what, said = ("type", [NAMES[a.dtype][0] for a in arrays]) if arrays[0].dtype != arrays[1].dtype else (
        "size", [f"({', '.join(map(str, a.shape))})" for a in arrays])
    return RuntimeError(f"ProcessGroup{label(group)}::{kind}: invalid tensor {what} at index {i} (expected {said[0]}, "
                        f"got {said[1]})")


def parts(tensor: Any, sizes: Sequence[int] | None, ranks: int) -> list[int]:
    """The numbers of elements of the parts of a tensor's rows. Errors: RuntimeError if the sizes do not add up."""
    array = tensor.array
    rows = array.shape[0] if array.ndim else 0
    if not sizes:
        if rows % ranks:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        return [array.size // ranks] * ranks
    if len(sizes) != ranks:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != rows:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return [size * (array.size // rows if rows else 0) for size in sizes]
