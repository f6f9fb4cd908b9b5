"""A training loop without a trainer that resumes where it was killed: `loop.py DIRECTORY WORKERS EVERY`, with a
checkpoint every so many steps."""
import random
import sys

import numpy as np
from killing import digest

import tensorgrad as torch
from tensorgrad.experiment import Checkpointer, streams

EPOCHS, SAMPLES, BATCH = 3, 22, 4


class Points(torch.utils.data.Dataset):
    """Points of a plane, moved at random whenever they are asked for."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        noise = (torch.tensor([random.gauss(0, 0.1), np.random.normal(0, 0.1)], dtype=torch.float32) + 0.1
                 * torch.randn(2))
        return torch.tensor([index / SAMPLES, index % 3]) + noise, index % 2


def main(directory, workers, every):
    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout(0.3),
                                torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=EPOCHS * -(-SAMPLES // BATCH))
    averaged = torch.optim.swa_utils.AveragedModel(model)
    loader = torch.utils.data.DataLoader(Points(), batch_size=BATCH, shuffle=True, num_workers=workers)
    parts = dict(model=model, optimizer=optimizer, scheduler=scheduler, averaged=averaged, loader=loader)
    checkpointer = Checkpointer(directory, keep=2, **parts)
    found = checkpointer.restore() or {"step": 0, "epoch": 0, "losses": []}
    step, losses = found["step"], found["losses"]
    for epoch in range(found["epoch"], EPOCHS):
        for x, y in loader:
            x = x + 0.01 * random.random() + 0.01 * np.random.rand()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            averaged.update_parameters(model)
            step += 1
            losses.append(loss.item())
            if step % every == 0:
                checkpointer.save(step, epoch=epoch, losses=losses)
            print("step", step, flush=True)
        checkpointer.save(step, epoch=epoch + 1, losses=losses)
    print("digest", digest([{name: part.state_dict() for name, part in parts.items()}, streams.state(), losses, step]),
          flush=True)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
