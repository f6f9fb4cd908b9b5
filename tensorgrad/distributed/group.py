"""Groups of ranks: tensors are flattened here, handed to the transport of their device, and results are put where they
belong.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import Any

import numpy

from .. import api as tg
from ..device import device as Device
from . import flight_recorder
from .checks import NAMES, check_list, checked_op, checked_root, label, parts, unlike
from .errors import DistBackendError, TimedOut
from .flattening import gathered, memory, read, room, spread
from .monitoring import monitored_barrier
from .operations import ReduceOp
from .transport.base import Call, Transport
from .work import DONE, Work

__all__ = ["ProcessGroup"]

TIMEOUT = timedelta(minutes=30)
SUM = ReduceOp.SUM
DETAILS = {op: f"op={op.name}" for op in ReduceOp}
LISTS = (list, tuple)
ANY: tuple[Any, ...] = ("any",)         # for tensors whose shapes ranks need not agree on


def first(tensors: Any) -> Any:
    """A tensor that may come alone or in a list."""
    return tensors[0] if isinstance(tensors, (list, tuple)) else tensors


class ProcessGroup:
    """Ranks that work together. https://pytorch.org/docs → torch.distributed.ProcessGroup

    Args:
        rank, size: this rank in the group, and how many there are
        ranks: the ranks of the members in the world, in the order of the group
        transports: {kind of device: Transport, or a function that makes it when it is first needed}
    Each method begins its work and gives a `Work`; with `later=False` it ends it first, and gives nothing to wait for.
    """

    bound_device_id: Any = None
    backend: Any = "undefined"          # as it was asked for
    config: Any = None                  # which backend serves which kind of device
    store: Any = None

    def __init__(self, rank: int, size: int, ranks: Sequence[int] | None = None,
                 transports: dict[str, Transport | Callable[[], Transport]] | None = None, name: str = "",
                 timeout: timedelta = TIMEOUT,
                 desc: str = "undefined", log: flight_recorder.Log | None = None) -> None:
        self._rank, self._size, self.ranks = rank, size, list(range(size)) if ranks is None else list(ranks)
        self.group_name, self.group_desc, self.timeout = name, desc, timeout
        self.transports: dict[str, Any] = dict(transports or {})
        self._ready: dict[str, Transport] = {}
        self.log = flight_recorder.Log(rank) if log is None else log
        self._sequence, self._ended = -1, ""
        for kind, transport in self.transports.items():
            if isinstance(transport, Transport):
                self._add(kind, transport)

    def __repr__(self) -> str:
        return f"<torch.distributed.distributed_c10d.ProcessGroup object at {id(self):#x}>"

    def rank(self) -> int:
        """Return the rank of this process in the group."""
        return self._rank

    def size(self) -> int:
        """Return the number of ranks."""
        return self._size

    def name(self) -> str:
        """Return the name of the backend: that of the CPU if there are several."""
        found = self.transports.get("cpu") or next(iter(self.transports.values()), None)
        return getattr(found, "name", "undefined")

    # ── transports ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, kind: str, transport: Transport) -> Transport:
        transport.log = self.log.dump
        self._ready[kind] = transport
        return transport

    def transport(self, kind: str = "") -> Transport:
        """Return the transport of a kind of device, by default the one that needs no tensor.

        Errors: RuntimeError if there is none.
        """
        if self._ended:
            raise DistBackendError(self._ended)
        kind = kind or ("cpu" if "cpu" in self.transports else next(iter(self.transports), ""))
        if kind in self._ready:
            return self._ready[kind]
        if kind not in self.transports:
            raise RuntimeError(f"No backend type associated with device type {kind}")
        made = self._add(kind, self.transports[kind]())
        made.timeout = self.timeout
        return made

    def _of(self, tensor: Any) -> Transport:
        """The transport for a tensor."""
        device = tensor._storage.device.type
        return self._ready.get(device) or self.transport(device)

    def _begin(self, kind: str, transport: Transport, tensor: Any, detail: str, later: bool,
               tensors: Sequence[Any] = ()) -> Call:
        """Count and log a collective whose ranks agree on one tensor, or on several.

        Nothing may fail between this and the transport's own method.
        """
        array = tensor.array
        self._sequence += 1
        call = Call(kind, self._sequence, (array.shape,), NAMES[array.dtype], tensor._storage.device.type, detail,
                    later, self.group_name, monotonic(),
                    flight_recorder.place())
        if tensors is ANY:
            call.shapes = ()
        elif tensors:
            call.shapes, call.dtypes = (tuple(t.array.shape for t in tensors),
                                        tuple(NAMES[t.array.dtype][0] for t in tensors))
        if flight_recorder.named:
            call.title = flight_recorder.naming.title
        self.log.calls.append(call)
        if flight_recorder.checking and not transport.checks:
            self._agree(transport, call)
        return call

    def _agree(self, transport: Transport, call: Call) -> None:
        """Compare what all ranks are about to do. Errors: DistBackendError naming two sides that differ."""
        own = flight_recorder.fingerprint(call)
        words = numpy.frombuffer(own.ljust(flight_recorder.LONGEST, b"\0"), numpy.uint8).copy()
        data = tg.from_numpy(words).to(transport.device)
        out = tg.empty(flight_recorder.LONGEST * self._size, dtype=tg.uint8, device=transport.device)
        check = Call("CHECK", call.sequence, ((flight_recorder.LONGEST,),), ("Byte",), call.device,
                     group=self.group_name)
        transport.allgather(check, out.array, data.array).wait()
        rows = out.cpu().numpy().reshape(self._size, -1)
        error = flight_recorder.compare(self._rank, own,
                                        {rank: row.tobytes().rstrip(b"\0") for rank, row in enumerate(rows)})
        if error is not None:
            call.state = 2
            raise error

    # ── the end of work ───────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self, call: Call, begin: Callable[..., Work], arguments: tuple[Any, ...], result: Any,
             back: Callable[[], None] | None = None) -> Work:
        """Begin the work of a transport. Wait for what is not for later; give the handle of what is."""
        try:
            work = begin(call, *arguments)
            if work is not DONE:
                if call.later:
                    work._result = result
                    if back is not None:
                        work.then(back)
                    return work.then(lambda: self._noted(call, work.exception()), always=True)
                work.wait()
            if back is not None:
                back()
        except Exception as error:
            self._noted(call, error)
            raise
        call.state = 1
        return Work.done(result) if call.later else DONE

    def _noted(self, call: Call, error: BaseException | None) -> None:
        """Note in the log how a collective ended. A time-out prints the log, and its error ends with it."""
        call.state = 1 if error is None else 2
        if isinstance(error, TimedOut) and not error.logged:
            text, error.logged = self.log.dump(), True
            error.args = (f"{error}\n{text}",)
            with suppress(OSError, ValueError):         # a program may have closed it
                print(text, file=sys.stderr, flush=True)

    # ── collectives ───────────────────────────────────────────────────────────────────────────────────────────────────

    def allreduce(self, tensors: Any, op: Any = SUM, later: bool = True) -> Work:
        """Replace a tensor by the reduction of all ranks'."""
        tensor = first(tensors) if tensors.__class__ in LISTS else tensors
        array = tensor.array
        if op is not SUM:
            op = checked_op(op, array, "all_reduce")
        transport = self._ready.get(tensor._storage.device.type) or self._of(tensor)
        back = None
        if array.__class__ is not numpy.ndarray or not array.flags.carray:
            array, back = memory(tensor, transport)
        elif array.ndim != 1:
            array = array.reshape(-1)
        call = self._begin("ALLREDUCE", transport, tensor, DETAILS[op], later)
        return self._run(call, transport.allreduce, (array, op), [tensor] if later else None, back)

    def allreduce_coalesced(self, tensors: Sequence[Any], op: Any = SUM, later: bool = True) -> Work:
        """Replace several tensors by the reductions of all ranks', in one message if they have one dtype and one
        device.
        """
        if not tensors:
            raise RuntimeError(f"ProcessGroup{label(self)}::allreduce_coalesced: requires a non-empty tensor list")
        op = checked_op(op, tensors[0].array, "all_reduce")
        if len({(t.array.dtype, t._storage.device) for t in tensors}) > 1:
            return _all([self.allreduce(t, op, later) for t in tensors], tensors)
        transport = self._of(tensors[0])
        flat = gathered(tensors, transport) if len(tensors) > 1 else read(tensors[0], transport).copy()
        call = self._begin("ALLREDUCE_COALESCED", transport, tensors[0], DETAILS[op], later, tensors)
        return self._run(call, transport.allreduce, (flat, op), list(tensors), lambda: spread(tensors, flat))

    def broadcast(self, tensors: Any, root: Any = 0, later: bool = True) -> Work:
        """Replace a tensor by the root's."""
        tensor, root = first(tensors), checked_root(self, root, "broadcast")
        transport = self._of(tensor)
        array, back = memory(tensor, transport) if root != self._rank else (read(tensor, transport), None)
        call = self._begin("BROADCAST", transport, tensor, f"root={root}", later)
        return self._run(call, transport.broadcast, (array, root), [tensor], back)

    def reduce(self, tensors: Any, root: Any = 0, op: Any = SUM, later: bool = True) -> Work:
        """Replace the root's tensor by the reduction of all ranks'."""
        tensor, op = first(tensors), checked_op(getattr(root, "reduceOp", op), first(tensors).array, "reduce")
        root = checked_root(self, root, "reduce")
        transport = self._of(tensor)
        array, back = memory(tensor, transport) if root == self._rank else (read(tensor, transport), None)
        call = self._begin("REDUCE", transport, tensor, f"{DETAILS[op]}, root={root}", later)
        return self._run(call, transport.reduce, (array, root, op), [tensor], back)

    def allgather(self, outputs: Any, tensors: Any, later: bool = True) -> Work:
        """Fill a list of tensors with those of all ranks."""
        tensor, outputs = first(tensors), outputs[0] if outputs and isinstance(outputs[0], (list, tuple)) else outputs
        check_list(self, "allgather", "output", outputs, tensor)
        transport = self._of(tensor)
        out, back = room(outputs, transport)
        call = self._begin("ALLGATHER", transport, tensor, "", later)
        return self._run(call, transport.allgather, (out, read(tensor, transport)), list(outputs), back)

    def _allgather_base(self, output: Any, tensor: Any, later: bool = True) -> Work:
        """Fill one tensor with those of all ranks, one after the other."""
        if output.array.dtype != tensor.array.dtype or output.array.size != tensor.array.size * self._size:
            raise unlike(self, "allgather", 0, tensor, output)
        transport = self._of(tensor)
        out, back = memory(output, transport)
        call = self._begin("_ALLGATHER_BASE", transport, tensor, "", later)
        return self._run(call, transport.allgather, (out, read(tensor, transport)), [output], back)

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(self, outputs: Sequence[Any], tensors: Sequence[Any],
                                        later: bool = True) -> Work:
        """Fill several tensors, each with those of all ranks, one after the other."""
        return _all([self._allgather_base(out, tensor, later) for out, tensor in zip(outputs, tensors, strict=True)],
                    outputs)

    def allgather_coalesced(self, output_lists: Sequence[Sequence[Any]], tensors: Sequence[Any],
                            later: bool = True) -> Work:
        """Fill one list of tensors for each rank with the lists of all ranks."""
        works = [self.allgather([outputs[i] for outputs in output_lists], tensor, later)
                 for i, tensor in enumerate(tensors)]
        return _all(works, output_lists)

    def gather(self, outputs: Any, tensors: Any, root: Any = 0, later: bool = True) -> Work:
        """Fill the root's list of tensors with those of all ranks."""
        tensor, root = first(tensors), checked_root(self, root, "gather")
        outputs = outputs[0] if outputs and isinstance(outputs[0], (list, tuple)) else outputs
        if root == self._rank:
            check_list(self, "gather", "output", outputs, tensor)
        transport = self._of(tensor)
        out, back = room(outputs, transport) if root == self._rank else (None, None)
        call = self._begin("GATHER", transport, tensor, f"root={root}", later)
        return self._run(call, transport.gather, (out, read(tensor, transport), root), list(outputs or []), back)

    def scatter(self, outputs: Any, inputs: Any, root: Any = 0, later: bool = True) -> Work:
        """Fill a tensor with this rank's part of the root's list."""
        tensor, root = first(outputs), checked_root(self, root, "scatter")
        inputs = inputs[0] if inputs and isinstance(inputs[0], (list, tuple)) else inputs
        if root == self._rank:
            check_list(self, "scatter", "input", inputs, tensor)
        transport = self._of(tensor)
        array, back = memory(tensor, transport)
        parts = gathered(inputs, transport) if root == self._rank else None
        call = self._begin("SCATTER", transport, tensor, f"root={root}", later)
        return self._run(call, transport.scatter, (array, parts, root), [tensor], back)

    def reduce_scatter(self, outputs: Any, inputs: Any, op: Any = SUM, later: bool = True) -> Work:
        """Fill a tensor with this rank's part of the reduction of all ranks' lists."""
        tensor, inputs = first(outputs), inputs[0] if inputs and isinstance(inputs[0], (list, tuple)) else inputs
        check_list(self, "reduce_scatter", "input", inputs, tensor)
        op = checked_op(op, tensor.array, "reduce_scatter")
        transport = self._of(tensor)
        array, back = memory(tensor, transport)
        call = self._begin("REDUCE_SCATTER", transport, tensor, DETAILS[op], later)
        return self._run(call, transport.reduce_scatter, (array, gathered(inputs, transport), op), [tensor], back)

    def _reduce_scatter_base(self, output: Any, tensor: Any, op: Any = SUM, later: bool = True) -> Work:
        """Fill a tensor with this rank's part of the reduction of all ranks' tensors."""
        if output.array.dtype != tensor.array.dtype:
            raise unlike(self, "reduce_scatter", 0, output, tensor)
        if tensor.array.size != output.array.size * self._size:
            sizes = [t.array.shape[0] if t.array.ndim else 1 for t in (output, tensor)]
            raise RuntimeError(f"Check failed: outputShape[0] * worldSize == inputShape[0] ({sizes[0] * self._size} "
                               f"vs. {sizes[1]}). \nAn input of shape {list(tensor.array.shape)} does not have "
                               f"{self._size} parts of shape {list(output.array.shape)}")
        op = checked_op(op, tensor.array, "reduce_scatter")
        transport = self._of(output)
        out, back = memory(output, transport)
        call = self._begin("_REDUCE_SCATTER_BASE", transport, output, DETAILS[op], later)
        return self._run(call, transport.reduce_scatter, (out, read(tensor, transport), op), [output], back)

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(self, outputs: Sequence[Any], tensors: Sequence[Any], op: Any = SUM,
                                        later: bool = True) -> Work:
        """Fill several tensors, each with this rank's part of a reduction."""
        return _all([self._reduce_scatter_base(out, tensor, op, later)
                     for out, tensor in zip(outputs, tensors, strict=True)], outputs)

    def alltoall(self, outputs: Sequence[Any], inputs: Sequence[Any], later: bool = True) -> Work:
        """Send the i-th tensor of a list to rank i; fill the i-th of another with what rank i sent."""
        begins = f"ProcessGroup{label(self)}::alltoall:"
        for name, tensors in ("output", outputs), ("input", inputs):
            if len(tensors) != self._size:
                raise RuntimeError(f"{begins} {name} tensor list size {len(tensors)} does not match world size "
                                   f"{self._size}")
        if outputs[self._rank].array.size != inputs[self._rank].array.size:
            raise RuntimeError(f"{begins} input and output tensors must have the same size\nthose of this rank itself "
                               f"are unlike")
        transport = self._of(inputs[0])
        out, back = room(outputs, transport)
        counts = [t.array.size for t in outputs], [t.array.size for t in inputs]
        call = self._begin("ALLTOALL", transport, inputs[0], "", later, ANY)
        return self._run(call, transport.alltoall, (out, gathered(inputs, transport), *counts), list(outputs), back)

    def alltoall_base(self, output: Any, tensor: Any, output_split_sizes: Any = None, input_split_sizes: Any = None,
                      later: bool = True) -> Work:
        """`alltoall` of the rows of one tensor, in equal parts or in parts of so many rows."""
        counts = [parts(t, sizes, self._size) for t, sizes in ((output, output_split_sizes),
                                                               (tensor, input_split_sizes))]
        if counts[0][self._rank] != counts[1][self._rank]:
            raise RuntimeError(f"ProcessGroup{label(self)}::alltoall_base: the part that this rank keeps has "
                               f"{counts[1][self._rank]} elements, and its place in the output {counts[0][self._rank]}")
        transport = self._of(tensor)
        out, back = memory(output, transport)
        call = self._begin("ALLTOALL_BASE", transport, tensor, "", later, ANY)
        return self._run(call, transport.alltoall, (out, read(tensor, transport), *counts), [output], back)

    all_to_all_single = alltoall_base

    def barrier(self, opts: Any = None, later: bool = True, timeout: timedelta | None = None) -> Work:
        """Wait until all ranks are here."""
        timeout = getattr(opts, "timeout", timeout)
        if timeout is not None and not later:
            self.barrier().wait(timeout)
            return DONE
        transport = self.transport()
        self._sequence += 1
        call = Call("BARRIER", self._sequence, (), (), transport.device, "", later, self.group_name, monotonic(),
                    flight_recorder.place())
        self.log.calls.append(call)
        if flight_recorder.checking and not transport.checks:
            self._agree(transport, call)
        return self._run(call, transport.barrier, (), None)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait until all ranks are here.

        Errors: RuntimeError on the first rank that names who is not; on others that the first did not answer.
        """
        monitored_barrier(self.transport("cpu" if "cpu" in self.transports else ""), self.ranks,
                          timeout or self.timeout, wait_all_ranks)

    def room(self, size: int) -> Any:
        """Return bytes of the CPU, as an array, in which tensors are reduced faster than elsewhere; None if there are
        none.
        """
        return self.transport("cpu").room(size)

    # ── from one rank to another ──────────────────────────────────────────────────────────────────────────────────────

    def send(self, tensors: Any, dst: int, tag: int = 0, later: bool = True) -> Work:
        """Send a tensor to a rank of the group."""
        tensor = first(tensors)
        transport = self._of(tensor)
        return self._message(f"SEND to {dst}", tensor, transport, transport.send,
                             (read(tensor, transport), dst, tag, later))

    def recv(self, tensors: Any, src: int | None, tag: int = 0, later: bool = True) -> Work:
        """Fill a tensor with what a rank of the group sent."""
        tensor = first(tensors)
        transport = self._of(tensor)
        array, back = memory(tensor, transport)
        said = "RECV from any rank" if src is None else f"RECV from {src}"
        return self._message(said, tensor, transport, transport.receive, (array, src, tag, later), back)

    def recv_anysource(self, tensors: Any, tag: int = 0, later: bool = True) -> Work:
        """Fill a tensor with what whichever rank sends first."""
        return self.recv(tensors, None, tag, later)

    def batch(self, messages: Sequence[tuple[bool, Any, int, int]]) -> list[Work]:
        """Begin several messages at once, each given as (whether it is sent, tensor, rank, tag)."""
        with self.transport(messages[0][1]._storage.device.type).batching():
            return [(self.send if sends else self.recv)(tensor, rank, tag) for sends, tensor, rank, tag in messages]

    def _message(self, kind: str, tensor: Any, transport: Transport, begin: Callable[..., Work],
                 arguments: tuple[Any, ...],
                 back: Callable[[], None] | None = None) -> Work:
        """Begin a message, and log it: it has no number, for ranks that take no part do not count it."""
        later, array = arguments[-1], tensor.array
        call = Call(kind, self._sequence, (array.shape,), NAMES[array.dtype], transport.device, f"tag={arguments[2]}",
                    later, self.group_name,
                    monotonic(), flight_recorder.place())
        self.log.calls.append(call)
        try:
            work = begin(*arguments)
            if back is not None:
                work.then(back)
            if not later:
                work.wait()
        except Exception as error:
            self._noted(call, error)
            raise
        if work is DONE:
            call.state = 1
            return Work.done([tensor])
        work._result = [tensor]
        return work.then(lambda: self._noted(call, work.exception()), always=True)

    # ── what PyTorch's class has besides ──────────────────────────────────────────────────────────────────────────────

    @property
    def _device_types(self) -> list[Any]:
        return [Device(kind) for kind in self.transports]

    def _get_backend_name(self) -> str:
        return self.name()

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def get_group_store(self) -> Any:
        """Return the store that the ranks met at; None if they met without one."""
        return self.store

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long a collective may take from now on."""
        self.timeout = timeout
        for transport in self._ready.values():
            transport.timeout = timeout

    # ── its end ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def abort(self) -> None:
        """End all work under way, here and on the other ranks."""
        self._close("aborted", lambda transport: (transport.abort("the process group was aborted"), transport.close()))

    def shutdown(self) -> None:
        """Give back what the transports hold."""
        self._close("shut down", lambda transport: transport.close())

    def _close(self, said: str, how: Callable[[Transport], Any]) -> None:
        if not self._ended:
            self._ended = f"the process group {self.group_name} was {said}"
            ready, self._ready = self._ready, {}
            for transport in dict.fromkeys(ready.values()):
                how(transport)


def _all(works: Sequence[Work], result: Any) -> Work:
    """The handle of several."""
    def finish(seconds: float | None) -> None:
        for work in works:
            work.wait(None if seconds is None else timedelta(seconds=seconds))
    return Work(finish, list(result))
