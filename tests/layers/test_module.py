"""`layers.Module`: how it is made, weights that go from one to another, files, clones, and the scope it follows."""
import abc
import copy
import io
import os
import pickle

import numpy as np
import pytest

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.layers.module import Module
from tensorgrad.layers.scope import device_scope


class Net(Module):
    """A network in the words of one who forgot the first line of the constructor."""

    def __init__(self, width, *, bias=True, sizes=(1, 2), offset=0):
        self.first = nn.Linear(3, width, bias=bias)
        self.norm = nn.BatchNorm1d(width)
        self.second = nn.Linear(width, 2)
        self.offset = offset

    def forward(self, x):
        return self.second(self.norm(self.first(x)).relu()) + self.offset


class Positional(Module):
    def __init__(self, a, b):
        super().__init__()
        self.linear = nn.Linear(a, b)

    def forward(self, x):
        return self.linear(x)


def same_state(a, b):
    one, other = a.state_dict(), b.state_dict()
    return list(one) == list(other) and all(torch.equal(x, y) for x, y in zip(one.values(), other.values()))


def changed(module, seed=0):
    """A copy of the module with separate weights and buffers."""
    torch.manual_seed(seed)
    for t in (*module.parameters(), *module.buffers()):
        with torch.no_grad():
            t.copy_(torch.rand(t.shape).mul(10).to(t.dtype))
    return module


# ── how it is made ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_constructor_of_the_base_need_not_be_called():
    net = Net(4)
    assert (net(torch.ones(5, 3)).shape == (5, 2) and len(list(net.parameters())) == 6
            and list(dict(net.named_children())) == ["first", "norm", "second"])
    net.eval()
    assert not net.norm.training and net.state_dict().keys() == {f"{a}.{b}" for a, names in (
        ("first", "weight bias"), ("norm", "weight bias running_mean running_var num_batches_tracked"),
        ("second", "weight bias")) for b in names.split()}
    with pytest.raises(AttributeError, match="before Module.__init__"):
        type("Plain", (nn.Module,), {"__init__": lambda self: setattr(self, "a", nn.Linear(1, 1))})()


def test_what_was_assigned_before_the_base_was_initialized_stays():
    class Late(Module):
        def __init__(self):
            self.early = nn.Linear(1, 1)
            self.weight = nn.Parameter(torch.ones(1))
            self.register_buffer("count", torch.zeros(1))
            super().__init__()
            self.later = nn.Linear(1, 1)
    late = Late()
    assert (list(dict(late.named_children())) == ["early", "later"] and "weight" in dict(late.named_parameters())
            and "count" in late.state_dict())
    with pytest.raises(TypeError, match="takes 1 positional argument"):
        Module(3)


def test_other_bases():
    class Mixin:
        def __init__(self, a):
            self.a = a

    class Both(Module, Mixin):
        call_super_init = True

        def __init__(self):
            super().__init__(3)
            self.linear = nn.Linear(1, 1)

    class Wide(Module, nn.Linear):
        def __init__(self, n):
            super().__init__(n, 2 * n)

    class Abstract(Module, abc.ABC):
        @abc.abstractmethod
        def forward(self, x): ...
    assert Both().a == 3 and len(list(Both().parameters())) == 2 and "call_super_init" not in Both().__dict__
    assert Wide(2)(torch.ones(1, 2)).shape == (1, 4) and Wide(2).init_args_dict == {None: [2]}
    with pytest.raises(TypeError, match="abstract"):
        Abstract()


def test_the_arguments_of_the_constructor():
    class Thing(Module):
        def __init__(self, a, b, e, f1):
            a.append(99)
    sizes = [1, {"n": [2]}]
    thing = Thing(sizes, 20, e=-10, f1="x")
    sizes[1]["n"].append(3)
    assert thing.init_args_dict == {None: [[1, {"n": [2]}], 20], "e": -10, "f1": "x"}
    assert (Module().init_args_dict == {} and Net(4).init_args_dict == {None: [4]}
            and Net(width=4).init_args_dict == {"width": 4})


def test_copies_and_pickles_know_their_arguments():
    net = changed(Net(4, bias=False))
    for twin in copy.deepcopy(net), pickle.loads(pickle.dumps(net)), copy.copy(net):
        assert twin.init_args_dict == {None: [4], "bias": False} and same_state(twin, net)


# ── weights ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_weights_go_from_one_to_another():
    a, b, c = changed(Net(4), 1), changed(Net(4), 2), changed(Net(4), 3)
    assert a.copy_from(b) is a and same_state(a, b)
    assert b.copy_to(c) is b and same_state(b, c) and c.first.weight is not b.first.weight
    a, b = changed(Net(4), 1), changed(Net(4), 2)
    parameters = list(a.parameters())
    expected = [0.9 * p.detach().numpy() + 0.1 * q.detach().numpy() for p, q in zip(a.parameters(), b.parameters())]
    a.soft_update(b, 0.1)
    for p, q in zip(a.parameters(), expected):
        np.testing.assert_allclose(p.detach().numpy(), q, rtol=1e-6, atol=1e-6)
    assert all(p is q for p, q in zip(a.parameters(), parameters)) and all(p.requires_grad for p in parameters)
    assert all(torch.equal(p, q) for p, q in zip(a.buffers(), b.buffers()))
    assert a.hard_update(b) is a and same_state(a, b)


