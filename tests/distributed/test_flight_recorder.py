"""The flight recorder of ranks: the log, fingerprints that reveal disagreement, time-outs, barriers that name
missing ranks."""
import re
from datetime import timedelta

import pytest
from ranks import as_threads
from support import cpu_only

import tensorgrad as torch
from tensorgrad import distributed as dist
from tensorgrad.distributed import debugging, flight_recorder, world
from tensorgrad.distributed.errors import TimedOut
from tensorgrad.distributed.transport.base import Call, Transport
from tensorgrad.distributed.work import Work

pytestmark = cpu_only


def call(kind="ALLREDUCE", sequence=3, shapes=((2, 3),), dtypes=("Float",), device="cpu", detail="op=SUM"):
    return Call(kind, sequence, shapes, dtypes, device, detail)


def test_fingerprints():
    own = flight_recorder.fingerprint(call())
    assert own == flight_recorder.fingerprint(call()) == b"3|ALLREDUCE|[2, 3]|Float|cpu|op=SUM"
    assert flight_recorder.compare(0, own, {1: own, 2: own}) is None
    for other, aspects in [
            (call(shapes=((2, 4),)), "TensorShape: [2, 3] vs [2, 4]"),
            (call(dtypes=("Double",)), "TensorDtypes: Float vs Double"),
            (call("BROADCAST", detail="root=0"), "OpType: ALLREDUCE vs BROADCAST, Detail: op=SUM vs root=0"),
            (call(sequence=4), "SequenceNumber: 3 vs 4"),
            (call("BARRIER", 4, (), (), detail=""),
             "SequenceNumber: 3 vs 4, OpType: ALLREDUCE vs BARRIER, TensorShape: [2, 3] vs none, "
             "TensorDtypes: Float vs none, Detail: op=SUM vs none"), (call(shapes=((),)), "TensorShape: [2, 3] vs []")]:
        error = flight_recorder.compare(0, own, {1: own, 2: flight_recorder.fingerprint(other)})
        assert isinstance(error, dist.DistBackendError)
        assert str(error).startswith("Detected mismatch between collectives on ranks. Rank 0 is running collective: "
                                     "CollectiveFingerPrint(SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[2, 3], "
                                     "TensorDtypes=Float, TensorDeviceTypes=cpu, op=SUM), but Rank 2 is running")
        assert str(error).endswith(f"Collectives differ in the following aspects: {aspects}")
    many = [flight_recorder.fingerprint(call(shapes=tuple((n, i) for i in range(300)), dtypes=("Float",) * 300))
            for n in (1, 2, 2)]
    assert (max(map(len, many)) <= flight_recorder.LONGEST and many[1] == many[2]
            and flight_recorder.compare(0, many[0], {1: many[1]}) is not None)
    # another rank may say anything
    assert "Rank 1" in str(flight_recorder.compare(0, own, {1: b"\xff|garbage"}))


def test_the_log_names_the_program_and_its_line():
    def program(rank, group):
        dist.all_reduce(torch.ones(2, 3))
        dist.all_gather([torch.zeros(1, dtype=torch.int64)] * 2, torch.ones(1, dtype=torch.int64), async_op=True).wait()
        if rank == 0:
            dist.send(torch.ones(1), 1, tag=4)
        else:
            dist.recv(torch.ones(1), tag=4)
        return group.log.dump()
    first, second = as_threads(2, program)
    lines = first.splitlines()
    line = program.__code__.co_firstlineno
    assert lines[0] == "[rank 0] the last 3 collectives, oldest first:"
    assert re.match(rf"\[rank 0\]   group 0 #0 ALLREDUCE op=SUM \[2, 3\] Float cpu, completed, begun 0\.\d+ s ago at "
                    rf".*test_flight_recorder\.py:{line + 1} in program$",
                    lines[1])
    assert "#1 ALLGATHER [1] Long cpu, completed" in lines[2] and "SEND to 1 tag=4 [1] Float" in lines[3]
    assert "[rank 1]   group 0 #1 RECV from any rank tag=4" in second
    def named(rank, group):
        with dist.record_comm("layer 1"):
            dist.all_reduce(torch.ones(1))
        dist.all_reduce(torch.ones(1))
        return group.log.dump().splitlines()[1:]
    first, second = as_threads(1, named)[0]
    assert "#0 ALLREDUCE (layer 1) op=SUM [1]" in first and "#1 ALLREDUCE op=SUM [1]" in second
    log = flight_recorder.Log(0, length=2)
    log.calls.extend(call(sequence=i) for i in range(5))
    assert [f"#{i} " in log.dump() for i in range(5)] == [False, False, False, True, True]


