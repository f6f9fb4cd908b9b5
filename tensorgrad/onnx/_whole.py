"""Which ops the exporter takes whole, and whether it runs."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Ops whose definitions are traced, since the table of the exporter does not have them.
DEFINED = set("""attention rms_norm native_batch_norm cross euclidean_distance mse_loss smooth_l1_loss huber_loss soft_margin_loss
    binary_cross_entropy binary_cross_entropy_with_logits nll_loss cross_entropy multi_margin_loss log_sigmoid softshrink hardshrink threshold
    rrelu_with_noise glu lerp rsub heaviside sinc logit entr xlog1py recurrence ndtr embedding_bag relu_gradient
    tanh_gradient sigmoid_gradient""".split())
UNROLLED = {"rnn_layer": 6, "lstm_layer": 7, "gru_layer": 6}         # step by step, where the sequences are packed or the state is projected


def whole(op: Any, operands: Any, params: Any) -> bool:
    """Whether an application of an op is one step; else those of its definition are."""
    name = op.opname
    if name in UNROLLED:
        return params.get("sizes") is None and all(a is None for a in operands[UNROLLED[name]:])
    return name not in DEFINED


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
