"""`x.data = y` between forward and backward: the way back sees y if it is like x was, and raises RuntimeError, or sees
what it can, if it is not.
"""
import pytest
from support import cpu_only

import tensorgrad as tg

pytestmark = cpu_only

OPS = {
    "layer_norm": lambda t, x, w: t.nn.functional.layer_norm(x, (6,), w, w),
    "rms_norm": lambda t, x, w: t.nn.functional.rms_norm(x, (6,), w),
    "group_norm": lambda t, x, w: t.nn.functional.group_norm(x, 2, w, w),
    "batch_norm": lambda t, x, w: t.nn.functional.batch_norm(x, None, None, w, w, True),
    "mse_loss": lambda t, x, w: t.nn.functional.mse_loss(x, w.expand(4, 6)),
    "gelu": lambda t, x, w: t.nn.functional.gelu(x) * w,
    "bce_with_logits": lambda t, x, w: t.nn.functional.binary_cross_entropy_with_logits(x, w.expand(4, 6)),
    "silu": lambda t, x, w: t.nn.functional.silu(x) * w,
    "cross_entropy": lambda t, x, w: t.nn.functional.cross_entropy(x, t.tensor([0, 1, 2, 3])) + w.sum(),
    "softmax": lambda t, x, w: t.softmax(x, -1) * w,
    "mul": lambda t, x, w: x * w, "linear": lambda t, x, w: t.nn.functional.linear(x, w.expand(5, 6)),
    "matmul": lambda t, x, w: x @ w,
    "smooth_l1_loss": lambda t, x, w: t.nn.functional.smooth_l1_loss(x, w.expand(4, 6)),
    "logsumexp": lambda t, x, w: t.logsumexp(x, -1) + w.sum(),
    "var": lambda t, x, w: x.var(-1) + w.sum(),
    "conv1d": lambda t, x, w: t.nn.functional.conv1d(x[None], w.reshape(1, 1, 6).expand(4, 4, 6)),
    "max_pool1d": lambda t, x, w: t.nn.functional.max_pool1d(x[None], 2) * w[:3],
    "embedding": lambda t, x, w: t.nn.functional.embedding(t.tensor([3, 0]), x) * w,
    "attention": lambda t, x, w: t.nn.functional.scaled_dot_product_attention(x[None], x[None], w.expand(1, 4, 6)),
    "sin": lambda t, x, w: x.sin() + w,
}
OTHERS = {"shorter": lambda t, v: v[:3], "small": lambda t, v: t.ones(2), "large": lambda t, v: t.ones(70, 90),
          "empty": lambda t, v: t.ones(0),
          "double": lambda t, v: v.double(), "half": lambda t, v: v.half(),
          "turned": lambda t, v: v.t().contiguous().t(),
          "wide": lambda t, v: t.ones(1).expand(v.shape)}


def operands(t, leaves):
    x = (t.arange(24.0).reshape(4, 6).sin() * 2).requires_grad_()
    w = (t.arange(6.0) / 4 + 0.5).requires_grad_()
    return x, w, *((x, w) if leaves else (x * 1, w * 1))


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", OPS)
def test_data_of_another_form(name, other):
    """A gradient in the form of the leaf, or RuntimeError; and never more of the arrays than there is."""
    for leaves in (True, False):
        for which in (0, 1):
            x, w, *used = operands(tg, leaves)
            y = OPS[name](tg, *used)
            shapes = x.shape, w.shape
            used[which].data = OTHERS[other](tg, used[which].detach())
            try:
                y.sum().backward()
            except RuntimeError:
                continue
            assert (x.grad.shape, w.grad.shape) == shapes


# whose steps save something else
ALIKE = [name for name in OPS if name not in ("cross_entropy", "rms_norm", "batch_norm", "attention", "max_pool1d")]


@pytest.mark.parametrize("name", ALIKE)
def test_data_of_the_same_form(name):
    torch = pytest.importorskip("torch")
    for which in (0, 1):
        found = []
        for t in (tg, torch):
            x, w, *used = operands(t, False)
            y = OPS[name](t, *used)
            used[which].data = used[which].detach() * 0.5 + 0.25
            y.sum().backward()
            found += [x.grad.tolist(), w.grad.tolist()]
        for ours, theirs in zip(found[:2], found[2:], strict=True):
            assert tg.allclose(tg.tensor(ours), tg.tensor(theirs), atol=1e-5)


def test_a_leaf_of_another_shape_is_another_leaf_to_what_comes_after():
    w, x = tg.ones(2, requires_grad=True), tg.ones(2)
    before, calls = w * x, []
    w.register_hook(lambda g: calls.append(tuple(g.shape)))
    w.data = tg.ones(3)
    before.sum().backward()
    assert w.grad.tolist() == [1, 1] and calls == [(2,)]         # PyTorch as well leaves the gradient in the old shape
    w.grad = None
    (w * 2).sum().backward()
    assert w.grad.tolist() == [2, 2, 2] and calls == [(2,), (3,)]


def test_hooks_stay_with_the_tensor():
    w, calls = tg.ones(2, requires_grad=True), []
    w.register_hook(lambda g: calls.append(tuple(g.shape)))
    before = w * 3
    w.data = tg.ones(3)
    (w * 2).sum().backward()
    w.grad = None
    before.sum().backward()
    assert calls == [(3,), (2,)]


@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "binary_cross_entropy_with_logits", "smooth_l1_loss",
                                  "huber_loss", "cross_entropy", "nll_loss"])
def test_targets_that_are_written_to(loss):
    torch = pytest.importorskip("torch")
    for change in ("in place", "data", "shape"):
        found = []
        for t in (tg, torch):
            x = t.arange(12.0).reshape(3, 4).sin().requires_grad_()
            target = t.tensor([0, 1, 2]) if loss in ("cross_entropy", "nll_loss") else t.full((3, 4), 0.25)
            y = getattr(t.nn.functional, loss)(x, target)
            if change == "in place":
                target.add_(1)
            elif change == "data":
                target.data = target + 1
            else:
                target.data = t.zeros(40, dtype=target.dtype)
            try:
                y.backward()
            except (RuntimeError, IndexError) as error:
                found.append(type(error) if change == "shape" else str(error).partition(":")[0].partition(" [")[0])
            else:
                found.append(x.grad.tolist())
        ours, theirs = found
        if change == "shape":
            assert ours is RuntimeError or isinstance(ours, list)
        elif type(theirs) is str:
            assert ours == theirs
        else:
            assert tg.allclose(tg.tensor(ours), tg.tensor(theirs), atol=1e-6)


def test_places_that_became_fewer_are_refused():
    """NumPy's `add.at` ends the process for values that have more axes than the place they are added at."""
    a, b = tg.randn(6, 3, requires_grad=True), tg.randint(0, 3, (8, 2))
    y = a[:, b]
    b.data = tg.tensor(2)
    with pytest.raises(RuntimeError, match="cannot use what it saved"):
        y.sum().backward()
