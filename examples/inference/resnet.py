"""ResNets (He et al., 2015), with torchvision's names of parameters: its published weights fit as they are."""

import tensorgrad as torch
from tensorgrad import nn


def conv(channels, width, size, stride=1):
    return nn.Conv2d(channels, width, size, stride, padding=size // 2, bias=False)


class BasicBlock(nn.Module):
    """Two convolutions of 3×3 learn what to add to their input."""

    widening = 1

    def __init__(self, channels, width, stride, downsample):
        super().__init__()
        self.conv1, self.bn1 = conv(channels, width, 3, stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, width, 3), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    """A convolution of 3×3 on a quarter of the channels, between two of 1×1; it takes the strides, as torchvision has
    it.
    """

    widening = 4

    def __init__(self, channels, width, stride, downsample):
        super().__init__()
        self.conv1, self.bn1 = conv(channels, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = conv(width, 4 * width, 1), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """Images (N, 3, H, W), normalized, to logits (N, num_classes)."""

    def __init__(self, block, depths, num_classes=1000, width=64):
        super().__init__()
        self.conv1, self.bn1 = conv(3, width, 7, stride=2), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        channels = width
        for i, depth in enumerate(depths):
            layer = []
            for stride in [1 if i == 0 else 2] + [1] * (depth - 1):
                out = (width << i) * block.widening
                downsample = (None if stride == 1 and channels == out
                              else nn.Sequential(conv(channels, out, 1, stride), nn.BatchNorm2d(out)))
                layer.append(block(channels, width << i, stride, downsample))
                channels = out
            setattr(self, f"layer{i + 1}", nn.Sequential(*layer))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, num_classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


ARCHITECTURES = {
    "resnet18": (BasicBlock, (2, 2, 2, 2)),
    "resnet34": (BasicBlock, (3, 4, 6, 3)),
    "resnet50": (Bottleneck, (3, 4, 6, 3)),
    "resnet101": (Bottleneck, (3, 4, 23, 3)),
    "resnet152": (Bottleneck, (3, 8, 36, 3)),
}


def resnet(name, **sizes):
    """A network of ARCHITECTURES, by its name, with weights that say nothing yet."""
    return ResNet(*ARCHITECTURES[name], **sizes)
