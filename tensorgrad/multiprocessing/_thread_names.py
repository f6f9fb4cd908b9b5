"""The name of a thread as the operating system shows it, on Linux."""
from __future__ import annotations

from contextlib import suppress

PLACE = "/proc/thread-self/comm"
LONGEST = 15        # bytes that the system keeps


def _set_thread_name(name: str) -> None:
    """Name the calling thread; a long name is cut. No effect on systems without /proc."""
    if not isinstance(name, str):
        raise TypeError(f"_set_thread_name expects str, but got {type(name).__name__}")
    with suppress(FileNotFoundError), open(PLACE, "wb", buffering=0) as file:
        file.write(name.encode()[:LONGEST])


def _get_thread_name() -> str:
    """Return the name of the calling thread; "" on systems without /proc."""
    with suppress(FileNotFoundError), open(PLACE, "rb") as file:
        return file.read().rstrip(b"\n").decode("utf-8", "replace")
    return ""
