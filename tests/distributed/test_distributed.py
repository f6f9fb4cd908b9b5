"""Processes that work together: one alone beside PyTorch, two that train one model, stores."""
import os
import socket
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from side_by_side import attempt
from support import ROOT, Programs, cpu_only

import tensorgrad
from tensorgrad.distributed.stores import DistStoreError

pytestmark = cpu_only
program = Programs()


@program
def one_process(torch):
    import importlib
    d = importlib.import_module(torch.__name__ + ".distributed")
    before = [d.is_initialized(), attempt(d.get_rank), attempt(lambda: d.init_process_group("gloo"))]
    names = [name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") if name in os.environ]
    assert not names
    d.init_process_group("gloo", rank=0, world_size=1, store=d.HashStore())
    try:
        x, y = torch.tensor([1., 2.]), torch.zeros(2)
        lists, objects = [torch.zeros(2)], [None]
        work = d.all_reduce(x, async_op=True)
        done = [d.is_initialized(), d.get_rank(), d.get_world_size(), d.get_backend(), d.get_process_group_ranks(None),
                work.wait(), work.is_completed(),
                attempt(lambda: d.init_process_group("gloo", rank=0, world_size=1, store=d.HashStore())),
                *[attempt(lambda op=op: d.all_reduce(x, op))
                  for op in (d.ReduceOp.SUM, d.ReduceOp.MAX, d.ReduceOp.BAND)],
                d.all_gather(lists, x), lists, attempt(lambda: d.all_gather([torch.zeros(3)], x)),
                attempt(lambda: d.all_gather([], x)),
                attempt(lambda: d.all_reduce(1)), d.broadcast(x, 0), attempt(lambda: d.broadcast(x, 1)), d.reduce(x, 0),
                d.all_gather_object(objects, {"a": 1}), objects, d.broadcast_object_list(objects, 0), d.scatter(y, [x]),
                y, attempt(lambda: d.scatter(y)),
                d.gather(x, lists), attempt(lambda: d.gather(x)), d.reduce_scatter(y, [x]), d.all_to_all([y], [x]),
                d.barrier(),
                attempt(lambda: d.send(x, 0)), d.new_group([0]).size(), attempt(lambda: d.new_group([1]))]
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        model(x[None]).sum().backward()
        done += [str(model), model.module.weight.grad, list(model.state_dict()),
                 list(torch.utils.data.DistributedSampler(range(5), shuffle=False)), str(d.ReduceOp.SUM),
                 d.Backend("GLOO")]
    finally:
        d.destroy_process_group()
    return (before, done, d.is_initialized(), attempt(d.destroy_process_group), d.is_available(), d.is_gloo_available(),
            d.is_ucc_available())


@program
def wrong_arguments(torch):
    import importlib
    d = importlib.import_module(torch.__name__ + ".distributed")
    d.init_process_group("gloo", rank=0, world_size=1, store=d.HashStore())
    try:
        x, ints, out = torch.ones(2), torch.ones(2, dtype=torch.int32), torch.zeros(2)
        world, outside = d.group.WORLD, d.GroupMember.NON_GROUP_MEMBER
        p2p = d.P2POp(d.isend, x, 0)
        calls = [
            lambda: d.all_gather_single(torch.ones(3), x), lambda: d.all_to_all_single(out, x, [1], [2]),
            lambda: d.all_to_all_single(out, x, [1, 1], [1, 1]),
            lambda: d.all_to_all([], [x]), lambda: d.all_to_all([x, x], [x]),
            lambda: d.all_to_all([torch.ones(3)], [x])[0],
            lambda: d.gather(x, [torch.ones(3)]), lambda: d.gather(x, [out, x]), lambda: d.gather(x, [ints]),
            lambda: d.scatter(x, [torch.ones(3)]),
            lambda: d.scatter(x, [x, x]), lambda: d.all_gather([ints], x), lambda: d.all_gather((x,), x),
            lambda: d.all_gather([1], x),
            lambda: d.broadcast(x), lambda: d.broadcast(x, 0, group_src=0), lambda: d.reduce(x, 5),
            lambda: d.all_reduce(x, group=outside),
            lambda: d.all_gather_object([None], 1, group=outside), lambda: d.barrier(group=outside),
            lambda: d.get_rank(outside),
            lambda: d.get_world_size(outside), lambda: d.get_backend(outside), lambda: d.new_group([0, 0])[0],
            lambda: d.new_group([0, 1]),
            lambda: d.new_group([0], timeout=3), lambda: d.isend(x, 0, group=outside),
            lambda: d.irecv(x, 0, group=outside),
            lambda: d.recv(x, 0, group=outside), lambda: d.send(x, 0), lambda: d.P2POp(d.send, x, 0),
            lambda: [str(p2p), p2p.peer, p2p.group_peer, p2p.tag],
            lambda: d.batch_isend_irecv([1]), lambda: str(d.reduce_op.SUM), lambda: d.reduce_op.X,
            lambda: d.monitored_barrier(timeout=3),
            lambda: d.get_node_local_rank(), lambda: d.get_node_local_rank(3), lambda: d.get_global_rank(world, 5),
            lambda: d.get_group_rank(3, 5),
            lambda: d.get_default_backend_for_device("meta"), lambda: d.get_default_backend_for_device("cpu"),
            lambda: d.new_subgroups(2),
            lambda: d.new_subgroups(0), lambda: len(d.new_subgroups(1)[1]), lambda: d.new_subgroups_by_enumeration([]),
            lambda: d.new_subgroups_by_enumeration([[0], [0]]), lambda: d.split_group(split_ranks=[]),
            lambda: str(d.BackendConfig(d.Backend("gloo"))),
            lambda: str(d.BackendConfig(d.Backend("cpu:gloo,cuda:nccl"))), lambda: d.Backend(3),
            lambda: d.Backend("Words"),
            lambda: d.is_backend_available("words"), lambda: d.is_backend_available("GLOO"),
            lambda: d.is_backend_available("cpu:gloo"),
            lambda: d.scatter_object_list([], [1]), lambda: d.scatter_object_list([None], None),
            lambda: d.scatter_object_list([None], [1, 2]),
            lambda: d.gather_object(1, None), lambda: d.all_gather_object([], 1),
            lambda: d.broadcast_object_list([], 0),
            lambda: d.destroy_process_group(3), lambda: d.destroy_process_group(outside),
            lambda: d.recv_object_list([None], 0),
            lambda: d.send_object_list([None], 0), lambda: d.scatter(x), lambda: d.gather(x),
            lambda: d.all_reduce(torch.ones(1, dtype=torch.int64), d.ReduceOp.AVG),
            lambda: d.all_reduce(x.to(torch.complex64), d.ReduceOp.MAX), lambda: d.all_reduce(x, d.ReduceOp.AVG),
            lambda: d.get_backend_config(), lambda: d.all_reduce(x, group="g"), lambda: d.broadcast(x, 0, group=3),
            lambda: [world.name(), world.group_name, world.group_desc, world.size(), world.rank()],
            lambda: d.reduce_scatter(x, [x, x]),
            lambda: d.supports_complex(d.ReduceOp.MAX),
            lambda: [d.ReduceOp.SUM == 0, int(d.ReduceOp.BXOR), list(d.ReduceOp.RedOpType.__members__)[:8]],
            lambda: d.all_gather_into_tensor(out, x), lambda: d.reduce_scatter_tensor(out, x),
            lambda: d.all_reduce_coalesced([x, out]),
            lambda: [str(d.get_debug_level()), d.set_debug_level(d.DebugLevel.INFO), str(d.get_debug_level()),
                     d.set_debug_level(d.DebugLevel.OFF)],
            lambda: d.all_reduce(torch.ones(0)), lambda: d.all_reduce(torch.tensor(1.)),
            lambda: d.register_rendezvous_handler("env", print),
            lambda: d.distributed_c10d._get_default_group() is world, lambda: sorted(map(str, world._device_types))]
        return [attempt(call) for call in calls], x, out
    finally:
        d.destroy_process_group()


@program
def ways_to_meet(torch):
    import importlib
    d = importlib.import_module(torch.__name__ + ".distributed")
    store = d.HashStore()
    found = []
    alone = {"store": store, "rank": 0, "world_size": 1}
    for options in ({"backend": "ucc"} | alone, {"backend": "cpu:words"} | alone, {"init_method": "x"},
                    {"init_method": "foo://x"}, {"init_method": 3},
                    {"timeout": 3}, {"store": store}, {"store": store, "world_size": 1},
                    {"store": store, "init_method": "env://"},
                    {"init_method": "tcp://127.0.0.1"},
                    {"init_method": "tcp://127.0.0.1:1"},
                    {"init_method": "tcp://127.0.0.1:1?rank=0"}, {"init_method": "file://"},
                    {"init_method": "file:///nowhere/x"}, {"init_method": "file:///nowhere/x?rank=0"},
                    {"init_method": "env://?rank=0", "rank": 0, "world_size": 1},
                    {"rank": "0"}):
        found.append(attempt(lambda options=options: d.init_process_group(**{"backend": "gloo"} | options)))
    return found, [attempt(call) for call in (d.get_rank, d.get_backend, d.barrier, lambda: d.new_group([0]),
                                              d.destroy_process_group,
                                              lambda: d.all_reduce(torch.ones(1)))]


@program
def a_store(torch):
    import importlib
    d = importlib.import_module(torch.__name__ + ".distributed")
    s = d.PrefixStore("p", d.HashStore())
    return (s.set("a", "b"), s.get("a"), s.add("n", 3), s.add("n", -1), s.check(["a"]), s.check(["c"]),
            s.delete_key("a"), s.delete_key("a"), s.compare_set("k", "", "v"), s.compare_set("k", "v", "w"),
            s.compare_set("k", "x", "y"), s.wait(["k"]))


test_programs = program.test()

TWO = """
import os, sys, torch, torch.distributed as dist, torch.nn as nn
import torch.distributed.nn as together
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

def work(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Linear(3, 1))
    x = torch.arange(12.).reshape(4, 3).sin()[rank::2]
    model(x).pow(2).mean().backward()
    torch.manual_seed(0)
    alone = nn.Linear(3, 1)
    alone(torch.arange(12.).reshape(4, 3).sin()).pow(2).mean().backward()
    assert torch.equal(model.module.weight, alone.weight)
    torch.testing.assert_close(model.module.weight.grad, alone.weight.grad)
    found = [torch.zeros(1, dtype=torch.bfloat16) for _ in range(2)]
    dist.all_gather(found, torch.full((1,), rank + 0.5, dtype=torch.bfloat16))
    t = torch.arange(2) + 10 * rank
    out, whole = torch.zeros(1, dtype=torch.int64), torch.tensor(3 + rank)
    dist.reduce_scatter(out, list(t.split(1)))
    dist.all_reduce(whole, dist.ReduceOp.PRODUCT)
    letter = torch.zeros(3)
    pending = dist.irecv(letter, 1 - rank)
    dist.isend(torch.ones(3) * rank, 1 - rank)
    pending.wait()
    objects, mine = [None, None], [None]
    dist.all_gather_object(objects, {"rank": rank})
    dist.scatter_object_list(mine, ["a", "b"] if rank == 0 else None, src=0)
    pieces = [torch.zeros(1, dtype=torch.int64) for _ in range(2)]
    dist.all_to_all(pieces, list(t.split(1)))
    group = dist.new_group([1])
    lone = torch.ones(1)
    if rank == 1:
        dist.all_reduce(lone, group=group)
    v = torch.full((1,), rank + 1., requires_grad=True)
    (together.all_reduce(v * v) * (rank + 1)).sum().backward()
    dist.barrier()
    line = [rank, found, out.item(), whole.item(), letter.tolist(), objects, mine, [p.item() for p in pieces], dist.get_rank(group), v.grad.item()]
    gathered = [None, None] if rank == 0 else None
    dist.gather_object(line, gathered)
    for line in gathered or []:
        print(*line)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, args=(sys.argv[1],), nprocs=2)
"""  # noqa: E501


def test_two_processes(tmp_path):
    path = tmp_path / "two.py"
    path.write_text(TWO, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    done = subprocess.run([sys.executable, "-W", "error", "-m", "tensorgrad", str(path), port],
                          env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    common = "[tensor([0.5000], dtype=torch.bfloat16), tensor([1.5000], dtype=torch.bfloat16)]"
    objects = "[{'rank': 0}, {'rank': 1}]"
    assert done.stdout.splitlines() == [f"0 {common} 10 12 [1.0, 1.0, 1.0] {objects} ['a'] [0, 10] -1 6.0",
                                        f"1 {common} 12 12 [0.0, 0.0, 0.0] {objects} ['b'] [1, 11] 0 12.0"]


def test_a_store_over_the_network():
    from tensorgrad.distributed import TCPStore
    master = TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=60))
    other = TCPStore("127.0.0.1", master.port, timeout=timedelta(seconds=60))
    threading.Timer(0.05, lambda: master.set("late", b"a\0b")).start()
    assert other.get("late") == b"a\0b" and other.num_keys() == 1
    with pytest.raises(DistStoreError, match="wait timeout after 10ms, keys: /never"):
        other.wait(["never"], timedelta(milliseconds=10))


def test_other_ways_to_meet():
    dist = tensorgrad.distributed
    for arguments, kind, message in [({"backend": "nccl"}, RuntimeError, "doesn't have NCCL built in"),
                                     ({"backend": "words"}, AssertionError, "Unknown backend"),
                                     ({"init_method": "ftp:///x"}, RuntimeError, "No rendezvous handler for ftp://"),
                                     ({"init_method": "tcp://127.0.0.1:1", "world_size": 1}, ValueError,
                                      "rank parameter missing")]:
        with pytest.raises(kind, match=message):
            dist.init_process_group(**arguments)
    dist.init_process_group(init_method="tcp://127.0.0.1:1?rank=0&world_size=1")
    assert dist.get_rank() == 0
    dist.destroy_process_group()


def test_ranks_of_several_machines_do_not_wait_for_each_other(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    for url, size, given in (None, "2", {}), ("env://?world_size=2", "1", {}), (None, "1",
                                                                                {"rank": 0, "world_size": 2}):
        # there is no MASTER_ADDR: whoever tries to meet has another error
        monkeypatch.setenv("WORLD_SIZE", size)
        with pytest.raises(RuntimeError, match="one machine only, but of 2 ranks 1 are on this one"):
            tensorgrad.distributed.init_process_group("gloo", init_method=url, **given)


MEETINGS = """
import os, sys, tensorgrad.distributed as dist, tensorgrad as torch
path, port = sys.argv[1:]
rank = int(os.environ["PMI_RANK"])                     # as mpiexec sets it, and nothing else
for options in {}, {"init_method": f"file://{path}", "rank": rank, "world_size": 2}, {"init_method": f"tcp://127.0.0.1:{port}?rank={rank}&world_size=2"}, {}:
    dist.init_process_group("gloo", **options)
    x = torch.tensor(rank + 1)
    dist.all_reduce(x)
    dist.barrier()
    assert x.item() == 3 and dist.get_rank() == rank
    dist.destroy_process_group()
os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
try:
    dist.init_process_group("gloo")
except RuntimeError as error:
    assert "one machine only, but of 2 ranks 1 are on this one. Between machines, use init_process_group(\\"mpi\\")" in str(error)
    print("met", rank)
os.environ.pop("LOCAL_WORLD_SIZE")
dist.init_process_group("gloo")
raise ValueError("a rank says who it is")
"""  # noqa: E501


def test_ways_of_two_processes_to_meet(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2",
                "XDG_RUNTIME_DIR": str(tmp_path)}
    started = [subprocess.Popen([sys.executable, "-W", "error", "-c", MEETINGS, str(tmp_path / "store"), port],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=settings | {"PMI_RANK": str(rank), "MPI_LOCALRANKID": str(rank)})
               for rank in range(2)]
    try:
        for rank, process in enumerate(started):
            out, err = process.communicate(timeout=110)
            assert process.returncode == 1 and out == f"met {rank}\n", err
            assert err.splitlines()[0] == f"[rank{rank}]: Traceback (most recent call last):", err
            assert f"[rank{rank}]: ValueError: a rank says who it is" in err.splitlines(), err
    finally:
        for process in started:
            process.kill()
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == []       # neither stores nor secrets