@pytest.mark.parametrize("later", [False, True])
def test_ranks_that_do_not_agree(later):
    def program(rank, group):
        x = torch.ones(2 + rank)
        with pytest.raises(dist.DistBackendError,
                           match=r"Rank \d is running collective: .*TensorShape: \[[23]\] vs \[[23]\]") as raised:
            work = dist.all_reduce(x, async_op=later)
            if later:
                work.wait()
        assert ("Rank 0 is running" in str(raised.value) and "Rank 1 is running" in str(raised.value)
                and x.tolist() == [1] * (2 + rank))
        assert "ALLREDUCE op=SUM [" in group.log.dump() and "failed" in group.log.dump()
    as_threads(2, program)


class Blind(Transport):
    """A transport that does not compare anything, as MPI's, over one that would."""

    name, checks = "blind", False

    def __init__(self, inner):
        super().__init__(inner.rank, inner.size, inner.timeout)
        self.inner = inner

    def allgather(self, call, out, array):
        return self.inner.allgather(Call("ALLGATHER", 0, (), (), "cpu"), out, array)

    def allreduce(self, call, array, op):
        return self.inner.allreduce(Call("ALLREDUCE", 0, (), (), "cpu"), array, op)

    def broadcast(self, call, array, root):
        raise AssertionError("the ranks were to notice before")

    def barrier(self, call):
        raise AssertionError("the ranks were to notice before")

    def close(self):
        self.inner.close()


def test_debug_level_detail_compares_on_transports_that_do_not():
    calls = [lambda: dist.broadcast(torch.ones(2), 0), lambda: dist.barrier(),
             lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.MAX)]

    def program(rank, group):
        group._ready["cpu"] = Blind(group.transport("cpu"))
        x = torch.ones(2)
        dist.all_reduce(x)
        assert x.tolist() == [2, 2]
        for other in calls:
            with pytest.raises(dist.DistBackendError, match="Detected mismatch between collectives on ranks"):
                dist.all_reduce(x) if rank else other()
        dist.all_reduce(x)                                  # nothing was sent but the comparison, so all goes on
        assert x.tolist() == [4, 4]
    before = dist.get_debug_level()
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        as_threads(2, program)
    finally:
        dist.set_debug_level(before)


def test_debug_level_of_the_environment(monkeypatch):
    before = dist.get_debug_level()
    try:
        for said, level, checking in ("detail", dist.DebugLevel.DETAIL, True), ("INFO", dist.DebugLevel.INFO,
                                                                                False), ("OFF", dist.DebugLevel.OFF,
                                                                                         False):
            monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", said)
            dist.set_debug_level_from_env()
            assert dist.get_debug_level() is level and flight_recorder.checking is checking
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "loud")
        with pytest.raises(ValueError, match="The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL."):
            dist.set_debug_level_from_env()
    finally:
        dist.set_debug_level(before)


def test_a_time_out_shows_the_log(capsys):
    seen = dist.HashStore()

    def program(rank, group):
        dist.all_reduce(torch.ones(7))
        if rank == 0:
            group.set_timeout(timedelta(seconds=0.2))
            with pytest.raises(TimedOut, match="Timed out waiting 200ms") as raised:
                dist.broadcast(torch.ones(3), 0)
            text = str(raised.value)
            assert "[rank 0]   group 0 #0 ALLREDUCE op=SUM [7] Float cpu, completed" in text
            assert "[rank 0]   group 0 #1 BROADCAST root=0 [3] Float cpu, failed" in text
            with pytest.raises(TimedOut, match="The group cannot be used any more"):
                dist.barrier()                              # which says nothing more
            seen.set("late", "1")
        else:
            seen.wait(["late"])
            with pytest.raises(dist.DistBackendError):      # the others are told, in the second call at the latest
                dist.broadcast(torch.ones(3), 0)
                dist.barrier()
    as_threads(2, program)
    said = capsys.readouterr().err
    assert (said.count("[rank 0] the last") == 1 and "[rank 0] the last 2 collectives" in said
            and "#1 BROADCAST root=0" in said)


class Late(Transport):
    """Its collectives never end."""

    def allreduce(self, call, array, op):
        def finish(seconds):
            raise TimedOut("Timed out waiting 5ms for recv operation to complete")
        return Work(finish)

    def close(self):
        pass


def test_a_time_out_of_a_handle(capsys):
    group = dist.ProcessGroup(1, 2, transports={"cpu": Late(1, 2, timedelta(seconds=1))}, name="g")
    work = group.allreduce(torch.ones(2))
    assert not work.is_completed() and group.log.calls[0].state == 0
    with pytest.raises(TimedOut, match=r"(?s)Timed out waiting 5ms.*\[rank 1\]   group g #0 ALLREDUCE op=SUM \[2\] "
                                       r"Float cpu, failed"):
        work.wait()
    assert work.is_completed() and not work.is_success() and isinstance(work.exception(), TimedOut)
    with pytest.raises(TimedOut):
        work.get_future().wait()
    assert capsys.readouterr().err.count("#0 ALLREDUCE") == 1


