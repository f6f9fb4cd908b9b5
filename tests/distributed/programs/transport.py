"""Compare what the ranks of MPI get from each method of the transport with what NumPy makes of the arrays of all ranks:
for 2 ranks or more.
"""
import sys
from datetime import timedelta
from functools import reduce

import numpy as np

from tensorgrad import bfloat16, float8_e5m2
from tensorgrad.distributed.errors import DistBackendError, TimedOut
from tensorgrad.distributed.operations import ReduceOp, combine
from tensorgrad.distributed.transport import mpi, mpi_types
from tensorgrad.distributed.transport.base import Call
from tensorgrad.runtime import small_floats

LIMIT = timedelta(seconds=60)
DTYPES = ([np.dtype(name) for name in "f4 f8 f2 c8 c16 i1 i2 i4 i8 u1 u2 u4 u8 ?".split()]
          + [bfloat16.numpy, float8_e5m2.numpy])
NATURAL = [np.dtype(name) for name in ("f4", "i8", "?", "c8")] + [bfloat16.numpy]


def array(rank, dtype, size, seed=0):
    """The numbers of a rank: every rank can work out those of all others."""
    numbers = np.random.default_rng([rank, size, seed]).standard_normal(size) * 3
    if dtype.kind == "c":
        return (numbers + 1j * numbers[::-1]).astype(dtype)
    return small_floats.convert(np.abs(numbers) > 2 if dtype.kind == "b" else np.abs(numbers) * 5 if dtype.kind == "u"
                                else numbers * 5, dtype)


def call(later):
    return Call("TEST", 0, (), (), "cpu", later=later)


def reduced(arrays, op):
    """The reduction by NumPy, in the order of the ranks."""
    with np.errstate(all="ignore"):
        total = reduce(combine(op), arrays)
    if op is not ReduceOp.AVG:
        return total
    if total.dtype.kind in "iu":
        return np.trunc(total.astype(object) / len(arrays)).astype(total.dtype)
    return small_floats.combine(np.divide, total, len(arrays))


def allowed(dtype, op):
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR):
        return dtype.kind in "biu"
    return not (op in (ReduceOp.MIN, ReduceOp.MAX) and dtype.kind == "c" or op is ReduceOp.AVG and dtype.kind == "b")


def check(found, expected, dtype, what):
    assert found.dtype == expected.dtype == dtype, (what, found.dtype, expected.dtype)
    if dtype.name in ("float32", "float64", "complex64", "complex128"):       # MPI may add in any order
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=str(what))
    else:
        assert found.tobytes() == expected.tobytes(), (what, found, expected)


def refused(error, function, text=""):
    try:
        function()
    except error as raised:
        assert text in str(raised), raised
        return
    raise AssertionError(f"no {error} was raised")


def reductions(t, dtypes, sizes, later):
    for dtype in dtypes:
        for op in ReduceOp:
            if not allowed(dtype, op):
                refused((TypeError, RuntimeError, ValueError),
                        lambda dtype=dtype, op=op: t.allreduce(call(later), array(0, dtype, 3), op))
                continue
            for size in sizes:
                what = dtype, op, size, later
                arrays = [array(rank, dtype, size) for rank in range(t.size)]
                expected = reduced(arrays, op)
                own = arrays[t.rank].copy()
                assert t.allreduce(call(later), own, op).wait()
                check(own, expected, dtype, what)
                own = arrays[t.rank].copy()
                root = size % t.size
                t.reduce(call(later), own, root, op).wait()
                check(own, expected if t.rank == root else arrays[t.rank], dtype, what)
                arrays = [array(rank, dtype, size * t.size, 1) for rank in range(t.size)]
                out, own = np.zeros(size, dtype), arrays[t.rank].copy()
                t.reduce_scatter(call(later), out, own, op).wait()
                check(out, reduced(arrays, op)[t.rank * size:(t.rank + 1) * size], dtype, what)
                check(own, arrays[t.rank], dtype, what)


