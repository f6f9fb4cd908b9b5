"""Which ops the exporter takes whole, and whether it runs."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

UNROLLED = {"rnn_layer": 6, "lstm_layer": 7, "gru_layer": 6}         # step by step, where the sequences are packed or the state is projected


def whole(op: Any, operands: Any, params: Any) -> bool:
    """Whether an application of an op is one step; else those of its definition are."""
    name = op.opname
    if name in UNROLLED:
        return params.get("sizes") is None and all(a is None for a in operands[UNROLLED[name]:])
    return bool(op.onnx != "definition")


class Here(threading.local):
    """Whether this thread exports a model."""

    exporting = False


here = Here()


@contextmanager
def exporting() -> Iterator[None]:
    """In a `with` block, a model is being exported by this thread."""
    before, here.exporting = here.exporting, True
    try:
        yield
    finally:
        here.exporting = before
