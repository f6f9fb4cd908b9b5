"""pyro: variational inference, Hamiltonian Monte Carlo, importance sampling, and effect handlers."""
import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.infer import MCMC, NUTS, SVI, Importance, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal
from pyro.nn import PyroModule, PyroSample
from pyro.optim import ClippedAdam

pyro.set_rng_seed(0)
data = torch.randn(50) * 0.5 + 2.0


def model(data):
    mean = pyro.sample("mean", dist.Normal(0.0, 5.0))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with pyro.plate("data", len(data)):
        return pyro.sample("obs", dist.Normal(mean, scale), obs=data)


for kind in (AutoDiagonalNormal, AutoMultivariateNormal):
    pyro.clear_param_store()
    pyro.set_rng_seed(1)
    guide = kind(model)
    svi = SVI(model, guide, ClippedAdam({"lr": 0.05}), Trace_ELBO())
    losses = [svi.step(data) for _ in range(60)]
    print(kind.__name__, f"{losses[0]:.1f} {losses[-1]:.1f}", {k: round(v.item(), 2) for k, v in guide.median().items()})
pyro.set_rng_seed(2)
samples = Predictive(model, guide=guide, num_samples=5)(data)
print("predictive", {k: tuple(v.shape) for k, v in samples.items()})
sampler = MCMC(NUTS(model, max_tree_depth=3), num_samples=8, warmup_steps=8, disable_progbar=True)
sampler.run(data)
print("nuts", [round(v, 2) for v in sampler.get_samples()["mean"][:3].tolist()])
trace = poutine.trace(poutine.condition(model, data={"mean": torch.tensor(2.0), "scale": torch.tensor(0.5)})).get_trace(data)
print("trace", list(trace.nodes), f"{trace.log_prob_sum().item():.3f}")
posterior = Importance(model, num_samples=10).run(data)
print("importance", round(posterior.get_log_normalizer().item()))


@config_enumerate
def mixture(data):
    weights = pyro.param("weights", torch.tensor([0.4, 0.6]), constraint=dist.constraints.simplex)
    means = pyro.param("means", torch.tensor([0.0, 3.0]))
    with pyro.plate("data", len(data)):
        which = pyro.sample("which", dist.Categorical(weights))
        pyro.sample("obs", dist.Normal(means[which], 1.0), obs=data)


pyro.clear_param_store()
svi = SVI(mixture, lambda data: None, ClippedAdam({"lr": 0.05}), TraceEnum_ELBO(max_plate_nesting=1))
print("enumerated", [round(svi.step(data), 2) for _ in range(3)], [round(v, 3) for v in pyro.param("weights").tolist()])


class Regression(PyroModule):
    def __init__(self):
        super().__init__()
        self.linear = PyroModule[torch.nn.Linear](2, 1)
        self.linear.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 2]).to_event(2))

    def forward(self, x, y=None):
        mean = self.linear(x).squeeze(-1)
        with pyro.plate("rows", len(x)):
            return pyro.sample("y", dist.Normal(mean, 0.1), obs=y)


pyro.clear_param_store()
pyro.set_rng_seed(3)
x = torch.randn(20, 2)
net = Regression()
svi = SVI(net, AutoDiagonalNormal(net), ClippedAdam({"lr": 0.02}), Trace_ELBO())
print("bayesian", [round(svi.step(x, x @ torch.tensor([1.0, -2.0])), 1) for _ in range(3)])
for d in (dist.Dirichlet(torch.ones(3)), dist.VonMises(0.0, 1.0), dist.Delta(torch.tensor(1.0)), dist.BetaBinomial(1.0, 2.0, 5)):
    print(type(d).__name__, f"{d.log_prob(d.sample()).sum().item():.2f}")
