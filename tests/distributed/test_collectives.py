"""Collectives and messages among three ranks, which are threads: values beside NumPy's, layouts, dtypes, sub-groups,
errors.
"""
import threading
import warnings
from datetime import timedelta
from functools import reduce

import numpy as np
import pytest
from ranks import as_threads
from support import cpu_only, fresh_process

import tensorgrad as torch
from tensorgrad import distributed as dist
from tensorgrad.distributed import ReduceOp

pytestmark = cpu_only
SIZE, SHAPE = 3, (2, 3)
DTYPES = [getattr(torch, name) for name in "float32 float64 float16 bfloat16 complex64 int8 int16 int32 int64 uint8 "
                                           "uint16 uint32 uint64 bool".split()]
LAYOUTS = {
    "contiguous": lambda t: t.clone(),
    "transposed": lambda t: t.t().contiguous().t() if t.ndim == 2 else t.clone(),
    "strided": lambda t: torch.stack([t, torch.zeros_like(t)], -1)[..., 0],
    "part": lambda t: torch.cat([torch.zeros_like(t), t])[len(t):] if t.ndim else torch.stack([t, t])[0],
    "leaf": lambda t: t.clone().requires_grad_() if t.dtype.is_floating_point else t.clone(),
}


def values(rank, dtype, shape=SHAPE, seed=0):
    """Small whole numbers of a rank, which all ranks can work out."""
    numbers = np.random.default_rng([rank, seed]).integers(1, 5, shape)
    return torch.tensor(numbers % 2 == 0 if dtype is torch.bool else numbers).to(dtype)


def plain(tensor):
    return tensor.detach().to(torch.complex128 if tensor.dtype.is_complex else torch.float64
                              if tensor.dtype.is_floating_point else tensor.dtype).numpy()


def folded(op, tensors):
    join = {ReduceOp.SUM: np.add, ReduceOp.AVG: np.add, ReduceOp.PRODUCT: np.multiply, ReduceOp.MIN: np.minimum,
            ReduceOp.MAX: np.maximum, ReduceOp.BAND: np.bitwise_and, ReduceOp.BOR: np.bitwise_or,
            ReduceOp.BXOR: np.bitwise_xor}[op]
    total = reduce(join, [plain(t) for t in tensors])
    return total / len(tensors) if op is ReduceOp.AVG else total


def equal(found, expected, what):
    found = plain(found)
    np.testing.assert_allclose(found, expected, rtol=1e-2 if "float16" in str(what) else 1e-6, err_msg=str(what),
                               strict=found.dtype == expected.dtype)


def finish(work, later):
    assert (work is None) is not later
    if later:
        assert work.wait() is True and work.is_completed() and work.is_success() and work.exception() is None


