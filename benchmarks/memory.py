"""Peak memory of training steps, each in a process of its own: `python -m benchmarks.memory`.

What counts is how far the process grows while it takes a step: its largest resident size (VmHWM, reset before the step) less its size before, which holds
the libraries, the parameters and what a small step left behind. Linux only.
"""
from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

STATUS, REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MEGABYTE = 2 ** 20


def resnet(engine: Any, batch: int, size: int) -> tuple[Any, Any, Any]:
    """ResNet-18 and a batch of images."""
    nn = engine.nn

    class Block(nn.Module):
        def __init__(self, a: int, b: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
                                      nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b))
            self.across = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if stride > 1 else nn.Identity()
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            return self.relu(self.body(x) + self.across(x))
    widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in zip(widths, widths[1:])]
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), *blocks,
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    return model, engine.randn(batch, 3, size, size), engine.randint(0, 1000, (batch,))


def gpt(engine: Any, batch: int, length: int, width: int = 192, heads: int = 6, layers: int = 4) -> tuple[Any, Any, Any]:
    """A GPT of characters and a batch of text."""
    nn, F = engine.nn, engine.nn.functional

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            n, t, _ = x.shape
            q, k, v = self.qkv(x).reshape(n, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, width))

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attend = nn.Sequential(nn.LayerNorm(width), Attention())
            self.think = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attend(x)
            return x + self.think(x)
    model = nn.Sequential(nn.Embedding(65, width), *[Layer() for _ in range(layers)], nn.LayerNorm(width), nn.Linear(width, 65))
    return model, engine.randint(0, 65, (batch, length)), engine.randint(0, 65, (batch, length))


ROWS: dict[str, tuple[Callable[..., Any], tuple[int, int], tuple[int, int]]] = {   # model, its sizes, those of the small step before
    "ResNet-18, batch 8 of 64 x 64, SGD": (resnet, (8, 64), (1, 64)),
    "ResNet-18, batch 4 of 224 x 224, SGD": (resnet, (4, 224), (1, 64)),
    "GPT, 4 layers of 192, 128 characters, batch 16, SGD": (gpt, (16, 128), (1, 16)),
}


def resident(field: str) -> int:
    """The bytes that the process holds (VmRSS), or held at most (VmHWM)."""
    return next(int(line.split()[1]) * 1024 for line in STATUS.read_text().splitlines() if line.startswith(field))


def measured(engine_name: str, row: str) -> dict[str, float]:
    """How far this process grows in one training step, and the loss of it."""
    engine = importlib.import_module(engine_name)
    make, sizes, small = ROWS[row]
    engine.manual_seed(0)
    model, x, y = make(engine, *sizes)
    optimizer = engine.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def step(x: Any, y: Any) -> float:
        optimizer.zero_grad()
        out = model(x)
        loss = engine.nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))
        loss.backward()
        optimizer.step()
        return float(loss.detach())
    # what is set up once: threads, buffers, the optimizer's state
    step(x[:small[0], ..., :small[1]], y[:small[0]] if y.ndim == 1 else y[:small[0], :small[1]])
    optimizer.zero_grad()
    ctypes.CDLL(None).malloc_trim(0)          # memory that is free, but kept, would hide growth
    REFERENCES.write_text("5")
    before = resident("VmRSS")
    loss = step(x, y)
    return {"bytes": resident("VmHWM") - before, "loss": loss}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", nargs=2, metavar=("ENGINE", "ROW"), help="measure this, in this process")
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measured(*arguments.child)))
        return
    engines = ["tensorgrad", *(["torch"] if importlib.util.find_spec("torch") else [])]
    for row in ROWS:
        found = {}
        for engine in engines:
            done = subprocess.run([sys.executable, "-m", "benchmarks.memory", "--child", engine, row], capture_output=True, text=True, check=True)
            found[engine] = json.loads(done.stdout)
        ours = found["tensorgrad"]
        ratio = ""
        if theirs := found.get("torch"):
            if abs(ours["loss"] - theirs["loss"]) > 1e-2 * abs(theirs["loss"]):
                raise SystemExit(f"{row}: losses {ours['loss']:.4f} and {theirs['loss']:.4f}: the two do not compute the same")
            ratio = f"{theirs['bytes'] / MEGABYTE:8.0f} MiB with PyTorch, ratio {ours['bytes'] / theirs['bytes']:.2f}"
        print(f"{row:55} {ours['bytes'] / MEGABYTE:8.0f} MiB  {ratio}", flush=True)


if __name__ == "__main__":
    main()
