"""What packages decorate their own functions with, for `register_custom_op_symbolic`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["parse_args"]


def parse_args(*arg_descriptors: str) -> Callable[[Any], Any]:
    """A decorator that says what kinds of arguments a function takes: it gets them as they are."""
    return lambda function: function
