"""The first PyTorch, row by row: T1 to T37 are the ids of its features.

Features that PyTorch still has are checked in the root, removed ones in `legacy`.
"""
import io
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from support import ROOT, cpu_only, fresh_process

import tensorgrad as torch
from tensorgrad import legacy
from tensorgrad.legacy import nn, nngraph, optim

pytestmark = cpu_only


def simulated(program):
    """Run a program on a machine with four pretended GPUs, and return its output."""
    return fresh_process("import tensorgrad as torch\nfrom tensorgrad import nn\n" + program,
                         TENSORGRAD_SIMULATED_CUDA="4")


# ── tensors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_T1_T2_operations_give_new_tensors_and_their_twins_write_in_place():
    a, b = torch.tensor([1., 2.]), torch.tensor([3., 5.])
    assert a.add(b).tolist() == [4, 7] and a.tolist() == [1, 2]
    for name, args in [("add", (b,)), ("mul", (b,)), ("div", (b,)), ("sub", (b,)), ("exp", ()), ("sqrt", ()),
                       ("abs", ()), ("neg", ()), ("clamp", (0, 1)),
                       ("pow", (2,)), ("tanh", ()), ("sigmoid", ()), ("floor", ()), ("fmod", (2,)),
                       ("addcmul", (b, b))]:
        x = torch.tensor([1.5, 2.5])
        expected = getattr(x, name)(*args)
        assert getattr(x, name + "_")(*args) is x and torch.equal(x, expected)
    for name, args in [("copy_", (b,)), ("fill_", (2,)), ("zero_", ())]:
        assert getattr(a, name)(*args) is a
    x = torch.tensor([])
    assert x.set_(torch.tensor([7., 8.]).storage()) is x and x.tolist() == [7, 8]
    assert x.storage().fill_(3).tolist() == [3, 3] and x.tolist() == [3, 3]


def test_T3_results_come_first_in_legacy_only():
    a, b = torch.tensor([1., 2.]), torch.tensor([10., 20.])
    assert legacy.add(a, a, b) is a and a.tolist() == [11, 22]
    with pytest.raises(TypeError, match=r"add\(\) takes 2 positional arguments but 3 were given"):
        torch.add(a, a, b)
    r = torch.Tensor()
    for name, args, expected in [("mul", (b, 2), b * 2), ("exp", (b,), b.exp()),
                                 ("sum", (b.view(1, 2), 1), b.sum()[None]), ("zeros", (2, 3), torch.zeros(2, 3)),
                                 ("mm", (b.view(1, 2), b.view(2, 1)), torch.tensor([[500.]])),
                                 ("cat", ([b, b], 0), torch.cat([b, b])),
                                 ("clamp", (b, 0, 15), b.clamp(0, 15)),
                                 ("index_select", (b, 0, torch.LongTensor([1])), b[1:])]:
        assert getattr(legacy, name)(r, *args) is r and torch.equal(r, expected)
    values, indices = torch.Tensor(), torch.LongTensor()
    found = legacy.sort(values, indices, torch.tensor([3., 1., 2.]))
    assert found[0] is values and values.tolist() == [1, 2, 3] and indices.tolist() == [1, 2, 0]
    assert torch.equal(legacy.add(b, b), b + b) and legacy.dist(b, b) == 0            # today's form is there as well
    with pytest.raises(TypeError):
        legacy.exp("word", b)
    with pytest.raises(AttributeError, match="module 'tensorgrad.legacy' has no attribute 'nothing'"):
        legacy.nothing  # noqa: B018


def test_T4_indices_count_from_zero():
    x, i = torch.arange(6.).view(3, 2), torch.LongTensor([0])
    assert x.index_select(0, i).tolist() == [[0, 1]] and x.clone().index_fill_(0, i, 9)[0].tolist() == [9, 9]
    assert (x.clone().index_add_(0, i, torch.ones(1, 2))[0].tolist() == [1, 2]
            and x.clone().index_copy_(0, i, torch.ones(1, 2))[0].tolist() == [1, 1])
    assert x.gather(1, torch.LongTensor([[0], [1], [0]])).tolist() == [[0], [3], [4]]
    assert torch.zeros(1, 2).scatter_(1, torch.LongTensor([[0]]), 5).tolist() == [[5, 0]]
    loss = nn.ClassNLLCriterion(torch.tensor([10., 1.]))
    assert loss.forward(torch.tensor([[-1., -2.]]), torch.LongTensor([0])) == 1


