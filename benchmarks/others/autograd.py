"""HIPS autograd: gradients of functions of NumPy's arrays, recorded as they run."""
from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import value_and_grad
from autograd.scipy.special import erf

from .functions import Functions, Loss, Parameters, Task
from .numpy_trainer import steps

__version__ = version("autograd")


class Autograd(Functions):
    xp, erf, drawn = anp, staticmethod(erf), np.random.default_rng(0)

    def uniform(self, like: Any) -> Any:
        return self.drawn.random(like.shape, np.float32)

    def normal(self, like: Any) -> Any:
        return self.drawn.standard_normal(like.shape, np.float32)



def trainer(task: Task, check: bool) -> Callable[[], tuple[Any, dict[str, Any]]]:
    f = Autograd(not check)

    def evaluate(loss: Loss, names: Any, values: Any, inputs: Any) -> Any:
        def objective(trained: Any) -> Any:
            return loss(f, Parameters(values | dict(trained.items())), *inputs)
        value, gradients = value_and_grad(objective)({name: values[name] for name in names})
        return value, {}, gradients
    return steps(evaluate, task)
