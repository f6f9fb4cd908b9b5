"""Helpers of the layers: for arguments, names, numbers, times, tensors, initialisation and learning rates."""
import copy
import enum
import threading
import time

import numpy as np
import pytest

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.layers import tensors, utils
from tensorgrad.layers.initializers import (
    is_conv_module,
    th_all_initializer_dict,
    th_all_initializer_names,
    th_all_nn_modules_dict,
    th_all_nn_modules_names,
    th_initialize_module,
    th_initializer,
)
from tensorgrad.layers.schedule import LinearWithMinLR

INF = float("inf")


def test_all_names_are_there():
    assert len(set(utils.__all__)) == len(utils.__all__) and all(hasattr(utils, name) for name in utils.__all__)
    assert {"recursive_map", "shape_slice", "StringEnum", "ceildiv", "TimeRecorder",
            "SaveInitArgs"} <= set(utils.__all__)


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_objects_know_their_arguments():
    class Thing(utils.SaveInitArgs):
        def __init__(self, a, b=1, *rest, **options):
            a.append(99)
            self.done = True

    class Other(metaclass=utils.SaveInitArgsMeta):
        pass

    class Below(Thing):
        def __init__(self, n):
            super().__init__([n])
    given = [1, {"x": {2}}]
    thing = Thing(given, 20, 30, e=-10, f1="x")
    given[1]["x"].add(3)
    assert thing.init_args_dict == {None: [[1, {"x": {2}}], 20, 30], "e": -10, "f1": "x"} and thing.done
    assert (Other().init_args_dict == {} and Below(5).init_args_dict == {None: [5]}
            and Below(n=5).init_args_dict == {"n": 5})


def test_initialization_after_all_constructors():
    class Base(metaclass=utils.AutoInitializeMeta):
        def __init__(self):
            self.log = ["base"]

        def _initialize(self):
            self.log.append("initialize")

    class Below(Base):
        def __init__(self):
            super().__init__()
            self.log.append("below")
    assert Below().log == ["base", "below", "initialize"]


def test_one_list_or_dict_for_several_arguments():
    plus = utils.enable_list_arg(lambda *args, scale=1: scale * sum(args))
    assert plus(1, 2, scale=3) == plus([1, 2], scale=3) == plus((1, 2), scale=3) == 9 and plus() == 0
    total = utils.enable_varargs(lambda items: sum(items))
    assert total(1, 2) == total([1, 2]) == 3
    named = utils.enable_dict_arg(lambda **kwargs: kwargs)
    assert named({"a": 1}) == named(a=1) == {"a": 1} and named() == {}
    options = utils.enable_kwargs(lambda options: options)
    assert options({"a": 1}) == options(a=1) == {"a": 1}
    assert (utils.pack_varargs(("ab",)) == ["ab"] and utils.pack_varargs(([],)) == []
            and utils.pack_kwargs((), {"a": 1}) == {"a": 1})
    for args, kwargs in [(({},), {"a": 1}), (([],), {}), (({}, {}), {})]:
        with pytest.raises(TypeError, match="either one dict or keyword arguments"):
            utils.pack_kwargs(args, kwargs)


def test_what_functions_take():
    assert utils.accepts_varargs(lambda *a: 0) and not utils.accepts_varargs(lambda a, **k: 0)
    assert utils.accepts_kwargs(lambda **k: 0) and not utils.accepts_kwargs(lambda *a, k=1: 0)
    function = lambda a, b=1, *, c: 0
    assert utils.is_signature_compatible(function, 1, c=2) and utils.is_signature_compatible(function, 1, 2, c=2)
    assert not utils.is_signature_compatible(function, 1) and not utils.is_signature_compatible(function, 1, c=1, d=2)


# ── names, dicts, decorators ──────────────────────────────────────────────────────────────────────────────────────────


def test_types_are_checked():
    assert utils.assert_type(1, int) and utils.assert_type("a", (int, str)) and utils.assert_type("a", [int, str])
    with pytest.raises(AssertionError, match="expected int or list, got str: 'a'"):
        utils.assert_type("a", (int, list))
    with pytest.raises(AssertionError, match="^mine$"):
        utils.assert_type("a", int, "mine")