def test_T5_tensors_have_types():
    for name, dtype in [("Float", torch.float32), ("Double", torch.float64), ("Half", torch.float16),
                        ("Byte", torch.uint8), ("Char", torch.int8),
                        ("Short", torch.int16), ("Int", torch.int32), ("Long", torch.int64), ("Bool", torch.bool),
                        ("BFloat16", torch.bfloat16)]:
        kind = getattr(torch, f"{name}Tensor")
        x = kind(2, 3)
        assert x.shape == (2, 3) and x.dtype == dtype and x.type() == f"torch.{name}Tensor" and isinstance(x, kind)
        assert kind([1, 0]).tolist() == [1, 0] and x.zero_().type("torch.FloatTensor").dtype == torch.float32
    assert torch.Tensor(2).dtype == torch.float32


def test_T6_to_T10_devices():
    printed = simulated("""
with torch.cuda.device(1):
    x = torch.cuda.FloatTensor(10)
    with torch.cuda.device(2):
        y = torch.cuda.LongTensor(3)
    print(x.get_device(), y.get_device(), torch.cuda.current_device())
print(torch.cuda.current_device())
try:
    with torch.cuda.device(3): raise KeyError
except KeyError: print(torch.cuda.current_device())
a = torch.LongTensor([1]).cuda()
b = a.cuda(2)
print(a.dtype, a.get_device(), b.get_device(), b.cuda(2) is b, a.cuda() is a)
with torch.cuda.device(3): c = b + b
print(c.get_device())
try: a + b
except RuntimeError as error: print("cuda:0" in str(error) and "cuda:2" in str(error))
""")
    assert printed.splitlines() == ["1 2 1", "0", "0", "torch.int64 0 2 True True", "2", "True"]


def test_T11_the_memory_pool_can_be_asked():
    assert simulated("print(torch.cuda.memory_allocated() >= 0, torch.cuda.memory_reserved() >= 0, "
                     "torch.cuda.empty_cache())") == "True True None\n"


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_T12_T13_T14_arrays_and_storages_share_memory():
    a = torch.ones(3)
    array = a.numpy()
    array[0] = 7
    a[1] = 8
    assert a.tolist() == array.tolist() == [7, 8, 1]
    doubles = np.zeros(2)
    shared, copied = torch.DoubleTensor(doubles), torch.FloatTensor(doubles)
    shared[0], copied[1] = 5, 6
    assert doubles.tolist() == [5, 0] and torch.from_numpy(doubles).data_ptr() == shared.data_ptr()
    view = a[1:]
    assert (view.storage().data_ptr() == a.storage().data_ptr() and view.untyped_storage().nbytes() == 12
            and view.storage_offset() == 1)


# ── networks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Recurrent(legacy.Container):
    """The network of the README of that time, its names repaired."""

    def __init__(self):
        super().__init__(conv1=torch.nn.Conv2d(1, 2, 3, padding=1), linear=torch.nn.Linear(32, 3))

    def __call__(self, x, state):
        state = torch.nn.functional.relu(self.conv1(x)) + state
        return self.linear(state.view(state.size(0), -1)), state


def test_T15_T17_containers_in_a_loop_over_time():
    torch.manual_seed(0)
    net, steps = Recurrent(), [torch.randn(2, 1, 4, 4) for _ in range(3)]
    assert isinstance(net.conv1, torch.nn.Conv2d) and len(list(net.parameters())) == 4
    loss, state = 0, torch.zeros(2, 2, 4, 4)
    for x in steps:
        out, state = net(x, state)
        loss += out.pow(2).sum()
    loss.backward()
    grad = net.conv1.weight.grad.clone()
    h = 1e-3
    with torch.no_grad():
        values = []
        for sign in (1, -1):
            net.conv1.weight[0, 0, 0, 0] += sign * h
            state, total = torch.zeros(2, 2, 4, 4), 0.
            for x in steps:
                out, state = net(x, state)
                total += float(out.double().pow(2).sum())
            values.append(total)
            net.conv1.weight[0, 0, 0, 0] -= sign * h
    assert abs((values[0] - values[1]) / (2 * h) - float(grad[0, 0, 0, 0])) < 0.02 * (1 + abs(float(grad[0, 0, 0, 0])))


