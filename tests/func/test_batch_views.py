"""vmap over tensors with a history: writes in place, and results that share an argument's memory."""
import pytest

import tensorgrad as tg
from tensorgrad.func import grad, vmap

G = tg.tensor([[1., -2.], [3., 5.], [7., 4.]])


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def written(f, in_dims=0, out_dims=0):
    """Return (the argument's history has the write, gradients of the argument and of the result)."""
    x = tg.arange(6.).reshape(3, 2).requires_grad_()
    y = x * 1
    result = vmap(f, in_dims, out_dims)(y)
    through_argument, = tg.autograd.grad((y * G).sum(), x, retain_graph=True)
    through_result, = tg.autograd.grad((result * (G if result.shape == G.shape else 1)).sum(), x)
    return through_argument, through_result


def test_writes_reach_the_argument():
    argument, result = written(lambda row: row.mul_(2))
    assert argument.tolist() == (2 * G).tolist() == result.tolist()
    argument, result = written(lambda column: column[1:].mul_(3), in_dims=1, out_dims=1)
    factors = tg.tensor([[1.], [3.], [3.]])
    assert argument.tolist() == (factors * G).tolist() and result.tolist() == [[0, 0], [3, 3], [3, 3]]
    argument, _ = written(vmap(lambda each: each.mul_(4)))
    assert argument.tolist() == (4 * G).tolist()


def test_writes_to_views_from_outside():
    x = tg.arange(6.).reshape(3, 2).requires_grad_()
    y = x * 1
    view = vmap(lambda row: row.unsqueeze(0))(y)
    assert view._base is y
    y.mul_(3)
    assert view.tolist() == (x * 3).unsqueeze(1).tolist()
    assert tg.autograd.grad((view.squeeze(1) * G).sum(), x)[0].tolist() == (3 * G).tolist()
    y = x * 1
    vmap(lambda row: row[:1])(y).mul_(tg.tensor([[2.], [3.], [4.]]))
    assert tg.autograd.grad((y * G).sum(), x)[0].tolist() == [[2, -2], [9, 5], [28, 4]]


def test_identity():
    x = tg.ones(3, 2)
    assert vmap(lambda row: row)(x) is x and vmap(lambda row: row.add_(1))(x) is x and x.sum() == 12
    assert vmap(lambda row: row, out_dims=1)(x)._base is x and vmap(lambda row: row * 1)(x)._base is None
    assert vmap(lambda row: row.detach())(x) is not x


def test_leaves_refuse():
    leaf = tg.ones(3, 2, requires_grad=True)
    for write, kind in ((lambda row: row.mul_(2), "a leaf"), (lambda row: row[:1].mul_(2), "a view of a leaf")):
        with pytest.raises(RuntimeError, match=f"^{kind} Variable that requires grad is being used in an in-place"):
            vmap(write)(leaf)
    assert leaf.tolist() == tg.ones(3, 2).tolist()

    def function(x):
        y = x * 1
        vmap(lambda each: each.mul_(2))(y)
        return (y ** 2).sum()
    assert grad(function)(tg.tensor([1., 2.])).tolist() == [8, 16]
    assert tg.func.hessian(function)(tg.tensor([1., 2.])).tolist() == [[8, 0], [0, 8]]


def test_random_numbers_in_place(torch):
    """The order of elements in memory, with the batch axis, decides which number an element gets."""
    def run(package, f, **options):
        package.manual_seed(5)
        x = package.zeros(2, 3, 4)
        f = f(package)
        return package.vmap(f, in_dims=2, **options)(x).tolist()
    for f in (lambda p: lambda t: t.normal_(), lambda p: lambda t: t.bernoulli_(p.full((2, 3), .5)),
              lambda p: lambda t: t.random_(1, 9)):
        for randomness in ("different", "same"):
            ours, theirs = run(tg, f, randomness=randomness), run(torch, f, randomness=randomness)
            assert tg.allclose(tg.tensor(ours), tg.tensor(theirs), atol=1e-6)
    tg.manual_seed(0), torch.manual_seed(0)
    p = [[.1, .9], [.8, .2], [.5, .4]]
    assert (tg.zeros(2, 3).t().bernoulli_(tg.tensor(p)).tolist()
            == torch.zeros(2, 3).t().bernoulli_(torch.tensor(p)).tolist())


def test_parts_of_complex_numbers():
    """The results are views of the argument of vmap; `new_empty_strided` has memory for each example."""
    z, pairs = tg.tensor([[1 + 2j, 3 - 1j], [0 + 1j, 2 + 0j]]), tg.ones(2, 3, 2)
    for part, x in ((tg.real, z), (tg.imag, z), (tg.view_as_real, z), (tg.view_as_complex, pairs)):
        assert vmap(part)(x)._base is x
    vmap(tg.imag)(z).mul_(2)
    assert z.tolist() == [[1 + 4j, 3 - 2j], [2j, 2 + 0j]]
    assert vmap(lambda x: x.new_empty_strided((2,), (1,)).copy_(x))(tg.ones(3, 2)).tolist() == [[1., 1.]] * 3


class Same(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


ERRORS = [
    (lambda: vmap(lambda x: x.data)(G), "accessing `data` under vmap transform is not allowed"),
    (lambda: vmap(lambda x: x.is_contiguous(memory_format=tg.channels_last))(G), "NYI: querying is_contiguous inside"),
    (lambda: vmap(tg.equal)(G, G), "Batching rule not implemented for aten::equal"),
    (lambda: vmap(tg.where)(G), "Attempted to vmap over aten::where"),
    (lambda: vmap(lambda x: x.clone(memory_format=tg.channels_last))(G), r"NYI: Tensor.clone\(memory_format\) inside"),
    (lambda: grad(lambda x: Same.apply(x))(tg.tensor(1.)), "In order to use an autograd.Function with functorch"),
    (lambda: tg.func.jvp(Same.apply, (G,), (G,)), "In order to use an autograd.Function with functorch"),
]


@pytest.mark.parametrize(("call", "text"), ERRORS)
def test_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()
