"""Sequences turned round: an encoder, and a decoder that attends to it."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(5)
SOS, EOS, PAD, n_words, hidden = 0, 1, 2, 12, 24


class EncoderRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(n_words, hidden, padding_idx=PAD)
        self.gru = nn.GRU(hidden, hidden, batch_first=True, bidirectional=False)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.dropout(self.embedding(x)), lengths, batch_first=True, enforce_sorted=False)
        output, h = self.gru(packed)
        return pad_packed_sequence(output, batch_first=True)[0], h


class BahdanauAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores.masked_fill(mask.unsqueeze(1), float("-inf")), dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(n_words, hidden)
        self.attention = BahdanauAttention()
        self.gru = nn.GRU(2 * hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, n_words)

    def forward(self, encoder_outputs, h, mask, target):
        x = torch.empty(encoder_outputs.size(0), 1, dtype=torch.long).fill_(SOS)
        outputs, attentions = [], []
        for i in range(target.size(1)):
            embedded = self.embedding(x)
            context, weights = self.attention(h.permute(1, 0, 2), encoder_outputs, mask)
            output, h = self.gru(torch.cat((embedded, context), dim=2), h)
            outputs.append(self.out(output))
            attentions.append(weights)
            x = target[:, i].unsqueeze(1)
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), torch.cat(attentions, dim=1)


def collate(batch):
    target = [torch.cat([s.flip(0), torch.tensor([EOS])]) for s in batch]
    return (pad_sequence(batch, batch_first=True, padding_value=PAD), torch.tensor([len(s) for s in batch]),
            pad_sequence(target, batch_first=True, padding_value=PAD))


data = [torch.randint(3, n_words, (int(n),)) for n in torch.randint(2, 6, (64,))]
loader = DataLoader(data, batch_size=16, shuffle=True, collate_fn=collate)
encoder, decoder = EncoderRNN(), AttnDecoderRNN()
optimizers = [optim.Adam(m.parameters(), lr=0.01) for m in (encoder, decoder)]
criterion = nn.NLLLoss(ignore_index=PAD)
for epoch in range(6):
    for source, lengths, target in loader:
        for o in optimizers:
            o.zero_grad()
        encoder_outputs, h = encoder(source, lengths)
        decoder_outputs, attention = decoder(encoder_outputs, h, source == PAD, target)
        loss = criterion(decoder_outputs.view(-1, decoder_outputs.size(-1)), target.view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
        for o in optimizers:
            o.step()
        print(epoch, loss.item(), tuple(attention.shape))
encoder.eval()
with torch.no_grad():
    source, lengths, target = collate(data[:2])
    log_probs, attention = decoder(*encoder(source, lengths), source == PAD, target)
    print(log_probs.max(-1).values.mean().item(), attention[0].sum(-1))
