"""vmap: every op on batches against a loop over the examples, and programs beside PyTorch."""
import numpy as np
import pytest
from samples import SAMPLES
from sampling import Values
from support import DEVICE, Programs, cpu_only

import tensorgrad
from tensorgrad.core.dispatch import apply
from tensorgrad.func import grad, jacrev, vjp, vmap
from tensorgrad.interpret._batched_ops import FAMILIES
from tensorgrad.ops.base import OPS, input_name

BATCH = 3
CASES = [pytest.param(OPS[name], sample, id=f"{name}{sample}") for name, rows in SAMPLES.items() for sample in rows
         if "batch" not in sample.skipped]
DYNAMIC = {"distinct", "distinct_slices", "bincount"}       # the shapes of their results depend on values
program = Programs()


def tensor(array):
    return tensorgrad.tensor(array, device=DEVICE)


def run(op, sample, inputs):
    """The results, as a tuple."""
    inputs = sample.prepared(inputs)
    results = apply(op, inputs, **sample.params) if op.sequence else apply(op, *inputs, **sample.params)
    return tuple(results) if op.several else (results,)


def draw(sample, seed):
    rng = np.random.default_rng(seed)
    return [each.draw(rng, np.dtype("float64")) if isinstance(each, Values) else each for each in sample.inputs]


def patterns(places):
    """Which inputs are batched: all of them; all but the first; the first alone."""
    return [places, places[1:], places[:1]] if len(places) > 1 else [places]


def batches(sample, chosen):
    """The inputs, those that are chosen as batches along the first axis or the last, and the axis of each."""
    draws = [draw(sample, 11 + k) for k in range(BATCH)]
    inputs, axes = [], []
    for i, value in enumerate(draws[0]):
        axis = None if i not in chosen else -1 if i % 2 else 0
        stacked = value if axis is None else np.stack([d[i] for d in draws], axis)
        inputs.append(tensor(stacked) if isinstance(stacked, np.ndarray) else stacked)
        axes.append(axis)
    return inputs, tuple(axes)


def examples(inputs, axes):
    return [[x if axis is None else x.select(axis, k) for x, axis in zip(inputs, axes)] for k in range(BATCH)]


def agree(found, expected, exact=False):
    for one, *others in zip(found, *expected, strict=True):
        other = tensorgrad.stack(others)
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=0 if exact else 1e-8,
                                   atol=0 if exact else 1e-10)


def pulled(op, sample, inputs, places):
    """The gradients of floating point results with respect to the inputs at some places, for gradients that are no two
    alike.
    """
    def of_these(*values):
        given = list(inputs)
        for i, value in zip(places, values):
            given[i] = value
        return tuple(out for out in run(op, sample, given) if out.is_floating_point())
    outs, pull = vjp(of_these, *[inputs[i] for i in places])
    return pull(tuple(tensor(np.cos(1.7 * np.arange(out.numel()) + i).reshape(tuple(out.shape)))
                      for i, out in enumerate(outs)))


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_every_op_does_to_a_batch_what_it_does_to_each_example(op, sample):
    values = [i for i, each in enumerate(sample.inputs) if isinstance(each, Values)]
    masks = any(sample.inputs[i].kind == "b" for i in values) and op.opname in ("index", "index_put")
    if not values or op.opname in DYNAMIC or masks and op.opname == "index":
        pytest.skip("no inputs that are drawn, or results of unequal shapes")
    learnt = [i for i in values if sample.inputs[i].kind == "f" and sample.inputs[i].learnt
              and (op.composite
                   or hasattr(op, f"grad_{input_name(op, i)}"))] if "gradient" not in sample.skipped else []
    for chosen in patterns(values):
        inputs, axes = batches(sample, chosen)
        found = vmap(lambda *args: run(op, sample, args), in_dims=axes)(*inputs)
        expected = [run(op, sample, args) for args in examples(inputs, axes)]
        agree(found, expected)
        if learnt and any(out.is_floating_point() for out in found) and not masks:
            agree(vmap(lambda *args: pulled(op, sample, args, learnt), in_dims=axes)(*inputs),
                  [pulled(op, sample, args, learnt) for args in examples(inputs, axes)])


