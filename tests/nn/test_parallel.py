"""Modules on several devices: DataParallel and its steps, the containers of the first PyTorch, early reduction of
gradients.
"""
import copy
import pickle
import threading
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from support import DEVICE, fresh_process

import tensorgrad as tg
from tensorgrad import nn
from tensorgrad.nn import parallel
from tensorgrad.nn.parallel import GPUReplicate, Join, ParallelApply, Split, reduce_early

pytestmark = pytest.mark.usefixtures("two_devices")
Pair = namedtuple("Pair", "a b")


def close(a, b, tolerance=1e-6):
    np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().cpu().numpy(), rtol=tolerance, atol=tolerance)


def upstream(y):
    """Unequal numbers in the shape of y."""
    return (tg.arange(float(y.numel()), device=y.device) - 2.5).reshape(y.shape) / y.numel()


def gradients(module, *args, **kwargs):
    """Output and gradients of a forward and a backward."""
    module.zero_grad()
    y = module(*args, **kwargs)
    (y * upstream(y)).sum().backward()
    return [y, *(p.grad for p in module.parameters())]


class Shared(nn.Module):
    """A module with a weight in two places."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x).tanh())


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


class Parametrized(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))

    def forward(self, x):
        return self.linear(x)


MODELS = {
    "linear": (lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)), (5, 4)),
    "convolution": (lambda: nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                          nn.Linear(12, 2)), (3, 1, 6, 6)),
    "normalization": (lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU()), (4, 4)),
    "shared weights": (Shared, (4, 4)),
    "recurrent": (Recurrent, (4, 3, 4)),
    "parametrized": (Parametrized, (4, 4)),
    "attention": (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), (3, 5, 4)),
    "lists": (lambda: nn.Sequential(OrderedDict(a=nn.Linear(4, 4, bias=False),
                                                b=nn.Sequential(nn.ReLU(), nn.Linear(4, 1)))), (7, 4)),
}


# ── DataParallel ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_are_those_of_one_device(name):
    make, shape = MODELS[name]
    tg.manual_seed(0)
    model, x = make(), tg.randn(shape)
    replicated = nn.DataParallel(copy.deepcopy(model).cuda())
    for mine, single in zip(gradients(replicated, x), gradients(model, x), strict=True):
        assert mine.device == "cuda:0"
        close(mine, single)


def test_gradients_reach_the_input():
    tg.manual_seed(0)
    model, x = nn.Linear(3, 2), tg.randn(5, 3)
    found = []
    for module, place in (model, "cpu"), (nn.DataParallel(copy.deepcopy(model).cuda()),
                                          "cuda:1"), (nn.DataParallel(copy.deepcopy(model).cuda()), "cpu"):
        leaf = x.clone().to(place).requires_grad_()
        y = module(leaf)
        y.backward(upstream(y))
        assert leaf.grad.device == place
        found.append(leaf.grad)
    close(found[0], found[1])
    close(found[0], found[2])


def test_gradients_of_gradients():
    tg.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double(), tg.randn(5, 3, dtype=tg.float64)
    found = []
    for module in model, nn.DataParallel(copy.deepcopy(model).cuda()):
        y = module(x)
        g = tg.autograd.grad((y * upstream(y)).sum(), list(module.parameters())[0], create_graph=True)[0]
        (g * upstream(g)).sum().backward()
        found.append([p.grad for p in module.parameters()])
    for one, other in zip(*found, strict=True):
        if one is None:
            assert other is None
        else:
            close(one, other, 1e-12)


@pytest.mark.parametrize("samples, used", [(1, 1), (2, 2), (3, 2), (5, 2)])
def test_uneven_batches(samples, used):
    devices = []

    class Noting(nn.Linear):
        def forward(self, x):
            devices.append((x.device.index, len(x), self.weight.device.index, tg.cuda.current_device()))
            return super().forward(x)
    y = nn.DataParallel(Noting(2, 2).cuda())(tg.ones(samples, 2))
    first = -(-samples // used)
    assert (sorted(devices) == [(i, n, i, i) for i, n in enumerate([first, samples - first][:used])]
            and y.shape == (samples, 2) and y.device == "cuda:0")


def test_training_steps_are_those_of_one_device():
    tg.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), tg.randn(8, 3)
    y = x.sum(1, keepdim=True)
    losses = []
    for module, place in (model, "cpu"), (nn.DataParallel(copy.deepcopy(model).cuda()), "cuda"):
        optimizer = tg.optim.Adam(module.parameters(), lr=0.05)
        losses.append([])
        for _ in range(10):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(module(x.to(place)), y.to(place))
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    np.testing.assert_allclose(*losses, rtol=1e-4)
    assert losses[0][-1] < losses[0][0]


def test_running_statistics_are_those_of_the_first_device():
    tg.manual_seed(0)
    x = tg.randn(7, 3)
    module, single = nn.BatchNorm1d(3).cuda(), nn.BatchNorm1d(3)
    nn.DataParallel(module)(x)
    single(x[:4])
    assert module.num_batches_tracked.item() == 1
    close(module.running_mean, single.running_mean)
    close(module.running_var, single.running_var)


def test_attributes_that_replicas_set_are_lost_and_hooks_see_every_device():
    class Counting(nn.Module):
        count = 0

        def forward(self, x):
            self.count += 1
            return x
    seen = []
    module = Counting()
    module.register_forward_hook(lambda m, args, out: seen.append((m is module, out.device.index)))
    nn.DataParallel(module)(tg.ones(2, 1))
    assert module.count == 0 and sorted(seen) == [(False, 0), (False, 1)]


class Talkative(nn.Module):
    """Takes and returns nests of all kinds."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x, *, scale, pair, extra=None):
        y = self.linear(x) * scale["by"]
        return {"y": y, "pair": Pair(pair.a + y, [pair.b, None]), "sum": y.sum(), "device": (y * 0 + y.get_device(),),
                "extra": extra}


