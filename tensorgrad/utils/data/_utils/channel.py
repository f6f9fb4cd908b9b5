"""Messages between processes: anything that can be pickled. Arrays are not copied into the pickle, and large ones go by a lane of shared memory."""
from __future__ import annotations

import pickle
import sys
import traceback
from array import array
from typing import Any

import numpy as np

PIECES, PIECE = 4, 1 << 20      # a lane holds that many pieces of so many bytes
LARGE = 1 << 16                 # what goes by a lane


def new_lane() -> Any:
    """Shared memory through which a process hands another one large buffers, piece by piece. Fresh memory for each would cost more than the copies do."""
    from ....multiprocessing.reductions import Block, can_send
    return Block(PIECES * PIECE) if can_send else None


def pieces_of(lane: Any, size: int):
    """(where in the buffer, where in the lane) each piece goes."""
    for number, start in enumerate(range(0, size, PIECE)):
        place = number % PIECES * PIECE
        stop = min(start + PIECE, size)
        yield slice(start, stop), lane.array[place:place + stop - start]


def pack(message) -> list:
    """The parts to write: the sizes of the buffers, the pickle, the buffers."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    return [array('Q', [view.nbytes for view in views]), pickled, *views]


def write(pipe, parts: list, lane: Any = None) -> None:
    """Send what was packed; with a lane, the other end is to read along."""
    for part in parts[:2]:
        pipe.send_bytes(part)
    for part in parts[2:]:
        if lane is None or part.nbytes < LARGE:
            pipe.send_bytes(part)
            continue
        source = np.frombuffer(part, np.uint8)
        for number, (where, piece) in enumerate(pieces_of(lane, source.size)):
            if number >= PIECES:
                pipe.recv_bytes()   # the piece that was in this place has been read
            np.copyto(piece, source[where])
            pipe.send_bytes(b'')
        for _ in range(min(PIECES, number + 1)):
            pipe.recv_bytes()


def read(pipe, lane: Any = None):
    """The next message; EOFError if the other end is gone."""
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
    """The exception that is being handled, as a message: its type and its traceback as text."""

    def __init__(self, where: str) -> None:
        self.kind, error, trace = sys.exc_info()
        self.text = f'Caught {self.kind.__name__} {where}.\nOriginal ' + ''.join(
            traceback.format_exception(self.kind, error, trace))

    def reraise(self) -> None:
        """Raise an exception of the same type, if that can be done with a text alone, else a RuntimeError."""
        raise self._error()  # not kept in a variable, from where it would refer to itself by its traceback

    def _error(self) -> BaseException:
        if self.kind is KeyError:
            return KeyError(_Verbatim(self.text))
        try:
            return self.kind(message=self.text) if getattr(self.kind, 'message', None) else self.kind(self.text)
        except Exception:
            return RuntimeError(self.text)


class _Verbatim(str):
    """A text that KeyError, which shows the repr of its argument, shows as it is."""

    def __repr__(self) -> str:
        return str(self)