@pytest.mark.parametrize("function", [
    lambda x, y: x * y - x.sum(), lambda x, y: (x[:, None] * y).cumsum(0).amax(1), lambda x, y: x.outer(y) @ x,
    lambda x, y: x[y.argsort()],
    lambda x, y: tensorgrad.stack([x, y, x]).softmax(0),
    lambda x, y: x.index_put((tensorgrad.tensor([1], device=DEVICE),), y[:1]),
    lambda x, y: grad(lambda z: (z.sin() * y).sum())(x), lambda x, y: jacrev(lambda z: z.exp() * y.sum())(x)])
def test_batches_in_batches(function):
    a, b = (tensor(np.random.default_rng(s).normal(size=(n, 4))) for s, n in ((0, 2), (1, 3)))
    expected = tensorgrad.stack([tensorgrad.stack([function(x, y) for y in b]) for x in a])
    for found in (vmap(vmap(function, (None, 0)), (0, None))(a, b),
                  vmap(vmap(function, (0, None)), (None, 0), out_dims=1)(a, b)):
        np.testing.assert_allclose(found.numpy(force=True), expected.numpy(force=True), rtol=1e-12, atol=1e-14)


def test_records_name_families_or_have_rules_of_their_own():
    assert all(callable(op.batch) or op.batch in FAMILIES for op in OPS.values())


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("function", [
    lambda x, v, i, accumulate: x.clone().index_put_((i,), v, accumulate=accumulate),                       # rows
    lambda x, v, i, accumulate: x.clone().index_put_((i, i), v[:, 0], accumulate=accumulate),               # elements
    # counted from the end
    lambda x, v, i, accumulate: tensorgrad.zeros_like(x).index_put_((i - 4,), v, accumulate=accumulate),
    lambda x, v, i, accumulate: grad(lambda x: (x[:, i] * v.T).sum())(x)])
def test_writes_at_index_arrays_that_differ(function, accumulate):
    rng = np.random.default_rng(2)
    x, v = tensor(rng.normal(size=(3, 4, 4))), tensor(rng.normal(size=(3, 2, 4)))
    i = tensor(np.array([[1, 1], [0, 3], [2, 1]]) if accumulate else np.array([[1, 2], [0, 3], [2, 1]]))
    found = vmap(lambda *args: function(*args, accumulate))(x, v, i)
    expected = tensorgrad.stack([function(*args, accumulate) for args in zip(x, v, i)])
    np.testing.assert_allclose(found.numpy(force=True), expected.numpy(force=True), rtol=1e-12, atol=1e-14)


def test_an_empty_batch():
    nothing = tensor(np.zeros((0, 4, 4)))
    assert vmap(lambda x: (x @ x).sum(0))(nothing).shape == (0, 4)
    assert vmap(tensorgrad.linalg.inv)(nothing).shape == (0, 4, 4)


def test_what_all_examples_share_is_not_repeated():
    weight, seen = tensor(np.ones((500, 500))), []

    def look(x):
        out = tensorgrad.func.grad(lambda w: (w @ x).sum())(weight)
        seen.append(weight + 0)
        return out.sum()
    vmap(look)(tensor(np.ones((4, 500))))
    assert type(seen[0]._storage) is type(weight._storage)


@cpu_only
def test_memory_is_shared_where_it_can_be():
    x = tensorgrad.zeros(3, 4)
    out = vmap(lambda row: row[1:])(x)
    x[0, 1] = 5.0
    assert out[0, 0] == 5.0
    y = tensorgrad.ones(3, requires_grad=True).exp()
    z = vmap(lambda v: v.exp())(y)
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_kernels_that_come_later_serve_batches():
    from tensorgrad.core.dispatch import OpDispatch
    x = tensor(np.ones((2, 3)))
    before = vmap(tensorgrad.exp)(x)
    with OpDispatch.override("exp", type(x._storage), lambda values: values * 0):
        assert vmap(tensorgrad.exp)(x).sum() == 0
    assert (vmap(tensorgrad.exp)(x) == before).all()


