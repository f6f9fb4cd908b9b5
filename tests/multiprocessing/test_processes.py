"""Tensors in several processes: shared memory, queues and pipes, spawn's errors, and the loader's way to send large
batches.
"""
import errno
import faulthandler
import glob
import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.reduction import ForkingPickler

import pytest
from support import ROOT, Programs, cpu_only, fresh_process, is_running, nothing_is_left, shared_memory, until

import tensorgrad as tg
import tensorgrad.multiprocessing as mp
from tensorgrad.multiprocessing import _fd_passing
from tensorgrad.multiprocessing.reductions import share
from tensorgrad.utils.data import DataLoader, Dataset
from tensorgrad.utils.data._utils import message_pipe

pytestmark = [cpu_only, pytest.mark.usefixtures("forking"),
              pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
              pytest.mark.filterwarnings("ignore:This DataLoader will create"),
              pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is not there")]


@pytest.fixture
def context():
    return mp.get_context("fork")


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_all_views_move_to_shared_memory():
    x = tg.arange(12.0).reshape(3, 4)
    row, column, alias = x[1], x.t()[2], x.data
    assert row.share_memory_() is row
    assert x.is_shared() and column.is_shared() and alias.is_shared() and not tg.ones(1).is_shared()
    row[2] = -1.0
    assert x[1, 2] == column[1] == alias[1, 2] == -1 and x.stride() == (4, 1) and column.stride() == (4,)
    assert x.tolist() == [[0, 1, 2, 3], [4, 5, -1, 7], [8, 9, 10, 11]]


@pytest.mark.parametrize("tensor", [
    tg.ones(2, 3).t()[1:], tg.ones(1).expand(3), tg.tensor(5), tg.zeros(0, 3), tg.tensor([True, False]),
    tg.ones(2, dtype=tg.complex64), tg.arange(6)[::2],
    tg.ones(2, dtype=tg.float16)])
def test_layouts_survive(tensor):
    before = tensor.tolist(), tensor.stride(), tensor.dtype
    queue = mp.SimpleQueue()
    queue.put(tensor)
    there = queue.get()
    assert (there.tolist(), there.stride(), there.dtype) == before == (tensor.tolist(), tensor.stride(), tensor.dtype)
    assert there.is_shared() == tensor.is_shared() == bool(tensor.numel())


def test_gradients_and_the_tape_go_on():
    w = tg.nn.Parameter(tg.ones(2))
    loss = (w * 3).sum()
    w.share_memory_()
    loss.backward()
    assert w.grad.tolist() == [3, 3] and w.is_leaf and w.requires_grad
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        mp.SimpleQueue().put(w * 2)
    queue = mp.SimpleQueue()
    queue.put(w)
    assert type(there := queue.get()) is tg.nn.Parameter and there.requires_grad and there.data_ptr() == w.data_ptr()


def test_tied_weights_stay_tied():
    model = tg.nn.Sequential(tg.nn.Linear(2, 2), tg.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    model.share_memory()
    queue = mp.SimpleQueue()
    queue.put(model)
    there = queue.get()
    assert (all(p.is_shared() for p in there.parameters()) and there[0].weight.data_ptr() == there[1].weight.data_ptr()
            == model[0].weight.data_ptr())
    assert share(model[0].weight) is model[0].weight        # once is enough


def test_files_are_closed():
    def count():
        return len(os.listdir("/proc/self/fd"))
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("not on this platform")
    before = count()
    for _ in range(5):
        tg.ones(3).share_memory_()
    assert count() == before


program = Programs()


@program
def what_is_shared_with_what(torch):
    """Views, other dtypes, storages, gradients and attributes move together."""
    x = torch.arange(4.)
    row, bits, line = x[1:], x.view(torch.int32), x.untyped_storage()
    assert line.share_memory_() is line
    row[0], line[3] = 3., 64
    found = [x, row, bits, [each.is_shared() for each in (x, row, bits, line, x.untyped_storage())]]
    model = torch.nn.Linear(2, 1)
    model(torch.ones(1, 2)).sum().backward()
    model.share_memory()
    y = torch.ones(2)
    y.untyped_storage().share_memory_()
    empty = torch.UntypedStorage(0)
    return (found, model.weight.grad.is_shared(), y.is_shared(), y, empty.share_memory_().nbytes(),
            torch.UntypedStorage(3).share_memory_().is_shared())


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_typed_storages_are_shared():
    x = tg.ones(2)
    typed = x.storage()
    assert typed.share_memory_() is typed and typed.is_shared() and x.is_shared()
    queue = mp.SimpleQueue()
    queue.put(typed)
    there = queue.get()
    there[1] = 4.0
    assert x.tolist() == [1, 4] and there.dtype is tg.float32


@program
def what_comes_back(torch):
    def sent(value):
        queue.put(value)
        return queue.get()
    queue = torch.multiprocessing.SimpleQueue()
    half = torch.ones(3, dtype=torch.bfloat16)
    there = sent(half)
    there += 1
    x = torch.zeros(6)
    left, right = sent((x[:3], x[2:]))
    left[2] = 5
    line = x.untyped_storage()
    sent(line)[0] = 7
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    again = sent(weight)
    return (half.float(), str(there.dtype), there.is_shared(), x, right, line[0], again, again.grad,
            type(again) is torch.nn.Parameter, sent(torch.Size([1, 2])))


test_programs = program.test()


def test_many_tensors_leave_no_descriptors_behind(context):
    """Ten thousand come back from another process, in messages of a hundred; the count of open files is as before, in
    both.
    """
    inbox, outbox = context.SimpleQueue(), context.SimpleQueue()

    def add_one():
        counts = []
        for batch in iter(inbox.get, None):
            outbox.put([t.add_(1) for t in batch[:1]])
            del batch
            counts.append(descriptors())
        outbox.put(counts)
    process = context.Process(target=add_one)
    process.start()
    counts = []
    for number in range(100):
        batch = [tg.full((8,), float(number)) for _ in range(100)]
        inbox.put(batch)
        assert outbox.get()[0].data_ptr() == batch[0].data_ptr() and batch[0].tolist() == [number + 1.0] * 8
        del batch
        counts.append(descriptors())
    inbox.put(None)
    there = outbox.get()
    process.join()
    # a thread closes what it has handed over just after that
    until(lambda: descriptors() <= min(counts[5:10]), counts)
    assert max(there[5:]) <= min(there[5:]) + 2 and max(counts[5:]) <= min(counts[5:]) + 2


def descriptors():
    """How many files this process has open."""
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("needs /proc")
    return len(os.listdir("/proc/self/fd"))


def test_too_many_open_files_say_what_to_do(monkeypatch):
    def full(name):
        raise OSError(errno.EMFILE, "full")
    monkeypatch.setattr(os, "memfd_create", full, raising=False)
    x = tg.ones(2)
    with pytest.raises(OSError, match="ulimit -n"):
        x.share_memory_()
    assert not x.is_shared() and x.tolist() == [1, 1]


def test_what_nobody_offers_cannot_be_received(context):
    if not _fd_passing.here:
        pytest.skip("needs sockets without a name")
    x = tg.ones(2).share_memory_()
    sent = pickle.loads(ForkingPickler.dumps(_fd_passing.handed(x._storage.shared.descriptor)))
    os.close(sent.detach())
    with pytest.raises(ConnectionError, match="cannot be received"):
        sent.detach()
    with pytest.raises(ConnectionError, match="has ended"):
        _fd_passing.Handed("\0tensorgrad-nobody", bytes(16)).detach()
    with socket.socket(socket.AF_UNIX) as stranger:             # with a ticket that was never given
        stranger.connect(sent.name)
        stranger.sendall(b"?" * 16)
        assert stranger.recv(1) == b""


# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def exchange(inbox, outbox, end):
    t = inbox.get()
    t += 1
    outbox.put((t.is_shared(), tg.arange(3.0)))
    end.wait()


def test_queues_share(context):
    inbox, outbox, end = context.Queue(), context.Queue(), context.Event()
    process = context.Process(target=exchange, args=(inbox, outbox, end))
    process.start()
    x = tg.zeros(3)
    view = x[1:]
    inbox.put(x)
    shared, other = outbox.get()
    end.set()
    process.join()
    assert (shared and x.tolist() == [1, 1, 1] and view.tolist() == [1, 1] and other.tolist() == [0, 1, 2]
            and other.is_shared())


def test_pipes_share(context):
    here, there = context.Pipe()

    def double():
        t = there.recv()
        t *= 2
        there.send(t)
        there.recv()
    process = context.Process(target=double)
    process.start()
    x = tg.ones(2)
    here.send(x)
    y = here.recv()
    y += 1
    here.send(None)
    process.join()
    assert x.tolist() == y.tolist() == [3, 3]


def fails(i, how):
    if how == "raise" and i:
        raise ValueError(f"oops {i}")
    if how == "exit":
        os._exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how != "end":
        time.sleep(60)


@pytest.mark.parametrize("how, error, text", [
    ("raise", mp.ProcessRaisedException,
     r"-- Process 1 terminated with the following error:\nTraceback(.|\n)*ValueError: oops 1"),
    ("exit", mp.ProcessExitedException, "process [01] terminated with exit code 3"),
    ("kill", mp.ProcessExitedException, "process [01] terminated with signal SIGKILL")])
def test_what_goes_wrong_is_told(how, error, text):
    with pytest.raises(error, match=text) as caught:
        mp.start_processes(fails, (how,), nprocs=2, start_method="fork")
    assert getattr(caught.value, "exit_code", None) == {"raise": None, "exit": 3, "kill": -9}[how]
    assert mp.start_processes(fails, ("end",), nprocs=2, start_method="fork") is None


def fails_at_length(i, text):
    raise ValueError(text * (1 + i * 100_000))


def test_errors_of_any_length_and_the_first_of_them():
    """A message longer than a pipe's buffer arrives; if two processes fail, the first one's error is raised."""
    running = mp.start_processes(fails_at_length, ("é",), nprocs=2, join=False, start_method="fork")
    for process in running.processes[:1]:
        process.join()
    while running.processes[1].is_alive():
        running._read()
    with pytest.raises(mp.ProcessRaisedException, match="ValueError: é") as caught:
        running.join()
    first = min((0, 1), key=running._when)
    assert caught.value.error_index == first and caught.value.pid == running.pids()[first] and running.join()
    with pytest.raises(mp.ProcessRaisedException) as caught:
        mp.start_processes(fails_at_length, ("é" * 100_000,), start_method="fork")
    assert str(caught.value).endswith("é" * 100_000 + "\n")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.msg, again.error_index, again.error_pid) == (caught.value.msg, 0, caught.value.error_pid)


def stubborn(i, file):
    if i == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        own = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"],
                               start_new_session=True)
        with open(file + "+", "w") as written:
            written.write(str(own.pid))
        os.rename(file + "+", file)
        time.sleep(60)
    if i == 2:
        os.mkdir(f"{file}.{os.getpid()}")
        return
    until(lambda: os.path.exists(file))
    (other,) = until(lambda: glob.glob(f"{file}.*"))
    until(lambda: not is_running(other.rpartition(".")[2]))         # ended by itself, before anybody ends it
    raise ValueError("enough")


