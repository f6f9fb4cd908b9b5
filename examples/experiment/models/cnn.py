"""A convolutional classifier."""

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.experiment import models


@models.register("cnn")
class CNN(nn.Module):
    """Two convolutions and two linear layers: batch["img"] of shape (N, 1, 28, 28) → scores (N, num_classes)."""

    def __init__(self, num_classes: int = 10, width: int = 16, dropout: float = 0.2) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(2 * width * 7 * 7, 64), nn.ReLU(), nn.Dropout(dropout),
                                  nn.Linear(64, num_classes))

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.head(self.features(batch["img"]))
