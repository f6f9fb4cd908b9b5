"""torchdiffeq: solvers, gradients through them and by the adjoint equation, events."""
import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

torch.manual_seed(0)
t = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], dtype=torch.float64, requires_grad=True)
start = torch.tensor([2.0, 0.5], dtype=torch.float64)
for method in ("dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun", "euler", "midpoint", "heun3", "rk4",
               "explicit_adams", "implicit_adams"):
    y = odeint(lambda t, y: torch.tanh(y @ matrix), start, t, method=method)
    print(method, y[-1], torch.autograd.grad(y[-1].sum(), matrix)[0])


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        self.calls = 0

    def forward(self, t, y):
        self.calls += 1
        return self.net(y ** 3)


field = Field().double()
optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
target = odeint(lambda t, y: (y ** 3) @ matrix.detach(), start, t, method="dopri5")
for solve in (odeint, odeint_adjoint):
    for step in range(3):
        optimizer.zero_grad()
        loss = (solve(field, start, t, rtol=1e-5, atol=1e-5) - target).abs().mean()
        loss.backward()
        optimizer.step()
        print(solve.__name__, step, f"{loss.item():.5f}", field.calls)

gravity = torch.tensor(9.8, dtype=torch.float64, requires_grad=True)
state = (torch.tensor(10.0, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64))
when, path = odeint_event(lambda t, s: (s[1], -gravity), state, torch.tensor(0.0, dtype=torch.float64),
                          event_fn=lambda t, s: s[0], reverse_time=False,
                          odeint_interface=odeint, atol=1e-8, rtol=1e-8)
when.backward()
print(when, gravity.grad, path[1][-1])
