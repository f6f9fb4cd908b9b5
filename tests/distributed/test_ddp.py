"""DistributedDataParallel and its buckets: ranks are threads here, and processes in test_ddp_processes.py."""
import copy
import pickle

import pytest
from ddp_parts import TINY, Alone, X, gradients, loss, net, ranks, same_gradients
from support import cpu_only

import tensorgrad as torch
from tensorgrad import distributed as dist
from tensorgrad import nn
from tensorgrad.nn import functional as F
from tensorgrad.nn import parallel, processes
from tensorgrad.nn.parallel import DistributedDataParallel as DDP
from tensorgrad.nn.parallel.buckets import assigned
from tensorgrad.testing import assert_close

pytestmark = cpu_only

# ── buckets ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_parameters_are_assigned_to_buckets_as_they_fill():
    sizes = [(4, torch.float32), (2, torch.float64), (6, torch.float32), (1, torch.float32), (3, torch.float64)]
    parameters = [torch.zeros(n, dtype=dtype) for n, dtype in sizes]
    assert assigned(parameters, [4, 3, 2, 1, 0], [16, 1000]) == [[4], [3, 2], [1], [0]]
    assert assigned(parameters, range(5), [1000]) == [[0, 2, 3], [1, 4]]
    assert assigned(parameters, range(5), [1]) == [[0], [1], [2], [3], [4]]


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("size", [2, 3])
def test_ranks_train_as_one_process_with_the_whole_batch(size, view):
    """Whatever buckets do: gradients set to None or to zero, added up in between, of parameters laid out in another
    order, of another dtype.
    """
    start = net()
    with torch.no_grad():
        start.left.weight.set_(start.left.weight.t().contiguous().t())
    start.right.double()
    start.forward = lambda x: start.left(start.first(x)) + start.right(start.first(x).double())

    def program(rank, group):
        model, alone = copy.deepcopy(start), copy.deepcopy(start)
        for module in (model, alone):
            module.forward = lambda x, m=module: m.left(m.first(m.first(x).tanh())) + m.right(m.first(x).double()).sin()
        ddp = DDP(model, process_group=group, bucket_cap_mb=TINY, gradient_as_bucket_view=view)
        ours, theirs = (torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (ddp, alone))
        x = X[:6] if size == 3 else X
        for step in range(5):
            if step != 3:       # there, gradients add up
                ours.zero_grad(set_to_none=step % 2 == 0)
                theirs.zero_grad()
            loss(ddp, x[rank::size]).backward()
            loss(alone, x).backward()
            if step == 3:
                continue        # the mean of the sums: not that of one process, whose first summand was a mean already
            same_gradients(model, alone)
            ours.step()
            theirs.step()
        return [p.detach() for p in model.parameters()]
    first, *others = ranks(size, program)
    for other in others:
        assert all(torch.equal(p, q) for p, q in zip(first, other, strict=True)), "equal bits on all ranks"


def test_buckets_travel_in_one_order_while_backward_goes_on():
    events, group = [], Alone(2)
    layers = nn.Sequential(*(nn.Linear(3, 3) for _ in range(4)))
    ddp = DDP(layers, process_group=group, bucket_cap_mb=TINY)
    assert [bucket.indices for bucket in ddp.reducer.buckets] == [[7, 6], [5, 4], [3, 2], [1, 0]]
    allreduce = group.allreduce
    group.allreduce = lambda tensor: events.append("bucket") or allreduce(tensor)
    layers[0].weight.register_hook(lambda g: events.append("first layer"))
    ddp(X).sum().backward()
    assert events == ["bucket"] * 3 + ["first layer", "bucket"]

    class Backwards(nn.Module):
        """Layers in the order in which gradients come, in which buckets fill in the reverse of their order."""

        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

        def forward(self, x):
            for layer in reversed(self.layers):
                x = layer(x)
            return x
    events.clear()
    ddp = DDP(Backwards(), process_group=group, bucket_cap_mb=TINY)
    ddp.module.layers[3].weight.register_hook(lambda g: events.append("last"))
    for _ in range(2):
        ddp(X).sum().backward()
    assert events == ["last", *["bucket"] * 4, *["bucket"] * 3, "last",
                      "bucket"], "from the second step on, in the order in which gradients came"
    order = [i for bucket in ddp.reducer.buckets for i in bucket.indices]
    assert sorted(order[:2]) == [0, 1] and sorted(order[-2:]) == [6, 7]


