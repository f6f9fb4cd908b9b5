"""Several processes that train one module, or several GPUs of one process.

`joined` makes the group of processes from the name of a way to communicate; everything else here goes through the
public functions of `distributed`.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any

from .. import api as tg
from .. import nn
from ..runtime import threads
from .batches import mapped

__all__ = ["Alone", "Processes", "Replicas", "joined", "launched", "place", "rank_zero_only"]

NAMES = ("auto", "dp", "ddp", "ddp_spawn", "ddp2")
SOON = 30.0  # seconds in which a process ends that others have seen fail


class Steps(nn.Module):
    """A module whose forward calls a named step of another module, for data-parallel wrappers."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, step: str, *args: Any) -> Any:
        """Call the step of this name."""
        return getattr(self.module, step)(*args)


class Parts(Steps):
    """`Steps` on a part of the batch: scalars become vectors of one element, so that the parts' results concatenate."""

    def forward(self, step: str, *args: Any) -> Any:
        found = super().forward(step, *args)
        return mapped(lambda x: x[None] if isinstance(x, tg.Tensor) and not x.ndim else x, found)


class Alone:
    """A single process: sums over processes are the values themselves."""

    rank, world = 0, 1

    def wrapped(self, module: Any) -> Callable[[str], Callable[..., Any]]:
        """Return a function that maps a step's name to the step."""
        return lambda step: getattr(module, step)

    def no_sync(self) -> Any:
        """A context in which gradients only add up in this process."""
        return nullcontext()

    def turn(self) -> Any:
        """A context in which no other thread logs."""
        return nullcontext()

    def sum(self, value: float) -> float:
        """The sum of a number over the processes."""
        return value

    def mean(self, value: float) -> float:
        """The mean of a number over the processes."""
        return value

    def extreme(self, value: float, which: str) -> float:
        """The least ("min") or greatest ("max") number of the processes; NaN counts as none."""
        return value

    def any(self, flag: bool) -> bool:
        """Return True if `flag` is true in any process."""
        return flag

    def first(self, value: Any) -> Any:
        """The first process's plain value."""
        return value

    def gathered(self, value: Any) -> list[Any]:
        """The plain values of all processes, in the first one."""
        return [value]

    def barrier(self) -> None:
        """Wait for all processes."""

    def abort(self) -> None:
        """Abort the other processes, which would wait for this one."""


class Replicas(Alone):
    """A single process with several GPUs (`dp`): each has a copy of the module and a part of the batch."""

    def __init__(self, devices: list[int]) -> None:
        self.devices = devices

    def wrapped(self, module: Any) -> Callable[[str], Callable[..., Any]]:
        copies = nn.DataParallel(Parts(module), device_ids=self.devices)
        return lambda step: lambda batch, *rest: copies(step, batch, *rest)

    def turn(self) -> Any:
        return threading.Lock()


