"""The promises of tensorgrad: names, constants, tensors, backward, the extension points, modules; a short check of
each."""
import threading

import numpy as np
import pytest
from support import fresh_process, has_gpu

import tensorgrad as tg
from tensorgrad import nn
from tensorgrad.const import DEVICE, DTYPE, OP
from tensorgrad.core.dispatch import OpDispatch, apply
from tensorgrad.ops import stubs
from tensorgrad.ops.base import OPS, Composite, Elementwise, Floating, Op
from tensorgrad.storage import Storage


def t(values, **options):
    return tg.tensor(values, **options)


# ── the package ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_root_names():
    for name in "Tensor tensor nn optim no_grad is_grad_enabled is_cuda_available DEVICE DTYPE float32 device Generator autograd cuda".split():  # noqa: E501
        assert getattr(tg, name) is not None
    with pytest.raises(AttributeError, match="module 'tensorgrad' has no attribute 'no_such_name'"):
        tg.no_such_name


def test_dtype_names():
    assert DTYPE.FLOAT32 is tg.float32 and DTYPE.BOOL is tg.bool and tg.DTYPE is DTYPE
    assert t([1.], dtype=DTYPE.FLOAT64).dtype.value == "float64"
    assert t([1.], dtype="float64").dtype is tg.float64
    assert {"FLOAT32", "FLOAT64", "INT32", "INT64", "BOOL"} <= set(vars(DTYPE))
    with pytest.raises(TypeError):
        t([1.], dtype="float63")


def test_device_names():
    assert tg.zeros(2, device="cpu").device == tg.DEVICE.CPU == "cpu" == tg.device("cpu")
    assert tg.device("cuda:1").index == 1 and str(DEVICE.CUDA) == "cuda"


def test_op_names():
    former = {"ADD": "add", "SUB": "subtract", "MUL": "multiply", "DIV": "divide", "INVERT": "bitwise_not",
              "POW": "power", "EXP": "exp", "LOG": "log", "MASKED_FILL": "masked_fill", "SUM_REDUCE": "sum",
              "MEAN_REDUCE": "mean", "MAX_REDUCE": "amax", "MIN_REDUCE": "amin", "SQUEEZE": "squeeze",
              "UNSQUEEZE": "expand_dims", "RESHAPE": "reshape", "PERMUTE": "permute_dims", "SELECT": "get_item",
              "LOOKUP": "embedding", "CONCAT": "concat", "RELU": "relu", "SIGMOID": "sigmoid", "SOFTMAX": "softmax",
              "MATMUL": "matmul", "CONV2D": "convolution", "MAX_POOL2D": "max_pool",
              "AVG_POOL2D": "window_sum"}
    assert {name: OP[name].value for name in former} == former
    cpu = OpDispatch.backend("cpu")
    assert all(callable(getattr(cpu.xp, OP[name].value)) for name in former)


METHODS = """__add__ __getitem__ __init__ __invert__ __mul__ __neg__ __pow__ __radd__ __rmul__ __sub__ __truediv__
arange avg_pool2d backward bernoulli bool cat concat conv2d copy cpu cuda detach device dtype empty exp float from_data
item log long lookup masked_fill_ matmul max max_pool2d mean min ndim numel numpy ones ones_like permute rand randint
randn relu render reshape shape
sigmoid softmax sqrt squeeze sum to
tolist transpose unsqueeze zeros
zeros_like""".split()           # A4
FUNCTIONS = "arange bernoulli cat concat empty ones ones_like rand randint randn zeros zeros_like".split()
LAYERS = "avg_pool2d conv2d embedding max_pool2d".split()


@pytest.mark.parametrize(("place", "names"), [(tg.Tensor, METHODS), (tg, FUNCTIONS), (nn.functional, LAYERS)],
                         ids=["methods", "functions", "layers"])
def test_documented_names(place, names):
    """A4: the documented attributes of Tensor, and the same as functions."""
    undocumented = [name for name in names if not (getattr(place, name).__doc__ or "").strip()]
    assert not undocumented


def test_no_grad_restores_what_was():
    with tg.no_grad():
        with tg.no_grad():
            pass
        assert not tg.is_grad_enabled() and not (t([1.], requires_grad=True) * 2).requires_grad
    assert tg.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), tg.no_grad():
        1 / 0
    assert tg.is_grad_enabled()