def test_all_ranks_take_the_order_of_the_first():
    class Ways(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)

        def forward(self, x, rank):
            return self.b(self.a(x)) if rank else self.a(self.b(x))

    def program(rank, group):
        ddp = DDP(Ways(), process_group=group, bucket_cap_mb=1 / (1 << 20))
        for _ in range(3):
            ddp(X, rank).sum().backward()
        return [bucket.indices for bucket in ddp.reducer.buckets]
    assert ranks(2, program) == [[[0], [1]]] * 2


def test_memory_of_gradients():
    """Views of buckets: new ones in each step, or the same ones; a program's own memory stays its own."""
    for view in (False, True):
        model = net()
        ddp = DDP(model, process_group=Alone(2), gradient_as_bucket_view=view)
        for _ in range(2):
            ddp.zero_grad()
            loss(ddp, X).backward()
        kept, values = [p.grad for p in model.parameters()], gradients(model)
        flat = ddp.reducer.buckets[0].flat
        assert all(p.grad.array.base is flat for p in model.parameters())
        ddp.zero_grad(set_to_none=False)
        loss(ddp, 2 * X).backward()
        assert (ddp.reducer.buckets[0].flat is flat
                and all(p.grad is g for p, g in zip(model.parameters(), kept, strict=True))), "added up in place"
        ddp.zero_grad()
        loss(ddp, X).backward()
        assert (ddp.reducer.buckets[0].flat is flat) == view
        assert all(torch.equal(p.grad, v) for p, v in zip(model.parameters(), values, strict=True))
        own = torch.zeros(9)
        model.first.weight.grad = own.view(3, 3)
        loss(ddp, X).backward()
        assert_close(own.view(3, 3), values[0])
        assert model.first.weight.grad.array.base is own.array


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_gradients_that_are_not_synchronized():
    """In no_sync, in a second backward through a graph, or in one that forward did not announce, they add up in each
    process.
    """
    start = net()

    def program(rank, group):
        ddp, alone, x = DDP(copy.deepcopy(start), process_group=group), copy.deepcopy(start), X[rank::2]
        with ddp.no_sync():
            loss(ddp, x).backward()
        loss(alone, x).backward()
        same_gradients(ddp, alone)
        with ddp.no_sync():
            assert not ddp.require_backward_grad_sync
            out = loss(ddp, 2 * x)
        out.backward()
        loss(alone, 2 * x).backward()
        same_gradients(ddp, alone)
        before = gradients(ddp)
        out = loss(ddp, 3 * x)
        with ddp.no_sync():
            out.backward(retain_graph=True)      # forward was outside
        loss(alone, 3 * x).backward()
        mean = gradients(ddp)
        out.backward()
        for m, p in zip(mean, ddp.parameters(), strict=True):
            assert not torch.equal(m, p.grad), "a second time, by itself"
        with torch.no_grad():
            ddp(x)
        for a, p in zip(gradients(alone), alone.parameters(), strict=True):
            group.allreduce(a).wait()
            p.grad = a / 2
        for m, p in zip(mean, alone.parameters(), strict=True):
            assert_close(m, p.grad)
        return before, mean
    (before, mean), (other, again) = ranks(2, program)
    assert not torch.equal(before[0], other[0])
    assert all(torch.equal(a, b) for a, b in zip(mean, again, strict=True))


def test_several_forwards_before_one_backward():
    start = net()

    def program(rank, group):
        ddp, alone, x = (DDP(copy.deepcopy(start), process_group=group, bucket_cap_mb=TINY), copy.deepcopy(start),
                         X[rank::2])
        (loss(ddp, x) + loss(ddp, x.cos())).backward()
        (loss(alone, X) + loss(alone, X.cos())).backward()
        same_gradients(ddp, alone)
    ranks(2, program)