def test_who_does_not_listen_is_killed(tmp_path):
    running = mp.start_processes(stubborn, (str(tmp_path / "ready"),), nprocs=3, join=False, daemon=True,
                                 start_method="fork")
    assert all(process.daemon for process in running.processes)
    with pytest.raises(mp.ProcessRaisedException, match="enough"):
        while not running.join(grace_period=0.05):
            pass
    assert [process.exitcode for process in running.processes] == [-signal.SIGKILL, 1, 0]
    assert not is_running((tmp_path / "ready").read_text())         # what it had started


def interrupts(i, parent):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while i == 1:           # again, as Python drops an interrupt that comes while its handlers run after a fork
        time.sleep(0.2)
        os.kill(parent, signal.SIGINT)
        time.sleep(5)
    time.sleep(60)


def test_an_interrupt_here_ends_them():
    before, handler = set(multiprocessing.active_children()), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            mp.start_processes(interrupts, (os.getpid(),), nprocs=2, start_method="fork")
    finally:
        signal.signal(signal.SIGINT, handler)
    assert set(multiprocessing.active_children()) <= before
    with pytest.raises((AttributeError, pickle.PicklingError)):             # what cannot be sent
        mp.start_processes(lambda i: None, nprocs=2, start_method="spawn")
    assert set(multiprocessing.active_children()) <= before


