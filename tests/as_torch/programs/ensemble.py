"""An ensemble in one call, and a gradient for each sample: vmap, grad, functional_call."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, hessian, jacrev, stack_module_state, vmap

torch.manual_seed(0)


class SimpleMLP(nn.Module):
    def __init__(self):
        super(SimpleMLP, self).__init__()
        self.fc1 = nn.Linear(6, 10)
        self.fc2 = nn.Linear(10, 3)

    def forward(self, x):
        x = x.flatten(1)
        return self.fc2(F.relu(self.fc1(x)))


data, targets = torch.randn(16, 1, 6), torch.randint(3, (16,))
models = [SimpleMLP() for _ in range(5)]
params, buffers = stack_module_state(models)
base_model = copy.deepcopy(models[0]).to("meta")


def fmodel(params, buffers, x):
    return functional_call(base_model, (params, buffers), (x,))


predictions = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, data)
assert torch.allclose(predictions, torch.stack([m(data) for m in models]), atol=1e-5)
print(predictions.shape, predictions.std(0).mean().item())

model = models[0]
params = {k: v.detach() for k, v in model.named_parameters()}


def compute_loss(params, sample, target):
    return F.cross_entropy(functional_call(model, params, (sample.unsqueeze(0),)), target.unsqueeze(0))


per_sample = vmap(grad(compute_loss), in_dims=(None, 0, 0))
for step in range(20):
    grads = per_sample(params, data, targets)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
    clip = (1.0 / norms).clamp(max=1.0)
    params = {k: p - 0.3 * torch.einsum("n,n...->...", clip, grads[k]) / len(data) for k, p in params.items()}
    print(step, vmap(compute_loss, (None, 0, 0))(params, data, targets).mean().item(), norms.mean().item())
print(jacrev(torch.sin)(torch.tensor([0.0, 1.0])), hessian(lambda x: x.prod())(torch.tensor([1.0, 2.0, 3.0])))
