"""Checkpointer and streams: what is saved is restored to the bit, by files that anybody can read, or nothing changes at
all.
"""
import copy
import errno
import os
import random
import resource

import numpy as np
import pytest
from killing import digest
from support import fresh_process

import tensorgrad as tg
from tensorgrad.experiment import Checkpointer, streams
from tensorgrad.optim import lr_scheduler as schedulers
from tensorgrad.utils.data import DataLoader


def model():
    return tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.BatchNorm1d(4), tg.nn.Dropout(0.5), tg.nn.ReLU(),
                            tg.nn.Linear(4, 2))


def seed(number):
    random.seed(number), np.random.seed(number), tg.manual_seed(number)


def train(net, optimizer, steps=3, scheduler=None, scaler=None):
    """A few steps, and all random streams in them."""
    for _ in range(steps):
        x = tg.randn(6, 3) + random.random() + np.random.rand()

        def closure(x=x):
            optimizer.zero_grad()
            loss = net(x).square().sum()
            (scaler.scale(loss) if scaler else loss).backward()
            return loss
        if scaler:
            closure()
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step(closure)
        if scheduler is not None:
            scheduler.step(*[float(x.sum())] * isinstance(scheduler, schedulers.ReduceLROnPlateau))


def states(**parts):
    return digest([{name: part.state_dict() for name, part in parts.items()}, streams.state()])


def goes_on(folder, make, train):
    """Parts that are made anew and restored come to the same as the first ones."""
    seed(1)
    parts = make()
    train(**parts)
    Checkpointer(folder, **parts).save(3)
    train(**parts)
    expected = states(**parts)
    seed(2)
    parts = make()
    assert Checkpointer(folder, **parts).restore() == {"step": 3}
    train(**parts)
    assert states(**parts) == expected


OPTIMIZERS = {name: kind for name, kind in vars(tg.optim).items()
              if isinstance(kind, type) and issubclass(kind, tg.optim.Optimizer)
              and name not in ("Optimizer", "SparseAdam", "Muon")}


@pytest.mark.parametrize("name", [*OPTIMIZERS, "SGD momentum", "Adam amsgrad"])
def test_optimizers(tmp_path, name):
    options = {"SGD momentum": dict(momentum=0.9, nesterov=True), "Adam amsgrad": dict(amsgrad=True)}.get(name, {})

    def make():
        net = model()
        return dict(net=net, optimizer=OPTIMIZERS[name.split()[0]](net.parameters(), lr=0.01, **options))
    goes_on(tmp_path, make, train)


SCHEDULERS = {
    "StepLR": lambda o: schedulers.StepLR(o, 2), "MultiStepLR": lambda o: schedulers.MultiStepLR(o, [1, 4]),
    "CosineAnnealingLR": lambda o: schedulers.CosineAnnealingLR(o, 5),
    "CosineAnnealingWarmRestarts": lambda o: schedulers.CosineAnnealingWarmRestarts(o, 2),
    "CyclicLR": lambda o: schedulers.CyclicLR(o, 0.01, 0.1, 2),
    "OneCycleLR": lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=20),
    "ConstantLR": schedulers.ConstantLR, "LinearLR": schedulers.LinearLR,
    "ExponentialLR": lambda o: schedulers.ExponentialLR(o, 0.9),
    "PolynomialLR": schedulers.PolynomialLR, "ReduceLROnPlateau": lambda o: schedulers.ReduceLROnPlateau(o, patience=0),
    "LambdaLR": lambda o: schedulers.LambdaLR(o, lambda epoch: 1 / (1 + epoch)),
    "SequentialLR": lambda o: schedulers.SequentialLR(o, [schedulers.LinearLR(o), schedulers.StepLR(o, 1)], [2]),
    "ChainedScheduler": lambda o: schedulers.ChainedScheduler([schedulers.LinearLR(o), schedulers.StepLR(o, 2)]),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers(tmp_path, name):
    def make():
        net = model()
        optimizer = tg.optim.SGD(net.parameters(), lr=0.1)
        return dict(net=net, optimizer=optimizer, scheduler=SCHEDULERS[name](optimizer))
    goes_on(tmp_path, make, train)


def test_gradient_scalers(tmp_path):
    def make():
        net = model()
        return dict(net=net, optimizer=tg.optim.Adam(net.parameters()),
                    scaler=tg.amp.GradScaler("cpu", init_scale=2.0**5, growth_interval=2))
    goes_on(tmp_path, make, train)