def test_T16_variables():
    x = legacy.Variable(torch.zeros(2), requires_grad=True)
    y = (x + 1).pow(2).sum()
    assert type(y) is legacy.Variable and y.creator is y.grad_fn and x.creator is None and x.data.tolist() == [0, 0]
    y.backward(retain_variables=True)
    y.backward()
    assert x.grad.tolist() == [4, 4]
    quiet = legacy.Variable(torch.ones(2), volatile=True)
    mixed = x * quiet
    assert mixed.volatile and not mixed.requires_grad and not (x * 2).volatile
    with pytest.raises(RuntimeError, match="calling backward on a volatile variable"):
        mixed.sum().backward()
    with pytest.raises(ValueError, match="can't be volatile and require"):
        legacy.Variable(torch.ones(1), requires_grad=True, volatile=True)
    today = torch.autograd.Variable(torch.ones(1), requires_grad=True)
    assert type(today) is torch.Tensor
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        torch.autograd.Variable(torch.ones(1), volatile=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'retain_variables'"):
        (today * 2).backward(retain_variables=True)


def test_T18_overwritten_values_are_noticed():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    torch.nn.ReLU(True)(y).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)


def test_T19_hooks_with_names():
    net, seen = Recurrent(), []
    inner = legacy.Container(part=torch.nn.Linear(2, 1))
    inner.forward = lambda x: inner.part(x)
    inner.register_forward_hook("see", lambda module, input, output: seen.append(("forward", output.shape)))
    inner.register_backward_hook("see",
                                 lambda module, grad_input, grad_output: seen.append(
                                     ("backward", grad_output[0].shape)))
    x = legacy.Variable(torch.ones(3, 2), requires_grad=True)
    x.register_hook("look", lambda g: seen.append(("x", g.shape)))
    inner(x).sum().backward()
    assert seen == [("forward", (3, 1)), ("backward", (3, 1)), ("x", (3, 2))]
    with pytest.raises(RuntimeError, match="there is a hook named 'forward see' already"):
        inner.register_forward_hook("see", print)
    inner.remove_forward_hook("see"), inner.remove_backward_hook("see"), x.remove_hook("look")
    inner(x).sum().backward()
    assert len(seen) == 3
    with pytest.raises(RuntimeError, match="there is no hook named 'look': there are none"):
        x.remove_hook("look")
    handle = net.conv1.register_forward_hook(lambda *_: seen.append("today"))
    net(torch.ones(1, 1, 4, 4), 0)
    handle.remove()
    assert seen[3:] == ["today"]


def test_T20_backward_can_be_followed():
    frames = []

    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            frames.append(sys._getframe().f_code.co_name)
            return g * 2
    x = torch.ones(1, requires_grad=True)
    y = Watched.apply(x).exp()
    assert y.grad_fn.name() == "ExpBackward0"
    y.backward()
    assert frames == ["backward"]


def test_T21_T22_names_of_then_and_now():
    old = nn.SpatialConvolution(3, 16, 5, 3, 2, 1, 2, 1)         # widths come first
    new = legacy.convert(old)
    assert (new.kernel_size, new.stride, new.padding) == ((3, 5), (1, 2), (1, 2))
    x = torch.randn(1, 3, 8, 9)
    assert (torch.equal(old.forward(x), new(x)) and nn.VolumetricConvolution(1, 2, 2, 3, 4).weight.shape
            == (2, 1, 2, 4, 3))
    assert torch.nn.LSTM(3, 4)(torch.zeros(2, 1, 3))[0].shape == (2, 1, 4)


# ── devices, processes, files ─────────────────────────────────────────────────────────────────────────────────────────


