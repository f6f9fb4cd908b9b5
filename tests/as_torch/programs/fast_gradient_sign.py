"""Images changed by the sign of a gradient, so that a classifier errs; and again, in several steps."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable, grad

torch.manual_seed(7)
x = torch.randn(80, 12)
y = (x @ torch.randn(12, 3)).argmax(1)
model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.LayerNorm(24), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-4)
for step in range(30):
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
    loss.backward()
    optimizer.step()
    print(step, loss.item())


def fgsm_attack(data, epsilon, data_grad):
    return torch.clamp(data + epsilon * data_grad.sign(), -3, 3)


model.eval()
for epsilon in [0, .05, .1, .2, .4]:
    data = Variable(x.clone(), requires_grad=True)
    loss = F.nll_loss(F.log_softmax(model(data), dim=1), y)
    model.zero_grad()
    loss.backward()
    adversarial = fgsm_attack(data, epsilon, data.grad.data)
    accuracy = (model(adversarial).max(1, keepdim=True)[1].squeeze() == y).sum().item() / len(y)
    print("Epsilon: {}\tTest Accuracy = {:.4f}\tloss {:.5f}".format(epsilon, accuracy, loss.item()))

delta = torch.zeros_like(x, requires_grad=True)
for step in range(8):
    loss = F.cross_entropy(model(x + delta), y)
    g, = grad(loss, delta)
    with torch.no_grad():
        delta += 0.05 * g / g.norm(p=2, dim=1, keepdim=True).clamp_min(1e-12)
        delta.clamp_(-0.2, 0.2)
    print(step, loss.item(), delta.abs().max().item())
penalty = grad(F.cross_entropy(model(x.requires_grad_()), y), x, create_graph=True)[0].pow(2).sum()
penalty.backward()
print(penalty.item(), model[0].weight.grad.norm().item())
