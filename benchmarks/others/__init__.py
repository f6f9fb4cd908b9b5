"""Training steps of other libraries, each beside PyTorch: the same network from the same parameters on the same inputs,
by the library's own functions.
"""
from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from ..timing import Case
from ..training import STEPS, TOLERANCES, Step, step_of
from ..workloads import CANNOT, Problem, disagreement
from .functions import Optimizer, Task
from .networks import PHASES


def named(step: Step, kind: str) -> Iterator[tuple[str, str, Any]]:
    """The module's name, the full name and the tensor for all parameters or buffers."""
    for key, (module, _) in step.trained.items():
        for name, x in getattr(module, f"named_{kind}")():
            if x.is_floating_point():
                yield key, name if len(step.trained) == 1 else f"{key}.{name}", x


def task_of(name: str, step: Step) -> Task:
    """Return the task of PyTorch's step, with its present values."""
    phases = next(phases for start, phases in PHASES.items() if name.startswith(start))
    optimizers = {key: Optimizer(type(optimizer).__name__, optimizer.defaults,
                                 [name for of, name, _ in named(step, "parameters") if of == key])
                  for key, (_, optimizer) in step.trained.items()}
    values = {name: x.detach().numpy().copy() for kind in ("parameters", "buffers") for _, name, x in named(step, kind)}
    return Task(phases, optimizers, values,
                [x.numpy().copy() if x.is_floating_point() else x.numpy().astype(np.int32) for x in step.inputs])


def quiet(torch: Any, step: Step) -> Step:
    """The step without dropout and noise."""
    for module, _ in step.trained.values():
        for layer in module.modules():
            for name, value in {"p": 0.0, "dropout": 0.0}.items():
                if isinstance(getattr(layer, name, None), float):
                    setattr(layer, name, value)
    return step


def expected(torch: Any, step: Step) -> list[np.ndarray]:
    """The losses of three steps of PyTorch's, and the gradients that its optimizers use in the first."""
    gradients: dict[str, np.ndarray] = {}

    def keep(optimizer: Any, *_: Any) -> None:
        for key, name, p in named(step, "parameters"):
            if step.trained[key][1] is optimizer:
                gradients.setdefault(name, p.grad.numpy().copy())
    for _, optimizer in step.trained.values():
        optimizer.register_step_pre_hook(keep)
    with patch.object(torch, "randn_like", torch.zeros_like):
        losses = [step.run().item() for _ in range(3)]
    return [np.array(losses), *(gradients[name] for name in sorted(gradients))]


def found(step: Any) -> list[np.ndarray]:
    loss, gradients = step()
    first = [np.array(array(gradients[name])) for name in sorted(gradients)]
    return [np.array([float(array(loss)), *(float(array(step()[0])) for _ in range(2))]), *first]


def array(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


@dataclass(frozen=True)
class Other:
    """A row: a training step of another library."""

    name: str

    def make(self, library: Any, tiny: bool) -> Case:
        """Its step, from the parameters and inputs of PyTorch's.

        Problem where it differs from that, or where the library cannot do it.
        """
        torch = importlib.import_module("torch")
        try:
            if difference := self.difference(library, torch, tiny):
                raise Problem(f"differs: {difference}")
            step = library.trainer(task_of(self.name, step_of(self.name, torch, tiny)), check=False)
        except NotImplementedError:
            raise Problem(CANNOT) from None
        for _ in range(3):                          # what is compiled on the way
            step()
        return Case(step, lambda: None)

    def difference(self, library: Any, torch: Any, tiny: bool = False) -> str:
        step = quiet(torch, step_of(self.name, torch, tiny))
        task = task_of(self.name, step)
        return disagreement(found(library.trainer(task, check=True)), expected(torch, step), TOLERANCES[self.name])


ROWS = [Other(name) for name in STEPS]