def test_printing(capsys):
    utils.print_("a", 1, header=">>", sep="-")
    utils.print_("b")
    assert capsys.readouterr().out == ">>-a-1\nb\n"
    assert ([utils.fformat(x) for x in (1.0, 0.12345, 100, 1e-9, -2.50)] == ["1", "0.123", "100", "0", "-2.5"]
            and utils.fformat(120.0, 0) == "120")


def test_enumerations_of_names():
    class Fruit(utils.StringEnum):
        Apple = enum.auto()
        pear = enum.auto()
    assert (Fruit.Apple == "Apple" and str(Fruit.pear) == f"{Fruit.pear}" == "pear"
            and Fruit["Apple"] is Fruit("Apple") is Fruit.Apple)
    for made in utils.create_string_enum("Mode", ["train", "test"]), utils.create_string_enum("Mode",
                                                                                              ("train",
                                                                                               "test")), utils.create_string_enum(  # noqa: E501
            "Mode", "train test"):
        assert ([m.value for m in made] == ["train", "test"] and made.train == "train"
                and issubclass(made, utils.StringEnum) and made.__name__ == "Mode")
    for wrong in 3, ["a", 1], {"a": 1}:
        with pytest.raises(AssertionError):
            utils.create_string_enum("Mode", wrong)
    assert utils.get_enum(Fruit, "pear") is utils.get_enum(Fruit, Fruit.pear) is Fruit.pear
    assert utils.get_enum(enum.Enum("Number", {"one": 1}), 1).name == "one"
    with pytest.raises(ValueError, match="'plum' is no option of Fruit: Apple, pear"):
        utils.get_enum(Fruit, "plum")
    assert utils.case_insensitive_match(["A", "b"], "B") == "b" and utils.case_insensitive_match([], "a") is None


def test_parts_of_dicts_and_iterables():
    d = {"a": 1, "b": 2, "c": 3}
    assert (utils.include_keys(["c", "a", "z"], d) == {"a": 1, "c": 3}
            and utils.exclude_keys(["c", "z"], d) == {"a": 1, "b": 2} and len(d) == 3)
    assert (list(utils.iter_last(iter("abc"))) == [(False, "a"), (False, "b"), (True, "c")]
            and list(utils.iter_last([])) == [])
    with utils.noop_context(1, a=2):
        pass


def test_decorators():
    @utils.deprecated
    def old(x):
        """Its text."""
        return x

    @utils.deprecated("use new()")
    def older(x):
        return x
    with pytest.warns(DeprecationWarning, match=r"^old\(\) is deprecated$"):
        assert old(1) == 1
    with pytest.warns(DeprecationWarning, match=r"^older\(\) is deprecated: use new\(\)$"):
        assert older(2) == 2
    assert old.__doc__ == "Its text."

    @utils.meta_wrap
    def times(function, n=2):
        return lambda *args: n * function(*args)
    assert times(abs)(-1) == 2 and times(n=3)(abs)(-1) == 3 and times()(abs)(-1) == 2

    class Owner:
        base = 10

        @utils.method_decorator(times(n=3))
        def plus(self, x):
            return self.base + x
    assert Owner().plus(1) == 33


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sums():
    assert utils.min_at([3, 1, 2]) == (1, 1) and utils.max_at(iter([3, 1, 3])) == (3, 0)
    assert (utils.sum_pow([1, 2, 3], 2) == 14 and utils.mean([1, 2, 6]) == 3 and utils.product([2, 3, 4]) == 24
            and utils.product([]) == 1)
    assert ([utils.ceildiv(n, 4) for n in (0, 1, 4, 5, -5)] == [0, 1, 1, 2, -1] and utils.is_div(6, 3)
            and not utils.is_div(7, 3))
    assert (utils.cum_sum([1, 2, 3]) == [1, 3, 6] and utils.cum_sum([]) == []
            and [utils.compare(a, 2) for a in (1, 2, 3)] == [-1, 0, 1])
    for function in utils.min_at, utils.max_at, utils.mean:
        with pytest.raises(ValueError):
            function([])


