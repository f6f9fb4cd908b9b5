"""The exporter's rule for ops that it exports as a single step, and the flag that it is running."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# unrolled if the sequences are packed or the state is projected
UNROLLED = {"rnn_layer": 6, "lstm_layer": 7, "gru_layer": 6}


def whole(op: Any, operands: Any, params: Any) -> bool:
    """Return True if a call of an op is exported as one step, False if as the steps of its definition."""
    name = op.opname
    if name in UNROLLED:
        return params.get("sizes") is None and all(a is None for a in operands[UNROLLED[name]:])
    return bool(op.onnx != "definition")


class Here(threading.local):
    """Per-thread state: `exporting` is True while this thread exports a model."""

    exporting = False


here = Here()


@contextmanager
def exporting() -> Iterator[None]:
    """Set `exporting` for this thread until the block ends."""
    before, here.exporting = here.exporting, True
    try:
        yield
    finally:
        here.exporting = before
