"""Recurrent networks as functions, under the names that PyTorch's modules call: `torch._VF.lstm`, `torch.lstm`, …

Each takes either a padded batch, with `batch_first`, or the data of a packed sequence and its batch sizes.
"""
from __future__ import annotations

from typing import Any

from .api import Tensor
from .nn._functions.recurrent import _rnn, _rnn_cell

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]


def _layers(mode: str, name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        from .api._parsing import parse, signatures
        args = tuple(parse(signatures(name) or (), name, args, kwargs)[1].values())
        if args[-4 if isinstance(args[3], (tuple, list, Tensor)) else -5] <= 0:
            raise RuntimeError("Expected more hidden states in stacked_rnn")
        hx = args[2] if isinstance(args[2], (tuple, list)) and isinstance(args[1], Tensor) else args[1]
        if mode == "LSTM" and len(hx) == 2 and hx[0].ndim < 3:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{hx[0].ndim}, {hx[0].ndim - 1}], but got 2)")
        if mode == "LSTM" and hx is args[1] and isinstance(args[0], Tensor) and args[0].ndim == 2:
            raise IndexError("Dimension out of range (expected to be in range of [-2, 1], but got 2)")
        if isinstance(args[3], Tensor) or isinstance(args[3], (list, tuple)):       # data, batch_sizes, hx, params, …
            data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional = args
            out, hidden = _rnn(mode, data, hx, params, has_biases, num_layers, dropout, train, bidirectional, False, batch_sizes)
        else:
            data, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first = args
            out, hidden = _rnn(mode, data, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
        return (out, *hidden) if mode == "LSTM" else (out, hidden)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = ("(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) → outputs and last state. "
                        f"See nn.{mode.partition('_')[0]}.")
    return function


def _cell(mode: str, name: str) -> Any:
    def function(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        from .api._parsing import parse, signatures
        parse(signatures(name) or (), name, (input, hx, w_ih, w_hh, b_ih, b_hh), {})
        return _rnn_cell(mode, input, hx, w_ih, w_hh, b_ih, b_hh)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"One step: the new state. See nn.{mode.partition('_')[0]}Cell."
    return function


lstm, gru, rnn_tanh, rnn_relu = (_layers(mode, name) for mode, name in
                                 (("LSTM", "lstm"), ("GRU", "gru"), ("RNN_TANH", "rnn_tanh"), ("RNN_RELU", "rnn_relu")))
lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell = (_cell(mode, name) for mode, name in (
    ("LSTM", "lstm_cell"), ("GRU", "gru_cell"), ("RNN_TANH", "rnn_tanh_cell"), ("RNN_RELU", "rnn_relu_cell")))
