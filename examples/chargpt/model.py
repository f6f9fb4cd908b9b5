"""A GPT: the text so far in, the next character's chances out."""

import tensorgrad as torch
import tensorgrad.nn.functional as F
from tensorgrad import nn


class Attention(nn.Module):
    """Every position looks at itself and the ones before it, with several heads."""

    def __init__(self, embed, num_heads):
        super().__init__()
        if embed % num_heads:
            raise ValueError(f"{num_heads} heads cannot share {embed} numbers evenly")
        self.num_heads = num_heads
        self.query_key_value = nn.Linear(embed, 3 * embed)
        self.out = nn.Linear(embed, embed)

    def forward(self, x):                                                            # (N, T, embed)
        n, t, embed = x.shape
        heads = self.query_key_value(x).reshape(n, t, 3, self.num_heads, embed // self.num_heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)                             # (N, heads, T, embed / heads)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(seen.transpose(1, 2).reshape(n, t, embed))


class Layer(nn.Module):
    """Attention, then a perceptron for each position; each reads a normalised copy and adds to the stream."""

    def __init__(self, embed, num_heads, dropout):
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(embed), Attention(embed, num_heads), nn.Dropout(dropout))
        self.think = nn.Sequential(nn.LayerNorm(embed), nn.Linear(embed, 4 * embed), nn.GELU(),
                                   nn.Linear(4 * embed, embed), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.think(x)


class GPT(nn.Module):
    """Characters (N, T), as numbers, to logits (N, T, letters) for the character after each."""

    def __init__(self, letters, context, embed, num_heads, num_layers, dropout=0.0):
        super().__init__()
        self.context = context
        self.letter, self.position = nn.Embedding(letters, embed), nn.Embedding(context, embed)
        self.layers = nn.Sequential(*[Layer(embed, num_heads, dropout) for _ in range(num_layers)], nn.LayerNorm(embed))
        self.head = nn.Linear(embed, letters, bias=False)
        self.apply(start_small)

    def forward(self, text):
        places = torch.arange(text.shape[1], device=text.device)
        return self.head(self.layers(self.letter(text) + self.position(places)))

    @torch.no_grad()
    def write(self, text, length, temperature=0.8):
        """`text` (N, T), continued by `length` characters drawn at random; the colder, the likelier ones."""
        self.eval()
        for _ in range(length):
            logits = self(text[:, -self.context:])[:, -1]
            text = torch.cat([text, torch.multinomial((logits / temperature).softmax(-1), 1)], 1)
        return text


def start_small(module):
    """Weights near zero, so that all letters are about equally likely at first."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
