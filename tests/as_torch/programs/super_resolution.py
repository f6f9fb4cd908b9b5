"""Small images made larger by sub-pixel convolution."""
from math import log10

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.init as init
import torch.optim as optim

torch.manual_seed(123)


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super(Net, self).__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 8, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(8, 8, (3, 3), (1, 1), (1, 1), padding_mode="reflect")
        self.conv3 = nn.Conv2d(8, upscale_factor ** 2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight)

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        return self.pixel_shuffle(self.conv3(x))


t = torch.linspace(0, 6, 24)
waves = torch.stack([torch.sin(a * t[:, None] + b * t[None, :]) for a, b in torch.rand(12, 2) * 2]).unsqueeze(1)
small = F.interpolate(waves, scale_factor=0.5, mode="bicubic", align_corners=False)
model = Net(upscale_factor=2)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.01)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
for epoch in range(1, 7):
    epoch_loss = 0
    for i in range(0, 12, 3):
        optimizer.zero_grad()
        loss = criterion(model(small[i:i + 3]), waves[i:i + 3])
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
        print("===> Epoch[{}]({}/{}): Loss: {:.4f}".format(epoch, i, 12, loss.item()))
    scheduler.step()
    with torch.no_grad():
        psnr = 10 * log10(1 / criterion(model(small), waves).item())
    print("===> PSNR: {:.4f} dB, bilinear {:.4f}".format(psnr, criterion(F.interpolate(small, size=(24, 24), mode="bilinear"), waves).item()))
