"""Stores: side by side with PyTorch's, between threads and processes, in a file, and what they refuse."""
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from side_by_side import attempt
from support import ROOT, Programs, cpu_only, fresh_process

from tensorgrad.distributed import FileStore, HashStore, PrefixStore, Store, TCPStore, tcp_store
from tensorgrad.distributed.errors import DistNetworkError, DistStoreError

pytestmark = cpu_only
program = Programs()
LIMIT = timedelta(seconds=60)


def quick(store):
    store.set_timeout(timedelta(milliseconds=20))
    return store


def all_that_a_store_does(store):
    """Values, counters, lists, errors of a store.

    FileStore's time-outs are plain RuntimeErrors in PyTorch, so these are left out here.
    """
    found = [store.set("a", "1"), store.set("b", b"\0\xff"), store.get("a"), store.get("b"), store.add("n", 2),
             store.add("n", -5), store.get("n"), store.add("a", 1), store.compare_set("k", "e", "d"),
             store.check(["k"]), store.compare_set("k", "", "d"), store.compare_set("k", "d", "f"),
             store.compare_set("k", "d", "g"), store.get("k"), store.append("p", "x"),
             store.append("p", "y"), store.get("p"), store.multi_set(["m", "o"], ["1", b"2"]),
             store.multi_get(["m", "o"]), store.num_keys(),
             sorted(key for key in store.list_keys() if key != "efcount/"), store.check(["a", "k"]),
             store.check(["a", "z"]), store.check([]),
             store.wait(["a", "k"]), store.delete_key("a"), store.check(["a"]), store.set("", "empty"), store.get(""),
             store.timeout]
    errors = [attempt(call) for call in (lambda: store.set("c", 5), lambda: store.wait("x"), lambda: store.check("x"),
                                         lambda: store.add("n", 1.5),
                                         lambda: store.set_timeout(5), lambda: store.get(5))]
    return found, errors


def waiting(store):
    quick(store)
    return [attempt(call) for call in (lambda: store.get("x"), lambda: store.wait(["x", "y"]),
                                       lambda: store.wait(["x"], timedelta(milliseconds=10)),
                                       lambda: store.multi_get(["x"]))]


def queues(store):
    quick(store)
    return (store.queue_push("q", "v"), store.queue_push("q", b"w"), store.queue_len("q"), store.queue_len("none"),
            store.queue_pop("q"), store.queue_pop("q"),
            attempt(lambda: store.queue_pop("q", False)), attempt(lambda: store.queue_pop("q")),
            store.has_extended_api())


def distributed(torch):
    return importlib.import_module(torch.__name__ + ".distributed")


@program
def a_dictionary(torch):
    d = distributed(torch)
    return all_that_a_store_does(d.HashStore()), waiting(d.HashStore()), queues(d.HashStore())


@program
def a_server(torch):
    d = distributed(torch)
    # PyTorch's server closes the connection of whoever counts up what is no number
    store = d.TCPStore("127.0.0.1", 0, 1, True)
    one = (attempt(lambda: store.multi_set(["q"], ["1", "2"])), store.num_keys(), all_that_a_store_does(store),
           waiting(store), queues(store), store.host,
           store.port > 0)
    other = d.TCPStore("localhost", 0, 3, True, wait_for_workers=False)
    return one, other.num_keys(), other.list_keys(), other.barrier("b", 1), other.list_keys() != []


@program
def a_file(torch):
    import tempfile
    d = distributed(torch)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "store")
        store, other = d.FileStore(path, 2), d.FileStore(path, 2)
        found = (all_that_a_store_does(store), other.get("k"), other.add("n", 1), store.get("n"), store.path == path,
                 store.has_extended_api() in (True, False))
        del store
        gc.collect()
        there = os.path.exists(path)
        del other
        gc.collect()
        return found, there, os.path.exists(path)


@program
def prefixes(torch):
    d = distributed(torch)
    base = d.HashStore()
    store = d.PrefixStore("p", d.PrefixStore("q", base))
    found = all_that_a_store_does(store), queues(store)
    return (found, sorted(base.list_keys()), base.get("q/p/k"), type(store.underlying_store).__name__,
            store._underlying_non_prefix_store is base)