def copies(t, dtypes, sizes, later):
    ranks = range(t.size)
    for dtype in dtypes:
        for size in sizes:
            what, root = (dtype, size, later), (size + 1) % t.size
            arrays = [array(rank, dtype, size) for rank in ranks]
            whole = np.concatenate(arrays)
            own = arrays[t.rank].copy()
            t.broadcast(call(later), own, root).wait()
            check(own, arrays[root], dtype, what)
            out = np.zeros(size * t.size, dtype)
            t.allgather(call(later), out, arrays[t.rank]).wait()
            check(out, whole, dtype, what)
            out = np.zeros(size * t.size, dtype) if t.rank == root else None
            t.gather(call(later), out, arrays[t.rank], root).wait()
            if out is not None:
                check(out, whole, dtype, what)
            own = np.zeros(size, dtype)
            t.scatter(call(later), own, whole if t.rank == root else None, root).wait()
            check(own, arrays[t.rank], dtype, what)
            # uneven, different on each rank
            counts = [[(source + 2 * target) % 3 + size for target in ranks] for source in ranks]
            parts = [[array(source, dtype, counts[source][target], target) for target in ranks] for source in ranks]
            taken = [counts[source][t.rank] for source in ranks]
            out = np.zeros(sum(taken), dtype)
            t.alltoall(call(later), out, np.concatenate(parts[t.rank]), taken, counts[t.rank]).wait()
            check(out, np.concatenate([parts[source][t.rank] for source in ranks]), dtype, what)
    assert t.barrier(call(later)).wait()


def messages(t, dtypes, sizes, later):
    after, before = (t.rank + 1) % t.size, (t.rank - 1) % t.size
    for dtype in dtypes:
        for size in sizes:
            places = [np.zeros(size, dtype) for _ in range(2)]
            # in another order than they are sent
            receives = [t.receive(place, before, tag, True) for tag, place in zip((7, 3), places)]
            sends = [t.send(array(t.rank, dtype, size, tag), after, tag, True) for tag in (3, 7)]
            assert all(work.wait() for work in sends + receives)
            assert [work.source_rank() for work in receives] == [before, before]
            check(places[0], array(before, dtype, size, 7), dtype, (dtype, size))
            check(places[1], array(before, dtype, size, 3), dtype, (dtype, size))
    if t.rank == 0:         # from whoever comes first
        sources = []
        for _ in range(t.size - 1):
            place = np.zeros(5, np.int16)
            work = t.receive(place, None, 9, later)
            work.wait()
            sources.append(work.source_rank())
            check(place, array(sources[-1], np.dtype("i2"), 5), np.dtype("i2"), sources)
        assert sorted(sources) == list(range(1, t.size)), sources
    else:
        t.send(array(t.rank, np.dtype("i2"), 5), 0, 9, later).wait()
    t.barrier(call(False))


def wrong_messages(t):
    for tag in (-1, t.last_tag):
        refused(ValueError, lambda tag=tag: t.send(np.zeros(1), 0, tag, False), "Tag must be nonnegative")
    if t.rank < 2:
        other = 1 - t.rank
        for later in False, True:
            sent = t.send(np.ones(2, np.float32), other, 0, True)
            refused(DistBackendError, lambda later=later: t.receive(np.zeros(3, np.float32), other, 0, later).wait(),
                    "8 bytes came")
            sent.wait()
    t.barrier(call(False))