def test_the_other_ways_to_start():
    assert mp.start_processes(os.kill, (0,), nprocs=0, start_method="spawn") is None
    running = mp.start_processes(divmod, (0,), join=False, start_method="forkserver")
    with pytest.raises(mp.ProcessRaisedException, match="ZeroDivisionError"):
        while not running.join():
            pass
    with pytest.warns(FutureWarning, match="This method only supports start_method=spawn"):
        assert mp.spawn(print, nprocs=0, start_method="fork") is None
    with pytest.warns(UserWarning, match="SpawnContext is renamed to ProcessContext"):
        assert mp.SpawnContext([], []).join()


def doubled(t):
    return t.mul_(2)


def test_pools(context):
    with context.Pool(2) as pool:
        x = [tg.ones(2).share_memory_() for _ in range(4)]
        assert [t.tolist() for t in pool.map(doubled, x)] == [[2, 2]] * 4 == [t.tolist() for t in x]


def test_children_of_a_killed_process_end():
    before = shared_memory()
    program = ("import tensorgrad as tg, tensorgrad.multiprocessing as mp, os, time\ndef f(i, x, queue): queue.put(x + "
               "i); time.sleep(60)\nqueue = mp.get_context('fork').Queue()\n"
               "c = mp.start_processes(f, (tg.ones(2).share_memory_(), queue), nprocs=2, join=False, "
               "start_method='fork')\nqueue.get()\nos.kill(c.pids()[0], 9)\nqueue.put(tg.ones(3))\nprint(*c.pids(), "
               "flush=True)\nos.kill(os.getpid(), 9)")
    ran = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in ran.stdout.readline().split()]
    ran.wait()
    ran.stdout.close()
    assert len(pids) == 2
    until(lambda: not any(map(is_running, pids)))
    until(lambda: nothing_is_left(before))