def test_reductions():
    def program(rank, group):
        for dtype in DTYPES:
            ops = [op for op in ReduceOp if dtype in (torch.bool, *DTYPES[5:13]) and op is not ReduceOp.AVG or op < 2
                   and dtype in DTYPES[:5]
                   or dtype in DTYPES[:4] and op < 5]
            for i, op in enumerate(ops):
                layout, later = list(LAYOUTS)[i % len(LAYOUTS)], i % 2 == 1
                what, everyone = (dtype, op, layout), [values(r, dtype) for r in range(SIZE)]
                x = LAYOUTS[layout](everyone[rank])
                finish(dist.all_reduce(x, op, async_op=later), later)
                equal(x, folded(op, everyone), what)
                x = LAYOUTS[layout](everyone[rank])
                finish(dist.reduce(x, 2, op, async_op=later), later)
                equal(x, folded(op, everyone) if rank == 2 else plain(everyone[rank]), what)
                lists = [[values(r, dtype, seed=part) for part in range(SIZE)] for r in range(SIZE)]
                out, expected = (LAYOUTS[layout](torch.zeros_like(lists[0][0])),
                                 folded(op, [parts[rank] for parts in lists]))
                finish(dist.reduce_scatter(out, [LAYOUTS[layout](t) for t in lists[rank]], op, async_op=later), later)
                equal(out, expected, what)
                for join in torch.stack, torch.cat:
                    out = LAYOUTS[layout](torch.zeros_like(out))
                    finish(dist.reduce_scatter_single(out, join(lists[rank]), op, async_op=later), later)
                    equal(out, expected, what)
    as_threads(SIZE, program)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies(layout):
    laid = LAYOUTS[layout]

    def program(rank, group):
        for i, (dtype, shape) in enumerate([*((dtype, SHAPE) for dtype in DTYPES), (torch.float32, ()),
                                            (torch.float32, (0, 2)), (torch.int64, (20_000,))]):
            later, root = i % 2 == 1, i % SIZE
            what, everyone = (dtype, shape, layout), [values(r, dtype, shape) for r in range(SIZE)]

            def blank(dtype=dtype, shape=shape):
                return laid(torch.zeros(shape, dtype=dtype))
            x = laid(everyone[rank])
            finish(dist.broadcast(x, root, async_op=later), later)
            equal(x, plain(everyone[root]), what)
            outs, x = [blank() for _ in range(SIZE)], laid(everyone[rank])
            finish(dist.all_gather(outs, x, async_op=later), later)
            for out, theirs in zip(outs, everyone):
                equal(out, plain(theirs), what)
            equal(x, plain(everyone[rank]), what)
            for out in torch.zeros((SIZE, *shape), dtype=dtype), torch.zeros((SIZE * shape[0], *shape[1:]) if shape
                                                                             else (SIZE,), dtype=dtype):
                finish(dist.all_gather_single(out, x, async_op=later), later)
                equal(out.reshape(SIZE, *shape), np.stack([plain(t) for t in everyone]), what)
            outs = [blank() for _ in range(SIZE)] if rank == root else None
            finish(dist.gather(x, outs, root, async_op=later), later)
            for out, theirs in zip(outs or [], everyone):
                equal(out, plain(theirs), what)
            x = blank()
            finish(dist.scatter(x, [laid(t) for t in everyone] if rank == root else None, root, async_op=later), later)
            equal(x, plain(everyone[rank]), what)
            outs, parts = [blank() for _ in range(SIZE)], [values(rank, dtype, shape, to) for to in range(SIZE)]
            finish(dist.all_to_all(outs, [laid(t) for t in parts], async_op=later), later)
            for other, out in enumerate(outs):
                equal(out, plain(values(other, dtype, shape, rank)), what)
    as_threads(SIZE, program)


def test_parts_of_unlike_sizes():
    def program(rank, group):
        # rows from one rank to another
        counts = [[(2 * source + to) % 4 for to in range(SIZE)] for source in range(SIZE)]
        rows = [torch.full((counts[rank][to], 2), 10.0 * rank + to) for to in range(SIZE)]
        expected = [torch.full((counts[source][rank], 2), 10.0 * source + rank) for source in range(SIZE)]
        outs = [torch.zeros(counts[source][rank], 2) for source in range(SIZE)]
        dist.all_to_all(outs, rows)
        assert all(torch.equal(out, theirs) for out, theirs in zip(outs, expected))
        out = torch.zeros(sum(counts[source][rank] for source in range(SIZE)), 2)
        dist.all_to_all_single(out, torch.cat(rows), [counts[source][rank] for source in range(SIZE)], counts[rank])
        assert torch.equal(out, torch.cat(expected))
        out = torch.zeros(6)
        dist.all_to_all_single(out, torch.arange(6.0) + 10 * rank)
        assert out.tolist() == [10.0 * source + 2 * rank + i for source in range(SIZE) for i in range(2)]
        whole = torch.zeros(SIZE * 10_000)
        # straight into the memory of `whole`
        dist.all_gather(list(whole.split(10_000)), torch.full((10_000,), float(rank)))
        assert whole[::10_000].tolist() == [0, 1, 2] and whole.sum() == 30_000
        dist.barrier()
        assert dist.barrier(async_op=True).wait()
        dist.barrier(timeout=timedelta(seconds=60))
        dist.monitored_barrier(timeout=timedelta(seconds=60), wait_all_ranks=True)
    as_threads(SIZE, program)


