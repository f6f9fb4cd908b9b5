"""A convolutional network for 28×28 images: 11 thousand parameters."""

from tensorgrad import nn


def block(inputs, outputs, padding):
    """Look for patterns of 3×3 pixels, then halve the picture."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=padding), nn.BatchNorm2d(outputs), nn.ReLU(), nn.AvgPool2d(2))


class CNN(nn.Module):
    """(N, 1, 28, 28) to (N, classes)."""

    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            block(1, 8, padding="same"),    # 8 × 14 × 14
            block(8, 16, padding=2),        # 16 × 8 × 8
            block(16, 32, padding="same"),  # 32 × 4 × 4
        )
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Flatten(), nn.Linear(32 * 4 * 4, classes))

    def forward(self, images):
        return self.head(self.features(images))
