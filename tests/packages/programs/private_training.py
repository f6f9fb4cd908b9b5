"""opacus: training with differential privacy: gradients of samples in several modes, noise, accounting, validation."""

import warnings

import torch
from opacus import PrivacyEngine
from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant
from opacus.accountants.utils import get_noise_multiplier
from opacus.grad_sample import GradSampleModule
from opacus.layers import DPLSTM, DPMultiheadAttention
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.validators import ModuleValidator
from torch import nn

warnings.simplefilter("ignore")


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))


images, labels = torch.randn(24, 1, 8, 8, generator=torch.Generator().manual_seed(1)), torch.arange(24) % 3
criterion = nn.CrossEntropyLoss()
for mode in ("hooks", "ew", "functorch"):
    model = (
        GradSampleModule(network())
        if mode == "hooks"
        else GradSampleModule(network(), force_functorch=True)
        if mode == "functorch"
        else None
    )
    if model is not None:
        criterion(model(images), labels).backward()
        print(mode, [(tuple(p.grad_sample.shape), p.grad_sample[0].norm()) for p in model.parameters()])
torch.manual_seed(0)
for layer, x in (
    (nn.Embedding(10, 4), torch.tensor([[1, 2], [3, 1]])),
    (nn.LayerNorm(4), torch.randn(2, 3, 4)),
    (nn.Conv1d(2, 4, 3, padding=1, groups=2), torch.randn(2, 2, 6)),
    (DPLSTM(3, 4, batch_first=True), torch.randn(2, 5, 3)),
    (nn.ConvTranspose2d(2, 3, 2, stride=2), torch.randn(2, 2, 3, 3))
    if False
    else (nn.Linear(3, 2), torch.randn(2, 4, 3)),
):
    model = GradSampleModule(layer)
    out = model(x)
    (out[0] if isinstance(out, tuple) else out).square().sum().backward()
    print(type(layer).__name__, [p.grad_sample.abs().sum() for p in model.parameters()])
attention = DPMultiheadAttention(8, 2)
print("attention", attention(*[torch.ones(3, 2, 8)] * 3)[0][0, 0, :3])

loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=8)
for clipping, mode in (("flat", "hooks"), ("per_layer", "hooks"), ("flat", "ghost")):
    engine, model = PrivacyEngine(accountant="rdp"), network()
    optimizer, loss_function = torch.optim.SGD(model.parameters(), lr=0.1), nn.CrossEntropyLoss()
    private = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=0.0,
        poisson_sampling=False,
        max_grad_norm=[0.5] * 6 if clipping == "per_layer" else 0.5,
        clipping=clipping,
        grad_sample_mode=mode,
        criterion=loss_function,
    )
    model, optimizer, batches = private[0], private[1], private[-1]
    loss_function = private[2] if mode == "ghost" else loss_function
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        print(clipping, mode, loss.item())
    print([p.detach().norm() for p in model.parameters()])
engine, model = PrivacyEngine(), network()
model, optimizer, batches = engine.make_private_with_epsilon(
    module=model,
    optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
    data_loader=loader,
    target_epsilon=3.0,
    target_delta=1e-3,
    epochs=2,
    max_grad_norm=1.0,
)
with BatchMemoryManager(data_loader=batches, max_physical_batch_size=4, optimizer=optimizer) as small:
    for x, y in small:
        optimizer.zero_grad()
        if len(x):
            criterion(model(x), y).backward()
            optimizer.step()
print("noise", optimizer.noise_multiplier, engine.get_epsilon(1e-3) > 0)
print(
    "wanted", get_noise_multiplier(target_epsilon=2.0, target_delta=1e-5, sample_rate=0.01, steps=100, accountant="rdp")
)
for accountant in (RDPAccountant(), GaussianAccountant(), PRVAccountant()):
    for _ in range(5):
        accountant.step(noise_multiplier=1.1, sample_rate=0.05)
    print(type(accountant).__name__, accountant.get_epsilon(delta=1e-5))
model = ModuleValidator.fix(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.LSTM(4, 4)))
print("fixed", [type(part).__name__ for part in model], ModuleValidator.is_valid(nn.Sequential(nn.BatchNorm1d(3))))
