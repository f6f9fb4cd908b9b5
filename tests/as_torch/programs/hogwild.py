"""Processes that train one model in shared memory: one after the other, so that the numbers are the same each time."""
import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def train(rank, model, data, target, losses):
    torch.manual_seed(1 + rank)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for step in range(6):
        index = torch.randint(len(data), (16,))
        optimizer.zero_grad()
        loss = F.mse_loss(model(data[index]), target[index])
        loss.backward()
        optimizer.step()
        losses[rank, step] = loss.item()


if __name__ == "__main__":
    torch.manual_seed(1)
    mp.set_start_method("fork")
    data = torch.randn(64, 5)
    target = data @ torch.randn(5, 1)
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
    model.share_memory()
    losses = torch.zeros(3, 6).share_memory_()
    print(losses.is_shared(), all(p.is_shared() for p in model.parameters()))
    for rank in range(3):
        p = mp.Process(target=train, args=(rank, model, data, target, losses))
        p.start()
        p.join()
        print(rank, p.exitcode, losses[rank])
    print(F.mse_loss(model(data), target).item())
