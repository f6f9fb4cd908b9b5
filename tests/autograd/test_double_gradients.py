"""Gradients of gradients, and gradients where a formula has a bend, a tie or a pole: beside PyTorch's."""
from math import inf, nan

import numpy as np
import pytest
from side_by_side import compare
from support import fresh_process, needed

import tensorgrad

oracle = needed("torch")
ENGINES = (tensorgrad, oracle)


def tensor(torch, values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def wave(torch, like, phase=0.4):
    """Numbers of both signs, no two alike."""
    return torch.cos(1.7 * torch.arange(like.numel(), dtype=torch.float64) + phase).reshape(like.shape)


def values(tensors):
    return [None if t is None else t.detach().numpy(force=True) for t in tensors]


@pytest.mark.parametrize("op", [
    lambda torch, x: torch.nn.functional.scaled_dot_product_attention(x, x * 2, x.sin()),
    lambda torch, x: torch.nn.functional.layer_norm(x, (4,), x.sum((0, 1, 2)), x.mean((0, 1, 2))),
])
def test_inputs_that_come_from_each_other(op):
    """A recorded gradient ends at the inputs of an op, though it could go on from one of them to another."""
    def program(torch):
        x = wave(torch, torch.empty(1, 2, 5, 4)).requires_grad_()
        return values(torch.autograd.grad((op(torch, x) * wave(torch, x, 1.0)).sum(), x, create_graph=True))
    compare(program(tensorgrad), program(oracle), 1e-9, 1e-10, "gradients")
    assert tensorgrad.autograd.gradgradcheck(lambda x: op(tensorgrad, x),
                                             wave(tensorgrad, tensorgrad.empty(1, 2, 2, 4)).requires_grad_())


@pytest.mark.parametrize("src", [[0.5, 2, 3, 4, 5], [0, 2, 3, 0, 5], [0, 0, 3, 4, 5]])
def test_products_with_zeros(src):
    """Several zeros in one place of a product make its first gradient 0, and its second gradient an error."""
    def program(torch):
        x, src_ = tensor(torch, [2, 0.0]), tensor(torch, src)
        y = x.scatter_reduce(0, torch.tensor([0, 0, 0, 1, 1]), src_, "prod")
        first = torch.autograd.grad((y * wave(torch, y)).sum(), (x, src_), create_graph=True)
        try:
            second = torch.autograd.grad(sum((g * wave(torch, g)).sum() for g in first), (x, src_))
        except RuntimeError as error:
            return values(first), str(error).splitlines()[0]
        return values(first), values(second)
    compare(program(tensorgrad), program(oracle), 1e-9, 1e-10, "gradients")


# ── gradients of gradients ────────────────────────────────────────────────────────────────────────────────────────────

LINE = [[-7.0, -2.0, -0.3, 0.4, 1.5, 8.0]]
PLANE = np.random.default_rng(3).permutation(72).reshape(1, 2, 6, 6) / 9.0 - 4
SPACE = PLANE.reshape(1, 2, 3, 3, 4)

# PyTorch's backward of these takes the input, with which it does not vary: its gradient there is zeros, not None. Of
# the last ones it is None.
FLAT = {
    "relu": (lambda F, x: F.relu(x), LINE),
    "relu6": (lambda F, x: F.relu6(x), LINE),
    "leaky_relu": (lambda F, x: F.leaky_relu(x, 0.3), LINE),
    "prelu": (lambda F, x: F.prelu(x, x[0, :1].detach()), LINE),
    "rrelu": (lambda F, x: F.rrelu(x), LINE),
    "hardtanh": (lambda F, x: F.hardtanh(x), LINE),
    "hardswish": (lambda F, x: F.hardswish(x), LINE),
    "hardshrink": (lambda F, x: F.hardshrink(x), LINE),
    "softshrink": (lambda F, x: F.softshrink(x), LINE),
    "threshold": (lambda F, x: F.threshold(x, 0.5, 3.0), LINE),
    "avg_pool1d": (lambda F, x: F.avg_pool1d(x, 2), LINE),
    "avg_pool2d": (lambda F, x: F.avg_pool2d(x, 2, padding=1, count_include_pad=False), PLANE),
    "adaptive_avg_pool2d": (lambda F, x: F.adaptive_avg_pool2d(x, (4, 3)), PLANE),
    "max_pool1d": (lambda F, x: F.max_pool1d(x, 2), LINE),
    "max_pool2d": (lambda F, x: F.max_pool2d(x, 3, 1, return_indices=True)[0], PLANE),
    "max_pool3d": (lambda F, x: F.max_pool3d(x, 2), SPACE),
    "adaptive_max_pool2d": (lambda F, x: F.adaptive_max_pool2d(x, 4), PLANE),
    "pad reflect": (lambda F, x: F.pad(x, (1, 2, 2, 1), "reflect"), PLANE),
    "pad replicate": (lambda F, x: F.pad(x, (1, 2), "replicate"), LINE),
    "elu": (lambda F, x: F.elu(x, 0.7), LINE),
    "adaptive_avg_pool2d to one": (lambda F, x: F.adaptive_avg_pool2d(x, 1), PLANE),
    "pad constant": (lambda F, x: F.pad(x, (1, 2)), PLANE),
    "pad circular": (lambda F, x: F.pad(x, (1, 2), "circular"), LINE),
    "interpolate": (lambda F, x: F.interpolate(x, scale_factor=2), PLANE),
    "clamp": (lambda F, x: x.clamp(-1, 1), LINE),
    "abs": (lambda F, x: x.abs(), LINE),
    "amax": (lambda F, x: x.amax(-1), LINE),
    "max": (lambda F, x: x.max(-1)[0], LINE),
    "sort": (lambda F, x: x.sort()[0], LINE),
    "index": (lambda F, x: x[:, [0, 0, 2]], LINE),
    "det of one": (lambda F, x: x[:, :1].det(), LINE),
}


def second(torch, function, numbers):
    """The gradients of a gradient with respect to the input and to the upstream gradient."""
    x = tensor(torch, numbers)
    y = function(torch.nn.functional, x)
    g = wave(torch, y).requires_grad_()
    first, = torch.autograd.grad(y, x, g, create_graph=True)
    return values([first, *torch.autograd.grad(first, (x, g), wave(torch, first, 1.1), allow_unused=True)])


@pytest.mark.parametrize("name", FLAT)
def test_zeros_or_none(name):
    ours, theirs = (second(torch, *FLAT[name]) for torch in ENGINES)
    compare(ours, theirs, 1e-9, 1e-12, name)


def test_zeros_of_classes():
    def program(torch):
        x = tensor(torch, [[0.1, 0.7, -0.4], [1.2, -0.3, 0.5]])
        y = torch.nn.functional.nll_loss(x, torch.tensor([2, 0]))
        g, = torch.autograd.grad(y, x, create_graph=True)
        return values(torch.autograd.grad(g.sum(), x))
    compare(program(tensorgrad), program(oracle), 1e-12, 0, "nll_loss")


# ── hooks on a result that its own formula asks for ───────────────────────────────────────────────────────────────────


def twice(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y, y * 2

        @staticmethod
        def backward(ctx, g, h):
            y, = ctx.saved_tensors
            return (g + 2 * h) * y
    return Twice.apply


HOOKED = {
    "exp": lambda torch, x: x.exp(),
    "softmax": lambda torch, x: x.softmax(-1),
    "tanh": lambda torch, x: x.tanh(),
    "std": lambda torch, x: x.std(-1),
    "logsumexp": lambda torch, x: x.logsumexp(-1),
    "inv": lambda torch, x: torch.linalg.inv(x),
    "eigh": lambda torch, x: torch.linalg.eigh(x @ x.mT)[1].abs(),
    "qr": lambda torch, x: torch.linalg.qr(x)[1],
    "Function": lambda torch, x: twice(torch)(x)[0],
}


@pytest.mark.parametrize("name", HOOKED)
def test_hooks_see_both_ways(name):
    def program(torch):
        x, seen = tensor(torch, [[1.0, 2.0, 4.0], [0.5, -1.0, 2.0], [3.0, 1.0, -2.0]]), []
        y = HOOKED[name](torch, x)
        y.register_hook(lambda g: seen.append(g.detach().numpy().copy()))
        y.retain_grad()
        g, = torch.autograd.grad(y, x, wave(torch, y), create_graph=True)
        (g * wave(torch, g, 1.1)).sum().backward()
        return [*seen, *values([y.grad, x.grad])]
    compare(program(tensorgrad), program(oracle), 1e-8, 1e-10, name)


def test_a_kernel_s_step_becomes_one_of_formulas():
    x = tensor(tensorgrad, [[1.0, 2.0, 4.0]])
    y = x.log_softmax(-1)
    step = y.grad_fn
    first, = tensorgrad.autograd.grad(y, x, wave(tensorgrad, y), create_graph=True)
    again, = tensorgrad.autograd.grad(y, x, wave(tensorgrad, y))
    assert y.grad_fn is step and step.name() == "LogSoftmaxBackward0"
    np.testing.assert_allclose(first.detach().numpy(), again.numpy(), rtol=1e-12)


# ── bends, ties and poles ─────────────────────────────────────────────────────────────────────────────────────────────

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 6.0, 1e-3, -1e-3, 40.0, inf, -inf, nan, 1e-310]
NANS = [[[1.0, nan, nan, 2.0], [nan, 3.0, 0.0, nan], [1.0, 2.0, 4.0, 4.0]]]
ROWS = [[0.0, 0.0, 0.0], [1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0], [-1.0, 1.0, -1.0], [2.0, 1.0, 2.0]]
WILD = [*ROWS, [nan, 1.0, 2.0], [inf, 1.0, 2.0], [-inf, inf, 0.0]]
TABLES = {
    "one": (SPECIAL, ("abs", "acosh", "asin", "atanh", "erf", "exp", "floor", "log", "log1p", "logit", "reciprocal",
                      "relu", "rsqrt", "sgn", "sinc",
                      "sqrt", "tan", "tanh", "nan_to_num", "deg2rad", "i0e", "sigmoid", "square", "frac", "round")),
    "activation": (SPECIAL, ("celu", "elu", "selu", "hardtanh", "relu6", "hardswish", "hardsigmoid", "hardshrink",
                             "softshrink", "leaky_relu",
                             "logsigmoid", "softplus", "silu", "softsign", "tanhshrink")),
    "two": (SPECIAL[:10], ("atan2", "copysign", "fmax", "fmin", "fmod", "remainder", "maximum", "minimum", "pow",
                           "xlogy", "logaddexp", "hypot")),
    "rows": (ROWS, ("prod", "amax", "amin", "logsumexp", "std", "var", "cumprod", "cumsum", "logcumsumexp", "softmax",
                    "nansum", "median")),
    "wild": (WILD, ("amax", "amin", "logsumexp", "softmax", "nansum", "nanmean", "var")),
}
CASES = [(kind, name) for kind, (_, names) in TABLES.items() for name in names]
SPELT_OUT = {
    "i0e": lambda torch, x: torch.special.i0e(x),
    **{f"norm {p}": lambda torch, x, p=p: torch.linalg.vector_norm(x, p, 1) for p in (0.5, 1, 1.5, 2, 3, inf, -inf)},
    **{f"pow {p}": lambda torch, x, p=p: x ** p for p in (0, 1, 2, -1, 0.5, -0.5)},
    **{f"{p} pow": lambda torch, x, p=p: p ** x for p in (0, 1, 2)},
    **{f"scatter_reduce {how} {itself}": lambda torch, x, how=how, itself=itself: torch.scatter_reduce(
        x, 1, torch.tensor([[0, 0, 1]] * len(x)), x.roll(1, 1), how, include_self=itself)
       for how in ("prod", "amax", "amin", "mean")
       for itself in (True, False)},
    "renorm": lambda torch, x: torch.renorm(x, 2, 0, 1.0),
    "clamp": lambda torch, x: x.clamp(0, 1),
    "logit eps": lambda torch, x: torch.logit(x, 0.1),
}
CASES += [("rows" if name.startswith(("norm", "scatter", "renorm")) else "one", name)
          for name in SPELT_OUT if name != "i0e"]


def called(torch, kind, name, *arguments):
    if name in SPELT_OUT:
        return SPELT_OUT[name](torch, *arguments)
    result = getattr(torch.nn.functional if kind == "activation" else torch, name)(*arguments,
                                                                                   **({"dim": 1}
                                                                                      if kind in ("rows", "wild")
                                                                                      else {}))
    return result if isinstance(result, torch.Tensor) else result[0]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_special_values(kind, name):
    def program(torch):
        numbers = TABLES[kind][0]
        arguments = ([[a for a in numbers for _ in numbers], [b for _ in numbers for b in numbers]] if kind == "two"
                     else [numbers])
        inputs = [tensor(torch, numbers) for numbers in arguments]
        y = called(torch, kind, name, *inputs)
        return values(torch.autograd.grad(y, inputs, wave(torch, y)))
    compare(program(tensorgrad), program(oracle), 1e-6, 1e-9, name)


@pytest.mark.parametrize("name", ["max_pool2d", "adaptive_max_pool2d"])
@pytest.mark.parametrize("indices", [False, True])
def test_the_last_nan_is_the_greatest(name, indices):
    def program(torch):
        x = tensor(torch, NANS)
        y = getattr(torch.nn.functional, name)(x, 2, return_indices=indices)
        return values(torch.autograd.grad(y[0] if indices else y, x, wave(torch, y[0] if indices else y)))
    compare(program(tensorgrad), program(oracle), 0, 0, name)


def test_bfloat16_is_rounded_before_it_is_summed_up():
    def program(torch):
        a, b = (torch.cos(torch.arange(float(n)) * 1.3).reshape(shape).bfloat16().requires_grad_()
                for n, shape in ((24, (4, 6)), (6, (6,))))
        y = a * b
        return [g.float().numpy() for g in torch.autograd.grad(y, (a, b),
                                                               torch.sin(torch.arange(24.)).reshape(4, 6).bfloat16())]
    for ours, theirs in zip(program(tensorgrad), program(oracle), strict=True):
        np.testing.assert_array_equal(ours, theirs)


# ── what steps are called, and a warning ──────────────────────────────────────────────────────────────────────────────

NAMED = ("x[None]", "x[..., None]", "x[:, 1]", "x[0]", "x[...]", "x[1:]", "x.sum()", "x.sum(0)", "x.mean(1)",
         "x.prod(1)", "x.max()", "x.max(1)[0]", "x.median(1)[0]", "x.clamp(0, 1)", "x ** 2", "x ** x", "2 ** x",
         "x % 2", "x % x", "2 - x", "x @ x", "x @ x[0]", "x[0] @ x[0]", "x.split(1)[0]", "x.split([1, 2])[0]",
         "x.masked_fill(x > 0, 1.0)", "x.masked_fill(x > 0, x.sum())", "torch.lerp(x, x, x)", "x[0].diag()",
         "x.index_select(1, torch.tensor([0, 1]))", "x.round(decimals=1)",
         "x.round()", "torch.div(x, 2, rounding_mode='floor')", "x.deg2rad()", "torch.fft.fft(x)", "x.clone().fill_(2)",
         "x.clone().copy_(x)", "written(x.clone())",
         "torch.nn.functional.avg_pool1d(x[None], 1)[0]",
         "torch.nn.functional.max_pool3d(x[None, None], 1)",
         "torch.nn.functional.nll_loss(x[None], torch.tensor([[0, 1, 2]]))",
         "x.scatter_add(0, torch.tensor([[0, 1, 0]]), x)", "x.gather(0, torch.tensor([[0, 1, 0]]))")


def written(x):
    x[0] = x[1] * 2
    return x


@pytest.mark.parametrize("text", NAMED)
def test_names_of_steps(text):
    def program(torch):
        x = tensor(torch, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])
        y = eval(text, {"torch": torch, "x": x, "written": written})
        return y.grad_fn.name(), repr(y.grad_fn).split()[0], repr(y).rpartition("grad_fn=")[2]
    assert program(tensorgrad) == program(oracle)


def test_the_warning_of_a_cycle_comes_once():
    program = """
import warnings, tensorgrad as torch
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        x = torch.tensor(2.0, requires_grad=True)
        torch.autograd.grad(x * x, x, create_graph=True)
        (x * x).backward(create_graph=True)
print([(w.category.__name__, str(w.message)) for w in caught])
"""
    caught = fresh_process(program)
    assert caught.count("UserWarning") == 1
    assert ("Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient" in caught)
