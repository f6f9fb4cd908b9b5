"""Common parts of tests of trainers: small modules, data, and comparison of files."""

import csv

import tensorgrad as torch
from tensorgrad.experiment import Module

COUNT = 22


def data(count=COUNT, features=3):
    """Samples (x, y) of a line."""
    x = torch.linspace(-1, 1, count * features).reshape(count, features)
    return torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True) + 1)


def loader(batch_size=4, shuffle=True, **options):
    return torch.utils.data.DataLoader(data(), batch_size=batch_size, shuffle=shuffle, **options)


class Line(Module):
    """A linear layer, with dropout where that is asked for."""

    def __init__(self, lr=0.05, dropout=0.0):
        super().__init__()
        self.save_hyperparameters()
        self.line, self.dropout = torch.nn.Linear(3, 1), torch.nn.Dropout(dropout)

    def forward(self, batch):
        return self.line(self.dropout(batch[0] if isinstance(batch, (list, tuple)) else batch))

    def loss(self, batch):
        return (self(batch) - batch[1]).square().mean()

    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        self.log("loss", loss, on_step=True, on_epoch=True, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.loss(batch))

    def test_step(self, batch, batch_idx):
        self.log("test_loss", self.loss(batch))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def rows(path):
    """The rows of metrics.csv without their times."""
    with open(path / "metrics.csv", newline="") as file:
        return [
            {name: value for name, value in row.items() if value and not name.startswith("time")}
            for row in csv.DictReader(file)
        ]


def equal(a, b):
    """Return True if two nests of dicts, lists and tensors are equal, bit by bit."""
    if isinstance(a, torch.Tensor):
        return (
            isinstance(b, torch.Tensor)
            and a.dtype is b.dtype
            and a.shape == b.shape
            and a.detach().numpy().tobytes() == b.detach().numpy().tobytes()
        )
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    return a == b or a != a and b != b
