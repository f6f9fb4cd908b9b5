"""Small packages: torch-ema, entmax, opt_einsum, pytorch-msssim."""
import opt_einsum
import torch
from entmax import Entmax15Loss, SparsemaxLoss, entmax15, entmax_bisect, sparsemax
from pytorch_msssim import ms_ssim, ssim
from torch_ema import ExponentialMovingAverage

torch.manual_seed(0)
x = torch.randn(3, 6, requires_grad=True)
for activation in (sparsemax, entmax15, lambda v: entmax_bisect(v, 1.3)):
    y = activation(x)
    print(y, torch.autograd.grad((y * torch.arange(6.0)).sum(), x)[0])
for criterion in (SparsemaxLoss(), Entmax15Loss()):
    loss = criterion(x, torch.tensor([0, 1, 2]))
    print(loss, torch.autograd.grad(loss, x)[0][0])
a, b, c = torch.randn(3, 4), torch.randn(4, 5), torch.randn(5, 3)
print(opt_einsum.contract("ij,jk,kl->il", a, b, c),
      opt_einsum.contract_expression("ij,jk->ik", (3, 4), (4, 5))(a, b).sum())
image, other = torch.rand(1, 3, 176, 176, requires_grad=True), torch.rand(1, 3, 176, 176)
value = ssim(image, other, data_range=1.0)
value.backward()
print(value, image.grad.abs().sum(), ms_ssim(image, other, data_range=1.0))
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
average = ExponentialMovingAverage(model.parameters(), decay=0.9)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.ones(2, 3)).square().sum().backward()
    optimizer.step()
    average.update()
with average.average_parameters():
    print(model.weight)
print(model.weight, average.state_dict()["num_updates"])