def test_T23_T24_T29_networks_on_several_devices():
    printed = simulated("""
from tensorgrad.nn.parallel import GPUReplicate, Split, ParallelApply, Join
torch.manual_seed(0)
a, b, c, d = (nn.Linear(4, 4).cuda() for _ in range(4))
x = torch.randn(8, 4).cuda()
many = GPUReplicate(b, [0, 1, 2, 3])
print(len(many), many[1].weight.device)
hidden = a(x)
left = ParallelApply(many, Split(hidden, [0, 1, 2, 3]))
right = ParallelApply(GPUReplicate(c, [0, 1, 2, 3]), Split(hidden, [0, 1, 2, 3]))
out = d(Join(left, 0) + Join(right, 0))
out.sum().backward()
found = [p.grad.clone() for m in (a, b, c, d) for p in m.parameters()]
for m in (a, b, c, d): m.zero_grad()
plain = d(b(a(x)) + c(a(x)))
plain.sum().backward()
weights = [p for m in (a, b, c, d) for p in m.parameters()]
print(torch.allclose(plain, out, atol=1e-6), all(torch.allclose(p.grad, g, atol=1e-5) for p, g in zip(weights, found)))
print(Join(left + [hidden], 0).shape)
""")
    assert printed.splitlines() == ["4 cuda:1", "True True", "torch.Size([16, 4])"]


def test_T25_gradients_travel_while_backward_goes_on():
    from tensorgrad.nn.parallel import reduce_early
    model, order = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)), []
    reduce_early(model, lambda p: order.append(next(n for n, q in model.named_parameters() if q is p)))
    shared = model(torch.ones(1, 2)) + model(torch.zeros(1, 2))
    shared.sum().backward()
    assert sorted(order) == ["0.bias", "0.weight", "1.bias", "1.weight"] and set(order[:2]) == {"1.weight", "1.bias"}


