"""Two images, one network: are they of one kind? Then the same with triplets."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

torch.manual_seed(4)


class Pairs(Dataset):
    def __init__(self):
        prototypes = torch.rand(4, 1, 10, 10)
        self.labels = torch.arange(4).repeat(12)
        self.images = prototypes[self.labels] + 0.2 * torch.randn(48, 1, 10, 10)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        j = int(torch.randint(len(self), (1,)))
        return {"one": self.images[i], "two": self.images[j], "same": torch.as_tensor(float(self.labels[i] == self.labels[j]))}


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3), nn.GroupNorm(2, 6), nn.PReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(16))
        self.head = nn.Bilinear(16, 16, 1)

    def forward_once(self, x):
        return F.normalize(self.features(x), dim=-1)

    def forward(self, one, two):
        a, b = self.forward_once(one), self.forward_once(two)
        return self.head(a, b).squeeze(-1), a, b


dataset = Pairs()
sampler = WeightedRandomSampler(torch.linspace(1, 2, len(dataset)), 48)
loader = DataLoader(dataset, batch_size=12, sampler=sampler)
model = SiameseNetwork()
model(dataset.images[:1], dataset.images[:1])
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))
cosine, triplet = nn.CosineEmbeddingLoss(margin=0.3), nn.TripletMarginLoss(margin=0.5)
for epoch in range(6):
    for batch in loader:
        optimizer.zero_grad()
        logits, a, b = model(batch["one"], batch["two"])
        contrastive = criterion(logits, batch["same"]) + cosine(a, b, 2 * batch["same"] - 1)
        anchors = model.forward_once(dataset.images[:4])
        loss = contrastive + triplet(anchors, model.forward_once(dataset.images[4:8]), anchors.roll(1, 0))
        loss.backward()
        optimizer.step()
        print(epoch, loss.item(), (logits.sigmoid().round() == batch["same"]).float().mean().item())
