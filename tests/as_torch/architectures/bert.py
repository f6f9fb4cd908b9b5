"""BERT (Devlin et al., 2018): an encoder that guesses masked words, and whether two sentences belong together."""
import torch
from torch import nn


class Embeddings(nn.Module):
    def __init__(self, vocabulary, width, length, dropout):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.places = nn.Embedding(length, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("order", torch.arange(length).expand((1, -1)))

    def forward(self, tokens, segments):
        x = self.words(tokens) + self.places(self.order[:, :tokens.shape[1]]) + self.segments(segments)
        return self.dropout(self.norm(x))


class Bert(nn.Module):
    """Tokens (N, T), segments (N, T) → logits of the words (N, T, V), of the order of the sentences (N, 2)."""

    def __init__(self, vocabulary=30522, width=768, heads=12, layers=12, hidden=3072, length=512, dropout=0.1):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, width, length, dropout)
        layer = nn.TransformerEncoderLayer(width, heads, dim_feedforward=hidden, dropout=dropout, activation="gelu",
                                           layer_norm_eps=1e-12,
                                           batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=layers)
        self.pooler = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width, eps=1e-12))
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.order = nn.Linear(width, 2)
        self.apply(start)

    def forward(self, tokens, segments):
        x = self.encoder(self.embeddings(tokens, segments), src_key_padding_mask=tokens.eq(0))
        words = nn.functional.linear(self.transform(x), self.embeddings.words.weight, self.bias)
        return words, self.order(self.pooler(x[:, 0]))


def start(module):
    if isinstance(module, nn.Linear | nn.Embedding):
        module.weight.data.normal_(mean=0.0, std=0.02)
    if isinstance(module, nn.Embedding) and module.padding_idx is not None:
        module.weight.data[module.padding_idx].zero_()
    if isinstance(module, nn.Linear) and module.bias is not None:
        module.bias.data.zero_()


def masked_loss(outputs, words, order):
    """Only masked words count: the others are -100."""
    logits, pair = outputs
    return nn.CrossEntropyLoss()(logits.view(-1, logits.shape[-1]), words.view(-1)) + nn.CrossEntropyLoss()(pair, order)