def test_no_grad_decorates():
    @tg.no_grad()
    def double(x):
        return x * 2
    assert not double(t([1.], requires_grad=True)).requires_grad and tg.is_grad_enabled()


def test_no_grad_is_a_threads_own():
    seen = []
    with tg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_cuda_is_available_if_cupy_and_a_device_are():
    assert tg.is_cuda_available() == tg.cuda.is_available()
    assert fresh_process("import tensorgrad as t; print(t.is_cuda_available())") == f"{has_gpu()}\n"


def test_missing_cupy_is_named_when_it_is_used():
    program = "import sys; sys.modules['cupy'] = None; import tensorgrad; tensorgrad.zeros(1).cuda()"
    assert "CUDA tensors need CuPy" in fresh_process(program, fails=True)


def test_xor_and_a_convolution_with_numpy_alone():
    """Programs that import nothing but NumPy and the standard library."""
    program = """
import sys
import tensorgrad as torch
torch.manual_seed(0)
x, y = torch.tensor([[0., 0.], [0., 1.], [1., 0.], [1., 1.]]), torch.tensor([0, 1, 1, 0])
model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(200):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten())
net(torch.randn(2, 1, 8, 8)).sum().backward()
print(model(x).argmax(1).tolist(), {name.partition('.')[0] for name in sys.modules} & {'scipy', 'torch', 'numba', 'cupy', 'ml_dtypes'})
"""  # noqa: E501
    assert fresh_process(program) == "[0, 1, 1, 0] set()\n"


# ── tensors are made ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_defaults_are_those_of_pytorch():
    assert not t([1.]).requires_grad and t([1.]).grad is None
    assert (t([1.]).dtype is tg.float32 and t([1]).dtype is tg.int64 and t([True]).dtype is tg.bool
            and t(np.ones(2)).dtype is tg.float64)


def test_values_are_copied():
    values = np.zeros(2)
    x = t(values)
    values[0] = 1
    assert x.tolist() == [0, 0]


def test_tensors_can_be_labelled():
    x = t([[1, 2]])
    assert x.name is None
    x.name = "x"
    assert x.name == "x"


def test_labels_from_the_start():
    """A11: `name=` labels a tensor, and the label can be set later."""
    x = t([[1, 2]], name="x")
    assert x.name == "x" and x.dtype is tg.int64 and t([1.], name="w", requires_grad=True).name == "w"
    x.name = "y"
    assert x.name == "y" and (x + 1).name is None


def test_what_makes_tensors_as_attributes():
    """A12 to A17: of the class and of the function `tensor`, beside the functions of the root."""
    for home in tg.Tensor, tg.tensor, tg.ones(1):
        assert (home.zeros([2, 3]).shape == home.zeros(2, 3).shape == (2, 3)
                and home.ones(2, dtype="float64").dtype is tg.float64)
        assert (home.arange(3).dtype is tg.int64 and home.arange(1, 7, 2).tolist() == [1, 3, 5]
                and home.empty(4).shape == (4,))
        assert home.randn(2, mu=5., sigma=0.).tolist() == [5, 5] and home.rand(3, requires_grad=True).is_leaf
        x = home.randint(2, 5, (100,))
        assert x.dtype is tg.int64 and set(x.tolist()) == {2, 3, 4}
        tg.manual_seed(1)
        x = home.randn(3)
        tg.manual_seed(1)
        assert tg.equal(x, tg.randn(3))
    assert tg.Tensor.randn(2, sigma=2., requires_grad=True).is_leaf
    x = tg.tensor.bernoulli(0.3, (10_000,))
    assert x.dtype is tg.float32 and set(x.tolist()) == {0, 1} and abs(x.mean().item() - 0.3) < 0.02


def test_tensors_like_this_one_with_other_data():
    """A19: `from_data` keeps dtype, device, class and whether there are gradients."""
    x = tg.ones(2, dtype=tg.float64, requires_grad=True)
    y = x.from_data(np.zeros(3))
    assert (y.shape == (3,) and y.dtype is tg.float64 and y.requires_grad and y.is_leaf
            and not tg.ones(2).from_data([1]).requires_grad)
    assert (type(nn.Parameter(tg.ones(2)).from_data([1, 2])) is nn.Parameter
            and tg.ones(1, dtype=tg.int64).from_data([1.7]).tolist() == [1])
    assert x.from_data([[1]]).shape == (1, 1) and tg.ones(1, device="meta").from_data([1.]).device == "meta"


