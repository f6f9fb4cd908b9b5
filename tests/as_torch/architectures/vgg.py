"""Very Deep Convolutional Networks (Simonyan & Zisserman, 2014): small convolutions, many of them, and a wide
classifier.
"""
import torch
from torch import nn

VGG11 = (1, "M", 2, "M", 4, 4, "M", 8, 8, "M", 8, 8, "M")        # widths in units of the first; "M" is a pooling


class VGG(nn.Module):
    def __init__(self, plan=VGG11, width=64, hidden=4096, classes=1000, dropout=0.5):
        super().__init__()
        layers, channels = nn.ModuleList(), 3
        for step in plan:
            if step == "M":
                layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            else:
                layers.extend([nn.Conv2d(channels, step * width, kernel_size=3, padding=1), nn.ReLU(inplace=True)])
                channels = step * width
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(channels * 7 * 7, hidden), nn.ReLU(True), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(True), nn.Dropout(dropout),
            nn.Linear(hidden, classes))
        self.apply(self.start)

    @staticmethod
    @torch.no_grad()
    def start(module):
        if type(module) is nn.Conv2d:
            nn.init.kaiming_uniform_(module.weight, nonlinearity="relu")
            module.bias.fill_(0)
        if type(module) is nn.Linear:
            module.weight.normal_(0, module.in_features ** -0.5)
            module.bias.zero_()

    def forward(self, x):
        x = self.pool(self.features(x))
        return self.classifier(torch.flatten(x, 1))
