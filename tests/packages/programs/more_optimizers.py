"""torch-optimizer: every optimizer of the package trains the same network."""
import torch
import torch_optimizer
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(24, 4), torch.randn(24, 1)
for name in sorted(torch_optimizer._NAME_OPTIM_MAP if hasattr(torch_optimizer, "_NAME_OPTIM_MAP") else ()):
    kind = torch_optimizer._NAME_OPTIM_MAP[name]
    if kind.__name__ in ("Lookahead",) or not kind.__module__.startswith("torch_optimizer"):
        continue
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    options = {"epsilon": 0.1} if name == "shampoo" else {}
    optimizer = kind(net.parameters(), lr=1e-2, **options)
    losses = []

    def closure(optimizer=optimizer, net=net, name=name):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward(create_graph=name == "adahessian")
        return loss
    for _ in range(6):
        loss = closure() if name == "adahessian" else None
        loss = optimizer.step(closure) if loss is None else (optimizer.step(), loss)[1]
        losses.append(f"{float(loss):.5f}")
    print(name, *losses, len(optimizer.state), sorted(optimizer.param_groups[0])[:4])
lookahead = torch_optimizer.Lookahead(torch_optimizer.RAdam(net.parameters(), lr=1e-2), k=2)
for _ in range(4):
    lookahead.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    lookahead.step()
    print(f"{loss.item():.5f}")
