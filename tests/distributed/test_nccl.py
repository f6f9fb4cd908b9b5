"""NCCL's transport: over a stand-in for CuPy, with a device for each of several threads, and on a GPU where there is
one.
"""
import threading
import time
from datetime import timedelta

import pytest
from support import has_gpu, needed

ml_dtypes = needed("ml_dtypes")

import numpy as np  # noqa: E402
from cupy_stand_in import Array, AtOnce, Stream, stand_in  # noqa: E402
from ranks import as_threads  # noqa: E402

from tensorgrad.distributed.errors import DistBackendError, TimedOut  # noqa: E402
from tensorgrad.distributed.operations import ReduceOp  # noqa: E402
from tensorgrad.distributed.stores import HashStore  # noqa: E402
from tensorgrad.distributed.transport import nccl  # noqa: E402
from tensorgrad.distributed.transport.base import Call  # noqa: E402

# Names in cupy.cuda.nccl, arguments, values, from nccl.pyx and nccl.pxd of CuPy 14.2.0. CuPy 13 differs in the
#     type of a communicator's name.
TABLE = {
    "NCCL_SUM": 0, "NCCL_PROD": 1, "NCCL_MAX": 2, "NCCL_MIN": 3, "NCCL_AVG": 4,
    "NCCL_INT8": 0, "NCCL_CHAR": 0, "NCCL_UINT8": 1, "NCCL_INT32": 2, "NCCL_INT": 2, "NCCL_UINT32": 3, "NCCL_INT64": 4,
    "NCCL_UINT64": 5, "NCCL_FLOAT16": 6, "NCCL_HALF": 6, "NCCL_FLOAT32": 7, "NCCL_FLOAT": 7, "NCCL_FLOAT64": 8,
    "NCCL_DOUBLE": 8, "NCCL_BFLOAT16": 9, "get_build_version": "", "get_version": "", "get_unique_id": "",
    "groupStart": "",
    "groupEnd": "",
    "NcclCommunicator": "ndev commId rank",             # and, in CuPy 14, an optional NcclConfig
    "initAll": "devices", "destroy": "", "abort": "", "device_id": "", "rank_id": "", "size": "",
    "check_async_error": "",
    "allReduce": "sendbuf recvbuf count datatype op stream",
    "reduce": "sendbuf recvbuf count datatype op root stream",
    "broadcast": "sendbuff recvbuff count datatype root stream",
    "bcast": "buff count datatype root stream",
    "reduceScatter": "sendbuf recvbuf recvcount datatype op stream",
    "allGather": "sendbuf recvbuf count datatype stream",
    "send": "sendbuf count datatype peer stream",
    "recv": "recvbuf count datatype peer stream",
}
DTYPES = [np.dtype(name) for name in "f4 f8 f2 c8 c16 i1 i4 i8 u1 u4 u8 ?".split()] + [np.dtype(ml_dtypes.bfloat16)]
MOVED = [*DTYPES, np.dtype("i2"), np.dtype("u2"), np.dtype(ml_dtypes.float8_e5m2)]
LIMIT = timedelta(seconds=60)
NOW, LATER = (Call("TEST", 0, (), (), "cuda", later=later) for later in (False, True))


def same(found, expected):
    """Equal; close, for numbers that are no integers: averages are rounded on the way."""
    if expected.dtype.kind not in "fcV":
        np.testing.assert_array_equal(found, expected)
        return
    assert found.dtype == expected.dtype
    wide = "c16" if expected.dtype.kind == "c" else "f8"
    np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol=1e-2 if expected.itemsize < 4 else 1e-6)


def as_ranks(size, program, version=14):
    """Run `program(transport, put, get)` in a thread for each rank; its results, in the order of the ranks.

    `put` makes an array of the rank's device.
    """
    cupy, store, results = stand_in(TABLE, version), HashStore(), [None] * size

    def run(rank):
        cupy.take_device(rank)

        def get(array):
            cupy.cuda.get_current_stream().synchronize()
            return array.values
        transport = nccl.NCCLTransport(cupy, store, rank, size, LIMIT, "world")
        try:
            results[rank] = program(transport, lambda values: Array(np.array(values), rank), get)
        except BaseException as error:
            results[rank] = error
            transport.abort(repr(error))
        transport.close()
    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    Stream.stop()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def numbers(rank, dtype, size):
    values = np.random.default_rng([rank, size]).integers(1, 4, size)
    return (values + 1j * values[::-1] if dtype.kind == "c" else values > 2 if dtype.kind == "b"
            else values).astype(dtype)


