"""How ranks meet: a URL, or variables of a launcher, say where their store is, which rank this is, and how many there
are.

https://pytorch.org/docs/stable/distributed.html#initialization
"""
from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from . import wire_protocol
from .file_store import FileStore
from .stores import HashStore, Store
from .tcp_store import TCPStore
from .transport.launchers import Launch, launched

__all__ = ["check_one_machine", "launched_by_mpi", "register_rendezvous_handler", "rendezvous"]

TIMEOUT = timedelta(minutes=30)
Met = Iterator[tuple[Store, int, int]]
_handlers: dict[str, Callable[..., Met]] = {}
_met = 0                # how often this process has met others beside it: each time is a new place


def register_rendezvous_handler(scheme: str, handler: Callable[..., Met]) -> None:
    """Register a generator function `handler(url, **options)` that yields (store, rank, world_size) for URLs of a
    scheme.

    https://pytorch.org/docs → torch.distributed.rendezvous.register_rendezvous_handler
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **options: Any) -> Met:
    """Return an iterator over (store, rank, world_size) at a URL.

    https://pytorch.org/docs → torch.distributed.rendezvous

    >>> from tensorgrad.distributed.rendezvous import rendezvous
    >>> store, rank, world_size = next(rendezvous("tcp://127.0.0.1:0?rank=0&world_size=1"))
    >>> rank, world_size
    (0, 1)
    """
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    for name, value in ("rank", rank), ("world_size", world_size):
        if not isinstance(value, numbers.Integral):
            raise RuntimeError(f"`{name}` must be an integer. {value}")
    given = urlparse(url if isinstance(url, str) else url.decode())
    if rank != -1 or world_size != -1:
        query = _query(given.query)
        if "rank" in query or "world_size" in query:
            raise AssertionError(f"The url: {url!s} has node-specific arguments(rank, world_size) already.")
        query |= {name: str(value) for name, value in (("rank", rank), ("world_size", world_size)) if value != -1}
        given = given._replace(query="&".join(f"{name}={value}" for name, value in query.items()))
    if given.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {given.scheme}://")
    return _handlers[given.scheme](given.geturl(), **options)


def _query(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split("&") if part)


def _numbers(scheme: str, query: dict[str, str]) -> tuple[int, int]:
    """The rank and the number of ranks that a URL names."""
    for name in ("rank", "world_size"):
        if name not in query:
            raise _error(scheme, f"{name.replace('_', ' ')} parameter missing")
    return int(query["rank"]), int(query["world_size"])


def _error(scheme: str, message: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {message}")


def _store(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> Store:
    """The store that the first rank serves, or the launcher if it says so."""
    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    if world_size == 1:
        return HashStore()
    served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return TCPStore(host, port, world_size, rank == 0 and not served, timeout, multi_tenant=True)


def _tcp(url: str, timeout: timedelta = TIMEOUT, **options: Any) -> Met:
    found = urlparse(url)
    if found.port is None:
        raise _error("tcp", "port number missing")
    rank, world_size = _numbers("tcp", _query(found.query))
    yield _store(found.hostname or "", found.port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _file(url: str, timeout: timedelta = TIMEOUT, **options: Any) -> Met:
    found = urlparse(url)
    if not found.path:
        raise _error("file", "path missing")
    rank, world_size = _numbers("file", _query(found.query))
    yield FileStore(found.path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise _error("env", f"environment variable {name} expected, but not set")
    return value


def _env(url: str, timeout: timedelta = TIMEOUT, **options: Any) -> Met:
    query = _query(urlparse(url).query)
    launch = None if "RANK" in os.environ or "rank" in query else launched()
    if launch is not None and launch.size > 0:
        query |= {"rank": str(launch.rank), "world_size": str(launch.size)}
    rank = int(query["rank"] if "rank" in query else _variable("RANK"))
    world_size = int(query["world_size"] if "world_size" in query else _variable("WORLD_SIZE"))
    if launch is not None and "MASTER_ADDR" not in os.environ:
        yield _beside(launch, world_size), rank, world_size
    else:
        host, port = _variable("MASTER_ADDR"), int(_variable("MASTER_PORT"))
        yield _store(host, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


register_rendezvous_handler("tcp", _tcp)
register_rendezvous_handler("env", _env)
register_rendezvous_handler("file", _file)


# ── ranks that mpiexec or srun started ────────────────────────────────────────────────────────────────────────────────


def launched_by_mpi() -> bool:
    """Return True if mpiexec or srun started this process, and no launcher of PyTorch's kind did."""
    return "RANK" not in os.environ and launched() is not None


def check_one_machine(init_method: str | None, world_size: int) -> None:
    """Check, before ranks wait for each other, that a launcher has not started some of them elsewhere.

    Errors: RuntimeError if it has.
    """
    beside = os.environ.get("LOCAL_WORLD_SIZE", "")
    if (not (init_method is None or str(init_method).startswith("env:")) or "RANK" not in os.environ
            or not beside.isdecimal()):
        return
    size = (str(world_size) if world_size > 0 else _query(urlparse(init_method or "").query).get("world_size",
                                                                                                 os.environ.get(
                                                                                                     "WORLD_SIZE", "")))
    if size.isdecimal() and int(beside) < int(size):
        raise _scattered(int(size), f"{beside} are on this one")


def _scattered(world_size: int, here: str) -> RuntimeError:
    """The error of ranks on several machines, with the advice that stores give."""
    advice = "Between" + wire_protocol.ELSEWHERE.partition("Between")[2]
    return RuntimeError(f'the backend "gloo" joins the ranks of one machine only, but of {world_size} ranks {here}. '
                        f'{advice}')


def _beside(launch: Launch, world_size: int) -> Store:
    """The store of ranks that one launcher started on this machine: a file of theirs.

    Errors: RuntimeError if there are other machines.
    """
    global _met
    nodes = os.environ.get("SLURM_STEP_NUM_NODES", "1") if "srun" in launch.launcher else "1"
    if launch.local_size not in (-1, world_size) or nodes != "1":
        raise _scattered(world_size, f"{launch.launcher} started some elsewhere")
    if world_size == 1:
        return HashStore()
    _met += 1
    return FileStore(str(wire_protocol.private_directory() / f"ranks-{_job()}-{_met}"), world_size)


def _job() -> str:
    """A name that the ranks of one start have in common, and no other process has."""
    if "SLURM_JOB_ID" in os.environ and "SLURM_STEP_ID" in os.environ:
        return f"slurm-{os.environ['SLURM_JOB_ID']}-{os.environ['SLURM_STEP_ID']}"
    parent = os.getppid()
    while parent > 1 and _has_rank(parent):         # a shell between the launcher and this process
        parent = int(_status(parent)[1])
    return f"{parent}-{_status(parent)[19]}"


def _has_rank(pid: int) -> bool:
    """Return True if a process was itself started as a rank."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:                                 # another system, or another user's
        return False
    return launched(dict(line.decode(errors="replace").partition("=")[::2] for line in variables)) is not None


def _status(pid: int) -> list[str]:
    """The state of a process, its parent, …; at 19 the time it started."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ["0"] * 20
