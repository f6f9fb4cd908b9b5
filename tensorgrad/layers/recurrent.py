"""Recurrent layers over sequences, batch first; layers that select their outputs and states; cells for single steps."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import api as tg
from .. import nn
from .base import Layer
from .native import Native

__all__ = ["GRU", "GRUCell", "GetRNNOutput", "GetRNNState", "LSTM", "LSTMCell", "RNNCell", "SimpleRNN"]


class _Recurrent(Native, abstract=True):
    """Base of the three recurrent layers. States have the batch first, as inputs do: (B, layers * directions, H)."""

    _inferred = ("input_size",)

    def __init__(self, hidden_size: int, *, return_sequences: bool = False, return_state: bool = False,
                 bidirectional: bool = False, num_layers: int = 1, stateful: bool = False, time_major: bool = False,
                 **options: Any) -> None:
        if "batch_first" in options:
            raise AssertionError("batch_first is not an argument: layers are always batch first; time_major=True puts "
                                 "time first")
        self._begin({"hidden_size": hidden_size, "num_layers": num_layers, "bidirectional": bidirectional,
                     "batch_first": not time_major, **options})
        self.return_sequences, self.return_state, self.stateful, self.time_major = (return_sequences, return_state,
                                                                                    stateful, time_major)
        self._state = None
        self.__dict__["_free_axes"] = (0, 1) if time_major else (0,)

    def _sizes(self, shape: Any) -> dict[str, Any]:
        if len(shape) != 3:
            raise AssertionError(f"{type(self).__name__} takes (batch, time, features), and this has shape {shape}")
        return {"input_size": self._size(shape, -1, "input_size")}

    def reset_state(self) -> None:
        """Let a `stateful` layer begin its next sequence with zeros again."""
        self._state = None

    def _forget(self) -> None:
        self.reset_state()
        self.stateful = False

    def _plain(self) -> Any:
        return None                                 # they return other things

    def native_module(self) -> Any:
        return super()._plain()

    def forward(self, input: Any, state: Any = None) -> Any:
        if input.dim() != 3:
            raise AssertionError(f"{type(self).__name__} takes (batch, time, features), and this has shape "
                                 f"{tuple(input.shape)}")
        state = self._state if state is None and self.stateful else state
        output, state = self._twin.forward(self, input, None if state is None else _each(_turned, state))
        state = _each(_turned, state)
        if self.stateful:
            self._state = _each(tg.Tensor.detach, state)
        if not self.return_sequences:
            output = output[-1] if self.time_major else output[:, -1]
        return (output, *_as_tuple(state)) if self.return_state else output


def _as_tuple(state: Any) -> tuple[Any, ...]:
    return tuple(state) if isinstance(state, (tuple, list)) else (state,)


def _each(function: Callable[[Any], Any], state: Any) -> Any:
    """Apply `function` to a state, or to both tensors of an LSTM's state."""
    return tuple(map(function, state)) if isinstance(state, (tuple, list)) else function(state)


def _turned(state: Any) -> Any:
    return state.transpose(0, 1).contiguous()


DOC = """{what}.

    `nn.{name}` as a layer over (B, T, F), with input_size = F read off the first input. The output is that of the last step, (B, H * directions), or with
    `return_sequences` that of all steps, (B, T, H * directions); with `return_state` a tuple of the output and the last {state}, (B, layers * directions, H).
    A second input is the initial {state}. `stateful`: begin where the last call ended, until `reset_state()`. `time_major`: (T, B, F), not (B, T, F).
    Further keywords are those of `nn.{name}`, but for batch_first (AssertionError).

    >>> import tensorgrad as torch
    >>> torch.layers.{cls}(90, bidirectional=True)(torch.ones(10, 17, 20)).shape
    torch.Size([10, 180])
    """  # noqa: E501


class SimpleRNN(_Recurrent, nn.RNN):
    __doc__ = DOC.format(what="Elman's recurrent network", name="RNN", cls="SimpleRNN", state="state h")
class GRU(_Recurrent, nn.GRU):
    __doc__ = DOC.format(what="Gated recurrent units", name="GRU", cls="GRU", state="state h")
class LSTM(_Recurrent, nn.LSTM):
    __doc__ = DOC.format(what="Long short-term memory", name="LSTM", cls="LSTM", state="states (h, c)")


class GetRNNOutput(Layer):
    """Selects the output of a recurrent layer, from its output or from the tuple with states.

    >>> import tensorgrad as torch
    >>> from tensorgrad import layers
    >>> layers.Sequential(layers.GRU(5, return_state=True), layers.GetRNNOutput())(torch.ones(2, 4, 3)).shape
    torch.Size([2, 5])
    """

    def forward(self, result: Any) -> Any:
        return result[0] if isinstance(result, (tuple, list)) else result


class GetRNNState(Layer):
    """Selects the state of a recurrent layer that returns it: 'h', 'c', or both ('concat').

    'concat' joins h and c along the last axis; it is h alone if there is no c.

    Errors: ValueError where no states come along; AssertionError for another mode, and for 'c' where there is none.

    >>> import tensorgrad as torch
    >>> from tensorgrad import layers
    >>> layers.Sequential(layers.LSTM(5, return_state=True), layers.GetRNNState())(torch.ones(2, 4, 3)).shape
    torch.Size([2, 1, 10])
    """

    MODES = "concat", "h", "c"

    def __init__(self, mode: str = "concat") -> None:
        super().__init__()
        if mode not in self.MODES:
            raise AssertionError(f"mode {mode!r}: choose one of {', '.join(self.MODES)}")
        self.mode = mode

    def forward(self, result: Any) -> Any:
        if not isinstance(result, (tuple, list)) or len(result) < 2:
            raise ValueError("there are no states: let the recurrent layer return them with return_state=True")
        states = result[1:]
        if self.mode == "c" and len(states) < 2:
            raise AssertionError("this recurrent layer has no cell state c: only an LSTM has one")
        if self.mode == "concat" and len(states) > 1:
            return tg.cat(tuple(states), dim=-1)
        return states[self.mode == "c"]


class _Cell(Native, abstract=True):
    _inferred = ("input_size",)

    def _sizes(self, shape: Any) -> dict[str, Any]:
        return {"input_size": self._size(shape, -1, "input_size")}


class RNNCell(_Cell, nn.RNNCell): _example = "5", (2, 3), (2, 5)
class GRUCell(_Cell, nn.GRUCell): _example = "5", (2, 3), (2, 5)


class LSTMCell(_Cell, nn.LSTMCell):
    """A step of long short-term memory.

    `nn.LSTMCell` as a layer, with input_size read off the first input; the other arguments are the same.

    >>> import tensorgrad as torch
    >>> h, c = torch.layers.LSTMCell(5)(torch.ones(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 5]), torch.Size([2, 5]))
    """
