"""Arguments that PyTorch refuses, or takes, where a general implementation would do the opposite."""
import pytest
from side_by_side import attempt, same

import tensorgrad

CALLS = """
x.contiguous(memory_format=C) ; x.to(memory_format=C) ; x.half(memory_format=C) ; x.clone(memory_format=C) ; torch.empty(2, 3, memory_format=C)
x4.contiguous(memory_format=torch.channels_last_3d) ; x4.contiguous(memory_format=C).stride()
F.mse_loss(c, c) ; F.mse_loss(x, c) ; F.mse_loss(x.long(), x.long()) ; F.dropout(c, .5) ; F.dropout(c, 0.) ; F.dropout(c, 1.) ; F.alpha_dropout(c, .5, True)
F.dropout1d(c, .5) ; F.dropout(c, .5, training=False) ; F.local_response_norm(c.view(1, 2, 3), 2) ; F.local_response_norm(x4 + 0j, 2)
F.avg_pool2d(x4.int(), 2) ; F.avg_pool2d(x4 > 1, 2) ; F.avg_pool2d(x4.long(), 2) ; F.avg_pool1d(x4[0].int(), 2) ; F.avg_pool2d(x4.byte(), 2) ; F.avg_pool2d(x4 + 0j, 2)
F.lp_pool1d(x4[0].int(), 2, 2) ; F.lp_pool2d(x4.int(), 2, 2) ; F.adaptive_max_pool2d(x4.int(), 2) ; F.adaptive_max_pool1d(x4[0].long(), 2)
F.adaptive_max_pool3d(x4.int(), 2) ; F.adaptive_avg_pool3d(x4.int(), 2) ; F.max_pool2d(x4 > 1, 2) ; F.max_pool3d(x4 > 1, 2) ; F.max_pool2d(x4 + 0j, 2)
F.conv1d(x4[0] > 1, x4[0, :, :, :2] > 1) ; F.conv2d(x4 > 1, x4 > 1) ; F.conv3d(x4[None] > 1, x4[None] > 1) ; F.conv2d(x4.long(), x4.long())
F.conv1d(x4[0] > 1, x4[0, :, :1, :2] > 1) ; torch.conv_tbc(o(2, 1, 1), o(5, 1, 1), o(1)) ; torch.conv_tbc(o(2, 1, 1), o(5, 1, 1), o(1), 1)
x.index_copy(0, s, x[:1]) ; x.index_copy(0, s.int(), x[:1]) ; x.index_fill(0, s.int(), 1.) ; x.index_fill_(0, s, 1.) ; x.index_add(0, s, x[:1])
x.index_reduce(0, s, x[:1], 'amax') ; x.index_add(0, s.int(), x[:1]) ; b.kthvalue(1) ; b.kthvalue(9) ; torch.searchsorted(c[0], c[0]) ; torch.searchsorted(x[0], 1j)
torch.bucketize(c[0], c[0]) ; torch.unique(c) ; torch.unique_consecutive(c) ; torch.unique(c, dim=0) ; torch.histogram(x.half(), 3) ; torch.histogramdd(x.half(), [2, 2, 2])
torch.gradient(b) ; torch.gradient(b, dim=0) ; x.set_(t([1, 2])) ; x.map_(x.long(), lambda a, b: a) ; torch.scalar_tensor(1j) ; torch.scalar_tensor(1j, dtype=torch.complex64)
torch.scalar_tensor(1j, dtype=torch.int32) ; torch.scalar_tensor(True) ; torch.logspace(0, 1, 3, dtype=torch.bool) ; torch.frombuffer(bytearray(b'abcd'), dtype=torch.uint8, count=0)
torch.norm(o(2, 2, 2), 'nuc') ; torch.norm(o(2), 'nuc') ; torch.norm(x, 'nuc', 0) ; torch.norm(x, 'nuc', (0, 1)) ; torch.norm(o(2, 2, 2), 'nuc', dim=(0, 1))
torch.rot90(x, 1, (0, 2)) ; torch.rot90(x, 1, (0, -2)) ; torch.rot90(x[None], 1, (0, -3)) ; F.gaussian_nll_loss(x, x, 1) ; F.soft_margin_loss(x.long(), x.long())
F.scaled_dot_product_attention(o(1, 2, 3), o(1, 2, 4), o(1, 2, 4)) ; F.scaled_dot_product_attention(o(1, 2, 3), o(1, 3, 3), o(1, 2, 3))
torch.normal(o(2), o(3)) ; torch.normal(o(2, 1), o(3)).shape ; x.bernoulli_(o(4)) ; x.bernoulli_(o(1)) ; torch.empty_strided((2,), (1, 1)) ; torch.empty_strided((2, 3), (1,))
torch.linspace(0, 1j, 3, dtype=torch.float32) ; torch.linspace(0, 1j, 3, dtype=torch.int32) ; torch.logspace(0, 1j, 3, dtype=torch.float32) ; torch.linspace(0, 1j, 3)
F.pairwise_distance(t(1.), t(3.)) ; F.pairwise_distance(t(1.), t([3.])) ; torch.lobpcg(o(2, 3), 1) ; torch.take_along_dim(x, t([[5]]), 1) ; torch.take_along_dim(x, t([[-7]]), 1)
torch.take_along_dim(x, t([7])) ; torch.fft.rfftfreq(-1) ; torch.fft.rfftfreq(-2) ; torch.fft.fftfreq(-1) ; x.scatter_reduce(0, t([[0, 0, 1]]), x[:1] * 3, 'max')
x.scatter_reduce_(0, t([[0, 0, 1]]), x[:1] * 3, 'min', include_self=False) ; x.scatter_reduce(0, t([[0, 0, 1]]), x[:1] * 3, 'foo')
c.copy_(1j) ; x.copy_('a') ; x.set_(x.untyped_storage(), 0, (2,)) ; x.set_(x, 1, (2, 2)) ; x.to('cpu:1') ; o(2, device='cpu:1')
torch.addr(x, o(2), o(3), beta=True) ; torch.addr(x.long(), o(2).long(), o(3).long(), alpha=1j) ; torch.addr(x.half(), o(2).half(), o(3).half(), alpha=False)
torch.linalg.lstsq(x.t(), o(3, 1), rcond=1., driver='gelsd').rank ; torch.linalg.lstsq(o(1, 0), o(1, 2), driver='gels') ; torch.linalg.solve(o(3, 3).bfloat16(), o(3, 2))
torch.clamp(x.int(), 1j) ; x.clamp_max(1j) ; c.clamp_max(x) ; c.clamp_max(o(5)) ; torch.clamp(x, min=c) ; torch.clamp(x, c, x) ; b.clamp_max(True) ; b.clamp_max(b) ; b.clamp(b)
torch._int_mm(x.char() * 50, x.t().char()) ; torch._int_mm(x.byte(), x.t().char()) ; torch._int_mm(x.char(), x.char()) ; torch._int_mm(x, x.t().char())
torch._int_mm(x[0].char(), x.t().char()) ; torch._int_mm(x.char(), x.t().byte()) ; torch._weight_int8pack_mm(x.half(), x.char(), o(2)) ; torch._weight_int8pack_mm(x, x.char(), o(3))
torch._weight_int8pack_mm(x, x.char(), o(2) * .5) ; torch._weight_int8pack_mm(x.double(), x.char(), o(2)) ; torch._weight_int8pack_mm(x, x, o(2))
torch._addmm_activation(o(2), x, -x.t(), beta=9, alpha=.5) ; torch._addmm_activation(o(2), x, x.t(), alpha=.1, use_gelu=True)
F.threshold(x, .3, 1e300) ; F.threshold(x.byte(), 3, 300) ; F.elu_(x - 3, .8, .5, -1.5) ; torch.gradient(x, spacing=[1., 2.], dim=0) ; torch.gradient(x, spacing=[1.]) ; torch.randperm(2, requires_grad=True) ; torch.is_nonzero(None)
c.erf() ; c.lgamma() ; c.amax() ; c.argmax() ; c.maximum(c) ; c.frexp() ; c.topk(1) ; c.mode() ; c.cummax(0) ; b + b ; -b ; b.erf_() ; c.digamma() ; F.huber_loss(c, c)
torch.linalg.vecdot(s, s) ; F.pad(b[None], (1, 1), 'reflect') ; b.index_reduce(0, s, b[:1], 'amax', include_self=False) ; torch.searchsorted(b[0], b[0]) ; (c * 0.1j).bool() ; float(t(2 + 0j))
torch.embedding_bag(x, t([0, 1]), t([0]), False, 2, False, o(2)) ; torch.embedding_bag(x, t([0, 1]), t([0]), False, 0, False, o(2))[0]
"""  # noqa: E501