def test_results_of_handles():
    def program(rank, group):
        x = torch.ones(2)
        work = dist.all_reduce(x, async_op=True)
        doubled = work.get_future().then(lambda future: future.value()[0] * 2).then(lambda future: future.wait() + 1)
        assert doubled.wait().tolist() == [7, 7] and work.result() == [x] and work.get_future().wait() == [x]
        works = [dist.all_reduce(torch.full((i + 1,), float(rank)), async_op=True) for i in range(5)]
        assert [work.result()[0].tolist() for work in reversed(works)] == [[3.0] * n for n in (5, 4, 3, 2, 1)]
        a, b = torch.ones(2), torch.ones(3, 1)
        with dist._coalescing_manager(async_ops=True) as manager:
            assert dist.all_reduce(a) is None
            with pytest.raises(ValueError, match="Illegal to call wait on IllegalWork object"):
                dist.all_reduce(b, async_op=True).wait()
        manager.wait()
        assert a.tolist() == [3, 3] and b.tolist() == [[3]] * 3
        c, d = torch.zeros(3), torch.zeros(6)
        with dist._coalescing_manager():
            dist.all_gather_single(c, torch.ones(1) * rank)
            dist.all_gather_single(d, torch.ones(2) * rank)
        assert c.tolist() == [0, 1, 2] and d.tolist() == [0, 0, 1, 1, 2, 2]
        with dist._coalescing_manager():                    # of two dtypes
            dist.all_reduce(c)
            dist.all_reduce(e := torch.ones(2, dtype=torch.int64))
        assert c.tolist() == [0, 3, 6] and e.tolist() == [3, 3]
        with dist._coalescing_manager():
            dist.reduce_scatter_single(a[:1], torch.arange(3.0))
        assert a[0] == 3 * rank
        with pytest.raises(RuntimeError, match="all collectives to be the same type"), dist._coalescing_manager():
            dist.all_reduce(a)
            dist.all_gather_single(c, torch.ones(1))
        mine = [torch.ones(1) * rank, torch.ones(2) * rank]
        group.allreduce_coalesced(mine, dist.AllreduceCoalescedOptions(reduceOp=ReduceOp.MAX)).wait()
        assert [t.tolist() for t in mine] == [[2], [2, 2]]
        group.broadcast([x], dist.BroadcastOptions(rootRank=1)).wait()
    as_threads(SIZE, program)


def test_messages():
    def program(rank, group):
        left, right = (rank - 1) % SIZE, (rank + 1) % SIZE
        for dtype in DTYPES:
            out, x = torch.zeros(SHAPE, dtype=dtype).t(), values(rank, dtype)
            work = dist.irecv(out, left, tag=7)
            dist.send(x.t(), right, tag=7)
            work.wait()
            equal(out, plain(values(left, dtype).t()), dtype)
        a, b = torch.zeros(1), torch.zeros(1)
        if rank == 0:                                       # tags choose, whatever came first
            dist.isend(torch.ones(1), 1, tag=1).wait()
            dist.isend(torch.ones(1) * 2, 1, tag=2).wait()
        if rank == 1:
            assert dist.recv(b, 0, tag=2) == 0 and dist.recv(a, 0, tag=1) == 0
            assert (a.item(), b.item()) == (1, 2)
        if rank == 2:                                       # from whichever sends first
            found = {dist.recv(a): a.item() for _ in range(2)}
            assert found == {0: 10, 1: 11}
        else:
            dist.send(torch.ones(1) * (10 + rank), 2)
        dist.barrier()
        work = dist.irecv(a) if rank == 2 else dist.isend(torch.ones(1) * rank, 2) if rank == 1 else None
        if work:
            work.wait()
            assert rank != 2 or (work.source_rank(), a.item()) == (1, 1)
        outs = [torch.zeros(2), torch.zeros(3)]
        works = dist.batch_isend_irecv([dist.P2POp(dist.irecv, outs[0], left), dist.P2POp(dist.irecv, outs[1], left),
                                        dist.P2POp(dist.isend, torch.ones(2) * rank, right),
                                        dist.P2POp(dist.isend, torch.ones(3) * rank, right)])
        for work in works:
            work.wait()
        assert [out.tolist() for out in outs] == [[left] * 2, [left] * 3]
        with pytest.raises(ValueError, match="Invalid source rank"):
            dist.recv(a, rank)
        dist.barrier()
    as_threads(SIZE, program)


