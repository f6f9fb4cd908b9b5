"""Densely Connected Convolutional Networks (Huang et al., 2016): every layer reads what all before it have found."""
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F


class DenseLayer(nn.Module):
    def __init__(self, channels, growth, bottleneck, dropout):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, bottleneck * growth, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm2d(bottleneck * growth)
        self.conv2 = nn.Conv2d(bottleneck * growth, growth, kernel_size=3, padding=1, bias=False)
        self.dropout = dropout

    def forward(self, *found):
        x = torch.cat(found, dim=1)
        x = self.conv1(self.norm1(x).relu())
        x = self.conv2(torch.relu_(self.norm2(x)))
        return F.dropout(x, self.dropout, self.training)


class DenseBlock(nn.ModuleDict):
    def __init__(self, depth, channels, growth, bottleneck, dropout):
        super().__init__()
        for i in range(depth):
            self[f"layer{i + 1}"] = DenseLayer(channels + i * growth, growth, bottleneck, dropout)

    def forward(self, x):
        found = [x]
        for layer in self.values():
            found.append(layer(*found))
        return torch.cat(found, 1)


class Transition(nn.Sequential):
    """Half the channels, half the size."""

    def __init__(self, channels):
        super().__init__(OrderedDict(norm=nn.BatchNorm2d(channels), relu=nn.ReLU(),
                                     conv=nn.Conv2d(channels, channels // 2, 1, bias=False),
                                     pool=nn.AvgPool2d(2, 2)))


class DenseNet(nn.Module):
    """DenseNet-121 by default."""

    def __init__(self, depths=(6, 12, 24, 16), growth=32, stem=64, bottleneck=4, dropout=0.0, classes=1000):
        super().__init__()
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(3, stem, 7, stride=2, padding=3, bias=False))
        self.features.add_module("norm0", nn.BatchNorm2d(stem))
        self.features.add_module("relu0", nn.ReLU(inplace=True))
        self.features.add_module("pool0", nn.MaxPool2d(kernel_size=3, stride=2, padding=1))
        channels = stem
        for i, depth in enumerate(depths, 1):
            self.features.add_module(f"denseblock{i}", DenseBlock(depth, channels, growth, bottleneck, dropout))
            channels += depth * growth
            if i < len(depths):
                self.features.add_module(f"transition{i}", Transition(channels))
                channels //= 2
        self.norm = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, classes)
        for name, parameter in self.named_parameters():
            if "conv" in name:
                nn.init.kaiming_normal_(parameter)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x):
        x = F.relu(self.norm(self.features(x)), inplace=True)
        x = F.adaptive_avg_pool2d(x, (1, 1)).view(x.size(0), -1)
        return self.classifier(x)
