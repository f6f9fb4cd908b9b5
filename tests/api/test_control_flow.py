"""Control flow as functions: conditions, loops, maps and scans, with gradients."""
import pytest
from side_by_side import attempt, same

import tensorgrad as tg
from tensorgrad._higher_order_ops import associative_scan, scan, while_loop
from tensorgrad._higher_order_ops import map as map_


def test_cond():
    def program(torch):
        x, t = torch.tensor([1., 2.], requires_grad=True), torch.tensor
        out = torch.cond(x.sum() > 2, lambda a: a * a, lambda a: -a, (x,))
        out.backward(t([3., 5.]))
        return [out, x.grad, torch.cond(False, lambda a: a + 1, lambda a: a - 1, (x,)),
                torch.cond(1, lambda: 2, lambda: 3),
                attempt(lambda: torch.cond(t([True, False]), lambda a: a, lambda a: a, (x,)))]
    same(program)


def test_while_loop():
    i, x = while_loop(lambda i, x: x.sum() < 100, lambda i, x: (i + 1, x * 2), (tg.tensor(0), tg.tensor([1., 3.])))
    assert i.item() == 5 and x.tolist() == [32., 96.]
    assert while_loop(lambda a: a < 3, lambda a: a + 1, [tg.tensor(0)])[0].item() == 3
    with pytest.raises(RuntimeError, match="Expect cond_fn and body_fn to be callable"):
        while_loop(3, lambda a: a, (x,))
    with pytest.raises(RuntimeError, match="Expect carried_inputs to be a tuple"):
        while_loop(lambda a: False, lambda a: a, x)


def test_map():
    rows = tg.arange(6.).view(3, 2).requires_grad_()
    out = map_(lambda row, c: {"sum": row.sum() * c, "twice": row * 2}, rows, 3.)
    assert out["sum"].tolist() == [3., 15., 27.] and tg.equal(out["twice"], rows * 2)
    (out["sum"] * tg.tensor([1., 2., 4.])).sum().backward()
    assert rows.grad.tolist() == [[3., 3.], [6., 6.], [12., 12.]]
    for xs, text in ((3, "only consist of tensors. Got xs .3."), ((rows, rows[1:]), "must be consistent. Got shapes"),
                     (tg.ones(0, 2), "cannot be 0")):
        with pytest.raises(RuntimeError, match=text):
            map_(lambda *x: x, xs)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse):
    x = tg.tensor([[1., 4.], [2., 5.], [3., 6.]], requires_grad=True)
    carry, ys = scan(lambda c, x: (c + x, c * x), tg.zeros(3), x, dim=1, reverse=reverse)
    assert carry.tolist() == [5., 7., 9.] and ys.shape == (2, 3)
    assert ys.tolist() == ([[4., 10., 18.], [0., 0., 0.]] if reverse else [[0., 0., 0.], [4., 10., 18.]])
    (ys.sum(0) * tg.tensor([1., 2., 3.])).sum().backward()
    assert x.grad.tolist() == [[4., 1.], [10., 4.], [18., 9.]]
    with pytest.raises(IndexError):
        scan(lambda c, x: (c, x), tg.zeros(3), x, dim=3)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 13])
def test_associative_scan(n):
    tg.manual_seed(n)
    x = tg.rand(2, n, dtype=tg.float64, requires_grad=True)
    for reverse in (False, True):
        out = associative_scan(lambda a, b: a * b, x, 1, reverse, "generic")
        wanted = x.flip(1).cumprod(1).flip(1) if reverse else x.cumprod(1)
        assert tg.allclose(out, wanted)
        w = tg.rand(2, n, dtype=tg.float64)
        assert tg.allclose(*(tg.autograd.grad((r * w).sum(), x)[0] for r in (out, wanted)))
    # an operation that does not commute, on a structure: composition of x ↦ ax + b
    a, b = associative_scan(lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]), (x[0], x[1]), 0, combine_mode="generic")
    y = tg.zeros((), dtype=tg.float64)
    for i in range(n):
        y = y * x[0, i] + x[1, i]
        assert abs((b[i] - y).item()) < 1e-12


def test_associative_scan_errors():
    x = tg.ones(3)
    for error, combine, dim, mode in ((ValueError, 3, 0, "generic"), (IndexError, max, 3, "generic"),
                                      (ValueError, max, 0, "pointwise"), (ValueError, max, 0, "no"),
                                      (ValueError, lambda a, b: (a, b), 0, "generic")):
        with pytest.raises(error):
            associative_scan(combine, x, dim, combine_mode=mode)
