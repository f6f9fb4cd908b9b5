"""Two ranks of a kind, seen from the one that asks them: they hold their cases, and time a block together when it is
their turn.
"""
from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from .timing import Budget
from .workloads import ROOT, Problem

PATIENCE = 120.0            # seconds for an answer
POOLS = {f"{pool}_NUM_THREADS": "1" for pool in ("OMP", "OPENBLAS", "MKL")}


def mpiexec() -> str | None:
    """The launcher of MPI's ranks: beside Python, in the wheel of mpich, or on the path."""
    beside = [Path(sys.executable).with_name("mpiexec")]
    with suppress(PackageNotFoundError):
        beside += [Path(file.locate()) for file in files("mpich") or () if file.name == "mpiexec"]
    return next((str(path.resolve()) for path in beside if path.exists()), shutil.which("mpiexec"))


class Pair:
    """Two ranks of a kind of `ranks.KINDS`. Problem, where they do not start, fail, or do not answer."""

    def __init__(self, kind: str) -> None:
        self.kind, self.processes = kind, list[subprocess.Popen[bytes]]()
        self.ranks: list[Connection] = []
        key = secrets.token_bytes(32)
        self.environment = os.environ | POOLS | {"BENCHMARK_KEY": key.hex(), "PYTHONPATH": str(ROOT)}
        with Listener(("127.0.0.1", 0), authkey=key, backlog=4) as listener:
            listener._listener._socket.settimeout(PATIENCE)         # type: ignore[attr-defined]
            self._start([sys.executable, "-m", "benchmarks.ranks", kind, str(listener.address[1])])
            try:
                found = [listener.accept() for _ in range(2)]
            except OSError as error:
                self.stop()
                raise Problem(f"its ranks did not start: {error}", kind) from None
        greetings = {rank: (ranks, about) for ranks in found for rank, about in [self._received(ranks)]}
        self.ranks, self.about = [greetings[rank][0] for rank in (0, 1)], greetings[0][1]

    def _start(self, command: list[str]) -> None:
        if self.kind in ("mpi", "mpi4py"):
            if (launcher := mpiexec()) is None:
                raise Problem("there is no mpiexec", self.kind)
            self.processes = [subprocess.Popen([launcher, "-n", "2", *command], env=self.environment, cwd=ROOT)]
            return
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        self.processes = [subprocess.Popen(command, cwd=ROOT,
                                           env=self.environment | where | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
                          for rank in range(2)]

    def ask(self, request: str, *arguments: Any) -> list[Any]:
        """The answers of both ranks, which get the request at once."""
        for rank in self.ranks:
            rank.send((request, *arguments))
        answers = [self._received(rank) for rank in self.ranks]
        for _, problem in answers:
            if problem:
                raise Problem(f"failed: {problem}", self.kind)
        return [answer for answer, _ in answers]

    def _received(self, rank: Connection) -> Any:
        try:
            if rank.poll(PATIENCE):
                return rank.recv()
        except EOFError:
            raise Problem("failed: a rank ended", self.kind) from None
        raise Problem("failed: a rank does not answer", self.kind)

    def stop(self) -> None:
        """End both ranks: they leave when nobody is left to ask them."""
        for rank in self.ranks:
            rank.close()
        for process in self.processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            if process.poll() is None:
                process.kill()
                process.wait()


class Case:
    """A case of a pair, to be timed in turn with others."""

    rest = 0.05

    def __init__(self, pair: Pair, name: str) -> None:
        self.pair, self.name = pair, name

    def block(self, runs: int, budget: Budget) -> float:
        """The time of one run, of the slower rank."""
        return max(self.pair.ask("block", self.name, runs))

    def fill(self, budget: Budget) -> int:
        """How many runs fill a block."""
        runs = 1
        while (taken := self.block(runs, budget) * runs) <= budget.seconds / 4:
            runs *= 4
        return max(1, int(runs * budget.seconds / taken))
