"""A variational autoencoder."""
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(3)


class Stripes(Dataset):
    def __init__(self, n):
        self.phase = torch.rand(n)

    def __len__(self):
        return len(self.phase)

    def __getitem__(self, i):
        grid = torch.arange(64).view(8, 8).float() / 64
        return (torch.sin(12 * (grid + self.phase[i])) > 0).float().unsqueeze(0), 0


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc21 = nn.Linear(32, 4)
        self.fc22 = nn.Linear(32, 4)
        self.fc3 = nn.Linear(4, 32)
        self.fc4 = nn.Linear(32, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


loader = DataLoader(Stripes(96), batch_size=16, shuffle=True)
for epoch in range(5):
    model.train()
    for data, _ in loader:
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        optimizer.step()
        print(epoch, loss.item() / len(data))
with torch.no_grad():
    sample = model.decode(torch.randn(4, 4)).view(4, 1, 8, 8)
print(sample.mean().item(), sample[0, 0, 0, :4])
