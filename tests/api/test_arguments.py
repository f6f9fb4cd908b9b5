"""Invalid arguments: functions raise PyTorch's exception with its first line, and leave arguments unchanged.

Also unusual arguments that PyTorch accepts.
"""
import warnings
from types import FunctionType, MethodType

import numpy as np
import pytest
from side_by_side import same

import tensorgrad

CALLS = """
# arity
torch.add(x) ; torch.add() ; torch.add(x, x, x, x) ; x.add() ; x.add_() ; torch.mm(x) ; torch.mm(x, x, 1, 2) ; x.mm() ; torch.softmax(x)
torch.cat() ; torch.transpose(x, 0) ; x.transpose(0) ; torch.sum() ; torch.zeros() ; torch.full(2) ; torch.full((2,), 1, 2) ; x.cumsum() ; x.topk()
torch.clamp(x, 1, 2, 3) ; torch.where(m, x) ; torch.lerp(x, x) ; torch.gather(x, 0) ; x.gather(0) ; torch.addmm(x, x) ; x.scatter(0) ; x.split()
torch.linalg.inv() ; torch.linalg.solve(x) ; torch.fft.fft() ; torch.fft.fft(x, 1, 0, 'ortho', 5) ; torch.special.erf() ; torch.special.zeta(x)
F.conv2d(x) ; F.linear(x) ; F.gelu(x, 1) ; torch.split(x) ; torch.flip(x) ; x.flip() ; x.permute() ; x.view() ; x.expand() ; x.repeat()
x.tril_(1, 2) ; x.sum(0, True, 1) ; torch.eye() ; torch.arange() ; torch.arange(1, 2, 3, 4) ; torch.linspace(1) ; torch.max() ; torch.std()

# keywords
x.add(x, foo=1) ; torch.add(x, x, foo=1, bar=2) ; torch.sum(x, foo=1) ; x.sum(0, foo=1) ; torch.cat([x], foo=1) ; x.exp_(foo=1) ; x.view(6, foo=1)
torch.softmax(x, dim=0, axis=0) ; torch.softmax(x, 0, dim=0) ; torch.add(x, x, input=x) ; torch.add(other=x) ; x.add(other=x) ; x.permute(foo=1)
torch.zeros(2, foo=1) ; torch.linalg.inv(x, foo=1) ; F.conv2d(x, x, foo=1) ; torch.sum(x, axis=0) ; x.sum(axis=0, keepdims=True) ; x.sum(0, axis=1)
torch.amax(x, axis=1) ; torch.mul(x1=x, x2=x) ; torch.exp(self=x) ; torch.topk(x, k=1, dim=0, n=1) ; x.cumsum_(0, axis=0)

# no tensor
torch.exp(1.5) ; torch.exp('a') ; torch.exp(None) ; torch.exp([1.]) ; torch.exp(np.ones(2)) ; torch.exp(np.float64(1)) ; torch.exp(object)
torch.neg(1) ; torch.add('a', x) ; torch.add(x, 'a') ; x.add('a') ; x.add_('a') ; torch.add(x, None) ; torch.add(x, np.ones(3)) ; x.add(np.ones(3))
torch.mm(x, 1) ; torch.matmul(x, 'a') ; x.matmul(1) ; torch.sum(1) ; torch.softmax('a', 0) ; torch.cat([1]) ; torch.cat([x, 1]) ; torch.cat(1)
torch.cat(x) ; torch.cat('a') ; torch.stack([x, None]) ; torch.stack(x) ; torch.stack([]) ; torch.cat([]) ; torch.cat((x, 'a'), 0)
torch.maximum(x, 1) ; torch.where(1, x, x) ; torch.where(m, 'a', x) ; torch.gather(x, 0, [0]) ; torch.index_select(x, 0, 1) ; x.index_add(0, i, 1.)
x.scatter(0, i, 'a') ; x.masked_fill(m, 'a') ; x.masked_fill(1, 1.) ; torch.addmm(x, 1, x) ; torch.lerp(x, 1, .5) ; torch.dist(x, 1)
torch.linalg.inv('a') ; torch.linalg.norm(1) ; torch.linalg.det(None) ; torch.linalg.solve(x, 1) ; torch.linalg.svd([1]) ; torch.fft.fft('a')
torch.fft.rfft(1) ; torch.special.erf(1.) ; torch.special.gammaln('a') ; torch.block_diag(x, 1) ; torch.broadcast_tensors(x, 1)
torch.cartesian_prod(1) ; torch.meshgrid(x[0], 1, indexing='ij') ; torch.atleast_1d('a') ; torch.atleast_2d(x, 1) ; torch.atleast_3d([x, 1])
torch.cdist(x, 1) ; torch.unique('a') ; torch.norm('a') ; torch.tensordot('a', x) ; torch.bmm(x, None) ; F.relu('a') ; F.softplus(1) ; F.gelu(1)
F.linear(1, x) ; F.linear(x, 'a') ; F.conv2d('a', x) ; F.mse_loss(x, 1) ; F.mse_loss(1, x) ; F.cross_entropy(x, 1) ; F.nll_loss('a', i)
F.l1_loss(None, x) ; F.dropout('a') ; F.layer_norm(1, (3,)) ; F.group_norm('a', 1) ; F.max_pool2d('a', 2) ; F.pad('a', (1, 1))
F.binary_cross_entropy(1, x) ; F.kl_div(x, 1) ; F.silu('a') ; F.leaky_relu(1) ; F.batch_norm('a', x, x) ; F.elu(None)

# integers and axes
torch.softmax(x, 0.) ; torch.softmax(x, 'a') ; torch.softmax(x, True) ; torch.softmax(x, None) ; torch.softmax(x, (0,)) ; torch.softmax(x, 2)
torch.tensor([torch.tensor([1, 2]), 5]) ; torch.tensor([5, torch.tensor([1, 2])]) ; torch.tensor([torch.tensor([1.5, 2.])]) ; torch.as_tensor([x, x], dtype=torch.int64) ; torch.tensor([torch.tensor([[1]])])
torch.einsum('', []) ; torch.frac(torch.tensor([1])) ; torch._C._infer_size(torch.Size([2, 1]), torch.Size([3])) ; torch._C._infer_size(torch.Size([2, 2]), torch.Size([3])) ; torch._C._infer_size((2,), (2,))
torch.softmax(x, -3) ; x.softmax(0.5) ; torch.softmax(x, torch.tensor(0)) ; torch.softmax(x, torch.tensor([0])) ; torch.softmax(x, torch.tensor(0.))
torch.softmax(x, np.int64(1)) ; torch.softmax(x, np.array(1)) ; torch.cumsum(x, 0.) ; x.cumsum(5) ; x.sum(0.) ; x.sum('a') ; x.sum(5)
x.sum((0, 0)) ; x.sum((0, 'a')) ; x.sum([0.]) ; x.sum(dim=True) ; torch.sum(x, (0, -2)) ; x.sum(torch.tensor(0)) ; x.sum([torch.tensor(0)])
x.argmax(1.) ; x.argmax(9) ; torch.max(x, 1.) ; torch.max(x, 7) ; x.topk(1.5) ; x.topk(True) ; x.topk(9) ; x.topk(torch.tensor([1])) ; x.chunk(2.)
x.chunk(0) ; x.triu(1.) ; x.diagonal(0, 0, 0) ; x.transpose(0, 5) ; x.transpose(0, 'a') ; x.permute(0) ; x.permute(0, 0) ; x.permute(0, 'a')
torch.permute(x, 0) ; x.permute(0.) ; x.unsqueeze(9) ; x.unsqueeze('a') ; x.squeeze(5) ; x.squeeze(1.) ; x.flatten(5) ; x.flatten(1, 0)
x.select(0, 9) ; x.select(0, 'a') ; x.narrow(0, 5, 1) ; torch.narrow(x, 0, 0, torch.tensor([1])) ; x.unbind(4) ; x.split(0) ; x.split(-1)
x.split([1]) ; x.split(1.) ; x.tensor_split(0) ; x.roll(1, 9) ; x.roll(1., 0) ; x.flip(0, 0) ; x.flip(4) ; torch.flip(x, 0) ; x.rot90(1, [0])
x.movedim(0, (0, 1)) ; x.unfold(0, 9, 1) ; torch.diff(x, dim=5) ; torch.combinations(x[0], -1) ; torch.fft.fft(x, dim=7) ; torch.fft.fft(x, n=0)
torch.fft.fftn(x, dim=(0, 0)) ; torch.linalg.vector_norm(x, dim=5)

# sizes
torch.zeros(-1) ; torch.zeros((2, -3)) ; torch.zeros(2.) ; torch.zeros('a') ; torch.zeros([2, 'a']) ; torch.zeros(2, 'a') ; torch.zeros([1.])
torch.zeros(True) ; torch.zeros(torch.tensor(2)) ; torch.ones(np.int64(2), 3) ; x.view(4) ; x.view(-1, -1) ; x.view(2.) ; x.view('a') ; x.reshape(5)
x.reshape(-1, 4) ; x.reshape('a') ; x.expand(3) ; x.expand(4, 3) ; x.expand('a') ; x.repeat(1) ; x.repeat('a') ; torch.broadcast_to(x, (4,))
torch.broadcast_to(x, 3) ; x.unflatten(0, (3,)) ; x.unflatten(0, 'ab') ; torch.full(2, 1.) ; torch.full('a', 1) ; torch.full((2,), 'a')
torch.eye(-1) ; torch.eye(2.) ; torch.arange('a') ; torch.arange(0, 1, 0) ; torch.arange(0, 5, -1) ; torch.linspace(0, 1, -1)
torch.linspace(0, 1, 2.5) ; torch.randint(0, (2,)) ; torch.empty(2, dtype=1) ; torch.zeros(2, device=[1]) ; torch.zeros(2, layout=1)
torch.zeros(2, requires_grad=1)

# flags, numbers, words
x.sum(0, 1) ; torch.sum(x, 0, keepdim=1) ; x.sum(0, keepdim='a') ; x.mean(0, keepdim=None) ; x.topk(1, largest=1) ; torch.sort(x, stable=1)
x.argsort(descending=1) ; torch.unique(x, return_counts=1) ; x.std(0, unbiased=1) ; x.all(0, keepdim=1) ; torch.allclose(x, x, equal_nan=1)
torch.add(x, x, alpha='a') ; torch.add(x, x, alpha=torch.tensor([2.])) ; torch.add(x, x, alpha=torch.tensor(2.)) ; torch.add(x, x, alpha=[1])
torch.add(n, n, alpha=1.5) ; torch.add(x, x, alpha=1j) ; torch.addmm(y, x, x.T, beta='a') ; torch.addmm(n @ n.T, n, n.T, beta=1.5)
torch.lerp(x, x, 'a') ; torch.clamp(x) ; torch.clamp(x, 'a') ; torch.clamp(x, x, 1) ; torch.clamp(x, max='a') ; torch.dropout(x, 'a', True)
torch.dropout(x, .5, 1) ; torch.div(x, x, rounding_mode=1) ; torch.div(x, x, rounding_mode='a') ; torch.logit(x, 'a') ; torch.pow(2, 2)
torch.pow('a', x) ; x.round(decimals=.5) ; torch.linalg.norm(x, 'a') ; torch.linalg.norm(x, [1]) ; torch.fft.fft(x, norm='a')
torch.fft.fft(x, norm=1) ; torch.scatter_reduce(x, 0, j, x, 'a') ; torch.bernoulli(x, generator=1) ; torch.multinomial(x, 0)
torch.multinomial(x, 2.) ; torch.isclose(x, x, 'a') ; x.softmax(0, dtype='a') ; x.sum(dtype=1) ; x.cumsum(0, dtype=np.float32)
F.dropout(x, training=1) ; F.mse_loss(x, x, reduction='a') ; F.pad(x, 1) ; F.layer_norm(x, [True]) ; F.softmax(x, 'a') ; F.max_pool2d(v, 'a')
F.avg_pool2d(v, 1.5) ; F.conv2d(v, w, stride='a') ; F.conv2d(v, w, groups=True) ; F.conv2d(v, w, padding=[1.]) ; F.one_hot(j, 1.5)
F.gelu(x, approximate='a') ; F.nll_loss(x, i, ignore_index=1.5) ; F.cosine_similarity(x, x, dim='a') ; F.pixel_shuffle(v, 'a')

# shapes
x + y ; torch.add(x, torch.ones(7)) ; x.mul_(torch.ones(7)) ; torch.mm(x, x) ; torch.mm(x[0], x) ; torch.mv(x, x) ; torch.dot(x[0], y[0])
torch.bmm(x, x) ; torch.matmul(x, x) ; x @ x ; torch.baddbmm(x, x, x) ; torch.baddbmm(y, v[0], v[0]) ; torch.addbmm(x, x, v[0]) ; torch.cat([x, y])
torch.stack([x, y]) ; torch.where(m, x, y) ; torch.masked_select(x, torch.ones(7) > 0) ; x.masked_fill(torch.ones(7) > 0, 1.)
torch.gather(x, 0, torch.tensor(5)) ; torch.gather(x, 0, j + 9) ; torch.index_select(x, 0, j) ; x[5] ; x[:, 9] ; x[0, 0, 0]
torch.take(x, torch.tensor(9)) ; torch.linalg.inv(x) ; torch.linalg.solve(y, torch.ones(7)) ; torch.linalg.cross(x, torch.ones(2, 4))
torch.outer(x, x) ; torch.einsum('ij,jk', x, x) ; torch.tensordot(x, x, dims=2.) ; F.linear(x, torch.ones(2, 5)) ; F.mse_loss(x, torch.ones(2, 2))
F.cross_entropy(x, torch.ones(7)) ; F.conv2d(v, torch.ones(1, 5, 1, 1)) ; torch.searchsorted(torch.tensor(1.), x)
torch.unflatten(torch.tensor(1.), 0, (1,)) ; torch.tensor_split(x, torch.tensor(2.5))
x.view(-2, -1) ; x.view(-3, -2) ; x.view(-1, -1, -2) ; x.reshape(-2, 3) ; F.avg_pool3d(v, 5, 1, ceil_mode=True) ; F.avg_pool3d(v, (3, 2, 2), 1, 1)

# places
x.index_add(0, i - 1, x) ; x.index_copy(0, i - 1, x) ; x.index_fill(0, i - 1, 1.) ; x.index_select(0, i - 1)
x.index_add(0, i + 1, x) ; x.index_copy(0, i + 1, x) ; x.index_fill(0, i + 1, 1.) ; x.index_fill(0, i - 9, 1.) ; x.gather(0, j - 1)
x.scatter(0, j - 1, 1.) ; x.scatter_add(0, j - 1, x) ; x.scatter_reduce(0, j - 1, x, 'sum') ; x.scatter_reduce(0, j - 1, x, 'amax')
x.scatter_add(0, j, None) ; x.scatter_add(0, j[:0], 1.) ; x.take(i - 9) ; x.take(i - 1) ; x.put(i - 9, x[0, :2]) ; F.embedding(i - 1, x)
torch.embedding(x, i + 1) ; F.embedding_bag(j - 1, x) ; F.embedding_bag(i, x, i - 1) ; F.embedding_bag(i, x, torch.tensor([0, -1]))
F.embedding_bag(i, x, torch.tensor([0, 9])) ; F.embedding_bag(i, x, torch.tensor([0, -1]), mode='max')
F.embedding_bag(j[0], x, torch.tensor([0, 2, 1]), mode='max')
F.embedding_bag(j[0], x, torch.tensor([0, 2, 2]), include_last_offset=True, mode='sum')

# what PyTorch refuses, or takes
x.logaddexp(n) ; n.logaddexp(n) ; torch.meshgrid(x[0], n[0], indexing='ij') ; torch.cartesian_prod(x[0], n[0]) ; torch.linalg.cross(x, x.double())
torch.matrix_power(x[:, :2], n[0, 2]) ; torch.isin(1.5, n) ; torch.isin(n, 1.5) ; torch.detach_copy(r) ; torch.kl_div(n, n) ; torch.adjoint(x[0])
torch.group_norm(x, 1, x[0].double()) ; F.embedding_bag(j, n) ; torch.frombuffer('a', dtype=torch.int8) ; torch.nonzero_static(x, size=-1)
torch.matmul(x, x[0, 0]) ; torch.alpha_dropout(x, -1., True) ; torch.repeat_interleave(x) ; torch.repeat_interleave(n[0, 0]) ; x.put(i.int(), x[0, :2])
x.index_fill(0, n, 1.) ; x.index_fill(0, i, torch.tensor(1j)) ; (x + 0j).abs_() ; x.cumsum_(0, dtype=torch.float64) ; x.float_power_(2)
n.bitwise_or_(torch.ones(4, 2, 3).int()) ; x.__ior__(x) ; x.bitwise_and_(torch.ones(4, 2, 3)) ; torch.bitwise_and(x, torch.ones(2, 2))
F.lp_pool3d(v, 2., (2, 2)) ; F.fractional_max_pool2d(x, 2) ; torch.can_cast(1, torch.int8) ; torch.tril_indices(3, -1) ; torch.triu_indices(2**63, 1)
torch.norm_except_dim(x, 2, -3) ; torch.norm_except_dim(x[0, 0]) ; F.dropout2d(n) ; torch.native_dropout(n, .5, True) ; x[0, 0].squeeze(-3)
torch.cosine_similarity(x + 0j, x) ; F.adaptive_avg_pool2d(v, 0) ; torch.mvlgamma(m, 1) ; torch.trapezoid(m) ; torch.randint_like(x, n)
torch.grid_sampler(x, x, 3, 3, False) ; torch.lstm(x, x) ; torch.gru(x, x, [x], True, 'a', 0., True, False, False) ; torch.lstm_cell(x, x, x, x)
F.fold(0, 4, 2) ; F.grid_sample(v, v, align_corners=1)
torch.ldexp(x.bfloat16(), n.byte()) ; F.max_unpool2d(v, v.long(), -3) ; F.max_unpool3d(x, n, (2, 2, 2), (2, 2)) ; F.bilinear(x, n, x) ; m.__ior__(x)
torch.lstm(v[0], (x,), [x], True, 1, 0., True, False, False) ; torch.embedding_renorm_(r, i, 1., 2.) ; torch.polygamma(n[0, 0], x)
torch.vander(x[0].bfloat16()) ; torch.as_strided_scatter(x[:, ::2], y, (2, 2), (4, 1)) ; torch.as_strided_scatter(x.t(), y, (2, 2), (3, 1), 1)
torch.broadcast_shapes(x) ; torch.softmax(x, 2**63) ; x.sum(2**63) ; torch.zeros((2, 2**63)) ; torch.abs_(1) ; torch.tensor_split(x, 5)

# views of other widths
x.view(torch.float64) ; n.int()[:, 1:].view(torch.int64) ; n.int().view(-1)[1:5].view(torch.int64) ; n.byte().view(-1)[2:4].view(torch.int16)
torch.zeros(3, 6, dtype=torch.uint8)[:, :4].view(torch.int32) ; torch.zeros(9, dtype=torch.uint8)[1:].view(torch.int64)

# what is looked at first
torch.max_pool1d(x, (1, 1)) ; F.adaptive_avg_pool2d(v, (2., None)) ; F.adaptive_avg_pool2d(v.long(), (None, None)) ; F.adaptive_max_pool2d(v, x[0, 0])
F.adaptive_max_pool1d(x, (2**63,)) ; F.adaptive_avg_pool1d(n, 1) ; torch.adaptive_max_pool1d(x, None) ; F.max_unpool2d(v.byte(), v.long() - 9, 2)
F.max_unpool1d(x, n, 0) ; F.max_unpool3d(x, n, (1, 2, 2), 1, (1, .5, 1)) ; F.fractional_max_pool2d(x, (1, 1), 1)
F.fractional_max_pool2d(v, 2, output_ratio=.5) ; F.fractional_max_pool3d(x, (1, 1), (1, 1), None, True, x) ; F.lp_pool2d(v, 2., (1,))
F.lp_pool1d(x, 2., 1.5) ; F.lp_pool2d(v, 2., x[0, 0]) ; F.dropout(x, torch.tensor(3)) ; F.dropout1d(object, 2.) ; F.feature_alpha_dropout(x, n[0, 2])
F.sigmoid([1]) ; F.tanh(()) ; F.gumbel_softmax([1]) ; F.hardshrink(x, i) ; F.ctc_loss(v[0], n, (2, 2.), (1, 1))
torch.ctc_loss(n.reshape(3, 2, 1), n, (9,), (1, 1)) ; F.triplet_margin_with_distance_loss(x, x, x, distance_function=x) ; F.soft_margin_loss(n, x)
F.soft_margin_loss(x[0], x) ; F.huber_loss(n, x) ; F.hinge_embedding_loss(n, x) ; F.hinge_embedding_loss(n, x, 2.5, reduction='none')
F.poisson_nll_loss(x, -1) ; torch.poisson_nll_loss(x, x, False, False, .1, True) ; F.unfold(x, 1) ; F.unfold(x[0], 1) ; F.fold(x, (2, 2), (1,))
F.embedding(i, x, padding_idx=True) ; F.affine_grid(n, 2, align_corners=True) ; F.pad(x, (1, 0, 2), mode='bilinear') ; F.nll_loss(n, x[:, 0])
F.elu_(x - 3, .8, 1.1, 2) ; F.elu_(m, scale=3) ; F.hardtanh_(x, 5, 2.) ; F.hardtanh(x, x) ; F.leaky_relu(x.bfloat16(), 1e300) ; F.threshold(x, 1j, 2.)
F.threshold(x, 2 + 0j, 7) ; F.rrelu(x, 2, float('inf')) ; F.layer_norm(x.bfloat16(), (3,), m[0]) ; F.batch_norm(n, x[0], x[0].double())
F.instance_norm(v, i.float()) ; F.instance_norm(v, i, i.float()) ; torch.instance_norm(x[0], None, None, None, None, True, .1, 1e-5)
F.rms_norm(x[0], (2, 3)) ; torch.bmm(m[None], x.T[None]) ; x.mv(x[0, 0]) ; x[0, 0].mv(x[0]) ; x @ x[0, 0] ; torch.linalg.cross(m, x) ; m.trace()
torch.linalg.multi_dot(x) ; torch.einsum('ij,j', x, i.repeat(2)[:3]) ; torch.einsum('ij,j->ij', x, n[0]) ; torch.cdist(n, x, compute_mode='none')
torch.linalg.vector_norm(x, i[:1]) ; torch.linalg.vector_norm(x, dtype=torch.float16) ; torch.linalg.tensorinv(v[0], ind=True)
torch.orgqr(x.T, x[0, 0]) ; torch.lu_unpack(x[:, :2], i.int()) ; torch.linalg.lu_solve(x[:, :2], i.int(), x)
torch.linalg.tensorsolve(x[:, :2].half(), x[0, :2]) ; x.lu(None) ; x.aminmax(dim=(1,)) ; x.max(i[0], keepdim=True) ; x.nanmedian(None, True)
torch.nanmean(x, 0, dtype=torch.int32) ; torch.logcumsumexp(n, 5) ; x.sum((0, True)) ; x.permute((1, False)) ; x.split(x) ; x.split(i) ; x.chunk(True)
x.select(0, 1.) ; torch.select_copy(x, 0, 1.5) ; torch.narrow(x, 0, True, 1) ; torch.roll(x, (1.5,)) ; x.roll((True, 1), (0, 1)) ; x.flip(())
x[0, 0].flip(-1) ; x.expand(2, -9) ; x.size(2**63) ; x.as_strided((2, 1)) ; torch.as_strided(x, (2, -1), (1, 1)) ; torch.cartesian_prod(x)
torch.slice_copy(x, step=0) ; torch.view_copy(x.T, (2, 3)) ; torch.diag(x, -2**63) ; torch.round(x, decimals=-2**63)
torch.tril_indices(2, 1, dtype=torch.float64) ; torch.tril_indices(2, 1, requires_grad=True) ; torch.tril_indices(i[1], 2)
torch.unravel_index(i, (1e300, 4)) ; torch.range(1, .5, 2) ; torch.range(0, -float('inf')) ; torch.linspace(i, 1, 5) ; torch.logspace(i, 1, 5)
torch.scalar_tensor(i) ; torch.tensor([1, i[:1], float('nan')]) ; torch.randperm(2**63) ; torch.isin(True, n) ; torch.is_conj(1) ; torch.is_neg(())
torch.deg2rad(x + 0j) ; torch.pow(n, 2**63) ; torch.add(x, x, alpha=True) ; torch.rsub(x, n, alpha=True) ; x.nan_to_num(1., 1., i)
torch.mvlgamma(x + 9, 1.5) ; torch.mvlgamma(x, 2**63) ; torch.polygamma(2**31, x) ; torch.special.hermite_polynomial_h(x, float('inf'))
torch.special.laguerre_polynomial_l(x, float('nan')) ; torch.special.chebyshev_polynomial_t(x, 1j) ; torch.fft.rfftfreq(2, d=1j)
torch.fft.fftfreq(2, d=i) ; x.istft(2.) ; torch.stft(x, 1, 2**63 - 1, center=False, return_complex=True) ; torch.histc(m, min=3) ; x.histogram(True)
torch.histogramdd(x, 1, range=(0., 1.)) ; torch.bincount(i[:0], i) ; torch.cumulative_trapezoid(x, 0) ; torch.trapezoid(x, dx=i)
torch.trapezoid(x[0], torch.ones(2, 3)) ; x.index_add(0, i, x[0, 0]) ; x.index_copy(0, i, v) ; x.index_select(1, i + 9) ; x.index_put_((i + 9,), n[0])
r.index_put_((i + 9,), x[0, :2]) ; x.put(i, n[0]) ; x.scatter_reduce(float('nan'), j[:0], x, 'sum') ; x.scatter(0, j, 1j)
x.__setitem__(m.byte(), 1.) ; torch.embedding(x[:0], i) ; torch.embedding_renorm_(x[0], i, 1., 2.) ; torch.embedding_renorm_(n, i, 1., 2.)
x.nonzero_static(size=2, fill_value=1.5) ; torch.norm_except_dim(x[:0], 2) ; torch.nuclear_norm(x, 0, True) ; torch.frobenius_norm(x, 0, 1)
m.bernoulli_(.5) ; (x + 0j).bernoulli_(.5) ; n.normal_() ; n.uniform_() ; n[:0].exponential_() ; x.exponential_(i) ; torch.bernoulli(n[:0])
torch.binomial(x, i.float()) ; n.int().cumsum_(0) ; m.cumsum_(0) ; x.lt_(1j) ; x.fill_diagonal_(1., 1) ; x.svd(some=0) ; x.unique(return_counts='a')
torch.segment_reduce(x, 'sum', lengths=x) ; F.conv_transpose2d(v.int(), w) ; F.conv_transpose2d(v.double(), w.double(), w[0, 0, 0].int()[:1])
torch.lstm(x, (x, x), [x], True, 1, 0., True, False, False) ; torch.poisson(x * float('inf')) ; x.repeat_interleave() ; n[0].repeat_interleave()
torch.tensor_split(x, True) ; x.std(0, 0)
torch.dist(x, m) ; x.repeat_interleave(2, 0, output_size=1) ; x.tensor_split((1, None)) ; torch.dstack(x)
torch.tensordot(m, x, 1) ; torch.logit(x, 1e300)
torch.histogram(x, x[0, 0]) ; F.max_pool1d_with_indices(n, 2) ; torch.adaptive_max_pool1d(v[0, :, :0], 1) ; F.adaptive_max_pool1d(x[:0], 1)
torch.randperm(i[1])

# leaves and memory that is not written to
r.logical_not_() ; r.logical_and_(x) ; r[0].logical_or_(x) ; (r * 2).logical_xor_(x) ; torch.logical_or(x, m, out=r) ; torch.feature_dropout_(r, .5, False)
F.dropout(r, .5, False, True) ; F.dropout2d(r, .5, False, True) ; F.alpha_dropout(r, 0., True, True) ; F.dropout(r, .5, True, True)
torch.dropout_(r[:0], .5, True) ; torch.dropout_(r[0], .5, True) ; x[:, :0].expand(2, 2, 0).clamp_max_(1) ; torch.ones(1, 0).expand(3, 0).add_(1)
F.batch_norm(x, r[0], x[0]) ; F.batch_norm(n, x[0], r[0], training=True) ; F.instance_norm(v, r[0, :2]) ; F.instance_norm(v, x[0, :2], r[0, :2])

# infinities
torch.linalg.svdvals(x / 0) ; torch.linalg.cond(y / m[:, 1:]) ; torch.linalg.pinv(y / m[:, 1:]) ; torch.linalg.matrix_rank(y / m[:, 1:])
torch.linalg.svdvals(torch.stack([y / m[:, 1:], y])) ; torch.linalg.matrix_norm(y / m[:, 1:], 'nuc') ; torch.linalg.eigvals(y / m[:, 1:])
torch.linalg.eig(y / m[:, 1:]) ; torch.linalg.eigvals((y / m[:, 1:]).requires_grad_()) ; torch.svd(y / m[:, 1:]).S

# data
torch.as_tensor([1, (), 3]) ; torch.tensor([1, [2]]) ; torch.tensor([[1., 2.], [3., (4.,)]]) ; torch.tensor([(), 1]) ; torch.tensor([[[]], 2])
torch.tensor([1, None]) ; torch.tensor([[1., 2.], (object, 4., 4.)]) ; torch.tensor([[1., 2.], (3., 4., 4.)]) ; torch.tensor(['ab']) ; torch.tensor([1, 'ab'])
torch.tensor({}) ; torch.tensor(b'ab') ; torch.tensor([{}]) ; torch.tensor([None], dtype=torch.float32) ; torch.tensor([{1: 2}], dtype=torch.int64)
torch.tensor([[[1]], [[2]], [3]]) ; torch.tensor([[1, 2], 'ab'], dtype=torch.int64) ; torch.tensor([1, range(3)]) ; torch.tensor([[1, 2], [3]])
torch.asarray((1, np.float64(.5))) ; torch.tensor([True, np.float64(2.5)]) ; torch.tensor([np.bool_(1), 1.5]) ; torch.tensor([np.float16(1), 1.5])
torch.tensor([1, torch.ones(()).double()]) ; torch.tensor([n[0, 0].int(), n[0, 0].short()])
torch.tensor([np.uint64(3), 2]) ; torch.tensor([[np.int8(1)], [2.]])
torch.tensor([x[0, 0], 2], dtype=torch.int32) ; x.new_tensor((x[0, 0], 2), dtype=torch.int32) ; torch.tensor([n[0, 0]], dtype=torch.bool)
torch.tensor([2**70]) ; torch.tensor([2**70, 1.5]) ; torch.tensor([2**63, -1])
torch.tensor([np.int64(300)], dtype=torch.uint8) ; torch.Tensor([1, 'a'])
torch.tensor([np.array([1, 'a'], dtype=object)]) ; torch.tensor([2, x[0]])

# in PyTorch's order
x.size(True) ; x.size(n[0]) ; x.stride(True) ; x.stride(2**63) ; x.stride(5) ; x[0, 0].stride(0) ; torch.fft.fftn(x, (2**63,)) ; torch.fft.rfft(x, 2**63)
torch.lu_solve(y, y, i[0].int() + 1)
torch.lu_unpack(x, torch.tensor([2, 2, 1]).int()) ; F.fractional_max_pool3d(x, True, (0, 2)) ; F.fractional_max_pool2d(v.byte(), 2, output_size=1.5)
F.fractional_max_pool3d(x, (1, 1), (1, .5), 1., True, x) ; F.fractional_max_pool3d(x[:, :0], (3,), output_ratio=2., _random_samples=x)
F.fractional_max_pool2d(v, 2, output_size=(2,)) ; F.fractional_max_pool2d(v, 2, output_size=2, _random_samples=v[0].double())
F.fractional_max_pool2d(v, 2, output_size=2, _random_samples=v[0, :1, :, :2]) ; F.fractional_max_pool2d(v, 2, output_size=2, _random_samples=x)
F.fractional_max_pool2d(v[:, :, :0], 1, output_size=1) ; torch.ctc_loss(n[None], x, x, n) ; F.hinge_embedding_loss(x, n, True)
F.unfold(v, 1, dilation=n[0, 0]) ; F.unfold(v, i + 1) ; F.unfold(v, 'ab') ; F.fold(torch.ones(1, 4, 4), i + 4, 2) ; F.unfold(v, 1, stride=range(1, 3))
torch.linalg.diagonal(m, offset=torch.tensor(1))
torch.trapezoid(x[:, :0], x[0]) ; torch.trapezoid(m[:, :0], x[0]) ; F.softmin(m, dim=(0, 1)) ; F.softmin(x, dim='a') ; F.softmin(x, dim=1, dtype=torch.float64)
x.scatter(1, j, x[:1, :, None]) ; x.scatter_add(1, j, v[0]) ; x.scatter(1, j, x[0, 0]) ; x.scatter(0, j, x[0]) ; torch.linalg.lu_factor(n[:0].byte())
torch.linalg.lu(x[:0].half())
x.scatter_reduce(1, j, v[0], 'amax') ; x[0].scatter(0, i[0], x[0, 0])
torch.cross(m, x[:, :1]) ; torch.baddbmm(n.byte(), v[0] > 1, v[0]) ; torch.baddbmm(v[0], v[0].double(), v[0]) ; torch.bmm(v[0] > 1, v[0, :, :3])
torch.rms_norm(x, (1, 2, 3), x[0, 0]) ; torch.group_norm(x[0], 1) ; torch.group_norm(x[0, 0], 1) ; F.group_norm(x[0], 1)
F.multilabel_margin_loss(n, m.float()) ; F.multi_margin_loss(n, x[:, 0]) ; F.soft_margin_loss(x, y, reduction='a') ; torch.histogramdd(n, 2, range=(0., 1.))
torch.norm(n, 2., 1, dtype=2.) ; torch.norm(x, keepdim='a') ; x.norm(keepdim=1) ; torch.norm(x, 1j) ; torch.linalg.vector_norm(x, 2 + 0j)
torch.linalg.matrix_norm(x, 1j) ; (x + 0j).max(0) ; (x + 0j).min(9) ; (x[:0] + 0j).max(0) ; (x + 0j).median(9) ; (x + 0j).sort(9)
torch.range(0., 1, float('nan')) ; torch.fft.fft2(x, dim=None) ; torch.fft.hfft2(x, dim=None) ; torch.fft.fftn(x.half(), dim=(0, 5))
torch.fft.rfftn(x.half(), dim=(5,)) ; torch.fft.irfftn(x.bfloat16(), dim=(5,)) ; torch.fft.fftn(x.half(), s=(1, 2, 3)) ; torch.fft.ihfftn(x.half(), dim=(1,))

# numbers out of range
torch.randint(0, 2**63, (2,)) ; torch.randint(2**64, (2,)) ; torch.randint(-2**64, 5, (2,)) ; n.random_(0, 2**63)
torch.remainder(torch.arange(-300., 300.), torch.tensor(float('inf'))) ; torch.remainder(torch.arange(1., 300.), -float('inf'))
torch.fmod(torch.arange(-300., 300.), torch.tensor(float('inf'))) ; torch.floor_divide(torch.arange(1., 300.), torch.tensor(float('inf')))
x.clamp(-2, 1e300) ; x.clamp(max=1e39) ; x.clamp_min(-1e39) ; x.half().clamp(0, 1e6) ; x.bfloat16().clamp(-1e39, 2) ; n.clamp(0, 1e300)
x.double().clamp(-1, 1e300) ; x.clamp(-float('inf'), 2) ; F.hardtanh(x, -1e300, 1.) ; F.hardtanh(x, -float('inf'), 2.)

# dtypes
torch.bitwise_and(x, x) ; x.long().bitwise_and_(1.5) ; n.add_(1.5) ; n.mul_(x) ; n.div_(2) ; x.add_(1j) ; m.add_(1) ; n.copysign_(x) ; n.exp_() ; ~x
torch.mean(n) ; n.softmax(0) ; torch.sqrt(m) ; torch.fmod(x, 1j) ; torch.div(x, 1j, rounding_mode='floor') ; torch.copysign(x, 1j) ; x < 1j
torch.mm(x, n.T) ; torch.matmul(x, x.double().T) ; torch.dot(x[0], n[0]) ; x.index_add(0, i, n) ; x.index_copy(0, i, n) ; x.scatter(0, j, n) ; -m
m - m ; torch.sign(x + 0j) ; torch.signbit(x + 0j) ; torch.floor(x + 0j) ; torch.max(x + 0j) ; torch.sort(x + 0j) ; torch.topk(m, 1)
torch.unravel_index(x, (2, 3)) ; n.requires_grad_() ; torch.tensor([1], requires_grad=True) ; x.index_select(0, x[0]) ; torch.gather(x, 0, x)
x.masked_fill(x, 1.) ; torch.full_like(n, 1j) ; torch.complex(x, n) ; torch.polar(n, n) ; torch.linalg.inv(n) ; torch.histc(n) ; torch.bincount(x)
torch.where(x, x, x) ; x.to('nope') ; F.embedding(x, x)

# out=
torch.add(x, x, out=n) ; torch.add(x, x, out=x.expand(2, 2, 3)[0]) ; torch.add(r, x, out=x) ; torch.add(x, x, out=r)
torch.mm(x, x.T, out=torch.zeros(2, 2).double()) ; torch.cumsum(x, 0, out=n) ; torch.max(x, 0, out=x) ; torch.max(x, 0, out=(x[0],))
torch.cat([x, x], out=n) ; torch.sort(x, out=(x, x)) ; torch.exp(x, out=torch.zeros(1).expand(2, 3)) ; torch.sum(x, 0, out='a')
torch.softmax(x, 0, out=n) ; torch.eye(2, out=1) ; torch.alias_copy(x, out=x.double()) ; torch.zeros(2, out=n, dtype=torch.float32)
torch.max(x, out=torch.zeros(()).double())

# in place
r.add_(1) ; r[0].mul_(2) ; r.view(6).zero_() ; x[:1].expand(2, 3).add_(1) ; x.view(6)[1:].add_(x.view(6)[:-1]) ; x.add_(torch.ones(4, 2, 3))
x.clamp_(x + 0j) ; x.squeeze_('a') ; x.t_(1) ; x.transpose_(0) ; x.index_fill_(0, i, 'a') ; x.masked_fill_(1, 1) ; x.scatter_(0, j, 'a')
x.copy_('a') ; x.fill_('a') ; x.exp_(1) ; x.fill_(x) ; x.normal_(0, -1) ; x.uniform_(1, 0) ; x.random_(5, 1) ; x.bernoulli_(2.) ; x.geometric_(2)
x.exponential_(-1) ; n.normal_() ; x.resize_('a')

# what would go through
x.sum(keepdim=True) ; torch.sum(x, keepdims=False) ; x.mean(keepdim=False) ; x.prod(keepdim=False) ; x.max(keepdim=False) ; torch.median(x, keepdim=False)
x.std(keepdim=True) ; x.argmax(keepdim=True) ; x.nansum(keepdim=True) ; x.sum(None, keepdim=True) ; x.norm(.5, 1, 0) ; torch.norm(x, 'fro', (0, 1), 1)
torch.polygamma(2**63, x) ; x.polygamma(2**63) ; torch.slice_copy(x, start=2**63) ; torch.slice_copy(x, step=True) ; x.round_(decimals=2**63)
n.round_(decimals=None) ; x.tril_(2**63) ; x.triu(-2**63 - 1) ; x.diag(2**63) ; n.short().clip_(2**15) ; n.byte().clamp(-1) ; n.byte().clamp(-256)
torch.constant_pad_nd(x, (1, torch.tensor(1.))) ; torch.constant_pad_nd(x, (.5, -1)) ; torch.hardshrink(x, 1j) ; F.softshrink(x, 1j) ; F.elu(x, 1j)
F.leaky_relu(x, 1j) ; F.softplus(x, 1j) ; F.softplus(x, threshold=1e300) ; x.scatter_reduce_(1, j, -1, 'amax') ; torch.norm_except_dim(x, 2., 0)
F.sigmoid(x, out=y) ; F.tanh(x, out=y) ; torch.fft.irfftn(x, (float('nan'), 1)) ; torch.fft.irfftn(x, True) ; x.topk(1, dim=None)
x.vsplit(torch.tensor(3)) ; x.vsplit(torch.tensor([1])) ; torch.unravel_index(i, (np.int64(1), 4)) ; torch.addmm(y, x, x.T, alpha=1j)
torch.addmm(y, x, x.T, beta=1e300) ; torch.addmv(x[0], x.T, y[0], beta=1j) ; torch.baddbmm(x[None], y[None], x[None], alpha=1e300)
n.new_tensor((torch.tensor(1.), 2), dtype=torch.int32) ; torch.tensor([[torch.tensor(1.5), 2]], dtype=torch.bool) ; torch.logspace(0, 1j, 4)
torch.logspace(torch.tensor(1j), 1, 3) ; torch.logspace(0, 1j, 3, dtype=torch.float32) ; torch.arange(1, torch.tensor([3]), 2)
torch.unique(x[0, 0], dim=0) ; torch.unique_consecutive(x[0, 0], dim=1j) ; x.unique_consecutive(1, None) ; torch.cov(x, correction=True)
torch.hinge_embedding_loss(x, 1j)

# what the parser takes all the same
torch.add(x, 2, x) ; x.add(2, x) ; x.sub(2, x) ; torch.addmm(2, y, x, x.T) ; torch.addcmul(x, 2, x, x) ; x.sum(0, True) ; x.flip(0, 1) ; x.flip(0)
x.permute(1, 0) ; x.view(3, 2) ; x.view((3, 2)) ; x.view(size=(3, 2)) ; x.view(dtype=torch.int32) ; x.hsplit(1, 2) ; torch.hsplit(x, indices=[1])
torch.hsplit(x, sections=3) ; x.tile(2, 1) ; x.repeat(2, 1) ; x.expand(torch.tensor(2), 3) ; torch.roll(x, torch.tensor(1), 0)
torch.fft.fftn(x, dim=torch.tensor(0)) ; torch.roll(x, 1, []) ; torch.histc(x, min=torch.tensor(0)) ; torch.addmm(n @ n.T, n, n.T, beta=1+0j)
torch.tril(x, torch.tensor([1])) ; torch.sum(x, [0]) ; torch.exp(x, out=None) ; torch.block_diag() ; torch.broadcast_tensors()
x.masked_fill(m, torch.tensor(2+0j)) ; torch.cumsum(x, axis=1) ; torch.atleast_1d([x, x]) ; torch.histogram(x)
"""  # noqa: E501


