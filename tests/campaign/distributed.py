"""Random collectives and messages of 2 to 4 ranks of one machine, compared with NumPy, while strangers besiege the
store and ranks are killed: python tests/campaign/distributed.py --groups 40 --kills 20 --seed 1

A group's ranks are processes that make one random program of calls, sizes, dtypes, roots, asynchronous or not, from one
seed, and compare each result bit for
bit. Strangers connect to the port of its store: some are silent, some send garbage, claim lengths, or stop half way. In
    some groups one rank is killed after
a random while: all others must raise an error that names it, within 30 s. The exit status is 1 if a result was another,
    a rank hung or raised something else.
"""
import argparse
import json
import multiprocessing
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import time
from datetime import timedelta
from functools import reduce
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

import numpy as np  # noqa: E402

from tensorgrad.distributed import TCPStore  # noqa: E402
from tensorgrad.distributed.operations import ReduceOp, combine  # noqa: E402
from tensorgrad.distributed.transport import shared_memory  # noqa: E402
from tensorgrad.distributed.transport.base import Call  # noqa: E402
from tensorgrad.dtype import bfloat16  # noqa: E402

DTYPES = ("f4", "f8", "f2", "i1", "i4", "i8", "u1", "?", "c8", "c16", bfloat16.numpy)
OPS = {"b": ("SUM", "MAX", "MIN", "BAND", "BOR"), "i": ("SUM", "PRODUCT", "MAX", "MIN", "BAND", "BOR", "BXOR"),
       "f": ("SUM", "PRODUCT", "MAX", "MIN"),
       "c": ("SUM",), "V": ("SUM", "MAX")}
OPS["u"] = OPS["i"]
GARBAGE = (b"", b"x", struct.pack("!I", 1 << 31) * 20, b"GET / HTTP/1.1\r\n\r\n", bytes(64), bytes(63))
LIMIT = 30.0


def data(seed, count, dtype):
    """Any bits that are numbers of the dtype: no NaN, whose bits NumPy does not promise."""
    chance, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind == "b":
        return chance.random(count) > 0.5
    if dtype.kind in "iu":
        return chance.integers(-100 if dtype.kind == "i" else 0, 100, count).astype(dtype)
    return (chance.standard_normal(count) + (1j * chance.standard_normal(count) if dtype.kind == "c" else 0)).astype(
        dtype)


def folded(arrays, op):
    with np.errstate(all="ignore"):
        return reduce(lambda a, b: combine(op)(a, b), arrays)


