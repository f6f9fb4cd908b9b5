"""Random small graphs give PyTorch's gradients: steps of all kinds, hooks, several roots, inner nodes as inputs, second
derivatives.
"""
import random
import warnings
from functools import partial

import numpy as np
import pytest
from side_by_side import same

pytestmark = pytest.mark.usefixtures("device")

SHAPES = [(2, 3), (3,), (), (3, 3), (1, 3)]
ONE = [
    lambda T, x: x * 2, lambda T, x: x.exp() * 0.1, lambda T, x: x.sin(), lambda T, x: x.tanh(),
    lambda T, x: x.sigmoid(), lambda T, x: x.sum(),
    lambda T, x: x.sum(0, keepdim=True), lambda T, x: x.reshape(-1), lambda T, x: x.t(), lambda T, x: x.unsqueeze(0),
    lambda T, x: x[0],
    lambda T, x: x.softmax(-1), lambda T, x: x.double(), lambda T, x: x.float(), lambda T, x: x.clone(),
    lambda T, x: x.mean(-1),
    lambda T, x: x.max(-1).values, lambda T, x: x.sort(-1).values, lambda T, x: T.stack([x, x * 3]).sum(0),
    lambda T, x: x.abs(),
    lambda T, x: x.pow(2), lambda T, x: x.relu(), lambda T, x: x.clamp(-0.5, 0.5), lambda T, x: x.detach(),
    lambda T, x: x.cumsum(-1),
    lambda T, x: x.unbind(0)[0], lambda T, x: x.chunk(2, 0)[-1], lambda T, x: x.expand(2, *x.shape),
    lambda T, x: x.logsumexp(-1),
    lambda T, x: x.flip(0), lambda T, x: x[..., [0, 0]], lambda T, x: T.where(x > 0, x, x * 0.1),
    lambda T, x: x.log_softmax(0),
    lambda T, x: x.prod(-1), lambda T, x: x.masked_fill(x > 0.3, 0.7),
]
TWO = [
    lambda T, a, b: a + b, lambda T, a, b: a * b, lambda T, a, b: a - b, lambda T, a, b: a / (b * b + 1),
    lambda T, a, b: T.maximum(a, b),
    lambda T, a, b: T.cat([a.reshape(-1), b.reshape(-1)]), lambda T, a, b: a @ b, lambda T, a, b: T.atan2(a, b + 3),
    lambda T, a, b: (a * a + 1) ** b, lambda T, a, b: T.where(a > b, a, b),
    lambda T, a, b: T.lerp(a.float(), b.float(), 0.3),
]


def grown(T, dice, numbers):
    """Three leaves, and what came of them in some random steps."""
    pool = [T.tensor(numbers.standard_normal(dice.choice(SHAPES)).tolist(), dtype=dice.choice([T.float32, T.float64]),
                     requires_grad=True)
            for _ in range(3)]
    for _ in range(dice.randint(3, 12)):
        count, steps = (1, ONE) if dice.random() < 0.6 else (2, TWO)
        step, operands = dice.choice(steps), [dice.choice(pool) for _ in range(count)]
        if count == 2 or operands[0].dim():
            try:
                pool.append(step(T, *operands))
            except (RuntimeError, IndexError):       # shapes that do not fit, here as there
                pool.append(operands[0] * 1)
    return pool


def differentiated(T, seed, way):
    """Some gradients of a random graph, and what hooks saw of them."""
    dice, numbers, seen = random.Random(seed), np.random.default_rng(seed), []
    pool = grown(T, dice, numbers)
    leaves, inner = pool[:3], [t for t in pool[3:] if t.requires_grad and not t.is_leaf]
    if not inner:
        return None
    if way != "twice":       # what flows through a result in a second derivative depends on how a formula is written
        for t in dice.sample(inner, min(2, len(inner))):
            dice.choice([t.retain_grad, partial(t.register_hook, lambda g: g * 1.5), t.size])()
        dice.choice(leaves).register_hook(lambda g: seen.append(g.sum()))
    roots = dice.sample(inner, min(2, len(inner)))
    upstream = [T.ones_like(root) * (0.5 + i) for i, root in enumerate(roots)]
    targets = [leaves[0], dice.choice(inner)]
    if way == "backward":
        T.autograd.backward(roots, upstream, retain_graph=True)
        T.autograd.backward(roots, upstream)
    elif way == "inputs":
        T.autograd.backward(roots, upstream, inputs=targets)
    elif way == "grad":
        seen.append(T.autograd.grad(roots, targets, upstream, allow_unused=True, retain_graph=True))
        seen.append(T.autograd.grad(roots, leaves, upstream, materialize_grads=True))
    else:
        first = T.autograd.grad(roots, leaves, upstream, create_graph=True, materialize_grads=True)
        total = sum((g * g).sum().double() for g in first) + sum(leaf.sum().double() * 0 for leaf in leaves)
        seen += [first, T.autograd.grad(total, leaves, materialize_grads=True)]
    return seen, [t.grad for t in leaves], [t.grad if t.retains_grad else None for t in inner], pool


@pytest.mark.parametrize("way", ["backward", "inputs", "grad", "twice"])
@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed, way):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(lambda T: differentiated(T, seed, way), rtol=3e-4, atol=3e-4)