def test_T26_memory_shared_between_processes():
    x = legacy.Variable(torch.zeros(2))
    assert not x.is_shared() and x.share() is x and x.is_shared()
    program = """
import tensorgrad as torch, tensorgrad.multiprocessing as mp
def write(t): t.fill_(5)
if __name__ == "__main__":
    t = torch.zeros(3).share_memory_()
    p = mp.get_context("fork").Process(target=write, args=(t,))
    p.start(); p.join(); print(t.tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[5.0, 5.0, 5.0]\n", done.stderr


def test_T27_files_keep_what_is_shared():
    a = torch.arange(1000.)
    x, file = a[0:1], io.BytesIO()
    torch.save([x, a], file)
    assert len(file.getvalue()) < 1.5 * 4000
    file.seek(0)
    y, b = torch.load(file)
    y[0] = 7
    assert b[0] == 7


# ── legacy modules, optimizers, graphs ────────────────────────────────────────────────────────────────────────────────


def test_T30_networks_train():
    torch.manual_seed(0)
    x, y = torch.rand(64, 2) * 2 - 1, torch.zeros(64, 1)
    y[:, 0] = x[:, 0] * x[:, 1]
    model = nn.Sequential(nn.Concat(1, nn.Sequential(nn.Linear(2, 8), nn.Tanh()),
                                    nn.Sequential(nn.Linear(2, 8), nn.ReLU())), nn.Linear(16, 1))
    pair = nn.Sequential(nn.ParallelTable(nn.Linear(2, 8), nn.Linear(2, 8)), nn.CMulTable(), nn.Linear(8, 1))
    loss = nn.MSECriterion()
    for network, input in [(model, x), (pair, [x, x])]:
        first = loss.forward(network.forward(input), y)
        for _ in range(300):
            loss.forward(network.forward(input), y)
            network.zeroGradParameters()
            network.backward(input, loss.backward(network.output, y))
            network.updateParameters(0.1)
        assert loss.output < 0.1 * first


def rosenbrock(x):
    a, b = x.tolist()
    return (1 - a) ** 2 + 100 * (b - a * a) ** 2, torch.tensor([-2 * (1 - a) - 400 * a * (b - a * a),
                                                                200 * (b - a * a)], dtype=x.dtype)


@pytest.mark.parametrize("name, config, steps, close", [
    ("sgd", {"learningRate": 1e-3, "momentum": 0.9, "dampening": 0}, 2000, 1e-4),
    ("sgd", {"learningRate": 1e-3, "momentum": 0.9, "dampening": 0, "nesterov": True}, 2000, 1e-4),
    ("adam", {"learningRate": 0.03}, 2000, 1e-4),
    ("adamax", {"learningRate": 0.05}, 3000, 1e-2), ("adagrad", {"learningRate": 0.5}, 3000, 1e-2),
    ("adadelta", {"rho": 0.9, "eps": 1e-6}, 4000, 1.5), ("rmsprop", {"learningRate": 1e-3}, 4000, 0.02),
    ("asgd", {"eta0": 1e-3}, 4000, 0.5), ("rprop", {"stepsize": 1e-2}, 1500, 0.02),
    ("nag", {"learningRate": 1e-3}, 2000, 1e-4),
    ("cg", {"maxIter": 60}, 1, 1e-6),
    ("lbfgs", {"maxIter": 60, "tolFun": 1e-9}, 1, 1e-3),
    ("lbfgs", {"maxIter": 60, "lineSearch": True}, 1, 1e-3)])
def test_T31_optimizers_find_the_valley(name, config, steps, close):
    x, state = torch.tensor([-1.2, 1.], dtype=torch.float64), {}
    given = dict(config)
    for _ in range(steps):
        found = getattr(optim, name)(rosenbrock, x, config, state)
    assert found[0] is x and rosenbrock(x)[0] < close and config == given and state or name == "cg"
    assert (abs(found[1][0] - rosenbrock(torch.tensor([-1.2, 1.], dtype=torch.float64))[0]) < 1e-9 if steps == 1
            else len(found[1]) == 1)


def test_T31_optimizers_agree_with_todays():
    """Each method with a present class follows that class's trajectory."""
    target = torch.tensor([3., -1.], dtype=torch.float64)
    for name, config, kind, options in [
            ("sgd", {"learningRate": 0.1, "momentum": 0.5, "dampening": 0, "weightDecay": 0.01}, torch.optim.SGD,
             {"lr": 0.1, "momentum": 0.5, "weight_decay": 0.01}),
            ("adagrad", {"learningRate": 0.5, "learningRateDecay": 0.1}, torch.optim.Adagrad,
             {"lr": 0.5, "lr_decay": 0.1}),
            ("adadelta", {"rho": 0.8}, torch.optim.Adadelta, {"rho": 0.8}),
            ("adamax", {"learningRate": 0.1}, torch.optim.Adamax, {"lr": 0.1, "eps": 1e-38}),
            ("rmsprop", {"learningRate": 0.1}, torch.optim.RMSprop, {"lr": 0.1}),
            ("rprop", {"stepsize": 0.1}, torch.optim.Rprop, {"lr": 0.1}),
            ("asgd", {"eta0": 0.1}, torch.optim.ASGD, {"lr": 0.1})]:
        x = torch.zeros(2, dtype=torch.float64)
        p = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        today = kind([p], **options)
        for _ in range(10):
            getattr(optim, name)(lambda x: (float((x - target).pow(2).sum()), 2 * (x - target)), x, config)
            today.zero_grad()
            (p - target).pow(2).sum().backward()
            today.step()
        assert torch.allclose(x, p.detach(), atol=1e-10), name
    with pytest.raises(ValueError, match="Nesterov momentum requires a momentum and zero dampening"):
        optim.sgd(rosenbrock, x, {"nesterov": True})
    with pytest.raises(ValueError, match="give config, or state"):
        optim.sgd(rosenbrock, x, None)
    kept = {"learningRate": 0.1}
    optim.rmsprop(rosenbrock, x, kept)
    assert pickle.loads(pickle.dumps(kept))["evalCounter"] == 1


def test_T32_the_cuda_part_is_there():
    import tensorgrad.legacy.cunn
    assert tensorgrad.legacy.cunn.__doc__
    assert simulated("from tensorgrad.legacy import nn\nm = nn.Linear(2, 3).cuda()\n"
                     "print(m.forward(torch.ones(1, 2).cuda()).device, m.type())") == \
        "cuda:0 torch.cuda.FloatTensor\n"


