"""Small programs with numbers for pen and paper, made from a seed: equal on every machine."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from ...api.activation import relu
from ...api.creation import tensor as tensor_of
from ...core.mode import enable_grad
from ...dtype import float32
from ...nn import functional
from ..explain import Explanation, explain

Draw = Callable[[Sequence[Any]], Any]
NUMBERS = (-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0)
AWAY = 0.2          # least distance of an op's inputs from its corner
FLAT = 2.0          # beyond it, the slopes of tanh and sigmoid nearly vanish


def net(level: str, seed: int | str) -> Explanation:
    """Return the program of an exercise, which depends on the level and the seed alone."""
    random = Random(f"tensorgrad exercise 1, {level}, {seed}")

    def draw(choices: Sequence[Any]) -> Any:
        # Python keeps only random() reproducible across versions
        return choices[int(random.random() * len(choices))]
    makers = WHOLE if level in ("whole", "wrong") else STEPS
    made = None
    with enable_grad():
        while made is None:
            made = draw(makers)(draw)
        return explain(made[0], names=made[1])


def leaf(draw: Draw, *shape: int) -> Any:
    def numbers(sizes: tuple[int, ...]) -> Any:
        return [numbers(sizes[1:]) for _ in range(sizes[0])] if sizes else draw(NUMBERS)
    return tensor(numbers(shape), requires_grad=True)


def tensor(numbers: Any, requires_grad: bool = False) -> Any:
    """Return a tensor of fixed dtype and device, independent of the defaults."""
    return tensor_of(numbers, dtype=float32, device="cpu", requires_grad=requires_grad)


def clear(x: Any) -> bool:
    """Return True if no element is near the corner of relu and at least one is positive."""
    return bool((x.abs() >= AWAY).all()) and bool((x > 0).any())


def scalars(draw: Draw) -> Any:
    """Single numbers, one of them used twice."""
    a, b, c = leaf(draw), leaf(draw), leaf(draw)
    p = a * b
    q = draw((lambda: p + c, lambda: p - c, lambda: c - p))()
    r = draw((lambda: q * a, lambda: q ** 2, lambda: q * q, lambda: q.tanh() if q.abs() < FLAT else q / 2,
              lambda: q.exp() if q.abs() < FLAT else q * 2))()
    loss = draw((lambda: r * c, lambda: r + b, lambda: r - a, lambda: r / c))()
    return loss, {"a": a, "b": b, "c": c, "p": p, "q": q, "r": r, "L": loss}


def vectors(draw: Draw) -> Any:
    """A weighted sum through an activation, and its squared error."""
    x, w, b, y = leaf(draw, 3), leaf(draw, 3), leaf(draw), tensor(draw(NUMBERS))
    s = (x * w).sum()
    z = s + b
    h = draw((lambda: z.tanh(), lambda: z.sigmoid(), lambda: z))() if z.abs() < FLAT else z
    e = h - y
    loss = e ** 2
    return loss, {"x": x, "w": w, "b": b, "s": s, "z": z, "h": h, "e": e, "y": y, "L": loss}


def layers(draw: Draw) -> Any:
    """Two layers without a bias, as products of matrices."""
    x, w, v = leaf(draw, 1, 2), leaf(draw, 2, 2), leaf(draw, 2, 1)
    z = x @ w
    if not clear(z):
        return None
    h = draw((lambda: relu(z), lambda: z.tanh() if (z.abs() < FLAT).all() else z ** 2, lambda: z ** 2))()
    o = h @ v
    loss = o.sum() if draw((True, False)) else (o ** 2).mean()
    return loss, {"x": x, "w": w, "v": v, "z": z, "h": h, "o": o, "L": loss}


def perceptron(draw: Draw) -> Any:
    """Two layers with biases, relu between them, and the squared error of one example."""
    x, w1, b1, w2, b2, y = (leaf(draw, 1, 2), leaf(draw, 2, 2), leaf(draw, 2), leaf(draw, 1, 2), leaf(draw, 1),
                            tensor([[draw(NUMBERS)]]))
    z = functional.linear(x, w1, b1)
    if not clear(z):
        return None
    h = relu(z)
    o = functional.linear(h, w2, b2)
    loss = ((o - y) ** 2).sum()
    return (None if abs((o - y).item()) < AWAY
            else (loss, {"x": x, "w1": w1, "b1": b1, "w2": w2, "b2": b2, "y": y, "z": z, "h": h, "o": o, "L": loss}))


def residual(draw: Draw) -> Any:
    """A layer whose input is added to its result, where two gradients add up."""
    x, w, v = leaf(draw, 1, 2), leaf(draw, 2, 2), leaf(draw, 1, 2)
    z = functional.linear(x, w)
    if not clear(z):
        return None
    h = relu(z)
    r = h + x
    loss = (r * v * r).sum() if draw((True, False)) else ((r - v) ** 2).sum()
    return loss, {"x": x, "w": w, "v": v, "z": z, "h": h, "r": r, "L": loss}


STEPS = (scalars, vectors, layers)
WHOLE = (perceptron, residual, layers)
