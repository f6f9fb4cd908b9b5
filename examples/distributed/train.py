"""Data parallel training: every process learns from a part of each epoch, and gradients are averaged.

Start it with several processes on one machine, or on several:

    python -m tensorgrad.distributed.run --standalone --nproc-per-node 2 examples/distributed/train.py
    mpiexec -n 4 python -m tensorgrad examples/distributed/train.py
    torchrun --standalone --nproc-per-node 2 examples/distributed/train.py        (PyTorch)
"""

import argparse
import math
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def spirals(points):
    """Points on two spirals that wind around each other, and on which of the two each is."""
    turn = torch.rand(points) * 3 * math.pi
    label = torch.arange(points) % 2
    angle = turn + math.pi * label
    place = torch.stack([turn * angle.cos(), turn * angle.sin()], dim=1) / 5
    return TensorDataset(place + 0.02 * torch.randn(points, 2), label)


def save(path, epoch, model, optimizer):
    """Write a checkpoint, whole or not at all."""
    state = {"epoch": epoch, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, f"{path}.new")
    os.replace(f"{path}.new", path)


def train(args):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)  # the same data, and the same first parameters, on all ranks
    data = spirals(args.points)
    sampler = DistributedSampler(data, shuffle=True, seed=args.seed)  # each rank draws its own part
    loader = DataLoader(data, batch_size=args.batch_size // ranks, sampler=sampler)

    net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    first = 0
    if args.checkpoint and os.path.exists(args.checkpoint):  # after a restart: all ranks go on from here
        state = torch.load(args.checkpoint)
        net.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"] + 1

    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)  # another order in each epoch
        right = seen = 0
        for place, label in loader:
            optimizer.zero_grad()
            scores = model(place)
            loss = nn.functional.cross_entropy(scores, label)
            loss.backward()  # gradients are averaged over all ranks meanwhile
            optimizer.step()
            right += (scores.argmax(dim=1) == label).sum().item()
            seen += len(label)
        counts = torch.tensor([right, seen])
        dist.all_reduce(counts)
        if rank == 0:
            print(f"epoch {epoch}: {100 * counts[0].item() / counts[1].item():.1f} % right, {ranks} ranks", flush=True)
            if args.checkpoint:
                save(args.checkpoint, epoch, model, optimizer)
        dist.barrier()  # nobody goes on before the checkpoint is there
    return net


def check(net):
    """All ranks have the same parameters, to the last bit."""
    flat = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
    least, most = flat.clone(), flat.clone()
    dist.all_reduce(least, op=dist.ReduceOp.MIN)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    assert torch.equal(least, most)


def main():
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--epochs", type=int, default=20, metavar="N")
    parser.add_argument("--points", type=int, default=4096, metavar="N")
    parser.add_argument("--batch-size", type=int, default=256, metavar="N", help="of all ranks together")
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", help="gloo, mpi, nccl; by default what suits the launcher")
    parser.add_argument("--checkpoint", metavar="FILE",
                        help="written after each epoch; if it is there, training goes on from it")
    args = parser.parse_args()
    dist.init_process_group(args.backend)
    try:
        check(train(args))
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
