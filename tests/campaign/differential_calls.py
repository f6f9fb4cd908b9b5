"""Valid calls of functions whose arguments must fit together, which the fuzzer changes: `names: arguments | arguments`.

`f(2, 3)` is a tensor of float32 numbers, `p` of positive ones, `c` of complex ones, `b` of bools, `i(5, 2, 3)` of
integers below 5, `sq` of matrices far from singular, `spd` of positive definite ones, `m` of zeros and ones, `q` of
numbers between them, `up` of ascending ones, `at` of the integers given, `labels` of numbers above 0, which is the
blank. A name with a dot is of a namespace, one that begins with a dot is a method.
"""

CALLS = """
mm matmul: f(3, 4), f(4, 5)
bmm: f(2, 3, 4), f(2, 4, 5)
mv: f(3, 4), f(4)
matmul linalg.matmul: f(3, 4), f(4) | f(2, 3, 4), f(4, 5) | f(2, 1, 3, 4), f(3, 4, 2)
dot vdot inner: f(4), f(4)
outer ger: f(3), f(4)
kron: f(2, 3), f(3)
addmm: f(3, 5), f(3, 4), f(4, 5), beta=2, alpha=3 | f(5), f(3, 4), f(4, 5)
addmv: f(3), f(3, 4), f(4)
addr: f(3, 4), f(3), f(4)
addbmm: f(3, 5), f(2, 3, 4), f(2, 4, 5)
baddbmm: f(2, 3, 5), f(2, 3, 4), f(2, 4, 5), beta=.5
addcmul addcdiv: f(3, 4), f(3, 4), p(4), value=.5
linalg.multi_dot: [f(2, 3), f(3, 4), f(4, 2)]
chain_matmul: f(2, 3), f(3, 4), f(4, 2)
tensordot: f(2, 3, 4), f(3, 4, 5), 2 | f(2, 3), f(3, 2), ([1], [0])
einsum: 'ij,jk->ik', f(2, 3), f(3, 4) | 'bij,bj', f(2, 3, 4), f(2, 4) | '...i,i', f(2, 3), f(3) | 'ii->i', f(3, 3)
bilinear nn.functional.bilinear: f(5, 3), f(5, 4), f(2, 3, 4), f(2)
linear nn.functional.linear: f(2, 4), f(3, 4), f(3)
cdist: f(3, 4), f(2, 4), p=1.5 | f(2, 3, 4), f(2, 5, 4)
cross linalg.cross: f(4, 3), f(4, 3)
linalg.vecdot: f(3, 4), f(3, 4)
trapezoid trapz cumulative_trapezoid: f(3, 4), f(4) | f(3, 4), dx=.5
inverse det logdet slogdet matrix_exp pinverse linalg.det linalg.inv linalg.inv_ex linalg.slogdet linalg.matrix_exp linalg.cond linalg.matrix_rank
    linalg.pinv linalg.eigvals linalg.svdvals linalg.matrix_norm linalg.lu_factor linalg.lu_factor_ex linalg.norm linalg.lu linalg.qr qr svd
    linalg.svd linalg.eig geqrf: sq(3, 3) | sq(2, 3, 3)
linalg.cholesky linalg.cholesky_ex cholesky linalg.eigh linalg.eigvalsh linalg.ldl_factor linalg.ldl_factor_ex cholesky_inverse: spd(3, 3) | spd(2, 3, 3)
linalg.solve linalg.solve_ex linalg.lstsq: sq(3, 3), f(3, 2) | sq(2, 3, 3), f(2, 3)
linalg.solve_triangular: sq(3, 3), f(3, 2), upper=True
triangular_solve: f(3, 2), sq(3, 3)
cholesky_solve: f(3, 2), sq(3, 3)
linalg.lu_solve: sq(3, 3), pivots(3), f(3, 2)
lu_solve: f(3, 2), sq(3, 3), pivots(3)
lu_unpack: sq(3, 3), pivots(3)
linalg.ldl_solve: sq(3, 3), pivots(3), f(3, 2)
linalg.householder_product orgqr: f(4, 3), f(3)
ormqr: f(4, 3), f(3), f(4, 2)
linalg.tensorinv: f(4, 6, 8, 3), ind=2 | sq(4, 2, 2), ind=1
linalg.tensorsolve: f(2, 3, 6), f(2, 3)
matrix_power linalg.matrix_power: sq(3, 3), 2 | sq(2, 3, 3), -1
conv1d nn.functional.conv1d: f(2, 4, 9), f(6, 2, 3), f(6), stride=2, padding=1, groups=2 | f(4, 9), f(6, 4, 3)
conv2d nn.functional.conv2d: f(2, 4, 6, 5), f(6, 2, 3, 3), f(6), stride=(2, 1), padding=1, groups=2 | f(1, 3, 5, 5), f(2, 3, 3, 3), padding='same'
conv3d nn.functional.conv3d: f(1, 2, 4, 4, 4), f(3, 2, 2, 2, 2), f(3), dilation=1
conv_transpose1d nn.functional.conv_transpose1d: f(2, 4, 5), f(4, 3, 3), f(3), stride=2, output_padding=1
conv_transpose2d nn.functional.conv_transpose2d: f(2, 4, 4, 4), f(4, 2, 3, 3), f(4), stride=2, padding=1, groups=2
conv_transpose3d nn.functional.conv_transpose3d: f(1, 2, 3, 3, 3), f(2, 2, 2, 2, 2)
conv_tbc nn.functional.conv_tbc: f(5, 2, 3), f(3, 3, 4), f(4)
nn.functional.unfold: f(1, 2, 5, 5), 2
nn.functional.fold: f(1, 8, 9), (4, 4), 2
max_pool1d avg_pool1d nn.functional.max_pool1d nn.functional.avg_pool1d: f(2, 3, 8), 2 | f(3, 8), 3, 2, 1
max_pool2d nn.functional.max_pool2d nn.functional.avg_pool2d nn.functional.max_pool2d_with_indices: f(2, 3, 6, 6), 2 | f(3, 6, 6), (3, 2), 2, 1
max_pool3d nn.functional.max_pool3d nn.functional.avg_pool3d: f(1, 2, 4, 4, 4), 2
nn.functional.lp_pool1d: f(2, 3, 8), 2., 2
nn.functional.lp_pool2d: f(2, 3, 6, 6), 2., 2
adaptive_avg_pool1d adaptive_max_pool1d nn.functional.adaptive_avg_pool1d nn.functional.adaptive_max_pool1d: f(2, 3, 8), 3
nn.functional.adaptive_avg_pool2d nn.functional.adaptive_max_pool2d: f(2, 3, 6, 6), 3 | f(3, 6, 6), (2, None)
nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool3d: f(1, 2, 4, 4, 4), 2
nn.functional.max_unpool1d: f(1, 2, 3), i(6, 1, 2, 3), 2
nn.functional.max_unpool2d: f(1, 2, 3, 3), i(36, 1, 2, 3, 3), 2
nn.functional.fractional_max_pool2d: f(1, 2, 6, 6), 2, output_size=3
nn.functional.interpolate nn.functional.upsample: f(1, 2, 4, 4), scale_factor=2 | f(1, 2, 4, 4), (3, 5), mode='bilinear' | f(1, 2, 4), 6, mode='linear'
nn.functional.grid_sample: f(1, 2, 4, 4), f(1, 3, 3, 2), align_corners=False
nn.functional.affine_grid: f(2, 2, 3), (2, 3, 4, 4), align_corners=False
nn.functional.pixel_shuffle pixel_shuffle: f(1, 4, 2, 2), 2
nn.functional.pixel_unshuffle pixel_unshuffle: f(1, 2, 4, 4), 2
nn.functional.channel_shuffle channel_shuffle: f(1, 4, 2, 2), 2
nn.functional.pad: f(2, 3, 4), (1, 1) | f(2, 3, 4, 4), (1, 1, 1, 1), mode='reflect' | f(2, 3, 4), (1, 2), mode='circular'
constant_pad_nd: f(2, 3), (1, -1)
batch_norm nn.functional.batch_norm: f(4, 3, 5), f(3), p(3) | f(4, 3), f(3), p(3), f(3), f(3), True
nn.functional.instance_norm: f(2, 3, 5), f(3), p(3)
layer_norm nn.functional.layer_norm nn.functional.rms_norm rms_norm: f(2, 3, 4), (4,), f(4) | f(2, 3, 4), (3, 4)
group_norm nn.functional.group_norm: f(2, 4, 5), 2, f(4), f(4)
nn.functional.local_response_norm: f(2, 4, 5), 3
nn.functional.normalize: f(3, 4), 2., 1
nn.functional.scaled_dot_product_attention: f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4) | f(3, 4), f(3, 4), f(3, 4), is_causal=True
nn.functional.embedding: i(5, 2, 3), f(5, 4) | i(5, 3), f(5, 4), padding_idx=1
nn.functional.embedding_bag: i(5, 2, 3), f(5, 4) | i(5, 6), f(5, 4), i(1, 2), mode='sum' | i(5, 4), f(5, 3), i(1, 1), mode='max'
embedding: f(5, 4), i(5, 2, 3)
nn.functional.one_hot: i(4, 3), 4
cross_entropy nn.functional.cross_entropy: f(4, 5), i(5, 4) | f(2, 5, 3), i(5, 2, 3), p(5) | f(4, 5), p(4, 5), label_smoothing=.1
nn.functional.nll_loss: f(4, 5), i(5, 4) | f(2, 5, 3), i(5, 2, 3), p(5)
nn.functional.multi_margin_loss: f(4, 5), i(5, 4)
nn.functional.multilabel_margin_loss: f(2, 4), i(4, 2, 4)
nn.functional.binary_cross_entropy: m(3, 4), m(3, 4)
nn.functional.kl_div kl_div nn.functional.l1_loss nn.functional.poisson_nll_loss nn.functional.multilabel_soft_margin_loss
    nn.functional.hinge_embedding_loss hinge_embedding_loss: f(3, 4), f(3, 4)
nn.functional.gaussian_nll_loss: f(3, 4), f(3, 4), p(3, 4)
nn.functional.margin_ranking_loss margin_ranking_loss: f(4), f(4), f(4)
nn.functional.cosine_embedding_loss cosine_embedding_loss: f(4, 3), f(4, 3), f(4)
nn.functional.triplet_margin_loss triplet_margin_loss nn.functional.triplet_margin_with_distance_loss: f(4, 3), f(4, 3), f(4, 3)
nn.functional.ctc_loss ctc_loss: f(6, 2, 4), labels(2, 3), (6, 6), (3, 2)
nn.functional.cosine_similarity cosine_similarity nn.functional.pairwise_distance pairwise_distance: f(3, 4), f(3, 4)
nn.functional.pdist pdist: f(4, 3)
nn.functional.prelu prelu: f(2, 3), f(3)
gather: f(3, 4), 1, i(4, 3, 2) | f(3), 0, i(3, 5)
scatter scatter_add .scatter_ .scatter_add_: f(3, 4), 1, i(4, 3, 2), f(3, 2)
scatter: f(3, 4), 0, i(3, 2, 4), 1.5
scatter_reduce: f(3, 4), 1, i(4, 3, 2), f(3, 2), 'amax' | f(3, 4), 0, i(3, 2, 4), f(2, 4), 'mean'
index_select: f(3, 4), 1, i(4, 5)
index_add index_copy .index_add_ .index_copy_: f(3, 4), 0, i(3, 2), f(2, 4)
index_fill: f(3, 4), 1, i(4, 2), 2.5
index_reduce: f(3, 4), 0, i(3, 2), f(2, 4), 'prod'
index_put index_put_: f(3, 4), (i(3, 2), i(4, 2)), f(2) | f(3, 4), (i(3, 2),), f(4), True
take: f(3, 4), i(12, 5)
put .put_: f(3, 4), i(12, 3), f(3)
take_along_dim: f(3, 4), i(3, 2, 4), 0
.__getitem__: f(3, 4), 1 | f(3, 4), (slice(None), i(4, 2)) | f(3, 4), i(3, 2, 2) | f(3, 4), b(3, 4) | f(2, 3, 4), (i(2, 3), ..., i(4, 3)) | f(3, 4), (None, 1)
    | f(5, 4), slice(1, 4, 2) | f(2, 3, 4, 5), (slice(None), i(3, 2), slice(1, 3), i(5, 2))
.__setitem__: f(3, 4), 1, f(4) | f(3, 4), i(3, 2), f(2, 4) | f(3, 4), b(3, 4), 1.5 | f(3, 4), (slice(None), i(4, 2)), f(3, 1)
masked_fill masked_scatter: f(3, 4), b(3, 4), f(3, 4)
masked_fill: f(3, 4), b(4), 2.
masked_select: f(3, 4), b(3, 4)
where: b(3, 4), f(3, 4), f(4) | b(3, 4), f(3, 4), 1.5
select_scatter: f(3, 4), f(4), 0, 1
slice_scatter: f(3, 4), f(2, 4), 0, 0, 2
diagonal_scatter: f(3, 3), f(3)
as_strided .as_strided_ as_strided_copy: f(3, 4), (2, 2), (1, 2), 1 | f(4), (2, 3), (0, 1)
as_strided_scatter: f(3, 4), f(2, 2), (2, 2), (4, 1)
view reshape .view .reshape view_copy: f(2, 6), (3, 4) | f(2, 6), (-1, 2)
.view: f(2, 6), dtype('int32') | f(2, 4), dtype('float64')
.expand broadcast_to expand_copy: f(3, 1), (2, 3, 4)
.repeat tile: f(2, 3), (2, 1)
unflatten: f(2, 6), 1, (2, 3)
permute permute_copy: f(2, 3, 4), (2, 0, 1)
movedim moveaxis: f(2, 3, 4), 0, 2 | f(2, 3, 4), (0, 1), (1, 0)
split_with_sizes split split_with_sizes_copy unsafe_split_with_sizes: f(5, 4), (2, 3)
cat concat stack hstack vstack: [f(2, 3), f(2, 3)]
block_diag cartesian_prod meshgrid broadcast_tensors: f(3), f(4)
unfold_copy .unfold: f(7, 2), 0, 3, 2
narrow narrow_copy: f(5, 4), 0, 1, 2
roll: f(3, 4), (1, -1), (0, 1)
rot90: f(3, 4), 1, (0, 1)
repeat_interleave: f(3, 2), 2, 0 | f(3, 2), i(3, 3), 0 | i(3, 4)
tensor_split: f(5, 4), 2 | f(5, 4), (1, 3)
combinations: f(4), 2
searchsorted: up(5), f(3)
bucketize: f(3, 4), up(5)
isin: i(5, 4), i(5, 3)
bincount: i(5, 6), p(6)
histogram: f(8), 4
histogramdd: f(8, 2), 3
multinomial: p(3, 4), 2
renorm: f(3, 4), 2., 0, 1.
quantile nanquantile: f(3, 4), .3, 1 | f(3, 4), q(2)
fft.fft fft.ifft fft.rfft fft.ihfft: f(3, 5) | f(6, 2), 4, 0
fft.irfft fft.hfft: c(3, 5)
stft: f(16), 8, 4, return_complex=True
istft: c(5, 5), 8
complex: f(3), f(3)
polar: p(3), f(3)
normal: f(3), p(3) | 0., 1., (3,)
binomial: p(3), m(3)
bernoulli poisson: m(3)
arange range: 5 | 1, 7, 2 | 0., 1., .25
linspace: 0., 1., 5
logspace: 0., 1., 4
full: (2, 3), 1.5
eye: 3, 4
randint: 5, (2, 3) | -3, 5, (4,)
randperm: 5
tril_indices triu_indices: 3, 4
empty_strided: (2, 3), (3, 1)
empty_permuted: (2, 3), (1, 0)
zeros ones rand randn empty: (2, 3)
tensor as_tensor asarray: [1, 2, 3] | [[1., 2.], [3., 4.]] | True
frombuffer: bytearray(16), dtype=dtype('float32')
scalar_tensor: 2.5
vander linalg.vander: f(3)
segment_reduce: f(5, 2), 'sum', lengths=at(2, 3)
unravel_index: i(12, 3), (3, 4)
lstm_cell: f(2, 3), (f(2, 4), f(2, 4)), f(16, 3), f(16, 4), f(16), f(16)
gru_cell: f(2, 3), f(2, 4), f(12, 3), f(12, 4), f(12), f(12)
rnn_tanh_cell rnn_relu_cell: f(2, 3), f(2, 4), f(4, 3), f(4, 4), f(4), f(4)
lstm: f(5, 2, 3), (f(1, 2, 4), f(1, 2, 4)), [f(16, 3), f(16, 4), f(16), f(16)], True, 1, 0., False, False, False
gru: f(5, 2, 3), f(1, 2, 4), [f(12, 3), f(12, 4), f(12), f(12)], True, 1, 0., False, False, False
rnn_tanh rnn_relu: f(5, 2, 3), f(1, 2, 4), [f(4, 3), f(4, 4), f(4), f(4)], True, 1, 0., False, False, False
nn.functional.linear_cross_entropy: f(4, 3), f(5, 3), i(5, 4)
"""  # noqa: E501
