"""Names of steps, as `print` shows them in `grad_fn=<…>`, beside PyTorch's."""
import pytest

import tensorgrad

CALLS = """
F.linear(v, w); F.linear(v, w, b); F.linear(x, w); F.linear(x, w, b); F.linear(s, w); F.linear(s, w, b)
F.linear(im, wi, b); x @ x.T; v @ v; x @ v; s @ s.mT; s @ x.T; t.bmm(s, s.mT); t.mm(x, x.T)
t.einsum('ij,kj->ik', x, x); t.einsum('ij->j', x); t.addmm(x @ x.T, x, x.T); t.addmv(v[:4], x, v)
t.baddbmm(s @ s.mT, s, s.mT); t.addcmul(x, x, x); t.addcdiv(x, x, x); t.cdist(x, x); t.dist(x, x * 2)
F.pairwise_distance(x, x * 2); t.renorm(x, 2, 0, 1); x.trace(); t.kron(x, x); x.squeeze(); s[:1].squeeze(0)
s[:1].squeeze((0,)); x.roll(1); x.rot90(); x.repeat(2, 1); x.tile(2); x.repeat_interleave(2, 0); x.T.ravel()
t.atleast_2d(v); t.combinations(v); t.block_diag(x, x); x.diag(); x.index_add(0, i, x); x.index_copy(0, i, x)
x.index_fill(0, i, 0.); x.take(i); x.masked_select(x > 0); x.masked_scatter(x > 0, x); x.gather(1, i[None])
x.nansum(); t.var_mean(x)[0]; t.std_mean(x, 1)[1]; t.aminmax(x)[0]; x.quantile(.5); x.clamp(0); x.clamp_min(0)
x.clamp(max=1); x.frac(); t.diagonal_scatter(x, v[:4]); t.select_scatter(x, v, 0, 0); t.view_copy(x, (6, 4))
x.ldexp(i[0]); x.abs().add(3).mvlgamma(2); t.linalg.cholesky(x @ x.T + e); t.linalg.solve(x @ x.T + e, x)
t.linalg.lu(x)[1]; t.linalg.multi_dot([x, x.T, x]); F.interpolate(im, scale_factor=2)
F.interpolate(im, scale_factor=2, mode='bilinear'); F.interpolate(im, size=4, mode='area')
F.interpolate(im, size=4, mode='bicubic'); F.interpolate(s, scale_factor=2, mode='linear')
F.grid_sample(im, at, align_corners=False); F.pad(im, (1, 1, 1, 1), mode='reflect')
F.pad(s, (1, 1), mode='replicate'); F.pad(s, (1, 1), mode='circular'); F.unfold(im, 2); F.pixel_shuffle(im, 2)
F.max_pool1d(s, 2); F.avg_pool1d(s, 2); F.adaptive_avg_pool2d(im, 2); F.fractional_max_pool2d(im, 2, 4)
F.embedding_bag(i[None], x, mode='max'); F.scaled_dot_product_attention(s, s, s); nn.LSTM(6, 3)(s)[0]
nn.GRU(6, 3)(s)[0]; nn.RNN(6, 3, batch_first=True)(s)[0]; nn.RNNCell(6, 3)(x); nn.LSTMCell(6, 3)(x)[0]
nn.GRUCell(6, 3)(x); x.clone().index_add_(0, i, x); x.clone().addcmul_(x, x); x * 1 + (x.clone() * 0).squeeze()
x.reshape(x.shape).repeat(1, 1) * 1; v[:4] @ x; s @ v; v[:4] @ s; (x * 1).unsqueeze_(0); (x * 1).t_(); x.median(0)[0]
(x[:1] * 1).squeeze_(); (x[:1] * 1).squeeze_(0); (x * 1).swapaxes_(0, 1); t.fill(x, 2); t.fill(x, i[0]); x.bernoulli()
t.fft.fft2(x); t.fft.fft(x); t.fft.rfft2(x); t.fft.ifft(x); t.cumulative_trapezoid(x); x.split(2)[0]
""".replace("\n", ";").split(";")


def names(library):
    """Evaluate the calls in a library and return the names of their results' steps."""
    given = {"t": library, "nn": library.nn, "F": library.nn.functional, "i": library.tensor([0, 1, 2, 3]),
             "e": library.eye(4), "at": library.zeros(2, 2, 2, 2)}
    for name, *shape in (("v", 6), ("x", 4, 6), ("w", 3, 6), ("b", 3), ("s", 2, 4, 6), ("im", 2, 4, 8, 8),
                         ("wi", 3, 8)):
        library.manual_seed(0)
        given[name] = library.rand(shape, requires_grad=True)
    steps = [eval(call.strip(), given).grad_fn for call in CALLS if call.strip()]
    return [(step.name(), type(step).__name__) for step in steps]


def test_steps_have_pytorchs_names():
    pytorch = pytest.importorskip("torch")
    found = dict(zip((call.strip() for call in CALLS if call.strip()), zip(names(tensorgrad), names(pytorch))))
    assert {call: pair for call, pair in found.items() if pair[0] != pair[1]} == {}


def test_a_result_that_is_an_input_keeps_its_name():
    x = tensorgrad.ones(1, 2, requires_grad=True) * 2
    tensorgrad.nn.functional.pad(x, (0, 0), mode="reflect")
    assert x.grad_fn.name() == "MulBackward0"
    with tensorgrad.no_grad():
        assert tensorgrad.addmm(x, x[:, :1], x).grad_fn is None


def test_a_step_that_was_looked_at_still_pulls_and_lists_its_saved_values():
    x = tensorgrad.tensor([[1., 2.], [3., 5.]], requires_grad=True)
    y = tensorgrad.addmm(x, x, x)
    assert type(y.grad_fn).__name__ == "AddmmBackward0" and str(type(x.T.grad_fn)) == "<class 'PermuteBackward0'>"
    g = tensorgrad.tensor([[1., -2.], [.5, 3.]])
    assert tensorgrad.equal(tensorgrad.autograd.grad(y, x, g)[0], g + g @ x.T + x.T @ g)
    step = (x * 2 * x).grad_fn
    assert {"_saved_self", "_raw_saved_other", "next_functions", "metadata"} <= set(dir(step))
    assert not {"saved", "op", "grad_a"} & set(dir(step))
    assert type(x.sum().grad_fn.next_functions[0][0]).__qualname__ == "AccumulateGrad"
    assert isinstance(step, tensorgrad.autograd.graph.Node)
