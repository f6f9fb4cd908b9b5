"""A network with two inputs and two outputs: it classifies a grey and a coloured picture jointly.
614,228 parameters.
"""

import tensorgrad as torch
from tensorgrad import layers as L
from tensorgrad import nn
from tensorgrad.symbolic import Input, SymbolicModel


def look(picture):
    """Return 200 features of a picture of any size."""
    x = nn.Conv2d(picture.C, 16, 3)(picture)
    x = nn.MaxPool2d(3)(x).relu().flatten(1)
    return nn.Linear(x.features, 200)(x)


def symbolic(classes=10):
    """A graph with two inputs and two outputs."""
    grey, coloured = Input((1, 28, 28)), Input((3, 32, 32))
    x = look(grey) + look(coloured)
    x = nn.Linear(x.features, 400)(x).relu()
    return SymbolicModel((grey, coloured), (nn.Linear(x.features, classes)(x), nn.Linear(x.features, classes)(x)))


def layers(classes=10):
    """A function of two placeholders, which returns two results."""
    def look(picture):
        return L.Linear(200)(L.Flatten()(L.ReLU()(L.MaxPool2d(3)(L.Conv2d(16, 3)(picture)))))

    grey, coloured = L.Placeholder((None, 1, 28, 28)), L.Placeholder((None, 3, 32, 32))
    x = L.ReLU()(L.Linear(400)(look(grey) + look(coloured)))
    return L.Functional((grey, coloured), (L.Linear(classes)(x), L.Linear(classes)(x)))


class Look(nn.Module):
    """(N, channels, H, W) to (N, 200), for pictures of one size."""

    def __init__(self, channels, size):
        super().__init__()
        self.conv = nn.Conv2d(channels, 16, 3)
        self.shrink = nn.MaxPool2d(3)
        self.linear = nn.Linear(16 * ((size - 2) // 3) ** 2, 200)

    def forward(self, pictures):
        return self.linear(self.shrink(self.conv(pictures)).relu().flatten(1))


class TwoHeads(nn.Module):
    """(N, 1, 28, 28) and (N, 3, 32, 32) to twice (N, classes)."""

    def __init__(self, classes=10):
        super().__init__()
        self.look_at_grey, self.look_at_coloured = Look(1, 28), Look(3, 32)
        self.together = nn.Linear(200, 400)
        self.head1, self.head2 = nn.Linear(400, classes), nn.Linear(400, classes)

    def forward(self, grey, coloured):
        x = self.together(self.look_at_grey(grey) + self.look_at_coloured(coloured)).relu()
        return self.head1(x), self.head2(x)


plain = TwoHeads


def inputs():
    """Return example inputs."""
    return torch.rand(2, 1, 28, 28), torch.rand(2, 3, 32, 32)
