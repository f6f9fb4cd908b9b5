"""Messages between processes: anything that can be pickled, arrays without copying them into the pickle."""
from __future__ import annotations

import pickle
import sys
import traceback
from array import array


def pack(message) -> list:
    """The parts to write: the sizes of the buffers, the pickle, the buffers."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    return [array('Q', [view.nbytes for view in views]), pickled, *views]


def write(pipe, parts: list) -> None:
    for part in parts:
        pipe.send_bytes(part)


def read(pipe):
    """The next message; EOFError if the other end is gone."""
    sizes = array('Q', pipe.recv_bytes())
    pickled = pipe.recv_bytes()
    buffers = [bytearray(size) for size in sizes]
    for buffer in buffers:
        pipe.recv_bytes_into(buffer)
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
