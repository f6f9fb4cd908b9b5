"""Next words: an LSTM with tied weights, and a Transformer, on a text that is made up."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1111)
ntokens, emsize, bptt, batch_size = 20, 16, 7, 5
chain = torch.softmax(4 * torch.randn(ntokens, ntokens), dim=1)
words = [0]
for _ in range(5 * 36 - 1):
    words.append(int(torch.multinomial(chain[words[-1]], 1)))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.2, tie_weights=True):
        super(RNNModel, self).__init__()
        self.ntoken, self.nhid, self.nlayers = ntoken, nhid, nlayers
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid)


class TransformerModel(nn.Transformer):
    def __init__(self, ntoken, ninp):
        super(TransformerModel, self).__init__(d_model=ninp, nhead=2, dim_feedforward=24, num_encoder_layers=1, num_decoder_layers=0, dropout=0.1)
        self.input_emb = nn.Embedding(ntoken, ninp)
        position = torch.arange(0, 64, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, ninp, 2).float() * (-math.log(10000.0) / ninp))
        pe = torch.zeros(64, ninp)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div_term), torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0).transpose(0, 1))
        self.decoder = nn.Linear(ninp, ntoken)
        self.ninp = ninp

    def forward(self, src):
        mask = torch.log(torch.tril(torch.ones(len(src), len(src))))
        src = self.input_emb(src) * math.sqrt(self.ninp)
        output = self.encoder(src + self.pe[:src.size(0)], mask=mask)
        return F.log_softmax(self.decoder(output), dim=-1).view(-1, self.decoder.out_features)


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


data = batchify(torch.tensor(words).type(torch.int64), batch_size)
criterion = nn.NLLLoss()
model, transformer = RNNModel(ntokens, emsize, emsize, 2), TransformerModel(ntokens, emsize)
adam = torch.optim.Adam(transformer.parameters(), lr=0.01)
lr = 5
for epoch in range(4):
    hidden = model.init_hidden(batch_size)
    for i in range(0, data.size(0) - 1, bptt):
        seq_len = min(bptt, len(data) - 1 - i)
        source, targets = data[i:i + seq_len], data[i + 1:i + 1 + seq_len].view(-1)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(source, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        adam.zero_grad()
        other = criterion(transformer(source), targets)
        other.backward()
        adam.step()
        print("| epoch {:3d} | {:5d} batches | loss {:5.4f} | ppl {:8.3f} | transformer {:5.4f}".format(epoch, i, loss.item(), math.exp(loss.item()), other.item()))
print(model.decoder.weight is model.encoder.weight, sum(p.numel() for p in model.parameters()))
