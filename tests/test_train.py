"""Training, step by step beside PyTorch, from the same seed: every loss, every parameter, every gradient."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "common"))

import numpy as np
from parameterized import parameterized
from parity import DEVICE, VERBOSE, close, needs_torch, torch

import tensorgrad

rng = np.random.default_rng(0)


def mlp(engine, outputs):
    nn = engine.nn
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16), nn.Sigmoid(), nn.Linear(16, 8), nn.ReLU(),
                         nn.Linear(8, outputs))


def cnn(engine):
    nn = engine.nn
    blocks = []
    for a, b in ((1, 4), (4, 8)):
        blocks += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.AvgPool2d(2)]
    return nn.Sequential(*blocks, nn.Flatten(), nn.Dropout(0.1), nn.Linear(392, 10))


def transformer(engine):
    nn = engine.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(11, 16), nn.Embedding(6, 16)
            self.encoder = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True, activation="gelu")
            self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 11)

        def forward(self, x):
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
            h = self.tokens(x) + self.places(engine.arange(x.shape[1], device=x.device))
            return self.head(self.norm(self.encoder(h, src_mask=mask, is_causal=True))).transpose(1, 2)
    return Model()


def lstm(engine):
    nn = engine.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.lstm, self.head = (nn.Embedding(11, 12), nn.LSTM(12, 16, num_layers=2, batch_first=True),
                                                 nn.Linear(16, 11))

        def forward(self, x):
            return self.head(self.lstm(self.tokens(x))[0]).transpose(1, 2)
    return Model()


CASES = {
    # name: model, loss, optimizer, inputs, targets, tolerance
    "mlp_classifier": (lambda e: mlp(e, 3), "CrossEntropyLoss", lambda e, p: e.optim.SGD(p, lr=0.01, momentum=0.9),
                       rng.standard_normal((40, 16)).astype(np.float32), rng.integers(0, 3, 40), 1e-4),
    "mlp_regressor": (lambda e: mlp(e, 1), "MSELoss", lambda e, p: e.optim.SGD(p, lr=0.01, momentum=0.9),
                      rng.standard_normal((40, 16)).astype(np.float32), rng.standard_normal((40, 1)).astype(np.float32),
                      1e-4),
    "cnn_classifier": (cnn, "CrossEntropyLoss", lambda e, p: e.optim.SGD(p, lr=0.01),
                       rng.integers(0, 256, (20, 1, 28, 28)).astype(np.float32) / 255, rng.integers(0, 10, 20), 1e-4),
    # (the keys' bias has no gradient but rounding errors, which Adam would blow up to whole steps)
    "transformer": (transformer, "CrossEntropyLoss", lambda e, p: e.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
                    rng.integers(0, 11, (16, 6)),
                    rng.integers(0, 11, (16, 6)), 2e-4),
    "lstm": (lstm, "CrossEntropyLoss", lambda e, p: e.optim.Adam(p, lr=1e-3), rng.integers(0, 11, (16, 6)),
             rng.integers(0, 11, (16, 6)), 2e-4),
}


class TestTraining(unittest.TestCase):
    @parameterized.expand(list(CASES))
    @needs_torch
    def test_training(self, name):
        build, loss_name, make_optimizer, inputs, targets, tolerance = CASES[name]
        runs = []
        for engine, device in ((tensorgrad, DEVICE), (torch, "cpu")):
            engine.manual_seed(7)
            model = build(engine).to(device)
            if DEVICE != "cpu":                          # dropout masks are PyTorch's on the CPU only
                for module in model.modules():
                    if isinstance(module, engine.nn.Dropout):
                        module.p = 0.0
                    elif isinstance(module, engine.nn.MultiheadAttention):
                        module.dropout = 0.0
            runs.append((engine, device, model, getattr(engine.nn, loss_name)(),
                         make_optimizer(engine, model.parameters())))
        self.assertEqual(*[[n for n, _ in model.named_parameters()] for _, _, model, _, _ in runs])
        states = [None, None]
        for epoch in range(5 if name != "cnn_classifier" else 2):
            for step, start in enumerate(range(0, len(inputs), 4)):
                batch, wanted = inputs[start:start + 4], targets[start:start + 4]
                losses = []
                for which, (engine, device, model, criterion, optimizer) in enumerate(runs):
                    if states[which] is not None:        # each engine goes on with its own random numbers
                        engine.set_rng_state(states[which])
                    optimizer.zero_grad()
                    loss = criterion(model(engine.tensor(batch, device=device)), engine.tensor(wanted, device=device))
                    loss.backward()
                    optimizer.step()
                    losses.append(loss)
                    states[which] = engine.get_rng_state()
                if VERBOSE:
                    print(f"epoch: {epoch} step: {step} torch_loss: {losses[1].item():.6f} tensorgrad_loss: "
                          f"{losses[0].item():.6f}")
                where = f"{name}, epoch {epoch}, step {step}"
                close(*losses, tolerance, f"loss, {where}")
                for (n, p), (_, q) in zip(runs[0][2].named_parameters(), runs[1][2].named_parameters(), strict=True):
                    close(p.grad, q.grad, tolerance, f"gradient of {n}, {where}")
                    close(p, q, tolerance, f"{n}, {where}")
        for (n, b), (_, c) in zip(runs[0][2].named_buffers(), runs[1][2].named_buffers(), strict=True):
            close(b, c, tolerance, f"buffer {n}")


class TestBroadcastTargets(unittest.TestCase):
    @needs_torch
    def test_mse_broadcasts_with_a_warning(self):
        found = []
        for engine in (tensorgrad, torch):
            with self.assertWarns(UserWarning):
                found.append(engine.nn.functional.mse_loss(engine.ones(4, 1), engine.arange(4.0)))
        close(*found, 1e-6)


if __name__ == "__main__":
    unittest.main()
