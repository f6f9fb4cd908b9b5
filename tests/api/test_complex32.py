"""complex32, two halves: what PyTorch's CPU computes with it, in complex64 and rounded once, and what it refuses."""
import copy
import io
import pickle
import warnings
from functools import partial

import pytest
from side_by_side import attempt, same

import tensorgrad as tg

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

CALLS = """
x ; x.t() ; x[0, 1].item() ; x.tolist() ; x.type() ; x.element_size() ; x.is_complex() ; torch.finfo(x.dtype) ; tensor([1e5, 1e-3j]).chalf() ; tensor(1e-8j).chalf()
x + x ; x * x ; x - 2 ; 2 - x ; x * 1j ; -x ; x.abs() ; x.sgn() ; x.conj() ; x.mH ; torch.add(x, x, alpha=1j) ; torch.addcmul(x, x, x, value=1j) ; x == x ; x != 0
x.isfinite() ; x.isnan() ; x.isreal() ; x.any() ; x.all(0) ; x.count_nonzero() ; x.nonzero() ; x.norm() ; x.var() ; x.std(0) ; torch.var_mean(x) ; x.dist(x + 1) ; x.float_power(2)
(x + torch.ones(2)).dtype ; (x + torch.ones(2).bfloat16()).dtype ; (x * h).dtype ; (x * h.double()).dtype ; h * 1j ; h + 1 ; torch.complex(h, h) ; torch.promote_types(torch.half, x.dtype)
x.real ; x.imag ; x.t().imag.stride() ; x.imag.storage_offset() ; torch.view_as_real(x) ; torch.view_as_complex(h) ; x.view(torch.half) ; x.view(torch.int32) ; x.cfloat() ; x.bool() ; x.half() ; x.long()
torch.where(x.abs() > 1, x, 0) ; x.masked_fill(x == 0, 3j) ; x.index_add(0, i, x[:1]) ; x.index_put((i,), x[:1], accumulate=True) ; x.index_fill(1, i, 1j) ; x.roll(1) ; x.tril() ; x.flip(0) ; x[:, None].expand(2, 3, 2).shape
torch.cat([x, x]) ; torch.stack([x, x]).shape ; x.repeat(2, 1) ; x.diff() ; torch.kron(x, x) ; x.isclose(x + 1e-6) ; x.new_full((2,), 1j) ; x.new_tensor([1.]) ; torch.full((2,), 70000, dtype=x.dtype) ; x.to_sparse() * 2
torch.zeros(2, dtype=x.dtype) ; torch.ones_like(x) ; torch.tensor([1, 2j], dtype=x.dtype) ; torch.randn(3, dtype=x.dtype) ; torch.rand(17, dtype=x.dtype)
torch.nn.functional.pad(x, (1, 1))
complex(x[0, 0]) ; float(x[1, 1]) ; int(x[1, 1]) ; float(x[0, 0]) ; x.sum(dtype=torch.cfloat) ; x.mean(dtype=torch.cfloat) ; x.to_sparse_csr().to_dense() ; x.add_(1).mul_(1j) ; x.real.add_(1) ; x ; x.copy_(h) ; x.fill_(2j)
x.sum() ; x.mean() ; x.prod(0) ; x.cumsum(0) ; x / x ; 1 / x ; x ** 2 ; x.square() ; x.exp() ; x.sqrt() ; x.sin() ; x.tanh() ; x.sigmoid() ; x.log() ; x.angle() ; x.reciprocal() ; x.lerp(x, 0.5)
x @ x ; x.mv(x[0]) ; x[0].dot(x[0]) ; x[0].vdot(x[0]) ; x[None].bmm(x[None]) ; torch.addmm(x, x, x) ; x.trace() ; torch.nn.functional.linear(x, x) ; torch.linalg.inv(x) ; torch.linalg.svd(x) ; torch.fft.fft(x)
x.gather(0, i[None]) ; x.take(i) ; x.put(i, x[0, :1]) ; x.masked_scatter(x == 0, x) ; x.flip(1) ; torch.equal(x, x + 0) ; torch.eye(2, dtype=x.dtype) ; torch.arange(2, dtype=x.dtype) ; torch.linspace(0, 1, 3, dtype=x.dtype)
x.sort() ; x.max() ; x.argmax() ; x.topk(1) ; x.median() ; x.unique() ; x < x ; x.clamp(0) ; x.floor() ; x // 1 ; x % 2 ; ~x ; x.logical_not() ; x.sign() ; x.exponential_() ; x.random_() ; x.bernoulli_() ; x.numpy()
torch.nn.functional.pad(x[None], (1, 1), 'reflect') ; torch.nn.functional.pixel_shuffle(x.view(4, 1, 1), 2) ; torch.nn.functional.rms_norm(x, (2,)) ; torch.nn.functional.unfold(x[None], 1)
"""  # noqa: E501