def test_copies_are_leaves_of_their_own():
    """A20: `copy` has the values and the flag, and none of the memory or history."""
    x = t([1., 2.], requires_grad=True)
    y = (x * 2).copy()
    assert y.is_leaf and y.requires_grad and not x.detach().copy().requires_grad
    z = x.copy()
    with tg.no_grad():
        z[0] = 5
    assert x.tolist() == [1, 2] and z.tolist() == [5, 2]


def test_shapes_as_numbers_or_as_one_list():
    for make in (tg.zeros, tg.ones, tg.empty, tg.rand, tg.randn):
        assert make([2, 3]).shape == make(2, 3).shape == make((2, 3)).shape == (2, 3)
    assert tg.ones(2).tolist() == [1, 1] and tg.zeros(()).item() == 0


def test_ranges():
    assert tg.arange(3).dtype is tg.int64 and tg.arange(3).tolist() == [0, 1, 2]
    assert tg.arange(1, 2, 0.5).tolist() == [1.0, 1.5] and tg.arange(5, 1, -2).tolist() == [5, 3]


def test_random_numbers_have_their_distributions():
    tg.manual_seed(0)
    x = tg.rand(10_000)
    assert 0 <= x.min().item() and x.max().item() < 1 and abs(x.mean().item() - 0.5) < 0.02
    x = tg.randn(10_000)
    assert abs(x.mean().item()) < 0.05 and abs(x.std().item() - 1) < 0.05
    x = tg.randint(2, 5, (1000,))
    assert x.dtype is tg.int64 and set(x.tolist()) == {2, 3, 4}
    x = tg.full((10_000,), 0.3).bernoulli()
    assert x.dtype is tg.float32 and set(x.tolist()) == {0, 1} and abs(x.mean().item() - 0.3) < 0.02
    assert set(tg.empty(1000).bernoulli_(0.5).tolist()) == {0, 1}
    assert tg.normal(5.0, 0.0, (2,)).tolist() == [5, 5]


def test_tensors_like_others():
    x = tg.ones(2, 3, dtype=tg.float64)
    for like in (tg.zeros_like(x), tg.ones_like(x), x.new_zeros(2, 3), x.new_tensor(np.zeros((2, 3)))):
        assert like.shape == x.shape and like.dtype is x.dtype and like.device == x.device


def test_clones_have_memory_of_their_own():
    x = t([1., 2.])
    y = x.clone()
    y[0] = 5
    assert x.tolist() == [1, 2]


def test_detach_shares_memory_and_forgets():
    """A21."""
    x = t([1., 2.], requires_grad=True)
    y = (x * 1).detach()
    assert not y.requires_grad and y.grad_fn is None
    z = x.detach()
    z[0] = 5
    assert x.tolist() == [5, 2]


# ── what tensors tell ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_properties():
    x = tg.zeros(2, 3)
    assert (x.numel() == 6 and x.shape == (2, 3) and isinstance(x.shape, tuple) and x.ndim == x.dim() == 2
            and x.size(-1) == 3)
    assert repr(x.shape) == "torch.Size([2, 3])" and x.shape.numel() == 6


def test_grad_and_data():
    x = t([1., 2.], requires_grad=True)
    assert x.grad is None
    (x * x).sum().backward()
    assert (isinstance(x.grad, tg.Tensor) and x.grad.tolist() == [2, 4] and isinstance(x.data, tg.Tensor)
            and not x.data.requires_grad)


def test_representations():
    assert repr(t([1., 2.])) == "tensor([1., 2.])"
    assert repr(t([1], dtype=tg.int32)) == "tensor([1], dtype=torch.int32)"
    assert repr(nn.Parameter(t([1.]))).startswith("Parameter containing:\ntensor([1.], requires_grad=True)")
    assert "grad_fn=<MulBackward0>" in repr(t([1.], requires_grad=True) * 2)


