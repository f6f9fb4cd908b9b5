"""Optimizers beside PyTorch's, on a small network: every parameter after one step and after ten.

    python -m unittest -v tests/test_optim.py
    DEVICE=cuda VERBOSE=1 python -m unittest discover -s tests -p "test_optim.py"
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "common"))

from parameterized import parameterized
from parity import VERBOSE, close, copied, needs_torch, normal, ours, theirs, torch

import tensorgrad
from tensorgrad import optim


def network(nn):
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))


def train(model, optimizer, engine, make, steps):
    """Losses of steps on a regression."""
    x, y = make(normal(16, 6)), make(normal(16, 1, seed=1))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = engine.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses


def alike(name, steps, tolerance=1e-5, **options):
    """Assert that the same steps lead to the same losses and parameters."""
    torch.manual_seed(0)
    reference = network(torch.nn)
    mine = copied(network(tensorgrad.nn), reference)
    theirs_options = {key: 0 if value is None else value for key, value in options.items()}
    runs = [train(mine, getattr(optim, name)(mine.parameters(), **options), tensorgrad, ours, steps),
            train(reference, getattr(torch.optim, name)(reference.parameters(), **theirs_options), torch, theirs,
                  steps)]
    for step, (a, b) in enumerate(zip(*runs, strict=True)):
        if VERBOSE:
            print(f"step: {step} torch_loss: {b.item():.6f} tensorgrad_loss: {a.item():.6f}")
        close(a, b, tolerance, f"loss of step {step}")
    for (key, a), (other, b) in zip(mine.named_parameters(), reference.named_parameters(), strict=True):
        assert key == other
        close(a, b, tolerance, key)


@needs_torch
class TestSGD(unittest.TestCase):
    @parameterized.expand([(lr, momentum, steps) for lr in (0.1, 0.01) for momentum in (0, 0.9, None)
                           for steps in (1, 10)])
    def test_steps(self, lr, momentum, steps):
        alike("SGD", steps, lr=lr, momentum=momentum)

    @parameterized.expand([({"nesterov": True},), ({"dampening": 0.5},), ({"weight_decay": 0.1},),
                           ({"maximize": True},)])
    def test_options(self, options):
        alike("SGD", 10, lr=0.05, momentum=0.9, **options)


@needs_torch
class TestAdam(unittest.TestCase):
    @parameterized.expand([(lr, betas, steps) for lr in (1e-3, 1e-2) for betas in ((0.9, 0.999), (0.5, 0.9))
                           for steps in (1, 10)])
    def test_steps(self, lr, betas, steps):
        alike("Adam", steps, lr=lr, betas=betas)

    @parameterized.expand([({"amsgrad": True},), ({"weight_decay": 0.1},), ({"eps": 1e-3},)])
    def test_options(self, options):
        alike("Adam", 10, lr=0.01, **options)


@needs_torch
class TestOthers(unittest.TestCase):
    @parameterized.expand("AdamW Adamax NAdam RAdam Adagrad Adadelta RMSprop Rprop ASGD Adafactor".split())
    def test_steps(self, name):
        for steps in (1, 10):
            alike(name, steps, tolerance=1e-4)


class TestOptimizer(unittest.TestCase):
    def test_takes_a_generator(self):
        model = network(tensorgrad.nn)
        optimizer = optim.SGD((p for p in model.parameters()), lr=0.1)
        self.assertEqual([id(p) for p in optimizer.param_groups[0]["params"]], [id(p) for p in model.parameters()])

    def test_zero_grad_takes_gradients_away(self):
        weight = ours([1.0, 2.0], True)
        (weight * weight).sum().backward()
        optimizer = optim.SGD([weight], lr=0.1)
        optimizer.zero_grad(set_to_none=False)
        self.assertEqual(weight.grad.tolist(), [0.0, 0.0])
        optimizer.zero_grad()
        self.assertIsNone(weight.grad)

    def test_needs_parameters(self):
        with self.assertRaisesRegex(ValueError, "optimizer got an empty parameter list"):
            optim.Adam([])
        with self.assertRaises(TypeError):
            optim.Adam(ours([1.0]))


if __name__ == "__main__":
    unittest.main()