def reduced(arrays, op):
    every = np.stack(arrays)
    if op is ReduceOp.AVG:
        return (np.add.reduce(every) / every.dtype.type(len(every))).astype(every.dtype)
    return {ReduceOp.SUM: np.add, ReduceOp.PRODUCT: np.multiply, ReduceOp.MAX: np.maximum,
            ReduceOp.MIN: np.minimum}[op].reduce(every).astype(every.dtype)


def has(dtype, op):
    return not (op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) or dtype.kind == "b" and op is ReduceOp.AVG
                or dtype.kind == "c" and op not in (ReduceOp.SUM, ReduceOp.AVG))


@pytest.mark.parametrize("version", [13, 14])
@pytest.mark.parametrize("call", [NOW, LATER], ids=["now", "later"])
def test_reductions(version, call):
    def program(t, put, get):
        for dtype in DTYPES:
            arrays = [numbers(rank, dtype, 6) for rank in range(t.size)]
            for op in ReduceOp:
                if not has(dtype, op):
                    with pytest.raises((TypeError, ValueError)):
                        t.allreduce(call, put(arrays[t.rank]), op)
                    continue
                expected, own, other, out = (reduced(arrays, op), put(arrays[t.rank]), put(arrays[t.rank]),
                                             put(np.zeros(2, dtype)))
                assert t.allreduce(call, own, op).wait() and t.reduce(call, other, 1, op).wait()
                same(get(own), expected)
                same(get(other), expected if t.rank == 1 else arrays[t.rank])
                t.reduce_scatter(call, out, put(arrays[t.rank]), op).wait()
                same(get(out), expected[2 * t.rank:2 * t.rank + 2])
        with pytest.raises(TypeError, match="Input tensor data type is not supported for NCCL process group: int16"):
            t.allreduce(call, put(np.zeros(2, "i2")), ReduceOp.SUM)
    as_ranks(3, program, version)


@pytest.mark.parametrize("call", [NOW, LATER], ids=["now", "later"])
def test_copies_and_messages(call):
    def program(t, put, get):
        ranks = range(t.size)
        for dtype in MOVED:
            arrays = [numbers(rank, dtype, 4) for rank in ranks]
            whole = np.concatenate(arrays)
            own, out = put(arrays[t.rank]), put(np.zeros(12, dtype))
            t.broadcast(call, own, 2).wait()
            np.testing.assert_array_equal(get(own), arrays[2])
            t.allgather(call, out, put(arrays[t.rank])).wait()
            np.testing.assert_array_equal(get(out), whole)
            out, own = put(np.zeros(12, dtype)), put(np.zeros(4, dtype))
            t.gather(call, out if t.rank == 1 else None, put(arrays[t.rank]), 1).wait()
            t.scatter(call, own, put(whole) if t.rank == 1 else None, 1).wait()
            np.testing.assert_array_equal(get(out), whole if t.rank == 1 else 0 * whole)
            np.testing.assert_array_equal(get(own), arrays[t.rank])
            counts = [[(source + 2 * target) % 3 for target in ranks] for source in ranks]      # none, too
            taken = [counts[source][t.rank] for source in ranks]
            parts = [np.split(numbers(source, dtype, sum(counts[source])), np.cumsum(counts[source])[:-1])
                     for source in ranks]
            out = put(np.zeros(sum(taken), dtype))
            t.alltoall(call, out, put(np.concatenate(parts[t.rank])), taken, counts[t.rank]).wait()
            np.testing.assert_array_equal(get(out), np.concatenate([parts[source][t.rank] for source in ranks]))
            if t.rank < 2:
                own = put(np.zeros(4, dtype))
                first = (t.send(put(arrays[t.rank]), 1 - t.rank, 0, call.later) if t.rank
                         else t.receive(own, 1, 0, call.later))
                second = t.receive(own, 0, 0, call.later) if t.rank else t.send(put(arrays[t.rank]), 1, 0, call.later)
                assert first.wait() and second.wait() and (first if t.rank == 0 else second).source_rank() == 1 - t.rank
                np.testing.assert_array_equal(get(own), arrays[1 - t.rank])
        after, before, own = (t.rank + 1) % t.size, (t.rank - 1) % t.size, put(np.zeros(4, "i4"))
        with t.batching():          # NCCL ends no send before its receive has begun: one by one, all would wait
            works = [t.send(put(np.full(4, t.rank, "i4")), after, 0, True), t.receive(own, before, 0, True)]
        assert all(work.wait() for work in works) and (get(own) == before).all() and works[1].source_rank() == before
        assert t.barrier(call).wait()
        with pytest.raises(RuntimeError, match="Backend nccl does not support recvAnysource"):
            t.receive(put(whole), None, 0, False)
    as_ranks(3, program)


