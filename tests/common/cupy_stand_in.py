"""A stand-in for the part of CuPy that NCCL's transport uses: devices are threads, their memory is NumPy's, and streams
do their work later, in order.

It refuses what CuPy would refuse: calls that are not in `table`, arguments of other types, memory that is not on the
    device of the communicator, ends of
messages that do not fit together. Ranks are threads of one process.
"""
import ctypes
import queue
import threading
import weakref
from collections import defaultdict, deque
from itertools import count
from types import SimpleNamespace

import ml_dtypes
import numpy as np


class NcclError(RuntimeError):
    def __init__(self, status):
        super().__init__(f"NCCL_ERROR_{status}: stand-in")


class Array:
    """The part of cupy.ndarray that the transport uses."""

    memory = {}         # of all devices, while it is held: address → (bytes, device)

    def __init__(self, values, device):
        self.values, self.dtype, self.size, self.device = values, values.dtype, values.size, SimpleNamespace(id=device)
        self.data = SimpleNamespace(ptr=values.ctypes.data)
        self.hold(values, device)

    @classmethod
    def hold(cls, values, device):
        """Record the owner of the array's memory for as long as it lives; return the array's address."""
        whole = values
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if whole.ctypes.data not in cls.memory:
            cls.memory[whole.ctypes.data] = whole.nbytes, device
            weakref.finalize(whole, cls.memory.pop, whole.ctypes.data, None)
        return values.ctypes.data

    def __getitem__(self, part):
        return Array(self.values[part], self.device.id)


def at(pointer, size, device):
    """The bytes at an address of a device."""
    if not any(start <= pointer and pointer + size <= start + held and where == device
               for start, (held, where) in list(Array.memory.items())):
        raise NcclError("INVALID_ARGUMENT")
    return np.frombuffer((ctypes.c_char * size).from_address(pointer), np.uint8)


class Event:
    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.happened = threading.Event()

    done = property(lambda self: self.happened.is_set())

    def synchronize(self):
        assert self.happened.wait(60)


class Stream:
    """Runs jobs in a separate thread, in order."""

    streams, numbers = {}, count(1)

    def __init__(self, null=False, non_blocking=False):
        self.ptr, self.work = next(self.numbers), queue.SimpleQueue()
        self.streams[self.ptr] = self
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        for work in iter(self.work.get, None):
            work()

    @classmethod
    def stop(cls):
        """End the threads of all streams, once they have done their work."""
        while cls.streams:
            cls.streams.popitem()[1].work.put(None)

    def record(self, event=None):
        event = event or Event()
        self.work.put(event.happened.set)
        return event

    def wait_event(self, event):
        self.work.put(event.happened.wait)

    def synchronize(self):
        self.record().synchronize()


class AtOnce(Stream):
    """Has done its work when the call returns, as simulated devices have."""

    def __init__(self):
        self.ptr, self.work = next(self.numbers), self
        self.streams[self.ptr] = self

    def put(self, work):
        if work is not None:
            work()


class Meeting:
    """The state that communicators of a name share: the calls of each rank, in order."""

    def __init__(self, size):
        self.size, self.changed, self.calls, self.mail = (size, threading.Condition(), defaultdict(dict),
                                                          defaultdict(deque))
        self.ranks = set()

    def until(self, condition, aborted=lambda: False):
        """Wait until the others have done their part, or this rank gives up; return True if they have."""
        with self.changed:
            return self.changed.wait_for(lambda: aborted() or condition(), timeout=60) and not aborted()

    def change(self, function):
        with self.changed:
            function()
            self.changed.notify_all()


