"""Functions of the networks, as formulas in NumPy's functions; libraries replace those for which they have better ones.

Training takes and returns values.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Loss = Callable[..., Any]


class Parameters:
    """The arrays of a module by the names of its state_dict, or of one of its submodules by shorter names; `written`
    holds what batch norm changes.
    """

    def __init__(self, arrays: Mapping[str, Any], prefix: str = "", written: dict[str, Any] | None = None) -> None:
        self.arrays, self.prefix, self.written = arrays, prefix, {} if written is None else written

    def at(self, *path: object) -> Parameters:
        return Parameters(self.arrays, self.prefix + "".join(f"{part}." for part in path), self.written)

    def apart(self) -> Parameters:
        """Return a view of the parameters whose writes are dropped."""
        return Parameters(self.arrays, self.prefix)

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.arrays

    def __getitem__(self, name: str) -> Any:
        name = self.prefix + name
        return self.written[name] if name in self.written else self.arrays[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.written[self.prefix + name] = value


class Functions:
    """The functions of a library whose arrays are NumPy's in all but name.

    `random`: whether there are dropout and noise.
    """

    xp: Any

    def __init__(self, random: bool = True) -> None:
        self.random = random

    def uniform(self, like: Any) -> Any:
        raise NotImplementedError

    def normal(self, like: Any) -> Any:
        raise NotImplementedError

    def detach(self, x: Any) -> Any:
        return x

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        out = x.reshape(-1, x.shape[-1]) @ weight.T
        return (out if bias is None else out + bias).reshape(*x.shape[:-1], -1)

    def relu(self, x: Any) -> Any:
        return self.xp.maximum(x, 0)

    def leaky_relu(self, x: Any, slope: float) -> Any:
        return self.xp.where(x > 0, x, slope * x)

    def gelu(self, x: Any) -> Any:
        return 0.5 * x * (1 + self.erf(x * math.sqrt(0.5)))

    def erf(self, x: Any) -> Any:
        raise NotImplementedError

    def tanh(self, x: Any) -> Any:
        return self.xp.tanh(x)

    def exp(self, x: Any) -> Any:
        return self.xp.exp(x)

    def sigmoid(self, x: Any) -> Any:
        return 1 / (1 + self.xp.exp(-x))

    def softplus(self, x: Any) -> Any:
        """log (1 + exp x)."""
        return self.xp.logaddexp(x, 0)

    def softmax(self, x: Any) -> Any:
        exp = self.xp.exp(x - self.xp.max(x, axis=-1, keepdims=True))
        return exp / self.xp.sum(exp, axis=-1, keepdims=True)

    def transpose(self, x: Any, *axes: int) -> Any:
        return self.xp.transpose(x, axes)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        centred = x - self.xp.mean(x, axis=-1, keepdims=True)
        return centred / self.xp.sqrt(self.xp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * weight + bias

    def batch_norm(self, x: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
        """x normalized, its mean and its variance; images are (N, C, H, W)."""
        mean = self.xp.mean(x, axis=(0, 2, 3))
        centred = x - mean.reshape(-1, 1, 1)
        variance = self.xp.mean(centred * centred, axis=(0, 2, 3))
        return (centred * (weight / self.xp.sqrt(variance + 1e-5)).reshape(-1, 1, 1) + bias.reshape(-1, 1, 1), mean,
                variance)

    def attention(self, x: Any, heads: int, causal: bool = False) -> Any:
        """Queries, keys and values side by side (N, T, 3 · width) to what is seen (N, T, width)."""
        n, t, width = x.shape[0], x.shape[1], x.shape[2] // 3
        parts = self.transpose(x.reshape(n, t, 3, heads, width // heads), 2, 0, 3, 1, 4)
        query, key, value = parts[0], parts[1], parts[2]
        scores = query @ self.transpose(key, 0, 1, 3, 2) * (width // heads) ** -0.5
        if causal:
            scores = self.xp.where(np.tri(t, dtype=bool), scores, -math.inf)
        return self.transpose(self.softmax(scores) @ value, 0, 2, 1, 3).reshape(n, t, width)

    def embedding(self, index: Any, weight: Any) -> Any:
        return weight[index]

    def dropout(self, x: Any, p: float) -> Any:
        return x * (self.uniform(x) >= p) * (1 / (1 - p)) if self.random else x

    def noise(self, like: Any) -> Any:
        return self.normal(like) if self.random else 0

    def conv2d(self, x: Any, weight: Any, stride: int, padding: int) -> Any:
        raise NotImplementedError

    def conv_transpose2d(self, x: Any, weight: Any, stride: int, padding: int) -> Any:
        raise NotImplementedError

    def max_pool(self, x: Any, size: int, stride: int, padding: int) -> Any:
        raise NotImplementedError

    def avg_pool(self, x: Any, size: int) -> Any:
        """Over windows that do not overlap."""
        n, c, h, w = x.shape
        return self.xp.mean(x.reshape(n, c, h // size, size, w // size, size), axis=(3, 5))

    def lstm(self, x: Any, w_input: Any, w_hidden: Any, bias: Any) -> Any:
        """(T, N, inputs) to (T, N, hidden)."""
        hidden = cell = self.xp.zeros((x.shape[1], w_hidden.shape[1]), dtype="float32")
        out = []
        for gates in self.linear(x, w_input, bias):
            hidden, cell = self.lstm_cell(gates + hidden @ w_hidden.T, cell)
            out.append(hidden)
        return self.xp.stack(out)

    def lstm_cell(self, gates: Any, cell: Any) -> tuple[Any, Any]:
        n = cell.shape[-1]
        take, keep, give = (self.sigmoid(gates[:, i * n:(i + 1) * n]) for i in (0, 1, 3))
        cell = keep * cell + take * self.tanh(gates[:, 2 * n:3 * n])
        return give * self.tanh(cell), cell

    def cross_entropy(self, logits: Any, target: Any) -> Any:
        """The mean over the rows of logits (N, classes)."""
        centred = logits - self.xp.max(logits, axis=-1, keepdims=True)
        chosen = centred[self.xp.arange(len(target)), target]
        return self.xp.mean(self.xp.log(self.xp.sum(self.xp.exp(centred), axis=-1)) - chosen)


# ── training ──────────────────────────────────────────────────────────────────────────────────


class Optimizer(NamedTuple):
    """The kind and settings of one of PyTorch's optimizers, and the names of what it trains."""

    kind: str
    settings: Mapping[str, Any]
    names: Sequence[str]

    def state(self, zeros_like: Callable[[Any], Any], values: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        number = 2 if self.kind.startswith("Adam") else bool(self.settings["momentum"])
        return {name: tuple(zeros_like(values[name]) for _ in range(number)) for name in self.names}

    def update(self, xp: Any, count: Any, p: Any, g: Any, state: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The next p and state; count is 1 in the first step."""
        rate = self.settings["lr"]
        if self.kind == "SGD":
            state = tuple(self.settings["momentum"] * velocity + g for velocity in state)
            return p - rate * (state[0] if state else g), state
        (a, b), (mean, square) = self.settings["betas"], state
        mean, square = a * mean + (1 - a) * g, b * square + (1 - b) * g * g
        decayed = p * (1 - rate * self.settings["weight_decay"]) if self.kind == "AdamW" else p
        return (decayed - rate / (1 - a ** count) * mean / (xp.sqrt(square / (1 - b ** count)) + self.settings["eps"]),
                (mean, square))


class Task(NamedTuple):
    """A training task: losses, each with the name of its optimizer; initial values of parameters and buffers; inputs
    of the losses."""

    phases: Iterable[tuple[str, Loss]]
    optimizers: Mapping[str, Optimizer]
    values: Mapping[str, Any]
    inputs: Sequence[Any]


class Trained(NamedTuple):
    values: dict[str, Any]
    states: dict[str, dict[str, tuple[Any, ...]]]
    loss: Any
    gradients: dict[str, Any]


def train(evaluate: Callable[..., tuple[Any, dict[str, Any], dict[str, Any]]], xp: Any, task: Task,
          values: dict[str, Any], states: dict[str, dict[str, tuple[Any, ...]]], count: Any,
          inputs: Sequence[Any]) -> Trained:
    """A step: `evaluate(loss, names, values, inputs)` gives a loss, what it writes, and the gradients for the names."""
    losses, every = [], {}
    for name, loss in task.phases:
        optimizer = task.optimizers[name]
        value, written, gradients = evaluate(loss, optimizer.names, values, inputs)
        new = {key: optimizer.update(xp, count, values[key], g, states[name][key]) for key, g in gradients.items()}
        values = values | written | {key: p for key, (p, _) in new.items()}
        states = states | {name: {key: state for key, (_, state) in new.items()}}
        losses.append(value)
        every |= gradients
    return Trained(values, states, sum(losses), every)
