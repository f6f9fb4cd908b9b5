"""Memory: nothing grows, nothing needs the garbage collector, and what is no longer needed goes at once."""
import gc
import os
import tracemalloc
import warnings
import weakref
from itertools import pairwise

import pytest
from support import cpu_only

import tensorgrad as torch
from tensorgrad.core.tape import TensorBase

pytestmark = pytest.mark.usefixtures("device")


def leaf(*shape):
    return torch.ones(*shape).requires_grad_()


@pytest.fixture
def no_collector():
    """Only reference counts free memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# ── training ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def mlp():
    w1, b1, w2 = (torch.randn(*shape).requires_grad_() for shape in [(8, 16), (16,), (16, 1)])
    x, y = torch.randn(32, 8), torch.randn(32, 1)

    def step():
        loss = ((torch.tanh(x @ w1 + b1) @ w2 - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for w in (w1, b1, w2):
                w -= 0.01 * w.grad
                w.grad = None
    return step


def convolution():
    F = torch.nn.functional
    w, v = torch.randn(4, 1, 3, 3).requires_grad_(), torch.randn(2, 16).requires_grad_()
    x, y = torch.randn(2, 1, 6, 6), torch.tensor([0, 1])

    def step():
        h = F.max_pool2d(F.relu(F.conv2d(x, w)), 2)
        F.cross_entropy(F.linear(h.flatten(1), v), y).backward()
        with torch.no_grad():
            for t in (w, v):
                t -= 0.01 * t.grad
                t.grad.zero_()
    return step


def recurrence():
    w, u = torch.randn(4, 4).requires_grad_(), torch.randn(3, 4).requires_grad_()
    x = torch.randn(5, 2, 3)

    def step():
        h = torch.zeros(2, 4)
        for t in range(5):
            h = torch.tanh(x[t] @ u + h @ w)
        h.sum().backward()
        with torch.no_grad():
            for t in (w, u):
                t.sub_(t.grad, alpha=0.01)
                t.grad = None
    return step


def modules():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(3, 4)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return step


@pytest.mark.parametrize("training, steps", [(mlp, 2000), (convolution, 300), (recurrence, 300), (modules, 300)],
                         ids=lambda value: getattr(value, "__name__", None))
def test_training_does_not_grow(training, steps, no_collector):
    step = training()
    tracemalloc.start()
    try:
        for _ in range(20):
            step()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(steps):
            step()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 300_000      # Python itself keeps some thousand freed tuples for reuse while the collector is off


# ── no reference cycles ───────────────────────────────────────────────────────────────────────────────────────────────


class Exponential(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y = x.exp()
        ctx.save_for_backward(x, w, y)
        ctx.note = w
        return y, y * w

    @staticmethod
    def backward(ctx, g, h):
        x, w, y = ctx.saved_tensors
        return g * y, h * y


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        y = x.detach() > 0
        ctx.mark_non_differentiable(y)
        return x.mul_(2), y

    @staticmethod
    def backward(ctx, g, h):
        return g * 2


def forward_only(x):
    return (x * x).exp().log().sum()


def forward_and_backward(x):
    forward_only(x).backward()


def higher_derivatives(x):
    g, = torch.autograd.grad(forward_only(x), x, create_graph=True)
    torch.autograd.grad(g.sum(), x)


def higher_derivatives_left_alone(x):
    torch.autograd.grad(forward_only(x), x, create_graph=True)


def inner_gradients(x):
    h = x * 2
    h.retain_grad()
    torch.autograd.grad((h * h).sum(), [h, x], retain_graph=True)
    (h * h).sum().backward(inputs=[h])


def hooks(x):
    h = x * 2
    h.register_hook(lambda g: g * 2)
    h.grad_fn.register_hook(lambda inputs, outputs: None)
    h.grad_fn.register_prehook(lambda outputs: None)
    handle = x.register_hook(lambda g: None)
    after = x.register_post_accumulate_grad_hook(lambda t: None)
    (h * h).sum().backward()
    handle.remove()
    after.remove()


def functions(x):
    a, b = Exponential.apply(x, x * 2)
    (a * b).sum().backward()


def functions_left_alone(x):
    a, b = Exponential.apply(x, x * 2)
    return a * b


def functions_twice_differentiated(x):
    a, b = Exponential.apply(x, x * 2)
    g, = torch.autograd.grad((a * b).sum(), x, create_graph=True)
    torch.autograd.grad(g.sum(), x)


def functions_that_write(x):
    y, positive = Doubled.apply(x * 1)
    y.sum().backward()
    return Doubled.apply(x * 1)


def writes(x):
    h = x * 2
    h.mul_(3)
    h += x
    h.exp_()
    h.sum().backward()


def writes_through_views(x):
    h = x * 2
    v = h[0]
    v.mul_(3)
    h[1] = v.clone() * 2
    h.t().add_(1)
    h.sum().backward()
    return v * 2


def writes_of_leaves(x):
    with torch.no_grad():
        x.add_(1)
        x[0].mul_(1)
    x.detach().zero_()
    x.data = torch.ones(2, 2)


def several_results(x):
    a, b = (x * 2).unbind()
    values, indices = x.sort()
    (a * b * values).sum().backward()
    return x.chunk(2), x.max(0)


def saved_elsewhere(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        y = (x * x).exp()
    y.sum().backward()


def several_hooked(x):
    w = x.detach().requires_grad_()
    torch.autograd.graph.register_multi_grad_hook([x * 1, w], lambda gradients: None)
    handle = torch.autograd.graph.register_multi_grad_hook([x, w], lambda gradients: None)
    (x * w).sum().backward()
    handle.remove()


def under_anomaly_mode(x):
    with torch.autograd.set_detect_anomaly(True):
        (x * x).exp().sum().backward()


def errors(x):
    y = (x * x).sum()
    y.backward()
    for mistake in (y.backward, lambda: (x * 2).backward(), lambda: x.add_(1), lambda: x + torch.ones(5)):
        with pytest.raises(RuntimeError):
            mistake()


def modes(x):
    with torch.no_grad():
        x * 2
    with torch.inference_mode():
        x * 2
    torch.no_grad()(lambda: x * 2)()


def conversions(x):
    import copy
    import pickle
    copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x)), repr(x), repr(x * 2), x.tolist(), x.detach().cpu().numpy(), x.double().float()  # noqa: E501


PROGRAMS = [forward_only, forward_and_backward, higher_derivatives, higher_derivatives_left_alone, inner_gradients,
            hooks, functions, functions_left_alone, functions_twice_differentiated, functions_that_write, writes,
            writes_through_views, writes_of_leaves, several_results, saved_elsewhere, several_hooked,
            under_anomaly_mode, errors, modes,
            conversions]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_no_reference_cycle_is_left(program):
    program(leaf(2, 2))           # fills caches, which may refer to each other
    gc.collect()
    gc.disable()
    try:
        program(leaf(2, 2))
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_backward_with_create_graph_leaves_a_cycle_only_as_long_as_the_gradient_stays(no_collector):
    x = leaf(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x ** 3).sum().backward(create_graph=True)
    x.grad = None
    seen = weakref.ref(x)
    del x
    assert seen() is None


def test_a_graph_goes_with_the_last_reference_to_its_result(no_collector):
    x = leaf(2)
    h = x * x
    node, memory = weakref.ref(h.grad_fn), weakref.ref(h)
    y = h.exp()
    del h
    assert node() is not None
    del y
    assert node() is None and memory() is None


def test_a_leaf_goes_though_its_graph_stays(no_collector):
    x, w = leaf(2), leaf(2)
    y = x + w
    seen = weakref.ref(x)
    del x
    assert seen() is None
    y.sum().backward()
    assert w.grad.tolist() == [1., 1.]


# ── what is no longer needed ──────────────────────────────────────────────────────────────────────────────────────────


@cpu_only
def test_saved_values_go_as_backward_comes_by(no_collector):
    weights, saved, alive = [leaf(100) for _ in range(6)], [], []
    for w in weights:
        w.register_post_accumulate_grad_hook(lambda w: alive.append(sum(array() is not None for array in saved)))
    h = torch.ones(100)
    for w in weights:
        h = h * w
        saved.append(weakref.ref(h.array))
    loss = h.sum()
    del h
    loss.backward()
    assert alive == [4, 3, 2, 1, 0, 0], "a value saved for a step outlived it"


@cpu_only
def test_gradients_of_inner_steps_go_as_backward_comes_by(no_collector):
    x, seen, alive = leaf(100), [], []
    h = x
    for _ in range(6):
        h = h * 2.0
        h.register_hook(lambda g: (alive.append(sum(array() is not None for array in seen)),
                                   seen.append(weakref.ref(g.array)), None)[2])
    h.sum().backward()
    assert max(alive) <= 1
    assert sum(array() is not None for array in seen) == 0


@cpu_only
def test_nothing_is_saved_without_need(no_collector):
    x, w = leaf(100), torch.ones(100)
    h = x * 1
    saved = weakref.ref(h.array)
    y = h * w                  # the gradient of h needs w only
    del h
    assert saved() is None
    h = x * 1
    saved = weakref.ref(h.array)
    z = h + w
    v = h.reshape(10, 10).sum(0)
    del h
    assert saved() is None, "a shape is all that these gradients need"
    (y.sum() + z.sum() + v.sum()).backward()


@cpu_only
def test_nothing_is_saved_without_tape(no_collector):
    x = leaf(100)
    with torch.no_grad():
        h = x * x
        saved = weakref.ref(h.array)
        y = h.exp()
        del h
    assert saved() is None and y.grad_fn is None


def test_a_gradient_with_a_graph_of_its_own_can_be_dropped(no_collector):
    x = leaf(3)
    g, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
    node = weakref.ref(g.grad_fn)
    del g
    assert node() is None


# ── how much the tape keeps ───────────────────────────────────────────────────────────────────────────────────────────


def arrays_in(saved):
    """The arrays among what a step saved."""
    if isinstance(saved, (tuple, list)):
        for part in saved:
            yield from arrays_in(part)
    elif isinstance(saved, TensorBase):
        yield saved.array
    elif hasattr(saved, "nbytes"):
        yield saved


def blocks(arrays):
    """Return {address: size} of the blocks of memory of arrays; numbers do not count."""
    found = {}
    for array in arrays:
        while getattr(array.base, "nbytes", None) is not None:
            array = array.base
        if array.ndim:
            found[id(array)] = array.nbytes
    return found


def kept(result, *others):
    """The bytes that the tape behind a result keeps, less those of other tensors: each block of memory counts once."""
    seen, todo, saved = set(), [result.grad_fn], []
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += node.edges
            saved += arrays_in((getattr(node, "saved", ()), getattr(node, "residual", None)))
    own = blocks(t.array for t in others)
    return sum(size for block, size in blocks(saved).items() if block not in own)


def in_place(x):
    return (x * 2).relu_()                       # the result, which the caller holds as well


def pooled(x):
    # what is pooled, without its border; compiled: a byte for each result
    return torch.nn.functional.max_pool2d(x * 2, 3, 2, 1)


def normalized(x):
    # what is normalized, its mean and deviation
    return torch.nn.functional.batch_norm(x * 2, None, None, training=True)


def attention(x):
    q, k, v = (x * 2).reshape(2, 64, 3, 4, 16).permute(2, 0, 3, 1, 4)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 64, 64)


def loss(x):
    return torch.nn.functional.cross_entropy(x.reshape(128, 192), torch.arange(128))


SMALL = 2 * 64 * 192 * 4             # the bytes of what these functions are given
COMPILED = torch.backends.compiled.is_enabled()
special_kernels = pytest.mark.skipif(os.environ.get("TENSORGRAD_KERNELS") == "reference",
                                     reason="the formulas keep more")


def kept_by_loss(classes):
    """Numbers for each row: the scores' largest, the logarithm of their sum, the weight; NumPy's kernel has a copy of
    them as logarithms, and two numbers.
    """
    return 3 if COMPILED else classes + 2


@cpu_only
@special_kernels
@pytest.mark.parametrize("function, expected",
                         [(in_place, SMALL), (pooled, SMALL + COMPILED * SMALL // 16), (normalized, SMALL + 2 * 64 * 4),
                          (attention, SMALL + SMALL // 3 + 2 * 4 * 64 * 4 * 2),
                          (loss, 128 * (4 * kept_by_loss(192) + 8))],
                         ids=lambda value: getattr(value, "__name__", None))
def test_what_a_step_keeps(function, expected):
    x = torch.randn(2, 64, 12, 16) if function in (in_place, pooled, normalized) else torch.randn(2, 64, 192)
    assert kept(function(x.requires_grad_()), x) == expected


class Residuals(torch.nn.Module):
    """x + f(x), or f(x) alone where the sizes differ."""

    def __init__(self, *layers, apart=False):
        super().__init__()
        self.layers, self.apart = torch.nn.Sequential(*layers), apart

    def forward(self, x):
        return self.layers(x) if self.apart else x + self.layers(x)


def convolutions():
    nn = torch.nn

    def block(a, b):
        return [Residuals(nn.Conv2d(a, b, 3, 1 if a == b else 2, 1, bias=False), nn.BatchNorm2d(b),
                          nn.ReLU(inplace=True), nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b), apart=a != b),
                nn.ReLU(inplace=True)]
    widths = (8, 8, 16, 32)
    model = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                          nn.MaxPool2d(3, 2, 1),
                          *(layer for a, b in pairwise(widths) for layer in block(a, b)), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(32, 10))
    # convolved, and made positive: what PyTorch keeps, less indices
    first = 2 * 4 * 8 * 32 * 32 * 4
    blocks = sum(4 * 4 * c * n * n * 4 for c, n in ((8, 16), (16, 8), (32, 4)))
    pooled = 4 * 8 * 16 * 16 * (4 + COMPILED)
    # statistics, the last features, and the loss's
    numbers = 2 * 4 * (8 + 2 * (8 + 16 + 32)) + 4 * 32 * 4 + 4 * 4 * (10 + kept_by_loss(10))
    return model, torch.randn(4, 3, 64, 64), torch.arange(4), first + blocks + pooled + numbers


class Heads(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, 4, c // 4).permute(2, 0, 3, 1, 4)
        return self.out(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, c))  # noqa: E501


def words():
    nn, c, n = torch.nn, 32, 4 * 48
    layer = [Residuals(nn.LayerNorm(c), Heads(c)),
             Residuals(nn.LayerNorm(c), nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c))]
    model = nn.Sequential(nn.Embedding(10, c), *layer, nn.LayerNorm(c), nn.Linear(c, 10), nn.Flatten(0, 1))
    # around each norm; queries, keys and values; attention; around gelu
    features = 3 * 2 * n * c + 3 * n * c + n * c + 2 * 4 * n * c
    rows = 3 * 2 * n + 2 * 4 * n                                          # statistics of the norms, sums of each head
    return (model, torch.randint(10, (4, 48)), torch.randint(10, (n,)),
            4 * (features + rows) + 4 * n * (10 + kept_by_loss(10)))


@cpu_only
@special_kernels
@pytest.mark.parametrize("net", [convolutions, words])
def test_what_a_net_keeps(net):
    model, x, y, expected = net()
    result = torch.nn.functional.cross_entropy(model(x), y)
    assert kept(result, x, y, *model.parameters(), *model.buffers()) == expected
    result.backward()
    assert kept(result) == 0


@cpu_only
@pytest.mark.parametrize("rule", [torch.optim.SGD, torch.optim.Adam])
def test_a_step_of_an_optimizer_takes_little_memory(rule):
    w = torch.nn.Parameter(torch.randn(1 << 20))
    optimizer = rule([w], 0.1, **({"momentum": 0.9} if rule is torch.optim.SGD else {}))
    w.grad = torch.randn(1 << 20)
    optimizer.step()
    tracemalloc.start()
    try:
        optimizer.step()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (1 if rule is torch.optim.SGD else 9) << 20


@cpu_only
def test_a_large_write_in_place_goes_piece_by_piece():
    n = 150_001
    x, a, b = torch.randn(3, n)
    before, seen = x.clone(), x[5:]
    for name, arguments, options in [("add_", (a,), {"alpha": 0.5}), ("mul_", (x,), {}),
                                     ("addcmul_", (a, b), {"value": -2}), ("sub_", (1.5,), {}),
                                     ("lerp_", (b, 0.25), {}), ("div_", (a,), {"rounding_mode": "floor"}),
                                     ("addcdiv_", (x, b), {}), ("mul_", (b[:1],), {})]:
        version, expected = x._version, getattr(torch, name[:-1])(before, *[before if t is x else t for t in arguments],
                                                                  **options)
        assert getattr(x, name)(*arguments, **options) is x and x._version == version + 1
        assert torch.equal(x, expected)
        before = x.clone()
    assert torch.equal(seen, x[5:])
    whole = torch.arange(n)
    with pytest.raises(RuntimeError, match="can't be cast"):
        whole.div_(2)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.zeros(1).expand(n).add_(1)
    assert torch.equal(whole, torch.arange(n))
    kept_by = a.clone().requires_grad_()
    y = kept_by * x
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