def test_questions_about_arrays():
    floats, ints, flags = np.ones(2, np.float32), np.ones(2, np.int64), np.ones(2, bool)
    assert [utils.is_np_array(x) for x in (floats, ints, [1], np.float32(1))] == [True, True, False, False]
    assert [utils.is_np_float_array(x) for x in (floats, ints, flags, [1.])] == [True, False, False, False]
    assert [utils.is_np_int_array(x) for x in (floats, ints, flags, [1])] == [False, True, False, False]
    assert [utils.is_np_scalar(x) for x in (np.float32(1), np.array(1), floats, 1.0)] == [True, True, False, False]
    assert ([utils.is_np_int(x) for x in (np.int8(1), np.uint8(1), np.float32(1), 1, ints)]
            == [True, True, False, False, False])
    assert [utils.is_np_float(x) for x in (np.int8(1), np.float16(1), 1.0, floats)] == [False, True, False, False]
    assert utils.np_cast([1, 2], np.float32).dtype == np.float32 and utils.np_cast(floats, "float32") is not None
    assert type(utils.np_cast(1.7, "int64")) is np.int64 and utils.np_cast(np.int64(3), "int64") == 3
    x = np.array([-2., 0.5, 3.])
    assert utils.np_clip_inplace(x, -1, 1) is x and x.tolist() == [-1, 0.5, 1]


# ── trackers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [utils.MovingAverageRecorder, utils.ThreadSafeMovingAverageRecorder])
def test_moving_averages(kind):
    values, decay = [1.0, 5.0, 2.0, 4.0], 0.75
    recorder = kind(decay)
    assert recorder.cur_value() == 0.0
    weights = [decay ** i for i in range(len(values))][::-1]
    assert ([recorder.add_value(v) for v in values][-1] == pytest.approx(np.average(values, weights=weights))
            == recorder.cur_value())
    assert kind(0.0).add_value(3.0) == 3.0 and kind().decay == 0.95
    fast, slow = kind(0.1), kind(0.9)
    for v in (0.0, 1.0):
        fast.add_value(v), slow.add_value(v)
    assert fast.cur_value() > 0.85 > 0.6 > slow.cur_value()
    with pytest.raises(ValueError, match="decay"):
        kind(1.0)


