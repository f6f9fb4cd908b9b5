"""How two processes of one machine meet: a shared secret, the proof that both know it, and frames of bounded length.

Whoever listens sends a challenge of 32 bytes; whoever connects answers with a challenge of its own and HMAC-SHA256 over
both, and gets such a proof back. All of it has a fixed size and a deadline. Nothing else is read from a peer before its
proof, and nothing from a peer is ever unpickled.
"""
from __future__ import annotations

import errno
import hashlib
import hmac
import os
import socket
import stat
import struct
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..messages.extras import install
from .errors import DistNetworkError

__all__ = ["Gate", "Secret", "connect", "is_this_machine", "join", "receive_exactly", "split"]

NONCE = 32                              # bytes of a challenge and of a proof
SECONDS = 10.0                          # that a stranger has for its proof
STRANGERS = 128                         # that may be busy with their proofs; the oldest goes if there are more
LONGEST = 64 << 20                      # bytes of a frame
VARIABLE = "TENSORGRAD_SECRET"
SIZE = struct.Struct("!I")
FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

ELSEWHERE = ('the backend "gloo" joins the ranks of one machine only, {host!r} is not this one. Between machines, use '
             f'init_process_group("mpi") in a program that mpiexec or srun starts, after {install("mpi")}, or "nccl" '
             f'for GPUs.')


def is_this_machine(host: str) -> bool:
    """Return True if a name or an address is one of this machine's.

    Errors: DistNetworkError for a name that nobody knows.
    """
    if host in ("127.0.0.1", "::1", "localhost", "") or host == socket.gethostname():
        return True
    try:
        found = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError) as error:
        raise DistNetworkError(f"The name {host!r} of the machine to meet at is not known: {error}. For ranks of one "
                               f"machine, use 127.0.0.1.") from None
    return any(_is_own(str(address)) for address in found)


def _is_own(address: str) -> bool:
    """Return True if a socket can be bound to the address, which only addresses of this machine allow."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((address, 0))
        return address not in ("0.0.0.0", "::")
    return False


# ── the secret ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Secret:
    """The secret of the server at a port: the variable TENSORGRAD_SECRET (hexadecimal) or a file that only its owner
    can read.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._made: tuple[int, int] | None = None

    @property
    def path(self) -> Path:
        return _directory() / f"store-{self.port}"

    def make(self) -> bytes:
        """Return a secret that others can read from now on."""
        given = _from_environment()
        if given is not None:
            return given
        path, value = private_directory() / self.path.name, os.urandom(NONCE)
        with suppress(FileNotFoundError):
            path.unlink()                           # of a server that was killed
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FLAGS, 0o600)
        with open(descriptor, "wb") as file:
            file.write(value)
            status = os.fstat(file.fileno())
            self._made = status.st_dev, status.st_ino
        return value

    def read(self) -> bytes | None:
        """Return the secret, or None where there is none yet."""
        given = _from_environment()
        if given is not None:
            return given
        path = self.path
        try:
            _check_directory(path.parent)
            with open(os.open(path, os.O_RDONLY | FLAGS), "rb") as file:
                value = file.read(NONCE + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            # strangers may have used up all descriptors, for a while
            if error.errno in (errno.EMFILE, errno.ENFILE):
                return None
            raise DistNetworkError(f"The secret of the store at port {self.port} cannot be read: {error}. Ranks must "
                                   f"be of one user.") from None
        return value if len(value) == NONCE else None

    def remove(self) -> None:
        """Remove the file if it is the one that `make` wrote."""
        made, self._made = self._made, None
        with suppress(OSError):
            status = os.stat(self.path, follow_symlinks=False)
            if made == (status.st_dev, status.st_ino):
                self.path.unlink()


def _from_environment() -> bytes | None:
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) < 16:
        raise ValueError(f"{VARIABLE} must be at least 32 hexadecimal digits")
    return value


def _directory() -> Path:
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    owner = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return Path(base) / f"tensorgrad-{owner}"


def private_directory() -> Path:
    """Return the directory of this user's secrets and sockets, made if there is none.

    Errors: DistNetworkError if others can enter it.
    """
    path = _directory()
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    _check_directory(path)
    return path


def _check_directory(path: Path) -> None:
    """Errors: DistNetworkError if others than this user could put files there."""
    status = os.stat(path, follow_symlinks=False)
    private = stat.S_ISDIR(status.st_mode)
    if hasattr(os, "getuid"):
        private = private and status.st_uid == os.getuid() and not status.st_mode & 0o077
    if not private:
        raise DistNetworkError(f"{path} must be a directory of this user that nobody else can enter (chmod 700), for "
                               f"secrets are in it")


# ── the proof ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def proof(secret: bytes, who: bytes, place: bytes, *challenges: bytes) -> bytes:
    return hmac.new(secret, b"\0".join((b"tensorgrad", who, place, *challenges)), hashlib.sha256).digest()


class _Stranger:
    __slots__ = ("challenge", "deadline", "said", "socket")

    def __init__(self, socket: socket.socket) -> None:
        self.socket, self.challenge, self.said, self.deadline = (socket, os.urandom(NONCE), b"",
                                                                 time.monotonic() + SECONDS)


