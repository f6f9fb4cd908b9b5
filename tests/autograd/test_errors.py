"""Errors of backward, backwards inside of backwards, and what backward leaves as it was."""
import gc
import sys
import warnings

import numpy as np
import pytest
from side_by_side import outcome, same

import tensorgrad
from tests.autograd.test_autograd import leaf, program

pytestmark = pytest.mark.usefixtures("device")

# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────────


ERRORS = {
    "a vector without a gradient": lambda torch: leaf(torch, 1., 2.).backward(),
    "nothing to differentiate": lambda torch: torch.tensor([1.]).backward(),
    "the second root needs no gradient": lambda torch: torch.autograd.backward([leaf(torch, 1.), torch.tensor([1.])]),
    "a gradient of another shape": lambda torch: (leaf(torch, 1., 2.) * 2).backward(torch.tensor([1.])),
    "a gradient that is a list": lambda torch: (leaf(torch, 1., 2.) * 2).backward([1., 2.]),
    "a gradient that is a number": lambda torch: (leaf(torch, 1., 2.) * 2).backward(3.),
    "no inputs": lambda torch: (leaf(torch, 1.) * 2).sum().backward(inputs=[]),
    "no inputs of grad": lambda torch: torch.autograd.grad(leaf(torch, 1.).sum(), []),
    "an input without gradient": lambda torch: torch.autograd.grad(leaf(torch, 1.).sum(), torch.tensor(1.)),
    "an input of backward without gradient": lambda torch: leaf(torch, 1.).backward(inputs=torch.tensor(1.)),
    "unused inputs to be zero and not": lambda torch: torch.autograd.grad(
        leaf(torch, 1.), leaf(torch, 1.), materialize_grads=True, allow_unused=False),
    "a complex root": lambda torch: (leaf(torch, 1.) * 1j).sum().backward(),
    "a real gradient of a complex root": lambda torch: (leaf(torch, 1.) * 1j).backward(torch.tensor([1.])),
    "a complex gradient of a real root": lambda torch: (leaf(torch, 1.) * 1).backward(torch.tensor([1j])),
    "gradients of integers": lambda torch: torch.tensor([1]).requires_grad_(),
    "a tensor of integers with gradient": lambda torch: torch.tensor([1], requires_grad=True),
    "zeros of integers with gradient": lambda torch: torch.zeros(1, dtype=torch.int64, requires_grad=True),
    "a step without gradient": lambda torch: (leaf(torch, 1.) * 2).requires_grad_(False),
    "a step without gradient, by attribute": lambda torch: setattr(leaf(torch, 1.) * 2, "requires_grad", False),
    "a view detached in place": lambda torch: (leaf(torch, 1.) * 2)[0:1].detach_(),
    "a retained gradient of what has none": lambda torch: torch.tensor([1.]).retain_grad(),
    "a number as gradient": lambda torch: setattr(leaf(torch, 1.), "grad", 3.),
    "a gradient of another size": lambda torch: setattr(leaf(torch, 1.), "grad", torch.tensor([1., 2.])),
    "a gradient of another dtype": lambda torch: setattr(leaf(torch, 1.), "grad",
                                                         torch.tensor([1.], dtype=torch.float64)),
    "a gradient of integers": lambda torch: setattr(leaf(torch, 1.), "grad", torch.tensor([1])),
    "a leaf written to": lambda torch: leaf(torch, 1.).add_(1),
    "a view of a leaf written to": lambda torch: leaf(torch, 1., 2.)[0].add_(1),
    "data that is no tensor": lambda torch: setattr(leaf(torch, 1.), "data", 3),
    "data of integers for a leaf": lambda torch: setattr(leaf(torch, 1.), "data", torch.tensor([1, 2])),
    "the edge of what needs no gradient": lambda torch: torch.autograd.graph.get_gradient_edge(torch.tensor([1.])),
    "a step copied deeply": lambda torch: __import__("copy").deepcopy(leaf(torch, 1.) * 2),
    "only some of the gradients": lambda torch: torch.autograd.backward([leaf(torch, 1.), leaf(torch, 1.)],
                                                                        [torch.tensor([1.])]),
    "a variable of a list": lambda torch: torch.autograd.Variable([1.]),
    "a gradient accumulated in itself": lambda torch: (lambda x: setattr(x, "grad", x))(leaf(torch, 1.)),
}


