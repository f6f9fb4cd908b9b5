"""The backend gloo: what its collectives and messages come to, as threads of one process; what becomes of ranks, as
processes, when one dies or disagrees.
"""
import gc
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta
from functools import cache, reduce
from importlib.util import find_spec

import numpy as np
import pytest
from support import ROOT, cpu_only, fresh_process

import tensorgrad as torch
from tensorgrad.distributed import HashStore
from tensorgrad.distributed.errors import DistBackendError, TimedOut
from tensorgrad.distributed.group import ProcessGroup
from tensorgrad.distributed.operations import ReduceOp, combine
from tensorgrad.distributed.transport import mesh, segments, shared_memory
from tensorgrad.distributed.transport.base import Call
from tensorgrad.distributed.transport.polling import IN, OUT, Selected
from tensorgrad.dtype import bfloat16
from tensorgrad.nn.parallel import DistributedDataParallel
from tensorgrad.runtime.small_floats import convert

pytestmark = cpu_only
LIMIT = timedelta(seconds=60)
HALF = "bfloat16"


def numpy_of(dtype):
    return bfloat16.numpy if dtype == "bfloat16" else dtype


def as_threads(size, program):
    """Run `program(rank)` on `size` ranks, each a thread with a transport; return the results, or raise the first
    error."""
    store, results, errors = HashStore(), [None] * size, []

    def run(number):
        try:
            rank = Rank(shared_memory.create(store, number, size, LIMIT, "world"))
            results[number] = program(rank)
            rank.transport.close()
        except BaseException as error:
            errors.append(error)
            if "rank" in locals():
                rank.transport.abort(f"rank {number} failed")
    before = threading.active_count()
    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for error in errors:
        raise error
    assert threading.active_count() <= before, "a rank hangs, or left a thread"
    return results


class Rank:
    def __init__(self, transport):
        self.transport, self.rank, self.size, self.numbers = (transport, transport.rank, transport.size,
                                                              itertools.count(1))

    def call(self, kind="", later=False):
        return Call(kind, next(self.numbers), (), (), "cpu", later=later)


def data(rank, count, dtype):
    """Numbers of one rank, of any dtype."""
    random, dtype = np.random.default_rng(1000 * rank + count), np.dtype(dtype)
    if dtype.kind == "b":
        return random.random(count) > 0.5
    if dtype.kind in "iu":
        return random.integers(0, 100, count).astype(dtype)
    return convert(random.standard_normal(count) + (1j * random.standard_normal(count) if dtype.kind == "c" else 0),
                   dtype)


def folded(arrays, op):
    """The reduction in the order of the ranks."""
    return reduce(lambda a, b: combine(op)(a, b), arrays)


