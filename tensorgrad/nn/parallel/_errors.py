"""Errors of one thread, raised again in another."""
from __future__ import annotations

import sys
import traceback
from typing import Any


class ExceptionWrapper:
    """An exception and its traceback as text, which keeps no frame alive."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type, self.where = exc_info[0], where
        self.exc_msg = "".join(traceback.format_exception(*exc_info))

    def reraise(self) -> None:
        """Raise an exception of the same type, if it takes a message, whose message tells where it comes from."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            exception = self.exc_type(message)
        except Exception:  # a type that wants other arguments
            raise RuntimeError(message) from None
        try:
            raise exception
        finally:
            del exception       # its traceback holds this frame


class KeyErrorMessage(str):
    """A message that KeyError, which shows the repr of its key, shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