# ── beside PyTorch ────────────────────────────────────────────────────────────────────────────────────────────────────


def table(torch, *shape):
    n = int(np.prod(shape))
    return (torch.arange(n).float() * 0.37 % 1.9 - 0.8).reshape(*shape)


@program
def axes_of_arguments_and_results(torch):
    x, y, f = table(torch, 4, 3), table(torch, 3, 4), torch.vmap
    pair = {"a": x, "b": [y, (x,)]}
    return (f(lambda a, b: a + b, in_dims=(0, 1))(x, y), f(lambda a, b: a @ b, in_dims=(0, None))(x, y),
            f(torch.sin, 1, 1)(x), f(torch.sin, -1, -1)(x),
            f(lambda a: (a, a.sum()), out_dims=(1, 0))(x), f(lambda a: torch.ones(2))(x),
            f(lambda a: [a.sum(), {"k": a}], out_dims=0)(x),
            f(lambda d: d["a"] * d["b"][0] + d["b"][1][0],
              in_dims=({"a": 0, "b": [1, (None,)]},))(pair | {"b": [y, (x[0],)]}),
            f(lambda a, *, scale: a * scale)(x, scale=torch.tensor(2.)),
            f(lambda a: a.reshape(-1, 1).expand(-1, 2), chunk_size=3)(x),
            f(lambda a, n: a * n, in_dims=(0, None))(x, 3), f(lambda a: (a, 7), out_dims=(0, None))(x))


@program
def writes_in_place(torch):
    def f(x, i):
        y = x * 1
        y[0] = 5.0
        y[1:] += x[:-1]
        y[i] = x[i] * 2
        z = y.view(-1)[::2]
        z.add_(1)
        y[torch.tensor([0, 2])] = x[:2]
        return y, z
    x = table(torch, 5, 4).requires_grad_()
    y, z = torch.vmap(f)(x, torch.arange(5) % 4)
    (y.sin().sum() + (z * z).sum()).backward()
    return y, z, x.grad


@program
def memory_that_is_made_inside(torch):
    x, f = table(torch, 4, 3), torch.vmap
    return (f(lambda v: torch.zeros_like(v).add_(v))(x), f(lambda v: v.new_ones(3).mul_(v))(x),
            f(lambda v: torch.full_like(v, 2).copy_(v))(x),
            f(lambda v: v.new_empty(2, 3).fill_(1).view(-1).add_(v.repeat(2)))(x),
            f(lambda v: v.clone().view(3, 1))(x[0].expand(4, 3)),
            f(torch.func.grad(lambda v: torch.zeros_like(v).add_(v * v).sum()))(x))


@program
def writes_reach_the_argument(torch):
    x = table(torch, 3, 2)
    out = torch.vmap(lambda v: v.mul_(2))(x)
    return x, out


@program
def what_is_captured_gets_a_gradient(torch):
    x, w, b = table(torch, 5, 3), table(torch, 3, 2).requires_grad_(), table(torch, 2).requires_grad_()
    torch.vmap(lambda v: torch.tanh(v @ w + b) * w.sum())(x).cos().sum().backward()
    return w.grad, b.grad


@program
def indices_and_masks(torch):
    x, i, m = table(torch, 4, 5), torch.tensor([[0, 2], [1, 1], [3, 0], [3, 2]]), table(torch, 4, 5) > 0
    f = torch.vmap
    return (f(lambda v, j: v[j])(x, i), f(lambda v, j: v[j[0]])(x, i), f(torch.gather, (0, None, 0))(x, 0, i),
            f(lambda v, j: v.index_select(0, j))(x, i),
            f(lambda j: x[j, 1:3])(i), f(lambda j: x[:, j])(i), f(lambda j: x[j, :, None])(i),
            f(lambda v, k: v.masked_fill(k, 7.))(x, m),
            f(lambda v, j: v.scatter(0, j, 1.))(x, i), f(lambda v, j: torch.zeros(5).scatter_add(0, j, v[:2]))(x, i),
            f(lambda v, k: torch.where(k, v, -v))(x, m), f(lambda j: torch.nn.functional.one_hot(j, 5))(i),
            f(lambda v, j: torch.nn.functional.embedding(j, v.reshape(5, 1)))(x, i), f(lambda k: k.any(), 1)(m))


