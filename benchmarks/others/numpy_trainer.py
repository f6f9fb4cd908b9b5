"""A step with gradients of a library on NumPy's arrays, and the optimizer in NumPy."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .functions import Task, train


def steps(evaluate: Callable[..., Any], task: Task) -> Callable[[], tuple[Any, dict[str, Any]]]:
    values, count = dict(task.values), 0
    states = {name: optimizer.state(np.zeros_like, values) for name, optimizer in task.optimizers.items()}

    def step() -> tuple[Any, dict[str, Any]]:
        nonlocal values, states, count
        count += 1
        values, states, loss, gradients = train(evaluate, np, task, values, states, count, task.inputs)
        return loss, gradients
    return step