def test_inputs_and_outputs_in_nests():
    tg.manual_seed(0)
    module = Talkative()
    x, pair = tg.randn(3, 2), Pair(tg.ones(3, 2), tg.arange(3))
    single = module(x, scale={"by": 2.0}, pair=pair)
    with pytest.warns(UserWarning, match="Was asked to gather along dimension 0, but all input tensors were scalars; "
                                         "will instead unsqueeze and"):
        out = nn.DataParallel(module.cuda())(x, scale={"by": 2.0}, pair=pair)
    close(out["y"], single["y"])
    close(out["pair"].a, single["pair"].a)
    assert (type(out["pair"]) is Pair and out["pair"].b[0].tolist() == [0, 1, 2] and out["pair"].b[1] is None
            and out["extra"] is None)
    assert out["device"][0].tolist() == [[0, 0], [0, 0], [1, 1]] and out["sum"].shape == (2,)
    close(out["sum"].sum(), single["sum"])
    out["sum"].sum().backward()
    assert module.linear.bias.grad.tolist() == [6., 6.]


def test_no_tensor_among_the_inputs():
    class Constant(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(tg.ones(2))

        def forward(self, n=1):
            return self.weight * n
    module = nn.DataParallel(Constant().cuda())
    assert module().tolist() == [1, 1] and module(3).tolist() == [3, 3, 3, 3] and module(n=2).tolist() == [2, 2, 2, 2]


def test_another_axis_and_another_place():
    module = nn.DataParallel(nn.Tanh(), dim=1, output_device=1)
    x = tg.randn(2, 3)
    y = module(x)
    close(y, x.tanh())
    assert y.device == "cuda:1" and module.output_device == 1 and module.dim == 1 and module.device_ids == [0, 1]
    with pytest.warns(FutureWarning, match="Using -1 to represent CPU tensor is deprecated"):
        assert nn.DataParallel(nn.Tanh(), output_device=-1)(x).device == "cpu"


def test_one_device():
    """No copies: the module itself runs, where it was moved."""
    linear = nn.Linear(2, 2)
    module = nn.DataParallel(linear, device_ids=["cuda:1"])
    y = module(tg.ones(3, 2))
    assert linear.weight.device == y.device == "cuda:1" and module.device_ids == [1]
    y.sum().backward()
    assert linear.weight.grad.tolist() == [[3., 3.]] * 2


def test_state_dicts_copies_pickles_and_printing():
    module = nn.DataParallel(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).cuda())
    assert (list(module.state_dict())[:2] == ["module.0.weight", "module.0.bias"]
            and "module.1.running_mean" in module.state_dict())
    assert (repr(module).splitlines()[:2] == ["DataParallel(", "  (module): Sequential("]
            and module.module[0].in_features == 2)
    other = pickle.loads(pickle.dumps(copy.deepcopy(module)))
    other.load_state_dict(module.state_dict())
    x = tg.ones(4, 2)
    close(other.eval()(x), module.eval()(x))
    assert nn.DataParallel[nn.Linear].__origin__ is nn.DataParallel


