"""A toy ResNet for pictures of 32×32 pixels, with two residual blocks: 223,242 parameters, sixteen lines in either
notation.
"""

import tensorgrad as torch
from tensorgrad import layers as L
from tensorgrad import nn
from tensorgrad.symbolic import Input, SymbolicModel


def symbolic(classes=10):
    """Call layers with symbols: `layer(x)`."""
    picture = Input((3, 32, 32))
    x = nn.Conv2d(picture.C, 32, 3)(picture).relu()
    x = nn.Conv2d(x.C, 64, 3)(x).relu()
    first = nn.MaxPool2d(3)(x)
    x = nn.Conv2d(first.C, 64, 3, padding=1)(first).relu()
    x = nn.Conv2d(x.C, 64, 3, padding=1)(x).relu()
    second = x + first
    x = nn.Conv2d(second.C, 64, 3, padding=1)(second).relu()
    x = nn.Conv2d(x.C, 64, 3, padding=1)(x).relu()
    third = x + second
    x = nn.Conv2d(third.C, 64, 3)(third).relu()
    x = nn.AvgPool2d(x.HW)(x).flatten(1)
    x = nn.Linear(x.features, 256)(x).relu()
    x = nn.Dropout(0.5)(x)
    scores = nn.Linear(x.features, classes)(x)
    return SymbolicModel(picture, scores)


def chained(classes=10):
    """Call symbols with layers: `x(layer)(next_layer)`."""
    picture = Input((3, 32, 32))
    x = picture(nn.Conv2d(picture.C, 32, 3))(nn.ReLU())
    x = x(nn.Conv2d(x.C, 64, 3))(nn.ReLU())
    first = x(nn.MaxPool2d(3))
    x = first(nn.Conv2d(first.C, 64, 3, padding=1))(nn.ReLU())
    x = x(nn.Conv2d(x.C, 64, 3, padding=1))(nn.ReLU())
    second = x + first
    x = second(nn.Conv2d(second.C, 64, 3, padding=1))(nn.ReLU())
    x = x(nn.Conv2d(x.C, 64, 3, padding=1))(nn.ReLU())
    third = x + second
    x = third(nn.Conv2d(third.C, 64, 3))(nn.ReLU())
    x = x(nn.AvgPool2d(x.HW))(nn.Flatten())
    x = x(nn.Linear(x.features, 256))(nn.ReLU())
    x = x(nn.Dropout(0.5))
    scores = x(nn.Linear(x.features, classes))
    return SymbolicModel(picture, scores)


def layers(classes=10):
    """Build layers from their output sizes; they infer their input sizes."""
    picture = L.Placeholder((None, 3, 32, 32))
    first = L.Sequential(L.Conv2d(32, 3), L.ReLU(), L.Conv2d(64, 3), L.ReLU(), L.MaxPool2d(3))(picture)

    def block():
        return L.Sequential(L.Conv2d(64, 3, padding=1), L.ReLU(), L.Conv2d(64, 3, padding=1), L.ReLU())
    second = block()(first) + first
    third = block()(second) + second
    x = L.Sequential(L.Conv2d(64, 3), L.ReLU(), L.AdaptiveAvgPool2d(1), L.Flatten())(third)
    return L.Functional(picture, L.Sequential(L.Linear(256), L.ReLU(), L.Dropout(0.5), L.Linear(classes))(x))


class ToyResNet(nn.Module):
    """(N, 3, 32, 32) to (N, classes). Layers are defined apart from their use, and 7 × 7 was computed by hand."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.conv3 = nn.Conv2d(64, 64, 3, padding=1)
        self.conv4 = nn.Conv2d(64, 64, 3, padding=1)
        self.conv5 = nn.Conv2d(64, 64, 3, padding=1)
        self.conv6 = nn.Conv2d(64, 64, 3, padding=1)
        self.conv7 = nn.Conv2d(64, 64, 3)
        self.shrink, self.average = nn.MaxPool2d(3), nn.AvgPool2d(7)
        self.hidden, self.dropout, self.head = nn.Linear(64, 256), nn.Dropout(0.5), nn.Linear(256, classes)

    def forward(self, pictures):
        x = self.conv2(self.conv1(pictures).relu()).relu()
        first = self.shrink(x)
        second = first + self.conv4(self.conv3(first).relu()).relu()
        third = second + self.conv6(self.conv5(second).relu()).relu()
        x = self.average(self.conv7(third).relu()).flatten(1)
        return self.head(self.dropout(self.hidden(x).relu()))


plain = ToyResNet


def inputs():
    """Return example inputs."""
    return (torch.rand(2, 3, 32, 32),)
