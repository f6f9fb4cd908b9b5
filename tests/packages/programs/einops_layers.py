"""einops: rearrangements as functions and as layers, with their gradients."""
import torch
from einops import einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce

torch.manual_seed(0)
x = torch.randn(2, 3, 8, 6, requires_grad=True)
print(rearrange(x, "b c (h h2) (w w2) -> (b h w) (c h2 w2)", h2=2, w2=3).shape, parse_shape(x, "b _ h w"))
for how in ("mean", "max", "min", "sum", "prod"):
    y = reduce(x, "b c (h 2) (w 2) -> b h w c", how)
    print(how, y.shape, f"{y.sum().item():.4f}", f"{torch.autograd.grad((y * y).sum(), x)[0].sum().item():.4f}")
print(repeat(x[:, :, 0, 0], "b c -> c (b k) 1", k=2).shape, reduce(x, "b ... -> b", torch.logsumexp))
packed, shapes = pack([x[:, 0, 0], x[:, 0, 0, 0], x], "b *")
print(packed.shape, shapes, [part.shape for part in unpack(packed, shapes, "b *")])
print(einsum(x, torch.randn(6, 5), "b c h w, w k -> b h k").sum())
net = torch.nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=2, q=2),
    EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=12, d=10),
    torch.nn.GELU(), EinMix("b t d -> b s d", weight_shape="t s d", t=12, s=4, d=10), Reduce("b s d -> b d", "mean"),
    torch.nn.Linear(10, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(5):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(x.detach()), torch.tensor([0, 1]))
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.5f}")
print(net)
try:
    rearrange(x, "b c h w -> b (c h)")
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
