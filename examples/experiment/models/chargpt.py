"""The GPT of examples/chargpt, as a model of an experiment."""

import tensorgrad as torch
from examples.chargpt.model import GPT
from tensorgrad import nn
from tensorgrad.experiment import models


@models.register("chargpt")
class CharGPT(nn.Module):
    """Characters batch["text"], numbers (N, T) → logits (N, letters, T) for the character after each."""

    def __init__(self, letters: int, context: int = 64, embed: int = 96, num_heads: int = 4, num_layers: int = 3,
                 dropout: float = 0.0) -> None:
        super().__init__()
        self.gpt = GPT(letters, context, embed, num_heads, num_layers, dropout)

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.gpt(batch["text"]).transpose(1, 2)