@pytest.mark.parametrize("line", CALLS.strip().splitlines())
def test_calls(line):
    def program(torch):
        def call(text):
            x, t = torch.arange(6.).view(2, 3), torch.tensor
            names = {"torch": torch, "F": torch.nn.functional, "t": t, "x": x, "c": x + 1j * x, "b": x > 2,
                     "x4": torch.arange(16.).view(1, 1, 4, 4), "o": torch.ones, "s": t([0], dtype=torch.int16),
                     "C": torch.channels_last}
            return attempt(lambda: eval(text, names))
        return [call(text.strip()) for text in line.split(" ; ")]
    same(program)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_dtypes_of_8_bits_are_named_as_in_pytorch(name):
    small = tensorgrad.ones(2, 2).to(getattr(tensorgrad, name))
    with pytest.raises(RuntimeError, match=f"tensor of type c10::{name.capitalize()} to a tensor of type float"):
        tensorgrad.ones(2, 2).set_(small)
    with pytest.raises(RuntimeError, match=f"but got: float != c10::{name.capitalize()}"):
        tensorgrad.ones(2, 2) @ small


def test_modes_of_grid_samplers():
    """PyTorch returns uninitialized memory."""
    import tensorgrad as tg
    with pytest.raises(RuntimeError, match="interpolation_mode must be 0, 1 or 2"):
        tg.grid_sampler(tg.ones(1, 1, 2, 2), tg.zeros(1, 1, 1, 2), 5, 0, False)


def test_complex_number_to_real_tensor():
    import tensorgrad as tg
    x = tg.zeros(2)
    with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
        assert x.copy_(1 + 2j) is x and x.tolist() == [1., 1.]