def all_collectives(rank, count, dtype, op, later):
    """Each collective once, compared bit for bit with NumPy."""
    dtype = numpy_of(dtype)
    transport, number, size, root = rank.transport, rank.rank, rank.size, count % rank.size
    arrays = [data(other, count, dtype) for other in range(size)]
    long = [np.concatenate([data(31 * other + part, count, dtype) for part in range(size)]) for other in range(size)]
    own, whole, nothing = arrays[number], np.concatenate(arrays), np.empty(0, dtype)

    def same(found, expected):
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()

    found = own.copy()
    transport.allreduce(rank.call(later=later), found, op).wait()
    same(found, folded(arrays, op))
    found = own.copy()
    transport.reduce(rank.call(later=later), found, root, op).wait()
    same(found, folded(arrays, op) if number == root else own)
    found, expected = np.empty_like(own), folded(long, op)[number * count:(number + 1) * count]
    transport.reduce_scatter(rank.call(later=later), found, long[number], op).wait()
    same(found, expected)
    held = long[number].copy()                                  # the result may be a part of the input
    transport.reduce_scatter(rank.call(later=later), held[number * count:(number + 1) * count], held, op).wait()
    same(held[number * count:(number + 1) * count], expected)
    found = own.copy()
    transport.broadcast(rank.call(later=later), found, root).wait()
    same(found, arrays[root])
    found = np.empty_like(whole)
    transport.allgather(rank.call(later=later), found, own).wait()
    same(found, whole)
    found = np.empty_like(whole) if number == root else None
    transport.gather(rank.call(later=later), found, own, root).wait()
    same(found if number == root else nothing, whole if number == root else nothing)
    found = np.empty_like(own)
    transport.scatter(rank.call(later=later), found, long[root] if number == root else None, root).wait()
    same(found, long[root][number * count:(number + 1) * count])
    counts = [[count * (i + 1) * (j + 2) % (count // 2 + 1) for j in range(size)] for i in range(size)]
    sent = [data(50 + i, sum(counts[i]), dtype) for i in range(size)]
    found = np.empty(sum(row[number] for row in counts), dtype)
    transport.alltoall(rank.call(later=later), found, sent[number], [row[number] for row in counts],
                       counts[number]).wait()
    same(found, np.concatenate([np.split(sent[i], np.cumsum(counts[i])[:-1])[number] for i in range(size)]))
    transport.barrier(rank.call(later=later)).wait()


CASES = [(count, dtype, op) for dtype, op in [("f4", "SUM"), ("f8", "PRODUCT"), ("i8", "MAX"), ("u1", "BXOR"),
                                              ("?", "SUM"), ("c8", "SUM"), ("f2", "MIN"),
                                              (HALF, "SUM")]
         for count in (0, 1, 7, 3001)] + [(20_011, HALF, "SUM"), (40_000, "f4", "SUM"), (100_001, "u1", "MAX")]


@pytest.mark.parametrize("size", [2, 3])
def test_collectives(size):
    def program(rank):
        for i, (count, dtype, op) in enumerate(CASES):
            all_collectives(rank, count, dtype, ReduceOp[op], later=i % 2 == 1)
    as_threads(size, program)


@pytest.mark.parametrize("size", [2, 3])
def test_many_chunks(monkeypatch, size):
    """More chunks than slots, the last of them short."""
    monkeypatch.setattr(segments, "slot_size", lambda size: 32 << 10)

    def program(rank):
        all_collectives(rank, 60_003, "f4", ReduceOp.SUM, later=False)
        all_collectives(rank, 70_001, HALF, ReduceOp.SUM, later=True)
    as_threads(size, program)


@pytest.mark.parametrize("size", [2, 3])
def test_large_arrays(size):
    def program(rank):
        array = np.full(2_000_003, rank.rank + 1, "f4")
        rank.transport.allreduce(rank.call(), array, ReduceOp.SUM).wait()
        return array.min() == array.max() == size * (size + 1) / 2
    assert as_threads(size, program) == [True] * size


@pytest.mark.parametrize("size", [2, 3])
def test_arrays_that_all_ranks_see(size):
    """Bit for bit as elsewhere; also where only some ranks have theirs in such memory, or at other places of it."""
    def program(rank):
        transport, held = rank.transport, rank.transport.room(4096 * (1 + rank.rank))
        for dtype, op, later in [("f4", "SUM", False), ("f8", "MAX", True), (HALF, "SUM", True), ("f4", "AVG", False)]:
            dtype = np.dtype(numpy_of(dtype))
            arrays = [data(other, 1_100_003, dtype) for other in range(size)]
            expected = folded(arrays, ReduceOp[op])
            if op == "AVG":
                expected /= dtype.type(size)
            for among in range(size), [0], []:
                room = transport.room(arrays[0].nbytes) if rank.rank in among else np.empty(arrays[0].nbytes, "u1")
                found = room.view(dtype)
                found[:] = arrays[rank.rank]
                transport.allreduce(rank.call(later=later), found, ReduceOp[op]).wait()
                assert found.tobytes() == expected.tobytes() and found.base is room
        return not held.any()
    assert as_threads(size, program) == [True] * size


def test_room_for_arrays(monkeypatch):
    """A place in the room belongs to an array while anything looks at it, and is used again afterwards."""
    monkeypatch.setattr(segments, "ROOM", 1 << 20)           # all of it is lent below, and then takes memory

    def program(rank):
        transport, places = rank.transport, rank.transport._segments.place
        first, second, third = (transport.room(10_000) for _ in range(3))
        first[:], second[:], third[:] = 1, 2, 3
        kept, place = second[5:].view(np.int8), places(second)
        assert len({places(array) % 4096 for array in (first, second, third)}) == 1 and places(np.ones(3)) == -1
        assert transport.room(segments.ROOM) is None and transport.room(segments.ROOM + 1) is None
        del second
        assert places(transport.room(10_000)) > places(third) and (kept == 2).all(), "something looks at it still"
        del kept
        small, again = transport.room(1), transport.room(8_000)
        assert places(small) == place < places(again) < places(third), "both fit where the second was"
        assert (first == 1).all() and (third == 3).all()
        del first, small, again, third
        transport.barrier(rank.call()).wait()
        assert len(transport.room(segments.ROOM)) == segments.ROOM
        transport.close()
        return transport.room(1)
    assert as_threads(2, program) == [None, None]


@pytest.mark.parametrize("lasting", [False, True])
def test_gradients_are_reduced_where_all_ranks_see_them(lasting):
    """Their memory is new in each step unless it lasts: a gradient that a program keeps stays as it was."""
    def program(rank):
        group = ProcessGroup(rank.rank, 2, transports={"cpu": rank.transport})
        model = torch.nn.Linear(1100, 500)
        ddp, kept = DistributedDataParallel(model, process_group=group, gradient_as_bucket_view=lasting), []
        for step in range(4):
            ddp.zero_grad()
            inputs = [torch.from_numpy(data(10 * step + other, 1100, "f4")[None]) for other in range(2)]
            ddp(inputs[rank.rank]).sum().backward()
            kept.append((model.weight.grad, ((inputs[0] * 0.5) + (inputs[1] * 0.5)).expand(500, 1100)))
            assert torch.equal(*kept[-1]) and rank.transport._segments.place(model.weight.grad.array) >= 0 or step == 0
        return [torch.equal(*pair) for pair in kept[0 if not lasting else -1:]]
    assert all(all(found) for found in as_threads(2, program))


def test_a_place_that_is_none():
    def program(rank):
        if rank.rank:
            rank.transport._segments.place = lambda array: 1 << 40
        found = rank.transport.room(2 << 20).view("f4")
        with pytest.raises(DistBackendError, match="damaged message"):
            rank.transport.allreduce(rank.call(), found, ReduceOp.SUM).wait()
        return True
    assert as_threads(2, program) == [True, True]


def test_without_shared_memory(monkeypatch):
    """Through sockets of the loopback, as on systems whose processes cannot pass descriptors; and without `poll`."""
    monkeypatch.setattr(mesh, "LOCAL", False)
    monkeypatch.delattr("select.poll")

    def program(rank):
        assert not rank.transport._segments.shared and rank.transport._bells.peers[0].socket.family == socket.AF_INET
        for count, dtype, op in [(5, "f4", "SUM"), (40_000, HALF, "SUM"), (100_003, "f4", "SUM")]:
            all_collectives(rank, count, dtype, ReduceOp[op], later=count == 5)
        messages(rank, 30_000)
    as_threads(3, program)


def test_averages():
    def program(rank):
        found = []
        for dtype in map(numpy_of, ("f4", "f2", HALF, "c8", "i4")):
            array = convert(np.array([3, -4, 5]) + 2 * rank.rank, dtype)
            rank.transport.allreduce(rank.call(), array, ReduceOp.AVG)
            found.append(convert(array, "c8").real.tolist())
        array = np.ones(2, bool)
        with pytest.raises(TypeError, match="Cannot use ReduceOp.AVG with Boolean inputs"):
            rank.transport.allreduce(rank.call(), array, ReduceOp.AVG)
        return found
    assert as_threads(2, program)[0] == [[4, -3, 6]] * 5


def test_overflow_is_silent():
    def program(rank):
        array = np.full(3, 3e38, "f4")
        rank.transport.allreduce(rank.call(), array, ReduceOp.SUM)
        return array.tolist()
    assert as_threads(2, program) == [[np.inf] * 3] * 2


def messages(rank, count):
    """Messages around a ring: posted before and after they are sent, with tags out of order, from whoever sends first,
    beside collectives.
    """
    transport, number, size = rank.transport, rank.rank, rank.size
    following, before = (number + 1) % size, (number - 1) % size
    own, theirs, found = data(number, count, "f4"), data(before, count, "f4"), np.empty(count, "f4")
    asked = transport.receive(found, before, 5, True)
    transport.send(own, following, 5, True).wait()
    asked.wait()
    assert found.tobytes() == theirs.tobytes() and asked.source_rank() == before
    sent = [transport.send(own, following, 1, True), transport.send(-own, following, 2, True),
            transport.send(own[:3], following, 2, True)]
    transport.barrier(rank.call())                      # while large messages are on their way
    few = np.empty(len(own[:3]), "f4")
    for tag, room, expected in (2, found, -theirs), (2, few, theirs[:3]), (1, found, theirs):
        transport.receive(room, before, tag, False)
        assert room.tobytes() == expected.tobytes()
    for work in sent:
        work.wait()
    if number:
        transport.send(own, 0, 9, False)
    else:
        sources = []
        for _ in range(size - 1):
            work = transport.receive(found, None, 9, False)
            sources.append(work.source_rank())
            assert found.tobytes() == data(sources[-1], count, "f4").tobytes()
        assert sorted(sources) == list(range(1, size))
    transport.barrier(rank.call())


def test_messages():
    def program(rank):
        for count in (0, 1, 3000, 400_000):
            messages(rank, count)
        for begin in rank.transport.send, rank.transport.receive:
            with pytest.raises(ValueError, match="rank should not be the same"):
                begin(np.zeros(1), rank.rank, 0, False)
    as_threads(3, program)


def test_groups_of_some():
    def program(rank):
        if rank.rank == 1:
            return 0
        half = Rank(rank.transport.split([0, 2], "half"))
        array = np.full(30_000, 1.0 + rank.rank)
        half.transport.allreduce(half.call(), array, ReduceOp.SUM)
        half.transport.close()
        return array[-1], half.rank, half.size
    assert as_threads(3, program) == [(4, 0, 2), 0, (4, 1, 2)]


@pytest.mark.parametrize("look", ["wait", "poll", "leave"])
def test_without_a_processor_to_spare_whoever_waits_does_the_work(monkeypatch, look):
    """The thread does nothing before somebody looks whether the work has ended, or nobody has waited for it in time."""
    monkeypatch.setattr(shared_memory, "_has_processors_to_spare", lambda size: False)
    monkeypatch.setattr(shared_memory, "PATIENCE", 0.01 if look == "leave" else 1000)

    def program(rank):
        done, perform, ended = [], rank.transport._perform, threading.Semaphore(0)
        rank.transport._perform = lambda *given: (done.append(threading.current_thread()), perform(*given))
        arrays = [np.full(2, float(rank.rank + i)) for i in range(3)]
        works = [rank.transport.allreduce(rank.call(later=True), array, ReduceOp.SUM) for array in arrays]
        if look == "wait":
            assert not done
            works[1].wait()                         # and those before it
            assert works[0].is_success()
            rank.transport.barrier(rank.call()).wait()
            assert works[2].is_success() and set(done) == {threading.current_thread()}
        elif look == "poll":
            while not all(work.is_completed() for work in works):
                time.sleep(0.001)
        else:
            for work in works:
                works[-1].get_future().add_done_callback(lambda _: ended.release())
                work.then(ended.release)
            for _ in range(6):
                assert ended.acquire(timeout=60)
        return [array.tolist() for array in arrays]
    assert as_threads(2, program) == [[[1, 1], [3, 3], [5, 5]]] * 2


def test_asynchronous_work_keeps_its_order():
    """Each collective needs the result of the one before it; a synchronous one comes after them."""
    def program(rank):
        array, works = np.ones(20_000), []
        for _ in range(20):
            works.append(rank.transport.allreduce(rank.call(later=True), array, ReduceOp.SUM))
        last = np.zeros(20_000)
        rank.transport.allreduce(rank.call(), last, ReduceOp.SUM).wait()
        done = [work.is_completed() for work in works]
        return all(done), array[0], array[-1]
    assert as_threads(2, program) == [(True, 2 ** 20, 2 ** 20)] * 2


def test_who_does_not_come():
    store = HashStore()
    with pytest.raises(TimedOut, match=r"Timed out waiting 50ms for all ranks: \[1\] of 2 did not come"):
        shared_memory.create(store, 0, 2, timedelta(milliseconds=50), "world")
    with pytest.raises(RuntimeError, match='at most 64 ranks, not 65: use "mpi"'):
        shared_memory.create(store, 0, 65, LIMIT, "world")


def test_a_transport_that_is_collected_says_goodbye():
    """The collector may reach the sockets before the transport that closes them."""
    store, made = HashStore(), {}

    def run(rank):
        made[rank] = shared_memory.create(store, rank, 2, LIMIT, "world")
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    sockets = made[1]._bells.sockets() + made[1]._letters.sockets()
    held = [made.pop(1)]
    # orders its list of objects anew: `sockets` comes before `held`, and so does what they hold
    gc.collect()
    del sockets, held
    gc.collect()
    with pytest.raises(DistBackendError, match="rank 1 .* has left the group"):
        made[0].barrier(Call("", 1, (), (), "cpu"))
    made[0].close()


def test_another_machine_is_refused(monkeypatch):
    store = HashStore()
    store.set("rank/1", "12\nelsewhere\nanother boot\nabstract:x")
    with pytest.raises(RuntimeError, match="one machine only, 'elsewhere' is not this one. Between machines, use "
                                           "init_process_group"):
        shared_memory.create(store, 0, 2, LIMIT, "world")


def test_strangers_at_the_door(monkeypatch):
    """While a rank waits for others, strangers connect: silent ones, and some who talk."""
    store, results = HashStore(), []

    def run(rank):
        transport = shared_memory.create(store, rank, 2, LIMIT, "world")
        array = np.ones(2)
        transport.allreduce(Call("", 1, (), (), "cpu"), array, ReduceOp.SUM)
        results.append(array[0])
        transport.close()
    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(2)]
    threads[0].start()
    _, address = mesh._where(store.get("rank/0").decode().split("\n")[3])
    strangers = [socket.socket(socket.AF_UNIX) for _ in range(200)]
    for i, stranger in enumerate(strangers):
        stranger.connect(address)
        if i % 2:
            stranger.send(os.urandom(1 + i))
    threads[1].start()
    for thread in threads:
        thread.join(60)
    for stranger in strangers:
        stranger.close()
    assert results == [2, 2]


def test_what_is_not_a_message():
    """A peer that has proved the secret and sends nonsense is an error, not a crash."""
    for nonsense in (b"\xff" * 8, b"\0\0\0\0\0\0\x09\0", b"\x10\0\0\0\0\0\x02\0" + b"\xff" * 16):
        def program(rank, nonsense=nonsense):
            if rank.rank == 1:
                rank.transport._bells.peers[0].socket.send(nonsense)
            with pytest.raises(DistBackendError):
                while True:             # the other may have heard all that it needs for the first
                    rank.transport.allreduce(rank.call(), np.ones(2), ReduceOp.SUM)
        as_threads(2, program)


def test_selected():
    """`select.select` with the methods of `select.poll`."""
    one, other = socket.socketpair()
    with one, other:
        watch = Selected()
        watch.register(one, IN)
        watch.register(other.fileno(), 0)
        assert watch.poll(0) == []
        other.send(b"x")
        watch.modify(other, OUT)
        assert sorted(watch.poll(1000)) == sorted([(one.fileno(), IN), (other.fileno(), OUT)])
        watch.unregister(one)
        assert watch.poll(1000) == [(other.fileno(), OUT)]


# ── when a rank dies, stops or disagrees ──────────────────────────────────────────────────────────────────────────────

linux = pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc")


@cache
def scenarios():
    program = ROOT / "tests" / "distributed" / "programs" / "gloo_scenarios.py"
    done = subprocess.run([sys.executable, "-W", "error", str(program)], env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stderr
    return {found["name"]: found for found in map(json.loads, done.stdout.splitlines())}


def ended(found, kind, *words):
    """Check the error that a rank got: its type, its words, and that it came at once."""
    assert found["error"] == kind and all(word in found["text"] for word in words), found
    assert found["seconds"] < 30


@linux
@pytest.mark.parametrize("name, what", [("killed", "has died"), ("raises", "has left the group"),
                                        ("left", "has left the group"), ("forked", "has died")])
def test_a_rank_that_ends(name, what):
    found = scenarios()[name]
    for rank in found["ranks"][:2]:
        errors = [part for part in rank if isinstance(part, dict)]
        ended(errors[0], "DistBackendError", f"Connection closed by peer: rank 2 (pid {found['pids'][2]} on "
                                             f"{socket.gethostname()}) {what}")
        for error in errors[1:]:
            words = ("The group belongs to process" if name == "forked"
                     else "cannot be used any more, an error has ended it: Connection")
            ended(error, "DistBackendError", words)
    if name == "left":
        assert [rank[0] for rank in found["ranks"][:2]] == [True, True]
        ended(found["ranks"][2][0], "DistBackendError", "The group has been closed.")


@linux
def test_a_rank_that_nobody_waits_for():
    found = scenarios()["killed_while_others_wait_for_each_other"]
    for rank in found["ranks"][:2]:
        ended(rank[0], "DistBackendError", f"Connection closed by peer: rank 2 (pid {found['pids'][2]}")


@linux
def test_work_under_way_when_a_rank_dies():
    found = scenarios()["killed_while_work_is_under_way"]
    for rank in found["ranks"][:2]:
        for error in rank[:3]:
            ended(error, "DistBackendError", f"rank 2 (pid {found['pids'][2]}", "has died")
        assert rank[3] is True


@linux
def test_a_rank_that_stops():
    found = scenarios()["stopped"]
    for rank in found["ranks"][:2]:
        ended(rank[0], "TimedOut", "Timed out waiting 400ms for recv operation to complete",
              f"for rank 2 (pid {found['pids'][2]}", "ALLREDUCE number 2")
        for error in rank[1:]:
            ended(error, "TimedOut", "The group cannot be used any more")


@linux
def test_a_message_that_nobody_sends():
    for rank in scenarios()["no_message"]["ranks"]:
        ended(rank[0], "TimedOut", "Timed out waiting 300ms for recv operation to complete")


@linux
@pytest.mark.parametrize("name, words", [("shapes", ["TensorShape=[4]", "TensorShape=[5]"]),
                                         ("sizes", ["[1000000]", "[4]"]), ("dtypes", ["f4", "f8"]),
                                         ("order", ["OpType=ALLREDUCE", "OpType=BARRIER"]),
                                         ("roots", ["root=0", "root=1"])])
def test_ranks_that_disagree(name, words):
    for rank in scenarios()[name]["ranks"]:
        ended(rank[0], "DistBackendError", "Detected mismatch between collectives on ranks. Rank ",
              "Collectives differ in the following aspects", *words)


@linux
def test_counts_that_disagree():
    ranks = scenarios()["counts"]["ranks"]
    for rank in (0, 2):                 # rank 0 or rank 2 writes the message: whoever sees the mismatch first
        ended(ranks[rank][0], "DistBackendError", "Detected mismatch", "in ALLTOALL number 1", "rank 0", "expected 16",
              "rank 2", "sent 8")


@linux
def test_messages_that_disagree():
    ranks = scenarios()["messages"]["ranks"]
    ended(ranks[1][0], "DistBackendError", "sent 12 bytes of float32 with tag 0, rank 1 expected 16 bytes of float32")
    ended(ranks[1][1], "DistBackendError", "sent 12 bytes of float32 with tag 1, rank 1 expected 12 bytes of int32")
    assert [rank[-1]["error"] for rank in ranks] == ["", "", ""]


@linux
def test_a_rank_that_gives_up():
    ranks = scenarios()["aborted"]["ranks"]
    ended(ranks[0][0], "DistBackendError", "The group has been closed.")
    for rank in ranks[1:]:
        ended(rank[0], "DistBackendError", "the weather is bad")
    ranks = scenarios()["interrupted"]["ranks"]
    ended(ranks[0][0], "KeyboardInterrupt")
    for rank in ranks[1:]:
        ended(rank[0], "DistBackendError", "Rank 0 has given up in ALLREDUCE number 1: KeyboardInterrupt")


@linux
def test_a_group_leaves_nothing():
    for threads, during, after, left in scenarios()["leaves_nothing"]["ranks"]:
        assert threads == 3 and after == 1
        assert during["/memfd"] >= 3 and during["socket"] >= 8
        assert left == {"socket": 0, "/memfd": 0, "shm": 0}


@pytest.mark.skipif(find_spec("resource") is None, reason="processes have no limits here")
def test_processes_with_a_limit_reduce_through_slots(monkeypatch):
    """A process whose address space is limited makes no room, and maps none of the others'."""
    expected = np.arange(1 << 20, dtype="f4") * 3

    def program(rank):
        array = np.arange(1 << 20, dtype="f4") * (1 + rank.rank)
        rank.transport.allreduce(rank.call(), array, ReduceOp.SUM).wait()
        return rank.transport.room(4096) is None, (array == expected).all()
    monkeypatch.setattr(segments, "_limited", lambda: True)
    assert as_threads(2, program) == [(True, True)] * 2
    turns = itertools.cycle([True, False])
    monkeypatch.setattr(segments, "_limited", lambda: next(turns))
    assert sorted(as_threads(2, program)) == [(False, True), (True, True)]


def test_a_room_without_memory_is_none(monkeypatch):
    def refuse(*args):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    assert as_threads(2, lambda rank: rank.transport.room(4096)) == [None, None]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_child_does_not_write_to_gradients_in_the_room():
    assert fresh_process("""
import os, weakref
import numpy as np
from tensorgrad.distributed.transport.segments import LENT
from tensorgrad.multiprocessing.reductions import Block
block = Block(1 << 20)
array = np.frombuffer(block.array.data[:10_000], np.uint8)
LENT.append(weakref.ref(array))
array[:] = 7
child = os.fork()
if not child:
    seen = (array == 7).all()
    array[:] = 1
    os._exit(0 if seen and (array == 1).all() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print((array == 7).all())
""").strip() == "True"
