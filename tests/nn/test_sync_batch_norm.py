"""SyncBatchNorm over ranks, beside BatchNorm of the whole batch."""
import copy

import pytest
from ddp_parts import X, ranks
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.nn import functional as F
from tensorgrad.nn.parallel import DistributedDataParallel as DDP
from tensorgrad.testing import assert_close

pytestmark = cpu_only

# ── batch norm over all ranks ─────────────────────────────────────────────────────────────────────────────────────────

SPLITS = {2: [slice(0, 4), slice(4, 6)], 3: [slice(0, 3), slice(3, 3), slice(3, 6)]}      # uneven; one has nothing


@pytest.mark.parametrize("size", SPLITS)
def test_sync_batch_norm_is_batch_norm_of_the_whole_batch(size):
    torch.manual_seed(0)
    start = nn.BatchNorm2d(3, momentum=0.3).double()
    with torch.no_grad():
        start.weight.copy_(torch.tensor([0.5, 2., -1.]))
        start.bias.copy_(torch.tensor([0.1, 0.2, 0.3]))
    x = torch.randn(6, 3, 2, 2, dtype=torch.double) * 3 + 1
    v = torch.randn_like(x)

    def found(norm, x, v, total):
        """Output, gradients, gradients of a sum of their squares, statistics; `total` adds up over the ranks."""
        x = x.clone().requires_grad_()
        y = norm(x)
        first = torch.autograd.grad((y ** 3 * v).sum(), [x, norm.weight, norm.bias], create_graph=True)
        first = [first[0], *map(total, first[1:])]
        s = (first[0] ** 2).sum() + sum((g ** 2).sum() for g in first[1:]) / (1 if total is same else size)
        second = torch.autograd.grad(s, [x, norm.weight, norm.bias])
        return [y, *first, second[0], *map(total, second[1:]), norm.running_mean, norm.running_var,
                norm.num_batches_tracked]

    def same(t):
        return t
    want = found(copy.deepcopy(start), x, v, same)

    def program(rank, group):
        from tensorgrad.nn.modules._functions import Sum
        norm = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(start), group)
        return found(norm, x[SPLITS[size][rank]], v[SPLITS[size][rank]], lambda t: Sum.apply(group, t))
    got = ranks(size, program)
    for i, w in enumerate(want):
        for rank, own in enumerate(got):
            assert_close(own[i], w[SPLITS[size][rank]] if w.shape == x.shape else w, rtol=1e-9, atol=1e-9)


def test_sync_batch_norm_alone_and_in_evaluation():
    def program(rank, group):
        norm = nn.SyncBatchNorm(3, process_group=group, momentum=None)
        outs = [norm(X[rank::2]), norm(2 * X[rank::2])]
        mean = norm.running_mean.clone()
        outs.append(norm.eval()(X))
        half = nn.SyncBatchNorm(3, process_group=group)(X[rank::2].half())
        plain = nn.SyncBatchNorm(3, process_group=group, affine=False, track_running_stats=False)(X[rank::2, :, None])
        return outs, mean, half, plain
    plain = nn.BatchNorm1d(3, momentum=None)
    want = [plain(X), plain(2 * X), plain.eval()(X)]
    for rank, (outs, mean, half, bare) in enumerate(ranks(2, program)):
        assert_close(outs[0], want[0][rank::2])
        assert_close(outs[1], want[1][rank::2])
        assert_close(mean, plain.running_mean)
        assert_close(outs[2], want[2], rtol=1e-5, atol=1e-5)
        assert half.dtype == torch.half and torch.allclose(half.float(), want[0][rank::2], atol=5e-3)
        assert_close(bare[..., 0], want[0][rank::2])
    norm = nn.SyncBatchNorm(3)
    assert_close(norm(X), F.batch_norm(X, None, None, training=True))


def test_sync_batch_norm_in_a_distributed_model():
    """A small net of convolutions on two ranks trains as on one."""
    torch.manual_seed(0)
    start = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 3, 3),
                          nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))
    x, target = torch.randn(8, 2, 4, 4), torch.arange(8) % 2

    def train(model, x, target):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(4):
            optimizer.zero_grad()
            value = F.cross_entropy(model(x), target)
            value.backward()
            optimizer.step()
        return [value.item(), *(t.clone() for t in (*model.parameters(), *model.buffers()))]

    def program(rank, group):
        model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(start), group), process_group=group)
        return train(model, x[rank::2], target[rank::2])
    (a, *first), (b, *_) = ranks(2, program)
    whole, *values = train(start, x, target)
    assert abs((a + b) / 2 - whole) < 1e-5
    for p, q in zip(first, values, strict=True):
        assert_close(p, q, rtol=1e-4, atol=1e-5)