def test_gradients_of_gradients():
    """A penalty on the gradient of the input, and a second backward through what a first one left."""
    start = net()

    def program(rank, group):
        ddp, alone = DDP(copy.deepcopy(start), process_group=group), copy.deepcopy(start)
        for model, x in ((ddp, X[rank::2]), (alone, X)):
            x = x.clone().requires_grad_()
            slope, = torch.autograd.grad(model(x).pow(2).sum(), x, create_graph=True)
            slope.pow(2).sum(1).mean().backward()
        same_gradients(ddp, alone)
    ranks(2, program)
    model = nn.Linear(3, 1, bias=False)
    ddp, w = DDP(model, process_group=Alone(2)), model.weight
    with pytest.warns(UserWarning, match="reference cycle"):
        ddp(X).pow(2).sum().backward(create_graph=True)
    first = w.grad
    assert first.requires_grad
    w.grad = None
    first.pow(2).sum().backward()
    assert_close(w.grad, (8 * first @ (X.t() @ X) / 2).detach())
    w.grad = first = None


def test_parameters_without_gradients():
    def program(rank, group):
        ddp = DDP(net(), process_group=group)
        loss(ddp, X, "left").backward()
        return ddp
    for missing in (lambda ddp: loss(ddp, X, "left"), lambda ddp: ddp(X), lambda ddp: ddp._check_reducer_finalized()):
        ddp = program(0, Alone(2))
        with pytest.raises(RuntimeError, match="Expected to have finished reduction in the prior iteration before "
                                               "starting a new one. This error indicates that your module has "
                                               "parameters that were not used in producing loss.") as error:
            missing(ddp)
        assert ("Parameters which did not receive grad for rank 0: right.bias, right.weight\n"
                "Parameter indices which did not receive grad for rank 0: 4 5") in str(error.value)
    ddp = DDP(net(), process_group=Alone(2))
    ddp.module.left.bias.requires_grad_(False)
    loss(ddp, X).backward()
    with pytest.raises(RuntimeError, match="Expected to have finished reduction"):
        ddp(X)


def test_a_step_that_gives_no_gradient():
    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            return x / 2

        @staticmethod
        def backward(ctx, g):
            return g / 2, None

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.unused = nn.Linear(3, 3), nn.Parameter(torch.ones(3))

        def forward(self, x):
            return Halved.apply(self.linear(x), self.unused)
    ddp = DDP(Module(), process_group=Alone(2))
    for _ in range(2):
        ddp(X).sum().backward()
    assert ddp.module.unused.grad is None and ddp.module.linear.bias.grad.tolist() == [8.] * 3


@pytest.mark.parametrize("view", [False, True])
def test_unused_parameters_are_found(view):
    start = net()

    def program(rank, group):
        ddp, alone = DDP(copy.deepcopy(start), process_group=group, find_unused_parameters=True, bucket_cap_mb=TINY,
                         gradient_as_bucket_view=view), None
        seen = []
        for ways in (("left", "left"), ("left", "right"), ("both", "left"), ("left", "left")):
            ddp.zero_grad()
            alone = copy.deepcopy(start)
            loss(ddp, X[rank::2], ways[rank]).backward()
            (sum(loss(alone, X[r::2], way) for r, way in enumerate(ways)) / 2).backward()
            same_gradients(ddp, alone)
            seen.append([p.grad is None for p in ddp.parameters()])
        with ddp.no_sync():         # what came before counts
            loss(ddp, X[rank::2], "right" if rank else "left").backward()
        loss(ddp, X[rank::2], "left").backward()
        assert all(p.grad is not None for p in ddp.parameters())
        return seen, gradients(ddp)
    (seen, end), (_, other) = ranks(2, program)
    assert seen[0] == [False] * 4 + [True] * 2 and not any(seen[1]) and seen[3] == seen[0]
    assert all(torch.equal(a, b) for a, b in zip(end, other, strict=True))


