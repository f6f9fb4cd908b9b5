"""pytorch-optimizer: over a hundred optimizers train a layer, schedules, losses, and wrappers round an optimizer."""

import warnings

import torch
from pytorch_optimizer import (
    SAM,
    BCEFocalLoss,
    BiTemperedLogisticLoss,
    CosineAnnealingWarmupRestarts,
    DiceLoss,
    Lookahead,
    LovaszHingeLoss,
    OrthoGrad,
    get_chebyshev_schedule,
    get_supported_optimizers,
    get_wsd_schedule,
    load_optimizer,
)

warnings.simplefilter("ignore")
x, y = torch.randn(24, 6, generator=torch.Generator().manual_seed(1)), torch.arange(24) % 3
criterion = torch.nn.CrossEntropyLoss()


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


for name in sorted(map(str, get_supported_optimizers())):
    model = network()
    try:
        optimizer = load_optimizer(name)(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward(create_graph=True)
            optimizer.step(loss.item)
        print(name, criterion(model(x), y))
    except (AttributeError, ImportError, NotImplementedError, TypeError, ValueError, RuntimeError) as error:
        print(name, type(error).__name__)

model = network()
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
for _ in range(3):
    criterion(model(x), y).backward()
    optimizer.first_step(zero_grad=True)
    criterion(model(x), y).backward()
    optimizer.second_step(zero_grad=True)
print("SAM", criterion(model(x), y))
for make in (lambda p: Lookahead(torch.optim.Adam(p, lr=0.05), k=2), lambda p: OrthoGrad(torch.optim.SGD(p, lr=0.1))):
    model = network()
    optimizer = make(model.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    print(type(optimizer).__name__, criterion(model(x), y))
optimizer = torch.optim.SGD(network().parameters(), lr=0.1)
schedule = CosineAnnealingWarmupRestarts(optimizer, first_cycle_steps=6, max_lr=0.1, min_lr=0.01, warmup_steps=2)
rates = []
for _ in range(8):
    optimizer.step()
    schedule.step()
    rates.append(optimizer.param_groups[0]["lr"])
print(
    "rates",
    torch.tensor(rates),
    [
        get_chebyshev_schedule(torch.optim.SGD(network().parameters(), lr=0.1), 4).lr_lambdas[0](step)
        for step in range(4)
    ],
)
schedule = get_wsd_schedule(torch.optim.SGD(network().parameters(), lr=0.1), 2, 3, 4, 2)
print("warm, stable, decay", [schedule.lr_lambdas[0](step) for step in range(9)])
logits, mask = torch.randn(2, 1, 6, 6, requires_grad=True), (torch.arange(72).reshape(2, 1, 6, 6) % 3 == 0).float()
for loss in (
    BCEFocalLoss()(logits.sigmoid(), mask),
    DiceLoss("binary")(logits, mask),
    LovaszHingeLoss()(logits[:, 0], mask[:, 0]),
):
    print(loss, torch.autograd.grad(loss, logits)[0].abs().sum())
print(BiTemperedLogisticLoss(t1=0.8, t2=1.4)(torch.randn(4, 3), torch.eye(3)[[0, 1, 2, 0]]))
