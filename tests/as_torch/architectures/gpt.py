"""Language Models are Unsupervised Multitask Learners (Radford et al., 2019): GPT-2, attention written out."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class Config:
    vocabulary: int = 50257
    context: int = 1024
    layers: int = 12
    heads: int = 12
    width: int = 768
    dropout: float = 0.1


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.proj = nn.Linear(config.width, config.width)
        self.drop = nn.Dropout(config.dropout)
        self.register_buffer("mask", torch.tril(torch.ones(config.context, config.context)).view(1, 1, config.context,
                                                                                                 config.context),
                             persistent=False)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(C, dim=2))
        att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        att = self.drop(F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attention = CausalSelfAttention(config)
        self.mlp = nn.ModuleDict(dict(
            fc=nn.Linear(config.width, 4 * config.width),
            act=nn.GELU(approximate="tanh"),
            proj=nn.Linear(4 * config.width, config.width)))
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x):
        x = x + self.drop(self.attention(self.ln1(x)))
        m = self.mlp
        return x + self.drop(m.proj(m.act(m.fc(self.ln2(x)))))


class GPT(nn.Module):
    def __init__(self, **sizes):
        super().__init__()
        self.config = config = Config(**sizes)
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(config.vocabulary, config.width),
            "wpe": nn.Embedding(config.context, config.width),
            "h": nn.ModuleList([Block(config) for _ in range(config.layers)]),
            "ln_f": nn.LayerNorm(config.width)})
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.transformer.wte.weight = self.head.weight
        self.apply(self._start)
        for name, p in self.named_parameters():
            if name.endswith("proj.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * config.layers))

    def _start(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if getattr(module, "bias", None) is not None:
                torch.nn.init.zeros_(module.bias)

    def forward(self, tokens):
        places = torch.arange(0, tokens.size(1), dtype=torch.long, device=tokens.device).unsqueeze(0)
        x = self.transformer.wte(tokens) + self.transformer.wpe(places)
        x = F.dropout(x, self.config.dropout, training=self.training)
        for block in self.transformer.h:
            x = block(x)
        return self.head(self.transformer.ln_f(x))

    def groups(self, decay):
        """Matrices decay, vectors do not."""
        parameters = [p for p in self.parameters() if p.requires_grad]
        return [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": decay},
                {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
