"""DistributedDataParallel, its buckets, hooks and uneven inputs, and SyncBatchNorm: ranks are threads here, and processes in test_ddp_processes.py."""
import copy
import pickle
import threading
from datetime import timedelta

import pytest
from support import cpu_only

import tensorgrad as torch
from tensorgrad import distributed as dist
from tensorgrad import nn
from tensorgrad.distributed import backends
from tensorgrad.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, default_hooks, register_ddp_comm_hook
from tensorgrad.distributed.algorithms.join import Join, Joinable, JoinHook
from tensorgrad.nn import functional as F
from tensorgrad.nn import parallel, processes
from tensorgrad.nn.parallel import DistributedDataParallel as DDP
from tensorgrad.nn.parallel.buckets import assigned
from tensorgrad.testing import assert_close

pytestmark = cpu_only
TINY = 40 / (1 << 20)       # MiB: ten numbers of float32 in a bucket


def ranks(size, program):
    """What `program(rank, group)` gives on each of so many ranks, which are threads; the first error."""
    store, results, errors, groups = dist.HashStore(), [None] * size, [], [None] * size
    limit = timedelta(seconds=60)

    def run(rank):
        try:
            transport = backends.creator("gloo")(dist.PrefixStore("ranks", store), rank, size, limit, "ranks", None)
            groups[rank] = dist.ProcessGroup(rank, size, None, {"cpu": transport}, "ranks", limit)
            results[rank] = program(rank, groups[rank])
        except BaseException as error:
            errors.append(error)
            for group in groups:        # nobody waits for this rank
                if group is not None:
                    group.abort()
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if errors:
        raise errors[0]
    return results


class Alone:
    """A group of one, or of as many as one says, whose others have what this one has; it keeps a list of what was asked for."""

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
        return {"left": lambda: self.left(h), "right": lambda: self.right(h), "both": lambda: self.left(h) + self.right(h).sin()}[way]()


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
    """Whatever buckets do: gradients set to None or to zero, added up in between, of parameters laid out in another order, of another dtype."""
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
    assert events == ["last", *["bucket"] * 4, *["bucket"] * 3, "last", "bucket"], "from the second step on, in the order in which gradients came"
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
        assert ddp.reducer.buckets[0].flat is flat and all(p.grad is g for p, g in zip(model.parameters(), kept, strict=True)), "added up in place"
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
    """In no_sync, in a second backward through a graph, or in one that forward did not announce, they add up in each process."""
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
        ddp, alone, x = DDP(copy.deepcopy(start), process_group=group, bucket_cap_mb=TINY), copy.deepcopy(start), X[rank::2]
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
        with pytest.raises(RuntimeError, match="Expected to have finished reduction in the prior iteration before starting a new one. This error indicates "
                                               "that your module has parameters that were not used in producing loss.") as error:
            missing(ddp)
        assert "Parameters which did not receive grad for rank 0: right.bias, right.weight\nParameter indices which did not receive grad for rank 0: 4 5" \
            in str(error.value)
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
        ddp, alone = DDP(copy.deepcopy(start), process_group=group, find_unused_parameters=True, bucket_cap_mb=TINY, gradient_as_bucket_view=view), None
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
        with pytest.raises(RuntimeError, match="one parameter is unused in first iteration, but then got used in the second iteration"):
            loss(ddp, X, "both").backward()
    ranks(2, program)
    ddp = DDP(net(), process_group=Alone(2), static_graph=True)
    loss(ddp, X, "both").backward()
    loss(ddp, X, "left").backward()
    with pytest.raises(RuntimeError, match="one parameter is used in first iteration, but then got unused in the second iteration"):
        ddp(X)
    ddp = DDP(net(), process_group=Alone(2))
    ddp._set_static_graph()
    with pytest.warns(UserWarning, match="no need to set it again"):
        ddp._set_static_graph()


def test_checkpoints_that_share_parameters():
    """Each gradient comes twice in a backward, by backwards inside it: only a static graph knows when it is complete."""
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
    with pytest.raises(RuntimeError, match="Expected to mark a variable ready only once.*index [01] with name linear.(weight|bias) has been marked"):
        ddp(x).sum().backward()


