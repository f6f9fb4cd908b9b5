"""A polynomial fitted to a sine: by hand, with nn, with a module of its own."""
import math

import torch

torch.manual_seed(0)
x = torch.linspace(-math.pi, math.pi, 200)
y = torch.sin(x)

a, b, c, d = (torch.randn((), requires_grad=True) for _ in range(4))
for step in range(20):
    loss = (a + b * x + c * x ** 2 + d * x ** 3 - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 1e-6 * p.grad
            p.grad = None
    print(step, loss.item())
print(f"y = {a.item():.4f} + {b.item():.4f} x + {c.item():.4f} x^2 + {d.item():.4f} x^3")


class Polynomial3(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.randn(()))
        self.b = torch.nn.Parameter(torch.randn(()))

    def forward(self, x):
        return self.a + self.b * x

    def string(self):
        return f"y = {self.a.item():.4f} + {self.b.item():.4f} x"


powers = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3]))
model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
line = Polynomial3()
loss_fn = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
other = torch.optim.SGD(line.parameters(), lr=1e-4, momentum=0.9, nesterov=True)
for step in range(30):
    optimizer.zero_grad()
    loss = loss_fn(model(powers), y)
    loss.backward()
    optimizer.step()
    other.zero_grad()
    mine = loss_fn(line(x), y)
    mine.backward()
    other.step()
    print(step, loss.item(), mine.item())
print(line.string(), model[0])