class Program:
    """Random calls, alike on all ranks."""

    def __init__(self, transport, seed):
        self.transport, self.chance, self.calls, self.pending = transport, random.Random(seed), 0, []
        self.rank, self.size = transport.rank, transport.size

    def step(self):
        """Make a call; its result is compared at once, or after further calls if it is asynchronous."""
        chance, self.calls = self.chance, self.calls + 1
        count = int(10 ** chance.uniform(0, chance.choice((1, 3, 5, 6)))) - chance.randint(0, 1)
        dtype, seed, root, later = (chance.choice(DTYPES), chance.randrange(1 << 40), chance.randrange(self.size),
                                    chance.random() < 0.4)
        op = ReduceOp[chance.choice(OPS[np.dtype(dtype).kind])]
        kind = chance.choice((self.allreduce, self.allreduce, self.reduce, self.reduce_scatter, self.broadcast,
                              self.allgather, self.gather, self.scatter, self.alltoall, self.barrier, self.ring,
                              self.anyone))
        call = Call(kind.__name__, self.calls, ((count,),), (str(np.dtype(dtype)),), "cpu", f"{op} {root}", later)
        work, found, expected = kind(call, count, dtype, seed, root, op)
        self.pending.append((call, work, found, expected))
        while len(self.pending) > (chance.randint(0, 5) if later else 0):
            self.check(*self.pending.pop(0))

    def check(self, call, work, found, expected):
        work.wait()
        if found is not None and found.tobytes() != expected.tobytes():
            raise AssertionError(f"{call}: {np.flatnonzero(found != expected)[:5]} differ")

    def arrays(self, seed, count, dtype):
        return [data((seed, rank), count, dtype) for rank in range(self.size)]

    def allreduce(self, call, count, dtype, seed, root, op):
        arrays = self.arrays(seed, count, dtype)
        found = arrays[self.rank].copy()
        return self.transport.allreduce(call, found, op), found, folded(arrays, op)

    def reduce(self, call, count, dtype, seed, root, op):
        arrays = self.arrays(seed, count, dtype)
        found = arrays[self.rank].copy()
        return (self.transport.reduce(call, found, root, op), found,
                folded(arrays, op) if self.rank == root else arrays[self.rank])

    def reduce_scatter(self, call, count, dtype, seed, root, op):
        arrays = self.arrays(seed, count * self.size, dtype)
        found = np.empty(count, dtype)
        return (self.transport.reduce_scatter(call, found, arrays[self.rank], op), found,
                folded(arrays, op)[self.rank * count:(self.rank + 1) * count])

    def broadcast(self, call, count, dtype, seed, root, op):
        arrays = self.arrays(seed, count, dtype)
        found = arrays[self.rank].copy()
        return self.transport.broadcast(call, found, root), found, arrays[root]

    def allgather(self, call, count, dtype, seed, root, op):
        arrays = self.arrays(seed, count, dtype)
        found = np.empty(count * self.size, dtype)
        return self.transport.allgather(call, found, arrays[self.rank]), found, np.concatenate(arrays)

    def gather(self, call, count, dtype, seed, root, op):
        arrays = self.arrays(seed, count, dtype)
        found = np.empty(count * self.size, dtype) if self.rank == root else None
        return self.transport.gather(call, found, arrays[self.rank], root), found, np.concatenate(arrays)

    def scatter(self, call, count, dtype, seed, root, op):
        whole, found = data(seed, count * self.size, dtype), np.empty(count, dtype)
        work = self.transport.scatter(call, found, whole if self.rank == root else None, root)
        return work, found, whole[self.rank * count:(self.rank + 1) * count]

    def alltoall(self, call, count, dtype, seed, root, op):
        chance = random.Random(seed)
        counts = [[chance.randint(0, count) for _ in range(self.size)] for _ in range(self.size)]
        sent = [data((seed, rank), sum(counts[rank]), dtype) for rank in range(self.size)]
        got = [row[self.rank] for row in counts]
        found = np.empty(sum(got), dtype)
        expected = np.concatenate([np.split(sent[rank], np.cumsum(counts[rank])[:-1])[self.rank]
                                   for rank in range(self.size)])
        return self.transport.alltoall(call, found, sent[self.rank], got, counts[self.rank]), found, expected

    def barrier(self, call, count, dtype, seed, root, op):
        return self.transport.barrier(call), None, None

    def ring(self, call, count, dtype, seed, root, op):
        """Messages to the next rank, with two tags, asked for in the other order or after they were sent."""
        arrays, found = self.arrays(seed, count, dtype), np.empty(count, dtype)
        few = np.empty(count // 2, dtype)
        before, following, own = (self.rank - 1) % self.size, (self.rank + 1) % self.size, arrays[self.rank]
        first = self.transport.receive(found, before, 1, True) if seed % 2 else None
        works = [self.transport.send(own[:count // 2], following, 2, True),
                 self.transport.send(own, following, 1, True)]
        first = first or self.transport.receive(found, before, 1, True)
        self.transport.receive(few, before, 2, False)
        for work in works:
            work.wait()
        if few.tobytes() != arrays[before][:count // 2].tobytes():
            raise AssertionError(f"{call}: another message")
        return first, found, arrays[before]

    def anyone(self, call, count, dtype, seed, root, op):
        """All ranks send to one, which receives from any source."""
        arrays, found = self.arrays(seed, count, dtype), np.empty(count, dtype)
        if self.rank != root:
            return self.transport.send(arrays[self.rank], root, 3 + self.calls, call.later), None, None
        for _ in range(self.size - 1):
            work = self.transport.receive(found, None, 3 + self.calls, False)
            if found.tobytes() != arrays[work.source_rank()].tobytes():
                raise AssertionError(f"{call}: another message")
        return work, None, None


def rank_of(directory, rank, size, seed, steps):
    """A rank: it leaves what it came to in a file."""
    ended = {"error": "", "text": ""}
    program, begun = None, time.monotonic()
    try:
        if rank:
            while not (directory / "port").exists():
                time.sleep(0.005)
        store = TCPStore("127.0.0.1", int((directory / "port").read_text()) if rank else 0, size, rank == 0,
                         timedelta(seconds=120), wait_for_workers=False)
        if rank == 0:
            (directory / "port.new").write_text(str(store.port))
            (directory / "port.new").rename(directory / "port")
        transport = shared_memory.create(store, rank, size, timedelta(seconds=120), "world")
        program = Program(transport, seed)
        (directory / f"begun{rank}").touch()
        begun = time.monotonic()
        for _ in range(steps):
            program.step()
        for pending in program.pending:
            program.check(*pending)
        transport.close()
    except BaseException as error:
        ended = {"error": type(error).__name__, "text": str(error)}
    ended |= {"calls": program.calls if program else 0, "seconds": time.monotonic() - begun, "at": time.time()}
    (directory / f"rank{rank}").write_text(json.dumps(ended))


def besiege(port, chance, held):
    """Some strangers more at a port."""
    for _ in range(chance.randint(1, 20)):
        try:
            stranger = socket.create_connection(("127.0.0.1", port), 5)
        except OSError:
            return
        said = chance.choice((*GARBAGE, chance.randbytes(chance.randint(1, 200))))
        try:
            stranger.send(said)
        except OSError:
            pass
        held.append(stranger)
    while len(held) > 150:
        held.pop(chance.randrange(len(held))).close()


def group(chance, steps, kills):
    """Run a group to its end; return (calls, killed, strangers, slowest reaction to a kill, mistakes)."""
    size, seed, held, strangers, killed_at = chance.randint(2, 4), chance.randrange(1 << 40), [], 0, 0.0
    victim, moment = (chance.randrange(size), chance.uniform(0, 1.5)) if kills else (-1, 0.0)
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        processes = [context.Process(target=rank_of, args=(directory, rank, size, seed, 1 << 40 if kills else steps))
                     for rank in range(size)]
        for process in processes:
            process.start()
        end, began = time.monotonic() + 150, 0.0
        while any(process.is_alive() for process in processes) and time.monotonic() < end:
            if (directory / "port").exists():
                besiege(int((directory / "port").read_text()), chance, held)
                strangers += 1
            if kills and not began and all((directory / f"begun{rank}").exists() for rank in range(size)):
                began = time.monotonic()
            if began and not killed_at and time.monotonic() > began + moment:
                os.kill(processes[victim].pid, signal.SIGKILL)
                killed_at = time.time()
                end = time.monotonic() + LIMIT + 5
            time.sleep(0.02)
        hung = [rank for rank, process in enumerate(processes) if process.is_alive()]
        for process in processes:
            process.kill()
            process.join()
        for stranger in held:
            stranger.close()
        ends = {rank: json.loads(path.read_text()) for rank in range(size)
                if (path := directory / f"rank{rank}").exists()}
    wrong = [f"rank {rank} hung" for rank in hung]
    for rank, ended in ends.items():
        if kills and rank != victim:
            if f"rank {victim} (pid {processes[victim].pid}" not in ended["text"] or ended["at"] - killed_at > LIMIT:
                wrong.append(f"rank {rank}, after rank {victim} was killed: {ended}")
        elif ended["error"]:
            wrong.append(f"rank {rank}: {ended}")
    calls = max((ended["calls"] for ended in ends.values()), default=0)
    slowest = max((ended["at"] - killed_at for rank, ended in ends.items() if kills and rank != victim), default=0.0)
    return calls, int(kills), strangers, slowest, [f"seed {seed}, {size} ranks: {line}" for line in wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--groups", type=int, default=40)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance, began = random.Random(given.seed), time.monotonic()
    calls = killed = sieges = failed = 0
    slowest = 0.0
    groups = given.groups + given.kills
    for number in range(groups):
        kills = number * given.kills // groups != (number + 1) * given.kills // groups
        some, dead, strangers, took, wrong = group(chance, given.steps, kills)
        calls, killed, sieges, slowest = calls + some, killed + dead, sieges + strangers, max(slowest, took)
        failed += bool(wrong)
        for line in wrong:
            print(line, flush=True)
    print(f"distributed: {groups} groups, {calls:,} calls, {sieges:,} sieges of the store, {killed} ranks killed, seen "
          f"by all others after {slowest:.2f} s at most, {failed} groups with findings, {time.monotonic() - began:.0f} "
          f"s")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