@program
def ones_own(torch):
    """Methods in Python of somebody's own store, behind a prefix."""
    d = distributed(torch)
    calls = []

    class Own(d.Store):
        def set(self, key, value):
            calls.append((key, value))

        def get(self, key):
            return b"got " + key.encode()

        def wait(self, keys, timeout=None):
            calls.append(keys)
    own = Own()
    own.wait(["w"])
    return own.get("x"), own.set("k", "v"), calls


test_programs = program.test()


def test_values_come_later():
    """Who waits gets the value as soon as another thread, or a client on another connection, has set it; nobody is held
    up meanwhile.
    """
    master = TCPStore("127.0.0.1", 0, is_master=True, timeout=LIMIT)
    other = TCPStore("127.0.0.1", master.port, timeout=LIMIT)
    for one, two in ((HashStore(),) * 2, (master, other), (other, master)):
        found = []
        threads = [threading.Thread(target=lambda i=i, one=one, found=found: found.append(
            (one.get(f"late{i}"), one.queue_pop("queue")))) for i in range(3)]
        for thread in threads:
            thread.start()
        for i in range(3):
            two.set(f"late{i}", b"a\0b" * 50_000)
            two.queue_push("queue", f"{i}")
        for thread in threads:
            thread.join(60)
        assert sorted(found) == [(b"a\0b" * 50_000, b"%d" % i) for i in range(3)]


@pytest.mark.parametrize("content", [b"x", b"tensorgrad store 1", os.urandom(5000),
                                     b"tensorgrad store 1\n" + os.urandom(100),
                                     b"tensorgrad store 1\n" + b"\0" * 7,
                                     b"tensorgrad store 1\n" + b"\0\0\0\0\xff\xff\xff\xffabc",
                                     b"tensorgrad store 1\n" + b"\xd2\x02\xef\x8d\0\0\0\x01\0"], ids=range(7))
def test_files_that_are_no_stores(tmp_path, content):
    path = tmp_path / "store"
    path.write_bytes(content)
    with pytest.raises(DistStoreError, match="is not the log of a store"):
        FileStore(str(path)).get("x")
    assert path.read_bytes() == content


def test_files_that_cannot_be(tmp_path):
    with pytest.raises(DistStoreError, match="cannot be opened: No such file or directory"):
        FileStore(str(tmp_path / "no" / "store"))
    with pytest.raises(DistStoreError, match="cannot be opened: Is a directory"):
        FileStore(str(tmp_path))


def test_who_may_have_a_port():
    master = TCPStore("127.0.0.1", 0, is_master=True)
    with pytest.raises(DistNetworkError, match=f"has failed to listen on any local network address. port: "
                                               f"{master.port}"):
        TCPStore("127.0.0.1", master.port, is_master=True)
    shared = TCPStore("127.0.0.1", master.port, is_master=True, multi_tenant=True)
    shared.set("a", "1")
    assert master.get("a") == b"1" and shared.port == master.port
    del master
    gc.collect()
    assert shared.get("a") == b"1"
    port = shared.port
    del shared
    gc.collect()
    assert not any(server.port == port for server in tcp_store._servers if not server.closed)


def test_a_socket_that_listens_already():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        master = TCPStore("127.0.0.1", port, is_master=True, master_listen_fd=os.dup(bound.fileno()))
        other = TCPStore("127.0.0.1", port)
        other.set("a", "1")
        assert master.port == port and master.get("a") == b"1"
    with socket.socket() as everywhere:
        everywhere.bind(("0.0.0.0", 0))
        with pytest.raises(RuntimeError, match="master_listen_fd must be bound to 127.0.0.1"):
            TCPStore("127.0.0.1", 0, is_master=True, master_listen_fd=everywhere.fileno())


def test_only_the_loopback():
    master = TCPStore(socket.gethostname(), 0, is_master=True)
    assert master._server._listener.getsockname()[0] == "127.0.0.1" and master.host == socket.gethostname()
    for host in ("192.0.2.1", "198.51.100.7"):              # addresses of documentation: nobody's
        for is_master in (False, True):
            with pytest.raises(RuntimeError, match=f"one machine only, '{host}' is not this one. Between machines, use "
                                                   f"init_process_group"):
                TCPStore(host, 29500, 2, is_master, timedelta(milliseconds=50))
    with pytest.raises(DistNetworkError, match="The name 'no such name' of the machine to meet at is not known"):
        TCPStore("no such name", 29500, 2)


