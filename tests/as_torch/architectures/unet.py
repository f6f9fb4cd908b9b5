"""U-Net: Convolutional Networks for Biomedical Image Segmentation (Ronneberger et al., 2015): down, up, and across."""
import torch
import torch.nn.functional as F
from torch import nn


def double_conv(channels, width):
    return nn.Sequential(nn.Conv2d(channels, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3), nn.ReLU())


class UNet(nn.Module):
    """Images (N, C, H, W) to a class for each pixel that all of the unpadded convolutions see."""

    def __init__(self, channels=1, classes=2, width=64, depth=4, dropout=0.25):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList([double_conv(a, b) for a, b in zip([channels, *widths[:-2]], widths[:-1])])
        self.pool = nn.MaxPool2d(2)
        self.bottom = nn.Sequential(double_conv(widths[-2], widths[-1]), nn.Dropout2d(dropout))
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * b, b, kernel_size=2, stride=2) for b in reversed(widths[:-1])])
        self.merge = nn.ModuleList([double_conv(2 * b, b) for b in reversed(widths[:-1])])
        self.out = nn.Conv2d(width, classes, kernel_size=1)

    def forward(self, x):
        across = []
        for block in self.down:
            x = block(x)
            across.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for up, merge in zip(self.up, self.merge):
            x = up(x)
            skip = across.pop()
            top, left = ((skip.shape[i] - x.shape[i]) // 2 for i in (2, 3))
            skip = skip[:, :, top:top + x.shape[2], left:left + x.shape[3]]
            x = merge(torch.cat((skip, x), dim=1))
        return self.out(x)


def pixel_loss(logits, target, edges=1.0):
    """Cross entropy of the middle of the target, heavier for its rarer class."""
    h, w = logits.shape[-2:]
    top, left = (target.shape[-2] - h) // 2, (target.shape[-1] - w) // 2
    target = target[..., top:top + h, left:left + w]
    weight = torch.ones(logits.size(1), device=logits.device)
    weight[-1] += edges
    return F.cross_entropy(logits, target, weight=weight, ignore_index=255)
