"""Attackers that reach the port of a store without its secret: garbage, silence, slowness, claims.

The job is not disturbed.
"""
import gc
import os
import re
import select
import socket
import stat
import struct
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from support import cpu_only, fresh_process

from tensorgrad.distributed import TCPStore, stores, wire_protocol
from tensorgrad.distributed.errors import DistNetworkError, DistStoreError
from tensorgrad.distributed.stores import Request

pytestmark = cpu_only
LIMIT = timedelta(seconds=60)


@contextmanager
def job():
    """A store, and a client of it that works all the time, which nothing may disturb."""
    master = TCPStore("127.0.0.1", 0, is_master=True, timeout=LIMIT)
    done, errors, counted = threading.Event(), [], []

    def work():
        try:
            store = TCPStore("127.0.0.1", master.port, timeout=LIMIT)
            for i in range(1 << 30):
                counted.append(store.add("steps", 1))
                assert store.check(["steps"]) and counted[-1] == i + 1
                if done.is_set():
                    break
        except BaseException as error:
            errors.append(error)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield master
    before, end = len(counted), time.monotonic() + 60
    while len(counted) < before + 10 and not errors and time.monotonic() < end:
        time.sleep(0.002)
    done.set()
    thread.join(60)
    for error in errors:
        raise error
    assert not thread.is_alive() and counted[-1] == len(counted) >= 10
    assert int(master.get("steps")) == counted[-1] and master.num_keys() == 1
    assert TCPStore("127.0.0.1", master.port, timeout=LIMIT).get("steps")         # newcomers get in as well


def stranger(port):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.settimeout(60)
    return connection