def test_averages():
    value = utils.AverageValue(2.0)
    value.add(4.0)
    assert value.avg(clear=False) == 3.0 == value.avg() and value.avg() == 0.0 and utils.AverageValue().avg() == 0.0
    table = utils.AverageDictionary()
    table.add_scalars({"a": 1, "b": 2})
    table.add_scalars({"a": 3})
    assert table.get_values(clear=False) == {"a": 2.0, "b": 2.0} == table.get_values() and table.get_values() == {}


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_times(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    with utils.SimpleTimer("work") as timer:
        clock.now += 2.5
    assert timer.elapsed == 2.5 and capsys.readouterr().out == "work: 2.5 s\n"
    recorder = utils.TimeRecorder(decay=0.5, max_seconds=4)
    assert recorder.avg == 0.0
    for misuse in recorder.stop, recorder.lap:
        with pytest.raises(RuntimeError, match=r"start\(\) comes first"):
            misuse()
    recorder.start()
    with pytest.raises(RuntimeError, match="runs already"):
        recorder.start()
    clock.now += 1
    assert recorder.lap() == 1 and recorder.avg == 1
    clock.now += 4
    assert recorder.stop() == 4 and recorder.avg == 3           # (0.25·1 + 0.5·4) / 0.75
    with pytest.raises(KeyError), recorder.time():
        clock.now += 1000
        raise KeyError
    assert recorder.avg == pytest.approx((0.125 * 1 + 0.25 * 4 + 0.5 * 4) / 0.875)
    with recorder.time():
        pass


def test_events_now_and_then():
    clock = Clock()
    tracker = utils.TimedTracker(10, clock)
    found = []
    for step in 0, 9, 1, 5, 5, 25:
        clock.now += step
        found.append(tracker.track_increment(2))
    assert found == [False, False, True, False, True, True] and tracker.count == 12


def test_a_worker_wakes_up_until_it_is_stopped():
    calls, thrice = [], threading.Event()

    def work(n, *, more):
        calls.append((n, more))
        if len(calls) == 3:
            thrice.set()
    worker = utils.PeriodicWakeUpWorker(work, 0.001, (1,), {"more": 2})
    worker.start()
    assert thrice.wait(60) and worker.daemon
    worker.stop()
    count = len(calls)
    assert not worker.is_alive() and set(calls) == {(1, 2)}
    assert len(calls) == count
    failing = utils.PeriodicWakeUpWorker(lambda: 1 / 0, 0.001)
    failing.start()
    failing.join(60)
    with pytest.raises(ZeroDivisionError):
        failing.stop()
    utils.PeriodicWakeUpWorker(work).stop()


# ── tensors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_new_tensors_and_numbers():
    t = tensors.th_new_full((2, 3), 4, requires_grad=True)
    assert t.shape == (2, 3) and t.dtype == torch.float32 and t.requires_grad and (t == 4).all()
    assert (tensors.th_new_full(2, 1, torch.int64, "cpu").dtype == torch.int64
            and tensors.th_new_full([2], 1.5).tolist() == [1.5, 1.5])
    assert (tensors.th_to_scalar(torch.tensor([[3]])) == 3 and tensors.th_to_scalar(2.5) == 2.5
            and type(tensors.th_to_scalar(np.float32(1))) is float)
    with pytest.raises(RuntimeError):
        tensors.th_to_scalar(torch.ones(2))
    x = torch.tensor([1., -2.])
    assert tensors.th_where(x > 0, x, 0).tolist() == [1., 0.]


def test_statistics():
    x = torch.tensor([[5., -1., 2.], [-8., 3., 0.]])
    assert tensors.th_median(x).item() == 0. and tensors.th_median_abs(x).item() == 2.
    y = tensors.th_normalize_feature(torch.tensor([[1., 7., 2.], [2., 7., -2.], [6., 7., 0.]]))
    assert (y.mean(0).abs().max() < 1e-6 and y.std(0).tolist() == pytest.approx([1., 0., 1.])
            and y[:, 1].tolist() == [0., 0., 0.])


def test_flattening_and_pooling():
    x = torch.arange(2. * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert (tensors.th_flatten(x).shape == (2, 60) and tensors.th_flatten(x, 2).shape == (2, 3, 20)
            and tensors.th_flatten(x, 0).shape == (120,))
    assert tensors.th_flatten(x, 3).shape == x.shape and tensors.th_flatten(x, -2).shape == (2, 3, 20)
    for wrong in 4, -5:
        with pytest.raises(ValueError, match="start_dim"):
            tensors.th_flatten(x, wrong)
    for y in x, x[..., 0], x[:, :, None]:
        assert (torch.equal(tensors.th_global_avg_pool(y), y.flatten(2).mean(2))
                and torch.equal(tensors.th_global_max_pool(y), y.flatten(2).max(2).values))
        assert tensors.th_global_avg_pool(y).shape == tensors.th_global_max_pool(y).shape == (2, 3)
    for pool in tensors.th_global_avg_pool, tensors.th_global_max_pool:
        with pytest.raises(ValueError, match="batch, channels"):
            pool(x[0, 0])


def test_losses_and_norms():
    x, y = torch.tensor([0.5, -3.0, 2.0]), torch.tensor([0.0, 0.0, 2.5])
    assert tensors.th_huber_loss_per_element(x, y).tolist() == [0.125, 2.5, 0.125]
    assert tensors.th_huber_loss_per_element(x - y, delta=0.25).tolist() == pytest.approx([0.09375, 0.71875, 0.09375])
    t = torch.tensor([[3., -4.], [0., 12.]])
    assert (tensors.th_norm(t).item() == 13. and tensors.th_norm(t, 1).item() == 19.
            and tensors.th_norm(t, INF).item() == 12.)
    assert tensors.th_norm([t[0], t[1]]).item() == 13. and tensors.th_norm(nn.Linear(2, 2)).item() > 0
    for p in 1, 2, INF:
        clipped = tensors.th_clip_norm(t, 1.5, p)
        assert (clipped is not t and tensors.th_norm(clipped, p).item() == pytest.approx(1.5)
                and torch.allclose(clipped * (12 / clipped[1, 1]), t))
        assert torch.equal(tensors.th_clip_norm(t, 100., p), t)
    assert tensors.th_clip_norm(torch.zeros(2), 0.).tolist() == [0., 0.]
    same = t.clone()
    assert tensors.th_clip_norm(same, 1.3, in_place=True) is same and tensors.th_norm(same).item() == pytest.approx(1.3)


def test_many_tensors_as_one():
    module = nn.Linear(3, 2)
    flat = tensors.th_flatten_tensors(module)
    assert flat.shape == (8,) and torch.equal(flat[6:], module.bias)
    parts = tensors.th_unflatten_tensors(flat, module)
    assert [p.shape for p in parts] == [(2, 3), (2,)] and torch.equal(parts[0], module.weight)
    a, b = tensors.th_unflatten_tensors(torch.arange(3), [torch.tensor(1), torch.ones(1, 2)])
    assert a.shape == () and b.tolist() == [[1, 2]]
    for wrong in torch.ones(7), torch.ones(9), torch.ones(2, 4):
        with pytest.raises(ValueError, match="one axis of 8 elements"):
            tensors.th_unflatten_tensors(wrong, module)


def test_updates_of_modules():
    a, b = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).double()
    b[1].running_mean.fill_(3.)
    twin = tensors.th_copy_module(a)
    assert twin[0].weight is not a[0].weight and torch.equal(twin[0].weight, a[0].weight)
    tensors.th_soft_update(a, b, 0.25)
    assert (torch.allclose(a[0].weight, 0.75 * twin[0].weight + 0.25 * b[0].weight.float())
            and a[1].running_mean.tolist() == [3., 3.])
    assert a[0].weight.dtype == torch.float32 and a[0].weight.requires_grad and a[0].weight.is_leaf
    tensors.th_hard_update(a, b)
    assert torch.equal(a[0].weight, b[0].weight.float())
    before = copy.deepcopy(a.state_dict())
    for other in nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2),
                                                nn.BatchNorm1d(2, affine=False)), nn.Sequential(nn.Linear(2, 2),
                                                                                                nn.Linear(1, 2)):
        for update in tensors.th_hard_update, lambda x, y: tensors.th_soft_update(x, y, 0.5):
            with pytest.raises(ValueError, match="the modules differ"):
                update(a, other)
    assert all(torch.equal(x, y) for x, y in zip(before.values(), a.state_dict().values()))