def under_way(t):
    """Works that end in any order, whoever asks first; works that nobody waits for; time limits of one `wait`."""
    dtypes = [np.dtype(np.float16), np.dtype("f4"), bfloat16.numpy, np.dtype("i4")] * 3
    arrays = [[array(rank, dtype, 1000, seed) for rank in range(t.size)] for seed, dtype in enumerate(dtypes)]
    own = [some[t.rank].copy() for some in arrays]
    works = [t.allreduce(call(True), one, ReduceOp.MAX if seed % 2 else ReduceOp.SUM) for seed, one in enumerate(own)]
    said = []
    for number, work in enumerate(works):
        work.then(lambda number=number: said.append(number))
    order = np.random.default_rng(t.rank).permutation(len(works))       # not alike on all ranks
    between = np.ones(3, np.float16)
    t.allreduce(call(False), between, ReduceOp.SUM)
    assert (between == t.size).all()
    for number in order[:6]:
        while t.rank and not works[number].is_completed():
            pass
        assert works[number].wait()
    for number in order[6:]:
        assert works[number].wait(timedelta(seconds=50)) and works[number].is_success()
    for seed, (some, one) in enumerate(zip(arrays, own)):
        check(one, reduced(some, ReduceOp.MAX if seed % 2 else ReduceOp.SUM), one.dtype, seed)
    assert sorted(said) == list(range(len(works))) and not t.order.works
    for dtype in np.dtype("f4"), np.dtype(np.float16):                     # ranks need not agree on who waits at once
        some, one, out = ([array(t.rank, dtype, 50, turn) for turn in (0, 1)], array(t.rank, dtype, 50),
                          np.zeros(50 * t.size, dtype))
        works = [t.allreduce(call(t.rank % 2 == turn), some[turn], ReduceOp.SUM) for turn in (0, 1)]
        works += [t.broadcast(call(t.rank == 0), one, 1), t.allgather(call(t.rank == 1), out, array(t.rank, dtype, 50))]
        for work in works:
            work.wait()
        check(some[1], reduced([array(rank, dtype, 50, 1) for rank in range(t.size)], ReduceOp.SUM), dtype, "mixed")
        check(out[:50], array(0, dtype, 50), dtype, "mixed")
        works = [t.allreduce(call(True), some[0], ReduceOp.SUM)]
        # a barrier before the wait on one rank, after it on the others
        for late in (True, False) if t.rank else (False, True):
            works[0].wait() if late else t.barrier(call(False))
    for _ in range(100):
        t.broadcast(call(True), np.arange(1000.), 0)                       # forgotten at once, arrays and all
    t.barrier(call(False))
    place = np.zeros(1)
    work = t.receive(place, (t.rank - 1) % t.size, 5, True)
    refused(TimedOut, lambda: work.wait(timedelta(milliseconds=20)), "Timed out waiting 20ms for RECV")
    assert not work.is_completed()
    t.barrier(call(False))
    t.send(np.ones(1), (t.rank + 1) % t.size, 5, False)
    assert work.wait() and place[0] == 1
    total = np.array([np.nan if t.rank == t.size - 1 else 1.], np.float32)
    t.allreduce(call(False), total, ReduceOp.MIN)
    assert np.isnan(total).all()                                        # on all ranks alike


def subsets(t):
    last = t.split(list(range(t.size - 1, 0, -1)), "backwards") if t.rank else None
    if last is not None:
        total = np.array([t.rank])
        last.allreduce(call(False), total, ReduceOp.SUM)
        assert (last.size, last.rank, total[0]) == (t.size - 1, t.size - 1 - t.rank, sum(range(t.size)))
        last.close()
    pair = mpi.create(None, -1, -1, LIMIT, f"pair {t.rank // 2}", ranks=[t.rank // 2 * 2, t.rank // 2 * 2 + 1])
    total = np.array([t.rank])
    pair.allreduce(call(True), total, ReduceOp.SUM).wait()
    assert pair.size == 2 and total[0] == t.rank // 2 * 4 + 1
    pair.close()


def everything(t):
    few = t.size > 2            # than which there are hardly more cores
    for later in False, True:
        reductions(t, NATURAL if few and later else DTYPES, [5] if later else [33] if few else [0, 1, 33], later)
        copies(t, NATURAL if later else DTYPES, [4] if few else [0, 4], later)
        messages(t, NATURAL, [6] if few else [0, 6], later)
    wrong_messages(t)
    under_way(t)
    subsets(t)
    before = mpi_types.LIMIT, mpi_types.BIG
    mpi_types.LIMIT, mpi_types.BIG = 20, 8         # as if the arrays were longer than MPI can count
    for later in False, True:
        reductions(t, NATURAL, [50] if few else [21, 50], later)
        copies(t, NATURAL, [50] if few else [21, 50], later)
        messages(t, NATURAL, [50] if few else [21, 50], later)
    mpi_types.LIMIT, mpi_types.BIG = before
    mpi_types.free_types()


def main():
    hook = sys.excepthook
    for again in range(2):
        t = mpi.create(None, -1, -1, LIMIT, f"world {again}")
        assert sys.excepthook is not hook
        if not again:
            everything(t)
        t.barrier(call(False))
        waiting = t.receive(np.zeros(1), 0, 0, True)        # is cancelled
        t.close()
        t.close()
        refused(DistBackendError, waiting.wait, "destroyed")
        refused(DistBackendError, lambda t=t: t.allreduce(call(False), np.zeros(1), ReduceOp.SUM), "destroyed")
    assert sys.excepthook is hook
