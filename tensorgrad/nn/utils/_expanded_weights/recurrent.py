"""The gradients of each example for the weights of RNN, LSTM and GRU."""
from __future__ import annotations

from typing import Any

from .... import api as tg
from ....autograd import Function
from ....func import vjp, vmap
from ...functional import _rnn
from .expanded_weights_impl import ExpandedWeight, implements_per_sample_grads
from .expanded_weights_utils import set_grad_sample_if_exists


@implements_per_sample_grads(_rnn)
class Recurrence:
    """A call of all layers, whose weights are a list."""

    @staticmethod
    def apply(names: Any, func: Any, mode: str, input: Any, hx: Any, weights: Any, *rest: Any) -> Any:
        """Return (outputs, last hidden state)."""
        call = _Call(mode, weights, rest)
        lstm = isinstance(hx, tuple)
        y, *states = _Recurrence.apply(call, input, *(hx if lstm else (hx,)), *call.originals)
        return y, tuple(states) if lstm else states[0]


class _Call:
    """The arguments of a call besides its input, hidden state and weights."""

    def __init__(self, mode: str, weights: Any, rest: Any) -> None:
        *rest, self.batch_first, self.sizes = (*rest, None) if len(rest) == 6 else rest
        self.mode, self.rest, self.weights, self.lstm = mode, rest, weights, mode == "LSTM"
        self.originals = [w.orig_weight if isinstance(w, ExpandedWeight) else w for w in weights]
        self.states = 2 if self.lstm else 1

    def __call__(self, input: Any, states: Any, weights: Any, axis: int = 1, sizes: Any = None) -> Any:
        """Return the outputs and all states in one tuple; the batch of the input is at `axis`."""
        states = tuple(states) if self.lstm else states[0]
        y, last = _rnn(self.mode, input, states, list(weights), *self.rest, axis == 0, sizes)
        return (y, *last) if self.lstm else (y, last)

    def of_example(self, input: Any, states: Any, grad: Any, grads: Any) -> Any:
        """Return the gradients of the weights for an example: input and `grad` (L, *), states and `grads` (layers, *).
        """
        states = [state.unsqueeze(1) for state in states]
        pull = vjp(lambda *weights: self(input.unsqueeze(1), states, weights), *(w.detach() for w in self.originals))[1]
        return pull((grad.unsqueeze(1), *(g.unsqueeze(1) for g in grads)))

    def samples(self, input: Any, states: Any, grad: Any, grads: Any) -> Any:
        """Return the gradients of the weights for each example, stacked."""
        if self.sizes is None:
            axis = 0 if self.batch_first else 1
            return vmap(self.of_example, in_dims=(axis, 1, axis, 1))(input, states, grad, grads)
        sizes = self.sizes.tolist()             # a packed sequence: examples have lengths of their own
        starts = tg.tensor([0, *sizes]).cumsum(0)
        each = []
        for i in range(sizes[0]):
            rows = starts[:sum(size > i for size in sizes)] + i
            each.append(self.of_example(input[rows], [s[:, i] for s in states], grad[rows], [g[:, i] for g in grads]))
        return [tg.stack(parts) for parts in zip(*each)]


class _Recurrence(Function):
    @staticmethod
    def forward(ctx: Any, call: Any, input: Any, *tensors: Any) -> Any:
        ctx.call, ctx.input, ctx.states = call, input, tensors[:call.states]
        batch = call.sizes[0].item() if call.sizes is not None else input.shape[0 if call.batch_first else 1]
        for weight in call.weights:
            if isinstance(weight, ExpandedWeight) and weight.batch_size != batch:
                raise RuntimeError("Expected ExpandedWeights to have batch size matching input but got input batch "
                                   f"size of {batch} with ExpandedWeight of batch size {weight.batch_size}")
        return call(input, ctx.states, call.originals, 0 if call.batch_first else 1, call.sizes)

    @staticmethod
    def backward(ctx: Any, grad: Any, *grads: Any) -> Any:
        call, input, states = ctx.call, ctx.input.detach(), [state.detach() for state in ctx.states]
        for weight, sample in zip(call.weights, call.samples(input, states, grad, grads)):
            set_grad_sample_if_exists(weight, lambda _, sample=sample: sample)
        weights = [weight.detach() for weight in call.originals]
        pulled = vjp(lambda input, *states: call(input, states, weights, 0 if call.batch_first else 1, call.sizes),
                     input, *states)[1]((grad, *grads))
        return None, *pulled, *(None for _ in weights)
