"""What recording and pulling cost, apart from the numbers."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tensorgrad

from .timing import Row, compare


def scalar(engine: Any) -> Any:
    a, b = (engine.ones(1, requires_grad=True) for _ in range(2))
    return lambda: a * b


def small_graph(engine: Any) -> Any:
    x = engine.ones(1, requires_grad=True)

    def step() -> None:
        x.grad = None
        (x * x + x).backward()
    return step


def chain(engine: Any, length: int = 1000) -> Any:
    a, b = (engine.ones(1, requires_grad=True) for _ in range(2))

    def step() -> Any:
        x = a
        for _ in range(length):
            x = x * b
        return x
    return step


def backward(engine: Any, length: int = 1000) -> Any:
    forward = chain(engine, length)
    return lambda: forward().backward()


def rows(torch: Any) -> Iterator[Row]:
    a = np.ones(1, np.float32)
    yield compare("a * b in NumPy alone (1 element)", lambda: a * a, None)
    for name, make, per in (("a * b, recorded (1 element)", scalar, 1), ("x * x + x, forward and backward", small_graph, 1),
                            ("chain of 1,000 products, per node, forward", chain, 1000),
                            ("chain of 1,000 products, per node, forward and backward", backward, 1000)):
        yield compare(name, make(tensorgrad), make(torch) if torch else None, per=per)
