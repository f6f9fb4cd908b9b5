"""A flow of affine couplings that learns two moons, with the transforms of torch.distributions."""
import math

import torch
import torch.distributions as D
from torch import nn

torch.manual_seed(12)
angle = torch.rand(128) * math.pi
moons = torch.stack([torch.cos(angle), torch.sin(angle)], 1)
moons[64:] = torch.tensor([1.0, 0.5]) - moons[64:]
moons += 0.05 * torch.randn_like(moons)


class AffineCoupling(D.Transform):
    domain = codomain = D.constraints.real_vector
    bijective = True

    def __init__(self, net, first):
        super().__init__(cache_size=1)
        self.net, self.first = net, first

    def _scale_shift(self, kept):
        s, t = self.net(kept).chunk(2, dim=-1)
        return torch.tanh(s), t

    def _call(self, x):
        a, b = x.split(1, -1) if self.first else x.flip(-1).split(1, -1)
        s, t = self._scale_shift(a)
        out = torch.cat([a, b * s.exp() + t], -1)
        return out if self.first else out.flip(-1)

    def _inverse(self, y):
        a, b = y.split(1, -1) if self.first else y.flip(-1).split(1, -1)
        s, t = self._scale_shift(a)
        out = torch.cat([a, (b - t) * (-s).exp()], -1)
        return out if self.first else out.flip(-1)

    def log_abs_det_jacobian(self, x, y):
        return self._scale_shift(x[..., :1] if self.first else x[..., 1:])[0].sum(-1)


nets = nn.ModuleList(nn.Sequential(nn.Linear(1, 16), nn.SiLU(), nn.Linear(16, 2)) for _ in range(4))
loc, log_scale = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
optimizer = torch.optim.NAdam([{"params": nets.parameters()}, {"params": [loc, log_scale], "lr": 1e-2}], lr=5e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, factor=0.5)


def flow():
    base = D.Independent(D.Normal(torch.zeros(2), torch.ones(2)), 1)
    transforms = [AffineCoupling(net, i % 2 == 0) for i, net in enumerate(nets)]
    return D.TransformedDistribution(base, [*transforms, D.transforms.IndependentTransform(D.AffineTransform(loc, log_scale.exp()), 1)])


for step in range(40):
    optimizer.zero_grad()
    loss = -flow().log_prob(moons).mean()
    loss.backward()
    optimizer.step()
    scheduler.step(loss.item())
    print(step, loss.item(), optimizer.param_groups[0]["lr"])
with torch.no_grad():
    sample = flow().sample((64,))
print(sample.mean(0), flow().rsample().requires_grad, D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 2.0)).item())
