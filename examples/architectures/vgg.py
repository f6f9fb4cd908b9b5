"""VGG-13 with batch normalization, for pictures of 32×32 pixels: 9,413,066 parameters."""

import tensorgrad as torch
from tensorgrad import layers as L
from tensorgrad import nn
from tensorgrad.symbolic import Input, SymbolicModel

STAGES = 64, 128, 256, 512, 512     # channels; each stage has two convolutions and halves the picture


def symbolic(classes=10):
    """Build the graph in a loop; `x` knows its number of channels."""
    picture = x = Input((3, 32, 32))
    for channels in STAGES:
        for _ in range(2):
            x = nn.Conv2d(x.C, channels, 3, padding=1, bias=False)(x)
            x = nn.BatchNorm2d(x.C)(x).relu()
        x = nn.MaxPool2d(2)(x)
    x = x.flatten(1)
    return SymbolicModel(picture, nn.Linear(x.features, classes)(x))


def layers(classes=10):
    """Build a list of layers, which infer their input sizes."""
    def stage(channels):
        return [layer for _ in range(2) for layer in (L.Conv2d(channels, 3, padding=1, bias=False), L.BatchNorm2d(),
                                                      L.ReLU())] + [L.MaxPool2d(2)]
    features = [layer for channels in STAGES for layer in stage(channels)]
    return L.Sequential(*features, L.Flatten(), L.Linear(classes)).build((None, 3, 32, 32))


class VGG(nn.Module):
    """(N, 3, 32, 32) to (N, classes)."""

    def __init__(self, classes=10):
        super().__init__()
        layers, inputs = [], 3
        for channels in STAGES:
            for _ in range(2):
                layers += [nn.Conv2d(inputs, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
                inputs = channels
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(512, classes)     # one pixel is left after halving five times

    def forward(self, pictures):
        return self.head(self.features(pictures).flatten(1))


plain = VGG


def inputs():
    """Return example inputs."""
    return (torch.rand(2, 3, 32, 32),)