def test_weights_of_other_forms_change_nothing():
    a, before = Net(4), Net(4)
    before.copy_from(a)
    for other in Net(5), Net(4, bias=False), nn.Linear(3, 4):
        for update in a.copy_from, a.hard_update, lambda m: a.soft_update(m, 0.5):
            with pytest.raises(ValueError, match="the modules differ"):
                update(other)
    assert same_state(a, before)


def test_freezing():
    net = Net(4)
    assert net.freeze() is net and not any(p.requires_grad for p in net.parameters())
    assert net.unfreeze() is net and all(p.requires_grad for p in net.parameters())


def test_clipping_gradients():
    a = changed(Net(4))
    b = copy.deepcopy(a)
    for net in a, b:
        net(torch.arange(6.).reshape(2, 3)).pow(2).sum().backward()
    norm, expected = a.clip_grad_norm(1.5), nn.utils.clip_grad_norm_(b.parameters(), 1.5)
    assert norm > 1.5 and torch.equal(norm, expected)
    assert a.clip_grad_norm(1.0, norm_type=float("inf")) == nn.utils.clip_grad_norm_(b.parameters(), 1.0, float("inf"))
    a.clip_grad_value(0.01)
    nn.utils.clip_grad_value_(b.parameters(), 0.01)
    assert all(torch.equal(p.grad, q.grad) and p.grad.abs().max() <= 0.01
               for p, q in zip(a.parameters(), b.parameters()))


def test_parameters_as_bytes():
    a, b = changed(Net(4).double(), 1), changed(Net(4), 2)
    data = a.parameters_to_binary()
    assert type(data) is bytes and len(data) == 4 * sum(p.numel() for p in a.parameters())
    assert np.frombuffer(data, "<f4")[:12].tolist() == a.first.weight.float().flatten().tolist()
    assert b.parameters_from_binary(data) is b
    assert (all(torch.equal(p.float(), q) for p, q in zip(a.parameters(), b.parameters()))
            and b.first.weight.requires_grad)
    before = b.parameters_to_binary()
    for wrong in data[:-4], data + b"0", b"":
        with pytest.raises(ValueError, match=f"take {len(data)} bytes, got {len(wrong)}"):
            b.parameters_from_binary(wrong)
    assert b.parameters_to_binary() == before
    assert Module().parameters_to_binary() == b"" and not list(Module().parameters_from_binary(b"").parameters())


# ── clones and files ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", [lambda: Net(4), lambda: Net(width=4, bias=False), lambda: Net(3, offset=1),
                                  lambda: Positional(3, b=2)])
def test_clones(make):
    net = changed(make()).eval().double()
    next(net.parameters()).requires_grad_(False)
    twin = net.clone()
    assert (type(twin) is type(net) and twin.init_args_dict == net.init_args_dict and same_state(net, twin)
            and not twin.training)
    assert [p.requires_grad for p in twin.parameters()] == [p.requires_grad for p in net.parameters()]
    x = torch.ones(2, 3, dtype=torch.float64)
    assert torch.equal(net(x), twin(x))
    with torch.no_grad():
        next(twin.parameters()).zero_()
    assert not same_state(net, twin)


def test_a_clone_shares_no_modules_it_was_made_with():
    class Around(Module):
        def __init__(self, inner):
            self.inner = inner
    around = Around(nn.Linear(2, 2))
    assert around.clone().inner is not around.inner and same_state(around.clone(), around)
    around.more = nn.Linear(1, 1)
    with pytest.raises(ValueError, match="the modules differ: 4 and 2 parameters|the modules differ: 2 and 4 "
                                         "parameters"):
        around.clone()