# ── initialisation ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_names_of_modules_and_initializers():
    modules, inits = th_all_nn_modules_dict(), th_all_initializer_dict()
    assert (modules["Linear"] is nn.Linear and modules["LSTM"] is nn.LSTM and "Parameter" not in modules
            and list(modules) == th_all_nn_modules_names())
    assert inits["xavier_uniform"] is nn.init.xavier_uniform_ and inits["zero"] is inits["zeros"] is nn.init.zeros_
    assert list(inits) == th_all_initializer_names()
    assert (not any(name.startswith("_") or name.endswith("_") for name in inits)
            and {"constant", "normal", "orthogonal", "dirac", "eye"} <= set(inits))
    assert (is_conv_module(nn.Conv1d(1, 1, 1)) and is_conv_module(nn.ConvTranspose3d(1, 1, 1), 3)
            and not is_conv_module(nn.Conv3d(1, 1, 1), 2))
    assert not is_conv_module(nn.Linear(1, 1))


def test_initializers_by_name():
    t = torch.empty(50, 50)
    assert th_initializer("ones") is nn.init.ones_ and th_initializer(nn.init.zeros_) is nn.init.zeros_
    spec = {"method": "normal", "mean": 20.0, "std": 0.1}
    th_initializer(spec)(t)
    assert abs(t.mean() - 20) < 0.1 and spec["method"] == "normal"
    for wrong in "glorot", {"mean": 1}, None, "normal_":
        with pytest.raises(ValueError, match="there is no initializer"):
            th_initializer(wrong)


