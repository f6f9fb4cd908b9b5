"""Recurrent networks as functions, under the names that PyTorch's modules call: `torch._VF.lstm`, `torch.lstm`, …

Each takes either a padded batch, with `batch_first`, or the data of a packed sequence and its batch sizes.
"""
from __future__ import annotations

from typing import Any

from ._tensor.torch_function import namespaced
from .api import Tensor
from .nn._functions.recurrent import _rnn, _rnn_cell

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]


def _check_states(mode: str, data: Any, hx: Any, num_layers: int, packed: bool) -> None:
    if mode != "LSTM":
        if num_layers <= 0:
            raise RuntimeError("Expected more hidden states in stacked_rnn")
        return
    if len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    for t in hx[:1] if packed else (hx[0], data):
        if t.ndim < 3:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{t.ndim}, {t.ndim - 1}], but got "
                             f"2)")


def _layers(mode: str, name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        from .api._parsing import parse, signatures
        args = tuple(parse(signatures(name) or (), name, args, kwargs)[1].values())
        if packed := isinstance(args[3], (Tensor, list, tuple)):       # data, batch_sizes, hx, params, …
            data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional = args
            batch_first = False
        else:
            data, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first = args
            batch_sizes = None
        _check_states(mode, data, hx, num_layers, packed)
        out, hidden = _rnn(mode, data, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first,
                           batch_sizes)
        return (out, *hidden) if mode == "LSTM" else (out, hidden)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = ("(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) → "
                        f"outputs and last state. See nn.{mode.partition('_')[0]}.")
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
globals().update(namespaced({_name: globals()[_name] for _name in __all__}, __name__.partition(".")[0]))
