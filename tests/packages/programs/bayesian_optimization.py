"""botorch: Gaussian processes, acquisition functions of many kinds and their optimization, several objectives."""

import warnings

import torch
from botorch.acquisition import (
    ExpectedImprovement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
    UpperConfidenceBound,
    qExpectedImprovement,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qUpperConfidenceBound,
)
from botorch.acquisition.multi_objective import qLogExpectedHypervolumeImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.test_functions import Branin, Hartmann
from botorch.utils.multi_objective.box_decompositions import NondominatedPartitioning
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated
from gpytorch.mlls import ExactMarginalLogLikelihood, SumMarginalLogLikelihood

warnings.simplefilter("ignore")
torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
branin = Branin(negate=True)
x = torch.rand(12, 2) * torch.tensor([15.0, 15.0]) + torch.tensor([-5.0, 0.0])
y = branin(x).unsqueeze(-1)
print("functions", y[:3, 0], Hartmann()(torch.full((6,), 0.4)), branin.optimal_value)
model = SingleTaskGP(x, y, input_transform=Normalize(2), outcome_transform=Standardize(1))
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
posterior = model.posterior(x[:3] + 0.5)
print("posterior", posterior.mean[:, 0], posterior.variance[:, 0], model.covar_module.lengthscale)
points, best = torch.rand(4, 1, 2) * 10, y.max()
for function in (
    ExpectedImprovement(model, best),
    LogExpectedImprovement(model, best),
    ProbabilityOfImprovement(model, best),
    UpperConfidenceBound(model, beta=0.2),
):
    print(type(function).__name__, function(points))
sampler = SobolQMCNormalSampler(torch.Size([32]), seed=1)
pairs = (torch.rand(3, 2, 2) * 10).requires_grad_()
for function in (
    qExpectedImprovement(model, best, sampler),
    qLogExpectedImprovement(model, best, sampler),
    qUpperConfidenceBound(model, beta=0.2, sampler=sampler),
    qLogNoisyExpectedImprovement(model, x, sampler, prune_baseline=False),
):
    value = function(pairs)
    print(type(function).__name__, value, torch.autograd.grad(value.sum(), pairs)[0].abs().sum())
print(
    "knowledge",
    qKnowledgeGradient(model, num_fantasies=2, sampler=SobolQMCNormalSampler(torch.Size([2]), seed=2))(
        torch.rand(1, 3, 2) * 10
    ),
)
bounds = torch.tensor([[-5.0, 0.0], [10.0, 15.0]])
for function in (LogExpectedImprovement(model, best), UpperConfidenceBound(model, beta=1.0)):
    starts = torch.tensor([[[2.0, 3.0]], [[9.0, 2.0]], [[-3.0, 12.0]]])
    found, value = optimize_acqf(
        function, bounds, q=1, num_restarts=3, batch_initial_conditions=starts, options={"maxiter": 30}
    )
    print("optimum", [round(v, 2) for v in found[0].tolist()], round(value.item(), 3))
objectives = torch.stack([-(x[:, 0] ** 2), -((x[:, 1] - 2) ** 2)], 1)
both = ModelListGP(*[SingleTaskGP(x, objectives[:, i : i + 1], outcome_transform=Standardize(1)) for i in range(2)])
fit_gpytorch_mll(SumMarginalLogLikelihood(both.likelihood, both))
reference = torch.tensor([-40.0, -120.0])
parts = NondominatedPartitioning(ref_point=reference, Y=objectives)
print(
    "fronts",
    is_non_dominated(objectives).tolist(),
    Hypervolume(reference).compute(objectives[is_non_dominated(objectives)]),
    parts.compute_hypervolume(),
    qLogExpectedHypervolumeImprovement(both, reference, parts, sampler)(points),
)
