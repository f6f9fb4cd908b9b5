"""A convolutional autoencoder: a colour picture goes through a bottleneck of 16 numbers and comes back grey.
28,529 parameters.
"""

import tensorgrad as torch
from tensorgrad import layers as L
from tensorgrad import nn
from tensorgrad.symbolic import Input, SymbolicModel


def symbolic(channels=3):
    """Build a graph for each half, and a third graph whose layers are the halves."""
    picture = Input((channels, 28, 28))
    x = nn.Conv2d(picture.C, 16, 3)(picture).relu()
    x = nn.Conv2d(x.C, 32, 3)(x).relu()
    x = nn.MaxPool2d(3)(x)
    x = nn.Conv2d(x.C, 32, 3)(x).relu()
    x = nn.Conv2d(x.C, 16, 3)(x).relu()
    encoder = SymbolicModel(picture, nn.MaxPool2d(x.HW)(x).flatten(1))

    code = Input((16,))
    x = nn.Unflatten(1, (1, 4, 4))(code)
    x = nn.ConvTranspose2d(x.C, 16, 3)(x).relu()
    x = nn.ConvTranspose2d(x.C, 32, 3)(x).relu()
    x = nn.Upsample(scale_factor=3)(x)
    x = nn.ConvTranspose2d(x.C, 16, 3)(x).relu()
    decoder = SymbolicModel(code, nn.ConvTranspose2d(x.C, 1, 3)(x).relu())

    return SymbolicModel(picture, decoder(encoder(picture)))


def layers(channels=3):
    """Build layers that infer their input sizes; only the shape in the middle is given."""
    encoder = L.Sequential(
        L.Conv2d(16, 3), L.ReLU(), L.Conv2d(32, 3), L.ReLU(), L.MaxPool2d(3),
        L.Conv2d(32, 3), L.ReLU(), L.Conv2d(16, 3), L.ReLU(), L.AdaptiveMaxPool2d(1), L.Flatten())
    decoder = L.Sequential(
        L.View(-1, 1, 4, 4), L.ConvTranspose2d(16, 3), L.ReLU(), L.ConvTranspose2d(32, 3), L.ReLU(),
        L.Upsample(scale_factor=3), L.ConvTranspose2d(16, 3), L.ReLU(), L.ConvTranspose2d(1, 3), L.ReLU())
    return L.Sequential(encoder, decoder).build((None, channels, 28, 28))


class Autoencoder(nn.Module):
    """(N, channels, 28, 28) to (N, 1, 28, 28). The 4 × 4 pixels before the last pooling were computed by hand."""

    def __init__(self, channels=3):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(channels, 16, 3), nn.ReLU(),       # 16 × 26 × 26
            nn.Conv2d(16, 32, 3), nn.ReLU(),             # 32 × 24 × 24
            nn.MaxPool2d(3),                             # 32 × 8 × 8
            nn.Conv2d(32, 32, 3), nn.ReLU(),             # 32 × 6 × 6
            nn.Conv2d(32, 16, 3), nn.ReLU(),             # 16 × 4 × 4
            nn.MaxPool2d(4), nn.Flatten(),               # 16
        )
        self.decoder = nn.Sequential(
            nn.Unflatten(1, (1, 4, 4)),
            nn.ConvTranspose2d(1, 16, 3), nn.ReLU(),     # 16 × 6 × 6
            nn.ConvTranspose2d(16, 32, 3), nn.ReLU(),    # 32 × 8 × 8
            nn.Upsample(scale_factor=3),                 # 32 × 24 × 24
            nn.ConvTranspose2d(32, 16, 3), nn.ReLU(),    # 16 × 26 × 26
            nn.ConvTranspose2d(16, 1, 3), nn.ReLU(),     # 1 × 28 × 28
        )

    def forward(self, pictures):
        return self.decoder(self.encoder(pictures))


plain = Autoencoder


def inputs():
    """Return example inputs."""
    return (torch.rand(2, 3, 28, 28),)
