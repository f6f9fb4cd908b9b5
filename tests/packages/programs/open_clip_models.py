"""open_clip: a small model of pictures and texts: features, logits, a training step, its tokenizer, files."""

import tempfile

import torch
from open_clip import CLIP, ClipLoss, CoCa, get_tokenizer
from open_clip.loss import CoCaLoss, SigLipLoss

tokenizer = get_tokenizer("ViT-B-32", context_length=16)
texts = tokenizer(["a photo of a cat", "two dogs", "nothing at all", "the sea in winter"])
print(texts[:, :6].tolist())
vision = {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8}
text = {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
images = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(1))
for quick, pool in ((False, "tok"), (True, "avg")):
    torch.manual_seed(0)
    model = CLIP(embed_dim=24, vision_cfg=vision | {"pool_type": pool}, text_cfg=text, quick_gelu=quick)
    picture, words, scale = model(images, texts)
    print(pool, sum(p.numel() for p in model.parameters()), picture[0, :4], words[0, :4], scale)
    print((scale * picture @ words.T).softmax(1)[0])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-6)
for criterion in (ClipLoss(), SigLipLoss()):
    for _ in range(2):
        optimizer.zero_grad()
        outputs = model(images, texts)
        bias = {"logit_bias": torch.tensor(-1.0)} if isinstance(criterion, SigLipLoss) else {}
        loss = criterion(*outputs, **bias)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, 4.6052)
        print(type(criterion).__name__, loss, model.logit_scale)
with tempfile.TemporaryDirectory() as folder:
    torch.save({"state_dict": model.state_dict()}, folder + "/model.pt")
    again = CLIP(embed_dim=24, vision_cfg=vision | {"pool_type": "avg"}, text_cfg=text, quick_gelu=True)
    again.load_state_dict(torch.load(folder + "/model.pt")["state_dict"])
    print("loaded", torch.equal(again.encode_image(images), model.encode_image(images)))
model.set_grad_checkpointing()
model.lock_image_tower()
print("locked", sum(p.requires_grad for p in model.parameters()), ClipLoss()(*model(images, texts)))

torch.manual_seed(0)
model = CoCa(
    embed_dim=32,
    multimodal_cfg={"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1},
    text_cfg=text | {"embed_cls": True, "output_tokens": True},
    vision_cfg=vision | {"attentional_pool": True, "attn_pooler_heads": 2, "output_tokens": True},
)
torch.nn.init.normal_(model.text_decoder.text_projection, std=0.02)  # left as it was in memory
outputs = model(images, texts)
print({name: tuple(torch.as_tensor(value).shape) for name, value in outputs.items()})
losses = CoCaLoss(caption_loss_weight=2.0, clip_loss_weight=1.0)(**outputs)
sum(losses).backward()
print("captions", losses, model.visual.conv1.weight.grad.norm())