def is_closed(connection):
    """Read a connection to its end; return True when the other side has closed it."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def send(connection, data):
    try:
        connection.sendall(data)
    except ConnectionError:             # closed meanwhile
        pass


GARBAGE = [b"", b"\0", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 4, b"\x80\x04\x95cos\nsystem\n(S'true'\ntR." * 4,
           b"\xff" * 64, struct.pack("!I", 1 << 31) * 16,
           os.urandom(64), os.urandom(1 << 20)]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage(garbage):
    with job() as master, stranger(master.port) as connection:
        send(connection, garbage)
        if len(garbage) < 64:
            connection.shutdown(socket.SHUT_WR)
        assert is_closed(connection)


def test_half_open_connections():
    """Hundreds connect and send nothing; the server keeps a bounded number of connections, the newest."""
    with job() as master, ExitStack() as held:
        connections = [held.enter_context(stranger(master.port)) for _ in range(300)]
        for i, connection in enumerate(connections):
            if i % 3 == 0:
                send(connection, b"x" * (i % 63))
        assert is_closed(connections[0])
        other = TCPStore("127.0.0.1", master.port, timeout=LIMIT)
        other.set("a", "1")
        assert other.delete_key("a") and len(master._server._gate) <= wire_protocol.STRANGERS


def test_slowness(monkeypatch):
    """A byte now and then does not keep a connection open beyond the deadline; nor does silence."""
    monkeypatch.setattr(wire_protocol, "SECONDS", 0.3)
    with job() as master, stranger(master.port) as slow, stranger(master.port) as silent:
        begun = time.monotonic()
        while not select.select([slow], [], [], 0.05)[0] or slow.recv(64):
            send(slow, b"x")
            assert time.monotonic() < begun + 60
        assert is_closed(silent)


def proved(master, port=None):
    """A connection that has shown the secret."""
    secret = wire_protocol.Secret(master.port).read()
    return wire_protocol.connect(socket.AF_INET, ("127.0.0.1", master.port), secret,
                                 b"store %d" % (port or master.port), time.monotonic() + 60)


FRAMES = [struct.pack("!I", (1 << 31) + 5) + b"\1abc", struct.pack("!I", 0), struct.pack("!I", 3) + b"\1\0\0",
          struct.pack("!IBI", 5, Request.SET, 5), struct.pack("!IBI", 9, Request.GET, 1 << 30) + b"abcd",
          struct.pack("!IB", 1, Request.GET),
          wire_protocol.join(Request.GET, [b"soon", b"key"]),
          wire_protocol.join(Request.WAIT, [])]


@pytest.mark.parametrize("frame", FRAMES, ids=range(len(FRAMES)))
def test_frames_that_make_no_sense(frame):
    """Malformed frames from a peer with the secret: a claimed 2 GB, fields longer than their frame, no time limit."""
    with job() as master, proved(master) as connection:
        connection.settimeout(60)
        send(connection, frame)
        assert is_closed(connection)


def test_requests_that_do_not_exist():
    """There is a table of requests; no text from a peer names anything."""
    with job() as master, proved(master) as connection:
        for number, fields in [(0, []), (16, [b"a"]), (200, [b"__class__"]), (255, []), (int(Request.SET), [b"a"]),
                               (int(Request.COUNT), [b"a", b"b"]),
                               (int(Request.ADD), [b"a", b"__import__('os')"]), (int(Request.MULTI_SET), [b"a"])]:
            connection.sendall(wire_protocol.join(number, fields))
            size = wire_protocol.SIZE.unpack(wire_protocol.receive_exactly(connection, 4, time.monotonic() + 60))[0]
            kind, answer = wire_protocol.split(wire_protocol.receive_exactly(connection, size, time.monotonic() + 60))
            assert kind == 2 and answer, number
    assert set(stores.TABLE) == set(Request)


def test_answers_that_are_too_long():
    """A value that no frame holds is refused where it is made."""
    with job() as master:
        with pytest.raises(ValueError, match="more than a store takes at once"):
            master.set("a", b"x" * (wire_protocol.LONGEST + 1))
        with pytest.raises(ValueError, match="more than a store takes at once"):
            master.append("a", b"x" * wire_protocol.LONGEST)


def test_another_secret_or_another_place():
    with job() as master:
        deadline = time.monotonic() + 60
        for secret, place in [(os.urandom(32), b"store %d" % master.port),
                              (wire_protocol.Secret(master.port).read(), b"store 1")]:
            with pytest.raises(DistNetworkError):
                wire_protocol.connect(socket.AF_INET, ("127.0.0.1", master.port), secret, place, deadline)


def test_a_false_server():
    """A client does not talk to a server that cannot prove the secret, and shows it nothing that another connection
    would take.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, heard = listener.getsockname()[1], []

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(60)
                connection.sendall(bytes(32))
                heard.append(wire_protocol.receive_exactly(connection, 64, time.monotonic() + 60))
                connection.sendall(heard[0][32:])               # the client's own proof, sent back
                heard.append(connection.recv(100))
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(DistNetworkError, match="the other side does not know the secret"):
            wire_protocol.connect(socket.AF_INET, ("127.0.0.1", port), b"s" * 32, b"store", time.monotonic() + 60)
        thread.join(60)
        assert heard[1] == b""
    other = wire_protocol.proof(b"s" * 32, b"host", b"store", bytes(32), heard[0][:32])
    assert heard[0][32:] == wire_protocol.proof(b"s" * 32, b"guest", b"store", bytes(32), heard[0][:32]) != other


def test_a_proof_is_of_no_use_twice():
    with job() as master, stranger(master.port) as one, stranger(master.port) as two:
        secret, place, own = wire_protocol.Secret(master.port).read(), b"store %d" % master.port, bytes(32)
        said = own + wire_protocol.proof(secret, b"guest", place,
                                         wire_protocol.receive_exactly(one, 32, time.monotonic() + 60), own)
        one.sendall(said)
        assert len(wire_protocol.receive_exactly(one, 32, time.monotonic() + 60)) == 32
        two.sendall(said)
        assert is_closed(two)


def test_a_store_collected_in_a_cycle_closes_its_connection():
    """The collector may finalize a socket before its owner: that socket would warn that nobody closed it."""
    master = TCPStore("127.0.0.1", 0, is_master=True, timeout=LIMIT)
    for _ in range(10):
        store = TCPStore("127.0.0.1", master.port, timeout=LIMIT)
        store.set("a", "1")
        store.own = store._local.line.own = store
    del store
    gc.collect()
    assert master._server.own == 0 and master.get("a") == b"1"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="about permissions of POSIX")