def test_T33_graphs_of_modules():
    torch.manual_seed(0)
    x = nn.Identity()()
    left, right = nn.Linear(3, 4), nn.Linear(3, 4)
    hidden = nn.Tanh()(left(x))
    model = nngraph.gModule([x], [nn.CAddTable()(hidden, right(x)), hidden.annotate(name="hidden")])
    data = torch.randn(5, 3)
    out, kept = model.forward(data)
    assert torch.allclose(out, left.forward(data).tanh() + right.forward(data)) and kept.shape == (5, 4)
    model.zeroGradParameters()
    found = model.backward(data, [torch.ones(5, 4), torch.ones(5, 4)])
    leaf = data.clone().requires_grad_()
    a, b = legacy.convert(left), legacy.convert(right)
    loss = (2 * a(leaf).tanh() + b(leaf)).sum()
    loss.backward()
    assert torch.allclose(found, leaf.grad, atol=1e-6) and torch.allclose(left.gradWeight, a.weight.grad, atol=1e-5)
    assert ([node.op for node in model.graph.nodes] == ["placeholder"] + ["call_module"] * 4 + ["output"]
            and "hidden" in str(model.graph))
    drawn = torch.viz.graph(model)
    assert "CAddTable" in drawn.svg() and "hidden: Tanh" in drawn.dot() and "5×4" in drawn.svg()
    parts = nn.SplitTable(1)(x).split(3)
    sums = nngraph.gModule([x], [nn.CAddTable()(*parts)])
    assert (torch.allclose(sums.forward(data), data.sum(1))
            and torch.equal(sums.backward(data, torch.ones(5)), torch.ones(5, 3)))
    twice = nngraph.gModule([x], [left(nn.Narrow(1, 0, 3)(left_again(left, x)))])
    assert len(twice.children()) == 3 and twice.parameters()[0][0] is left.weight
    with pytest.raises(ValueError, match="reads nothing, and is not among the inputs"):
        nngraph.gModule([x], [nn.Identity()()])
    with pytest.raises(ValueError, match="no output needs input 1"):
        nngraph.gModule([x, nn.Identity()()], [nn.Tanh()(x)])


def left_again(left, x):
    """A node whose output `left` takes: 3 numbers again."""
    return nn.Linear(4, 3)(left(x))


def test_T34_installs_by_pip():
    # tests/house/test_repository.py builds the wheel
    assert 'build-backend = "hatchling.build"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_T35_models_become_todays():            # and tests/legacy/test_t7.py reads files of Lua
    old = nn.Sequential(nn.Linear(3, 4), nn.BatchNormalization(4), nn.ReLU(),
                        nn.Concat(1, nn.Linear(4, 2), nn.Linear(4, 1)))
    for _ in range(3):
        old.forward(torch.randn(6, 3) + 2)
    old.evaluate()
    new, x = legacy.convert(old), torch.randn(5, 3)
    assert (not new.training and torch.equal(old.forward(x), new(x))
            and torch.equal(new[1].running_mean, old.get(1).running_mean))


def test_T36_T37_areas_have_tests_and_examples():
    examples = ROOT / "examples"
    # vision, language, speech, reinforcement learning
    for area in ("mnist/cnn/train.py", "chargpt/train.py", "speech/train.py", "cartpole.py"):
        assert (examples / area).is_file()


def test_nothing_else_imports_it():
    assert fresh_process("import sys, tensorgrad, tensorgrad.nn, tensorgrad.optim; print([n for n in sys.modules if "
                         "'legacy' in n])") == "[]\n"
    done = subprocess.run([sys.executable, "-W", "error", "-m", "tensorgrad", "-c",
                           "import torch.legacy.nn as nn, torch\nfrom torch.legacy import optim\n"
                           "print(nn.Linear(2, 3).forward(torch.ones(1, 2)).shape, optim.sgd.__name__)"], cwd=ROOT,
                          capture_output=True, text=True, timeout=60)
    assert done.stdout == "torch.Size([1, 3]) sgd\n", done.stderr
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {"nn", "optim", "nngraph", "Variable", "convert"} <= set(dir(legacy))