def test_conversions_give_new_tensors():
    x = t([1., 0., 2.5])
    assert x.to("cpu") is x and x.cpu() is x and x.float() is x and x.to(tg.float32) is x
    assert x.long().tolist() == [1, 0, 2] and x.long().dtype is tg.int64
    assert x.bool().tolist() == [True, False, True] and x.double().dtype is tg.float64 and x.dtype is tg.float32


def test_conversions_in_place():
    """A25, A26: with `inplace=True` a leaf and its gradient change themselves; without it, nothing is as PyTorch does
    not do it.
    """
    x = t([1., 2.5], dtype=tg.float64, requires_grad=True)
    (x * x).sum().backward()
    assert (x.float(inplace=True) is x and x.dtype is tg.float32 and x.is_leaf and x.grad.dtype is tg.float32
            and x.grad.tolist() == [2, 5])
    (x * 2).sum().backward()
    assert (x.grad.tolist() == [4, 7] and x.float(inplace=False) is x and x.to(tg.float64, inplace=True) is x
            and x.grad.dtype is tg.float64)
    y = t([0., 1.5])
    assert (y.long(inplace=True) is y and y.dtype is tg.int64 and y.bool(inplace=True) is y
            and y.tolist() == [False, True] and y.cpu(inplace=True) is y)
    for refused, message in (lambda: x.long(inplace=True),
                             "must be floating point or complex"), (lambda: (x * 2).float(inplace=True),
                                                                    "has a grad_fn"):
        with pytest.raises(RuntimeError, match=message):
            refused()
    assert x.dtype is tg.float64 and x.grad.tolist() == [4, 7]


def test_moves_in_place(two_devices):
    """A25: data and gradient go to the device, and the tensor stays itself."""
    x = t([1., 2.], requires_grad=True)
    (x * x).sum().backward()
    assert (x.cuda(1, inplace=True) is x and x.device == x.grad.device == "cuda:1" and x.is_leaf
            and x.grad.tolist() == [2, 4])
    (x * 3).sum().backward()
    assert x.to("cpu", inplace=True) is x and x.grad.device == "cpu" and x.grad.tolist() == [5, 7]


def test_numpy_shares_memory():
    x = t([1., 2.])
    x.numpy()[0] = 5
    assert x.tolist() == [5, 2]
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad. Use "
                                           r"tensor.detach\(\).numpy\(\) instead."):
        t([1.], requires_grad=True).numpy()


def test_lists_and_numbers():
    assert t([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]] and t(2.5).tolist() == 2.5
    assert type(t([[7]]).item()) is int and type(t(1.5).item()) is float and t(True).item() is True
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        t([1, 2]).item()


def test_numbers_do_not_widen():
    assert (t([1]) + 1.5).dtype is tg.float32 and (t([1]) / 2).dtype is tg.float32 and (t([True]) + 1).dtype is tg.int64
    assert (tg.ones(1, dtype=tg.float16) * 2.5).dtype is tg.float16 and (t([1], dtype=tg.uint8) + 1).dtype is tg.uint8
    assert (tg.ones(2) + t(1.0, dtype=tg.float64)).dtype is tg.float32      # nor do tensors without axes
    assert (tg.ones(2) * 1j).dtype is tg.complex64


# ── shapes and places ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_permute_and_transpose():
    x = tg.zeros(2, 3, 4, 5)
    assert x.permute(0, -2, 3, 1).shape == (2, 4, 5, 3) and x.transpose(0, -1).shape == (5, 3, 4, 2)
    assert tg.zeros(2, 3).transpose(1, 0).shape == (3, 2)
    with pytest.raises(RuntimeError, match="duplicate dims"):
        x.permute(0, 0, 1, 2)


def test_squeeze_and_unsqueeze():
    x = tg.zeros(1, 3, 1)
    assert (x.squeeze().shape == (3,) and x.squeeze(1).shape == (1, 3, 1) and x.squeeze(-1).shape == (1, 3)
            and x.unsqueeze(-4).shape == (1, 1, 3, 1))
    with pytest.raises(IndexError):
        x.unsqueeze(4)


