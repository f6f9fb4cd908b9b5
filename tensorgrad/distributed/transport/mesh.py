"""Connect the ranks of one machine: each two share a socket per purpose, after both proved to know the group's secret.

Rank 0 puts the secret into the store, each rank its process and address. With abstract sockets no file is left behind,
however a rank ends.
"""
from __future__ import annotations

import os
import secrets
import selectors
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from .. import wire_protocol
from ..errors import DistNetworkError, DistStoreError, TimedOut
from ..stores import Store, seconds

__all__ = ["Member", "meet"]

LOCAL = hasattr(socket, "AF_UNIX")          # sockets within one machine, which can pass file descriptors


@dataclass(frozen=True, slots=True)
class Member:
    """A rank of a group: its process, machine and address, as published in the store."""

    rank: int
    pid: int
    host: str
    machine: str            # from `machine()`: changes when the machine restarts
    address: str

    def __str__(self) -> str:
        return f"rank {self.rank} (pid {self.pid} on {self.host})"

    def alive(self) -> bool:
        """Return False if the process is known to have ended, even if its parent has not reaped it yet."""
        if os.name != "posix":
            return True
        with suppress(OSError, IndexError):
            return Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8",
                                                            errors="replace").rpartition(")")[2].split()[0] not in "ZX"
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass
        return True

    def fate(self, left: bool) -> str:
        """Say what became of a rank whose connection has ended; `left` is True if it said goodbye."""
        if left:
            return "has left the group"
        for _ in range(20):                 # connections of a dying process close before it is gone
            if not self.alive():
                return "has died"
            time.sleep(0.002)
        return "has closed its connection"