def test_modes_go_along():
    seen = []

    class Looking(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            seen.append((tg.is_grad_enabled(), y.requires_grad, str(y.dtype)))
            return y
    module = nn.DataParallel(Looking(2, 2).cuda())
    module(tg.ones(2, 2))
    with tg.no_grad():
        y = module(tg.ones(2, 2))
    assert seen == [(True, True, "torch.float32")] * 2 + [(False, False, "torch.float32")] * 2 and not y.requires_grad
    with tg.autocast("cuda"):
        module(tg.ones(2, 2))
    assert seen[4:] == [(True, True, "torch.float16")] * 2
    module(tg.ones(2, 2))
    assert seen[6:] == seen[:2] and tg.is_grad_enabled()


def test_the_module_must_be_on_the_first_device():
    for place, where in ("cpu", "cpu"), ("cuda:1", "cuda:1"):
        module = nn.DataParallel(nn.Linear(2, 2).to(place))
        for run in (lambda module=module: module(tg.ones(2, 2)),
                    lambda module=module: parallel.data_parallel(module.module, tg.ones(2, 2))):
            with pytest.raises(RuntimeError, match=r"module must have its parameters and buffers on device cuda:0 "
                                                   r"\(device_ids\[0\]\) but found one of them "
                                                   f"on device: {where}"):
                run()
    with pytest.raises(RuntimeError, match="Modules with uninitialized parameters can't be used with `DataParallel`"):
        parallel.replicate(nn.LazyLinear(2).cuda(), [0, 1])


class Two(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


class Told(Exception):
    message = "x"

    def __init__(self, message):
        super().__init__(message)


@pytest.mark.parametrize("error, comes_as",
                         [(ValueError("odd"), ValueError), (KeyError("key"), KeyError), (Two(1, 2), RuntimeError),
                          (Told("so"), Told)])
def test_errors_of_replicas_come_back(error, comes_as):
    class Failing(nn.Module):
        def forward(self, x):
            if x.get_device() == 1:
                raise error
            return x
    with pytest.raises(comes_as) as caught:
        nn.DataParallel(Failing())(tg.ones(2, 1))
    lines = str(caught.value).rstrip().splitlines()
    assert lines[:2] == [f"Caught {type(error).__name__} in replica 1 on device 1.",
                         "Original Traceback (most recent call last):"]
    assert "raise error" in lines[-2] or "raise error" in lines[-3]
    assert lines[-1].endswith(str(error)) and any(", in forward" in line for line in lines)


def test_imbalance_is_warned_of(monkeypatch):
    from types import SimpleNamespace
    for what in "total_memory", "multi_processor_count":
        sizes = {"total_memory": (100, 100), "multi_processor_count": (100, 100), what: (100, 70)}
        monkeypatch.setattr(tg.cuda, "get_device_properties",
                            lambda i, sizes=sizes: SimpleNamespace(**{name: pair[i] for name, pair in sizes.items()}))
        with pytest.warns(UserWarning, match="(?s)There is an imbalance between your GPUs. You may want to exclude GPU "
                                             "1 which.*memory or cores of GPU 0"):
            nn.DataParallel(nn.ReLU())


def test_without_devices_it_is_the_module_itself():
    run = """
import sys
sys.modules["cupy"] = None
import tensorgrad as torch
from tensorgrad import nn
linear = nn.Linear(2, 2)
module = nn.DataParallel(linear, device_ids=[0, 1])
x = torch.ones(3, 2)
print(module.device_ids, torch.equal(module(x), linear(x)), list(module.state_dict()), hasattr(module, "dim"))
for use in (lambda: nn.parallel.data_parallel(linear, x), lambda: nn.parallel.parallel_apply([linear], [x]), lambda: nn.parallel.replicate(linear, [0]),
            lambda: nn.parallel.gather([x], "cpu")):
    try: use()
    except (RuntimeError, AssertionError) as error: print(type(error).__name__, error)
"""  # noqa: E501
    assert fresh_process(run).splitlines() == [
        "[] True ['module.weight', 'module.bias'] False", "RuntimeError device type could not be determined",
        "RuntimeError Cannot access accelerator device when none is available.",
        "AssertionError Broadcast function not implemented for CPU tensors",
        "AssertionError Gather function not implemented for CPU tensors"]


# ── its steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_scatter():
    x = tg.arange(5.)
    (a, b), = [parallel.scatter(x, [0, 1])]
    assert [a.device, b.device] == ["cuda:0", "cuda:1"] and a.tolist() == [0, 1, 2] and b.tolist() == [3, 4]
    first, second = parallel.scatter({"x": [x, "text"], "p": Pair(x, 3)}, [0, 1])
    assert (second["x"][0].tolist() == [3, 4] and second["x"][1] == "text" and second["p"].a.device == "cuda:1"
            and first["p"].b == 3)
    assert parallel.scatter([], [0, 1]) == [[], []] and parallel.scatter(None, [0, 1]) == [None, None]
    assert len(parallel.scatter(tg.ones(1), [0, 1])) == 1
    from tensorgrad.nn.parallel.scatter_gather import scatter_kwargs
    assert (scatter_kwargs((1,), None, [0, 1]) == (((1,), (1,)), ({}, {}))
            and scatter_kwargs((), {"a": 2}, [0, 1]) == (((), ()), ({"a": 2}, {"a": 2})))
    assert scatter_kwargs((), {}, [0, 1]) == ((), ())
    with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
        parallel.scatter(x, ["cpu"])


def test_scatter_and_gather_are_each_others_gradients():
    x = tg.arange(5., requires_grad=True)
    parts = parallel.scatter(x, [0, 1])
    y = parallel.gather([part * part for part in parts], 1)
    assert (y.device == "cuda:1" and y.grad_fn.name() == "GatherBackward"
            and parts[0].grad_fn.name() == "ScatterBackward")
    g, = tg.autograd.grad(y, x, tg.tensor([1., 2., 3., 4., 5.], device="cuda:1"), create_graph=True)
    assert g.tolist() == [0., 4., 12., 24., 40.] and g.device == "cpu"
    (g * g).sum().backward()
    assert x.grad.tolist() == [2 * 2 * x * (2 * i) ** 2 / 2 for i, x in zip(range(1, 6), range(5))]


def test_gather_refuses():
    with pytest.raises(ValueError, match="All dicts must have the same number of keys"):
        parallel.gather([{"a": 1}, {}], 0)
    with pytest.raises(AssertionError, match="Gather function not implemented for CPU tensors"):
        parallel.gather([tg.ones(1), tg.ones(1)], 0)
    for thing in (1, "text"):
        with pytest.raises(TypeError):
            parallel.gather([thing, thing], 0)


def test_replicate():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).cuda()
    first, second = parallel.replicate(module, [0, 1])
    assert first[1].running_mean is module[1].running_mean and second[1].running_mean.device == "cuda:1"
    assert (list(first.parameters()) == list(second.parameters()) == [] and isinstance(second, nn.Sequential)
            and second[0] is not module[0])
    assert (second[0].weight.device == "cuda:1" and not second[0].weight.is_leaf
            and second[0].weight.grad_fn.name() == "BroadcastBackward")
    assert first[0].weight.data_ptr() == module[0].weight.data_ptr()
    (first[0].weight.cpu() * 2 + second[0].weight.cpu() * 3).sum().backward()
    assert module[0].weight.grad.tolist() == [[5., 5.]] * 2
    assert (not parallel.replicate(module, [0, 1], detach=True)[1][0].weight.requires_grad
            and parallel.replicate(module, []) == [])
    with pytest.raises(AssertionError, match="Broadcast function not implemented for CPU tensors"):
        parallel.replicate(nn.Linear(1, 1), [0])


def test_parallel_apply():
    met = threading.Barrier(2, timeout=60)

    def meeting(x, by=1):
        met.wait()          # both are at work at the same time
        return x * by
    inputs = [tg.ones(1, device="cuda:0"), (tg.ones(1, device="cuda:1"),)]
    out = parallel.parallel_apply([meeting, meeting], inputs, [{"by": 2}, {"by": 3}], [0, 1])
    assert [(o.device, o.item()) for o in out] == [("cuda:0", 2.), ("cuda:1", 3.)]
    for arguments, what in (([], None, None), "inputs 0"), (([1], [], None), "kwargs_tup 0"), (([1], None, []),
                                                                                               "devices 0"):
        with pytest.raises(AssertionError, match=f"The number of modules 1 is not equal to the number of {what}"):
            parallel.parallel_apply([nn.ReLU()], *arguments)


def test_threads_work_in_the_streams_of_their_devices():
    seen, chosen = [], tg.cuda.Stream(1)
    with tg.cuda.stream(chosen), tg.cuda.device(0):
        parallel.parallel_apply([lambda x: seen.append(tg.cuda.current_stream() == chosen)] * 2, [1, 2], None, [0, 1])
    assert sorted(seen) == [False, True]


def test_data_parallel_as_a_function():
    tg.manual_seed(0)
    module, x = nn.Linear(2, 2).cuda(), tg.randn(5, 2)
    close(parallel.data_parallel(module, x), module(x.cuda()))
    assert parallel.data_parallel(module, (x,), [0],
                                  output_device=1).device == "cuda:0", ("one device runs the module itself")
    assert parallel.data_parallel(module, x, output_device=1).device == "cuda:1"
    close(parallel.data_parallel(module, None, module_kwargs={"input": x}), module(x.cuda()))


# ── the containers of the first PyTorch ───────────────────────────────────────────────────────────────────────────────

PLACES = pytest.mark.parametrize("places", [["cpu", "cpu", "cpu"], [0, 1], None])


def test_replicas_are_a_list():
    copies = GPUReplicate(nn.Linear(2, 2).cuda(), [0, 1, 0, 1])
    assert (len(copies) == 4 == len(list(copies)) and [c.weight.device.index for c in copies] == [0, 1, 0, 1]
            and copies[-1].weight.device == "cuda:1")
    sum(c.weight.cpu().sum() * k for k, c in enumerate(copies, 1)).backward()
    assert copies.module.weight.grad.tolist() == [[10., 10.]] * 2 and len(list(copies.parameters())) == 2
    first = copies[1]
    assert copies[1] is first, "they stay until the module changes"
    with tg.no_grad():
        copies.module.weight.fill_(7)
    assert copies[1] is not first and copies[1].weight.tolist() == [[7., 7.]] * 2
    assert not copies.eval()[1].training


@PLACES
def test_split_apply_and_join_equal_one_forward(places):
    tg.manual_seed(0)
    single = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    module = copy.deepcopy(single).to("cpu" if places and places[0] == "cpu" else "cuda")
    x = tg.randn(7, 3, requires_grad=True)
    y = single(x)
    y.backward(upstream(y))
    leaf = x.detach().requires_grad_()
    replicas = GPUReplicate(module, places)
    out = Join(ParallelApply(replicas, Split(leaf, places)))
    out.backward(upstream(out))
    assert len(Split(leaf, places)) == len(replicas) == len(places or [0, 1])
    close(out, y)
    close(leaf.grad, x.grad)
    for mine, theirs in zip(module.parameters(), single.parameters(), strict=True):
        close(mine.grad, theirs.grad)
    close(replicas(leaf), y)


def test_join_takes_lists_and_single_outputs():
    b, c = [tg.ones(2, device="cuda:1"), tg.zeros(1, device="cuda:0")], tg.full((1,), 5.)
    joined = Join(b + [c])
    assert (joined.device == "cuda:1" and joined.tolist() == [1., 1., 0., 5.] and Join(b, "cpu").device == "cpu"
            and Join([c, c], dim=0).tolist() == [5., 5.])
    with pytest.raises(AssertionError, match="The number of modules 1 is not equal to the number of inputs 2"):
        ParallelApply([nn.ReLU()], b)


class Diamond(nn.Module):
    """A feeds B, which is replicated, and C, which runs concurrently on another device; D joins their results."""

    def __init__(self, places):
        super().__init__()
        first, second = places
        self.places = places
        self.A, self.C, self.D = nn.Linear(3, 4).to(first), nn.Linear(4, 2).to(second), nn.Linear(2, 1).to(first)
        self.B = GPUReplicate(nn.Linear(4, 2).to(first), places)

    def forward(self, x):
        a = self.A(x).tanh()
        *b, c = ParallelApply([*self.B, self.C], [*Split(a, self.places), a.to(self.places[1])])
        return self.D(Join(b + [c], self.places[0]))


@pytest.mark.parametrize("places", [("cpu", "cpu"), ("cuda:0", "cuda:1")])
def test_a_network_in_the_form_of_a_diamond(places):
    tg.manual_seed(0)
    net, x = Diamond(places), tg.randn(6, 3)
    plain = copy.deepcopy(net).cpu()
    a = plain.A(x).tanh()
    expected = plain.D(tg.cat([plain.B.module(a), plain.C(a)]))
    expected.backward(upstream(expected))
    y = net(x.to(places[0]))
    y.backward(upstream(y))
    close(y, expected)
    assert y.shape == (12, 1) and y.device == places[0]
    for (name, mine), theirs in zip(net.named_parameters(), plain.parameters(), strict=True):
        assert mine.grad.device == mine.device, name
        close(mine.grad, theirs.grad)


# ── early reduction of gradients ──────────────────────────────────────────────────────────────────────────────────────


def test_gradients_are_reduced_while_backward_runs():
    """Each parameter has its turn once in a backward, before earlier layers are reached, whatever it was used for."""
    model = Shared().to(DEVICE)
    extra = nn.Linear(4, 1).to(DEVICE)
    events = []
    names = {id(p): name for name, p in [*model.named_parameters(),
                                         *((f"extra.{n}", p) for n, p in extra.named_parameters())]}
    handles = [h for m in (model, extra)
               for h in reduce_early(m, lambda p: events.append((names[id(p)], p.grad.clone())))]
    x = tg.ones(2, 4, device=DEVICE, requires_grad=True)
    h = model(x)
    h.register_hook(lambda g: events.append(("h", g)))
    h.grad_fn.register_hook(lambda *_: None)
    loss = extra(h).sum() + extra(model(x + 1)).sum()
    loss.backward()
    order = [name for name, _ in events]
    assert sorted(order) == sorted(
        ["h", *names.values()]), "once each, though the model was called twice and shares a weight"
    assert set(order[:3]) == {"extra.weight", "extra.bias", "h"} and order[3] == "second.bias", "the last layer first"
    for name, p in [*model.named_parameters(), *((f"extra.{n}", p) for n, p in extra.named_parameters())]:
        close(dict(events)[name], p.grad)
    for handle in handles:
        handle.remove()
    events.clear()
    model(x).sum().backward()
    assert [name for name, _ in events] == []


def test_replicated_parameters_are_reduced_once():
    tg.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2)).cuda()
    replicas, seen = GPUReplicate(model, [0, 1]), []
    names = {id(p): name for name, p in model.named_parameters()}
    reduce_early(model, lambda p: seen.append((names[id(p)], p.grad.clone())))
    (replicas(tg.randn(4, 2)).sum() + replicas(tg.randn(4, 2)).sum()).backward()
    assert sorted(name for name, _ in seen) == sorted(names.values())
    for name, p in model.named_parameters():
        close(dict(seen)[name], p.grad)