def test_concatenation():
    x, y = t([[1., 2.]], requires_grad=True), t([[3., 4.], [5., 6.]], requires_grad=True)
    z = tg.concat([x, y], dim=0)
    assert z.tolist() == [[1, 2], [3, 4], [5, 6]] and tg.cat([x], -1).shape == (1, 2)
    (z * t([[1.], [2.], [3.]])).sum().backward()
    assert x.grad.tolist() == [[1, 1]] and y.grad.tolist() == [[2, 2], [3, 3]]


def test_concatenation_as_a_method():
    """A44: this tensor first, then a list of others."""
    x, y = t([[1., 2.]], requires_grad=True), t([[3., 4.], [5., 6.]], requires_grad=True)
    for join in x.concat, x.cat:
        assert (tg.equal(join([y], dim=0), tg.cat([x, y], 0)) and join([], dim=-1).shape == (1, 2)
                and join((x, x), -1).shape == (1, 6))
    (x.concat([y], dim=0) * t([[1.], [2.], [3.]])).sum().backward()
    assert x.grad.tolist() == [[1, 1]] and y.grad.tolist() == [[2, 2], [3, 3]]


def test_a_table_is_looked_up():
    """A47: rows at an index of any shape; gradients of repeated rows add up."""
    table = t([[1., 2.], [3., 4.], [5., 6.]], requires_grad=True)
    rows = table.lookup(t([[0, 2], [2, 2]]))
    assert rows.shape == (2, 2, 2) and rows[0].tolist() == [[1, 2], [5, 6]]
    (rows * t([[[1.], [10.]], [[100.], [1000.]]])).sum().backward()
    assert table.grad.tolist() == [[1, 1], [0, 0], [1110, 1110]]
    with pytest.raises(IndexError):
        table.lookup(t([-1]))


@pytest.mark.parametrize("method, function", [
    (lambda x, k: x.conv2d(k), lambda x, k: tg.conv2d(x, k)),
    (lambda x, k: x.conv2d(kernel=k, bias=k[:, 0, 0, 0], stride=(2, 1), padding=1),
     lambda x, k: tg.conv2d(x, k, k[:, 0, 0, 0], (2, 1), 1)),
    (lambda x, k: x.conv2d(k[:, :1], None, None, None, dilation=2, groups=2),
     lambda x, k: tg.conv2d(x, k[:, :1], dilation=2, groups=2)),
    (lambda x, k: x.max_pool2d(2), lambda x, k: tg.max_pool2d(x, 2)),
    (lambda x, k: x.max_pool2d(kernel_size=(4, 4), stride=(2, 1), padding=(1, 2)),
     lambda x, k: tg.max_pool2d(x, (4, 4), (2, 1), (1, 2))),
    (lambda x, k: x.avg_pool2d((2, 3)), lambda x, k: nn.functional.avg_pool2d(x, (2, 3))),
    (lambda x, k: x.avg_pool2d(3, stride=2, padding=1), lambda x, k: nn.functional.avg_pool2d(x, 3, 2, 1))],
                         ids=range(7))
def test_convolution_and_pooling_as_methods(method, function):
    """A48, A49, A50: the results and gradients are those of the functions."""
    tg.manual_seed(0)
    found = []
    for f in method, function:
        tg.manual_seed(0)
        x, k = tg.randn(2, 2, 7, 7, requires_grad=True), tg.randn(4, 2, 3, 3, requires_grad=True)
        y = f(x, k)
        (y * tg.arange(1., y.numel() + 1).reshape(y.shape)).sum().backward()
        found.append((y, x.grad, k.grad))
    (y, gx, gk), (y2, gx2, gk2) = found
    assert tg.equal(y, y2) and tg.equal(gx, gx2) and (gk is gk2 is None or tg.equal(gk, gk2))


def test_gradients_of_ties_go_to_the_first():
    """A49."""
    x = tg.ones(1, 1, 2, 2, requires_grad=True)
    x.max_pool2d(2).sum().backward()
    assert x.grad.flatten().tolist() == [1, 0, 0, 0]


def test_repeated_indices_add_up():
    x = t([1., 2., 3.], requires_grad=True)
    x[[0, 0, 1]].sum().backward()
    assert x.grad.tolist() == [2, 1, 0]
    assert x[t([2, 0])].tolist() == [3, 1] and x[x > 1].tolist() == [2, 3] and x[None, ..., 0].shape == (1,)


