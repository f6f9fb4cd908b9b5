"""L-BFGS: a quasi-Newton method that remembers a few steps, with a line search."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import api as tg
from .optimizer import Optimizer
from .rule import check, check_rate, plain

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['LBFGS']

SUFFICIENT_DECREASE = 1e-4  # Wolfe's c₁
CURVATURE = 0.9  # Wolfe's c₂
SMALLEST_CURVATURE = 1e-10  # yᵀs below which a pair is not remembered


class LBFGS(Optimizer):
    r"""Limited-memory BFGS (PyTorch: ``torch.optim.LBFGS``).

    Each iteration moves along :math:`-H \nabla f`, where :math:`H` approximates the inverse Hessian by the last
    ``history_size`` changes of position and gradient. The length of the move is ``lr``, or with
    ``line_search_fn='strong_wolfe'`` it satisfies the strong Wolfe conditions.

    A step makes up to ``max_iter`` iterations and about ``max_eval`` (by default ``max_iter * 5 // 4``) calls of the
    closure, and stops early once no gradient is above ``tolerance_grad``, or when loss or parameters change by less
    than ``tolerance_change``. There is one parameter group only.
    Raises ValueError for several groups or a negative ``lr``, RuntimeError for another line search.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    >>> optimizer = torch.optim.LBFGS([weight], line_search_fn='strong_wolfe')
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((weight - torch.tensor([1.0, 2.0])) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()  # the loss before the step
    20.0
    >>> torch.round(weight, decimals=4).tolist()
    [1.0, 2.0]
    """

    def __init__(self, params: Params, lr: float | Tensor = 1, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None) -> None:
        check_rate(lr)
        super().__init__(params, {
            'lr': lr, 'max_iter': max_iter, 'max_eval': max_iter * 5 // 4 if max_eval is None else max_eval,
            'tolerance_grad': tolerance_grad, 'tolerance_change': tolerance_change, 'history_size': history_size,
            'line_search_fn': line_search_fn})
        check(len(self.param_groups) == 1, "LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self):
        return self.param_groups[0]['params']

    @tg.no_grad()
    def step(self, closure: Callable) -> Any:
        """Iterate on the function that ``closure`` computes, with its gradients; return its value before the step."""
        closure = tg.enable_grad()(closure)
        group = self.param_groups[0]
        state = self.state[self._params[0]]  # all state is global; loading casts it like this parameter's
        state.setdefault('func_evals', 0)
        state.setdefault('n_iter', 0)

        first_loss = closure()
        loss, gradient, evaluations = float(first_loss), self._flat_gradient(), 1
        state['func_evals'] += 1
        if largest(gradient) <= group['tolerance_grad']:
            return first_loss

        for iteration in range(1, group['max_iter'] + 1):
            state['n_iter'] += 1
            direction = self._direction(state, gradient, group['history_size'])
            state['d'], state['prev_flat_grad'], state['prev_loss'] = direction, gradient, loss
            slope = dot(gradient, direction)
            state['t'] = length = first_length(state['n_iter'], gradient, plain(group['lr']))
            if slope > -group['tolerance_change']:
                break

            if group['line_search_fn'] is not None:
                point, used = self._search(closure, length, direction, Point(0.0, loss, gradient, slope),
                                           group['max_eval'] - evaluations)
                state['t'], loss, gradient = point.t, point.loss, point.gradient
                self._move(point.t, direction)
            else:
                self._move(length, direction)
                if iteration == group['max_iter']:
                    break  # the loss there is not needed
                loss, gradient, used = float(closure()), self._flat_gradient(), 1
            evaluations += used
            state['func_evals'] += used
            if evaluations >= group['max_eval'] or largest(gradient) <= group['tolerance_grad']:
                break
            if (largest(direction) * abs(state['t']) <= group['tolerance_change']
                    or abs(loss - state['prev_loss']) < group['tolerance_change']):
                break
        return first_loss

    def _direction(self, state: dict, gradient, history_size: int):
        """-H∇f, by the two-loop recursion."""
        if state['n_iter'] == 1:
            state.update(d=None, t=None, old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return gradient.neg()
        changes, moves, inverses = state['old_dirs'], state['old_stps'], state['ro']
        change, move = gradient - state['prev_flat_grad'], state['d'] * state['t']
        curvature = dot(change, move)
        if curvature > SMALLEST_CURVATURE:
            for memory, newest in (changes, change), (moves, move), (inverses, gradient.new_tensor(1 / curvature)):
                if len(memory) == history_size:
                    memory.pop(0)
                memory.append(newest)
            state['H_diag'] = gradient.new_tensor(curvature / dot(change, change))
        memory = list(zip(changes, moves, map(float, inverses), strict=True))
        direction, weights = gradient.neg(), []
        for change, move, inverse in reversed(memory):
            weights.append(dot(move, direction) * inverse)
            direction.add_(change, alpha=-weights[-1])
        state.setdefault('al', [None] * history_size)[:len(memory)] = map(gradient.new_tensor, reversed(weights))
        direction.mul_(float(state['H_diag']))
        for (change, move, inverse), weight in zip(memory, reversed(weights), strict=True):
            direction.add_(move, alpha=weight - dot(change, direction) * inverse)
        return direction

    def _search(self, closure: Callable, length: float, direction, start: Point, max_steps: int):
        """Return the point to move to, and the number of evaluations."""
        if self.param_groups[0]['line_search_fn'] != 'strong_wolfe':
            raise RuntimeError("only 'strong_wolfe' is supported")
        origin = [param.clone() for param in self._params]

        def evaluate(t: float) -> Point:
            self._move(t, direction)
            loss = float(closure())
            gradient = self._flat_gradient()
            for param, value in zip(self._params, origin, strict=True):
                param.copy_(value)
            return Point(t, loss, gradient, dot(gradient, direction))

        return strong_wolfe(evaluate, start, length, largest(direction), max_steps)

    def _flat_gradient(self):
        return tg.cat([flat(tg.zeros_like(param) if param.grad is None else param.grad) for param in self._params])

    def _move(self, t: float, direction) -> None:
        """θ += t · direction"""
        offset = 0
        for param in self._params:
            real = tg.view_as_real(param) if param.is_complex() else param
            part = direction[offset:offset + real.numel()]
            real.add_(part.view_as(real), alpha=t)
            offset += real.numel()


def flat(x: Tensor) -> Any:
    """Return the elements of x as a vector, complex ones as two real numbers."""
    return tg.view_as_real(x).reshape(-1) if x.is_complex() else x.reshape(-1)


def dot(x: Tensor, y: Tensor) -> float:
    return x.dot(y).item()


def largest(x: Tensor) -> float:
    """The maximum norm."""
    return x.abs().max().item()


def first_length(iteration: int, gradient: Any, lr: float) -> float:
    """Return the length to try first; a short one in the first iteration, in which the curvature is unknown."""
    if iteration > 1:
        return lr
    total = gradient.abs().sum().item()
    return min(1.0, 1 / total) * lr if total else lr


class Point(NamedTuple):
    """The function at distance t along the search direction: loss, gradient, slope."""
    t: float
    loss: float
    gradient: object
    slope: float


def strong_wolfe(evaluate: Callable[[float], Point], start: Point, length: float, scale: float, max_steps: int,
                 tolerance: float = 1e-9) -> tuple[Point, int]:
    """Find a point that satisfies the strong Wolfe conditions, or the best within ``max_steps``.

    First extend until a bracket surely contains such a point, then narrow the bracket (Nocedal and Wright, Numerical
    Optimization, algorithms 3.5 and 3.6). Returns the point and the number of evaluations.
    """
    def too_high(point: Point) -> bool:
        return point.loss > start.loss + SUFFICIENT_DECREASE * point.t * start.slope

    def flat_enough(point: Point) -> bool:
        return abs(point.slope) <= -CURVATURE * start.slope

    previous, point, steps = start, evaluate(length), 0
    ends = None
    while steps < max_steps:
        if too_high(point) or (steps > 1 and point.loss >= previous.loss) or (
                point.slope >= 0 and not flat_enough(point)):
            ends = [previous, point]
            break
        if flat_enough(point):
            return point, steps + 1
        bounds = point.t + 0.01 * (point.t - previous.t), point.t * 10
        previous, point = point, evaluate(cubic_minimum(previous, point, bounds))
        steps += 1
    ends = ends or [start, point]

    low, stalled = lower(ends), False
    while steps < max_steps and abs(ends[1].t - ends[0].t) * scale >= tolerance:
        t, stalled = keep_inside(cubic_minimum(*ends), *ends, stalled)
        point = evaluate(t)
        steps += 1
        if too_high(point) or point.loss >= ends[low].loss:
            ends[1 - low] = point
            low = lower(ends)
            continue
        if flat_enough(point):
            return point, steps + 1
        if point.slope * (ends[1 - low].t - ends[low].t) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = point
    return ends[low], steps + 1


def lower(ends: list[Point]) -> int:
    """Return the index of the bracket's end with the lower loss."""
    return 0 if ends[0].loss <= ends[1].loss else 1


def keep_inside(t: float, one: Point, other: Point, stalled: bool) -> tuple[float, bool]:
    """Return ``t``, moved away from the bracket's ends if it repeatedly stays near them, and True if it is near an
    end.
    """
    left, right = sorted((one.t, other.t))
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if not (stalled or t >= right or t <= left):
        return t, True
    return (right - margin if abs(t - right) < abs(t - left) else left + margin), False


def cubic_minimum(one: Point, other: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return the minimum of the cubic through two points with their slopes, within bounds (by default the points)."""
    left, right = (one, other) if one.t <= other.t else (other, one)
    lowest, highest = bounds or (left.t, right.t)
    a = one.slope + other.slope - 3 * (one.loss - other.loss) / (one.t - other.t)
    discriminant = a ** 2 - one.slope * other.slope
    if not discriminant >= 0:
        return (lowest + highest) / 2
    b = math.sqrt(discriminant)
    part, whole = right.slope + b - a, right.slope - left.slope + 2 * b
    if whole == 0:  # a straight line
        return highest if part < 0 else lowest
    return min(max(right.t - (right.t - left.t) * (part / whole), lowest), highest)