def test_works_end_by_events_and_keep_their_arrays():
    def program(t, put, get):
        arrays = [put(np.full(1000, t.rank + 1.)) for _ in range(40)]
        # streams take turns
        works = [t.allreduce(NOW if number % 3 else LATER, array, ReduceOp.SUM) for number, array in enumerate(arrays)]
        said = []
        works[-1].then(lambda: said.append(1))
        for work in works[::-1]:
            assert work.wait()
        assert said == [1] and [get(array)[0] for array in arrays] == [3.] * 40
        assert all(work.is_completed() and work.is_success() for work in works)
        slow = put(np.zeros(3))
        # computed before, on the current stream
        t.cupy.cuda.get_current_stream().work.put(lambda: (time.sleep(0.02), slow.values.fill(5)))
        t.allreduce(LATER, slow, ReduceOp.SUM).wait()
        assert (get(slow) == 10).all()
        for _ in range(3):
            t.broadcast(LATER, put(np.ones(5)), 0)              # nobody keeps the handle or the array
        assert t.allreduce(LATER, arrays[0], ReduceOp.MAX).wait(timedelta(seconds=50))
        with pytest.raises(RuntimeError, match=r"has used cuda:\d as the device of rank \d, and this tensor is on "
                                               r"cuda:9"):
            t.allreduce(NOW, Array(np.ones(1), 9), ReduceOp.SUM)
        t.barrier(NOW).wait()
        assert len(t.under_way) < 3
    as_ranks(2, program)


def test_groups_of_some_ranks_and_groups_that_are_gone():
    def program(t, put, get):
        own = put(np.array([10 ** t.rank]))
        if t.rank:
            some = t.split([2, 1], "some")
            some.allreduce(NOW, own, ReduceOp.SUM).wait()
            assert (some.rank, some.size, get(own)[0]) == (2 - t.rank, 2, 110)
            some.close()
            with pytest.raises(DistBackendError, match="The group 'some' has been destroyed"):
                some.allreduce(NOW, own, ReduceOp.SUM)
        t.allreduce(NOW, own, ReduceOp.MAX).wait()
        assert get(own)[0] == 110
    as_ranks(3, program)


def test_time_limits():
    def program(t, put, get):
        own = put(np.ones(2))
        t.allreduce(NOW, own, ReduceOp.SUM).wait()
        if t.rank == 0:
            t.timeout = timedelta(seconds=0.2)
            work = t.allreduce(LATER, own, ReduceOp.SUM)
            assert not work.is_completed()
            with pytest.raises(TimedOut, match="Timed out waiting 1ms for TEST"):
                work.wait(timedelta(milliseconds=1))
            with pytest.raises(TimedOut, match="Timed out waiting 200ms for TEST"):
                while True:
                    work.wait(timedelta(seconds=50))
            assert work.is_completed() and not work.is_success()
            with pytest.raises(TimedOut):
                t.barrier(NOW)
    as_ranks(2, program)


def test_a_rank_that_gives_up_and_ranks_that_disagree():
    def giving_up(t, put, get):
        t.barrier(NOW).wait()
        if t.rank:
            t.abort("enough")
        else:
            with pytest.raises(DistBackendError, match="rank 1 of 2 has aborted the group 'world': enough"):
                t.barrier(LATER).wait(timedelta(seconds=50))
    as_ranks(2, giving_up)

    def disagreeing(t, put, get):
        with pytest.raises(DistBackendError, match="NCCL error in (a call before )?TEST on rank . of 2 in the group "
                                                   "'world'"):
            while True:
                t.allreduce(NOW, put(np.ones(2 + t.rank)), ReduceOp.SUM).wait(timedelta(seconds=50))
    as_ranks(2, disagreeing)


@pytest.fixture
def pretended(monkeypatch, two_devices):
    """NCCL among simulated devices."""
    from tensorgrad.distributed import backends

    def pointer(array):
        return array.data.ptr if isinstance(array, Array) else Array.hold(array.values, array.index)
    cupy = stand_in(TABLE, 14, AtOnce)
    monkeypatch.setattr(nccl, "import_cupy", lambda: cupy)
    monkeypatch.setattr(nccl, "pointer", pointer)
    monkeypatch.setattr(nccl, "device_of", lambda array: array.index if hasattr(array, "index") else array.device.id)
    monkeypatch.setattr(backends, "is_nccl_available", lambda: True)
    monkeypatch.setattr(Array, "memory", {})
    yield cupy
    Stream.stop()