def test_sparse_flags_and_skipped_buckets():
    model = nn.Sequential(nn.Embedding(5, 3, sparse=False), nn.Linear(3, 2))
    ddp = DDP(model, process_group=Alone(2))
    ddp(torch.tensor([1, 1, 4])).sum().backward()
    assert model[0].weight.grad[1].abs().sum() > 0 and model[0].weight.grad[0].abs().sum() == 0
    group = Alone(2)
    ddp = DDP(net(), process_group=group, find_unused_parameters=True, skip_all_reduce_unused_params=True, bucket_cap_mb=1 / (1 << 20))
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
    assert first.startswith("[0]: params[0] in this process with sizes [2, 2] appears not to match sizes of the same param in process 1.")
    assert second.startswith("[1]: params[0] in this process with sizes [2, 3] appears not to match sizes of the same param in process 0.")
    _, second = both(lambda rank: nn.Linear(2, 2).double() if rank else nn.Linear(2, 2))
    assert "appears not to match the dtype of the same param in process 0" in second
    _, second = both(lambda rank: nn.Conv2d(2, 2, 3).to(memory_format=(torch.contiguous_format, torch.channels_last)[rank]))
    assert second.startswith("[1]: params[0] in this process with sizes [2, 2, 3, 3] appears not to match strides of the same param in process 0.")
    first, second = both(lambda rank: nn.Sequential(*(nn.Linear(2, 2) for _ in range(1 + rank))))
    assert first == "DDP expects same model across all ranks, but Rank 0 has 2 params, while rank 1 has inconsistent 4 params."
    assert second == "DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 0 has inconsistent 2 params."


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
    assert not torch.equal(mean, other) and (mean - other).abs().max() < 0.5, "the first's at the start of a forward, and then a step of its own"
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
    refused(ValueError, "Default process group has not been initialized, please make sure to call init_process_group.", nn.Linear(1, 1), process_group=None)
    refused(RuntimeError, "is not needed when a module doesn't have any parameter that requires a gradient", nn.ReLU())
    refused(ValueError, "device_ids can only be None or contain a single element", nn.Linear(1, 1), device_ids=[0, 1])
    refused(ValueError, r"device_ids and output_device arguments only work with .* but got device_ids \[0\]", nn.Linear(1, 1), device_ids=[0])
    refused(RuntimeError, "uninitialized parameters can't be used", nn.LazyLinear(1))
    refused(NotImplementedError, "mixed_precision", nn.Linear(1, 1), mixed_precision=object())
    refused(RuntimeError, "Cannot specify both", nn.Linear(1, 1), device_mesh=object())
    with pytest.warns(FutureWarning, match="check_reduction"):
        DDP(nn.Linear(1, 1), process_group=Alone(), check_reduction=True)
    with pytest.warns(FutureWarning, match="DistributedDataParallelCPU` is deprecated"):
        module = parallel.DistributedDataParallelCPU(nn.Linear(1, 1), process_group=Alone())
    module(torch.ones(1, 1)).sum().backward()
    assert module.module.weight.grad.tolist() == [[1.]]


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
    with pytest.raises(RuntimeError, match="Pickling/Unpickling are only supported when using DDP with the default process group"):
        pickle.dumps(DDP(net(), process_group=group))
    processes.default_group = group
    try:
        ddp = DDP(net(), find_unused_parameters=True)
        twins = pickle.loads(pickle.dumps(ddp)), copy.deepcopy(ddp)
        for twin in twins:
            group.log.clear()
            loss(twin, X, "left").backward()
            assert len(group.log) == 2 and twin.module.left.weight.grad is not None and ddp.module.left.weight.grad is None
    finally:
        processes.default_group = None
    data = ddp._get_ddp_logging_data()
    assert data["world_size"] == 2 and data["bucket_sizes"] == "112" and data["module_name"] == "Net"


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


