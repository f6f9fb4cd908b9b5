"""torchsde: solvers of stochastic differential equations, gradients through them and by the adjoint equation."""

import torch
import torchsde


class Equation(torch.nn.Module):
    """dy = f(t, y) dt + g(t, y) dW, of which `noise_type` and `sde_type` say what kind it is."""

    def __init__(self, noise_type, sde_type):
        super().__init__()
        self.noise_type, self.sde_type = noise_type, sde_type
        torch.manual_seed(0)
        self.drift, self.shape = (
            torch.nn.Linear(3, 3),
            {"general": (3, 2), "additive": (3, 2), "scalar": (3, 1)}.get(noise_type),
        )
        self.diffusion = torch.nn.Parameter(torch.rand(self.shape or (3,)))

    def f(self, t, y):
        return torch.tanh(self.drift(y)) * (1 + t)

    def g(self, t, y):
        if self.noise_type == "diagonal":
            return 0.3 * torch.sigmoid(y * self.diffusion)
        scale = torch.ones_like(y)[..., None] if self.noise_type == "additive" else torch.sin(y)[..., None]
        return 0.3 * scale * self.diffusion


times = torch.linspace(0, 1, 5)
for noise_type, sde_type, method in (
    ("diagonal", "ito", "euler"),
    ("diagonal", "ito", "milstein"),
    ("diagonal", "ito", "srk"),
    ("scalar", "stratonovich", "midpoint"),
    ("general", "stratonovich", "heun"),
    ("additive", "ito", "srk"),
    ("general", "stratonovich", "reversible_heun"),
):
    equation, start = Equation(noise_type, sde_type), torch.ones(2, 3, requires_grad=True)
    size = (2, equation.shape[1]) if equation.shape else (2, 3)
    noise = torchsde.BrownianInterval(
        t0=0.0, t1=1.0, size=size, entropy=5, levy_area_approximation="space-time" if method == "srk" else "none"
    )
    found = torchsde.sdeint(equation, start, times, bm=noise, method=method, dt=0.1)
    grads = torch.autograd.grad(found[-1].square().sum(), [start, equation.diffusion])
    print(noise_type, sde_type, method, found[-1], grads[0][0], grads[1].sum())
equation, start = Equation("general", "stratonovich"), torch.ones(2, 3, requires_grad=True)
for method, adjoint in (("midpoint", "midpoint"), ("reversible_heun", "adjoint_reversible_heun")):
    noise = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(2, 2), entropy=7)
    found = torchsde.sdeint_adjoint(equation, start, times, bm=noise, method=method, adjoint_method=adjoint, dt=0.1)
    print("adjoint", method, found[-1, 0], torch.autograd.grad(found[-1].sum(), [start, equation.diffusion]))
noise = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(2, 3), entropy=5, levy_area_approximation="space-time")
print(
    "adaptive",
    torchsde.sdeint(
        Equation("diagonal", "ito"), start, times, bm=noise, method="srk", adaptive=True, rtol=1e-2, atol=1e-2, dt=0.1
    )[-1],
)
tree = torchsde.BrownianTree(t0=0.0, w0=torch.zeros(3), t1=1.0, entropy=3)
path = torchsde.BrownianPath(t0=0.0, w0=torch.zeros(3))
print("paths", tree(0.5), (tree(0.2, 0.9) - tree(0.2, 0.4) - tree(0.4, 0.9)).abs().max() < 1e-5, path(0.3).shape)
optimizer = torch.optim.Adam(equation.parameters(), lr=0.05)
for step in range(3):
    noise = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(2, 2), entropy=step)
    loss = (
        torchsde.sdeint_adjoint(equation, start.detach(), times, bm=noise, method="midpoint", dt=0.2)[-1]
        .square()
        .mean()
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, loss)
