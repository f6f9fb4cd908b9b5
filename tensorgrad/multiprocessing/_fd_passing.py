"""Pass file descriptors to other processes: a thread of the process that offers a descriptor sends it once, to the
holder of its ticket.

The standard library authenticates each transfer with a handshake; here a connection remains open, and a ticket of 128
random bits, which is pickled with the tensor, authenticates. The socket has no name in the file system, so nothing is
left when a process is killed.
"""
from __future__ import annotations

import atexit
import os
import secrets
import socket
import struct
import sys
import threading
from contextlib import suppress
from typing import Any

__all__ = ["handed"]

TICKET = 16                                     # bytes
here = sys.platform == "linux" and hasattr(socket, "recv_fds")


class Counter:
    """The descriptors that this process offers, and the thread that hands them out."""

    def __init__(self) -> None:
        self._offers: dict[bytes, int] = {}
        self.name = "\0tensorgrad-" + secrets.token_hex(16)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.name)
        self._listener.listen(64)
        threading.Thread(target=self._accept, name="tensorgrad-handing", daemon=True).start()

    def offer(self, descriptor: int) -> bytes:
        """Offer a copy of a descriptor, and return its ticket."""
        ticket = secrets.token_bytes(TICKET)
        self._offers[ticket] = os.dup(descriptor)
        return ticket

    def _accept(self) -> None:
        while True:
            try:
                line = self._listener.accept()[0]
            except OSError:                     # too many open files: retry, some may be closed soon
                threading.Event().wait(0.05)
                continue
            if _is_of_this_user(line):
                threading.Thread(target=self._serve, args=(line,), daemon=True).start()
            else:
                line.close()

    def _serve(self, line: socket.socket) -> None:
        with line, suppress(OSError):
            while len(ticket := line.recv(TICKET, socket.MSG_WAITALL)) == TICKET:
                descriptor = self._offers.pop(ticket, None)
                if descriptor is None:
                    return
                try:
                    socket.send_fds(line, [b"+"], [descriptor])
                finally:
                    os.close(descriptor)

    def leave(self) -> None:
        """Close the inherited descriptors in a forked process."""
        self._listener.close()
        for descriptor in self._offers.values():
            os.close(descriptor)


def _is_of_this_user(line: socket.socket) -> bool:
    user = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
    return user in (0, os.geteuid(), os.getuid())


_turn = threading.Lock()
_counter: Counter | None = None
_line: tuple[str, socket.socket] | None = None          # the connection to the process of the last descriptor


def handed(descriptor: int) -> Any:
    """Return an object to pickle for a descriptor; once unpickled, its `detach()` gives the descriptor."""
    global _counter
    from multiprocessing.context import get_spawning_popen
    if not here or get_spawning_popen() is not None:
        from multiprocessing.reduction import DupFd
        return DupFd(descriptor)
    with _turn:
        if _counter is None:
            _counter = Counter()
    return Handed(_counter.name, _counter.offer(descriptor))


class Handed:
    """An offered descriptor: the name of the socket that offers it, and its ticket."""

    def __init__(self, name: str, ticket: bytes) -> None:
        self.name, self.ticket = name, ticket

    def __reduce__(self) -> Any:
        return type(self), (self.name, self.ticket)

    def detach(self) -> int:
        """Fetch the descriptor, once. ConnectionError if the process that offered it has ended."""
        global _line
        with _turn:
            for fresh in (False, True):         # an open connection may lead to a process that has ended
                if fresh or _line is None or _line[0] != self.name:
                    _hang_up()
                    _line = self.name, self._connected()
                with suppress(OSError):
                    _line[1].sendall(self.ticket)
                    data, descriptors, *_ = socket.recv_fds(_line[1], 1, 1)
                    if data and descriptors:
                        os.set_inheritable(descriptors[0], False)
                        return descriptors[0]
        raise ConnectionError("a tensor cannot be received: what was sent is received once, and this was, or its "
                              "process cannot be reached")

    def _connected(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            line.connect(self.name)
        except OSError as error:
            line.close()
            raise ConnectionError(f"a tensor cannot be received: the process that sent it has ended "
                                  f"({error.strerror})") from None
        return line


def _forked() -> None:
    """Reset the offers and the connection in a forked process."""
    global _turn, _counter
    _turn, counter, _counter = threading.Lock(), _counter, None
    if counter is not None:
        counter.leave()
    _hang_up()


def _hang_up() -> None:
    """Close the open connection."""
    global _line
    if _line is not None:
        _line[1].close()
    _line = None


if here:
    os.register_at_fork(after_in_child=_forked)
    atexit.register(_hang_up)