def test_averaged_models(tmp_path):
    def make():
        net = model()
        return dict(net=net, optimizer=tg.optim.Adam(net.parameters()),
                    averaged=tg.optim.swa_utils.AveragedModel(net, use_buffers=True))

    def train_and_average(averaged, **parts):
        train(**parts)
        averaged.update_parameters(parts["net"])
    goes_on(tmp_path, make, train_and_average)


def test_models_of_layers_and_of_symbols(tmp_path):
    def layered():
        net = tg.layers.Sequential(tg.layers.Linear(4), tg.layers.BatchNorm1d(), tg.layers.ReLU(), tg.layers.Linear(2))
        net(tg.zeros(2, 3))
        return net

    def symbolic():
        x = tg.symbolic.Input(shape=(3,))
        return tg.symbolic.SymbolicModel(x, tg.nn.Linear(4, 2)(tg.nn.Dropout(0.5)(tg.nn.Linear(3, 4)(x))))
    for number, net in enumerate((layered, symbolic)):
        def make(net=net):
            made = net()
            return dict(net=made, optimizer=tg.optim.Adam(made.parameters()))
        goes_on(tmp_path / str(number), make, train)


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def trained(tmp_path):
    """A checkpoint of many parts: (its path, the Checkpointer, its parts)."""
    seed(1)
    net = model()
    optimizer = tg.optim.Adam(net.parameters())
    train(net, optimizer)
    loader = DataLoader(range(9), batch_size=2, shuffle=True, generator=tg.Generator().manual_seed(1))
    parts = dict(net=net, optimizers=[optimizer, tg.optim.SGD(net.parameters(), lr=0.1)],
                 more={"scheduler": schedulers.StepLR(optimizer, 2), "none": None},
                 loader=loader)
    checkpointer = Checkpointer(tmp_path / "ckpt", **parts)
    next(iter(loader))
    return checkpointer.save(7, epoch=1, history=[0.5, {"loss": float("nan")}]), checkpointer, parts


def test_a_file_is_read_without_the_code_of_a_project(trained):
    path, _, parts = trained
    program = f"""
import sys, tensorgrad
state = tensorgrad.load({str(path)!r}, weights_only=True)
print(list(state), list(state["parts"]), state["step"], state["parts"]["net"]["0.weight"].shape, "tensorgrad.experiment" in sys.modules)"""  # noqa: E501
    assert fresh_process(program).strip() == ("['format', 'step', 'epoch', 'history', 'parts', 'streams'] ['net', "
                                              "'optimizers', 'more', 'loader'] 7 torch.Size([4, 3]) False")


def test_pytorch_reads_a_file(trained):
    torch = pytest.importorskip("torch")
    path, checkpointer, parts = trained
    state = torch.load(path, weights_only=True)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5), torch.nn.ReLU(),
                              torch.nn.Linear(4, 2))
    net.load_state_dict(state["parts"]["net"])
    torch.optim.Adam(net.parameters()).load_state_dict(state["parts"]["optimizers"][0])
    assert net[0].weight.detach().numpy().tobytes() == parts["net"][0].weight.detach().numpy().tobytes()
    torch.set_rng_state(torch.tensor(list(state["streams"]["tensorgrad"]["bytes"]), dtype=torch.uint8))
    streams.restore(tg.load(path)["streams"])
    assert torch.rand(3).tolist() == tg.rand(3).tolist()


@pytest.mark.parametrize("value, path", [
    ({"a": [1, (2, print)]}, r"thing\['a'\]\[1\]\[1\] is of the type builtins.builtin_function_or_method"),
    ({"a": np.float64(1)}, r"thing\['a'\] is of the type numpy.float64, .*: `x.item\(\)` is a number"),
    ({"a": np.zeros(2)}, r"thing\['a'\] is of the type numpy.ndarray, .*: `tensorgrad.tensor\(x\)`"),
    ({frozenset([1]): 1}, r"the key frozenset\(\{1\}\) of thing is of the type builtins.frozenset"),
    ({"a": range(3)}, r"thing\['a'\] is of the type builtins.range"),
    ({"a": Checkpointer}, r"thing\['a'\] is of the type builtins.type"),
    ({"a": {1, (print,)}}, r"thing\['a'\]\[\d\]\[0\]"),
    ({"a": {1: tg.Generator()}}, r"thing\['a'\]\[1\] is of the type tensorgrad.generator.Generator"),
])
def test_what_a_file_cannot_hold_is_refused_before_it_is_written(tmp_path, value, path):
    class Thing:
        def state_dict(self):
            return value

        def load_state_dict(self, state):
            pass

    checkpointer = Checkpointer(tmp_path / "ckpt", thing=Thing())
    with pytest.raises(TypeError, match=path):
        checkpointer.save(1)
    with pytest.raises(TypeError, match=path):
        Checkpointer(tmp_path / "ckpt").save(1, thing=value)
    assert not (tmp_path / "ckpt").exists()