class Note:
    def __init__(self, text):
        self.text = text


def test_objects():
    def program(rank, group):
        everyone = [None] * SIZE
        dist.all_gather_object(everyone, {"rank": rank, "text": "x" * 10 ** rank})
        assert everyone == [{"rank": r, "text": "x" * 10 ** r} for r in range(SIZE)]
        everyone = [None] * SIZE if rank == 1 else None
        dist.gather_object(Note(str(rank)), everyone, 1)
        assert rank != 1 or [note.text for note in everyone] == ["0", "1", "2"]
        objects = [rank, "a", None] if rank == 2 else [None] * 3
        dist.broadcast_object_list(objects, 2)
        assert objects == [2, "a", None]
        mine = [None]
        dist.scatter_object_list(mine, [(0,), "one", [2, 2]] if rank == 0 else None)
        assert mine == [[(0,), "one", [2, 2]][rank]]
        if rank == 0:
            dist.send_object_list(["to", {"rank": 1}], 1)
            dist.send_object_list([torch.ones(2)], 2, use_batch=True)
        if rank == 1:
            assert dist.recv_object_list(objects, 0) == 0 if (objects := [None] * 2) else None
            assert objects == ["to", {"rank": 1}]
        if rank == 2:
            found = [None]
            assert dist.recv_object_list(found, 0, use_batch=True) == 0 and found[0].tolist() == [1, 1]
            assert dist.recv_object_list(found) == 1 and found == ["from whom?"]
        if rank == 1:
            dist.send_object_list(["from whom?"], 2)
        dist.barrier()
    as_threads(SIZE, program)