@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl"])
def test_tensors(pretended, backend):
    import tensorgrad as torch
    from tensorgrad import distributed as dist

    def program(rank, group):
        pretended.take_device(rank)
        torch.cuda.set_device(rank)
        at = torch.device("cuda", rank)
        for dtype in torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64:
            x = torch.tensor([[1, rank, 0], [0, 1, rank]], device=at).to(dtype)
            turned = x.t()
            expected = (torch.tensor([[2, 1, 0], [0, 2, 1]]).to(dtype)).to(at)
            dist.all_reduce(turned)                                     # not contiguous
            assert torch.equal(x, expected) and torch.equal(turned, expected.t()), dtype
            found = [torch.zeros(2, dtype=dtype, device=at) for _ in range(2)]
            dist.all_gather(found, torch.tensor([rank, 1], device=at).to(dtype))
            assert torch.equal(torch.stack(found), torch.tensor([[0, 1], [1, 1]], device=at).to(dtype))
        mean, own, other = (torch.tensor([2. * rank], device=at), torch.tensor([rank], device=at),
                            torch.tensor([9], device=at))
        work = dist.all_reduce(mean, dist.ReduceOp.AVG, async_op=True)
        works = dist.batch_isend_irecv([dist.P2POp(dist.isend, own, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)])
        assert work.wait() and all(work.wait() for work in works) and (mean.item(), other.item()) == (1, 1 - rank)
        part = torch.zeros(1, device=at)
        dist.scatter(part, [torch.tensor([float(i)], device=at) for i in (3, 4)] if rank else None, src=1)
        assert part.item() == 3 + rank
        if "gloo" in backend:
            here = torch.tensor([rank])
            dist.all_reduce(here)
            assert here.item() == 1
        net = torch.nn.Linear(2, 1).to(at)
        torch.nn.init.constant_(net.weight, rank + 1.)
        wrapped = torch.nn.parallel.DistributedDataParallel(net, process_group=group)
        wrapped(torch.tensor([[1. + rank, 2.]], device=at)).sum().backward()
        dist.barrier()
        return net.weight.tolist(), net.weight.grad.tolist()
    assert as_threads(2, program, backend=backend) == [([[1., 1.]], [[1.5, 2.]])] * 2


def test_without_cupy_or_nccl(monkeypatch):
    if not has_gpu():
        with pytest.raises(ImportError, match=r"the extra \[cuda"):
            nccl.create(HashStore(), 0, 1, LIMIT, "world")
    cupy = stand_in(TABLE, 14)
    monkeypatch.setattr(nccl, "import_cupy", lambda: cupy)
    assert nccl.create(HashStore(), 0, 1, LIMIT, "world").size == 1
    cupy.cuda.nccl.available = False
    with pytest.raises(RuntimeError, match="needs NCCL, which CuPy does not find"):
        nccl.create(HashStore(), 0, 1, LIMIT, "world")


@pytest.mark.skipif(not has_gpu(), reason="needs CuPy and a GPU")
def test_on_a_gpu():
    import cupy
    if not cupy.cuda.nccl.available:
        pytest.skip("CuPy has no NCCL here")
    for name, value in TABLE.items():
        if name.startswith("NCCL_"):
            assert int(getattr(cupy.cuda.nccl, name)) == value, name
        else:
            assert hasattr(cupy.cuda.nccl, name) or hasattr(cupy.cuda.nccl.NcclCommunicator, name), name
    size, store = cupy.cuda.runtime.getDeviceCount(), HashStore()
    errors = []

    def run(rank):
        try:
            with cupy.cuda.Device(rank):
                t = nccl.create(store, rank, size, LIMIT, "world")
                for call in NOW, LATER:
                    for dtype in DTYPES:
                        arrays = [numbers(other, dtype, 2 * size) for other in range(size)]
                        for op in (op for op in ReduceOp if has(dtype, op)):
                            own, out = cupy.asarray(arrays[rank]), cupy.zeros(2, dtype)
                            t.allreduce(call, own, op).wait()
                            t.reduce_scatter(call, out, cupy.asarray(arrays[rank]), op).wait()
                            same(own.get(), reduced(arrays, op))
                            same(out.get(), reduced(arrays, op)[2 * rank:2 * rank + 2])
                        out, own = cupy.zeros(2 * size * size, dtype), cupy.asarray(arrays[rank])
                        t.allgather(call, out, own).wait()
                        np.testing.assert_array_equal(out.get(), np.concatenate(arrays))
                        t.alltoall(call, own, cupy.asarray(arrays[rank]), [2] * size, [2] * size).wait()
                        np.testing.assert_array_equal(own.get(),
                                                      np.concatenate(
                                                          [other[2 * rank:2 * rank + 2] for other in arrays]))
                        t.broadcast(call, own, 0).wait()
                t.barrier(NOW).wait()
                t.close()
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]
