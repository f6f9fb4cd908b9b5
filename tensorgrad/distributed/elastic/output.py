"""Output of workers, line by line, each line prefixed by its rank. Bytes pass unchanged."""
from __future__ import annotations

import os
import re
import select
import sys
import threading
from contextlib import suppress
from typing import Any, BinaryIO

__all__ = ["Console", "Relay"]

LINES = re.compile(rb"[^\r\n]*(?:\n|\r\n|\r(?=[^\n]))")      # progress bars end their lines with \r
# bytes of a line: more is written without waiting for its end
LONGEST = 1 << 20


class Console:
    """Standard output and standard error of the launcher, which threads write to in turn."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self.broken = False         # whether nobody reads any more

    def write(self, name: str, data: bytes) -> None:
        """Write bytes to "stdout" or "stderr", all at once."""
        with self._turn:
            stream: Any = getattr(sys, name)
            try:
                stream.flush()
                descriptor = stream.fileno()
            except (AttributeError, OSError, ValueError):        # a program has put a stream of its own in the place
                with suppress(AttributeError, ValueError):
                    stream.write(data.decode("utf-8", "backslashreplace"))
                return
            while data and not self.broken:
                try:
                    data = data[os.write(descriptor, data):]
                except BlockingIOError:             # a terminal that another program has set so
                    select.select([], [descriptor], [])
                except OSError:
                    self.broken = True

    def note(self, text: str) -> None:
        """Write a line of the launcher's own to the standard error."""
        self.write("stderr", f"{text}\n".encode("utf-8", "backslashreplace"))


class Relay(threading.Thread):
    """Reads one stream of one worker to its end, for the console and for a file, where they are wanted."""

    def __init__(self, pipe: BinaryIO, console: Console | None, name: str, prefix: bytes,
                 file: BinaryIO | None) -> None:
        super().__init__(name=f"relay-{name}", daemon=True)
        self._pipe, self._console, self._to, self._prefix, self._file = pipe, console, name, prefix, file

    def run(self) -> None:
        held = b""
        with self._pipe:
            while chunk := self._pipe.read1(1 << 16):           # type: ignore[attr-defined]
                if self._file is not None:
                    self._file.write(chunk)
                    self._file.flush()
                held = self._told(held + chunk)
        if held:
            self._told(held + b"\n")
        if self._file is not None:
            self._file.close()

    def _told(self, data: bytes) -> bytes:
        """Write whole lines; what is left of the data."""
        if self._console is None:
            return b""
        if b"\n" not in data and b"\r" not in data and len(data) < LONGEST:
            return data
        lines = LINES.findall(data)
        rest = data[sum(map(len, lines)):]
        if len(rest) >= LONGEST:
            lines, rest = [*lines, rest + b"\n"], b""
        if lines:
            self._console.write(self._to, b"".join(self._prefix + line for line in lines))
        return rest
