"""Backends of `torch.compile` that a program brings: functions of a GraphModule and example inputs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


def builder(backend: Any) -> Callable[..., Any] | None:
    """Return the function that makes a runner of arrays with a program's own backend; None for the package's."""
    return None


__all__ = ["builder"]
