"""Recurrent networks: layers and directions around the ops for one of each. https://pytorch.org/docs/stable/nn.html#recurrent-layers"""
from __future__ import annotations

from typing import Any

from ... import api as tg
from ...dispatch import xp
from .. import functional as F

__all__ = ["_rnn", "_rnn_cell"]


def _rnn(mode: str, input: Any, hx: Any, weights: Any, has_biases: bool, num_layers: int, dropout: float, training: bool, bidirectional: bool,
         batch_first: bool, batch_sizes: Any = None) -> tuple[Any, Any]:
    """All layers of an RNN, LSTM or GRU: (outputs, last hidden state)."""
    lstm = mode == "LSTM"
    directions = 2 if bidirectional else 1
    per_layer = len(weights) // (num_layers * directions)
    sizes = None if batch_sizes is None else tuple(batch_sizes.tolist())
    x = input.transpose(0, 1) if batch_first and sizes is None else input
    if sizes is None and not x.shape[0]:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    first = hx[0] if lstm else hx
    last_h, last_c = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            given = weights[k * per_layer:(k + 1) * per_layer]
            w_ih, w_hh, b_ih, b_hh = given[:4] if has_biases else (*given[:2], None, None)
            options = {"reverse": direction == 1, "sizes": sizes}
            if lstm:
                w_hr = given[-1] if per_layer == (5 if has_biases else 3) else None
                y, h, c = xp.lstm_layer(x, first[k], hx[1][k], w_ih, w_hh, b_ih, b_hh, w_hr, **options)
                last_c.append(c)
            elif mode == "GRU":
                y, h = xp.gru_layer(x, first[k], w_ih, w_hh, b_ih, b_hh, **options)
            else:
                y, h = xp.rnn_layer(x, first[k], w_ih, w_hh, b_ih, b_hh, relu=mode == "RNN_RELU", **options)
            outputs.append(y)
            last_h.append(h)
        x = outputs[0] if directions == 1 else tg.cat(outputs, -1)
        if dropout and training and layer < num_layers - 1:
            x = F.dropout(x, dropout, True)
    out = x.transpose(0, 1) if batch_first and sizes is None else x
    hidden = tg.stack(last_h)
    return out, (hidden, tg.stack(last_c)) if lstm else hidden


def _rnn_cell(mode: str, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """One step: the new hidden state, for an LSTM (h, c)."""
    first = hx[0] if mode == "LSTM" else hx
    _check_cell(input, first, w_ih, w_hh)
    x = input.unsqueeze(0)
    if mode == "LSTM":
        _, h, c = xp.lstm_layer(x, first, hx[1], w_ih, w_hh, b_ih, b_hh, None)
        return h, c
    if mode == "GRU":
        return xp.gru_layer(x, first, w_ih, w_hh, b_ih, b_hh)[1]
    return xp.rnn_layer(x, first, w_ih, w_hh, b_ih, b_hh, relu=mode == "RNN_RELU")[1]


def _check_cell(input: Any, hidden: Any, w_ih: Any, w_hh: Any) -> None:
    if input.size(-1) != w_ih.size(1):
        raise RuntimeError(f"input has inconsistent input_size: got {input.size(-1)} expected {w_ih.size(1)}")
    if hidden.size(-1) != w_hh.size(1):
        raise RuntimeError(f"hidden0 has inconsistent hidden_size: got {hidden.size(-1)}, expected {w_hh.size(1)}")
    if input.size(0) != hidden.size(0):
        raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden0 batch size {hidden.size(0)}")
