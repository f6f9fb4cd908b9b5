"""Numbers of a training, from hooks of the optimizer and of ReLU modules, and from the tape for other ReLUs."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.mode import mode
from ...core.tape import Leaf, TensorBase
from ..plots import array
from ..text import host

DEEPEST = 8         # steps to search from a rectifier back to the layer before it


def norm(arrays: list[np.ndarray[Any, Any]]) -> float:
    """The 2-norm of all elements together; NaN of no arrays.

    >>> norm([np.array([3.0]), np.array([[4.0]])])
    5.0
    """
    with np.errstate(all="ignore"):
        return math.sqrt(sum(float(np.vdot(a, a)) for a in arrays)) if arrays else math.nan


@dataclass
class Layer:
    """A module with parameters of its own, and at each measured step the norms of its gradient, its weights before the
    step, and their update.
    """

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
    """A rectifier. `alive` marks its units that were positive for some input since the last measured step.

    `dead` has, for each of the measured `steps`, the share of its `count` units that were not.
    """

    name: str
    alive: np.ndarray[Any, Any] | None = None
    steps: list[int] = field(default_factory=list)
    dead: list[float] = field(default_factory=list)
    count: int = 0


class Watcher:
    """Handle that calls a function with each new step of the tape until `remove`."""

    def __init__(self, function: Any) -> None:
        self.function = function
        mode.watch(function)

    def remove(self) -> None:
        mode.watch(self.function, False)


def rectified(step: Any) -> Any:
    """Return a saved array that is positive where the result of max(x, 0) or min(max(x, 0), c) is; else None."""
    name = getattr(step.op, "opname", "")
    if name == "relu" or name == "hardtanh" and step.params.get("low") == 0:
        return next((value for value in step.saved if isinstance(value, TensorBase) or hasattr(value, "shape")), None)
    return None


class Record:
    """Numbers of a training so far."""

    def __init__(self, module: Any, optimizer: Any, every: int) -> None:
        from ...nn import Conv1d, ConvTranspose1d, ReLU, ReLU6
        self.module, self.optimizer, self.every = module, optimizer, every
        self.losses: list[float] = []
        self.rates: list[list[float]] = []           # per loss, the learning rate of each parameter group
        self.measured: list[int] = []                # numbers of the measured steps of the optimizer, from 1
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
        self.rectifiers: list[tuple[Units, Any]] = [(Units(name or type(part).__name__), part)
                                                    for name, part in module.named_modules()
                                                    if isinstance(part, (ReLU, ReLU6))]
        self.functions: dict[str, Units] = {}        # rectifiers without a module, by the layer before them
        self.names = {id(p): name or type(part).__name__ for name, part in module.named_modules()
                      for p in part._parameters.values() if p is not None}
        self.inside = 0                              # ReLU modules that are running: their steps are not counted twice
        self.channels_first = any(isinstance(part, (Conv1d, ConvTranspose1d)) for part in module.modules())

    def hooks(self) -> list[Any]:
        """Register all hooks; returns their handles."""
        modules = [part for _, part in self.rectifiers]
        found = [self.optimizer.register_step_pre_hook(self.before_step),
                 self.optimizer.register_step_post_hook(self.after_step), Watcher(self.recorded)]
        return [*found, *(part.register_forward_pre_hook(self.enter) for part in modules),
                *(part.register_forward_hook(self.counter(units), always_call=True) for units, part in self.rectifiers)]

    def enter(self, part: Any, inputs: Any) -> None:
        self.inside += 1

    def counter(self, units: Units) -> Any:
        """Return the forward hook of a ReLU module."""
        def leave(part: Any, inputs: Any, output: Any) -> None:
            self.inside -= 1
            if output is not None:
                self.count(units, output)
        return leave

    def recorded(self, step: Any) -> None:
        """Count the units of a new step of the tape, if it is a rectifier without a module."""
        if self.inside or self.paused or (positive := rectified(step)) is None:
            return
        name = self.before_it(step)
        if name is None:
            return
        if name not in self.functions:
            self.functions[name] = Units(f"relu after {name}")
            self.rectifiers.append((self.functions[name], None))
        self.count(self.functions[name], positive)

    def before_it(self, step: Any) -> str | None:
        """Return the name of the last layer before a step; None if there is none within DEEPEST steps."""
        for _ in range(DEEPEST):
            leaves = [edge.tensor for edge in step.edges if type(edge) is Leaf]
            if (name := next((self.names[id(p)] for p in leaves if p is not None and id(p) in self.names),
                             None)) is not None:
                return name
            step = next((getattr(edge, "node", edge) for edge in step.edges
                         if edge is not None and type(edge) is not Leaf), None)
            if step is None:
                break
        return None

    def count(self, units: Units, output: Any) -> None:
        """Note which units were positive for some input."""
        if self.paused:
            return
        shape = np.shape(getattr(output, "array", output)) or (1,)
        axis = 0 if len(shape) == 1 else len(shape) - 1 if len(shape) == 3 and not self.channels_first else 1
        known = units.alive if units.alive is not None and units.alive.shape == shape[axis:axis + 1] else None
        if known is not None and known.all():
            return
        found = host(output).reshape(shape) > 0
        alive = found.any(axis=tuple(k for k in range(len(shape)) if k != axis))
        units.alive = alive if known is None else np.logical_or(known, alive)

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
        """Return the norm of each layer's gradient; NaN where it has none."""
        found = [[p.grad.to_dense() if p.grad.is_sparse else p.grad for p in layer.parameters if p.grad is not None]
                 for layer in self.layers]
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