def stand_in(table, version, stream=Stream):
    """A module like CuPy of that version, for as many ranks as there are threads; `table` has the enumeration and the
    arguments of each call.

    `stream` makes the current stream of a thread.
    """
    class Here(threading.local):
        device, group, stream = 0, None, None
    meetings, here = {}, Here()
    types = {table["NCCL_" + name]: np.dtype(kind) for name, kind in (
        ("INT8", "i1"), ("UINT8", "u1"), ("INT32", "i4"), ("UINT32", "u4"), ("INT64", "i8"), ("UINT64", "u8"),
        ("FLOAT16", "f2"), ("FLOAT32", "f4"),
        ("FLOAT64", "f8"), ("BFLOAT16", ml_dtypes.bfloat16))}
    reductions = {table["NCCL_" + name]: function for name, function in (
        ("SUM", lambda all: np.add.reduce(all)), ("PROD", lambda all: np.multiply.reduce(all)),
        ("MAX", lambda all: np.maximum.reduce(all)),
        ("MIN", lambda all: np.minimum.reduce(all)),
        ("AVG", lambda all: np.add.reduce(all) / all.dtype.type(len(all))))}

    def current():
        if here.stream is None:
            here.stream = stream()
        return here.stream

    class Device:
        def __init__(self, device=None):
            self.id = here.device if device is None else device

        def __enter__(self):
            self.before, here.device = here.device, self.id

        def __exit__(self, *error):
            here.device = self.before

    def called(name, arguments):
        """Refuse a call that CuPy's function does not take."""
        names = table[name].split()
        assert len(arguments) == len(names) and all(type(argument) is int for argument in arguments), (name, arguments)
        return SimpleNamespace(name=name, **dict(zip(names, arguments)))

    class NcclCommunicator:
        def __init__(self, *arguments):
            ndev, name, self.rank = arguments
            assert len(table["NcclCommunicator"].split()) == 3 and len(name) == 128
            assert (type(name) is bytes if version >= 14 else type(name) is tuple
                    and all(-128 <= number < 128 for number in name))
            self.device, self.meeting, self.order = here.device, meetings.setdefault(name, Meeting(ndev)), 0
            assert self.rank not in self.meeting.ranks and ndev == self.meeting.size
            self.meeting.change(lambda: self.meeting.ranks.add(self.rank))
            assert self.meeting.until(lambda: len(self.meeting.ranks) == ndev)
            self.ended = self.failed = None

        def aborted(self):
            return self.ended == "aborted"

        def begin(self, call, collective):
            assert self.ended is None and here.device == self.device
            assert (0 <= getattr(call, "root", 0) < self.meeting.size and 0 <= getattr(call, "peer", 0)
                    < self.meeting.size)
            stream = Stream.streams[call.stream]

            def run():
                try:
                    collective()
                except NcclError as error:
                    self.failed = error
            if here.group is None:
                stream.work.put(run)
            else:
                here.group.append((stream, run, (call.name, call.peer)))

        def together(self, call, sent, received):
            """A collective: hand over bytes at one address; once all ranks have, put what comes of them at another."""
            size = types[call.datatype].itemsize * (getattr(call, "count", None) or getattr(call, "recvcount", 0))
            pieces = {"allGather": (1, self.meeting.size), "reduceScatter": (self.meeting.size, 1)}.get(call.name,
                                                                                                        (1, 1))
            alike = call.name, size, call.datatype, getattr(call, "op", None), getattr(call, "root", None)

            def run():
                # as the device does it, which streams may do in any order that events leave open
                self.order += 1
                order = self.order
                data = at(sent, size * pieces[0], self.device).copy().view(types[call.datatype])
                self.meeting.change(lambda: self.meeting.calls[order].__setitem__(self.rank, (alike, data)))
                if not self.meeting.until(lambda: len(self.meeting.calls[order]) == self.meeting.size, self.aborted):
                    return
                every = [self.meeting.calls[order][rank] for rank in range(self.meeting.size)]
                if any(other != alike for other, _ in every):
                    raise NcclError("INTERNAL_ERROR")
                result = self.result(call, [data for _, data in every])
                if result is not None:
                    at(received, size * pieces[1], self.device)[...] = result.view(np.uint8)
            self.begin(call, run)

        def result(self, call, all):
            if call.name == "broadcast":
                return all[call.root]
            if call.name == "allGather":
                return np.concatenate(all)
            if call.name == "reduce" and call.root != self.rank:
                return None
            total = reductions[call.op](np.stack(all)).astype(all[0].dtype)
            return total if call.name != "reduceScatter" else total.reshape(self.meeting.size, -1)[self.rank]

        def allReduce(self, *arguments):
            call = called("allReduce", arguments)
            self.together(call, call.sendbuf, call.recvbuf)

        def reduce(self, *arguments):
            call = called("reduce", arguments)
            self.together(call, call.sendbuf, call.recvbuf)

        def broadcast(self, *arguments):
            call = called("broadcast", arguments)
            self.together(call, call.sendbuff, call.recvbuff)

        def reduceScatter(self, *arguments):
            call = called("reduceScatter", arguments)
            self.together(call, call.sendbuf, call.recvbuf)

        def allGather(self, *arguments):
            call = called("allGather", arguments)
            self.together(call, call.sendbuf, call.recvbuf)

        def send(self, *arguments):
            call = called("send", arguments)
            assert call.peer != self.rank or here.group is not None, "a message to oneself would wait for itself"
            box, size = self.meeting.mail[self.rank, call.peer], call.count * types[call.datatype].itemsize

            def run():          # as long as nobody receives
                message = at(call.sendbuf, size, self.device).copy()
                self.meeting.change(lambda: box.append(message))
                self.meeting.until(lambda: not any(waiting is message for waiting in box), self.aborted)
            self.begin(call, run)

        def recv(self, *arguments):
            call = called("recv", arguments)
            box, size = self.meeting.mail[call.peer, self.rank], call.count * types[call.datatype].itemsize

            def run():
                if self.meeting.until(lambda: box, self.aborted):
                    data = box[0]
                    self.meeting.change(box.popleft)
                    if data.size != size:
                        raise NcclError("INVALID_USAGE")
                    at(call.recvbuf, size, self.device)[...] = data
            self.begin(call, run)

        def check_async_error(self):
            if self.failed is not None:
                raise self.failed

        def abort(self):
            self.ended = "aborted"
            self.meeting.change(lambda: None)

        def destroy(self):
            self.ended = "destroyed"

    names = iter(range(1, 100))

    def get_unique_id():
        name = bytes([next(names), *range(255, 128, -1)])
        return name if version >= 14 else tuple(byte - 256 if byte > 127 else byte for byte in name)

    def groupStart():
        assert here.group is None
        here.group = []

    def groupEnd():
        group, here.group, works = here.group, None, defaultdict(list)
        assert len({id(stream) for stream, _, _ in group}) < 2
        for _, work, place in group:
            works[place].append(work)           # those of one peer in order, others side by side
        if group:
            group[0][0].work.put(lambda: [thread.join() for thread in [started(some) for some in works.values()]])

    def started(works):
        thread = threading.Thread(target=lambda: [work() for work in works])
        thread.start()
        return thread
    calls = {"get_unique_id": get_unique_id, "groupStart": groupStart, "groupEnd": groupEnd,
             "NcclCommunicator": NcclCommunicator}
    assert (calls.keys() | {name for name in vars(NcclCommunicator) if not name.startswith("_")}
            - {"aborted", "begin", "together", "result"} <= table.keys())
    nccl = SimpleNamespace(available=True, NcclError=NcclError, **calls,
                           **{name: value for name, value in table.items() if name.startswith("NCCL_")})

    def take_device(number):
        """Make this thread the host of a device."""
        here.device = number
    return SimpleNamespace(__version__=f"{version}.0.0", take_device=take_device,
                           zeros=lambda size, dtype: Array(np.zeros(size, dtype), here.device),
                           cuda=SimpleNamespace(nccl=nccl, Device=Device, Stream=Stream, Event=Event,
                                                get_current_stream=current))