def test_what_a_file_can_hold(tmp_path):
    """All that is let through is read back, here and by PyTorch."""
    import collections
    values = [None, True, 10**30, 1.5, 2j, "é\0", b"\xff", bytearray(b"ab"), tg.Size([1, 2]), tg.device("cpu"),
              tg.bfloat16, [1, (2, ())], {1: {"a": 2}}, collections.OrderedDict(a=1), collections.Counter("aab"),
              {1, "b", (2, 3)}, tg.zeros(2, dtype=tg.bfloat16), tg.nn.Parameter(tg.ones(2)),
              model().state_dict(), tg.strided]
    path = Checkpointer(tmp_path).save(1, values=values)
    assert digest(Checkpointer(tmp_path).restore()["values"]) == digest(values)
    torch = pytest.importorskip("torch")
    assert len(torch.load(path, weights_only=True)["values"]) == len(values)


def test_what_holds_itself(tmp_path):
    values = [1]
    values.append({"a": values})
    with pytest.raises(ValueError, match=r"values\[1\]\['a'\] holds itself"):
        Checkpointer(tmp_path).save(1, values=values)


def names(folder):
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("linked", [True, False], ids=["links", "no links"])
def test_files_that_stay(tmp_path, linked, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(errno.EPERM, "no links here")
    if not linked:
        monkeypatch.setattr(os, "link", refuse)
    checkpointer = Checkpointer(tmp_path, keep=2)
    for step in 1, 2, 10, 3:
        assert checkpointer.save(step, value=step) == tmp_path / f"step={step}.ckpt"
        assert checkpointer.restore() == {"step": step, "value": step} == checkpointer.restore(tmp_path / "last.ckpt")
    assert names(tmp_path) == ["last.ckpt", "step=10.ckpt", "step=3.ckpt"]
    checkpointer.save(4, "best")
    checkpointer.save(4, "last.ckpt", value=5)
    assert names(tmp_path) == ["best.ckpt", "last.ckpt", "step=10.ckpt", "step=3.ckpt"]
    assert checkpointer.restore()["value"] == 5
    if linked:
        assert os.stat(tmp_path / "step=3.ckpt").st_nlink == 1
        checkpointer.save(3)
        assert os.path.samefile(tmp_path / "step=3.ckpt", tmp_path / "last.ckpt")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\0b", 3])
def test_names_that_are_no_file_s(tmp_path, name):
    with pytest.raises(ValueError, match="the name of a checkpoint is that of a file in its directory"):
        Checkpointer(tmp_path).save(1, name)


@pytest.mark.parametrize("damage", [lambda data: data[:-30], lambda data: b"",
                                    lambda data: data[:300] + bytes(300) + data[600:]],
                         ids=["cut", "empty", "zeros"])
def test_a_damaged_file_is_passed_over(tmp_path, damage):
    checkpointer = Checkpointer(tmp_path, keep=3)
    assert checkpointer.restore() is None and not list(tmp_path.iterdir())
    for step in 1, 2:
        checkpointer.save(step)
    last = tmp_path / "last.ckpt"
    last.write_bytes(damage(last.read_bytes()))     # by either of its names
    with pytest.warns(UserWarning, match="the checkpoint .*last.ckpt cannot be read, so the one before it is taken"):
        assert checkpointer.restore() == {"step": 1}
    (tmp_path / "step=1.ckpt").write_bytes(b"PK")
    with pytest.warns(UserWarning), pytest.raises(RuntimeError,
                                                  match=r"none of the checkpoints can be read:\n.*last.ckpt: "
                                                        r".*\n.*step=1.ckpt: "):
        checkpointer.restore()
    with pytest.raises(FileNotFoundError):
        checkpointer.restore(tmp_path / "other.ckpt")


def test_a_full_disk(tmp_path):
    checkpointer = Checkpointer(tmp_path, net=model())
    checkpointer.save(1)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError):
            checkpointer.save(2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_a_directory_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="file"):
        Checkpointer(tmp_path / "file").save(1)
    assert (tmp_path / "file").read_text() == "mine"


