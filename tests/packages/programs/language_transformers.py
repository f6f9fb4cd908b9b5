"""x-transformers: language models with several positions and norms, generation, an encoder with a decoder, training."""

import tempfile

import torch
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper, XTransformer

words = torch.randint(0, 40, (3, 24), generator=torch.Generator().manual_seed(1))
for options in (
    {},
    {"rotary_pos_emb": True, "ff_glu": True},
    {"alibi_pos_bias": True, "use_rmsnorm": True},
    {"attn_flash": True, "attn_kv_heads": 2},
    {"rel_pos_bias": True, "attn_pre_talking_heads": True},
    {"sandwich_norm": True, "ff_swish": True, "attn_qk_norm": True},
):
    torch.manual_seed(0)
    model = TransformerWrapper(num_tokens=40, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=4, **options))
    out = model(words)
    out.square().mean().backward()
    grads = [p.grad.abs().sum() for p in model.parameters() if p.grad is not None]
    print(sorted(options), sum(p.numel() for p in model.parameters()), out[0, -1, :4], torch.stack(grads).sum())

torch.manual_seed(0)
model = AutoregressiveWrapper(
    TransformerWrapper(
        num_tokens=40, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True)
    )
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(6):
    loss = model(words)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    print("step", step, loss)
print("greedy", model.generate(words[:, :4], 10, temperature=0.0).tolist())
print("no cache", model.generate(words[:, :4], 10, temperature=0.0, cache_kv=False).tolist())
with tempfile.TemporaryDirectory() as folder:
    torch.save(model.state_dict(), folder + "/model.pt")
    again = AutoregressiveWrapper(
        TransformerWrapper(
            num_tokens=40, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True)
        )
    )
    again.load_state_dict(torch.load(folder + "/model.pt"))
    print("loaded", torch.equal(again(words), model(words)))

torch.manual_seed(0)
encoder = TransformerWrapper(num_tokens=40, max_seq_len=32, attn_layers=Encoder(dim=32, depth=1, heads=2))
print(
    "masked", encoder(words, mask=torch.arange(24) < torch.tensor([[24], [10], [3]]), return_embeddings=True)[:, 0, :3]
)
both = XTransformer(
    dim=32,
    enc_num_tokens=40,
    enc_depth=1,
    enc_heads=2,
    enc_max_seq_len=32,
    dec_num_tokens=40,
    dec_depth=1,
    dec_heads=2,
    dec_max_seq_len=32,
)
loss = both(words, words[:, :8], mask=torch.ones(3, 24).bool())
loss.backward()
print("translation", loss, both.encoder.token_emb.emb.weight.grad.norm())