def test_files_rebuild_the_module(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    net = changed(Net(4, bias=False, sizes=[1, (2, {"a": None})], offset=2.5)).eval()
    net.save("~/net.pt")
    assert os.path.exists(tmp_path / "net.pt")
    restored = Net.load_with_init("~/net.pt").eval()
    assert same_state(restored, net) and restored.init_args_dict == net.init_args_dict and restored.offset == 2.5
    assert torch.equal(restored(torch.ones(2, 3)), net(torch.ones(2, 3)))
    other = changed(Net(4, bias=False), 5)
    assert other.load("~/net.pt") is other and same_state(other, net)
    file = io.BytesIO()
    net.save(file)
    file.seek(0)
    assert same_state(Net.load_with_init(file), net)
    net.save(tmp_path / "path.pt")
    assert same_state(Net(4, bias=False).load(tmp_path / "path.pt"), net)


def test_modules_that_wait_for_their_shapes(tmp_path):
    class Lazy(Module):
        def __init__(self, n):
            self.linear = nn.LazyLinear(n)

        def forward(self, x):
            return self.linear(x)
    new, built, x = Lazy(3), Lazy(3).double(), torch.ones(1, 4, dtype=torch.float64)
    with pytest.raises(ValueError, match="linear.weight waits for its shape"):
        new.save(tmp_path / "net.pt")
    assert not os.listdir(tmp_path) and new.clone().linear.out_features == 3
    expected = built(x)
    with pytest.raises(ValueError, match="the modules differ: linear.weight waits"):
        built.copy_from(new)
    assert (torch.equal(built.clone()(x), expected) and torch.allclose(Lazy(3).double().soft_update(built, 0.1)(x),
                                                                       expected))
    built.save(tmp_path / "net.pt")
    assert torch.equal(Lazy.load_with_init(tmp_path / "net.pt").double()(x), built.float().double()(x))
    assert Lazy(3).copy_from(built).linear.weight.shape == (3, 4)


def test_weights_that_do_not_fit_change_nothing(tmp_path):
    changed(Net(4)).save(tmp_path / "net.pt")
    for other in Net(4, bias=False), Net(5), Positional(3, 4):
        before = copy.deepcopy(changed(other))
        with pytest.raises(RuntimeError, match="Error.* in loading state_dict"):
            other.load(tmp_path / "net.pt")
        assert same_state(other, before)
    with pytest.raises(TypeError):
        Positional.load_with_init(tmp_path / "net.pt")


class Options:
    pass


@pytest.mark.parametrize("argument, place", [
    (Options(), r"the constructor's arguments\[None\]\[1\]"), ([{"a": Options()}], r"\[None\]\[1\]\[0\]\['a'\]"),
    ({Options(): 1}, "key <"), (print, "builtin_function"), (np.float32(1), "float32"), (nn.Linear(1, 1), "Linear"),
    (Options, "type is no plain data"),
])
def test_only_plain_data_is_saved(tmp_path, argument, place):
    class Any_(Module):
        def __init__(self, *args):
            pass
    path = tmp_path / "net.pt"
    path.write_bytes(b"as before")
    with pytest.raises(TypeError, match=place):
        Any_(1, argument).save(path)
    assert path.read_bytes() == b"as before" and os.listdir(tmp_path) == ["net.pt"]


def test_files_run_nothing(tmp_path):
    path = tmp_path / "net.pt"
    torch.save({"args": [Options()], "kwargs": {}, "state_dict": {}}, path)
    with pytest.raises(pickle.UnpicklingError):
        Net.load_with_init(path)
    for wrong in [1, 2], {"args": []}, {"args": (), "kwargs": {}, "state_dict": {}}, nn.Linear(1, 1).state_dict():
        torch.save(wrong, path)
        with pytest.raises(ValueError, match=r"no file of a layers\.Module"):
            Net(4).load(path)
        with pytest.raises(ValueError, match=r"no file of a layers\.Module"):
            Net.load_with_init(path)


# ── the scope ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_module_follows_the_scope_it_is_called_in():
    net = Net(4)
    weight, optimizer = net.first.weight, torch.optim.SGD(net.parameters(), lr=0.1)
    with device_scope(-1, torch.float64):
        assert net.first.weight.dtype == torch.float32
        out = net(torch.ones(5, 3))
        assert (out.dtype == torch.float64 and {p.dtype for p in net.parameters()} == {torch.float64}
                and net.norm.running_mean.dtype == torch.float64)
        assert net.norm.num_batches_tracked.dtype == torch.int64
        out.sum().backward()
        optimizer.step()
    assert net.first.weight is weight and weight.grad.dtype == torch.float64
    assert net(torch.ones(5, 3, dtype=torch.float64)).dtype == torch.float64, ("outside of scopes a module stays as it "
                                                                               "is")
    with device_scope("cpu"):
        assert net(torch.ones(5, 3)).dtype == torch.float32
    with torch.device("cpu"):
        assert net.double()(torch.ones(5, 3, dtype=torch.float64)).dtype == torch.float64


def test_a_module_goes_to_the_device_of_the_scope(two_devices):
    net, plain = Net(4), nn.Linear(3, 2)
    with device_scope("cuda:1"):
        assert net(torch.ones(5, 3)).device == "cuda:1" == net.norm.running_mean.device and plain.weight.device == "cpu"
        with torch.device("cpu"):
            assert net(torch.ones(5, 3)).device == "cpu"
        assert net(torch.ones(5, 3)).device == "cuda:1"
    twin = net.clone()
    assert (twin.first.weight.device == "cuda:1" and same_state(twin, net)
            and len(net.parameters_to_binary()) == 4 * sum(p.numel() for p in net.parameters()))
    with device_scope(-1):
        assert net(torch.ones(5, 3)).device == "cpu"
