"""The numbers of a training: what hooks of the optimizer and of ReLU modules see of it."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..plots import array


def norm(arrays: list[np.ndarray[Any, Any]]) -> float:
    """The 2-norm of all elements together; NaN of no arrays.

    >>> norm([np.array([3.0]), np.array([[4.0]])])
    5.0
    """
    with np.errstate(all="ignore"):
        return math.sqrt(sum(float(np.vdot(a, a)) for a in arrays)) if arrays else math.nan


@dataclass
class Layer:
    """A module with parameters of its own, and at each measured step the norms of its gradient, its weights before the step, and their update."""

    name: str
    parameters: list[Any]
    gradient: list[float] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    update: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> list[float]:
        """|update| / |weight|; NaN where the weights are 0."""
        return [u / w if w else math.nan for u, w in zip(self.update, self.weight, strict=True)]


@dataclass
class Units:
    """A ReLU module: which of its units were positive for some input since the last measured step, and the share that was not, at each."""

    name: str
    alive: np.ndarray[Any, Any] | None = None
    steps: list[int] = field(default_factory=list)
    dead: list[float] = field(default_factory=list)
    count: int = 0


class Record:
    """Everything that is known of a training so far."""

    def __init__(self, module: Any, optimizer: Any, every: int) -> None:
        from ...nn import Conv1d, ConvTranspose1d, ReLU, ReLU6
        self.module, self.optimizer, self.every = module, optimizer, every
        self.losses: list[float] = []
        self.rates: list[list[float]] = []           # one number for each parameter group, at each loss
        self.measured: list[int] = []                # steps of the optimizer, from 1
        self.taken, self.paused = 0, False
        self.before: list[list[np.ndarray[Any, Any]]] | None = None
        updated = {id(p) for group in optimizer.param_groups for p in group["params"]}
        self.layers: list[Layer] = []
        seen: set[int] = set()
        for name, part in module.named_modules():
            own = [p for _, p in part.named_parameters(recurse=False) if id(p) in updated and id(p) not in seen]
            seen.update(id(p) for p in own)
            if own:
                self.layers.append(Layer(name or type(part).__name__, own))
        self.rectifiers = [(Units(name or type(part).__name__), part) for name, part in module.named_modules() if isinstance(part, (ReLU, ReLU6))]
        self.channels_first = any(isinstance(part, (Conv1d, ConvTranspose1d)) for part in module.modules())

    def hooks(self) -> list[Any]:
        """Register all hooks; returns their handles."""
        def counts(units: Units) -> Any:
            return lambda part, inputs, output: self.count(units, output)
        return [self.optimizer.register_step_pre_hook(self.before_step), self.optimizer.register_step_post_hook(self.after_step),
                *(part.register_forward_hook(counts(units)) for units, part in self.rectifiers)]

    def count(self, units: Units, output: Any) -> None:
        if self.paused:
            return
        found = array(output) > 0
        if not found.ndim:
            found = found.reshape(1)
        axis = 0 if found.ndim == 1 else -1 if found.ndim == 3 and not self.channels_first else 1
        alive = np.asarray(np.moveaxis(found, axis, 0).reshape(found.shape[axis], -1).any(axis=1))
        units.alive = alive if units.alive is None or units.alive.shape != alive.shape else np.logical_or(units.alive, alive)

    def before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.taken += 1
        self.before = None
        if self.taken % self.every and self.taken != 1:
            return
        self.before = [[array(p) for p in layer.parameters] for layer in self.layers]
        self.gradients = self.read_gradients()

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.before is None:
            return
        if args or kwargs:                          # a closure computed the gradients within the step
            self.gradients = self.read_gradients()
        self.measured.append(self.taken)
        for layer, before, gradient in zip(self.layers, self.before, self.gradients, strict=True):
            layer.gradient.append(gradient)
            layer.weight.append(norm(before))
            with np.errstate(all="ignore"):
                layer.update.append(norm([array(p) - old for p, old in zip(layer.parameters, before, strict=True)]))
        self.before = None
        self.count_dead()

    def read_gradients(self) -> list[float]:
        """The norm of each layer's gradient; NaN where it has none."""
        found = [[p.grad.to_dense() if p.grad.is_sparse else p.grad for p in layer.parameters if p.grad is not None] for layer in self.layers]
        return [norm([array(gradient) for gradient in gradients]) for gradients in found]

    def count_dead(self) -> None:
        for units, _ in self.rectifiers:
            if units.alive is not None and units.alive.size:
                units.steps.append(self.taken)
                units.dead.append(1 - float(units.alive.mean()))
                units.count = units.alive.size
            units.alive = None

    def add_loss(self, loss: float) -> None:
        self.losses.append(loss)
        self.rates.append([float(group["lr"]) if "lr" in group else math.nan for group in self.optimizer.param_groups])