def test_a_static_graph():
    start = net()

    def program(rank, group):
        ddp = DDP(copy.deepcopy(start), process_group=group, static_graph=True, bucket_cap_mb=TINY)
        for _ in range(3):
            alone = copy.deepcopy(start)
            ddp.zero_grad()
            loss(ddp, X[rank::2], "left").backward()
            loss(alone, X, "left").backward()
            same_gradients(ddp, alone)
        with pytest.raises(RuntimeError, match="one parameter is unused in first iteration, but then got used in the "
                                               "second iteration"):
            loss(ddp, X, "both").backward()
    ranks(2, program)
    ddp = DDP(net(), process_group=Alone(2), static_graph=True)
    loss(ddp, X, "both").backward()
    loss(ddp, X, "left").backward()
    with pytest.raises(RuntimeError, match="one parameter is used in first iteration, but then got unused in the "
                                           "second iteration"):
        ddp(X)
    ddp = DDP(net(), process_group=Alone(2))
    ddp._set_static_graph()
    with pytest.warns(UserWarning, match="no need to set it again"):
        ddp._set_static_graph()


def test_checkpoints_that_share_parameters():
    """Each gradient arrives twice in a backward, by nested backwards: only a static graph can tell when it is
    complete.
    """
    from tensorgrad.utils.checkpoint import checkpoint

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x):
            return checkpoint(self.linear, checkpoint(self.linear, x, use_reentrant=True).tanh(), use_reentrant=True)
    torch.manual_seed(0)
    start, x = Twice(), X.clone().requires_grad_()

    def program(rank, group):
        ddp, alone = DDP(copy.deepcopy(start), process_group=group, static_graph=True), copy.deepcopy(start)
        for _ in range(3):
            ddp.zero_grad()
            ddp(x[rank::2]).sin().mean().backward()
        alone(x.detach().requires_grad_()).sin().mean().backward()
        same_gradients(ddp, alone)
    ranks(2, program)
    ddp = DDP(copy.deepcopy(start), process_group=Alone(2))
    with pytest.raises(RuntimeError, match="Expected to mark a variable ready only once.*index [01] with name "
                                           "linear.(weight|bias) has been marked"):
        ddp(x).sum().backward()


def test_sparse_flags_and_skipped_buckets():
    model = nn.Sequential(nn.Embedding(5, 3, sparse=False), nn.Linear(3, 2))
    ddp = DDP(model, process_group=Alone(2))
    ddp(torch.tensor([1, 1, 4])).sum().backward()
    assert model[0].weight.grad[1].abs().sum() > 0 and model[0].weight.grad[0].abs().sum() == 0
    group = Alone(2)
    ddp = DDP(net(), process_group=group, find_unused_parameters=True, skip_all_reduce_unused_params=True,
              bucket_cap_mb=1 / (1 << 20))
    loss(ddp, X, "left").backward()
    assert group.log == [2, 6, 3, 9, 6], "the way to the right did not travel; which parameters were used did"


# ── at the start ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_modules_must_be_alike():
    def both(make):
        def program(rank, group):
            with pytest.raises(RuntimeError) as error:
                DDP(make(rank), process_group=group)
            return str(error.value)
        return ranks(2, program)
    first, second = both(lambda rank: nn.Linear(2 + rank, 2))
    assert first.startswith("[0]: params[0] in this process with sizes [2, 2] appears not to match sizes of the same "
                            "param in process 1.")
    assert second.startswith("[1]: params[0] in this process with sizes [2, 3] appears not to match sizes of the same "
                             "param in process 0.")
    _, second = both(lambda rank: nn.Linear(2, 2).double() if rank else nn.Linear(2, 2))
    assert "appears not to match the dtype of the same param in process 0" in second
    _, second = both(lambda rank: nn.Conv2d(2, 2,
                                            3).to(memory_format=(torch.contiguous_format, torch.channels_last)[rank]))
    assert second.startswith("[1]: params[0] in this process with sizes [2, 2, 3, 3] appears not to match strides of "
                             "the same param in process 0.")
    first, second = both(lambda rank: nn.Sequential(*(nn.Linear(2, 2) for _ in range(1 + rank))))
    assert (first == "DDP expects same model across all ranks, but Rank 0 has 2 params, while rank 1 has inconsistent "
                     "4 params.")
    assert (second == "DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 0 has inconsistent "
                      "2 params.")