def test_what_killed_saves_left_is_removed(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    left = [tmp_path / f".{name}.0123456789abcdef.part" for name in ("step=3.ckpt", "last.ckpt", "best.of.all.ckpt")]
    others = [tmp_path / name for name in (".step=3.ckpt.0123.part", "step=3.ckpt.0123456789abcdef.part", "notes.txt",
                                           ".held.ckpt.0123456789abcdef.part")]
    for path in left + others:
        path.write_bytes(b"x")
    with open(others[-1], "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        Checkpointer(tmp_path).save(1)
    assert names(tmp_path) == sorted(["last.ckpt", "step=1.ckpt", *(path.name for path in others)])


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def everything(parts):
    return digest([parts["net"].state_dict(), [optimizer.state_dict() for optimizer in parts["optimizers"]],
                   parts["more"]["scheduler"].state_dict(),
                   parts["loader"].state_dict(), streams.state()])


def without(state, *path):
    state = copy.deepcopy(state)
    inner = state
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return state


def changed(state, value, *path):
    state = copy.deepcopy(state)
    inner = state
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return state


@pytest.mark.parametrize("spoil, error, text", [
    (lambda s: without(s, "parts", "net"), ValueError,
     "the checkpoint has no part 'net'; its parts: 'optimizers', 'more', 'loader'"),
    (lambda s: without(s, "parts", "more", "scheduler"), ValueError,
     "the checkpoint has no part 'scheduler' in more; its parts: 'none'"),
    (lambda s: without(s, "parts", "optimizers", 1), ValueError,
     "the checkpoint has 1 states for optimizers, which has 2"),
    (lambda s: changed(s, None, "parts", "net"), ValueError, "the checkpoint has no state of net"),
    (lambda s: changed(s, 3, "parts", "more"), ValueError,
     "the checkpoint has no part 'scheduler', 'none' in more; its parts: none"),
    (lambda s: without(s, "parts", "net", "0.weight"), RuntimeError, 'Missing key'),
    (lambda s: changed(s, tg.zeros(5, 3), "parts", "net", "4.weight"), RuntimeError, "size mismatch for 4.weight"),
    (lambda s: changed(s, [], "parts", "optimizers", 1, "param_groups"), ValueError,
     "different number of parameter groups"),
    (lambda s: changed(s, None, "parts", "more", "scheduler"), ValueError, "no state of more.scheduler"),
    (lambda s: changed(s, {}, "parts", "loader"), ValueError, "not the state of a DataLoader"),
    (lambda s: changed(s, 4, "parts", "loader", "loader", "batch_size"), ValueError,
     "the state is that of another DataLoader: batch_size 4, here 2"),
    (lambda s: without(s, "streams", "numpy"), ValueError, "the state has no random stream 'numpy'"),
    (lambda s: changed(s, 3, "streams", "tensorgrad"), ValueError,
     "the state of the random stream 'tensorgrad' is of no use"),
    (lambda s: changed(s, {}, "streams", "numpy"), ValueError, "the state of the random stream 'numpy' is of no use"),
    (lambda s: changed(s, 2, "format"), ValueError, "the checkpoint has the format 2, and this version knows 1"),
    (lambda s: without(s, "parts"), ValueError, "this is not the state of a Checkpointer"),
    (lambda s: 5, ValueError, "this is not the state"),
])
def test_nothing_changes_after_an_error(trained, spoil, error, text):
    path, checkpointer, parts = trained
    state = spoil(tg.load(path))
    train(parts["net"], parts["optimizers"][0])
    train(parts["net"], parts["optimizers"][1])
    parts["more"]["scheduler"].step()
    next(iter(parts["loader"]))
    before = everything(parts)
    with pytest.raises(error, match=text) as caught:
        checkpointer.load(state)
    if error is RuntimeError:
        assert caught.value.__notes__ == ["(restoring the part 'net' of a checkpoint)"]
    assert everything(parts) == before
    checkpointer.restore(path)
    assert everything(parts) != before


def test_a_part_that_cannot_go_back_comes_last(trained):
    path, _, parts = trained
    order = []

    class Part:
        def __init__(self, name, last=False, fails=False):
            self.name, self.restore_last, self.fails = name, last, fails

        def state_dict(self):
            return self.name

        def check_state_dict(self, state):
            order.append(f"check {self.name}")

        def load_state_dict(self, state):
            order.append(f"load {state}")
            if self.fails:
                raise OSError("gone")

    checkpointer = Checkpointer(path.parent, run=Part("run", last=True), loader=DataLoader(range(3)), a=Part("a"),
                                b=Part("b"))
    state = checkpointer.state()
    checkpointer.load(state)
    assert order == ["check run", "check a", "check b", "load a", "load b", "load run"]
    order.clear()
    checkpointer.parts["run"].fails = True
    with pytest.raises(OSError, match="gone"):
        checkpointer.load(state)
    assert order == ["check run", "check a", "check b", "load a", "load b", "load run", "load b", "load a"]


def test_a_checkpoint_of_more_parts_serves_those_that_are_here(trained):
    path, _, parts = trained
    net = model()
    assert Checkpointer(path.parent, net=net).restore()["epoch"] == 1
    assert digest(net.state_dict()) == digest(parts["net"].state_dict())


@pytest.mark.parametrize("make, error, text", [
    (lambda: Checkpointer("x", net=3), TypeError, "net has no state_dict and load_state_dict: int"),
    (lambda: Checkpointer("x", nets=[model(), "a"]), TypeError, r"nets\[1\] has no state_dict"),
    (lambda: Checkpointer("x", nets={"a": {"b": 2}}), TypeError, "nets.a.b has no state_dict"),
    (lambda: Checkpointer("x", nets={1: model()}), TypeError, "the names of parts are strings, but nets has the key 1"),
    (lambda: Checkpointer("x", keep=0), ValueError, "keep is None or a positive integer, but got 0"),
    (lambda: Checkpointer("x").state(parts=1), ValueError, "'parts' is the name of a part of every checkpoint"),
    (lambda: Checkpointer("x").save("a"), TypeError, "cannot be interpreted as an integer"),
])
def test_mistakes(make, error, text):
    with pytest.raises(error, match=text):
        make()


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def drawn():
    return (random.random(), random.gauss(0, 1), np.random.rand(), np.random.normal(), tg.rand(2).tolist(),
            tg.randn(3).tolist())


def test_streams_go_back():
    """With the second of a pair of normal numbers, which two of them hold back."""
    seed(4)
    drawn()
    state = streams.state()
    first, second = drawn(), drawn()
    seed(5)
    streams.restore(state)
    assert (drawn(), drawn()) == (first, second)


@pytest.mark.parametrize("state, text", [
    (None, "the state of the random streams is a dict, but got NoneType"), ({}, "no random stream 'python'"),
    ({"python": (3, (1, 2), None)}, "the state of the random stream 'python' is of no use"),
    ({"numpy": {"bit_generator": "PCG64"}}, "the state of the random stream 'numpy' is of no use"),
    ({"tensorgrad": {"dtype": "uint8", "bytes": tg.zeros(5056, dtype=tg.uint8)}},
     "the state of the random stream 'tensorgrad' is of no use: Invalid mt19937"),
])
def test_streams_stay_after_an_error(state, text):
    now = streams.state()
    with pytest.raises(ValueError, match=text):
        streams.restore(state if not state else now | state)
    assert digest(streams.state()) == digest(now)


def test_the_streams_of_devices():
    program = """
import tensorgrad as torch
from tensorgrad.experiment import streams
torch.manual_seed(1)
before = streams.state()
a = torch.rand(2, device="cuda:1")
state = streams.state()
b = torch.rand(2, device="cuda:1")
print(sorted(before), sorted(state))
streams.restore(state)
print(torch.equal(b, torch.rand(2, device="cuda:1")), b.tolist())
"""
    shown, same = fresh_process(program, TENSORGRAD_SIMULATED_CUDA="2").splitlines()
    assert (shown == "['numpy', 'python', 'tensorgrad'] ['cuda:1', 'numpy', 'python', 'tensorgrad']"
            and same.startswith("True"))


def test_the_stream_of_a_device_that_has_not_drawn_yet(tmp_path):
    first = f"""
import tensorgrad as torch
from tensorgrad.experiment import Checkpointer
torch.manual_seed(1)
torch.rand(2, device="cuda:1")
Checkpointer({str(tmp_path)!r}).save(1)
print(torch.rand(2, device="cuda:1").tolist())
"""
    second = f"""
import tensorgrad as torch
from tensorgrad.experiment import Checkpointer
torch.manual_seed(3)
Checkpointer({str(tmp_path)!r}).restore()
print(torch.rand(2, device="cuda:1").tolist())
"""
    drawn = fresh_process(first, TENSORGRAD_SIMULATED_CUDA="2")
    assert fresh_process(second, TENSORGRAD_SIMULATED_CUDA="2") == drawn
    fresh_process(second.replace('"cuda:1"', '"cpu"'))      # without devices
