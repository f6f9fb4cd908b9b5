"""zuko: normalizing flows of several kinds: densities, samples, inverses, training, and its distributions."""

import torch
import zuko

torch.manual_seed(0)
x, context = torch.randn(5, 3), torch.randn(5, 2)
for name, options in {
    "MAF": {"transforms": 2},
    "NSF": {"transforms": 2, "bins": 4},
    "NICE": {"transforms": 2},
    "SOSPF": {"degree": 2, "polynomials": 2},
    "NAF": {"transforms": 1, "signal": 4},
    "UNAF": {"transforms": 1},
    "BPF": {"degree": 6},
    "NCSF": {},
    "CNF": {"hidden_features": (8,)},
    "GF": {"components": 3},
}.items():
    torch.manual_seed(1)
    hidden = {} if name == "CNF" else {"hidden_features": (16, 16)}
    flow = getattr(zuko.flows, name)(3, context=2, **hidden, **options)
    inside = x.tanh() * (3 if name == "NCSF" else 1)
    density = flow(context).log_prob(inside)
    loss = -density.mean()
    loss.backward()
    print(
        name,
        sum(p.numel() for p in flow.parameters()),
        density,
        sum(p.grad.norm() for p in flow.parameters() if p.grad is not None),
    )
    transform = flow(context).transform
    print("inverse", (transform.inv(transform(inside)) - inside).abs().max() < 1e-3)
torch.manual_seed(0)
flow = zuko.flows.NSF(2, transforms=2, bins=4, hidden_features=(16,))
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
data = torch.stack([torch.linspace(-1, 1, 40), torch.linspace(-1, 1, 40) ** 2], 1)
for step in range(4):
    loss = -flow().log_prob(data).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, loss)
torch.manual_seed(2)
print("samples", flow().sample((3,)), flow().rsample_and_log_prob((2,))[1])
print("ode", zuko.utils.odeint(lambda t, y: -y * t, torch.ones(2), 0.0, 1.0, phi=()))
print("bisection", zuko.utils.bisection(lambda v: v**3, torch.tensor([2.0, 5.0]), 0.0, 3.0, n=12))
mixture = zuko.distributions.Mixture(
    torch.distributions.Normal(torch.tensor([0.0, 2.0]), torch.ones(2)), torch.zeros(2)
)
print(
    "distributions",
    mixture.log_prob(torch.tensor(1.0)),
    zuko.distributions.BoxUniform(-torch.ones(2), torch.ones(2)).log_prob(torch.zeros(2)),
    zuko.distributions.Minimum(torch.distributions.Exponential(torch.ones(2)), 3).log_prob(torch.ones(2)),
    zuko.distributions.Maximum(torch.distributions.Normal(0.0, 1.0), 3).log_prob(torch.tensor(0.5)),
)
mlp = zuko.nn.MLP(3, 2, [8], normalize=True)
masked = zuko.nn.MaskedMLP(torch.tensor([[True, False, False], [True, True, False]]), [8])
print(
    "masked",
    torch.autograd.functional.jacobian(masked, x[0]) != 0,
    mlp(x)[0],
    zuko.nn.MonotonicMLP(1, 1, [4])(torch.zeros(1, 1)),
)