@pytest.mark.parametrize("every", [False, True])
def test_a_barrier_that_names_who_is_missing(every):
    done = dist.HashStore()

    def program(rank, group):
        dist.monitored_barrier(timeout=timedelta(seconds=60))
        limit = timedelta(seconds=0.3 if rank == 0 else 60)
        if rank == 0:
            done.wait(["sent"])
            said = r"Ranks 2, 3 failed" if every else r"Rank 2 failed"
            with pytest.raises(RuntimeError, match=rf"\[Rank 0\]: {said} to pass monitoredBarrier in 300 ms"):
                dist.monitored_barrier(timeout=limit, wait_all_ranks=every)
            done.set("named", "1")
        elif rank == 1:
            send = group.transport().send

            def send_and_tell(*arguments, **options):       # rank 0 begins to wait once the word of this rank is there
                work = send(*arguments, **options)
                done.set("sent", "1")
                return work
            group.transport().send = send_and_tell
            with pytest.raises(RuntimeError, match="Rank 1 successfully reached monitoredBarrier, but received errors"):
                dist.monitored_barrier(timeout=limit, wait_all_ranks=every)
        else:
            done.wait(["named"])
    as_threads(4, program)


def test_one_rank_stops_in_the_debugger(monkeypatch, capsys):
    stopped = []
    monkeypatch.setattr(debugging._Pdb, "set_trace", lambda self: stopped.append(dist.get_rank()))

    def program(rank, group):
        for _ in range(3):
            dist.breakpoint(1, skip=1, timeout_s=100)
        return group.timeout
    assert as_threads(1, program) == [timedelta(seconds=100)] and stopped == []
    as_threads(1, lambda rank, group: dist.breakpoint())
    assert (stopped == [0] and "Type 'up' to get to the frame that called dist.breakpoint(rank=0)"
            in capsys.readouterr().out)


def test_handles():
    order = []
    work = Work()
    future = work.get_future().then(lambda f: order.append("future"))
    work.then(lambda: order.append("after")).then(lambda: order.append("always"), always=True)
    with pytest.raises(RuntimeError, match="Wait timeout after 10ms"):
        work.wait(timedelta(milliseconds=10))
    assert not work.is_completed() and not work.is_success()
    work.complete(source=2)
    assert work.wait() and order == ["future", "after", "always"] and work.source_rank() == 2 and future.done()
    broken = Work()
    broken.then(lambda: order.append("never")).then(lambda: order.append("at the end"), always=True)
    broken.fail(KeyError("why"))
    with pytest.raises(KeyError):
        broken.wait()
    assert order[3:] == ["at the end"] and isinstance(broken.exception(), KeyError)
    with pytest.raises(RuntimeError, match="may only be called on work objects that correspond to a recv"):
        Work.done().source_rank()
    clumsy = Work(lambda seconds: None).then(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        clumsy.wait()
    assert Work.done().wait() and Work.done([1]).result() == [1] and Work.done() is Work.done()


def test_a_backend_of_others():
    class Theirs:
        """With the methods of PyTorch's ProcessGroup, among one rank."""

        def __init__(self, store, rank, size, timeout):
            self.seen, self.timeout = [], timeout

        def allreduce(self, tensors, opts):
            self.seen.append(opts.reduceOp)
            tensors[0].mul_(2)
            return Work.done(tensors)

        def allgather(self, outputs, inputs, opts):
            for out in outputs[0]:
                out.copy_(inputs[0])
            return Work.done(outputs)

        def broadcast(self, tensors, opts):
            self.seen.append(opts.rootRank)
            return Work.done(tensors)

        def barrier(self, opts):
            return Work.done()

    dist.Backend.register_backend("theirs", Theirs, devices=["cpu"])
    try:
        assert dist.is_backend_available("theirs") and dist.Backend.THEIRS == "theirs"
        dist.init_process_group("theirs", rank=0, world_size=1, store=dist.HashStore())
        x, out = torch.ones(2), [torch.zeros(2)]
        dist.all_reduce(x, dist.ReduceOp.MAX)
        assert dist.all_reduce(x, async_op=True).wait() and x.tolist() == [4, 4]
        dist.all_gather(out, x)
        dist.broadcast(x, 0)
        dist.barrier()
        assert out[0].tolist() == [4, 4] and dist.group.WORLD.inner.seen == [dist.ReduceOp.MAX, dist.ReduceOp.SUM, 0]
        assert dist.get_backend() == "theirs" and dist.get_backend_config() == "cpu:theirs"
    finally:
        dist.destroy_process_group()
        dist.Backend._plugins.pop("THEIRS")
        dist.Backend.backend_list.remove("theirs")


def test_a_group_of_its_own():
    store = dist.HashStore()
    group = world.group_over(store, 0, 1, "cpu:gloo")
    assert not dist.is_initialized() and group.size() == 1 and group.name() == "gloo"
    x = torch.ones(2)
    group.allreduce(x).wait()
    with pytest.raises(ValueError, match="is not registered"):
        dist.get_rank(group) if dist.is_initialized() else dist.get_global_rank(group, 0)
    group.shutdown()
