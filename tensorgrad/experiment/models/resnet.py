"""ResNet-18 for images of one channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import nn
from . import register


class Block(nn.Module):
    """Two 3×3 convolutions with batch norm, added to their input: (N, before, H, W) → (N, after, ⌈H / stride⌉, ⌈W /
    stride⌉)."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = (
            None
            if stride == 1 and before == after
            else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        )

    def forward(self, x: Any) -> Any:
        """relu(residual(x) + x), where x passes a 1×1 convolution if its shape changes."""
        inside = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(inside + (x if self.downsample is None else self.downsample(x)))


@register("resnet18")
class ResNet18(nn.Module):
    """ResNet-18 whose first convolution (7×7, stride 2) takes one channel: {'img': (N, 1, H, W)} → (N, num_classes).

    A plain tensor (N, 1, H, W) is taken, too. Parameters have the names that published ResNets have. 11,175,370
    parameters for 10 classes. Source: He et al., "Deep residual learning for image recognition", 2015.

    >>> import tensorgrad as torch
    >>> ResNet18(num_classes=10)({"img": torch.zeros(2, 1, 28, 28)}).shape
    torch.Size([2, 10])
    """

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
        self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
        self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, batch: Any) -> Any:
        """The scores of the classes, for a batch's `img` or a tensor."""
        x = batch["img"] if isinstance(batch, Mapping) else batch
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))