@program
def sorted_and_searched(torch):
    x, f = table(torch, 3, 6), torch.vmap
    return (f(lambda v: v.sort(descending=True))(x), f(lambda v: v.topk(2).values)(x), f(lambda v: v.median())(x),
            f(lambda v: v.argmax())(x),
            f(lambda v: v.max(0).values)(x), f(lambda v: v.cummax(0).values)(x),
            f(lambda v: torch.searchsorted(v.sort()[0], v[:2].clone()))(x),
            f(lambda v: v.kthvalue(2).values)(x), f(lambda v: v.mode().values)(x),
            f(lambda v: v.argmin(keepdim=True))(x))


@program
def matrices(torch):
    a = table(torch, 3, 4, 4) + 3 * torch.eye(4)
    x, f, lin = table(torch, 3, 4), torch.vmap, torch.linalg
    return (f(lin.inv)(a), f(lin.solve)(a, x), f(lambda m: lin.solve(m, x[0]))(a), f(torch.det)(a),
            f(lin.cholesky)(a @ a.mT), f(lambda m: m.mv(x[0]))(a),
            f(lambda v: a[0] @ v)(x), f(lambda v: v @ a)(x), f(torch.trace)(a), f(torch.outer)(x, x),
            f(lambda m: lin.norm(m))(a), f(lin.matrix_exp)(a * .1),
            f(lambda m, v: torch.einsum("ij,j,k->ik", m, v, v))(a, x), f(lambda m: torch.block_diag(m, m[:1]))(a),
            f(lambda m: m.tril().diagonal())(a))


@program
def layers_of_networks(torch):
    f, F = torch.vmap, torch.nn.functional
    images, kernels = table(torch, 2, 3, 2, 5, 5), table(torch, 2, 4, 2, 3, 3)
    text = table(torch, 2, 5, 4)
    return (f(lambda x: F.conv2d(x, kernels[0], stride=2, padding=1))(images),
            f(lambda w: F.conv2d(images[0], w, padding=1))(kernels),
            f(lambda x, w: F.conv2d(x, w, torch.ones(4)))(images, kernels),
            f(lambda x, w: F.conv_transpose2d(x, w.transpose(0, 1)))(images, kernels),
            f(lambda x: F.max_pool2d(x, 2))(images), f(lambda x: F.avg_pool2d(x, 2, 1))(images),
            f(lambda x: F.interpolate(x, scale_factor=2))(images),
            f(lambda x, g: F.layer_norm(x, (4,), g))(text, text[:, 0]), f(lambda x: F.group_norm(x, 2))(images),
            f(lambda x: F.pad(x, (1, 2)))(text),
            f(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True))(text),
            f(lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1, 1, 2])))(text),
            f(lambda x: F.mse_loss(x, x.cos()))(text), f(lambda x: F.batch_norm(x, None, None, training=True))(text),
            f(F.gelu)(text))


@program
def shapes_and_types(torch):
    seen = []

    def f(x, y):
        seen.append((tuple(x.shape), x.ndim, x.numel(), x.stride(), x.is_contiguous(), str(x.dtype), x.size(-1), len(x),
                     x.dim(), x.is_leaf))
        return (x.mT.reshape(2, 6), x.unflatten(1, (2, 2)), x.double() + y, x.long() + y,
                torch.result_type(x, y) == torch.float32, x.new_zeros(2) + y.sum(),
                torch.zeros_like(x), x.as_strided((2, 2), (1, 2), 1), x.unfold(1, 2, 1),
                torch.cat([x, x.new_ones(1, 4)]), x.to(torch.complex64) * 1j)
    outs = torch.vmap(f, out_dims=(0, 0, 0, 0, None, 0, 0, 0, 0, 0, 0))(table(torch, 2, 3, 4), torch.arange(2))
    return outs, seen


