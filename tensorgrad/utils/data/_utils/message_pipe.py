"""Messages between processes: picklable objects.

Arrays are sent outside of the pickle, large ones through a lane of shared memory.
"""
from __future__ import annotations

import pickle
import sys
import traceback
from array import array
from typing import Any

import numpy as np

PIECES, PIECE = 4, 1 << 20      # a lane's number of pieces, and their size in bytes
LARGE = 1 << 16                 # bytes: larger buffers are sent through a lane


def new_lane() -> Any:
    """Return shared memory for sending large buffers piece by piece.

    Allocating memory for each buffer would cost more than the copies.
    """
    from ....multiprocessing.reductions import Block, can_send
    return Block(PIECES * PIECE) if can_send else None


def pieces_of(lane: Any, size: int):
    """Yield (slice of the buffer, slice of the lane) for each piece."""
    for number, start in enumerate(range(0, size, PIECE)):
        place = number % PIECES * PIECE
        stop = min(start + PIECE, size)
        yield slice(start, stop), lane.array[place:place + stop - start]


def pack(message) -> list:
    """Return the parts to write: the sizes of the buffers, the pickle, the buffers."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    return [array('Q', [view.nbytes for view in views]), pickled, *views]


def write(pipe, parts: list, lane: Any = None) -> None:
    """Send packed parts; with a lane, the other end must read concurrently."""
    for part in parts[:2]:
        pipe.send_bytes(part)
    for part in parts[2:]:
        if lane is None or part.nbytes < LARGE:
            pipe.send_bytes(part)
            continue
        source = np.frombuffer(part, np.uint8)
        for number, (where, piece) in enumerate(pieces_of(lane, source.size)):
            if number >= PIECES:
                pipe.recv_bytes()   # wait until this slot's earlier piece has been read
            np.copyto(piece, source[where])
            pipe.send_bytes(b'')
        for _ in range(min(PIECES, number + 1)):
            pipe.recv_bytes()


def read(pipe, lane: Any = None):
    """Read the next message. EOFError if the other end is closed."""
    sizes = array('Q', pipe.recv_bytes())
    pickled = pipe.recv_bytes()
    buffers = [np.empty(size, np.uint8) for size in sizes]
    for buffer in buffers:
        if lane is None or buffer.size < LARGE:
            pipe.recv_bytes_into(buffer.data)
            continue
        for where, piece in pieces_of(lane, buffer.size):
            pipe.recv_bytes()
            np.copyto(buffer[where], piece)
            pipe.send_bytes(b'')
    return pickle.loads(pickled, buffers=buffers)


class Failure:
    """The exception being handled, as a message: its type and its traceback as text."""

    def __init__(self, where: str) -> None:
        self.kind, error, trace = sys.exc_info()
        self.text = f'Caught {self.kind.__name__} {where}.\nOriginal ' + ''.join(
            traceback.format_exception(self.kind, error, trace))

    def reraise(self) -> None:
        """Raise an exception of the same type, if a message suffices to construct it, else a RuntimeError."""
        raise self._error()  # no variable: it would form a cycle with its traceback

    def _error(self) -> BaseException:
        if self.kind is KeyError:
            return KeyError(_Verbatim(self.text))
        try:
            return self.kind(message=self.text) if getattr(self.kind, 'message', None) else self.kind(self.text)
        except Exception:
            return RuntimeError(self.text)


class _Verbatim(str):
    """A string whose repr is itself, because KeyError shows the repr of its argument."""

    def __repr__(self) -> str:
        return str(self)
