"""Compiled programs that read values of parameters and buffers: a graph is valid while the values are unchanged."""
import pytest
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.graph import lower

pytestmark = cpu_only


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.other = nn.Parameter(torch.tensor([1.0, 2.0, 3.0])), nn.Parameter(torch.ones(3))
        self.register_buffer("mask", torch.tensor([True, False, True]))

    def forward(self, x, how):
        return getattr(self, how)(x) + self.other.sum()

    def number(self, x):
        return x * float(self.scale.max())

    def written(self, x):
        h = (x * 1.5).fill_(0.25).add_(self.scale)
        return x + h.max().item()

    def branch(self, x):
        return x * 2 if self.scale.sum() > 10 else -x

    def shape(self, x):
        return x[self.mask].sum() * x

    def numpy(self, x):
        return x * float(torch.from_numpy(self.scale.detach().numpy() * 2).sum())


def change(net):
    net.scale.mul_(3)
    net.mask.fill_(True)


@pytest.mark.parametrize("how", ["number", "written", "branch", "shape", "numpy"])
def test_values_that_a_program_reads_are_guarded(how):
    net, x = Net().eval(), torch.tensor([0.5, -1.0, 2.0])
    fast = torch.compile(net)
    with torch.no_grad():
        for step in (lambda net: None, change, lambda net: None):
            step(net)
            assert torch.equal(fast(x, how), net(x, how))
        traces = len(fast.explain().changed)
        net.other.mul_(2)                                   # only read in the graph
        assert torch.equal(fast(x, how), net(x, how)) and len(fast.explain().changed) == traces


def test_lowered_graphs_name_what_was_read():
    net = Net().eval()
    assert lower(net, (torch.ones(3), "number")).relied == ("scale",)
    assert lower(net, (torch.ones(3), "shape")).relied == ("mask",)
    assert lower(nn.Linear(2, 3), torch.ones(4, 2)).relied == ()