@program
def printed(torch):
    shown = []
    torch.vmap(lambda x: shown.append(repr(x)) or x)(table(torch, 2, 3))
    return shown


@program
def numbers_that_are_drawn(torch):
    x, out = torch.rand(4, 3), []
    for mode in ("different", "same"):
        for draw in (lambda v: torch.randn(2), lambda v: torch.rand(3) + v, lambda v: torch.randint(0, 9, (2,)),
                     lambda v: torch.rand_like(v),
                     lambda v: torch.nn.functional.dropout(v), lambda v: torch.randperm(5),
                     lambda v: torch.normal(0., 1., (2,)),
                     lambda v, mode=mode: torch.vmap(lambda u: u + torch.randn(2), randomness=mode)(torch.ones(3, 1)),
                     lambda v: v.clone().uniform_(), lambda v: torch.bernoulli(torch.ones(20) * .5)):
            torch.manual_seed(7)
            out.append(torch.vmap(draw, randomness=mode)(x))
    torch.manual_seed(1)
    return (out, torch.vmap(lambda v: torch.bernoulli(v), randomness="different")(x),
            torch.vmap(lambda v: torch.multinomial(v, 2), randomness="different")(x))


REFUSED = """
    f(torch.sin)()  f(torch.sin, 2)(x)  f(torch.sin)(3.)  f(torch.add)(x, x.T)  f(torch.sin, None)(x)  f(torch.sin, [0])(x)  f(torch.sin, (0, 0))(x)
    f(torch.sin, (0.5,))(x)  f(torch.sin, out_dims=3)(x)  f(torch.sin, out_dims=(0, 0))(x)  f(torch.sin, out_dims=.5)(x)  f(torch.sin, out_dims=None)(x)
    f(lambda v: 3)(x)  f(torch.sin, chunk_size=0)(x)  f(torch.sin, randomness='no')(x)  f(lambda v: torch.rand(2))(x)  f(torch.nn.Dropout())(x)
    f(torch.bernoulli, randomness='same')(x.abs().clamp(max=1))  f(lambda v: torch.zeros(2).uniform_(), randomness='different')(x)
    f(lambda v: v[0].item())(x)  f(lambda v: float(v[0]))(x)  f(lambda v: v.numpy())(x)  f(lambda v: v.tolist())(x)  f(lambda v: v.data_ptr())(x)
    f(lambda v: v if v.sum() > 0 else -v)(x)  f(lambda v: v[v > 0])(x)  f(torch.nonzero)(x)  f(torch.unique)(x)
    f(lambda v: torch.masked_select(v, v > 0))(x)  f(torch.nn.functional.one_hot)(x.long())  f(lambda v: torch.zeros(2).mul_(v))(x)
    f(lambda v: torch.zeros(2).copy_(v))(x)  f(lambda v: torch.zeros(2).index_put_((torch.tensor([0]),), v[:1]))(x)
    f(torch.nn.BatchNorm1d(2))(x.expand(3, 3, 2))  f(lambda v: torch.sin(v, out=torch.zeros(2)))(x)
    f(lambda v: v[torch.tensor([5])])(x)  f(lambda v: v.sum(1))(x)
"""  # noqa: E501


def refusal(text):
    """A program that must raise PyTorch's error."""
    def refused(torch):
        return eval(text, {"torch": torch, "f": torch.vmap, "x": table(torch, 3, 2)})
    refused.__name__ = text
    return program(refused)


for _text in REFUSED.split("  "):
    if _text.strip():
        refusal(_text.strip())
test_programs = cpu_only(program.test(rtol=2e-5, atol=1e-5))
