"""einx, jaxtyping, pytorch-crf, loralib, efficientnet: small packages for axes, types, tags, adapters and pictures."""

import einx
import loralib as lora
import torch
from efficientnet_pytorch import EfficientNet
from jaxtyping import Float, Int, jaxtyped
from torchcrf import CRF

torch.manual_seed(0)
x, weight = torch.randn(2, 3, 8, requires_grad=True), torch.randn(8, 5)
for out in (
    einx.id("a b (c d) -> a (b c) d", x, d=2),
    einx.sum("a [b] c", x),
    einx.mean("a b [c]", x),
    einx.softmax("a b [c]", x),
    einx.dot("a b [c], [c] d -> a b d", x, weight),
    einx.add("a b c, c", x, weight[:, 0]),
    einx.get_at("a [b] c, a -> a c", x, torch.tensor([0, 2])),
    einx.flip("a b [c]", x),
    einx.where("a b c, a b c,", x > 0, x, 0.0),
    einx.logsumexp("[...] c", x),
):
    print(tuple(out.shape), out.flatten()[:3], torch.autograd.grad(out.square().sum(), x)[0].sum())


@jaxtyped(typechecker=None)
def scaled(
    values: Float[torch.Tensor, "2 3 *rest"], order: Int[torch.Tensor, " 2"]  # noqa: F722
) -> Float[torch.Tensor, "2 3 *rest"]:  # noqa: F722
    return values[order]


print(
    scaled(x, torch.tensor([1, 0]))[0, 0, :2],
    isinstance(x, Float[torch.Tensor, "2 3 8"]),
    isinstance(x, Float[torch.Tensor, "2 3"]),
    isinstance(x.half(), Float[torch.Tensor, "..."]),
    isinstance(x, Int[torch.Tensor, "..."]),
)
crf = CRF(5, batch_first=True)
tags, mask = torch.tensor([[0, 1, 2], [3, 4, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]]).bool()
scores = torch.randn(2, 3, 5, requires_grad=True)
for reduction in ("sum", "mean", "token_mean", "none"):
    print(crf(scores, tags, mask=mask, reduction=reduction))
(-crf(scores, tags, mask=mask)).backward()
print(crf.decode(scores, mask=mask), scores.grad[0, 0], crf.transitions.grad[0])
layers = torch.nn.Sequential(
    lora.Linear(6, 8, r=2), torch.nn.ReLU(), lora.MergedLinear(8, 6, r=2, enable_lora=[True, False])
)
lora.mark_only_lora_as_trainable(layers, bias="lora_only")
optimizer = torch.optim.SGD([p for p in layers.parameters() if p.requires_grad], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = layers(torch.ones(2, 6)).square().sum()
    loss.backward()
    optimizer.step()
    print("lora", loss)
print(layers.eval()(torch.ones(1, 6)), layers.train()(torch.ones(1, 6)), sorted(lora.lora_state_dict(layers)))
net = EfficientNet.from_name("efficientnet-b0", num_classes=4)
image = torch.randn(2, 3, 64, 64)
print(
    "efficientnet",
    sum(p.numel() for p in net.parameters()),
    net.eval()(image)[0],
    {k: tuple(v.shape) for k, v in net.extract_endpoints(image).items()},
)