def normal(mean):
    return {"method": "normal", "mean": mean, "std": 0.5}


def constant(val):
    return {"method": "constant", "val": val}


def test_initialized_modules():
    torch.manual_seed(0)
    conv = th_initialize_module(nn.Conv2d(8, 16, 3), normal(23.), constant(-4.))
    assert abs(conv.weight.mean() - 23) < 0.1 and (conv.bias == -4).all() and conv.weight.requires_grad
    lstm = th_initialize_module(nn.LSTM(5, 7, num_layers=2, bidirectional=True), (normal(30.), normal(46.)),
                                ("zero", constant(-30.)))
    for suffix in "l0", "l0_reverse", "l1", "l1_reverse":
        means = [getattr(lstm, f"{name}_{suffix}").mean().item()
                 for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        assert means == pytest.approx([30, 46, 0, -30], abs=0.2)
    bare = th_initialize_module(nn.Linear(3, 2, bias=False), "ones")
    assert (bare.weight == 1).all()
    linear = th_initialize_module(nn.Linear(30, 20))
    assert 0 < linear.weight.abs().max() <= (6 / 50) ** 0.5 and (linear.bias == 0).all()
    gru = th_initialize_module(nn.GRUCell(2, 2), "zero", "ones")
    assert (gru.weight_hh == 0).all() and (gru.bias_ih == 1).all()
    net = th_initialize_module(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Sequential(nn.Conv1d(2, 2, 1))),
                               constant(5.), constant(6.))
    assert ({n: p.unique().tolist() for n, p in net.named_parameters()}
            == {"0.weight": [5.], "0.bias": [6.], "1.weight": [1.], "1.bias": [0.],
                 "2.0.weight": [5.], "2.0.bias": [6.]})
    for wrong in {"weight_init": "glorot"}, {"bias_init": ("zero",)}:
        with pytest.raises(ValueError):
            th_initialize_module(net, **wrong)
    assert (net[0].weight == 5).all()


# ── the learning rate ─────────────────────────────────────────────────────────────────────────────────────────────────


def rates(steps, lrs=(1.0,), **options):
    optimizer = torch.optim.SGD([{"params": [torch.ones(1, requires_grad=True)], "lr": lr} for lr in lrs], lr=0.1)
    scheduler, found = LinearWithMinLR(optimizer, **options), []
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        found.append([group["lr"] for group in optimizer.param_groups])
    return np.array(found).T


def test_a_rate_that_falls_to_a_minimum():
    np.testing.assert_allclose(rates(6, num_steps=4, min_lr=0.2), [[.8, .6, .4, .2, .2, .2]])
    np.testing.assert_allclose(rates(7, num_steps=5, update_freq=2, min_lr=0.), [[1, .6, .6, .2, 0, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(rates(5, (1.0, 0.6, 0.1), num_steps=4, min_lr=0.2),
                               [[.8, .6, .4, .2, .2], [.5, .4, .3, .2, .2], [.1] * 5])
    np.testing.assert_allclose(rates(3, num_steps=2, update_freq=0), [[1, 1, 1]])
    np.testing.assert_allclose(rates(3, num_steps=2), [[0.500005, 1e-5, 1e-5]])
    with pytest.raises(ValueError, match="num_steps"):
        rates(1, num_steps=0)


def test_a_rate_is_resumed():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    scheduler = LinearWithMinLR(optimizer, 10, min_lr=0.5)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    other = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    resumed = LinearWithMinLR(other, 1)
    resumed.load_state_dict(scheduler.state_dict())
    other.load_state_dict(optimizer.state_dict())
    for o, s in (optimizer, scheduler), (other, resumed):
        o.step()
        s.step()
    assert (scheduler.get_last_lr() == resumed.get_last_lr() == [pytest.approx(0.8)]
            and isinstance(scheduler, torch.optim.lr_scheduler.LRScheduler))
    assert LinearWithMinLR(other, 10, min_lr=0.5, last_epoch=6).get_last_lr() == [pytest.approx(0.65)]
