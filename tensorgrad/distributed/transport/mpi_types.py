"""MPI's names of NumPy's types and of reductions, and the pairs of them that MPI reduces as NumPy would."""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ...runtime import small_floats
from ..operations import ReduceOp, combine

__all__ = ["average", "fold", "free_types", "message", "native"]

LIMIT = 2 ** 31 - 1             # elements of one message: MPI before version 4 counts in C's int
BIG = 2 ** 20                   # elements of one block of a longer message
WORDS: dict[int, np.dtype[Any]] = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}


@cache
def _units() -> dict[int, Any]:
    from mpi4py import MPI  # type: ignore[import-not-found,import-untyped,unused-ignore]
    return {1: MPI.BYTE, 2: MPI.INT16_T, 4: MPI.INT32_T, 8: MPI.INT64_T, 16: MPI.C_DOUBLE_COMPLEX}


def message(array: Any, count: int | None = None) -> tuple[Any, int, Any]:
    """The memory of an array, or `count` elements of it, as MPI takes it for a message: buffer, count, type."""
    dtype = array.dtype
    if dtype.kind == "V":                           # bfloat16, float8, which MPI does not know
        array = array.view(WORDS[dtype.itemsize])
    count = array.size if count is None else count
    if count > LIMIT:
        return array, 1, _long(count, dtype.itemsize)
    return array, count, _units()[dtype.itemsize]


_longs: dict[tuple[int, int], Any] = {}


def _long(count: int, itemsize: int) -> Any:
    """The type of `count` elements, more than fit into an int, as one: blocks of them, and the rest."""
    from mpi4py import MPI
    if (count, itemsize) not in _longs:
        unit = _units()[itemsize]
        blocks, rest = divmod(count, BIG)
        block = unit.Create_contiguous(BIG)
        _longs[count, itemsize] = MPI.Datatype.Create_struct([blocks, rest], [0, blocks * BIG * itemsize],
                                                             [block, unit]).Commit()
        block.Free()
    return _longs[count, itemsize]


def free_types() -> None:
    """Give back the types of long messages. Messages under way keep theirs."""
    while _longs:
        _longs.popitem()[1].Free()


# ── reductions ────────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def native(dtype: np.dtype[Any], op: ReduceOp) -> tuple[Any, Any, np.dtype[Any] | None] | None:
    """MPI's type and operation, and the dtype to view the array as, if any; None where MPI lacks the type, or its
    results may differ from rank to rank.

    Errors: PyTorch's, for a reduction that the dtype does not have.

    Sums of complex numbers are sums of their parts, and bits of booleans are those of bytes. The smaller or larger of a
    number and NaN depends on their order in MPI, which is not alike on all ranks.
    """
    from mpi4py import MPI
    check_reduction(dtype, op)
    kind = dtype.kind
    if kind == "b":
        return MPI.BYTE, {"OR": MPI.BOR, "AND": MPI.BAND, "XOR": MPI.BXOR}[BOOLEAN[op]], None
    if kind == "c" and op in (ReduceOp.SUM, ReduceOp.AVG):
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return native(part, op)[0], MPI.SUM, part  # type: ignore[index]
    known = {"f4": MPI.FLOAT, "f8": MPI.DOUBLE, "i1": MPI.INT8_T, "i2": MPI.INT16_T, "i4": MPI.INT32_T,
             "i8": MPI.INT64_T, "u1": MPI.UINT8_T, "u2": MPI.UINT16_T, "u4": MPI.UINT32_T,
             "u8": MPI.UINT64_T}.get(f"{kind}{dtype.itemsize}")
    if known is None or kind == "f" and op in (ReduceOp.MIN, ReduceOp.MAX):
        return None
    name = {ReduceOp.AVG: "SUM", ReduceOp.PRODUCT: "PROD"}.get(op, op.name)
    return known, getattr(MPI, name), None


BOOLEAN = {ReduceOp.SUM: "OR", ReduceOp.MAX: "OR", ReduceOp.BOR: "OR", ReduceOp.PRODUCT: "AND", ReduceOp.MIN: "AND",
           ReduceOp.BAND: "AND",
           ReduceOp.BXOR: "XOR"}


def check_reduction(dtype: np.dtype[Any], op: ReduceOp) -> None:
    """Raise as PyTorch does for a reduction that the dtype does not have."""
    if dtype.kind == "b" and op is ReduceOp.AVG:
        raise TypeError("Cannot use ReduceOp.AVG with Boolean inputs")
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and dtype.kind not in "biu":
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op in (ReduceOp.MIN, ReduceOp.MAX) and dtype.kind == "c":
        raise ValueError(f"all_reduce does not support {op} on complex tensors")


def fold(parts: Any, op: ReduceOp, out: Any) -> None:
    """Reduce the rows of `parts`, one of each rank, in the order of the ranks."""
    join = combine(op)
    with np.errstate(all="ignore"):
        out[...] = parts[0]
        for part in parts[1:]:
            join(out, part, out=out)
        if op is ReduceOp.AVG:
            average(out, len(parts))


def average(total: Any, size: int) -> None:
    """Divide a sum by the number of ranks, in place; integers towards zero, as NCCL does."""
    if total.dtype.kind in "iu":
        below = (total < 0) & (total % size != 0)
        np.floor_divide(total, size, out=total)
        np.add(total, below, out=total, casting="unsafe")
    else:
        small_floats.combine(np.divide, total, size, out=total)
