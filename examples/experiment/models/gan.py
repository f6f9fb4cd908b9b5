"""A generator and a discriminator of digits, both convolutional."""

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.experiment import models
from tensorgrad.experiment.datasets.mnist import DEVIATION, MEAN


@models.register("generator")
class Generator(nn.Module):
    """Vectors (N, latent_dim) → images (N, 1, 28, 28), whose pixels have the range of the data set's."""

    def __init__(self, latent_dim: int = 16, width: int = 32) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(latent_dim, 2 * width * 7 * 7, bias=False), nn.Unflatten(1, (2 * width, 7, 7)),
            nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(width), nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1), nn.Sigmoid())
        self.apply(start_small)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return (self.net(z) - MEAN) / DEVIATION


@models.register("discriminator")
class Discriminator(nn.Module):
    """Images (N, 1, 28, 28) → scores (N, 1), high for images of the data set."""

    def __init__(self, width: int = 32, dropout: float = 0.0) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 4, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Dropout(dropout),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(2 * width),
            nn.LeakyReLU(0.2), nn.Dropout(dropout),
            nn.Flatten(), nn.Linear(2 * width * 7 * 7, 1))
        self.apply(start_small)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.net(images)


def start_small(module: nn.Module) -> None:
    """Weights of a normal distribution with a deviation of 0.02, from which such pairs train steadily."""
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
        nn.init.normal_(module.weight, std=0.02)
