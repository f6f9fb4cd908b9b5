"""Processes that work together: one alone beside PyTorch, two that train one model, stores."""
import os
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
        done = [d.is_initialized(), d.get_rank(), d.get_world_size(), d.get_backend(), d.get_process_group_ranks(None), work.wait(), work.is_completed(),
                attempt(lambda: d.init_process_group("gloo", rank=0, world_size=1, store=d.HashStore())),
                *[attempt(lambda op=op: d.all_reduce(x, op)) for op in (d.ReduceOp.SUM, d.ReduceOp.MAX, d.ReduceOp.BAND)],
                d.all_gather(lists, x), lists, attempt(lambda: d.all_gather([torch.zeros(3)], x)), attempt(lambda: d.all_gather([], x)),
                attempt(lambda: d.all_reduce(1)), d.broadcast(x, 0), attempt(lambda: d.broadcast(x, 1)), d.reduce(x, 0),
                d.all_gather_object(objects, {"a": 1}), objects, d.broadcast_object_list(objects, 0), d.scatter(y, [x]), y, attempt(lambda: d.scatter(y)),
                d.gather(x, lists), attempt(lambda: d.gather(x)), d.reduce_scatter(y, [x]), d.all_to_all([y], [x]), d.barrier(),
                attempt(lambda: d.send(x, 0)), d.new_group([0]).size(), attempt(lambda: d.new_group([1]))]
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        model(x[None]).sum().backward()
        done += [str(model), model.module.weight.grad, list(model.state_dict()),
                 list(torch.utils.data.DistributedSampler(range(5), shuffle=False)), str(d.ReduceOp.SUM), d.Backend("GLOO")]
    finally:
        d.destroy_process_group()
    return before, done, d.is_initialized(), attempt(d.destroy_process_group), d.is_available(), d.is_gloo_available(), d.is_ucc_available()


@program
def a_store(torch):
    import importlib
    d = importlib.import_module(torch.__name__ + ".distributed")
    s = d.PrefixStore("p", d.HashStore())
    return (s.set("a", "b"), s.get("a"), s.add("n", 3), s.add("n", -1), s.check(["a"]), s.check(["c"]), s.delete_key("a"), s.delete_key("a"),
            s.compare_set("k", "", "v"), s.compare_set("k", "v", "w"), s.compare_set("k", "x", "y"), s.wait(["k"]))


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
"""


def test_two_processes(tmp_path):
    import socket
    path = tmp_path / "two.py"
    path.write_text(TWO, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    done = subprocess.run([sys.executable, "-W", "error", "-m", "tensorgrad", str(path), port], env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    common = "[tensor([0.5000], dtype=torch.bfloat16), tensor([1.5000], dtype=torch.bfloat16)]"
    objects = "[{'rank': 0}, {'rank': 1}]"
    assert done.stdout.splitlines() == [f"0 {common} 10 12 [1.0, 1.0, 1.0] {objects} ['a'] [0, 10] -1 6.0",
                                        f"1 {common} 12 12 [0.0, 0.0, 0.0] {objects} ['b'] [1, 11] 0 12.0"]


def test_a_store_over_the_network():
    from tensorgrad.distributed import TCPStore
    master = TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=20))
    other = TCPStore("127.0.0.1", master.port, timeout=timedelta(seconds=20))
    threading.Timer(0.05, lambda: master.set("late", b"a\0b")).start()
    assert other.get("late") == b"a\0b" and other.num_keys() == 1
    with pytest.raises(DistStoreError, match="wait timeout after 10ms, keys: /never"):
        other.wait(["never"], timedelta(milliseconds=10))


def test_other_ways_to_meet():
    dist = tensorgrad.distributed
    for arguments, kind, message in [({"backend": "nccl"}, RuntimeError, "doesn't have NCCL built in"),
                                     ({"backend": "words"}, AssertionError, "Unknown backend"),
                                     ({"init_method": "ftp:///x"}, RuntimeError, "No rendezvous handler for ftp://"),
                                     ({"init_method": "tcp://127.0.0.1:1", "world_size": 1}, ValueError, "rank parameter missing")]:
        with pytest.raises(kind, match=message):
            dist.init_process_group(**arguments)
    dist.init_process_group(init_method="tcp://127.0.0.1:1?rank=0&world_size=1")
    assert dist.get_rank() == 0
    dist.destroy_process_group()
