"""Unsupervised Representation Learning with Deep Convolutional GANs (Radford et al., 2015): a forger and a judge."""
from torch import nn


def start(module):
    name = module.__class__.__name__
    if name.find("Conv") != -1:
        nn.init.normal_(module.weight.data, 0.0, 0.02)
    elif name.find("BatchNorm") != -1:
        nn.init.normal_(module.weight.data, 1.0, 0.02)
        nn.init.constant_(module.bias.data, 0)


class Generator(nn.Module):
    """Noise (N, Z, 1, 1) → images (N, C, 64, 64)."""

    def __init__(self, noise=100, width=64, channels=3):
        super().__init__()
        layers = [nn.ConvTranspose2d(noise, 8 * width, 4, 1, 0, bias=False), nn.BatchNorm2d(8 * width), nn.ReLU(True)]
        for factor in (4, 2, 1):
            layers += [nn.ConvTranspose2d(2 * factor * width, factor * width, 4, 2, 1, bias=False),
                       nn.BatchNorm2d(factor * width), nn.ReLU(True)]
        self.main = nn.Sequential(*layers, nn.ConvTranspose2d(width, channels, 4, 2, 1, bias=False), nn.Tanh())
        self.apply(start)

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    """Images (N, C, 64, 64) → the chance that each is real (N,)."""

    def __init__(self, width=64, channels=3):
        super().__init__()
        layers = [nn.Conv2d(channels, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        for factor in (1, 2, 4):
            layers += [nn.Conv2d(factor * width, 2 * factor * width, 4, 2, 1, bias=False),
                       nn.BatchNorm2d(2 * factor * width),
                       nn.LeakyReLU(0.2, inplace=True)]
        self.main = nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4, 1, 0, bias=False), nn.Sigmoid())
        self.apply(start)

    def forward(self, x):
        return self.main(x).view(-1)
