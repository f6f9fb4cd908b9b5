"""A dictionary that one process serves to the others of this machine.

https://pytorch.org/docs → torch.distributed.TCPStore

The server is one thread. The server listens at the loopback only, reads nothing from a connection that has not proved
the secret (`wire.Gate`), takes frames of bounded length, and looks up what they ask for in a table. Requests that have
to wait are set aside, so no client holds up another.
"""
from __future__ import annotations

import errno
import os
import selectors
import socket
import threading
import time
import weakref
from contextlib import suppress
from datetime import timedelta
from multiprocessing import util
from typing import Any, ClassVar

from . import wire_protocol
from .errors import DistNetworkError, DistStoreError
from .stores import PATIENCE, WAITING, Request, Store, Values, milliseconds, rooted, seconds, shown

__all__ = ["Server", "TCPStore"]

HOST = "127.0.0.1"
# seconds that a client waits beyond the time limit, and a server at exit for its clients
GRACE = 10.0
ANSWER, LATE, WRONG = range(3)          # kinds of frames from the server
JOINED = b"init/"                       # how many ranks have come; other keys begin with "/"

_servers: weakref.WeakSet[Server] = weakref.WeakSet()


class _Client:
    """Connection of a client that has proved the secret, on the server's side."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket, self.inbox, self.outbox = connection, bytearray(), bytearray()
        # request, fields, missing keys, deadline, time limit
        self.waits: tuple[int, list[bytes], list[bytes], float, float] | None = None


class Server:
    """The thread that has the values. `close` ends it."""

    def __init__(self, port: int, descriptor: int | None = None) -> None:
        self._listener = _bound(port) if descriptor is None else _given(descriptor)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._secret = wire_protocol.Secret(self.port)
        try:
            # before it listens: whoever gets through has found the secret
            self._gate = wire_protocol.Gate(self._secret.make(), _place(self.port))
            self._listener.listen(1024)
        except BaseException:
            self._listener.close()
            raise
        self._values, self._clients = Values(), dict[int, _Client]()
        self._waiting: dict[int, _Client] = {}
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._closed, self._pid = False, os.getpid()
        # stores of this process that it serves; connections of this process to it
        self.users, self.own = 0, 0
        for readable in (self._listener, self._woken):
            self._selector.register(readable, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name=f"tensorgrad store {self.port}", daemon=True)
        self._thread.start()
        _servers.add(self)
        self._at_exit = util.Finalize(None, _linger, args=(weakref.ref(self),), exitpriority=10)

    @property
    def clients(self) -> int:
        return len(self._clients)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """End the thread, close all connections."""
        if self._closed or self._pid != os.getpid():
            return
        self._closed = True
        self._at_exit.cancel()
        with suppress(OSError):
            self._waker.send(b"x")
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def forked(self) -> None:
        """Close, in a child that was forked, what belongs to its parent."""
        self._closed = True
        for held in (self._listener, self._waker, self._woken, *(client.socket for client in self._clients.values())):
            held.close()
        self._gate.close()
        self._selector.close()

    def _run(self) -> None:
        try:
            while not self._closed:
                for key, events in self._selector.select(self._pause()):
                    self._serve(key.fd, events)
                self._overdue()
        finally:
            self._secret.remove()
            self.forked()

    def _pause(self) -> float | None:
        """Return the seconds until the next deadline."""
        ends = ([time.monotonic() + 3600.0] * bool(self._waiting)
                + [client.waits[3] for client in self._waiting.values() if client.waits])
        found = max(0.0, min(ends) - time.monotonic()) if ends else None
        return found if not len(self._gate) else 0.5 if found is None else min(found, 0.5)

    def _serve(self, descriptor: int, events: int) -> None:
        if descriptor == self._listener.fileno():
            self._accept()
        elif descriptor in self._gate:
            self._prove(descriptor)
        elif descriptor in self._clients:
            client = self._clients[descriptor]
            try:
                if events & selectors.EVENT_WRITE:
                    self._send(client, b"")
                if events & selectors.EVENT_READ:
                    self._read(client)
            except (OSError, ValueError):           # it has gone, or talks nonsense
                self._drop(descriptor)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):         # no more descriptors: strangers go first
                for descriptor in self._gate.expired()[:8] or self._gate.oldest():
                    self._dismiss(descriptor)
                time.sleep(0.01)
            return
        if self._gate.admit(connection):
            self._selector.register(connection, selectors.EVENT_READ)

    def _prove(self, descriptor: int) -> None:
        with suppress(BlockingIOError):
            proved, connection = self._gate.advance(descriptor)
            if proved:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._clients[descriptor] = _Client(connection)
            else:
                self._selector.unregister(descriptor)

    def _dismiss(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        self._gate.dismiss(descriptor)

    def _drop(self, descriptor: int) -> None:
        client = self._clients.pop(descriptor)
        self._waiting.pop(descriptor, None)
        client.waits = None
        self._selector.unregister(descriptor)
        client.socket.close()

    def _read(self, client: _Client) -> None:
        data = client.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("closed")
        client.inbox += data
        self._frames(client)

    def _frames(self, client: _Client) -> None:
        """Answer the frames that have arrived whole; one that has to wait holds up those after it."""
        while client.waits is None and len(client.inbox) >= wire_protocol.SIZE.size:
            size = wire_protocol.SIZE.unpack_from(client.inbox)[0]
            if size > wire_protocol.LONGEST:
                raise ValueError(f"a frame of {size} bytes")
            end = wire_protocol.SIZE.size + size
            if len(client.inbox) < end:
                return
            request, fields = wire_protocol.split(bytes(client.inbox[wire_protocol.SIZE.size:end]))
            del client.inbox[:end]
            self._take(client, request, fields)

    def _take(self, client: _Client, request: int, fields: list[bytes]) -> None:
        limit = 0.0
        if request in WAITING:
            if not fields:
                raise ValueError("no time limit")
            limit = min(int(fields.pop(0)[:15]), 10 ** 12) / 1000
        missing = self._values.missing(request, fields)
        if missing:
            client.waits = request, fields, missing, time.monotonic() + limit, limit
            self._waiting[client.socket.fileno()] = client
            return
        self._answer(client, request, fields)
        if request in CHANGES and self._waiting:
            for waiter in list(self._waiting.values()):
                self._again(waiter)

    def _again(self, client: _Client) -> None:
        """Answer a request that waited, if what it waited for has come."""
        if client.waits is None:
            return
        request, fields = client.waits[:2]
        missing = self._values.missing(request, fields)
        if missing:
            client.waits = (request, fields, missing, *client.waits[3:])
            return
        self._resume(client)
        try:
            self._answer(client, request, fields)
            self._frames(client)
        except (OSError, ValueError):
            self._drop(client.socket.fileno())

    def _resume(self, client: _Client) -> None:
        client.waits = None
        del self._waiting[client.socket.fileno()]

    def _answer(self, client: _Client, request: int, fields: list[bytes]) -> None:
        try:
            frame = wire_protocol.join(ANSWER, self._values.answer(request, fields))
        except (ValueError, TypeError) as error:
            frame = wire_protocol.join(WRONG, [str(error).encode()])
        self._send(client, frame)

    def _send(self, client: _Client, frame: bytes) -> None:
        client.outbox += frame
        with suppress(BlockingIOError):
            del client.outbox[:client.socket.send(client.outbox)]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.outbox else 0)
        if self._selector.get_key(client.socket).events != events:
            self._selector.modify(client.socket, events)

    def _overdue(self) -> None:
        for descriptor in self._gate.expired() if len(self._gate) else ():
            self._dismiss(descriptor)
        now = time.monotonic()
        for client in [client for client in self._waiting.values() if client.waits and client.waits[3] <= now]:
            missing, limit = client.waits[2], client.waits[4]       # type: ignore[index]
            self._resume(client)
            try:
                self._send(client,
                           wire_protocol.join(LATE, [f"wait timeout after {round(1000 * limit)}ms, keys: "
                                                     f"{shown(missing)}".encode()]))
                self._frames(client)
            except (OSError, ValueError):
                self._drop(client.socket.fileno())


# after which a waiter may go on
CHANGES = frozenset({Request.SET, Request.ADD, Request.COMPARE_SET, Request.APPEND, Request.MULTI_SET, Request.PUSH})


def _place(port: int) -> bytes:
    return b"store %d" % port


def _bound(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # the port of a server that has just ended
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise DistNetworkError(f"The server socket has failed to listen on any local network address. port: {port}, "
                               f"useIpv6: false, code: {-(getattr(error, 'errno', 0) or 0)}, message: "
                               f"{getattr(error, 'strerror', error)}") from None
    return listener


def _given(descriptor: int) -> socket.socket:
    listener = socket.socket(fileno=descriptor)
    address = listener.getsockname()
    if listener.family != socket.AF_INET or address[0] != HOST:
        listener.detach()
        raise RuntimeError(f"master_listen_fd must be bound to {HOST}, not to {address}: the store serves the ranks of "
                           f"this machine only")
    return listener


def _linger(reference: Any) -> None:
    """Others may still be reading when the master is done."""
    server = reference()
    end = time.monotonic() + GRACE
    while server is not None and server.clients > server.own and time.monotonic() < end:
        time.sleep(0.005)
    if server is not None:
        server.close()


class _Line:
    """A thread's connection to the server; `server` if that is in this process."""

    # keeps a socket from being collected, with a ResourceWarning, just before its line is
    opened: ClassVar[set[socket.socket]] = set()

    def __init__(self, connection: socket.socket, server: Server | None) -> None:
        self.socket, self.server, self.pid = connection, server, os.getpid()
        self.opened.add(connection)
        if server is not None:
            server.own += 1

    def __del__(self) -> None:
        self.socket.close()
        self.opened.discard(self.socket)
        if self.server is not None:
            self.server.own -= 1


