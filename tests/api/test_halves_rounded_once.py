"""bfloat16 and float16: computed in float32, rounded once, and without Python on the way where operands are plain."""
import sys

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as tg
from tensorgrad.core.dispatch import xp
from tensorgrad.core.fast_path import compiled
from tensorgrad.nn import functional as F

DTYPES = "bfloat16", "float16"
TERMS = {
    "a * b": lambda lib, a, b: a * b, "a / 3": lambda lib, a, b: a / 3, "exp": lambda lib, a, b: a.exp(),
    "relu": lambda lib, a, b: lib.relu(a), "a < b": lambda lib, a, b: a < b, "sum": lambda lib, a, b: a.sum(1),
    "broadcast": lambda lib, a, b: a + b[0], "turned": lambda lib, a, b: a.t() * b.t(),
    "0-d": lambda lib, a, b: a[0, 0] * b[1, 1], "empty": lambda lib, a, b: a[:0] * b[:0],
    "overflow": lambda lib, a, b: (a * 3e4) * b * 1e30, "argmax": lambda lib, a, b: a.argmax(1),
}


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def given(lib, dtype, *shapes, grad=True):
    """Equal tensors of a dtype, positive and distinct."""
    random = np.random.default_rng(3)
    return [lib.asarray(random.uniform(0.2, 1.9, size=s).astype("f4")).to(getattr(lib, dtype)).requires_grad_(grad)
            for s in shapes]


@cpu_only
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("term", TERMS)
def test_terms_are_those_of_pytorch(torch, dtype, term):
    ours, theirs = (TERMS[term](lib, *given(lib, dtype, (3, 4), (3, 4))) for lib in (tg, torch))
    assert str(ours.dtype) == str(theirs.dtype) and ours.requires_grad == theirs.requires_grad
    np.testing.assert_allclose(ours.detach().double().numpy(), theirs.detach().double().numpy(), rtol=2e-3)
    with tg.inference_mode():
        assert TERMS[term](tg, *given(tg, dtype, (3, 4), (3, 4), grad=False)).is_inference()


@cpu_only
@pytest.mark.skipif(compiled is None, reason="the compiled fast path is off")
@pytest.mark.parametrize("dtype", DTYPES)
def test_plain_halves_need_no_python(dtype):
    a, b = given(tg, dtype, (8, 8), (8, 8))
    calls = []

    def watch(frame, event, _):
        if event == "call":
            calls.append(frame.f_code.co_qualname)
    # the dispatcher's functions: a class with `__torch_function__` in another test makes Tensor's methods ask in Python
    for f in (lambda: xp.multiply(a, b), lambda: xp.add(a, 2.5), lambda: xp.divide(a, b), lambda: xp.less(a, b)):
        f()                             # kernels are chosen in the first call
        sys.setprofile(watch)
        try:
            f()
        finally:
            sys.setprofile(None)
    assert [name for name in calls if "<lambda>" not in name] == []


def grid(x, y):
    return F.grid_sample(x.reshape(1, 1, 3, 4), y.reshape(1, 6, 1, 2), padding_mode="reflection", align_corners=False)


# functions of two tensors; each equals what float32 gives, rounded
ONCE = {
    "std_mean": lambda x, y: tg.std_mean(x, 1), "corrcoef": lambda x, y: tg.corrcoef(x),
    "dist": lambda x, y: tg.dist(x, y, 3), "renorm": lambda x, y: tg.renorm(x, 2, 0, 1.0), "grid_sample": grid,
    "kl_div": lambda x, y: F.kl_div(x, y, reduction="sum"), "probabilities": lambda x, y: F.cross_entropy(x, y),
    "poisson": lambda x, y: F.poisson_nll_loss(x, y, full=True), "ldexp": lambda x, y: tg.ldexp(x, y),
    "gaussian": lambda x, y: F.gaussian_nll_loss(x, y, y.detach()),
    "gradient": lambda x, y: tg.gradient(x, spacing=0.3),
    "normalize": lambda x, y: tg.masked.normalize(x, 2, 1),
    "group_norm": lambda x, y: tg.native_group_norm(x.reshape(2, 3, 2), y[0, :3], y[1, :3], 2, 3, 2, 3, 1e-5)[:1],
    # one op each: the sum over an axis that was broadcast, and results that formulas ask for
    "erfinv": lambda x, y: tg.where(x < 1, x, 0.5).erfinv(),
}


@cpu_only
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONCE)
def test_results_and_gradients_are_rounded_once(dtype, name):
    narrow = given(tg, dtype, (3, 4), (3, 4))
    wide = [t.detach().float().requires_grad_() for t in narrow]
    outs = [ONCE[name](*inputs) for inputs in (narrow, wide)]
    for one, other in zip(*[out if isinstance(out, tuple) else (out,) for out in outs], strict=True):
        assert str(one.dtype) == f"torch.{dtype}" and tg.equal(one, other.to(one.dtype))
    for out in outs:
        pulled_in(out, getattr(tg, dtype))
    for one, other in zip(narrow, wide):
        assert (one.grad is None) == (other.grad is None)
        assert one.grad is None or tg.equal(one.grad, other.grad.to(one.dtype))


def pulled_in(out, dtype):
    """Pull unequal numbers of a dtype back, through all results at once."""
    outs = out if isinstance(out, tuple) else (out,)
    upstream = [tg.asarray(np.cos(1.7 * np.arange(part.numel(), dtype="f4") + i).reshape(tuple(part.shape)) + 0.1)
                for i, part in enumerate(outs)]
    tg.autograd.backward(list(outs), [g.to(dtype).to(part.dtype) for g, part in zip(upstream, outs)])


def test_statistics_of_group_norm_have_gradients(torch):
    grads = []
    for lib in (tg, torch):
        x, = given(lib, "float32", (2, 6, 2))
        _, mean, rstd = lib.native_group_norm(x, None, None, 2, 6, 2, 3, 1e-5)
        (mean * lib.arange(6.).reshape(2, 3) + rstd.cos()).sum().backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(*grads, rtol=1e-4, atol=1e-6)
    assert not tg.native_layer_norm(x := given(tg, "float32", (2, 3))[0], [3], None, None, 0.1)[1].requires_grad
    assert tg.native_group_norm(x[:0], None, None, 0, 3, 1, 1, 0.1)[1].shape == (0, 1)
