"""Training steps: forward, loss, backward, optimizer."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from . import nets
from .timing import Case
from .workloads import TOLERANCE, Workload


class Step(NamedTuple):
    """A step of training, which gives its loss; the modules that it trains with their optimizers, and its inputs."""

    run: Callable[[], Any]
    trained: dict[str, tuple[Any, Any]]
    inputs: tuple[Any, ...]

    def parameters(self) -> list[Any]:
        return [p for module, _ in self.trained.values() for p in module.parameters()]


def classify(net: Callable[..., nets.Net], optimizer: Callable[..., Any]) -> Callable[..., Step]:
    """Images to their class, or every token to the next."""
    def make(engine: Any, tiny: bool, batch: int) -> Step:
        model, draw, classes = net(engine, tiny)
        x, cross_entropy = draw(batch), engine.nn.functional.cross_entropy
        y = engine.randint(0, classes, x.shape[:1] if x.is_floating_point() else x.shape).reshape(-1)
        updates = optimizer(engine.optim, model.parameters())

        def step() -> Any:
            updates.zero_grad()
            out = model(x)
            out = out[0] if isinstance(out, tuple) else out
            loss = cross_entropy(out.reshape(-1, classes), y)
            loss.backward()
            updates.step()
            return loss
        return Step(step, {"model": (model, updates)}, (x, y))
    return make


def reconstruct(engine: Any, tiny: bool, batch: int) -> Step:
    """The bound of a VAE: how well images come back, and how far codes are from normal."""
    model, draw, _ = nets.vae(engine, tiny)
    x, F, updates = draw(batch), engine.nn.functional, engine.optim.Adam(model.parameters())

    def step() -> Any:
        updates.zero_grad()
        out, mean, spread = model(x)
        loss = F.binary_cross_entropy(out, x, reduction="sum") - 0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum()
        loss.backward()
        updates.step()
        return loss
    return Step(step, {"model": (model, updates)}, (x,))


def forge(engine: Any, tiny: bool, batch: int) -> Step:
    """A step of the judge, on real and forged images, and one of the forger."""
    (forger, noise, _), (judge, images, _) = nets.generator(engine, tiny), nets.discriminator(engine, tiny)
    real, z, loss_of = images(batch), noise(batch), engine.nn.BCELoss()
    yes, no = engine.ones(batch), engine.zeros(batch)
    updates_of_judge, updates_of_forger = (engine.optim.Adam(net.parameters(), 2e-4, betas=(0.5, 0.999))
                                           for net in (judge, forger))

    def step() -> Any:
        updates_of_judge.zero_grad()
        forged = forger(z)
        loss = loss_of(judge(real), yes) + loss_of(judge(forged.detach()), no)
        loss.backward()
        updates_of_judge.step()
        updates_of_forger.zero_grad()
        deceit = loss_of(judge(forged), yes)
        deceit.backward()
        updates_of_forger.step()
        return loss + deceit.detach()
    return Step(step, {"judge": (judge, updates_of_judge), "forger": (forger, updates_of_forger)}, (real, z))


STEPS: dict[str, tuple[Callable[..., Step], int]] = {                  # name: how it is made, its batch
    "MLP 784-256-128-10, batch 64, SGD": (classify(nets.mlp, lambda optim, p: optim.SGD(p, 0.1)), 64),
    "MNIST CNN, batch 32, Adam": (classify(nets.cnn, lambda optim, p: optim.Adam(p)), 32),
    "ResNet-18 on 32 × 32, batch 32, SGD with momentum": (classify(nets.resnet,
                                                                   lambda optim, p: optim.SGD(p, 0.01, momentum=0.9)),
                                                          32),
    "ViT, 49 patches, width 128, 2 heads, batch 32, Adam": (classify(nets.vit, lambda optim, p: optim.Adam(p)), 32),
    "char-GPT, 4 layers of 128, 64 letters, batch 12, AdamW": (classify(nets.chargpt, lambda optim, p: optim.AdamW(p)),
                                                               12),
    "LSTM language model, 2 × 256, 32 words, batch 32, Adam": (classify(nets.lstm, lambda optim, p: optim.Adam(p)), 32),
    "VAE 784-400-20, batch 64, Adam": (reconstruct, 64),
    "DCGAN pair on 64 × 64, width 32, batch 16, Adam": (forge, 16),
}


def step_of(name: str, engine: Any, tiny: bool = False, batch: int | None = None) -> Step:
    make, usual = STEPS[name]
    engine.manual_seed(0)
    return make(engine, tiny, batch or (4 if tiny else usual))


def case(name: str, engine: Any, tiny: bool) -> Case:
    step = step_of(name, engine, tiny)

    def results() -> list[Any]:
        """The losses of three steps, and the gradients of the first."""
        first = step.run()
        gradients = [p.grad.clone() for p in step.parameters() if p.grad is not None]
        return [engine.stack([first, step.run(), step.run()]), *gradients]
    return Case(step.run, results)


# Of half a million inputs of the forger's last ReLU, one or two round to the other side of 0, which moves the sums of
# gradients below it by a percent or more: in float32 PyTorch is as far from float64 as we are.
TOLERANCES = {name: 0.1 if "DCGAN" in name else TOLERANCE for name in STEPS}
ROWS = [Workload(name, partial(case, name), tolerance=TOLERANCES[name]) for name in STEPS]
