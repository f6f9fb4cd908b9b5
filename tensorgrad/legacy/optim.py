"""Optimizers of 2016: functions `(opfunc, x, config, state) → (x, fx)`.

`opfunc(x)` returns f(x) and the gradient df/dx; a call is a step, which changes x in place. `config` has the settings,
`state` the method's state between steps, by default `config` itself. fx is a list of the values of f that the step
computed.

>>> import tensorgrad as torch
>>> from tensorgrad.legacy import optim
>>> x, config = torch.tensor([3., 4.]), {"learningRate": 0.1}
>>> for _ in range(50):
...     x, fx = optim.sgd(lambda x: (float(x.dot(x)), 2 * x), x, config)
>>> fx[0] < 1e-7
True
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import api as tg
from .. import optim as today

__all__ = ["adadelta", "adagrad", "adam", "adamax", "asgd", "cg", "lbfgs", "nag", "rmsprop", "rprop", "sgd"]

Step = Callable[..., Any]


def _checked(config: Any, state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if config is None and state is None:
        raise ValueError("a step remembers things: give config, or state, a dict that is the same in each call")
    config = {} if config is None else config
    return config, config if state is None else state


def _over(kind: Any, options: Callable[[dict[str, Any]], dict[str, Any]], rate: float | None, doc: str,
          name: str) -> Step:
    """Return a method that runs a present optimizer.

    `options` converts the settings of 2016 to its own, `rate` is the default learning rate, None if the method sets its
    own.
    """
    def step(opfunc: Callable[[Any], Any], x: Any, config: Any, state: Any = None) -> Any:
        config, state = _checked(config, state)
        fx, gradient = opfunc(x)
        optimizer = state.get("optimizer")
        if optimizer is None:
            optimizer = state["optimizer"] = kind([x], **options(config))
        held = optimizer.param_groups[0]["params"][0]
        if held is not x:
            held.set_(x.detach())
        steps = state.get("evalCounter", 0)
        if rate is not None:
            optimizer.param_groups[0]["lr"] = (config.get("learningRate", rate)
                                               / (1 + steps * config.get("learningRateDecay", 0)))
        held.grad = gradient.detach().to(x.dtype)
        optimizer.step()
        held.grad, state["evalCounter"] = None, steps + 1
        return (x, [fx], optimizer.state[held]["ax"]) if kind is today.ASGD else (x, [fx])
    step.__name__ = step.__qualname__ = name
    step.__doc__ = doc
    return step


adadelta = _over(today.Adadelta, lambda c: {"lr": c.get("learningRate", 1), "rho": c.get("rho", 0.9),
                                            "eps": c.get("eps", 1e-6),
                                            "weight_decay": c.get("weightDecay", 0)}, 1,
                 "Steps scaled by running means of squared gradients and squared steps: `rho`, `eps`, `weightDecay`.",
                 "adadelta")
adagrad = _over(today.Adagrad, lambda c: {"eps": 1e-10, "weight_decay": c.get("weightDecay", 0)}, 1e-3,
                "Steps over the root of the sum of squared gradients: `learningRate`, `learningRateDecay`, "
                "`weightDecay`.", "adagrad")
adamax = _over(today.Adamax, lambda c: {"betas": (c.get("beta1", 0.9), c.get("beta2", 0.999)),
                                        "eps": c.get("epsilon", 1e-38),
                                        "weight_decay": c.get("weightDecay", 0)}, 2e-3,
               "Adam with the greatest gradient in the place of their squares: `learningRate`, `beta1`, `beta2`, "
               "`epsilon`.", "adamax")
asgd = _over(today.ASGD, lambda c: {"lr": c.get("eta0", 1e-4), "lambd": c.get("lambda", 1e-4),
                                    "alpha": c.get("alpha", 0.75), "t0": c.get("t0", 1e6)},
             None, "Averaged descent, `(x, fx, mean of x)`: `eta0`, `lambda`, `alpha`, `t0`.", "asgd")
rmsprop = _over(today.RMSprop, lambda c: {"alpha": c.get("alpha", 0.99), "eps": c.get("epsilon", 1e-8),
                                          "weight_decay": c.get("weightDecay", 0)}, 1e-2,
                "Steps over the root of a running mean of squared gradients: `learningRate`, `alpha`, `epsilon`, "
                "`weightDecay`.", "rmsprop")
rprop = _over(today.Rprop, lambda c: {"lr": c.get("stepsize", 0.1),
                                      "etas": (c.get("etaminus", 0.5), c.get("etaplus", 1.2)),
                                      "step_sizes": (c.get("stepsizemin", 1e-6), c.get("stepsizemax", 50.0))}, None,
              "Steps by signs of gradients: `stepsize`, `etaplus`, `etaminus`, `stepsizemax`, `stepsizemin`.", "rprop")


def sgd(opfunc: Callable[[Any], Any], x: Any, config: Any, state: Any = None) -> Any:
    """Gradient descent: `learningRate`, `learningRateDecay`, `weightDecay`, `momentum`, `dampening` (= momentum),
    `nesterov`.

    `learningRates` is a vector of factors, one for each number of x; `weightDecays` is one of decays.
    """
    config, state = _checked(config, state)
    momentum, nesterov = config.get("momentum", 0), config.get("nesterov", False)
    dampening = config.get("dampening", momentum)
    if nesterov and (momentum <= 0 or dampening != 0):
        raise ValueError("Nesterov momentum requires a momentum and zero dampening")
    fx, gradient = opfunc(x)
    step, n = gradient.detach().clone(), state.get("evalCounter", 0)
    step += x * config.get("weightDecays", config.get("weightDecay", 0))
    if momentum:
        if "dfdx" not in state:
            state["dfdx"] = step.clone()
        else:
            state["dfdx"].mul_(momentum).add_(step, alpha=1 - dampening)
        step = step + momentum * state["dfdx"] if nesterov else state["dfdx"]
    x -= step * config.get("learningRates", 1) * (config.get("learningRate", 1e-3)
                                                  / (1 + n * config.get("learningRateDecay", 0)))
    state["evalCounter"] = n + 1
    return x, [fx]


def nag(opfunc: Callable[[Any], Any], x: Any, config: Any, state: Any = None) -> Any:
    """Nesterov's method: takes the gradient at the point to which momentum alone would lead: `learningRate`,
    `momentum` (0.9), `weightDecay`."""
    config, state = _checked(config, state)
    momentum, n = config.get("momentum", 0.9), state.get("evalCounter", 0)
    if momentum <= 0:
        raise ValueError("Momentum must be positive for Nesterov Accelerated Gradient")
    velocity = state.setdefault("dfdx", tg.zeros_like(x))
    x += momentum * velocity
    fx, gradient = opfunc(x)
    step = gradient.detach() + config.get("weightDecay", 0) * x
    step = step * (config.get("learningRate", 1e-3) / (1 + n * config.get("learningRateDecay", 0)))
    x -= step
    velocity.mul_(momentum).sub_(step)
    state["evalCounter"] = n + 1
    return x, [fx]


def adam(opfunc: Callable[[Any], Any], x: Any, config: Any, state: Any = None) -> Any:
    """Adam: `learningRate` (0.001), `beta1` (0.9), `beta2` (0.999), `epsilon` (1e-8), `learningRateDecay`,
    `weightDecay`.

    ε is added before the bias correction of the means, so a first step is that of today's Adam with ε/√(1 − β₂).
    """
    config, state = _checked(config, state)
    beta1, beta2 = config.get("beta1", 0.9), config.get("beta2", 0.999)
    fx, gradient = opfunc(x)
    gradient = gradient.detach() + config.get("weightDecay", 0) * x
    t = state["t"] = state.get("t", 0) + 1
    m, v = (state.setdefault(name, tg.zeros_like(gradient)) for name in "mv")
    m.mul_(beta1).add_(gradient, alpha=1 - beta1)
    v.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    rate = config.get("learningRate", 1e-3) / (1 + (t - 1) * config.get("learningRateDecay", 0))
    x.addcdiv_(m, v.sqrt() + config.get("epsilon", 1e-8), value=-rate * math.sqrt(1 - beta2 ** t) / (1 - beta1 ** t))
    return x, [fx]


def lbfgs(opfunc: Callable[[Any], Any], x: Any, config: Any, state: Any = None) -> Any:
    """L-BFGS, several steps in a call: `maxIter` (20), `maxEval`, `tolFun` (1e-5), `tolX` (1e-9), `nCorrection` (100),
    `learningRate` (1).

    Returns `(x, all values of f, number of evaluations)`.
    """
    config, state = _checked(config, state)
    optimizer = state.get("optimizer")
    if optimizer is None:
        optimizer = state["optimizer"] = today.LBFGS(
            [x], config.get("learningRate", 1), config.get("maxIter", 20), config.get("maxEval"),
            config.get("tolFun", 1e-5), config.get("tolX", 1e-9),
            config.get("nCorrection", 100), "strong_wolfe" if config.get("lineSearch") else None)
    values: list[Any] = []
    held = optimizer.param_groups[0]["params"][0]

    def closure() -> Any:
        value, gradient = opfunc(x)
        held.grad = gradient.detach().clone()
        values.append(value)
        return tg.as_tensor(value)
    optimizer.step(closure)
    held.grad, state["funcEval"] = None, state.get("funcEval", 0) + len(values)
    return x, values, len(values)


def cg(opfunc: Callable[[Any], Any], x: Any, config: Any, state: Any = None) -> Any:
    """Conjugate gradients (Polak and Ribière), several steps in a call: `maxIter` (20), `maxEval` (1.25 · maxIter),
    `sig`, `rho` of the line search.

    Returns `(x, values of f after each step, number of evaluations)`. A step goes along the direction until f has
    fallen by ρ times the linear prediction and the slope is below σ times the initial one (Wolfe's conditions), with
    the minimum of a parabola as the next guess.
    """
    config, state = _checked(config, state)
    budget = [config.get("maxEval", int(1.25 * config.get("maxIter", 20)))]

    def at(point: Any) -> tuple[float, Any]:
        budget[0] -= 1
        value, gradient = opfunc(point)
        return float(value), gradient.detach().clone()
    start = budget[0]
    f, g = at(x)
    values, direction, length = [f], -g, 1 / (1 + float(g.dot(g)))
    for _ in range(config.get("maxIter", 20)):
        slope = float(g.dot(direction))
        if slope >= 0 or budget[0] <= 0:
            break
        found = _along(at, x, f, direction, slope, length, budget, config.get("rho", 0.01), config.get("sig", 0.5))
        if found is None:
            break
        length, f, new = found
        x.add_(direction, alpha=length)
        values.append(f)
        turn = max(0.0, float((new - g).dot(new)) / max(float(g.dot(g)), 1e-300))
        direction, old, g = turn * direction - new, slope, new
        if float(g.dot(direction)) >= 0:
            direction = -g
        length = min(1.0, 2 * length * old / min(float(g.dot(direction)), -1e-300))
    return x, values, start - budget[0]


def _along(at: Any, x: Any, f: float, direction: Any, slope: float, length: float, budget: list[int], rho: float,
           sigma: float) -> Any:
    """Return (length, f, gradient) of a point along a direction that meets Wolfe's conditions, or of the best one
    seen; None if none is lower."""
    low, high, best = 0.0, math.inf, None
    low_slope = slope
    while budget[0] > 0:
        value, gradient = at(x + length * direction)
        there = float(gradient.dot(direction))
        if not math.isfinite(value) or value > f + rho * length * slope:
            high = length
        elif abs(there) <= -sigma * slope:
            return length, value, gradient
        else:
            if best is None or value < best[1]:
                best = length, value, gradient
            if there < 0:
                low, low_slope = length, there
            else:
                high = length
        guess = (low - low_slope * (length - low) / (there - low_slope) if math.isfinite(there) and there != low_slope
                 else math.nan)
        inside = (low + 0.1 * (min(high, 4 * length) - low) < guess < low + 0.9 * (high - low) if math.isfinite(high)
                  else length < guess < 10 * length)
        length = guess if inside else (low + high) / 2 if math.isfinite(high) else 3 * length
    return best
