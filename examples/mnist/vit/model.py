"""A vision transformer: the image as a row of patches that look at each other."""

import tensorgrad as torch
import tensorgrad.nn.functional as F
from tensorgrad import nn


class Layer(nn.Module):
    """Attention, then a perceptron for each patch, each added to its input and normalised after."""

    def __init__(self, embed, num_heads, norm, dropout):
        super().__init__()
        self.attention = nn.MultiheadAttention(embed, num_heads, batch_first=True)
        self.perceptron = nn.Sequential(nn.Linear(embed, 2 * embed), nn.ReLU(), nn.Linear(2 * embed, embed))
        self.norm, self.dropout = norm, nn.Dropout(dropout)

    def forward(self, x):
        seen, _ = self.attention(x, x, x, need_weights=False)
        x = self.norm(x + self.dropout(seen))
        return self.norm(x + self.dropout(self.perceptron(x)))


class ViT(nn.Module):
    """(N, 1, size, size) to (N, classes). All layers share one LayerNorm."""

    def __init__(self, size=28, patch_size=4, embed=128, num_heads=2, num_layers=1, classes=10, dropout=0.1):
        super().__init__()
        if size % patch_size:
            raise ValueError(f"patches of {patch_size} pixels do not fill an image of {size}")
        self.patch_size = patch_size
        self.embed = nn.Linear(patch_size**2, embed)
        self.position = nn.Parameter(0.5 * torch.randn((size // patch_size) ** 2, embed))
        norm = nn.LayerNorm(embed)
        self.layers = nn.Sequential(*[Layer(embed, num_heads, norm, dropout) for _ in range(num_layers)])
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(embed, classes)

    def forward(self, images):
        patches = F.unfold(images, self.patch_size, stride=self.patch_size).transpose(1, 2)  # (N, patches, pixels)
        tokens = self.dropout(self.embed(patches) + self.position)                           # (N, patches, embed)
        return self.head(self.layers(tokens).mean(1))
