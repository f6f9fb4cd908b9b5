"""An Image is Worth 16x16 Words (Dosovitskiy et al., 2020): patches of an image as the words of a transformer."""
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width, heads, hidden, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attention = nn.MultiheadAttention(width, heads, dropout=dropout, batch_first=True)
        self.drop = nn.Dropout(dropout)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, width),
                                 nn.Dropout(dropout))

    def forward(self, x):
        y = self.norm1(x)
        y, _ = self.attention(y, y, y, need_weights=False)
        x = x + self.drop(y)
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """ViT-B/16 by default."""

    def __init__(self, size=224, patch=16, width=768, depth=12, heads=12, hidden=3072, classes=1000, dropout=0.1):
        super().__init__()
        assert size % patch == 0
        self.patches = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.empty(1, (size // patch) ** 2 + 1, width))
        nn.init.trunc_normal_(self.places, std=0.02)
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Sequential(*(Encoder(width, heads, hidden, dropout) for _ in range(depth)),
                                     nn.LayerNorm(width, eps=1e-6))
        self.head = nn.Linear(width, classes)
        nn.init.xavier_uniform_(self.head.weight)
        nn.init.constant_(self.head.bias, -1.0)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        return self.head(self.encoder(self.drop(x))[:, 0])
