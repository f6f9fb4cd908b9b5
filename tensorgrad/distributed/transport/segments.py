"""The memory that the ranks of one machine share: each rank writes to its own slots, all read them.

Behind its slots is room for arrays.

Between Linux processes it is memory without a name, gone with the last process that has it. Where descriptors cannot be
passed between processes, each rank has copies of the others' slots, which doorbells bring up to date.
"""
from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct
import sys
import threading
import weakref
from operator import itemgetter
from typing import Any

import numpy as np

from ...core.inplace import address
from ...multiprocessing.reductions import Block
from .. import wire_protocol
from ..errors import DistBackendError, DistNetworkError
from . import mesh

__all__ = ["AHEAD", "SLOTS", "Segments"]

PIECE = struct.Struct("<II")
# chunks that a rank may write before it has to wait for the others: they need not run at the same time
AHEAD = 2
SLOTS = 2 * AHEAD + 2   # what `slot_exchange.py` and the results of `reductions.py` need for that
# bytes for arrays of each rank: what is never written takes no memory
ROOM = 1 << 30 if sys.maxsize > 1 << 32 else 0
LENT: list[weakref.ref[Any]] = []       # arrays in the room, also of groups that are gone
COPIED = 32 << 10       # bytes of a slot that is sent through a socket: it fits into the socket's buffer


def slot_size(size: int) -> int:
    """Return the bytes of a slot: chunks stay in the cores' caches."""
    return 512 << 10 if size <= 16 else 256 << 10