def test_strategies():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x', expected one of"):
        mp.set_sharing_strategy("x")


# ── the loader ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Rows(Dataset):
    """Each sample is a row filled with its index."""

    def __init__(self, width, length=6, happens=lambda: None):
        self.width, self.length, self.happens = width, length, happens

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        if i == 5:
            self.happens()
        return tg.full((self.width,), float(i)), i


@pytest.mark.parametrize("width", [1, message_pipe.LARGE // 8, message_pipe.PIECE // 4 + 1,
                                   3 * message_pipe.PIECE // 2])
@pytest.mark.parametrize("order", [True, False])
def test_batches_of_all_sizes(width, order):
    """By the pipe, by one piece of shared memory, by more pieces than there are."""
    seen = {}
    for rows, numbers in DataLoader(Rows(width), batch_size=2, num_workers=2, in_order=order):
        assert (rows == numbers[:, None]).all() and rows.shape == (2, width)
        seen[numbers[0].item()] = rows
    # nothing is overwritten later
    assert sorted(seen) == [0, 2, 4] and all((rows[0] == first).all() for first, rows in seen.items())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_worker_that_dies_says_how(number):
    loader = DataLoader(Rows(message_pipe.PIECE,
                             happens=lambda: (faulthandler.disable(), os.kill(os.getpid(), number))), batch_size=1,
                        num_workers=1)
    with pytest.raises(RuntimeError, match=rf"exited unexpectedly\nDataLoader worker \(pid \d+\) is killed by signal: "
                                           rf"{signal.strsignal(number)}"):
        list(loader)


def test_a_program_that_leaves_in_the_middle_leaves_nothing(tmp_path):
    """No warning, no process, no file; and exceptions of the program's own classes come back from processes that start
    afresh.
    """
    program = tmp_path / "program.py"
    program.write_text("""
import os, torch
from torch.utils.data import DataLoader, Dataset
class Odd(Exception): pass
class Rows(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        if i == 3: raise Odd("three")
        return torch.zeros(100_000)
if __name__ == "__main__":
    try:
        list(DataLoader(Rows(), num_workers=1, multiprocessing_context="spawn"))
    except Odd as error:
        print(str(error).splitlines()[0], str(error).splitlines()[-1])
    loader = iter(DataLoader(Rows(), num_workers=2, persistent_workers=True))
    next(loader)
    print(sorted(os.listdir("/dev/shm")) == before if (before := sorted(os.listdir("/dev/shm"))) else True)
    raise SystemExit(3)
""")
    ran = subprocess.run([sys.executable, "-m", "tensorgrad", str(program)], env=os.environ | {"PYTHONPATH": str(ROOT)},
                         capture_output=True, text=True,
                         timeout=60)
    lines = ran.stdout.splitlines()
    assert lines[0] == "Caught Odd in DataLoader worker process 0. __mp_main__.Odd: three" and ran.returncode == 3
    assert (not ran.stderr.replace("This DataLoader will create", "") or "UserWarning" in ran.stderr
            and "resource_tracker" not in ran.stderr)


def test_processes_are_started_only_when_there_is_something_to_do():
    program = ("import sys, tensorgrad as t\nlist(t.utils.data.DataLoader(range(3)))\nprint([m for m in sys.modules if "
               "m.startswith('multiprocessing.')])")
    assert fresh_process(program) == "[]\n"
