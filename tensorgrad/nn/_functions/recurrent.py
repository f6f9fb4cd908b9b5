"""Recurrent networks: loops over layers and directions; an op computes each of them.
https://pytorch.org/docs/stable/nn.html#recurrent-layers
"""
from __future__ import annotations

from typing import Any

from ... import api as tg
from ...advice import misfit
from ...api._arguments import check_product, in_dtype, promoted
from ...core.dispatch import xp
from ...core.step_names import called
from . import dropout as _dropout

__all__ = ["_rnn", "_rnn_cell"]

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _rnn(mode: str, input: Any, hx: Any, weights: Any, has_biases: bool, num_layers: int, dropout: float,
         training: bool, bidirectional: bool,
         batch_first: bool, batch_sizes: Any = None) -> tuple[Any, Any]:
    """Run all layers of an RNN, LSTM or GRU: (outputs, last hidden state)."""
    lstm = mode == "LSTM"
    if lstm and len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    directions = 2 if bidirectional else 1
    per_layer = len(weights) // (num_layers * directions)
    sizes = None if batch_sizes is None else tuple(batch_sizes.tolist())
    x = input.transpose(0, 1) if batch_first and sizes is None else input
    if sizes is None and not x.shape[0]:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    first = hx[0] if lstm else hx
    for state in hx if lstm else (hx,):
        if state.shape[0] < num_layers * directions or state.ndim != 3:
            raise RuntimeError("Expected more hidden states in stacked_rnn")
    if (per_layer not in (((4, 5) if lstm else (4,)) if has_biases else (2, 3) if lstm else (2,))
            or len(weights) % per_layer):
        raise RuntimeError("got an incorrect number of RNN parameters" if weights
                           else "Expected more weights in stacked_rnn")
    if sizes is not None:
        x = _packed(x, sizes, first.shape[1])
    whole = lstm and sizes is None and x.dtype is tg.float32        # PyTorch's MKL-DNN runs such layers
    last_h, last_c = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            given = weights[k * per_layer:(k + 1) * per_layer]
            w_ih, w_hh, b_ih, b_hh = given[:4] if has_biases else (*given[:2], None, None)
            w_hr = given[-1] if lstm and per_layer == (5 if has_biases else 3) else None
            options = {"reverse": direction == 1, "sizes": sizes}
            b_ih, b_hh = _check_layer(x, first[k], hx[1][k] if lstm else None, w_ih, w_hh, b_ih, b_hh, w_hr,
                                      GATES[mode])
            if lstm:
                y, h, c = xp.lstm_layer(x, first[k], hx[1][k], w_ih, w_hh, b_ih, b_hh, w_hr, **options)
                last_c.append(c)
                if whole and w_hr is None:
                    called(y, "MkldnnRnnLayerBackward0")
            elif mode == "GRU":
                y, h = xp.gru_layer(x, first[k], w_ih, w_hh, b_ih, b_hh, **options)
            else:
                y, h = xp.rnn_layer(x, first[k], w_ih, w_hh, b_ih, b_hh, relu=mode == "RNN_RELU", **options)
            outputs.append(y)
            last_h.append(h)
        x = outputs[0] if directions == 1 else tg.cat(outputs, -1)
        if dropout and training and layer < num_layers - 1:
            x = _dropout.dropout(x, dropout, True)
    out = x.transpose(0, 1) if batch_first and sizes is None else x
    if out is not x and not whole:
        called(out, "TransposeBackward1")
    hidden = tg.stack(last_h)
    return out, (hidden, tg.stack(last_c)) if lstm else hidden


def _packed(x: Any, sizes: tuple[int, ...], batch: int) -> Any:
    """Return the rows that the steps of a packed sequence use.

    RuntimeError if there are too few, or if a batch grows.
    """
    start = 0
    for n in sizes:
        if n < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        if start + n > x.shape[0]:
            raise RuntimeError(f"start ({start}) + length ({n}) exceeds dimension size ({x.shape[0]}).")
        start += n
    for before, n in zip((batch, *sizes), sizes, strict=False):
        if n > before:
            raise misfit(f"The size of tensor a ({before}) must match the size of tensor b ({n}) at non-singleton "
                         f"dimension 0")
    if not sizes or sizes[0] != batch:
        raise misfit(f"The size of tensor a ({batch}) must match the size of tensor b ({sizes[0] if sizes else 0}) at "
                     f"non-singleton dimension 0")
    return x if start == x.shape[0] else x[:start]


