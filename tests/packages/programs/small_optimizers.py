"""lion-pytorch, schedulefree, prodigyopt: optimizers that train a small network, resume from their state, average."""

import copy

import torch
from lion_pytorch import Lion
from prodigyopt import Prodigy
from schedulefree import AdamWScheduleFree, RAdamScheduleFree, SGDScheduleFree

x = torch.linspace(-2, 2, 40).reshape(-1, 1)
y = torch.sin(2 * x)


def run(model, optimizer, steps):
    """Train for some steps; return the losses."""
    losses, switched = [], hasattr(optimizer, "train")
    if switched:
        optimizer.train()
    for _ in range(steps):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 4))
    if switched:
        optimizer.eval()
    return losses


for name, make in {
    "Lion": lambda p: Lion(p, lr=2e-3, weight_decay=1e-2),
    "Lion, decoupled": lambda p: Lion(p, lr=2e-3, decoupled_weight_decay=True, weight_decay=0.1),
    "Prodigy": lambda p: Prodigy(p, weight_decay=0.01),
    "Prodigy, safeguarded": lambda p: Prodigy(p, safeguard_warmup=True, use_bias_correction=True, slice_p=2),
    "AdamWScheduleFree": lambda p: AdamWScheduleFree(p, lr=0.02, warmup_steps=3),
    "AdamWScheduleFree, loops": lambda p: AdamWScheduleFree(p, lr=0.02, foreach=False, r=1.0),
    "SGDScheduleFree": lambda p: SGDScheduleFree(p, lr=0.3, weight_decay=1e-3),
    "RAdamScheduleFree": lambda p: RAdamScheduleFree(p, lr=0.02),
}.items():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = make(model.parameters())
    first = run(model, optimizer, 8)
    again = copy.deepcopy(model)
    later = make(again.parameters())
    later.load_state_dict(optimizer.state_dict())
    print(name, first, run(model, optimizer, 4), run(again, later, 4), torch.nn.functional.mse_loss(model(x), y))
