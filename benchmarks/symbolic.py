"""Compare the time of a symbolic model with its layers without a graph: `python -m benchmarks.symbolic`.

Prints medians of ratios of neighbouring blocks.
"""
from __future__ import annotations

import statistics
from functools import partial

import tensorgrad as torch
from examples.architectures import comparing, resnet
from tensorgrad import nn
from tensorgrad.symbolic import Input, SymbolicModel

from .timing import Budget, Case, alternate


def deep(count: int) -> tuple[nn.Module, nn.Module, torch.Tensor]:
    """So many small linear layers in a row: as a model, and in a Sequential."""
    layers = [nn.Linear(4, 4) for _ in range(count)]
    x = y = Input((4,))
    for layer in layers:
        y = layer(y)
    return SymbolicModel(x, y), nn.Sequential(*layers), torch.rand(4, 4)


def toy_resnet() -> tuple[nn.Module, nn.Module, torch.Tensor]:
    """A small ResNet: as a model, and as a class."""
    plain, model = resnet.plain(), resnet.symbolic()
    comparing.copy_weights(plain, model)
    return model.eval(), plain.eval(), torch.rand(4, 3, 32, 32)


def main() -> None:
    torch.set_num_threads(1)
    rows = ({f"{count} × Linear(4, 4)": deep(count) for count in (250, 500, 1000)}
            | {"toy ResNet, 32 × 32": toy_resnet()})
    for name, (model, plain, x) in rows.items():
        assert torch.equal(model(x), plain(x))
        for recorded in (True, False):
            with torch.set_grad_enabled(recorded):
                ours, theirs = alternate([Case(partial(m, x), tuple) for m in (model, plain)], Budget(rounds=15))
            ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
            print(f"{name:24}{'recorded' if recorded else 'not recorded':14}{ratio:.2f}")


if __name__ == "__main__":
    main()