def _check_layer(x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any,
                 gates: int) -> tuple[Any, Any]:
    """Return the biases of a layer, a number repeated for each gate.

    RuntimeError if states, weights and inputs do not fit.
    """
    if x.ndim == 3 and h.shape[0] != x.shape[1]:
        raise RuntimeError(f"output with shape {list(h.shape)} doesn't match the broadcast shape "
                           f"{[x.shape[1], h.shape[1]]}" if h.shape[0] == 1 else
                           f"The size of tensor a ({h.shape[0]}) must match the size of tensor b ({x.shape[1]}) at "
                           f"non-singleton dimension 0")
    _check_product(x, w_ih, b_ih)
    _check_product(h, w_hh, b_hh)
    b_ih, b_hh = _bias(b_ih, x.shape[:-1].numel(), w_ih), _bias(b_hh, h.shape[0], w_hh)
    hidden = (h if c is None else c).shape[-1]
    for size in (w_ih.shape[0], w_hh.shape[0]):
        if size != gates * hidden:
            raise misfit(f"The size of tensor a ({hidden}) must match the size of tensor b ({size // gates}) at "
                         f"non-singleton dimension 1")
    if c is not None and c.shape[0] != h.shape[0]:
        raise misfit(f"The size of tensor a ({h.shape[0]}) must match the size of tensor b ({c.shape[0]}) at "
                     f"non-singleton dimension 0")
    if w_hr is not None and w_hr.shape != (h.shape[-1], hidden):
        raise misfit(f"mat1 and mat2 shapes cannot be multiplied ({h.shape[0]}x{hidden} and "
                     f"{'x'.join(map(str, reversed(w_hr.shape)))})")
    if w_hr is None and h.shape[-1] != hidden:
        raise RuntimeError("got an incorrect number of RNN parameters")
    # the second step would multiply the promoted state
    if c is not None and c.dtype is not h.dtype and x.shape[0] > 1:
        check_product(promoted(h, c)[0], w_hh, b_hh)
    return b_ih, b_hh


def _check_product(x: Any, weight: Any, bias: Any) -> None:
    """Raise RuntimeError if x cannot be multiplied by the transpose of a weight."""
    if weight.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {weight.ndim}-D tensor")
    if x.shape[-1] != weight.shape[1]:
        raise misfit(f"mat1 and mat2 shapes cannot be multiplied ({x.shape[:-1].numel()}x{x.shape[-1]} and "
                     f"{weight.shape[1]}x{weight.shape[0]})")
    check_product(x, weight, bias)


def _bias(bias: Any, rows: int, weight: Any) -> Any:
    """Return a bias with an element for each row of its weight. RuntimeError for other sizes."""
    if bias is None or bias.shape == weight.shape[:1]:
        return bias
    return bias.expand(rows, weight.shape[0])[0]


def _rnn_cell(mode: str, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """Run one step: return the new hidden state, (h, c) for an LSTM."""
    states = hx if mode == "LSTM" else (hx,)
    if len(states) != 2 and mode == "LSTM":
        raise RuntimeError("lstm_cell expects two hidden states")
    b_ih, b_hh = _check_cell(input, states, w_ih, w_hh, b_ih, b_hh, GATES[mode])
    x = input.unsqueeze(0)
    if mode == "LSTM":
        if states[1].dtype is not x.dtype:          # the cell's state alone may be wider or narrower
            x, *states, w_ih, w_hh = promoted(x, *states, w_ih, w_hh)
            b_ih, b_hh = (b if b is None else in_dtype(b, x.dtype) for b in (b_ih, b_hh))
        _, h, c = xp.lstm_layer(x, *states, w_ih, w_hh, b_ih, b_hh, None)
        return called(h, "MulBackward0"), c
    if mode == "GRU":
        return called(xp.gru_layer(x, hx, w_ih, w_hh, b_ih, b_hh)[1], "AddBackward0")
    h = xp.rnn_layer(x, hx, w_ih, w_hh, b_ih, b_hh, relu=mode == "RNN_RELU")[1]
    return called(h, f"{mode[4:].title()}Backward0")


def _check_cell(input: Any, states: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, gates: int) -> tuple[Any, Any]:
    """Return the biases of a cell, a number repeated for each gate.

    RuntimeError if states, weights and inputs do not fit.
    """
    if input.size(1) != w_ih.size(1):
        raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {w_ih.size(1)}")
    hidden = w_hh.size(1)
    for place, state in enumerate(states):
        if input.size(0) != state.size(0):
            raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{place} batch size "
                               f"{state.size(0)}")
        if state.size(1) != hidden:
            raise RuntimeError(f"hidden{place} has inconsistent hidden_size: got {state.size(1)}, expected {hidden}")
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if weight.size(0) != gates * hidden:
            raise RuntimeError(f"{name} first dim must be {gates} * hidden_size = {gates * hidden}, but got "
                               f"{weight.size(0)}")
    for x, weight, bias in ((input, w_ih, b_ih), (states[0], w_hh, b_hh)):
        _check_product(x, weight, bias)
    return _bias(b_ih, input.size(0), w_ih), _bias(b_hh, input.size(0), w_hh)