def expressions():
    for line in CALLS.splitlines():
        if line and not line.startswith("#"):
            yield from line.split(" ; ")


def tensors(torch):
    """The names that the expressions use, made afresh."""
    x = torch.tensor([[1., 2., 3.], [4., 5., 6.]])
    return {"torch": torch, "np": np, "F": torch.nn.functional, "x": x, "y": torch.ones(2, 2),
            "n": torch.tensor([[1, 2, 3], [4, 5, 6]]), "m": x > 2, "i": torch.tensor([0, 1]),
            "j": torch.tensor([[0, 1, 1]]), "r": torch.ones(2, 3, requires_grad=True),
            "v": torch.ones(1, 2, 4, 4),
            "w": torch.ones(1, 2, 2, 2)}


@pytest.mark.parametrize("expression", list(expressions()))
def test_call(expression):
    """A call raises the same exception and first line as PyTorch's, or returns the same result; arguments are
    unchanged."""
    def program(torch):
        torch.manual_seed(0)
        names = tensors(torch)
        try:
            return eval(expression, dict(names))
        except Exception:
            for name, before in tensors(torch).items():
                if isinstance(before, torch.Tensor):
                    assert names[name].dtype == before.dtype and names[name].equal(before), name
            raise
    same(program)


@pytest.mark.parametrize("name, shapes", [("mm", [(2, 3), (2, 3)]), ("bmm", [(2, 3), (2, 3)]),
                                          ("addmm", [(2,), (2, 3), (4,)]), ("baddbmm", [(2, 3)] * 3)])