def test_where_the_secret_is(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    master = TCPStore("127.0.0.1", 0, is_master=True, timeout=LIMIT)
    path = tmp_path / f"tensorgrad-{os.getuid()}" / f"store-{master.port}"
    assert (stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            and len(path.read_bytes()) == 32)
    for wrong in (b"", b"x" * 31, b"x" * 33, b"x" * 32):            # such as one that a killed server has left
        path.write_bytes(wrong)
        with pytest.raises((DistNetworkError, DistStoreError)):
            TCPStore("127.0.0.1", master.port, timeout=timedelta(milliseconds=50)).num_keys()
    os.chmod(path.parent, 0o755)
    with pytest.raises(DistNetworkError, match="must be a directory of this user that nobody else can enter"):
        TCPStore("127.0.0.1", 0, is_master=True)
    os.chmod(path.parent, 0o700)
    port = master.port
    master._server.close()
    target = tmp_path / "target"
    target.write_bytes(b"keep")
    path.symlink_to(target)                                         # is replaced, not followed
    master = TCPStore("127.0.0.1", port, is_master=True, timeout=LIMIT)
    assert target.read_bytes() == b"keep" and not path.is_symlink()
    master._server.close()
    assert not path.exists()
    path.symlink_to(target)
    with pytest.raises(DistNetworkError, match="cannot be read"):
        TCPStore("127.0.0.1", port, timeout=timedelta(milliseconds=50)).num_keys()
    path.parent.rename(tmp_path / "elsewhere")
    path.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DistNetworkError, match="must be a directory of this user"):
        TCPStore("127.0.0.1", 0, is_master=True)


def test_a_secret_from_the_launcher(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("TENSORGRAD_SECRET", "ab" * 32)
    master = TCPStore("127.0.0.1", 0, is_master=True, timeout=LIMIT)
    TCPStore("127.0.0.1", master.port, timeout=LIMIT).set("a", "1")
    assert master.get("a") == b"1" and list(tmp_path.iterdir()) == []
    monkeypatch.setenv("TENSORGRAD_SECRET", "cd" * 32)
    with pytest.raises(DistNetworkError):
        TCPStore("127.0.0.1", master.port, timeout=timedelta(milliseconds=50)).num_keys()
    for wrong in ("abc", "not hexadecimal at all, and long", "ab" * 15):
        monkeypatch.setenv("TENSORGRAD_SECRET", wrong)
        with pytest.raises(ValueError, match="TENSORGRAD_SECRET must be at least 32 hexadecimal digits"):
            TCPStore("127.0.0.1", 0, is_master=True)


def test_nothing_is_unpickled():
    """No module of the store or of the local transport unpickles or evaluates; none looks up an attribute by a
    computed name."""
    from tensorgrad import distributed
    root = Path(distributed.__file__).parent
    for name in ["stores", "tcp_store", "file_store", "wire_protocol", "transport/shared_memory", "transport/doorbells",
                 "transport/point_to_point", "transport/mesh", "transport/segments"]:
        text = (root / f"{name}.py").read_text(encoding="utf-8")
        assert not re.search(r"pickle\.|import pickle|marshal|eval\(|exec\(|getattr\([^,]+, [^\"']", text), name


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the limit is POSIX's")
def test_no_descriptors_left():
    """A flood that uses up the server's descriptors: strangers go, and members get in."""
    with tempfile.TemporaryDirectory() as directory:
        found = fresh_process("""
import os, resource, socket, time, warnings
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
from datetime import timedelta
from tensorgrad.distributed import TCPStore
store = TCPStore("127.0.0.1", 0, is_master=True)
used = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 20
ready, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    held = [socket.create_connection(("127.0.0.1", store.port)) for _ in range(80)]
    os.write(ready[1], b"x")
    other = TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=60))
    other.set("a", "1")
    os._exit(0)
resource.setrlimit(resource.RLIMIT_NOFILE, (used + 40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
os.read(ready[0], 1)
print(os.waitpid(child, 0)[1], store.get("a"))
""", XDG_RUNTIME_DIR=directory)
    assert found == "0 b'1'\n"