def test_groups():
    def program(rank, group):
        pair, lone = dist.new_group([2, 0]), dist.new_group([1])
        assert dist.get_pg_count() == 3 and dist.get_process_group_ranks(None) == [0, 1, 2]
        x = torch.full((2,), float(rank))
        if rank == 1:
            assert pair == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(pair) == dist.get_world_size(pair) == -1
            with pytest.warns(UserWarning, match="Running all_reduce on global rank 1 which does not belong to the "
                                                 "given group"):
                assert dist.all_reduce(x, group=pair) is None
            with pytest.raises(ValueError, match="Invalid process group specified"):
                dist.get_backend(pair)
            assert (dist.get_rank(lone), dist.get_world_size(lone)) == (0, 1)
            dist.all_reduce(x, group=lone)
            assert x.tolist() == [1, 1]
        else:
            assert (dist.get_rank(pair), dist.get_world_size(pair), dist.get_backend(pair)) == (rank // 2, 2, "gloo")
            assert (dist.get_process_group_ranks(pair) == [0, 2] and dist.get_group_rank(pair, 2) == 1
                    and dist.get_global_rank(pair, 1) == 2)
            with pytest.raises(ValueError, match="Global rank 1 is not part of group"):
                dist.broadcast(x, 1, group=pair)
            dist.all_reduce(x, group=pair)
            assert x.tolist() == [2, 2]
            x.fill_(rank)
            dist.broadcast(x, 2, group=pair)                # ranks of the world
            assert x.tolist() == [2, 2]
            x.fill_(rank)
            dist.broadcast(x, group=pair, group_src=0)      # ranks of the group
            assert x.tolist() == [0, 0]
            if rank == 0:
                dist.send(x + 5, 2, group=pair)
            else:
                assert dist.recv(x, group=pair) == 0 and x.tolist() == [5, 5]
        back = dist.new_group([2, 1, 0], sort_ranks=False)
        assert dist.get_rank(back) == 2 - rank and dist.get_global_rank(back, 0) == 2
        x = torch.full((1,), float(rank))
        dist.broadcast(x, group=back, group_src=0)
        assert x.item() == 2
        if rank:                                            # its members alone make it
            own = dist.new_group([1, 2], use_local_synchronization=True)
            again = dist.new_group([1, 2], use_local_synchronization=True)
            for each in own, again:
                dist.all_reduce(x, group=each)
            assert x.item() == 8 and own.group_name != again.group_name
        mine, every = dist.new_subgroups_by_enumeration([[0], [1, 2]])
        assert mine is every[min(rank, 1)] and dist.get_world_size(mine) == min(rank, 1) + 1
        part = dist.split_group(split_ranks=[[0, 1], [2]])
        assert (dist.get_rank(part), dist.get_world_size(part)) == [(0, 2), (1, 2), (0, 1)][rank]
        dist.all_reduce(x, group=part)
        dist.destroy_process_group(part)
        with pytest.raises(ValueError, match="is not initialized in the world group map"):
            dist.get_backend(part)
        with pytest.raises(RuntimeError, match="was shut down"):
            dist.all_reduce(x, group=part)
        with pytest.raises(ValueError, match="must be divisible"):
            dist.new_subgroups(2)
    as_threads(SIZE, program)


def test_default_groups_one_after_the_other():
    store = dist.HashStore()

    def program(rank, group):
        pending = dist.all_reduce(torch.ones(100_000), async_op=True) if rank == 0 else None        # nobody answers
        dist.destroy_process_group()
        if pending is not None:
            with pytest.raises(RuntimeError):
                pending.wait()
        # at one and the same store
        for _ in range(2):
            dist.init_process_group("cpu:gloo", store=store, rank=rank, world_size=SIZE)
            x = torch.ones(1)
            dist.all_reduce(x)
            assert x.item() == 3 and dist.get_pg_count() == 1 and dist.get_backend_config() == "cpu:gloo"
            dist.barrier()
            dist.destroy_process_group()
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            dist.all_reduce(x)
        with pytest.raises(RuntimeError, match="was shut down"):
            group.allreduce(x)
    as_threads(SIZE, program)


def test_a_kind_of_device_without_a_backend():
    def program(rank, group):
        with pytest.raises(RuntimeError, match="No backend type associated with device type meta"):
            dist.all_reduce(torch.ones(2, device="meta"))
    as_threads(1, program)


def test_tensors_of_a_device_that_the_backend_does_not_see():
    """They go by way of the host."""
    program = """
import sys; sys.path.insert(0, "tests/common")
from ranks import as_threads
import tensorgrad as torch, tensorgrad.distributed as dist
def program(rank, group):
    x = torch.arange(4.0, device="cuda").reshape(2, 2) + 10 * rank
    outs = [torch.zeros(2, 2, device="cuda") for _ in range(2)]
    dist.all_gather(outs, x.t())
    dist.all_reduce(x.t(), async_op=True).wait()
    if rank:
        dist.send(x, 0)
    else:
        dist.recv(outs[0], 1)
    objects = [None] * 2
    dist.all_gather_object(objects, x)
    return x.tolist(), outs[0].tolist(), outs[1].tolist(), str(x.device), str(objects[1].device)
for line in as_threads(2, program):
    print(*line)
"""
    assert fresh_process(program, TENSORGRAD_SIMULATED_CUDA="2").splitlines() == [
        "[[10.0, 12.0], [14.0, 16.0]] [[10.0, 12.0], [14.0, 16.0]] [[10.0, 12.0], [11.0, 13.0]] cuda:0 cuda:0",
        "[[10.0, 12.0], [14.0, 16.0]] [[0.0, 2.0], [1.0, 3.0]] [[10.0, 12.0], [11.0, 13.0]] cuda:0 cuda:0"]


def test_arguments_that_make_no_sense():
    def program(rank, group):
        x = torch.ones(2)
        for call, kind, message in [
                (lambda: dist.all_gather([x, x], x), RuntimeError,
                 r"invalid output tensor list at index 0 \(expected length 3, got 2\)"),
                (lambda: dist.all_gather([x, x, torch.ones(3)], x), RuntimeError,
                 r"invalid tensor size at index 2 \(expected \(2\), got \(3\)\)"),
                (lambda: dist.all_gather([x, x, x.int()], x), ValueError, "different dtypes"),
                (lambda: dist.all_gather((x, x, x), x), TypeError, "`tensor_list` of type List"),
                (lambda: dist.all_gather_single(torch.ones(5), x), RuntimeError, "invalid tensor size"),
                (lambda: dist.reduce_scatter_single(torch.ones(2), torch.ones(5)), RuntimeError,
                 r"worldSize == inputShape\[0\] \(6 vs. 5\)"),
                (lambda: dist.all_to_all([x], [x]), RuntimeError, "does not match world size 3"),
                (lambda: dist.all_to_all_single(x, x), RuntimeError, "does not divide equally across group size"),
                (lambda: dist.all_to_all_single(x, x, [1, 1], [1, 1]), RuntimeError,
                 "Number of tensor splits not equal to group size"),
                (lambda: dist.all_to_all_single(x, x, [1, 1, 1], [1, 1, 0]), RuntimeError,
                 "Split sizes doesn't match total dim 0 size"),
                (lambda: dist.all_reduce(x, "sum"), TypeError, "ReduceOp"),
                (lambda: dist.all_reduce(x, ReduceOp.BXOR), RuntimeError,
                 "Cannot use ReduceOp.BXOR with non-integral dtype"),
                (lambda: dist.all_reduce(x.long(), ReduceOp.AVG), RuntimeError,
                 "result type Float can't be cast to the desired output type Long"),
                (lambda: dist.all_reduce(x.to(torch.complex64), ReduceOp.MAX), ValueError,
                 "all_reduce does not support RedOpType.MAX on complex"),
                (lambda: dist.broadcast(x, 3), RuntimeError, "invalid root rank: 3"),
                (lambda: dist.scatter(x, [x, x] if rank == 0 else None),
                 (RuntimeError, ValueError) if rank == 0 else None, "Incorrect input list size 2"),
                (lambda: dist.all_reduce(torch.ones(2).expand(3, 2)), RuntimeError,
                 "written-to tensor refers to a single memory location"),
                (lambda: dist.new_group([0, 3]), ValueError, "Rank 3 is out of range")]:
            if kind is not None:
                with pytest.raises(kind, match=message):
                    call()
        assert x.tolist() == [1, 1]
        dist.all_reduce(x)
        assert x.tolist() == [3, 3]
    as_threads(SIZE, program)


def test_old_names_warn():
    def program(rank, group):
        out = torch.zeros(3)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            dist.all_gather_into_tensor(out, torch.ones(3))
            dist.reduce_scatter_tensor(out, torch.ones(3))
            dist.all_reduce_coalesced([out])
            dist.all_gather_coalesced([[out]], [torch.ones(3)])
        return [str(one.message) for one in said], {one.filename for one in said}
    (messages, files), = as_threads(1, program)
    assert files == {__file__} and [m.split("`")[1].rpartition(".")[2] for m in messages] == [
        "all_gather_into_tensor", "reduce_scatter_tensor", "all_reduce_coalesced", "all_gather_coalesced"]


def test_ranks_are_told_in_uncaught_errors_of_the_main_thread_only():
    import sys
    before = sys.excepthook
    as_threads(2, lambda rank, group: dist.barrier())
    assert sys.excepthook is before and threading.current_thread() is threading.main_thread()
