"""Recurrent layers, over whole sequences and step by step."""
from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import TYPE_CHECKING, Any

from ...advice import misfit
from .. import functional as F
from .. import init
from ..utils.rnn import PackedSequence
from .module import Module
from .utils import changed, declare

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device, Dtype
    from ..parameter import Parameter

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}


def _each(function, hidden):
    """Apply `function` to a hidden state, or to both tensors of an LSTM's."""
    return tuple(map(function, hidden)) if isinstance(hidden, (tuple, list)) else function(hidden)


def _reset_by_hidden_size(module):
    bound = 1 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


# ── over sequences ────────────────────────────────────────────────────────────────────────────
class RNNBase(Module):
    """Base of RNN, LSTM and GRU: checks, weights, and sequences of all kinds (torch.nn.RNNBase).

    Parameters:
        mode: 'RNN_TANH', 'RNN_RELU', 'LSTM' or 'GRU': required
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional: as in RNN: the same
        proj_size: int: 0, as in LSTM
        device, dtype: None: the device and dtype of the weights
    Input: as RNN, LSTM or GRU
    Output: as RNN, LSTM or GRU
    Weights: as RNN, LSTM or GRU

    >>> import tensorgrad as torch
    >>> isinstance(torch.nn.GRU(3, 4), torch.nn.RNNBase)
    True
    """

    __constants__ = ["mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
                     "bidirectional", "proj_size"]  # fmt: skip
    proj_size = 0  # for modules pickled before there were projections

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: Device | None = None, dtype: Dtype | None = None) -> None:
        super().__init__()
        _check_options(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._all_weights = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._directions]:
                shapes = {f"{name}_l{layer}{suffix}": shape for name, shape in self._shapes(layer).items()}
                declare(self, device, dtype, **shapes)
                self._all_weights.append(list(shapes))
        self.reset_parameters()

    @property
    def _directions(self):
        return 2 if self.bidirectional else 1

    def _shapes(self, layer):
        rows, out = GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        shapes = {"weight_ih": (rows, out * self._directions if layer else self.input_size), "weight_hh": (rows, out)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    def reset_parameters(self) -> None:
        _reset_by_hidden_size(self)

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def __getstate__(self) -> Any:
        """Return the state to pickle, with the lists of weights that PyTorch expects."""
        return {**super().__getstate__(), "_flat_weights_names": self._flat_weights_names,
                "_flat_weights": self._flat_weights}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__({name: value for name, value in state.items() if not name.startswith("_flat_weight")})

    def flatten_parameters(self) -> None:
        """Do nothing: weights need no contiguous buffer here. Kept for programs that call it."""

    def extra_repr(self) -> str:
        options = changed(self, proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0, bidirectional=False)
        return f"{self.input_size}, {self.hidden_size}{options}"

    # checks ───────────────────────────────────────────────────────────────────────────────────
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        dtype = getattr(self, self._all_weights[0][0]).dtype
        if input.dtype != dtype:
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                             f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})")
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise misfit(f"input.size(-1) must be equal to input_size. "
                               f"Expected {self.input_size}, got {input.size(-1)}")

    def _batch(self, input, batch_sizes):
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0 if self.batch_first else 1)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        return self.num_layers * self._directions, self._batch(input, batch_sizes), self.proj_size or self.hidden_size

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple[int, int, int],
                          msg: str = "Expected hidden size {}, got {}") -> None:
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def _check_dims(self, input, hx):
        """Raise ValueError unless the input has 2 or 3 axes, RuntimeError unless the hidden state has as many."""
        kind = self.mode[:3] if self.mode != "LSTM" else "LSTM"
        if input.dim() not in (2, 3):
            tensor = " tensor" if kind == "RNN" else ""
            raise ValueError(f"{kind}: Expected input to be 2D or 3D, got {input.dim()}D{tensor} instead")
        if hx is not None and not self._has_dims(hx, input.dim()):
            batched = "unbatched" if input.dim() == 2 else "batched"
            raise RuntimeError(f"For {batched} {input.dim()}-D input, {self._hidden_dims(hx, input.dim())}")

    def _has_dims(self, hx, dims):
        return hx.dim() == dims

    def _hidden_dims(self, hx, dims):
        return f"hx should also be {dims}-D but got {hx.dim()}-D tensor"

    # forward ──────────────────────────────────────────────────────────────────────────────────
    def permute_hidden(self, hx: Tensor, permutation: Tensor | None) -> Any:
        return hx if permutation is None else _each(lambda h: h.index_select(1, permutation), hx)

    def _initial(self, input, batch_sizes):
        return input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))

    def _run(self, input, hx, batch_sizes=None):
        if hx is None:
            hx = self._initial(input, batch_sizes)
        self.check_forward_args(input, hx, batch_sizes)
        return F._rnn(self.mode, input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                      self.bidirectional, self.batch_first, batch_sizes)

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self._check_dims(input, hx)
        if input.dim() == 3:
            return self._run(input, hx)
        axis = 0 if self.batch_first else 1
        hx = None if hx is None else _each(lambda h: h.unsqueeze(1), hx)
        output, hidden = self._run(input.unsqueeze(axis), hx)
        return output.squeeze(axis), _each(lambda h: h.squeeze(1), hidden)

    def _forward_packed(self, packed, hx):
        """Run a packed sequence, which is sorted by length; hidden states keep the order of the batch before
        packing.
        """
        data, batch_sizes, sorted_indices, unsorted_indices = packed
        if hx is not None:
            hx = self.permute_hidden(hx, sorted_indices)
        output, hidden = self._run(data, hx, batch_sizes)
        output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return output, self.permute_hidden(hidden, unsorted_indices)