def whole_pages(size: int) -> int:
    """Return a size in bytes, rounded up to pages of memory."""
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _forked() -> None:
    """Give a forked child copies of the arrays in the room, at their addresses: what it writes to a gradient must not
    reach its parent.
    """
    arrays = [array for lent in LENT if (array := lent()) is not None]
    if not arrays:
        return
    place = ctypes.CDLL(None).mmap
    place.restype = ctypes.c_void_p
    place.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    fixed, both = 0x10, mmap.PROT_READ | mmap.PROT_WRITE              # MAP_FIXED, which the module mmap does not name
    for array in arrays:
        kept = array.copy()
        if place(address(array), whole_pages(array.nbytes), both, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | fixed, -1,
                 0) == address(array):
            array[:] = kept


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Segments:
    """The slots of all ranks of a group.

    `slot` is the size of one in bytes; `shared` says whether others see what is written.
    """

    def __init__(self, rank: int, size: int, links: dict[int, socket.socket], deadline: float) -> None:
        self.shared = mesh.LOCAL
        self.rank, self.slot = rank, slot_size(size) if self.shared else COPIED
        length = 2 * SLOTS * self.slot
        if not self.shared:
            self.memory = [np.empty(length, np.uint8) for _ in range(size)]
        else:
            self.begin, self._backed, limited = length, length, _limited()
            own = Block(length if limited else length + ROOM)
            for link in links.values():
                socket.send_fds(link, [b"memory"], [own.descriptor])
            blocks = [own if other == rank else _received(links[other], length, limited, deadline)
                      for other in range(size)]
            self.memory = [block.array for block in blocks]
            self._blocks = blocks
        self._views: dict[Any, list[list[Any]]] = {}
        # (begin, end, weak reference to its array) of each array, in order
        self._rooms: list[tuple[int, int, Any]] = []
        self._lock = threading.Lock()

    def views(self, dtype: Any) -> list[list[Any]]:
        """Return the slots of each rank as arrays: `SLOTS` for what a rank gives, `SLOTS` for what it has worked
        out.
        """
        found = self._views.get(dtype)
        if found is None:
            count = self.slot // dtype.itemsize
            found = self._views[dtype] = [[memory[i * self.slot:(i + 1) * self.slot][:count
                                                                                     * dtype.itemsize].view(dtype)
                                           for i in range(2 * SLOTS)]
                                          for memory in self.memory]
        return found

    def room(self, size: int) -> Any:
        """Return bytes that all ranks see, as an array: they are its own while anything looks at it.

        None if there is no room.
        """
        if not self.shared or not self.memory:
            return None
        memory, place = self.memory[self.rank], self.begin
        with self._lock:
            self._rooms = [room for room in self._rooms if room[2]() is not None]
            for start, end, _ in self._rooms:
                if place + size <= start:
                    break
                place = end
            if place + size > len(memory):
                return None
            end = place + whole_pages(size)
            if not self._backed_until(min(end, len(memory))):
                return None
            array = np.frombuffer(memory.data[place:place + size], np.uint8)
            lent = weakref.ref(array)
            self._rooms = sorted([*self._rooms, (place, end, lent)], key=itemgetter(0))
            LENT[:] = [*[other for other in LENT if other() is not None], lent]
            return array

    def _backed_until(self, end: int) -> bool:
        """Take memory for the room up to a place; False if there is none: a page that is missing when it is written to
        would end the process.
        """
        if end > self._backed and hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(self._blocks[self.rank].descriptor, self._backed, end - self._backed)
            except OSError:
                return False
            self._backed = end
        return True

    def place(self, array: Any) -> int:
        """Return where in this rank's memory an array is, in bytes; -1 if it is elsewhere."""
        memory = self.memory[self.rank]
        place = address(array) - address(memory)
        return place if self.begin <= place <= len(memory) - array.nbytes else -1

    def at(self, places: list[int], array: Any) -> list[Any]:
        """Return the ranks' arrays at these places, which are like this one.

        Errors: DistBackendError for a place that is none.
        """
        if any(not self.begin <= place <= len(memory) - array.nbytes
               for place, memory in zip(places, self.memory, strict=True)):
            raise DistBackendError("A rank sent a damaged message")
        return [memory[place:place + array.nbytes].view(array.dtype)
                for place, memory in zip(places, self.memory, strict=True)]

    def packed(self, arrays: Any) -> bytes:
        """Return arrays of the own slots as bytes, with their places: for ranks that do not share memory."""
        start, pieces = self.memory[self.rank].ctypes.data, []
        for array in arrays:
            pieces += PIECE.pack(array.ctypes.data - start, array.nbytes), array.view(np.uint8)
        return b"".join(pieces)

    def unpack(self, other: int, body: memoryview) -> None:
        """Write to another rank's slots what it has sent of them. Errors: DistBackendError for a place that is none."""
        memory, at = self.memory[other], 0
        while at < len(body):
            place, size = PIECE.unpack_from(body, at)
            at += PIECE.size
            if place + size > len(memory) or at + size > len(body):
                raise DistBackendError(f"Rank {other} sent a damaged message")
            memory[place:place + size] = np.frombuffer(body[at:at + size], np.uint8)
            at += size

    def close(self) -> None:
        """Give the memory back as soon as no array of it is left."""
        self._views, self.memory, self._blocks = {}, [], []


def _limited() -> bool:
    """Return True if this process may not map, or make, files as large as the room."""
    import resource
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE)]
    return any(limit != resource.RLIM_INFINITY for limit in limits)


def _received(link: socket.socket, length: int, limited: bool, deadline: float) -> Any:
    """Return the memory of another rank: its slots, and its room unless this process is limited.

    The ranks then reduce through slots.
    """
    wire_protocol.set_deadline(link, deadline)
    said, descriptors, _, _ = socket.recv_fds(link, 6, 1)
    if said != b"memory" or len(descriptors) != 1:
        raise DistNetworkError("Connection closed by peer: it has ended before it shared its memory.")
    size = os.fstat(descriptors[0]).st_size
    if size < length:
        os.close(descriptors[0])
        raise DistNetworkError(f"A peer shared {size} bytes of memory, expected {length} or more.")
    return Block(length if limited else size, descriptors[0])