@cache
def machine() -> str:
    """Return an id of this machine since its last start; its hostname where the system has none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return socket.gethostname()


def meet(store: Store, rank: int, size: int, timeout: timedelta, purposes: list[str]) -> tuple[list[Member],
                                                                                               dict[str,
                                                                                                    dict[int,
                                                                                                         socket.socket]]]:
    """Return the members, and {purpose: {rank: connection}} for all other ranks.

    Errors: RuntimeError for a rank on another machine, TimedOut if ranks do not come.
    """
    deadline = time.monotonic() + seconds(timeout)
    listener, address = _listener()
    try:
        if rank == 0:
            store.set("secret", secrets.token_bytes(wire_protocol.NONCE))
        store.set(f"rank/{rank}", "\n".join((str(os.getpid()), socket.gethostname(), machine(), address)))
        members = _members(store, size, timeout)
        secret = store.get("secret")
        links: dict[str, dict[int, socket.socket]] = {purpose: {} for purpose in purposes}
        try:
            for other in members[:rank]:
                for purpose in purposes:
                    links[purpose][other.rank] = _dial(other, rank, purpose, secret, deadline)
            _accept(listener, links, range(rank + 1, size), secret, deadline, members)
        except BaseException:
            for found in links.values():
                for link in found.values():
                    link.close()
            raise
        return members, links
    finally:
        listener.close()
        if address.startswith("unix:/"):
            with suppress(OSError):
                os.unlink(address.removeprefix("unix:"))


def _listener() -> tuple[socket.socket, str]:
    """Return a socket that listens, and its address as text."""
    if not LOCAL:
        found = socket.create_server(("127.0.0.1", 0), backlog=256)
        return found, f"port:{found.getsockname()[1]}"
    found, name = socket.socket(socket.AF_UNIX), secrets.token_hex(16)
    if sys.platform == "linux":
        address = f"abstract:tensorgrad-{name}"
    else:
        directory = wire_protocol.private_directory()
        address = f"unix:{directory / name[:12]}"
    try:
        found.bind(_where(address)[1])
        found.listen(256)
    except BaseException:
        found.close()
        raise
    return found, address


def _where(address: str) -> tuple[int, Any]:
    """Return the socket family and address that a text encodes."""
    kind, _, rest = address.partition(":")
    if kind == "port":
        return socket.AF_INET, ("127.0.0.1", int(rest))
    return socket.AF_UNIX, "\0" + rest if kind == "abstract" else rest


def _members(store: Store, size: int, timeout: timedelta) -> list[Member]:
    keys = [f"rank/{rank}" for rank in range(size)]
    try:
        store.wait(keys, timeout)
    except DistStoreError as error:
        late = [rank for rank, key in enumerate(keys) if not store.check([key])]
        raise TimedOut(f"Timed out waiting {round(1000 * timeout.total_seconds())}ms for all ranks: {late} of {size} "
                       f"did not come. {error}") from None
    members = []
    for rank, key in enumerate(keys):
        pid, host, where, address = store.get(key).decode().split("\n")
        members.append(Member(rank, int(pid), host, where, address))
        if where != machine():
            raise RuntimeError(wire_protocol.ELSEWHERE.format(host=host))
    return members


def _hello(purpose: str, rank: int) -> bytes:
    return f"{purpose:<16}{rank:>8}".encode()


def _dial(other: Member, rank: int, purpose: str, secret: bytes, deadline: float) -> socket.socket:
    """Connect to a rank."""
    family, address = _where(other.address)
    while True:
        try:
            link = wire_protocol.connect(family, address, secret, _place(other.rank), deadline)
        except OSError as error:                    # its queue is full, or it has other things to do, or it has gone
            if not other.alive():
                raise DistNetworkError(f"Connection closed by peer: {other} has ended before it connected "
                                       f"({error}).") from None
            if time.monotonic() > deadline:
                raise TimedOut(f"Timed out waiting for {other}, which does not answer ({error}).") from None
            time.sleep(0.005)
            continue
        try:
            link.sendall(_hello(purpose, rank))
        except BaseException:
            link.close()
            raise
        return link


def _place(rank: int) -> bytes:
    return b"rank %d" % rank


def _accept(listener: socket.socket, links: dict[str, dict[int, socket.socket]], ranks: range, secret: bytes,
            deadline: float, members: list[Member]) -> None:
    """Accept the connections of all higher ranks. Strangers may connect too: nothing waits for them."""
    own = _place(ranks.start - 1)
    gate, selector = wire_protocol.Gate(secret, own), selectors.DefaultSelector()
    listener.setblocking(False)
    selector.register(listener, selectors.EVENT_READ)
    try:
        while any(rank not in found for found in links.values() for rank in ranks):
            for key, _ in selector.select(0.2):
                if key.fileobj is listener:
                    with suppress(OSError):
                        connection, _ = listener.accept()
                        if gate.admit(connection):
                            selector.register(connection, selectors.EVENT_READ)
                    continue
                with suppress(BlockingIOError):
                    proved, connection = gate.advance(key.fd)
                    selector.unregister(key.fd)
                    if proved:
                        _place_link(connection, links, ranks, deadline)
            for descriptor in gate.expired():
                selector.unregister(descriptor)
                gate.dismiss(descriptor)
            _check_missing(links, ranks, deadline, members)
    finally:
        gate.close()
        selector.close()


def _place_link(connection: socket.socket, links: dict[str, dict[int, socket.socket]], ranks: range,
                deadline: float) -> None:
    """Read who a proved peer is."""
    try:
        said = wire_protocol.receive_exactly(connection, 24,
                                             min(deadline, time.monotonic() + wire_protocol.SECONDS)).decode()
        purpose, rank = said[:16].strip(), int(said[16:])
        if rank not in ranks or purpose not in links or rank in links[purpose]:
            raise ValueError(said)
    except (OSError, ValueError, DistNetworkError):
        connection.close()
        return
    if connection.family == socket.AF_INET:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    links[purpose][rank] = connection


def _check_missing(links: dict[str, dict[int, socket.socket]], ranks: range, deadline: float,
                   members: list[Member]) -> None:
    missing = [members[rank] for rank in ranks if any(rank not in found for found in links.values())]
    for member in missing:
        if not member.alive():
            raise DistNetworkError(f"Connection closed by peer: {member} has ended before it connected.")
    if missing and time.monotonic() > deadline:
        raise TimedOut(f"Timed out waiting for {', '.join(map(str, missing))} to connect.")