def _check_options(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size):
    if not isinstance(dropout, Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being "
                         "zeroed")
    if dropout > 0 and num_layers == 1:
        warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                      f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}", stacklevel=4)
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(value, int):
            raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


def _refuse_projection(options):
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """Elman's recurrent network, in layers (torch.nn.RNN).

    `h[t] = tanh(W_ih @ x[t] + b_ih + W_hh @ h[t-1] + b_hh)`; each layer reads the outputs of the one before.
    All weights are drawn from U(-k, k) with k = 1/sqrt(hidden_size).

    Parameters:
        input_size: int: required
        hidden_size: int: required
        num_layers: int: 1
        nonlinearity: 'tanh' or 'relu': 'tanh'
        bias: bool: True
        batch_first: bool: False, (N, L, H) for (L, N, H); the hidden state stays as it is
        dropout: float: 0.0, between layers
        bidirectional: bool: False, D = 2: read the sequence backwards as well
        device, dtype: None: the device and dtype of the weights
    Input: (L, N, input_size), (L, input_size) or a PackedSequence; then h (D * num_layers, N, hidden_size), or zeros
    Output: (L, N, D * hidden_size), and the last h
    Weights: for layer k and, with suffix _reverse, the way back: weight_ih_lk (hidden_size, input_size),
        weight_hh_lk (hidden_size, hidden_size), bias_ih_lk and bias_hh_lk (hidden_size)

    >>> import tensorgrad as torch
    >>> output, hidden = torch.nn.RNN(10, 20, num_layers=2)(torch.ones(5, 3, 10))
    >>> output.shape, hidden.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Gated recurrent units, in layers (torch.nn.GRU).

    Reset, update and new: `r, z = sigmoid(W_i @ x + b_i + W_h @ h + b_h)`,
    `n = tanh(W_in @ x + b_in + r * (W_hn @ h + b_hn))`, `h = (1 - z) * n + z * h`.
    All weights are drawn from U(-k, k) with k = 1/sqrt(hidden_size).

    Parameters:
        input_size: int: required
        hidden_size: int: required
        num_layers: int: 1
        bias: bool: True
        batch_first: bool: False, (N, L, H) for (L, N, H); the hidden state stays as it is
        dropout: float: 0.0, between layers
        bidirectional: bool: False, D = 2: read the sequence backwards as well
        device, dtype: None: the device and dtype of the weights
    Input: (L, N, input_size), (L, input_size) or a PackedSequence; then h (D * num_layers, N, hidden_size), or zeros
    Output: (L, N, D * hidden_size), and the last h
    Weights: for layer k and, with suffix _reverse, the way back: weight_ih_lk (3 * hidden_size, input_size),
        weight_hh_lk (3 * hidden_size, hidden_size), bias_ih_lk and bias_hh_lk (3 * hidden_size); r, z, n in turn

    >>> import tensorgrad as torch
    >>> output, hidden = torch.nn.GRU(10, 20, bidirectional=True)(torch.ones(5, 3, 10))
    >>> output.shape, hidden.shape
    (torch.Size([5, 3, 40]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory, in layers (torch.nn.LSTM).

    Input, forget, cell and output gate: `i, f, o = sigmoid(W_i @ x + b_i + W_h @ h + b_h)`, `g = tanh(...)` alike;
    `c = f * c + i * g`, `h = o * tanh(c)`, with projections `h = W_hr @ (o * tanh(c))`.
    All weights are drawn from U(-k, k) with k = 1/sqrt(hidden_size).

    Parameters:
        input_size: int: required
        hidden_size: int: required
        num_layers: int: 1
        bias: bool: True
        batch_first: bool: False, (N, L, H) for (L, N, H); the hidden state stays as it is
        dropout: float: 0.0, between layers
        bidirectional: bool: False, D = 2: read the sequence backwards as well
        proj_size: int: 0, the size that h is projected to, if positive
        device, dtype: None: the device and dtype of the weights
    Input: (L, N, input_size), (L, input_size) or a PackedSequence; then a pair of h (D * num_layers, N, hidden_size or
        proj_size) and c (D * num_layers, N, hidden_size), or zeros
    Output: (L, N, D * hidden_size or proj_size), and the last (h, c)
    Weights: for layer k and, with suffix _reverse, the way back: weight_ih_lk (4 * hidden_size, input_size),
        weight_hh_lk (4 * hidden_size, hidden_size), bias_ih_lk and bias_hh_lk (4 * hidden_size); i, f, g, o in turn;
        weight_hr_lk (proj_size, hidden_size)

    >>> import tensorgrad as torch
    >>> output, (h, c) = torch.nn.LSTM(10, 20, proj_size=5)(torch.ones(5, 3, 10))
    >>> output.shape, h.shape, c.shape
    (torch.Size([5, 3, 5]), torch.Size([1, 3, 5]), torch.Size([1, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        return self.num_layers * self._directions, self._batch(input, batch_sizes), self.hidden_size

    def _initial(self, input, batch_sizes):
        return super()._initial(input, batch_sizes), input.new_zeros(self.get_expected_cell_size(input, batch_sizes))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        sizes = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        for i, size in enumerate(sizes):
            self.check_hidden_size(hidden[i], size, f"Expected hidden[{i}] size {{}}, got {{}}")

    def _has_dims(self, hx, dims):
        return hx[0].dim() == hx[1].dim() == dims

    def _hidden_dims(self, hx, dims):
        return f"hx and cx should also be {dims}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"


# ── step by step ──────────────────────────────────────────────────────────────────────────────
class RNNCellBase(Module):
    """Base of the cells: weights, and steps with and without a batch (torch.nn.RNNCellBase).

    Parameters:
        input_size: int: required
        hidden_size: int: required
        bias: bool: required
        num_chunks: int: required, the number of gates
        device, dtype: None: the device and dtype of the weights
    Input: as RNNCell, LSTMCell or GRUCell
    Output: as RNNCell, LSTMCell or GRUCell
    Weights: weight_ih (num_chunks * hidden_size, input_size), weight_hh (num_chunks * hidden_size, hidden_size),
        bias_ih and bias_hh (num_chunks * hidden_size)

    >>> import tensorgrad as torch
    >>> torch.nn.LSTMCell(3, 5).weight_ih.shape
    torch.Size([20, 3])
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Device | None = None,
                 dtype: Dtype | None = None) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        biases = (rows,) if bias else None
        declare(self, device, dtype, weight_ih=(rows, input_size), weight_hh=(rows, hidden_size), bias_ih=biases,
                bias_hh=biases)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset_by_hidden_size(self)

    def extra_repr(self) -> str:
        options = changed(self, bias=True)
        if "nonlinearity" in vars(self):
            options += changed(self, nonlinearity="tanh")
        return f"{self.input_size}, {self.hidden_size}{options}"

    def _step(self, mode, input, hx):
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        single = input.dim() == 1
        if single:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = input.new_zeros(input.size(0), self.hidden_size)
            hx = (zeros, zeros) if mode == "LSTM" else zeros
        else:
            self._check_hidden(name, hx)
            hx = _each(lambda h: h.unsqueeze(0), hx) if single else hx
        out = F._rnn_cell(mode, input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return _each(lambda h: h.squeeze(0), out) if single else out

    @staticmethod
    def _check_hidden(name, hx):
        named = {"hidden": hx} if not isinstance(hx, (tuple, list)) else {f"hx[{i}]": h for i, h in enumerate(hx)}
        for what, h in named.items():
            if h.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {h.dim()}D instead")


class RNNCell(RNNCellBase):
    """A step of Elman's recurrent network (torch.nn.RNNCell).

    `h' = tanh(W_ih @ x + b_ih + W_hh @ h + b_hh)`; weights are drawn from U(-k, k) with k = 1/sqrt(hidden_size).

    Parameters:
        input_size: int: required
        hidden_size: int: required
        bias: bool: True
        nonlinearity: 'tanh' or 'relu': 'tanh'
        device, dtype: None: the device and dtype of the weights
    Input: (N, input_size) or (input_size); then h (N, hidden_size) or (hidden_size), or zeros
    Output: (N, hidden_size) or (hidden_size)
    Weights: weight_ih (hidden_size, input_size), weight_hh (hidden_size, hidden_size), bias_ih and bias_hh
        (hidden_size)

    >>> import tensorgrad as torch
    >>> torch.nn.RNNCell(10, 20)(torch.ones(3, 10)).shape
    torch.Size([3, 20])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
                 device: Device | None = None, dtype: Dtype | None = None) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"RNN_{self.nonlinearity.upper()}", input, hx)


class LSTMCell(RNNCellBase):
    """A step of long short-term memory (torch.nn.LSTMCell): see LSTM.

    Parameters:
        input_size: int: required
        hidden_size: int: required
        bias: bool: True
        device, dtype: None: the device and dtype of the weights
    Input: (N, input_size) or (input_size); then a pair of h and c, (N, hidden_size) or (hidden_size) both, or zeros
    Output: the next (h, c)
    Weights: weight_ih (4 * hidden_size, input_size), weight_hh (4 * hidden_size, hidden_size), bias_ih and bias_hh
        (4 * hidden_size); i, f, g, o in turn

    >>> import tensorgrad as torch
    >>> h, c = torch.nn.LSTMCell(10, 20)(torch.ones(3, 10))
    >>> h.shape, c.shape
    (torch.Size([3, 20]), torch.Size([3, 20]))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Device | None = None,
                 dtype: Dtype | None = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        return self._step("LSTM", input, hx)


class GRUCell(RNNCellBase):
    """A step of gated recurrent units (torch.nn.GRUCell): see GRU.

    Parameters:
        input_size: int: required
        hidden_size: int: required
        bias: bool: True
        device, dtype: None: the device and dtype of the weights
    Input: (N, input_size) or (input_size); then h (N, hidden_size) or (hidden_size), or zeros
    Output: (N, hidden_size) or (hidden_size)
    Weights: weight_ih (3 * hidden_size, input_size), weight_hh (3 * hidden_size, hidden_size), bias_ih and bias_hh
        (3 * hidden_size); r, z, n in turn

    >>> import tensorgrad as torch
    >>> torch.nn.GRUCell(10, 20)(torch.ones(3, 10)).shape
    torch.Size([3, 20])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Device | None = None,
                 dtype: Dtype | None = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("GRU", input, hx)