def test_writing_to_places_is_recorded():
    x, v = t([1., 2., 3.], requires_grad=True), t(5., requires_grad=True)
    y = x * 2
    y[1] = v * 3
    (y * t([1., 10., 100.])).sum().backward()
    assert y.tolist() == [2, 15, 6] and x.grad.tolist() == [2, 0, 200] and v.grad.item() == 30


def test_masked_fill_in_the_middle():
    x, mask = t([1., 2., 3.], requires_grad=True), t([True, False, False])
    y = x * 2
    assert y.masked_fill_(mask, float("-inf")) is y and y.tolist() == [float("-inf"), 4, 6]
    y[1:].sum().backward()
    assert x.grad.tolist() == [0, 2, 2]
    assert tg.zeros(2, 3).masked_fill_(mask, 1.).tolist() == [[1, 0, 0]] * 2
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place "
                                           "operation."):
        x.masked_fill_(mask, 0.)


# ── backward ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_backward_takes_an_upstream_gradient():
    x = t([1., 2.], requires_grad=True)
    (x * x).backward(gradient=t([1., 10.]))
    assert x.grad.tolist() == [2, 40]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * x).backward()


def test_backward_through_ten_thousand_steps():
    x = y = t(1., requires_grad=True)
    for _ in range(10_000):
        y = y * 1.0 + 0.0
    y.backward()
    assert x.grad.item() == 1


def test_backward_twice():
    x = t(3., requires_grad=True)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 12
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_gradients_of_results_in_between():
    x = t(3., requires_grad=True)
    y = x * x
    y.retain_grad()
    (y * 2).backward()
    assert y.grad.item() == 2 and x.grad.item() == 12


def test_gradients_of_two_losses_add_up():
    x = t([1., 2.], requires_grad=True)
    (x * 3).sum().backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [5, 7]


def test_only_what_needs_a_gradient_is_recorded():
    x, w = t([1.]), t([2.], requires_grad=True)
    assert (x * 2).grad_fn is None and not (x * 2).requires_grad and (x * w).requires_grad
    assert (x * w).grad_fn.name() == "MulBackward0"


# ── extensions ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def cube():
    """An op of a program's own: nothing but formulas."""
    class Cube(Elementwise):
        """x³"""

        native = False

        def forward(xp, x): return x * x * x
        def grad_x(xp, g, x): return g * (3 * x * x)
    yield Cube
    del OPS["cube"]


@pytest.fixture
def table():
    """The table of ops, put back afterwards."""
    before = dict(OPS)
    yield
    for name in OPS.keys() - before.keys():
        del OPS[name]


def test_what_ops_of_ones_own_inherit_from(table):
    """A55: a base and three families, under the paths of the first version."""
    class Cubed(stubs.UnaryOp):
        def forward(xp, x): return x * x * x
        def grad_x(xp, g, x): return g * (3 * x * x)

    class Scaled(stubs.BinaryOp):
        def forward(xp, a, b): return a * b * 2
        def grad_a(xp, g, b): return g * b * 2
        def grad_b(xp, g, a): return g * a * 2

    class Total(stubs.ReduceOp):
        def forward(xp, x, *, axis=None, keepdims=False): return xp.sum(x, axis=axis, keepdims=keepdims)
        def grad_x(xp, g, x_shape, axis=None, keepdims=False):
            return xp.broadcast_to(g if keepdims or axis is None else xp.expand_dims(g, axis=axis), x_shape)

    assert (stubs.Op is stubs.BaseOp is Op and all(issubclass(c, Op)
                                                   for c in (stubs.UnaryOp, stubs.BinaryOp, stubs.ReduceOp)))
    x, row = (t([[1., 2., 3.], [4., 5., 6.]], dtype=tg.float64, requires_grad=True),
              t([1., 2., 3.], dtype=tg.float64, requires_grad=True))
    execute = OpDispatch.execute
    assert (execute("cubed", t([2])).tolist() == [8] and execute("total", x, axis=1, keepdims=True).tolist()
            == [[6], [15]])
    for function, inputs in ((lambda x: execute("cubed", x), (x,)), (lambda x, y: execute(Scaled, x, y), (x, row)),
                             (lambda x: execute("total", x, axis=0), (x,))):
        assert tg.autograd.gradcheck(function, inputs) and tg.autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize("family, forward, message", [
    (stubs.UnaryOp, lambda xp, a, b: a, "Wrong.forward must take one tensor, and takes a, b"),
    (stubs.BinaryOp, lambda xp, a: a, "Wrong.forward must take two tensors, and takes a"),
    (stubs.ReduceOp, lambda xp, x, *, axis=None: x,
     "Wrong.forward must take one tensor, axis= and keepdims=, and takes x, axis=")])