@pytest.mark.parametrize("mistake", ERRORS.values(), ids=ERRORS.keys())
def test_mistakes_are_named_as_pytorch_names_them(mistake):
    assert isinstance(outcome(mistake, tensorgrad)[0], tuple), "no error was raised"
    same(mistake)


# ── reentrance and devices ────────────────────────────────────────────────────────────────────────────────────────────


@program
def backward_within_backward(torch):
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x.exp() * ctx.x
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                torch.autograd.backward(ctx.y, g)
            return ctx.x.grad
    x = leaf(torch, 1., 2.)
    (Inner.apply(x * 2) * x).sum().backward()
    return x.grad


@program
def grad_within_a_hook(torch):
    x, w = leaf(torch, 1., 2.), leaf(torch, 3., 4.)
    found = []
    y = x * 3
    y.register_hook(lambda g: found.append(torch.autograd.grad(torch.enable_grad()(lambda: (w * w).sum())(), w)))
    y.sum().backward()
    return found, x.grad


def test_gradients_cross_devices(device):
    x = tensorgrad.tensor([1., 2.], device="cpu", requires_grad=True)
    y = (x * 2).to(device)
    (y * y).cpu().sum().backward()
    assert x.grad.device == "cpu" and x.grad.tolist() == [8., 16.]


test_programs = program.test()


# ── what backward leaves alone, and what it leaves behind ─────────────────────────────────────────────────────────────


def arrays(*tensors):
    """The bare NumPy arrays, whatever the device."""
    return [getattr(t.array, "values", t.array) for t in tensors]


def share(a, b):
    a, b = arrays(a, b)
    return isinstance(a, np.ndarray) and np.shares_memory(a, b)


PASSING = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "double": lambda a, b: a + a + b,
    "multiply": lambda a, b: a * b,
    "reshape": lambda a, b: a.reshape(4) + b.reshape(4), "transpose": lambda a, b: a.t() + b,
    "expand": lambda a, b: a.expand(3, 2, 2) + b,
    "concat": lambda a, b: tensorgrad.cat([a, b]), "stack": lambda a, b: tensorgrad.stack([a, b]),
    "clone": lambda a, b: a.clone() + b.clone(),
    "where": lambda a, b: tensorgrad.where(a > 0, a, b), "index": lambda a, b: a[0] + b[1],
    "flip": lambda a, b: a.flip(0) + b,
    "sum": lambda a, b: a.sum() + b.sum(0), "cast": lambda a, b: a.float() + b.double().float(),
    "unbind": lambda a, b: a.unbind()[0] + b,
    "maximum": tensorgrad.maximum if hasattr(tensorgrad, "maximum") else None,
    "contiguous": lambda a, b: a.t().contiguous() + b,
}