def test_products_in_other_dtypes(name, shapes):
    """out_dtype= is the dtype of the matrices, or float32 for halves: PyTorch has no other products, and none at all on
    the CPU.
    """
    for torch in (tensorgrad, pytest.importorskip("torch")):
        for wanted in ("int8", "complex64", "bfloat16"):
            with pytest.raises(NotImplementedError,
                               match=f"Could not run 'aten::{name}.dtype' with arguments from the 'CPU' backend"):
                getattr(torch, name)(*(torch.ones(shape) for shape in shapes), getattr(torch, wanted))


@pytest.mark.parametrize("pivots", [[2], 2])
def test_too_few_pivots(pivots):
    """PyTorch reads past their end, and mostly finds something that is no pivot."""
    with pytest.raises(RuntimeError, match="pivots passed to lu_unpack must be between 1 and LU.size"):
        tensorgrad.lu_unpack(tensorgrad.ones(2, 2), tensorgrad.tensor(pivots).int())


def test_products_of_halves_in_single_precision():
    """The sum of many halves is that of their values in float32."""
    half = tensorgrad.full((1, 4096), 1.5).half()
    out = tensorgrad.mm(half, half.T, tensorgrad.float32)
    assert (out.dtype, out.item()) == (tensorgrad.float32, 9216.)