def test_ranks_start_with_the_values_of_the_first():
    models = [nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 2, bias=False).double()) for _ in range(2)]
    models[0][1].running_mean.fill_(7)

    def program(rank, group):
        model = models[rank]
        model[0].weight.requires_grad_(False)
        ddp = DDP(model, process_group=group)
        start = [t.clone() for t in (*model.parameters(), *model.buffers())]
        model[1].running_mean.add_(rank)
        model.forward = lambda x: model[2](model[1](model[0](x)).double())
        ddp(X[rank::2])
        return start, model[1].running_mean.clone(), list(ddp.state_dict())
    (a, mean, names), (b, other, _) = ranks(2, program)
    assert all(torch.equal(p, q) for p, q in zip(a, b, strict=True))
    assert not torch.equal(mean, other) and (mean - other).abs().max() < 0.5, ("the first's at the start of a forward, "
                                                                               "and then a step of its own")
    assert names[0] == "module.0.weight"
    with pytest.warns(FutureWarning, match="`broadcast_buffers` is deprecated"):
        ddp = DDP(nn.BatchNorm1d(3), process_group=Alone(2), broadcast_buffers=False)
    assert not ddp.broadcast_buffers and not ddp.will_sync_module_buffers()
    with pytest.warns(FutureWarning, match="Both"):
        ddp = DDP(nn.BatchNorm1d(3), process_group=Alone(2), broadcast_buffers=False, forward_sync_buffers=True)
    assert ddp.will_sync_module_buffers()


def test_what_cannot_be_wrapped():
    def refused(error, match, *args, **kwargs):
        with pytest.raises(error, match=match):
            DDP(*args, **{"process_group": Alone(), **kwargs})
    refused(ValueError, "Default process group has not been initialized, please make sure to call init_process_group.",
            nn.Linear(1, 1), process_group=None)
    refused(RuntimeError, "is not needed when a module doesn't have any parameter that requires a gradient", nn.ReLU())
    refused(ValueError, "device_ids can only be None or contain a single element", nn.Linear(1, 1), device_ids=[0, 1])
    refused(ValueError, r"device_ids and output_device arguments only work with .* but got device_ids \[0\]",
            nn.Linear(1, 1), device_ids=[0])
    refused(RuntimeError, "uninitialized parameters can't be used", nn.LazyLinear(1))
    refused(NotImplementedError, "mixed_precision", nn.Linear(1, 1), mixed_precision=object())
    refused(RuntimeError, "Cannot specify both", nn.Linear(1, 1), device_mesh=object())
    with pytest.warns(FutureWarning, match="check_reduction"):
        DDP(nn.Linear(1, 1), process_group=Alone(), check_reduction=True)
    with pytest.warns(FutureWarning, match="DistributedDataParallelCPU` is deprecated"):
        module = parallel.DistributedDataParallelCPU(nn.Linear(1, 1), process_group=Alone())
    module(torch.ones(1, 1)).sum().backward()
    assert module.module.weight.grad.tolist() == [[1.]]


@pytest.mark.parametrize("view", [False, True])
def test_modules_on_devices_of_their_own(two_devices, view):
    """Each rank has a device, to which inputs are moved; norms and unused parameters there, too."""
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.norm = net(), nn.BatchNorm1d(3)

        def forward(self, x, way="both"):
            return self.net(self.norm(x), way)
    start = Module()

    def program(rank, group):
        model = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(start), group).cuda(rank)
        ddp = DDP(model, device_ids=[rank], process_group=group, gradient_as_bucket_view=view,
                  find_unused_parameters=True, bucket_cap_mb=TINY)
        assert ddp.device == torch.device("cuda", rank) and ddp.device_ids == [rank] and ddp.output_device == rank
        alone = copy.deepcopy(start)
        for way in ("both", "left"):
            (ddp(X[rank::2], way) * torch.tensor([1., -2.]).cuda(rank)).pow(2).mean().backward()
            loss(alone, X, way).backward()
        return gradients(ddp), gradients(alone), [b.cpu() for b in ddp.buffers()], list(alone.buffers())
    for rank, (ours, theirs, buffers, others) in enumerate(ranks(2, program)):
        for p, q in zip(ours, theirs, strict=True):
            assert p.device == torch.device("cuda", rank)
            assert_close(p.cpu(), q)
        for p, q in zip(buffers, others, strict=True):
            assert_close(p, q)


