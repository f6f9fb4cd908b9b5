"""Common parts of tests of DistributedDataParallel: ranks, a group of one, a small net."""
from ranks import as_threads

import tensorgrad as torch
from tensorgrad import distributed as dist
from tensorgrad import nn
from tensorgrad.testing import assert_close

TINY = 40 / (1 << 20)       # MiB: ten numbers of float32 in a bucket


def ranks(size, program):
    """Run `program(rank, group)` on `size` ranks, which are threads; return the results, or raise the first error."""
    return as_threads(size, program, backend="cpu:gloo,cuda:gloo")


class Alone:
    """A group of `count` ranks, of which only this one exists: the others hold equal tensors. It records its calls."""

    def __init__(self, count=1):
        self.count, self.log = count, []

    def rank(self):
        return 0

    def size(self):
        return self.count

    def allreduce(self, tensor, op=None):
        self.log.append(tensor.numel())
        tensor.mul_(self.count)
        return dist.Work.done([tensor])

    def broadcast(self, tensor, root=0):
        return dist.Work.done([tensor])

    def allgather(self, outs, tensor):
        for out in outs:
            out.copy_(tensor)
        return dist.Work.done(outs)


class Net(nn.Module):
    """A weight used twice in a forward, two ways through, which `way` chooses, and a way out of each."""

    def __init__(self):
        super().__init__()
        self.first, self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x, way="both"):
        h = self.first(self.first(x).tanh())
        return {"left": lambda: self.left(h), "right": lambda: self.right(h),
                "both": lambda: self.left(h) + self.right(h).sin()}[way]()


def net(seed=0):
    torch.manual_seed(seed)
    return Net()


X = torch.arange(24.).reshape(8, 3).sin()


def loss(model, x, *way):
    return (model(x, *way) * torch.tensor([1., -2.])).pow(2).mean()


def gradients(module):
    return [None if p.grad is None else p.grad.clone() for p in module.parameters()]


def same_gradients(module, other):
    for p, q in zip(module.parameters(), other.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            assert_close(p.grad, q.grad)