def test_successful_calls_read_no_signatures():
    """The table of signatures is for calls that failed."""
    from support import fresh_process
    assert fresh_process("""
        import sys, tensorgrad as torch
        x = torch.ones(2, 3)
        torch.softmax(x.sum(dim=0, keepdim=True).add(x, alpha=2), dim=1).view(3, 2).topk(1, dim=0)
        print('tensorgrad.api._signatures' in sys.modules)
        try: torch.exp('a')
        except TypeError as error: print(error)
    """.replace("\n        ", "\n")) == "False\nexp(): argument 'input' (position 1) must be Tensor, not str\n"


def test_every_row_names_a_function_and_its_arguments():
    """Each name of the tables is one of ours, and a parameter without kind in a row is one of the function's."""
    from tensorgrad.api import _signatures
    without = "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell".split()       # of torch._VF
    for name in _signatures._table("OVERLOADS"):
        found = _signatures.function_of(name)
        assert found is not None or name in without or name.startswith("fractional_max_pool"), name
        assert _signatures.signatures(name)
    for name in _signatures._table("METHODS"):
        assert _signatures.signatures(name, True) and hasattr(tensorgrad.Tensor, name)
    for name in _signatures._interpreted():
        function = getattr(tensorgrad.nn.functional, name, None) or getattr(tensorgrad, name)
        assert _signatures.handed_on(name, function)
    missing = [name for name in _signatures.PYTHON if not hasattr(tensorgrad, name)
               and not hasattr(tensorgrad.Tensor, name)]
    assert not missing


