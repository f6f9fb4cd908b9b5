"""Training steps: forward, loss, backward, optimizer."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorgrad

from .timing import Row, compare


def step_of(engine: Any, model: Any, optimizer: Any, inputs: Any, targets: Any) -> Any:
    F = engine.nn.functional

    def step() -> Any:
        optimizer.zero_grad()
        out = model(inputs)
        loss = F.cross_entropy(out.reshape(-1, out.shape[-1]), targets.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss
    return step


def mlp(engine: Any) -> Any:
    nn = engine.nn
    engine.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    return step_of(engine, model, engine.optim.SGD(model.parameters(), 0.1), engine.randn(64, 784), engine.randint(0, 10, (64,)))


def cnn(engine: Any) -> Any:
    nn = engine.nn
    engine.manual_seed(0)
    blocks = []
    for a, b, padding in ((1, 8, "same"), (8, 16, 2), (16, 32, "same")):
        blocks += [nn.Conv2d(a, b, 3, padding=padding), nn.BatchNorm2d(b), nn.ReLU(), nn.AvgPool2d(2)]
    model = nn.Sequential(*blocks, nn.Flatten(), nn.Linear(512, 10))
    return step_of(engine, model, engine.optim.Adam(model.parameters()), engine.rand(32, 1, 28, 28), engine.randint(0, 10, (32,)))


def transformer(engine: Any) -> Any:
    nn = engine.nn
    engine.manual_seed(0)
    layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(65, 128), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(128, 65))
    return step_of(engine, model, engine.optim.AdamW(model.parameters()), engine.randint(0, 65, (12, 64)), engine.randint(0, 65, (12, 64)))


def lstm(engine: Any) -> Any:
    nn = engine.nn
    engine.manual_seed(0)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.lstm, self.head = nn.Embedding(65, 128), nn.LSTM(128, 256, batch_first=True), nn.Linear(256, 65)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.lstm(self.embedding(tokens))[0])
    model = Model()
    return step_of(engine, model, engine.optim.Adam(model.parameters()), engine.randint(0, 65, (32, 32)), engine.randint(0, 65, (32, 32)))


def rows(torch: Any) -> Iterator[Row]:
    for name, make in (("MLP 784-256-128-10, batch 64, SGD", mlp), ("MNIST ConvNet, batch 32, Adam", cnn),
                       ("Transformer encoder, 2 layers of 128, 64 tokens, batch 12, AdamW", transformer),
                       ("LSTM of 256, 32 tokens, batch 32, Adam", lstm)):
        ours, theirs = make(tensorgrad), make(torch) if torch else None
        note = ""
        if theirs:
            a, b = float(ours().detach()), float(theirs().detach())
            note = f"first loss {a:.4f}, PyTorch's {b:.4f}"
            if abs(a - b) > 1e-3 * abs(b):
                raise SystemExit(f"{name}: {note}: the two do not compute the same")
        yield compare(name, ours, theirs, rounds=7, seconds=0.5, note=note)
