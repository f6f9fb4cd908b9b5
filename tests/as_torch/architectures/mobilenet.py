"""MobileNetV2: Inverted Residuals and Linear Bottlenecks (Sandler et al., 2018): widen, filter each channel alone,
narrow.
"""
import torch
from torch import nn

STAGES = (  # expansion, channels, blocks, stride of the first
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def divisible(channels, by):
    """The nearest multiple, but never less than nine tenths."""
    nearest = max(by, int(channels + by / 2) // by * by)
    return nearest if nearest >= 0.9 * channels else nearest + by


def conv(channels, width, size=3, stride=1, groups=1, activate=True):
    layers = [nn.Conv2d(channels, width, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(width)]
    return layers + [nn.ReLU6(inplace=True)] * activate


class InvertedResidual(nn.Module):
    def __init__(self, channels, width, stride, expansion):
        super().__init__()
        hidden = channels * expansion
        widen = conv(channels, hidden, size=1) if expansion != 1 else []
        self.body = nn.Sequential(*widen, *conv(hidden, hidden, stride=stride, groups=hidden),
                                  *conv(hidden, width, size=1, activate=False))
        self.residual = stride == 1 and channels == width

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


class MobileNetV2(nn.Module):
    def __init__(self, width=1.0, last=1280, classes=1000, dropout=0.2, by=8):
        super().__init__()
        channels = divisible(32 * width, by)
        layers = conv(3, channels, stride=2)
        for expansion, c, blocks, first in STAGES:
            out = divisible(c * width, by)
            for i in range(blocks):
                layers.append(InvertedResidual(channels, out, first if i == 0 else 1, expansion))
                channels = out
        layers += conv(channels, last, size=1)
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(last, classes))
        for module in self.modules():
            match module:
                case nn.Conv2d():
                    nn.init.kaiming_normal_(module.weight, mode="fan_out")
                case nn.Linear():
                    nn.init.normal_(module.weight, 0, 0.01)
                    nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.classifier(torch.mean(self.features(x), dim=[2, 3]))