@pytest.mark.parametrize("create_graph", [False, True], ids=["first", "create_graph"])
@pytest.mark.parametrize("name", PASSING)
def test_no_two_gradients_share_memory(name, create_graph):
    a, b = (tensorgrad.tensor(v, requires_grad=True) for v in ([[1., -2.], [3., 4.]], [[5., 6.], [-7., 8.]]))
    y = PASSING[name](a, b)
    h = y * 1
    h.retain_grad()
    g = (tensorgrad.arange(float(y.numel())) + 1).reshape(y.shape)
    before = [t.tolist() for t in (a, b, g)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        h.backward(g, create_graph=create_graph)
    gradients = [a.grad, b.grad, h.grad]
    assert [t.tolist() for t in (a, b, g)] == before
    for i, one in enumerate(gradients):
        assert getattr(one.array.flags, "writeable", True) and one.storage_offset() == 0
        assert not any(share(one, other) for other in [*gradients[i + 1:], a, b, g, y, h])
    values = h.grad.tolist()
    a.grad.detach().zero_()
    assert h.grad.tolist() == values and [t.tolist() for t in (a, b, g)] == before


def test_no_two_gradients_of_grad_share_memory():
    a, b = leaf(tensorgrad, 1., 2.), leaf(tensorgrad, 3., 4.)
    ga, gb = tensorgrad.autograd.grad((a + b).sum() + b.sum() * 0, [a, b])
    assert not share(ga, gb)
    ga.zero_()
    gb.zero_()
    g = tensorgrad.tensor([1., 1.])
    ga, gb, gh = tensorgrad.autograd.grad(h := a + b, [a, b, h], g)
    assert not any(share(one, other) for one, other in [(ga, gb), (ga, gh), (gb, gh), (ga, g), (gh, g)])


def test_grad_gives_away_what_it_owns_and_copies_the_rest():
    """Asked for twice, a gradient comes in two pieces of memory; one that is a saved value, or that a hook has seen, is
    a copy.
    """
    x, y = leaf(tensorgrad, 1., 2.), leaf(tensorgrad, 3., 5.)
    seen = []
    y.register_hook(seen.append)
    first, second, other = tensorgrad.autograd.grad((x * y + x.exp()).sum(), (x, x, y))
    expected = (y + x.exp()).detach()
    for g in (first, second, other):
        g += 100.
    assert first.allclose(expected + 100) and second.allclose(expected + 100)
    assert x.tolist() == [1., 2.] and y.tolist() == [3., 5.] and seen[0].tolist() == [1., 2.]
    (of_sum,) = tensorgrad.autograd.grad((x * y).sum(), x)
    of_sum += 1.
    assert y.tolist() == [3., 5.]


def test_a_gradient_stays_what_it_was_when_a_hook_has_seen_it():
    x, seen = leaf(tensorgrad, 1., 2.), []
    x.register_hook(seen.append)
    (x * x).sum().backward()
    assert not share(seen[0], x.grad)
    (x * x).sum().backward()
    assert seen[0].tolist() == [2., 4.] and x.grad.tolist() == [4., 8.]


def test_a_gradient_does_not_share_memory_with_what_a_function_returned():
    kept = tensorgrad.tensor([10., 20.])

    class Constant(tensorgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return kept
    x = leaf(tensorgrad, 1., 2.)
    Constant.apply(x).sum().backward()
    x.grad.zero_()
    assert kept.tolist() == [10., 20.]


@pytest.fixture
def shallow_stack():
    before, depth = sys.getrecursionlimit(), len(__import__("inspect").stack())
    sys.setrecursionlimit(depth + 100)
    yield
    sys.setrecursionlimit(before)


def test_a_chain_of_200000_steps(shallow_stack, device):
    """Neither backward nor the end of such a chain recurses."""
    steps = 200_000 if device.type == "cpu" else 20_000
    x = y = leaf(tensorgrad, 1., 2.)
    for _ in range(steps // 2):
        y = (y * 1.0) + 0.0
    y.sum().backward()
    assert x.grad.tolist() == [1., 1.]
    del y
    gc.collect()


def test_long_chains_of_other_kinds_end_without_recursion(shallow_stack):
    class Same(tensorgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g
    x = leaf(tensorgrad, 1.)
    for step in (Same.apply, lambda y: y.view(1), lambda y: y.unbind()[0].reshape(1), lambda y: y.detach()):
        y = x
        for _ in range(10_000):
            y = step(y)
        if y.requires_grad:
            x.grad = None
            y.backward()
            assert x.grad.tolist() == [1.]
        del y


def test_a_chain_of_views_and_of_second_derivatives(shallow_stack):
    x = y = leaf(tensorgrad, 1., 2.)
    for _ in range(2_000):
        y = y.view(2).t() * 1.0
    for _ in range(2_000):
        y = y.view(2)
    g, = tensorgrad.autograd.grad((y * y).sum(), x, create_graph=True)
    assert tensorgrad.autograd.grad(g.sum(), x)[0].tolist() == [2., 2.]


def test_threads_have_tapes_of_their_own():
    import threading
    found = {}

    def work(k):
        x = tensorgrad.tensor([float(k)], requires_grad=True)
        for _ in range(50):
            x.grad = None
            (x * x * x).sum().backward()
        found[k] = x.grad.item()
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: 3.0 * k * k for k in range(4)}