class TCPStore(Store):
    """A dictionary in one process, the master, that others of this machine reach through a socket.

    https://pytorch.org/docs → torch.distributed.TCPStore

    All processes are of one user: the master leaves a secret where only that user can read it, or all find it in the
        variable TENSORGRAD_SECRET. Other
    machines are refused. `use_libuv` has no effect.

    >>> from tensorgrad.distributed import TCPStore
    >>> master = TCPStore("127.0.0.1", 0, is_master=True)
    >>> other = TCPStore("127.0.0.1", master.port)
    >>> other.set("lr", "0.1"); master.get("lr")
    b'0.1'
    """

    def __init__(self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
                 timeout: timedelta = PATIENCE, wait_for_workers: bool = True, multi_tenant: bool = False,
                 master_listen_fd: int | None = None,
                 use_libuv: bool = True) -> None:
        if not isinstance(host_name, str) or not isinstance(timeout, timedelta):
            raise TypeError("__init__(): incompatible constructor arguments. The following argument types are "
                            f"supported:\n    host_name is a str, timeout a datetime.timedelta; got "
                            f"{type(host_name).__name__} and {type(timeout).__name__}")
        if not wire_protocol.is_this_machine(host_name):
            raise RuntimeError(wire_protocol.ELSEWHERE.format(host=host_name))
        self._host, self._port, self._timeout, self._local = host_name, int(port), timeout, threading.local()
        self._server: Server | None = None
        if is_master:
            shared = _here(int(port)) if multi_tenant else None
            self._server = shared or Server(int(port), master_listen_fd)
            self._port = self._server.port
            self._server.users += 1
            weakref.finalize(self, _leave, self._server).atexit = False
        if world_size is not None and world_size > 0:
            self._join(world_size, wait_for_workers)

    def _join(self, size: int, wait: bool) -> None:
        if not wait:
            return
        come = int(self._ask(Request.ADD, [JOINED, b"1"], self._timeout)[0])
        end = time.monotonic() + seconds(self._timeout)
        while come < size:
            if time.monotonic() > end:
                raise DistStoreError(f"Timed out after {max(1, round(self._timeout.total_seconds()))} seconds waiting "
                                     f"for clients. {come}/{size} clients joined.")
            time.sleep(0.002)
            come = int(self._ask(Request.ADD, [JOINED, b"0"], self._timeout)[0])

    @property
    def host(self) -> str:
        """The name of the machine, as it was given."""
        return self._host

    @property
    def port(self) -> int:
        """The port that the master listens at."""
        return self._port

    @property
    def libuvBackend(self) -> bool:
        """False: one thread with a selector serves."""
        return False

    def ask(self, request: Request, fields: list[bytes], timeout: timedelta | None = None) -> list[bytes]:
        fields = rooted(request, fields)
        answer = self._ask(request, fields, self._timeout if timeout is None else timeout)
        return [key[1:] for key in answer if key[:1] == b"/"] if request == Request.KEYS else answer

    def _ask(self, request: Request, fields: list[bytes], timeout: timedelta) -> list[bytes]:
        line = getattr(self._local, "line", None)
        if line is None or line.pid != os.getpid():
            line = self._local.line = _Line(self._connected(timeout), _here(self._port))
        limit = GRACE + seconds(timeout)
        if request in WAITING:
            fields = [b"%d" % milliseconds(timeout), *fields]
        frame = wire_protocol.join(request, fields)
        try:
            deadline = time.monotonic() + limit
            line.socket.settimeout(limit)
            line.socket.sendall(frame)
            size = wire_protocol.SIZE.unpack(wire_protocol.receive_exactly(line.socket, wire_protocol.SIZE.size,
                                                                           deadline))[0]
            if size > wire_protocol.LONGEST:
                raise DistNetworkError(f"the store claims to send {size} bytes")
            kind, answer = wire_protocol.split(wire_protocol.receive_exactly(line.socket, size, deadline))
        except BaseException as error:
            # an answer may still be on its way: the connection is of no more use
            self._local.line = None
            if isinstance(error, TimeoutError):
                raise DistStoreError(f"The store at {self._host}:{self._port} does not answer, {limit:.1f} s after it "
                                     f"was asked.") from None
            if isinstance(error, OSError):
                raise DistNetworkError(f"{error.strerror}: the process that serves the store at "
                                       f"{self._host}:{self._port} has ended.") from None
            raise
        if kind == LATE:
            raise DistStoreError(answer[0].decode(errors="replace"))
        if kind == WRONG:
            raise ValueError(answer[0].decode(errors="replace"))
        return answer

    def _connected(self, timeout: timedelta) -> socket.socket:
        """Return a connection, as soon as the master is there."""
        deadline, secret, why = (time.monotonic() + seconds(timeout), wire_protocol.Secret(self._port),
                                 "it has left no secret there yet")
        while True:
            value = secret.read()
            if value is not None:
                try:
                    return wire_protocol.connect(socket.AF_INET, (HOST, self._port), value, _place(self._port),
                                                 deadline)
                except (OSError, DistNetworkError) as error:
                    why = str(error)
            if time.monotonic() > deadline:
                raise DistNetworkError(f"The client socket has timed out after {milliseconds(timeout)}ms while trying "
                                       f"to connect to ({self._host}, {self._port}).\nThe master, a process of this "
                                       f"user on this machine, did not answer: {why}.")
            time.sleep(0.005)

    def clone(self) -> Store:
        return TCPStore(self._host, self._port, timeout=self._timeout)

    def __repr__(self) -> str:
        return f"TCPStore(host={self._host!r}, port={self._port}, is_master={self._server is not None})"


def _here(port: int) -> Server | None:
    return next((server for server in list(_servers) if server.port == port and not server.closed), None)


def _leave(server: Server) -> None:
    server.users -= 1
    if server.users == 0:
        server.close()


def _forked() -> None:
    for server in list(_servers):
        server.forked()
    _servers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