def test_workers_that_do_not_come():
    with pytest.raises(DistStoreError, match="Timed out after 1 seconds waiting for clients. 1/2 clients joined."):
        TCPStore("127.0.0.1", 0, 2, True, timedelta(milliseconds=30))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(DistNetworkError, match="The client socket has timed out after 30ms while trying to connect "
                                                   "to"):
            TCPStore("127.0.0.1", free.getsockname()[1], 2, False, timedelta(milliseconds=30))


def test_a_master_that_goes():
    master = TCPStore("127.0.0.1", 0, is_master=True)
    other = TCPStore("127.0.0.1", master.port, timeout=LIMIT)
    other.set("a", "1")
    other.set_timeout(timedelta(milliseconds=50))
    del master
    gc.collect()
    with pytest.raises(DistNetworkError):
        other.get("a")
    with pytest.raises(DistNetworkError, match="The client socket has timed out"):
        other.get("a")


@pytest.mark.skipif(os.name != "posix", reason="stops a process")
def test_a_master_that_stops(monkeypatch):
    """The process that serves does not move any more: whoever asks has a time limit.

    At its exit it waits for those who may still ask.
    """
    serve = ("from tensorgrad.distributed import TCPStore; s = TCPStore('127.0.0.1', 0, is_master=True); print(s.port, "
             "flush=True); s.get('end')")
    with subprocess.Popen([sys.executable, "-W", "error", "-c", serve], cwd=ROOT, stdout=subprocess.PIPE,
                          text=True) as process:
        try:
            store = TCPStore("127.0.0.1", int(process.stdout.readline()), timeout=LIMIT)
            store.set("a", "1")
            store.set_timeout(timedelta(milliseconds=30))
            os.kill(process.pid, signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)       # until it has stopped
            with monkeypatch.context() as patch, pytest.raises(DistStoreError, match="does not answer"):
                patch.setattr(tcp_store, "GRACE", 0.1)
                store.get("a")
            os.kill(process.pid, signal.SIGCONT)
            store.set_timeout(LIMIT)
            assert store.get("a") == b"1"               # over a new connection
            store.set("end", "")
            assert store.get("end") == b"" and process.poll() is None
            del store
            gc.collect()
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_time_without_end(tmp_path):
    for store in (HashStore(), TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta.max),
                  FileStore(str(tmp_path / "store"))):
        store.set_timeout(timedelta.max)
        thread = threading.Thread(target=store.get, args=("late",))
        thread.start()
        store.set("late", "1")
        thread.join(60)
        assert not thread.is_alive()


def test_clones_and_threads():
    master = TCPStore("127.0.0.1", 0, is_master=True)
    clone = PrefixStore("p", master).clone()
    clone.set("a", "1")
    assert master.get("p/a") == b"1" and HashStore().clone() is not None and isinstance(clone, PrefixStore)
    with pytest.raises(NotImplementedError, match="Store does not define get"):
        Store().get("a")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_children_that_were_forked():
    """Three processes count up in a file, and none of the sums is lost; the last one removes it. Others use an
    inherited store, or drop it. A child connects to a server anew."""
    assert fresh_process("""
import gc, os, tempfile, warnings
from tensorgrad.distributed import FileStore, TCPStore

def forked(work):
    child = os.fork()
    if child == 0:
        work()
        gc.collect()
        os._exit(0)
    return child

def count(store=None):
    store = store or FileStore(path, 3)
    for _ in range(50):
        store.add("n", 1)

with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "store")
    store = FileStore(path, 3)
    children = [forked(count) for _ in range(2)] + [forked(lambda: store.get("n")), forked(lambda: globals().pop("store") and None)]
    count(store)
    print([os.waitpid(child, 0)[1] for child in children], store.get("n"), os.path.exists(path))
    del store
    gc.collect()
    print(os.path.exists(path))

warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
store = TCPStore("127.0.0.1", 0, is_master=True)
store.set("a", "1")
child = forked(lambda: store.set("b", store.get("a") + b"2"))
print(os.waitpid(child, 0)[1], store.get("b"), store.get("a"), store._server.closed)
""").splitlines() == ["[0, 0, 0, 0] b'150' True", "False", "0 b'12' b'1' False"]  # noqa: E501
