"""A graph convolutional network, on a random graph of three communities; then one with attention."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter

torch.manual_seed(42)
n, classes = 36, 3
labels = torch.arange(n) % classes
p = torch.where(labels[:, None] == labels[None, :], 0.4, 0.05)
upper = torch.bernoulli(p).triu(1)
adj = upper + upper.T + torch.eye(n)
d = adj.sum(1).pow(-0.5)
norm_adj = d[:, None] * adj * d[None, :]
features = F.one_hot(labels, classes).float() + torch.randn(n, classes)
idx_train, idx_test = torch.split(torch.randperm(n), [12, 24])


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        self.bias = Parameter(torch.FloatTensor(out_features))
        stdv = 1. / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        return torch.mm(adj, torch.mm(input, self.weight)) + self.bias


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1, self.gc2 = GraphConvolution(classes, 8), GraphConvolution(8, classes)

    def forward(self, x, adj):
        x = F.dropout(F.relu(self.gc1(x, adj)), 0.5, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.W = nn.Parameter(torch.empty(classes, 8))
        self.a = nn.Parameter(torch.empty(16, 1))
        nn.init.xavier_uniform_(self.W, gain=1.414)
        nn.init.xavier_uniform_(self.a, gain=1.414)
        self.out = nn.Linear(8, classes)

    def forward(self, x, adj):
        h = x @ self.W
        e = F.leaky_relu((h @ self.a[:8]) + (h @ self.a[8:]).T, 0.2)
        attention = torch.where(adj > 0, e, -9e15 * torch.ones_like(e)).softmax(dim=1)
        message = torch.zeros_like(h).index_add_(0, torch.arange(n), attention @ h)
        return F.log_softmax(self.out(F.elu(message)), dim=1)


for model, matrix in ((GCN(), norm_adj), (GAT(), adj)):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
    for epoch in range(25):
        model.train()
        optimizer.zero_grad()
        output = model(features, matrix)
        loss = F.nll_loss(output[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()
        model.eval()
        output = model(features, matrix)
        accuracy = output[idx_test].max(1)[1].type_as(labels).eq(labels[idx_test]).double().sum() / len(idx_test)
        print("Epoch: {:04d}".format(epoch + 1), "loss_train: {:.4f}".format(loss.item()), "acc_test: {:.4f}".format(accuracy.item()))