def test_what_is_left_out():
    model = net()
    DDP._set_params_and_buffers_to_ignore_for_model(model, ["right.weight", "right.bias"])
    group = Alone(2)
    ddp = DDP(model, process_group=group)
    for _ in range(2):
        loss(ddp, X, "left").backward()
    assert set(group.log) == {3 + 9 + 2 + 6}


def test_copies_and_pickles():
    group = Alone(2)
    with pytest.raises(RuntimeError, match="Pickling/Unpickling are only supported when using DDP with the default "
                                           "process group"):
        pickle.dumps(DDP(net(), process_group=group))
    processes.default_group = group
    try:
        ddp = DDP(net(), find_unused_parameters=True)
        twins = pickle.loads(pickle.dumps(ddp)), copy.deepcopy(ddp)
        for twin in twins:
            group.log.clear()
            loss(twin, X, "left").backward()
            assert (len(group.log) == 2 and twin.module.left.weight.grad is not None
                    and ddp.module.left.weight.grad is None)
    finally:
        processes.default_group = None
    data = ddp._get_ddp_logging_data()
    assert data["world_size"] == 2 and data["bucket_sizes"] == "112" and data["module_name"] == "Net"


def test_errors_in_backward():
    """Forward works again after a changed dtype, and after failed communication."""
    ddp = DDP(net(), process_group=Alone(2), gradient_as_bucket_view=True)
    for _ in range(2):
        loss(ddp, X).backward()
    ddp.double()
    ddp.zero_grad()
    with pytest.raises(RuntimeError, match="Expected torch.float32 on cpu, got torch.float64 on cpu"):
        loss(ddp, X.double()).backward()
    group = Alone(2)
    ddp = DDP(net(), process_group=group, bucket_cap_mb=TINY)
    allreduce = group.allreduce

    def failing(tensor):
        work = dist.Work()
        work.fail(dist.DistBackendError("Connection closed by peer: rank 1"))
        return work
    group.allreduce = failing
    with pytest.raises(dist.DistBackendError, match="rank 1"):
        loss(ddp, X).backward()
    group.allreduce = allreduce
    ddp.zero_grad()
    loss(ddp, X).backward()
    alone = net()
    loss(alone, X).backward()
    same_gradients(ddp, alone)


def test_nothing_is_kept():
    """A wrapper that is gone lets its module be; backward keeps no graph."""
    model, group = net(), Alone(2)
    ddp = DDP(model, process_group=group)
    loss(ddp, X).backward()
    del ddp
    assert not any(p._node.hooks.accumulated for p in model.parameters())
    ddp = DDP(model, process_group=group)
    ddp._remove_autograd_hooks()
    group.log.clear()
    loss(ddp, X).backward()
    assert group.log == []


def test_a_language_model_has_the_losses_of_one_process():
    from examples.chargpt.model import GPT
    torch.manual_seed(0)
    start, text = GPT(13, 12, 16, 2, 2), torch.arange(8 * 13).mul(7).remainder(13).reshape(8, 13)

    def train(model, text):
        optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
        for _ in range(6):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return torch.tensor(losses)
    first, second = ranks(2, lambda rank, group: train(DDP(copy.deepcopy(start), process_group=group, bucket_cap_mb=0.01), text[rank::2]))  # noqa: E501
    assert_close((first + second) / 2, train(start, text), rtol=1e-6, atol=1e-6)
    assert first[-1] < first[0]


def test_averaging_that_a_program_asks_for_after_the_forward():
    start = net()

    def program(rank, group):
        ddp, alone, x = DDP(copy.deepcopy(start), process_group=group), copy.deepcopy(start), X[rank::2]
        with ddp.no_sync():
            out = loss(ddp, x)
        ddp.reducer.prepare_for_backward([])
        out.backward()
        loss(alone, x).backward()
        for mean, p in zip(gradients(alone), ddp.parameters(), strict=True):
            group.allreduce(mean).wait()
            assert_close(p.grad, mean / 2)
    ranks(2, program)
