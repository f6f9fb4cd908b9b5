"""Parts of models: vector quantizers, rotary embeddings, vision transformers, local attention, moving averages."""

import torch
from ema_pytorch import EMA
from local_attention import LocalAttention
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.mobile_vit import MobileViT

torch.manual_seed(0)
x = torch.randn(2, 20, 16, requires_grad=True)
for quantizer in (
    VectorQuantize(dim=16, codebook_size=12, decay=0.8, commitment_weight=1.0),
    VectorQuantize(dim=16, codebook_size=12, use_cosine_sim=True, codebook_dim=4),
    VectorQuantize(dim=16, codebook_size=12, kmeans_init=True, kmeans_iters=3, rotation_trick=True),
    ResidualVQ(dim=16, codebook_size=8, num_quantizers=3),
):
    for _ in range(2):
        quantized, indices, loss = quantizer(x)
    (grad,) = torch.autograd.grad(quantized.square().sum() + loss.sum(), x)
    print(type(quantizer).__name__, quantized[0, 0, :3], indices.flatten()[:8].tolist(), loss, grad.abs().sum())
levels, indices = FSQ(levels=[8, 5, 5, 5], dim=16)(x)
print("FSQ", levels[0, 0, :3], indices[0, :6].tolist())
quantized, indices, loss = LFQ(dim=16, codebook_size=256, entropy_loss_weight=0.1)(x)
print("LFQ", quantized[0, 0, :3], indices[0, :6].tolist(), loss)

rotary = RotaryEmbedding(dim=8)
q, k = torch.randn(1, 2, 10, 16), torch.randn(1, 2, 10, 16)
print(
    "rotary",
    rotary.rotate_queries_or_keys(q)[0, 1, 5, :6],
    rotary.rotate_queries_with_cached_keys(q[:, :, -1:], k)[0][0, 0, 0, :4],
)
axial = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=16).get_axial_freqs(3, 4)
print("axial", apply_rotary_emb(axial, torch.ones(1, 3, 4, 16))[0, 1, 2, :6])
attention = LocalAttention(dim=16, window_size=5, causal=True, look_backward=1, autopad=True, exact_windowsize=True)
print("local", attention(q, k, k, mask=torch.arange(10)[None] < 8)[0, 0, ::3, :2])

image = torch.randn(2, 3, 32, 32)
for name, model in {
    "ViT": ViT(image_size=32, patch_size=8, num_classes=5, dim=24, depth=2, heads=2, mlp_dim=32),
    "SimpleViT": SimpleViT(image_size=32, patch_size=8, num_classes=5, dim=24, depth=1, heads=2, mlp_dim=32),
    "CaiT": CaiT(image_size=32, patch_size=8, num_classes=5, dim=24, depth=1, cls_depth=1, heads=2, mlp_dim=32),
    "MobileViT": MobileViT(
        image_size=(64, 64), dims=[8, 12, 16], channels=[4, 4, 8, 8, 12, 12, 16, 16, 16, 16, 24], num_classes=5
    ),
}.items():
    out = model.eval()(image if name != "MobileViT" else torch.nn.functional.interpolate(image, scale_factor=2))
    out.sum().backward()
    print(name, out[0, :3], sum(p.grad.norm() for p in model.parameters() if p.grad is not None))
model = torch.nn.Linear(4, 2)
average = EMA(model, beta=0.9, update_after_step=1, update_every=2)
for _ in range(8):
    with torch.no_grad():
        model.weight.add_(0.1)
    average.update()
print("EMA", average(torch.ones(1, 4)), model(torch.ones(1, 4)), sorted(average.state_dict())[:3])