class Processes(Alone):
    """This process among several (`ddp`): `DistributedDataParallel` averages gradients over them."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world
        self._copies: Any = None

    def wrapped(self, module: Any) -> Callable[[str], Callable[..., Any]]:
        self._copies = nn.parallel.DistributedDataParallel(Steps(module))
        return lambda step: lambda *args: self._copies(step, *args)

    def no_sync(self) -> Any:
        return self._copies.no_sync() if self._copies is not None else nullcontext()

    def sum(self, value: float) -> float:
        return self._reduced(value, "SUM")

    def mean(self, value: float) -> float:
        return self.sum(value) / self.world

    def extreme(self, value: float, which: str) -> float:
        sign = 1.0 if which == "max" else -1.0
        found = self._reduced(-float("inf") if value != value else sign * value, "MAX")
        return sign * found if found != -float("inf") else float("nan")

    def any(self, flag: bool) -> bool:
        return bool(self._reduced(float(flag), "MAX"))

    def _reduced(self, value: float, how: str) -> float:
        from .. import distributed

        held = tg.tensor([value], dtype=tg.float64)
        distributed.all_reduce(held, distributed.ReduceOp[how])
        return float(held)

    def first(self, value: Any) -> Any:
        from .. import distributed

        held = [value]
        distributed.broadcast_object_list(held, 0)
        return held[0]

    def gathered(self, value: Any) -> list[Any]:
        from .. import distributed

        held: Any = [None] * self.world if self.rank == 0 else None
        distributed.gather_object(value, held, 0)
        return held or []

    def barrier(self) -> None:
        from .. import distributed

        distributed.barrier()

    def abort(self) -> None:
        from .. import distributed

        if distributed.is_initialized():
            distributed.GroupMember.WORLD.abort()


@contextmanager
def joined(
    backend: str | None, device: Any, rank: int | None = None, world: int | None = None, store: Any = None
) -> Iterator[Processes]:
    """The group of the processes that train together, until the block ends; one that is there already is used, and
    stays.

    `backend` names the way to communicate: by default MPI's where mpiexec or srun has started the processes, else one
    that serves CPUs and GPUs. Without `rank`, `world` and `store` the launcher's variables say who is who.
    """
    from .. import distributed

    made = not distributed.is_initialized()
    if made:
        if store is None:
            distributed.init_process_group(backend)
        else:
            distributed.init_process_group(backend, rank=rank, world_size=world, store=store)
    try:
        yield Processes(distributed.get_rank(), distributed.get_world_size())
    except BaseException:
        # If an error ends one MPI process, the others would wait for it forever: the group aborts them as long as it
        # exists.
        made = made and "mpi" not in distributed.get_backend()
        raise
    finally:
        if made and distributed.is_initialized():
            distributed.destroy_process_group()


def launched() -> bool:
    """Return True if a launcher (such as torchrun, mpiexec, srun) started several processes, or a process group
    exists."""
    from .. import distributed
    from ..distributed.rendezvous import launched_by_mpi

    several = "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1
    return distributed.is_initialized() or several or launched_by_mpi()


def place() -> tuple[int, int]:
    """Return (rank, local rank) of this process, from its group or its launcher; 0 where they do not tell."""
    from .. import distributed
    from ..distributed.transport import launchers

    found = launchers.launched()
    if "RANK" in os.environ or found is None:
        rank, local = int(os.environ.get("RANK", "0")), int(os.environ.get("LOCAL_RANK", "-1"))
    else:
        rank, local = found.rank, found.local_rank
    if distributed.is_initialized():
        rank = distributed.get_rank()
    return rank, rank if local < 0 else local


def rank_zero_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does something in the first process only, and returns None in others.

    >>> from tensorgrad.experiment.parallel import rank_zero_only
    >>> rank_zero_only(print)("once")
    once
    """

    @wraps(function)
    def first_only(*args: Any, **options: Any) -> Any:
        return function(*args, **options) if place()[0] == 0 else None

    return first_only


@contextmanager
def spawned(count: int, work: Callable[..., None], args: tuple[Any, ...]) -> Iterator[Any]:
    """Start `count` - 1 more processes, which call `work(rank, count, port, *args)`, and give the store at which all
    meet; this process is the first.

    Arguments are pickled here: handed over as they are, their tensors would be in memory that all processes share.

    An error in one of them is raised here, even while this process waits for it; an error here ends them.
    """
    from .. import distributed, multiprocessing

    store = distributed.TCPStore("127.0.0.1", 0, count, True, wait_for_workers=False)
    before = threads.get_num_threads()
    threads.set_num_threads(max(1, before // count))
    context: Any = None
    try:
        context = multiprocessing.start_processes(
            _other,
            (work, count, store.port, threads.get_num_threads(), tg.initial_seed(), pickle.dumps(args)),
            count - 1,
            join=False,
        )
        try:
            with _watching(context):
                yield store
        except distributed.DistError:
            context.join(SOON)  # another process failed and this one only lost its peer: report the other's error
            raise
        while not context.join():
            pass
    finally:
        threads.set_num_threads(before)
        for process in context.processes if context is not None else ():
            if process.is_alive():
                process.terminate()
            process.join()


def _other(i: int, work: Callable[..., None], count: int, port: int, cores: int, seed: int, args: bytes) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process receives Ctrl-C as well, and decides when to stop
    threads.set_num_threads(cores)
    seeded(seed + i + 1)
    work(i + 1, count, port, *pickle.loads(args))


def seeded(seed: int) -> None:
    """Seed Python's, NumPy's and tensorgrad's random numbers."""
    import random

    import numpy as np

    random.seed(seed)
    np.random.seed(seed % 2**32)
    tg.manual_seed(seed % 2**63)


@contextmanager
def _watching(context: Any) -> Iterator[None]:
    """Raise the error of a child process as soon as it fails; in the main thread only, which alone gets SIGCHLD."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGCHLD"):
        yield
        return

    calls = [0]

    def ended(number: int, frame: Any) -> None:
        calls[0] += 1
        if calls[0] == 1:  # a signal during the handling of another is left to that handler
            try:
                while calls[0]:
                    seen = calls[0]
                    context.join(timeout=0)
                    calls[0] -= seen
            finally:
                calls[0] = 0
        if callable(before):
            before(number, frame)

    before = signal.signal(signal.SIGCHLD, ended)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before if before is not None else signal.SIG_DFL)
