"""Recurrent Neural Network Regularization (Zaremba et al., 2014), with the tied weights of Press & Wolf (2016)."""
import torch
import torch.nn as nn


class LanguageModel(nn.Module):
    """Tokens (T, N) and a state → logits (T, N, V) and the next state."""

    def __init__(self, vocabulary=10000, width=650, layers=2, dropout=0.5, tied=True):
        super().__init__()
        self.encoder = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, width, layers, dropout=dropout)
        self.decoder = nn.Linear(width, vocabulary)
        self.drop = nn.Dropout(dropout)
        nn.init.uniform_(self.encoder.weight, -0.05, 0.05)
        nn.init.uniform_(self.decoder.weight, -0.05, 0.05)
        nn.init.zeros_(self.decoder.bias)
        for name, weight in self.rnn.named_parameters():
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(weight)
            elif name.startswith("bias_ih"):
                with torch.no_grad():
                    weight.chunk(4)[1].fill_(1.0)               # the forget gates start open
        if tied:
            self.decoder.weight = self.encoder.weight

    def forward(self, tokens, state=None):
        out, state = self.rnn(self.drop(self.encoder(tokens)), state)
        return self.decoder(self.drop(out)), state

    def start(self, batch):
        """A state of zeros, where the weights are."""
        weight = next(self.parameters())
        shape = self.rnn.num_layers, batch, self.rnn.hidden_size
        return weight.new_zeros(shape), weight.new_zeros(shape)


def detached(state):
    return tuple(h.detach() for h in state)
