"""WRN-16-4, a wide residual network of 16 layers for pictures of 32×32 pixels: 2,750,698 parameters."""

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.symbolic import Input, SymbolicModel

GROUPS = (64, 1), (128, 2), (256, 2)        # channels, and the stride with which a group of blocks begins
BLOCKS = 2                                  # in each group


def block(x, channels, stride):
    """Apply a block to a symbol; its layers depend on the symbol's channels."""
    normed = nn.BatchNorm2d(x.C)(x).relu()
    if x.C != channels:
        x = nn.Conv2d(x.C, channels, 1, stride, bias=False)(normed)
    y = nn.Conv2d(normed.C, channels, 3, stride, padding=1)(normed)
    y = nn.BatchNorm2d(y.C)(y).relu()
    return x + nn.Conv2d(y.C, channels, 3, padding=1)(y)


def symbolic(classes=10):
    """Build the graph from blocks in a loop."""
    picture = Input((3, 32, 32))
    x = nn.Conv2d(picture.C, 16, 3, padding=1)(picture)
    for channels, stride in GROUPS:
        for k in range(BLOCKS):
            x = block(x, channels, stride if k == 0 else 1)
    x = nn.BatchNorm2d(x.C)(x).relu().mean((2, 3))
    return SymbolicModel(picture, nn.Linear(x.features, classes)(x))


class Block(nn.Module):
    """(N, inputs, H, W) to (N, outputs, H / stride, W / stride)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if inputs != outputs else None
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)

    def forward(self, x):
        normed = self.norm1(x).relu()
        if self.shortcut is not None:
            x = self.shortcut(normed)
        return x + self.conv2(self.norm2(self.conv1(normed)).relu())


class WideResNet(nn.Module):
    """(N, 3, 32, 32) to (N, classes)."""

    def __init__(self, classes=10):
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, padding=1)]
        inputs = 16
        for channels, stride in GROUPS:
            for k in range(BLOCKS):
                layers.append(Block(inputs, channels, stride if k == 0 else 1))
                inputs = channels
        self.features = nn.Sequential(*layers)
        self.norm = nn.BatchNorm2d(inputs)
        self.head = nn.Linear(inputs, classes)

    def forward(self, pictures):
        return self.head(self.norm(self.features(pictures)).relu().mean((2, 3)))


plain = WideResNet


def inputs():
    """Return example inputs."""
    return (torch.rand(2, 3, 32, 32),)