def test_ops_that_are_not_what_their_family_says(family, forward, message):
    """A55: a definition that does not fit its family is refused, and is in no table."""
    with pytest.raises(TypeError, match=message):
        type("Wrong", (family,), {"forward": forward})
    assert "wrong" not in OPS


def test_the_path_of_the_dispatcher():
    """`tensorgrad.ops.dispatch` is where the first version had `OpDispatch`."""
    assert fresh_process("from tensorgrad.ops.dispatch import OpDispatch; import tensorgrad as t; print(OpDispatch is "
                         "t.OpDispatch)") == "True\n"


def test_families_of_ops():
    assert issubclass(Floating, Elementwise) and issubclass(Elementwise, Op) and issubclass(Composite, Op)
    assert OPS["multiply"].inputs == ("a", "b") and OPS["softmax"].parameters.keys() == {"axis"}


def test_an_op_of_ones_own_trains(cube):
    x = t([1., 2.], dtype=tg.float64, requires_grad=True)
    apply(cube, x).sum().backward()
    assert x.grad.tolist() == [3, 12]
    assert (tg.autograd.gradcheck(lambda x: apply(cube, x), (x,))
            and tg.autograd.gradgradcheck(lambda x: apply(cube, x), (x,)))
    w = t([1.5], requires_grad=True)
    optimizer = tg.optim.SGD([w], lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        loss = (OpDispatch.execute("cube", w) - 1).square().sum()
        loss.backward()
        optimizer.step()
    assert abs(w.item() - 1) < 0.05 and apply(cube, w).grad_fn.name() == "CubeBackward0"


def test_kernels_override_and_go_away(cube):
    x = t([2.], requires_grad=True)
    with OpDispatch.override(cube, "cpu", lambda x: x ** 3 + 1):
        assert apply(cube, x).item() == 9
        with OpDispatch.override("cube", DEVICE.CPU, lambda x: x ** 3 + 2):
            assert apply(cube, x).item() == 10
        assert apply(cube, x).item() == 9
    assert apply(cube, x).item() == 8
    with pytest.raises(KeyError, match="no kernel is registered for 'cube' on cpu"):
        OpDispatch.unregister(cube, "cpu")


def test_kernels_may_bring_their_way_back(cube):
    @OpDispatch.register(cube, "cpu")
    class kernel:
        def forward(x):
            square = x * x
            return square * x, square

        def backward(g, square, needs):
            return [g * square * 3]
    try:
        x = t([2.], requires_grad=True)
        g, = tg.autograd.grad(apply(cube, x), x, create_graph=True)
        assert g.item() == 12 and tg.autograd.grad(g, x)[0].item() == 12
    finally:
        OpDispatch.unregister(cube, "cpu")


def test_ops_that_there_are_not():
    with pytest.raises(KeyError, match="unknown op 'no_such_op'"):
        OpDispatch.execute("no_such_op", t([1.]))
    with pytest.raises(KeyError, match="unknown op"):
        OpDispatch.register("no_such_op", "cpu")
    assert OpDispatch.execute(OP.ADD, t([1.]), 2).item() == OpDispatch.execute("add", t([1.]), t([2.])).item() == 3


def test_a_device_of_ones_own():
    class Toy(Storage):
        device, module, array_type = "toy", np, np.ndarray
        asarray, host = staticmethod(np.asarray), staticmethod(lambda array: array)
    try:
        x = tg.zeros(2, device="toy").requires_grad_()
        (x.exp() * 3).sum().backward()
        assert x.grad.device == "toy" and x.grad.tolist() == [3, 3]
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two "
                                               "devices, toy and cpu!"):
            x + tg.zeros(2, device="cpu")
        with OpDispatch.override(OP.EXP, "toy", lambda x: x * 0 + 7):
            assert x.exp().tolist() == [7, 7] and tg.zeros(1, device="cpu").exp().item() == 1
    finally:
        del Storage.by_device["toy"]


