"""gpytorch: an exact Gaussian process, kernels, a variational one, predictions with uncertainty."""
import math
import warnings

import gpytorch
import torch

warnings.simplefilter("ignore")
torch.manual_seed(0)
x = torch.linspace(0, 1, 40)
y = torch.sin(x * 2 * math.pi) + torch.randn(40) * 0.1


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Exact(x, y, likelihood).train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for step in range(20):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print("exact", step, f"{loss.item():.3f} {model.covar_module.base_kernel.lengthscale.item():.3f} "
              f"{likelihood.noise.item():.3f}")
model.eval(), likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    predicted = likelihood(model(torch.linspace(0, 1, 7)))
    print("mean", [round(v, 2) for v in predicted.mean.tolist()])
    print("variance", [round(v, 3) for v in predicted.variance.tolist()])
    lower, upper = predicted.confidence_region()
    print("region", f"{(upper - lower).mean().item():.3f}")
points = torch.rand(6, 2, generator=torch.Generator().manual_seed(1))
for kernel in (gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=2), gpytorch.kernels.PeriodicKernel(),
               gpytorch.kernels.LinearKernel(), gpytorch.kernels.RQKernel(), gpytorch.kernels.CosineKernel(),
               gpytorch.kernels.PolynomialKernel(power=2),
               gpytorch.kernels.RBFKernel(active_dims=[0]) + gpytorch.kernels.MaternKernel(nu=0.5)):
    matrix = kernel(points).to_dense()
    print(type(kernel).__name__, f"{matrix.sum().item():.4f} {matrix[0, 1].item():.4f}")


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        strategy = gpytorch.variational.VariationalStrategy(
            self, points, gpytorch.variational.CholeskyVariationalDistribution(len(points)))
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


labels = (y > 0).float()
model, likelihood = Variational(x[::4].unsqueeze(1)).train(), gpytorch.likelihoods.BernoulliLikelihood()
objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=40)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(5):         # rounding grows tenfold in the next five
    optimizer.zero_grad()
    loss = -objective(model(x.unsqueeze(1)), labels)
    loss.backward()
    optimizer.step()
print("variational", f"{loss.item():.3f}", ((likelihood(model.eval()(x.unsqueeze(1))).mean > 0.5).float() == labels).sum().item())