class Thing:
    """Something that no function takes."""


# refused by code of their own in one of the libraries, not by the parser
BY_THEMSELVES = set("""dequantize from_numpy to_dlpack nn.functional.logsigmoid nn.functional.rrelu_ rrelu_ seed
     initial_seed manual_seed set_flush_denormal Tensor.apply_ Tensor.as_subclass Tensor.copy_ Tensor.cuda
    Tensor.is_contiguous Tensor.map_ Tensor.map2_ Tensor.mtia Tensor.new Tensor.nonzero Tensor.numpy Tensor.random_
    Tensor.record_stream Tensor.requires_grad_ Tensor.retain_grad Tensor.size Tensor.stride Tensor.type
    Tensor.index_put Tensor.index_put_ Tensor.to_sparse_csc Tensor.to_sparse_csr
    """.split())


def compiled_functions(torch):
    """(path, ours, PyTorch's) of the public functions and methods that PyTorch compiles."""
    for space in ("", "linalg", "fft", "special", "nn.functional"):
        ours, theirs = tensorgrad, torch
        for part in filter(None, space.split(".")):
            ours, theirs = getattr(ours, part), getattr(theirs, part)
        for name in sorted(ours.__all__ if space else tensorgrad.api.FUNCTIONS):
            yield f"{space}.{name}".lstrip("."), getattr(ours, name), getattr(theirs, name, None)
    for name in sorted(vars(tensorgrad.Tensor)):
        if (not name.startswith("_") and name not in ("backward", "detach", "detach_")
                and callable(getattr(torch.Tensor, name, None))):
            yield f"Tensor.{name}", getattr(tensorgrad.ones(2), name), getattr(torch.ones(2), name)