class Gate:
    """Accepted connections that have not proved the secret yet.

    None of them is waited for: `advance` is for those that have sent something.
    """

    def __init__(self, secret: bytes, place: bytes) -> None:
        self._secret, self._place = secret, place
        self._strangers: dict[int, _Stranger] = {}          # oldest first

    def __len__(self) -> int:
        return len(self._strangers)

    def __contains__(self, descriptor: int) -> bool:
        return descriptor in self._strangers

    def admit(self, connection: socket.socket) -> bool:
        """Challenge a new connection; False if it has gone already."""
        connection.setblocking(False)
        stranger = _Stranger(connection)
        try:
            connection.send(stranger.challenge)
        except OSError:
            connection.close()
            return False
        self._strangers[connection.fileno()] = stranger
        return True

    def advance(self, descriptor: int) -> tuple[bool, socket.socket]:
        """Read what a stranger says; (True, socket) with its proof, (False, socket) if it was closed.

        Errors: BlockingIOError until then.
        """
        stranger = self._strangers[descriptor]
        try:
            said = stranger.socket.recv(2 * NONCE - len(stranger.said))
        except BlockingIOError:
            raise
        except OSError:
            said = b""
        stranger.said += said
        if said and len(stranger.said) < 2 * NONCE:
            raise BlockingIOError
        del self._strangers[descriptor]
        theirs, shown = stranger.said[:NONCE], stranger.said[NONCE:]
        if said and hmac.compare_digest(shown, proof(self._secret, b"guest", self._place, stranger.challenge, theirs)):
            with suppress(OSError):
                stranger.socket.send(proof(self._secret, b"host", self._place, theirs, stranger.challenge))
                return True, stranger.socket
        stranger.socket.close()
        return False, stranger.socket

    def expired(self) -> list[int]:
        """Return the descriptors of those whose time is up, or who are too many."""
        now, over = time.monotonic(), len(self._strangers) - STRANGERS
        return [descriptor for i, (descriptor, stranger) in enumerate(self._strangers.items())
                if i < over or stranger.deadline < now]

    def oldest(self) -> list[int]:
        """Return the descriptor of the one that came first, if any."""
        return list(self._strangers)[:1]

    def dismiss(self, descriptor: int) -> None:
        """Close the connection of a stranger."""
        self._strangers.pop(descriptor).socket.close()

    def close(self) -> None:
        """Close the connections of all strangers."""
        for descriptor in list(self._strangers):
            self.dismiss(descriptor)


def connect(family: int, address: Any, secret: bytes, place: bytes, deadline: float) -> socket.socket:
    """Return a blocking connection to a server that has proved the secret.

    Errors: OSError if nobody listens there, DistNetworkError without the proof.
    """
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.settimeout(max(0.001, min(SECONDS, deadline - time.monotonic())))
        found.connect(address)
        if family == socket.AF_INET:
            # a free port of the system's range can be connected to itself
            if found.getsockname() == found.getpeername():
                raise ConnectionRefusedError("nobody listens there")
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        deadline = min(deadline, time.monotonic() + SECONDS)
        theirs, own = receive_exactly(found, NONCE, deadline), os.urandom(NONCE)
        found.sendall(own + proof(secret, b"guest", place, theirs, own))
        shown = receive_exactly(found, NONCE, deadline)
        if not hmac.compare_digest(shown, proof(secret, b"host", place, own, theirs)):
            raise DistNetworkError("the other side does not know the secret")
    except BaseException:
        found.close()
        raise
    return found


def receive_exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    """Return so many bytes. Errors: DistNetworkError if the connection ends before, TimeoutError after the deadline."""
    data = bytearray(size)
    view, have = memoryview(data), 0
    while have < size:
        set_deadline(connection, deadline)
        got = connection.recv_into(view[have:])
        if not got:
            raise DistNetworkError(f"Failed to recv, got {have} bytes. Connection was likely closed. Did the remote "
                                   f"server shutdown or crash?")
        have += got
    return bytes(data)


def set_deadline(connection: socket.socket, deadline: float) -> None:
    """Let the next call end by then, with TimeoutError."""
    connection.settimeout(max(0.001, deadline - time.monotonic()))


# ── frames ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def join(kind: int, fields: list[bytes]) -> bytes:
    """Return a frame: the length of the rest, a byte that says what it is, and fields with their lengths.

    Errors: ValueError if it is too long.
    """
    parts = [bytes((kind,))]
    for field in fields:
        parts += SIZE.pack(len(field)), field
    size = sum(map(len, parts))
    if size > LONGEST:
        raise ValueError(f"{size} bytes are more than a store takes at once ({LONGEST})")
    return b"".join((SIZE.pack(size), *parts))


def split(body: bytes) -> tuple[int, list[bytes]]:
    """Return what a frame without its length says: the kind, the fields.

    Errors: ValueError if lengths do not add up.
    """
    if not body:
        raise ValueError("an empty frame")
    fields, at = [], 1
    while at < len(body):
        if at + SIZE.size > len(body):
            raise ValueError("half a length")
        size = SIZE.unpack_from(body, at)[0]
        at += SIZE.size
        if size > len(body) - at:
            raise ValueError("a field that is longer than its frame")
        fields.append(body[at:at + size])
        at += size
    return body[0], fields
