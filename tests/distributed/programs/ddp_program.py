"""An unchanged PyTorch program: two processes train small models in the ways of DistributedDataParallel.

It writes what each process found as JSON.
"""
import json
import os
import sys
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

SIZE = 2


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.mix(self.norms[0](x)).reshape(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(n, t, width))
        return x + self.think(self.norms[1](x))


class CharGPT(nn.Module):
    """Characters in, chances of the next one out; the weights of both ends are shared."""

    def __init__(self, vocabulary=11, width=16, length=8):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(Layer(width, 2) for _ in range(2)))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, text):
        return self.head(self.layers(self.tokens(text) + self.places(torch.arange(text.shape[1]))))


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x):
        h = F.relu(self.norms[0](self.convs[0](x)))
        return F.relu(x + self.norms[1](self.convs[1](h)))


def resnet():
    return nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), Block(6), Block(6), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(6, 3))


class Ways(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x, way):
        h = self.first(self.first(x).tanh())
        return self.left(h) if way == "left" else self.right(h) if way == "right" else self.left(h) + self.right(h)


TEXT = torch.arange(80).reshape(8, 10).mul(7).remainder(11)[:, :9]
IMAGES, LABELS = torch.linspace(-3, 3, 8 * 2 * 5 * 5).sin().mul(5).cos().reshape(8, 2, 5, 5), torch.arange(8) % 3
X = torch.arange(24.).reshape(8, 3).sin()


def made(make, **options):
    torch.manual_seed(0)
    return DistributedDataParallel(make(), **options)


def numbers(values):
    """Losses, and sums of the parameters, of their squares, and of their gradients."""
    model, losses = values
    return [*losses, *(round_trip(p) for p in model.parameters()), *(round_trip(b.float()) for b in model.buffers())]


def round_trip(tensor):
    grad = getattr(tensor, "grad", None)
    return [tensor.detach().sum().item(), tensor.detach().pow(2).sum().item(),
            None if grad is None else (grad * grad.cos()).sum().item()]


def gpt(rank, steps=5, **options):
    model, losses = made(CharGPT, **options), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        text = TEXT[rank::SIZE]
        loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def convolutions(rank):
    model, losses = made(resnet), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(IMAGES[rank::SIZE]), LABELS[rank::SIZE])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def ways(rank, schedule, **options):
    model, losses = made(Ways, **options), []
    for pair in schedule:
        loss = model(X[rank::SIZE], pair[rank]).pow(2).mean()
        loss.backward()
        losses.append(loss.item())
    return model, losses


def accumulated(rank):
    model, x = made(Ways), X[rank::SIZE]
    with model.no_sync():
        model(x, "both").pow(2).mean().backward()
        inside = model(2 * x, "both").pow(2).mean()
    inside.backward()
    (model(3 * x, "both").pow(2).mean() + model(x, "left").mean()).backward()
    loss = model(4 * x, "both").pow(2).mean()
    with model.no_sync():
        loss.backward(retain_graph=True)
    loss.backward()
    return model, [loss.item()]


def uneven(rank, **options):
    model, losses = made(resnet), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with model.join(**options):
        for _ in range(2 + 2 * rank):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(IMAGES[rank::SIZE]), LABELS[rank::SIZE])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    optimizer.zero_grad()       # they differ: one process had none in the last step
    return model, losses


def joined_early(rank):
    model = made(Ways)
    with Join([model], throw_on_early_termination=True):
        for _ in range(2 + rank):
            model(X, "both").sum().backward()


def compressed(rank):
    model = made(Ways)
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    model(X[rank::SIZE], "both").pow(2).mean().backward()
    return model, []


def powers(rank, hook=powerSGD_hook.powerSGD_hook, **options):
    """PowerSGD from the third step on."""
    model, losses = made(CharGPT), []
    state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, **options)
    model.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        text = TEXT[rank::SIZE]
        loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, [*losses, *state.compression_stats()]


def by_hand(rank):
    """Synchronous gradient descent without a wrapper: each process has the same values, and adds up the gradients of
    all.
    """
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    losses = []
    for _ in range(5):
        model.zero_grad()
        loss = model(X[rank::SIZE]).pow(2).mean()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.data -= 0.1 * p.grad / SIZE
        losses.append(loss.item())
    return model, losses


def refused(function, *args, **options):
    try:
        function(*args, **options)
    except RuntimeError as error:
        return str(error).split("\n")[0]
    return "nothing"


def work(rank, folder):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if rank is None:        # a process that mpiexec started
        dist.init_process_group("mpi")
        rank = dist.get_rank()
    else:
        dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=SIZE)
    left = [("left", "left")] * 3
    found = {
        "gpt": numbers(gpt(rank)),
        "gpt in small buckets": numbers(gpt(rank, bucket_cap_mb=0.004, gradient_as_bucket_view=True)),
        "convolutions": numbers(convolutions(rank)),
        "unused": numbers(ways(rank, [("left", "right"), ("both", "left"), ("left", "left")],
                               find_unused_parameters=True)),
        "never used": numbers(ways(rank, left, find_unused_parameters=True)),
        "static": numbers(ways(rank, left, static_graph=True)),
        "accumulated": numbers(accumulated(rank)), "compressed": numbers(compressed(rank)),
        "powers": numbers(powers(rank)),
        "powers of 3": numbers(powers(rank, matrix_approximation_rank=3, batch_tensors_with_same_shape=True)),
        "cold powers": numbers(powers(rank, warm_start=False, use_error_feedback=False,
                                      orthogonalization_epsilon=1e-8)),
        "uneven": numbers(uneven(rank)),
        "uneven by the busy": numbers(uneven(rank, divide_by_initial_world_size=False)),
        "by hand": numbers(by_hand(rank)),
        "errors": [refused(ways, rank, left), refused(ways, rank, [("both", "both"), *left], static_graph=True),
                   refused(ways, rank, [("left", "left"), ("both", "both")], static_graph=True),
                   refused(joined_early, rank)],
    }
    with open(f"{folder}/found{rank}", "w") as file:
        json.dump(found, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    if sys.argv[2:] == ["mpi"]:
        work(None, sys.argv[1])
    else:
        mp.start_processes(work, args=(sys.argv[1],), nprocs=SIZE, start_method="fork")