@pytest.mark.parametrize("call", ["f()", "f(*12 * [Thing()])", "f(foo=1)"])
def test_pytorch_knows_the_same_signatures(call):
    """Refusals of calls that fit nothing name arguments, kinds, defaults and overloads: of functions in full, of
    methods in the first line.
    """
    torch = pytest.importorskip("torch")

    def refusal(f):
        with warnings.catch_warnings(), pytest.raises(Exception) as raised:
            warnings.simplefilter("ignore")
            eval(call, {"f": f, "Thing": Thing})
        return f"{raised.type.__name__}: {raised.value}"
    different, checked = {}, 0
    for path, ours, theirs in compiled_functions(torch):
        if isinstance(theirs, (FunctionType, MethodType, type, type(None))) or path in BY_THEMSELVES:
            continue
        try:
            wanted = refusal(theirs)
        except pytest.fail.Exception:       # it takes this
            continue
        if (wanted.startswith("TypeError: Tensor.") or "invalid combination" in wanted and "Tensor." in path
                and "expected (" in wanted):
            continue                        # `Tensor.abs() takes no arguments`; a deprecated keyword
        found, checked = refusal(ours), checked + 1
        if path.startswith("Tensor."):
            found, wanted = found.split("\n")[0], wanted.split("\n")[0]
        if found != wanted:
            different[path] = found, wanted
    assert checked > 800 and not different


def test_rows_say_no_more_than_annotations():
    """The kind that a row gives to a parameter is one that the function's annotation allows."""
    from tensorgrad.api import _signatures
    holds = {"Operand": {"Tensor", "Number"}, "Ints1": {"Ints", "int"}, "Number": {"float", "int"}, "Index": {"int"}}
    found = set()
    for table, method in (("OVERLOADS", False), ("METHODS", True)):
        for name in _signatures._table(table):
            function = vars(tensorgrad.Tensor).get(name) if method else _signatures.function_of(name)
            own = ({} if function is None else {each[0].name: {p.kind for p in each}
                                                for each in _signatures.annotated(function, "input")})
            for p in (p for s in _signatures.signatures(name, method) for p in s.parameters if p.name in own):
                allowed = own[p.name].union(*(holds.get(kind, set()) for kind in own[p.name]))
                if p.kind not in allowed:
                    found.add((name, p.name))
    # of two results, any object
    assert found == {("max", "out"), ("min", "out"), ("median", "out"), ("nanmedian", "out"), ("type", "dtype")}