# ── communication hooks ───────────────────────────────────────────────────────────────────────────────────────────────


def test_communication_hooks():
    start = net()

    def program(rank, group):
        results = {}
        for name, register in {
            "none": lambda ddp: None,
            "allreduce": lambda ddp: ddp.register_comm_hook(group, default_hooks.allreduce_hook),
            "fp16": lambda ddp: ddp.register_comm_hook(group, default_hooks.fp16_compress_hook),
            "bf16": lambda ddp: ddp.register_comm_hook(group, default_hooks.bf16_compress_hook),
            "wrapped fp16": lambda ddp: ddp.register_comm_hook(group, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)),
            "wrapped bf16": lambda ddp: ddp.register_comm_hook(group, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)),
            "noop": lambda ddp: register_ddp_comm_hook(DDPCommHookType.NOOP, ddp),
        }.items():
            ddp = DDP(copy.deepcopy(start), process_group=group, bucket_cap_mb=TINY)
            register(ddp)
            loss(ddp, X[rank::2]).backward()
            results[name] = gradients(ddp)
        return results
    first, second = ranks(2, program)
    for name, tolerance in {"allreduce": 1e-7, "fp16": 1e-3, "bf16": 1e-2, "wrapped fp16": 1e-3, "wrapped bf16": 1e-2}.items():
        for a, b, plain in zip(first[name], second[name], first["none"], strict=True):
            assert torch.equal(a, b) and torch.allclose(a, plain, rtol=tolerance, atol=tolerance)
    assert not torch.equal(first["bf16"][0], first["none"][0])
    assert all(torch.equal(a, b) for a, b in zip(first["fp16"], first["wrapped fp16"], strict=True))
    assert not torch.equal(first["noop"][0], second["noop"][0])


def test_a_hook_of_the_programs_own():
    seen = []

    def hook(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        seen.append((state, bucket.index(), bucket.is_last(), bucket.buffer().numel(), [tuple(g.shape) for g in bucket.gradients()],
                     [p is q for p, q in zip(bucket.parameters(), (model.bias, model.weight), strict=True)]))
        for gradient in bucket.gradients():
            gradient.mul_(2)
        future = torch.futures.Future()
        future.set_result(bucket.buffer() + 1)
        return future
    model = nn.Linear(3, 2)
    ddp = DDP(model, process_group=Alone(1))
    ddp.register_comm_hook("state", hook)
    ddp(X).sum().backward()
    assert seen == [("state", 0, True, 8, [(2,), (2, 3)], [True, True])]
    assert model.bias.grad.tolist() == [17., 17.]
    assert_close(model.weight.grad, 2 * X.sum(0).expand(2, 3) + 1)


def test_hooks_that_are_refused():
    ddp = DDP(nn.Linear(3, 2), process_group=Alone(2))
    with pytest.raises(TypeError, match="Communication hook must be callable."):
        ddp.register_comm_hook(None, 3)

    def other(state, bucket: int): ...

    def gives(state, bucket) -> int: ...
    with pytest.raises(ValueError, match="bucket annotation should be dist.GradBucket"):
        ddp.register_comm_hook(None, other)
    with pytest.raises(ValueError, match="return annotation should be torch.futures.Future"):
        ddp.register_comm_hook(None, gives)
    ddp.register_comm_hook(None, lambda state, bucket: 5)
    with pytest.raises(RuntimeError, match="register_comm_hook or register_builtin_comm_hook can only be called once."):
        ddp.register_comm_hook(None, lambda state, bucket: 5)
    with pytest.raises(RuntimeError, match="callback must return a torch.futures.Future object, but got int"):
        ddp(X).sum().backward()


# ── uneven inputs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_uneven_inputs():
    def program(rank, group, **kwargs):
        torch_model = nn.Linear(1, 1, bias=False)
        ddp, seen = DDP(torch_model, process_group=group), []
        with ddp.join(**kwargs):
            for i in range(2 + rank):
                ddp(torch.full((1, 1), i + 1.)).sum().backward()
                seen.append(torch_model.weight.grad.item())
                with torch.no_grad():
                    torch_model.weight -= torch_model.weight.grad
                ddp.zero_grad()
        return seen, torch_model.weight.item()
    (short, a), (long, b) = ranks(2, program)
    assert short == [1., 2.] and long == [1., 2., 1.5] and a == b
    (short, a), (long, b) = ranks(2, lambda rank, group: program(rank, group, divide_by_initial_world_size=False))
    assert long == [1., 2., 3.] and a == b

    def early(rank, group):
        with pytest.raises(RuntimeError) as error:
            program(rank, group, throw_on_early_termination=True)
        return str(error.value)
    assert ranks(2, early) == ["Rank 0 exhausted all inputs.", "Detected at least one rank that exhausted inputs. Throwing across all ranks."]


def test_uneven_inputs_of_all_that_communicates():
    """Buffers, unused parameters, buckets in a new order, steps without synchronization, hooks: the others go on, and all end with one module."""
    torch.manual_seed(0)
    start = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))

    def program(rank, group):
        found = []
        for options in ({}, {"find_unused_parameters": True}, {"static_graph": True}, {"hook": True}):
            hook = options.pop("hook", False)
            ddp = DDP(copy.deepcopy(start), process_group=group, bucket_cap_mb=TINY, **options)
            if hook:
                ddp.register_comm_hook(None, lambda state, bucket: default_hooks.allreduce_hook(group, bucket))
            optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
            with Join([ddp]):
                for i in range(4 * rank):
                    if i == 2:
                        with ddp.no_sync():
                            loss(ddp, X * i).backward()
                        continue
                    optimizer.zero_grad()
                    loss(ddp, X * i).backward()
                    optimizer.step()
            found.append([t.clone() for t in (*ddp.parameters(), *ddp.buffers())])
        return found
    first, _, third = ranks(3, program)
    for a, b in zip(first, third, strict=True):
        assert all(torch.equal(p, q) for p, q in zip(a, b, strict=True))
        assert not torch.equal(a[0], start[0].weight)