# ── modules ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)
        self.scale = nn.Parameter(tg.ones(3))
        self.shift = nn.Buffer(tg.zeros(3))

    def forward(self, x):
        return self.norm(self.first(x)) * self.scale + self.shift


def test_modules_find_their_parts():
    net = Net()
    assert (net.training and list(dict(net.named_parameters()))
            == ["scale", "first.weight", "first.bias", "norm.weight", "norm.bias"])
    assert list(dict(net.named_children())) == ["first", "norm"] and "shift" in dict(net.named_buffers())
    assert isinstance(net.scale, tg.Tensor) and net.scale.requires_grad and not net.shift.requires_grad


def test_moving_a_module_keeps_its_parameters():
    net = Net()
    before = [id(p) for p in net.parameters()]
    assert net.to("cpu") is net and net.double() is net and [id(p) for p in net.parameters()] == before
    assert {p.dtype for p in net.parameters()} == {tg.float64} and net.norm.running_mean.dtype is tg.float64
    assert net.eval() is net and not net.norm.training and net.train() is net and net.norm.training


WRONG = {
    "linear": (lambda: nn.Linear(4, 3), [(2, 5)], ("2x5", "4x3")),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3), [(1, 2, 8, 8)], ("3 channels", "2 channels")),
    "batch_norm": (lambda: nn.BatchNorm2d(3), [(2, 3)], ("expected 4D input", "got 2D")),
    "layer_norm": (lambda: nn.LayerNorm(4), [(2, 3)], ("[4]", "[2, 3]")),
    "attention": (lambda: nn.MultiheadAttention(8, 2), [(5, 2, 6)] * 3, ("8", "6")),
    "cross_entropy": (lambda: lambda x, y: nn.CrossEntropyLoss()(x, y.long()), [(4, 3), (5,)], ("(4)", "(5)")),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_shapes_are_told(name):
    make, shapes, numbers = WRONG[name]
    module = make()
    with pytest.raises((RuntimeError, ValueError, AssertionError)) as error:
        module(*(tg.zeros(shape) for shape in shapes))
    assert all(number in str(error.value) for number in numbers), str(error.value)


def test_heads_divide_the_width():
    with pytest.raises(AssertionError, match="embed_dim must be divisible by num_heads"):
        nn.MultiheadAttention(7, 2)


class Foreign:
    """A tensor of another library: all that is asked of it."""

    def __init__(self, values):
        self.values = np.array(values)

    def detach(self): return self
    def cpu(self): return self
    def numpy(self): return self.values


class ForeignModule:
    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return {name: Foreign(values) for name, values in self.state.items()}


def test_state_from_another_library():
    net = Net().double()
    weight, mean = net.first.weight, net.norm.running_mean
    state = {name: np.full(tensor.shape, i, tensor.numpy(force=True).dtype)
             for i, (name, tensor) in enumerate(net.state_dict().items())}
    assert net.init_from_torch(ForeignModule(state)) is net
    assert net.first.weight is weight and net.norm.running_mean is mean
    for name, tensor in net.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(force=True), state[name])
    with pytest.raises(RuntimeError, match="Missing key"):
        net.init_from_torch(ForeignModule({}))


def test_initializers():
    x = tg.empty(6, 4)
    assert nn.init.zeros(x) is x and x.sum().item() == 0
    assert nn.init.ones(x) is x and x.sum().item() == 24
    for shape, fan in (((16,), 16), ((500, 4), 4), ((300, 3, 2, 2), 12)):
        x = nn.init.uniform_fan_in(tg.empty(shape))
        assert x.abs().max().item() <= fan ** -0.5
        assert x.numel() < 100 or x.abs().max().item() > 0.98 * fan ** -0.5
    assert nn.init.uniform_fan_in(tg.empty(1000), fan_in=100).abs().max().item() <= 0.1
    with pytest.raises(ValueError, match="1, 2 or 4 dimensions only, got 3"):
        nn.init.uniform_fan_in(tg.empty(2, 2, 2))