def quiet(program, **tolerances):
    """Run a program with both libraries, without PyTorch's warning of every tensor of the dtype."""
    def run(torch):
        warnings.simplefilter("ignore")
        return program(torch)
    same(run, **tolerances)


@pytest.mark.parametrize("line", CALLS.strip().splitlines())
def test_calls(line):
    def program(torch):
        x = torch.tensor([[1 + 2j, 3 - 1j], [0.1j, -2]]).chalf()
        names = {"torch": torch, "tensor": torch.tensor, "x": x, "h": torch.tensor([[1.5, 2.], [0.25, -3.]]).half(),
                 "i": torch.tensor([1])}
        return [str(attempt(partial(eval, text.strip(), names))) for text in line.split(" ; ")]
    quiet(program)


FUNCTIONS = {
    "product": lambda x, h: x * x * h, "size": lambda x, h: x.abs() * h, "parts": lambda x, h: x.real * h + x.imag,
    "conjugate": lambda x, h: x.conj() * 2 - x, "views": lambda x, h: x.t().reshape(4)[1:] * 1j,
    "rows": lambda x, h: x.index_select(0, (h[0] > 9).long()) + x.masked_fill(x == 0, 1)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    def program(torch):
        x = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, -2]]).chalf().requires_grad_()
        h = torch.tensor([[1.5, 2.], [0.25, -3.]]).half().requires_grad_()
        y = FUNCTIONS[name](x, h)
        upstream = torch.arange(1, y.numel() + 1).reshape(y.shape) * (0.25 - 0.5j * y.is_complex())
        y.backward(upstream.to(y.dtype) if y.is_complex() else upstream.real.to(y.dtype))
        return [g if g is None else torch.view_as_real(g.cfloat()) if g.is_complex() else g.float()
                for g in (x.grad, h.grad)]
    quiet(program, rtol=2e-3, atol=2e-3)


def test_convolution():
    def program(torch):
        x = torch.tensor([[1 + 2j, 3 - 1j], [0.1j, -2]]).chalf()
        return torch.view_as_real(torch.nn.functional.conv1d(x[None], x[:, :, None]).cfloat())
    quiet(program, rtol=2e-3, atol=4e-3)


def test_files_and_copies():
    torch = pytest.importorskip("torch")
    x = tg.tensor([[1 + 2j, 3 - 1j], [0.1j, -2]]).chalf()
    file = io.BytesIO()
    tg.save({"x": x, "t": x.t()}, file)
    for lib in (tg, torch):
        file.seek(0)
        found = lib.load(file)
        assert found["x"].tolist() == x.tolist() and found["t"].stride() == (1, 2)
        assert str(found["x"].dtype) == "torch.complex32"
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), tg.from_dlpack(x)):
        assert made.dtype is tg.chalf and made.tolist() == x.tolist()
    shared = torch.from_dlpack(x)
    shared.fill_(1j)
    assert shared.dtype is torch.complex32 and x.tolist() == [[1j, 1j], [1j, 1j]]


def test_other_readings():
    x = tg.tensor([[1 + 2j, 3 - 1j], [0.5j, -2]]).chalf()
    y, tangent = tg.func.jvp(lambda a: a * a, (x,), (x,))
    assert y.tolist() == (x * x).tolist() and tangent.tolist() == (2 * (x * x)).tolist() and tangent.dtype is x.dtype
    assert tg.vmap(lambda a: a * 2 + a[0])(x).tolist() == (x * 2 + x[:, :1]).tolist()
    assert tg.vmap(lambda a: a.imag + a[0].real)(x).tolist() == (x.imag + x[:, :1].real).tolist()
    made = tg.empty(2, 3, dtype=x.dtype, device="meta")
    assert (made + 1).dtype is x.dtype and made.abs().dtype is tg.half and made.imag.dtype is tg.half
    x.requires_grad_()
    first, = tg.autograd.grad((x * x * x).real.float().sum(), x, create_graph=True)
    second, = tg.autograd.grad(first.real.float().sum(), x)
    assert second.dtype is x.dtype and second.tolist() == (6 * x.detach().conj()).tolist()


def test_warning():
    tg.set_warn_always(True)
    try:
        for make in (lambda: tg.zeros(2, dtype=tg.chalf), lambda: tg.ones(2).chalf(),
                     lambda: tg.randn(2, dtype=tg.chalf)):
            with pytest.warns(UserWarning, match="ComplexHalf support is experimental"):
                make()
    finally:
        tg.set_warn_always(False)


def test_parts_in_half_give_complex32_at_each_call():
    parts = tg.rand(2, 3).half()
    assert {tg.complex(parts, parts).dtype for _ in range(3)} == {tg.complex32}