def test_joinables_of_the_programs_own():
    class Counter(Joinable):
        def __init__(self, group):
            super().__init__()
            self.group, self.sums, self.ended = group, [], None

        def __call__(self):
            Join.notify_join_context(self)
            t = torch.ones(1)
            self.group.allreduce(t).wait()
            self.sums.append(t.item())

        def join_hook(self, **kwargs):
            counter = self

            class Hook(JoinHook):
                def main_hook(self):
                    counter.group.allreduce(torch.zeros(1)).wait()

                def post_hook(self, is_last_joiner):
                    counter.ended = is_last_joiner, kwargs
            return Hook()
        join_device = property(lambda self: torch.device("cpu"))
        join_process_group = property(lambda self: self.group)

    def program(rank, group):
        counter = Counter(group)
        with Join([counter], word=1):
            for _ in range(rank + 1):
                counter()
        return counter.sums, counter.ended
    assert ranks(3, program) == [([3.], (False, {"word": 1})), ([3., 2.], (False, {"word": 1})), ([3., 2., 1.], (True, {"word": 1}))]
    with pytest.raises(ValueError, match="requires at least one joinable"):
        Join([])
    with pytest.raises(ValueError, match="multiple process groups"):
        Join([Counter(1), Counter(2)])
    with pytest.raises(AssertionError, match="constructor calls the ``Joinable`` constructor"):
        Join.notify_join_context(object())
    assert isinstance(DDP(nn.Linear(1, 1), process_group=Alone()), Joinable)


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
        return [y, *first, second[0], *map(total, second[1:]), norm.running_mean, norm.running_var, norm.num_batches_tracked]

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
    start = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))
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
    first, second = ranks(2, lambda rank, group: train(DDP(copy.deepcopy(start), process_group=group, bucket_cap_mb=0.01), text[rank::2]))
    assert_close((first + second) / 2, train(start, text), rtol=1e-6, atol=1e-6)
    assert first[-1] < first[0]
