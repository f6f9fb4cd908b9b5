"""The signatures of PyTorch's compiled functions, as its argument parser has them. Read when a call has failed: errors quote them.

A row is `names: signature | signature …`. In a signature, `?` allows None, a digit allows one number for a list of that
many, `~` marks it as deprecated and not shown; an `index` is an int that may also be a tensor or array of one element;
`out`, `outs` and `factory` abbreviate common keywords. A method has the signatures of the function without its `input`,
an in-place method those of the method, unless METHODS has its own.

INTERPRETED lists functions that PyTorch writes in Python, with their calls of compiled ones, `function -> compiled:
signature`: `a<b` passes the function's argument `b` as `a`, `.size` means that the argument must have this attribute,
and `_` is filled in by the function. A `probability` is checked before the call; in `sizes`, None means the input's
size.
"""

SHORTHANDS = {
    "out": "Tensor? out=None",
    "outs": "Tensors? out=None",
    "factory": "dtype? dtype=None, layout? layout=None, device? device=None, bool? pin_memory=False, bool? requires_grad=False",
}

FUNCTIONS = """
abs absolute acos acosh alias_copy angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh bitwise_not ceil conj_physical cos cosh
    deg2rad detach_copy digamma erf erfc erfinv exp exp2 expm1 fix floor frac hardsigmoid hardswish i0 inverse isneginf isposinf lgamma linalg_eigvals
    log log10 log1p log2 logical_not logsigmoid mish msort neg negative nonzero rad2deg reciprocal rsqrt sgn sigmoid sign signbit silu sin sinc sinh
    special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_digamma special_entr special_erf special_erfc special_erfcx
    special_erfinv special_exp2 special_expit special_expm1 special_gammaln special_i0 special_i0e special_i1 special_i1e special_log1p
    special_log_ndtr special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_ndtr
    special_ndtri special_psi special_sinc sqrt square t_copy tan tanh trunc view_as_complex_copy view_as_real_copy: Tensor input, *, out
adaptive_avg_pool1d adaptive_max_pool1d: Tensor input, ints1 output_size
add sub: Tensor input, Tensor other, *, Number alpha=1, out | ~Tensor input, Number alpha, Tensor other, *, out
addcdiv addcmul: Tensor input, Tensor tensor1, Tensor tensor2, *, Number value=1, out | ~Tensor input, Number value, Tensor tensor1, Tensor tensor2,
    *, out
adjoint argwhere conj corrcoef det detach fliplr flipud imag is_complex is_conj is_floating_point is_neg is_nonzero isfinite isinf isnan isreal
    linalg_matrix_exp logdet matrix_exp numel positive ravel real relu relu6 relu_ resolve_conj resolve_neg selu selu_ t trace view_as_complex
    view_as_real zero_: Tensor input
all any: Tensor input, *, out | Tensor input, ints? dim=None, bool keepdim=False, *, out | Tensor input, int dim, bool keepdim=False, *, out
allclose isclose: Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False
alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_: Tensor input, float p,
    bool train
amax amin: Tensor input, ints1? dim=None, bool keepdim=False, *, out
arctan2 atan2 fmax fmin gcd hypot igamma igammac inner kron lcm ldexp linalg_matmul logaddexp logaddexp2 logical_and logical_or logical_xor matmul
    maximum minimum mul nextafter special_gammainc special_gammaincc vdot: Tensor input, Tensor other, *, out
argmax argmin: Tensor input, int? dim=None, bool keepdim=False, *, out
bartlett_window blackman_window hann_window: int window_length, *, factory | int window_length, bool periodic, *, factory
bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor remainder: Tensor input, Tensor other, *, out | Number self, Tensor other |
    Tensor input, Number other, *, out
bmm mm: Tensor input, Tensor mat2, *, out | Tensor input, Tensor mat2, dtype out_dtype, *, out
cat concat concatenate stack: Tensors tensors, int dim=0, *, out
celu celu_: Tensor input, Number alpha=1.0
channel_shuffle native_channel_shuffle: Tensor input, index groups
cholesky cholesky_inverse: Tensor input, bool upper=False, *, out
chunk unsafe_chunk: Tensor input, int chunks, int dim=0
clamp clip: Tensor input, Tensor? min=None, Tensor? max=None, *, out | Tensor input, Number? min=None, Number? max=None, *, out
column_stack dstack hstack linalg_multi_dot row_stack vstack: Tensors tensors, *, out
copysign eq fmod ge greater greater_equal gt le less less_equal lt ne not_equal: Tensor input, Tensor other, *, out | Tensor input, Number other, *,
    out
cosine_embedding_loss margin_ranking_loss: Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1
cummax cummin: Tensor input, int dim, *, outs
cumprod cumsum: Tensor input, int dim, *, dtype? dtype=None, out
cumulative_trapezoid trapezoid: Tensor y, Tensor x, *, int dim=-1 | Tensor y, *, Number dx=1, int dim=-1
dsplit hsplit vsplit: Tensor input, int sections | Tensor input, ints indices
empty_like ones_like zeros_like: Tensor input, *, memory_format? memory_format=None, factory
fft_fft fft_hfft fft_ifft fft_ihfft fft_irfft fft_rfft: Tensor input, index? n=None, int dim=-1, str? norm=None, *, out
fft_fft2 fft_hfft2 fft_ifft2 fft_ihfft2 fft_irfft2 fft_rfft2: Tensor input, ints1? s=None, ints1 dim=(-2,-1), str? norm=None, *, out
fft_fftfreq fft_rfftfreq: int n, float d=1.0, *, out, factory
fft_fftn fft_hfftn fft_ifftn fft_ihfftn fft_irfftn fft_rfftn: Tensor input, ints1? s=None, ints1? dim=None, str? norm=None, *, out
fft_fftshift fft_ifftshift: Tensor input, ints1? dim=None
fill fill_: Tensor input, Tensor value | Tensor input, Number value
flip permute tile: Tensor input, ints dims
float_power pow: Tensor input, Tensor exponent, *, out | Number self, Tensor exponent, *, out | Tensor input, Number exponent, *, out
floor_divide multiply true_divide: Tensor input, Tensor other, *, out | Tensor input, Number other
frexp geqrf linalg_eig slogdet: Tensor input, *, outs
ger outer: Tensor input, Tensor vec2, *, out
grid_sampler grid_sampler_2d grid_sampler_3d: Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners
hardshrink softshrink: Tensor input, Number lambd=0.5, *, out
index_put index_put_: Tensor input, indices indices, Tensor values, bool accumulate=False
linalg_det linalg_inv: Tensor A, *, out
linalg_lu linalg_lu_factor: Tensor A, *, bool pivot=True, outs
linalg_matrix_power matrix_power: Tensor input, int n, *, out
log_softmax softmax: Tensor input, int dim, dtype? dtype=None, *, out
logcumsumexp unsqueeze_copy: Tensor input, int dim, *, out
logit special_logit: Tensor input, float? eps=None, *, out
logsumexp special_logsumexp: Tensor input, ints1 dim, bool keepdim=False, *, out
max min: Tensor input, *, out | Tensor input, Tensor other, *, out | Tensor input, int dim, bool keepdim=False, *, outs
max_pool1d max_pool1d_with_indices: Tensor input, ints1 kernel_size, ints1? stride=None, ints1 padding=0, ints1 dilation=1, bool ceil_mode=False
median nanmedian: Tensor input | Tensor input, int dim, bool keepdim=False, *, outs
moveaxis movedim: Tensor input, int source, int destination | Tensor input, ints source, ints destination
mse_loss multilabel_margin_loss soft_margin_loss: Tensor input, Tensor target, int reduction=1, *, out
mvlgamma special_multigammaln: Tensor input, int p, *, out
nanmean nansum: Tensor input, ints1? dim=None, bool keepdim=False, *, dtype? dtype=None, out
nanquantile quantile: Tensor input, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear", out | Tensor input, float q, int?
    dim=None, bool keepdim=False, *, str interpolation="linear", out
ones zeros: ints size, *, out, factory
polygamma special_polygamma: int n, Tensor input, *, out
rand randn: ints size, *, Generator? generator, out, factory | ints size, *, out, factory
rand_like randn_like: Tensor input, *, Generator? generator, memory_format? memory_format=None, factory | Tensor input, *, memory_format?
    memory_format=None, factory
rrelu rrelu_: Tensor input, Number lower=0.125, Number upper=0.3333333333333333, bool training=False, Generator? generator=None
special_airy_ai special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0: Tensor x, *, out
special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v special_chebyshev_polynomial_w
    special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p
    special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
    special_shifted_chebyshev_polynomial_w: Tensor x, Tensor n, *, out | Number x, Tensor n, *, out | Tensor x, Number n, *, out
special_xlog1py special_xlogy special_zeta xlogy: Tensor input, Tensor other, *, out | Number self, Tensor other, *, out | Tensor input, Number other,
    *, out
std var: Tensor input, ints1? dim, bool unbiased=True, bool keepdim=False, *, out | Tensor input, ints1? dim=None, *, Number? correction=None, bool
    keepdim=False, out | Tensor input, bool unbiased=True
std_mean var_mean: Tensor input, ints1? dim, bool unbiased=True, bool keepdim=False | Tensor input, ints1? dim=None, *, Number? correction=None, bool
    keepdim=False | Tensor input, bool unbiased=True
swapdims transpose: Tensor input, int dim0, int dim1
tril triu: Tensor input, index diagonal=0, *, out
tril_indices triu_indices: int row, int col, int offset=0, *, factory
adaptive_avg_pool2d: Tensor input, ints2 output_size, *, out
adaptive_avg_pool3d: Tensor input, ints3 output_size, *, out
adaptive_max_pool2d: Tensor input, ints2 output_size, *, outs
adaptive_max_pool3d: Tensor input, ints3 output_size, *, outs
addbmm: Tensor input, Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1, out | ~Number beta, Tensor input, Number alpha, Tensor batch1,
    Tensor batch2, *, out | ~Number beta, Tensor input, Tensor batch1, Tensor batch2, *, out
addmm: Tensor input, Tensor mat1, Tensor mat2, *, Number beta=1, Number alpha=1, out | Tensor input, Tensor mat1, Tensor mat2, dtype out_dtype, *,
    Number beta=1, Number alpha=1, out | ~Number beta, Tensor input, Number alpha, Tensor mat1, Tensor mat2, *, out | ~Number beta, Tensor input,
    Tensor mat1, Tensor mat2, *, out
addmv: Tensor input, Tensor mat, Tensor vec, *, Number beta=1, Number alpha=1, out | ~Number beta, Tensor input, Number alpha, Tensor mat, Tensor vec,
    *, out | ~Number beta, Tensor input, Tensor mat, Tensor vec, *, out
addr: Tensor input, Tensor vec1, Tensor vec2, *, Number beta=1, Number alpha=1, out | ~Number beta, Tensor input, Number alpha, Tensor vec1, Tensor
    vec2, *, out | ~Number beta, Tensor input, Tensor vec1, Tensor vec2, *, out
aminmax: Tensor input, *, int? dim=None, bool keepdim=False, outs
arange: Number end, *, out, factory | Number start, Number end, *, factory | Number start, Number end, Number step=1, *, out, factory
argsort: Tensor input, *, bool stable, int dim=-1, bool descending=False, out | Tensor input, int dim=-1, bool descending=False
as_strided: Tensor input, ints size, ints stride, index? storage_offset=None
as_strided_copy: Tensor input, ints size, ints stride, index? storage_offset=None, *, out
as_strided_scatter: Tensor input, Tensor src, ints size, ints stride, index? storage_offset=None
as_tensor: object data, *, dtype? dtype=None, device? device=None
asarray: object obj, *, dtype? dtype=None, device? device=None, bool? copy=None, bool requires_grad=False
avg_pool1d: Tensor input, ints1 kernel_size, ints1? stride=None, ints1 padding=0, bool ceil_mode=False, bool count_include_pad=True
avg_pool2d: Tensor input, ints2 kernel_size, ints2? stride=None, ints2 padding=0, bool ceil_mode=False, bool count_include_pad=True, int?
    divisor_override=None, *, out
avg_pool3d: Tensor input, ints3 kernel_size, ints3? stride=None, ints3 padding=0, bool ceil_mode=False, bool count_include_pad=True, int?
    divisor_override=None, *, out
baddbmm: Tensor input, Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1, out | Tensor input, Tensor batch1, Tensor batch2, dtype
    out_dtype, *, Number beta=1, Number alpha=1, out | ~Number beta, Tensor input, Number alpha, Tensor batch1, Tensor batch2, *, out | ~Number beta,
    Tensor input, Tensor batch1, Tensor batch2, *, out
batch_norm: Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool
    cudnn_enabled
bernoulli: Tensor input, *, Generator? generator=None, out | Tensor input, float p, *, Generator? generator=None
bilinear: Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None
binary_cross_entropy: Tensor input, Tensor target, Tensor? weight=None, int reduction=1, *, out
binary_cross_entropy_with_logits: Tensor input, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1
bincount: Tensor input, Tensor? weights=None, index minlength=0
binomial: Tensor count, Tensor prob, Generator? generator=None
broadcast_to: Tensor input, ints size
bucketize: Tensor input, Tensor boundaries, *, bool out_int32=False, bool right=False, out | Number self, Tensor boundaries, *, bool out_int32=False,
    bool right=False
can_cast: dtype from_, dtype to
cholesky_solve: Tensor input, Tensor input2, bool upper=False, *, out
clamp_max: Tensor input, Tensor max, *, out | Tensor input, Number max, *, out
clamp_min: Tensor input, Tensor min, *, out | Tensor input, Number min, *, out
clone: Tensor input, *, memory_format? memory_format=None
combinations: Tensor input, int r=2, bool with_replacement=False
complex: Tensor real, Tensor imag, *, out
constant_pad_nd: Tensor input, ints pad, Number value=0
conv1d: Tensor input, Tensor weight, Tensor? bias=None, ints1 stride=1, ints1 padding=0, ints1 dilation=1, index groups=1 | Tensor input, Tensor
    weight, Tensor? bias=None, ints1 stride=1, str padding="valid", ints1 dilation=1, index groups=1
conv2d: Tensor input, Tensor weight, Tensor? bias=None, ints2 stride=1, ints2 padding=0, ints2 dilation=1, index groups=1 | Tensor input, Tensor
    weight, Tensor? bias=None, ints2 stride=1, str padding="valid", ints2 dilation=1, index groups=1
conv3d: Tensor input, Tensor weight, Tensor? bias=None, ints3 stride=1, ints3 padding=0, ints3 dilation=1, index groups=1 | Tensor input, Tensor
    weight, Tensor? bias=None, ints3 stride=1, str padding="valid", ints3 dilation=1, index groups=1
conv_tbc: Tensor input, Tensor weight, Tensor bias, int pad=0
conv_transpose1d: Tensor input, Tensor weight, Tensor? bias=None, ints1 stride=1, ints1 padding=0, ints1 output_padding=0, index groups=1, ints1
    dilation=1
conv_transpose2d: Tensor input, Tensor weight, Tensor? bias=None, ints2 stride=1, ints2 padding=0, ints2 output_padding=0, index groups=1, ints2
    dilation=1
conv_transpose3d: Tensor input, Tensor weight, Tensor? bias=None, ints3 stride=1, ints3 padding=0, ints3 output_padding=0, index groups=1, ints3
    dilation=1
cosine_similarity: Tensor x1, Tensor x2, int dim=1, float eps=1e-08
count_nonzero: Tensor input, int? dim=None | Tensor input, ints dim
cov: Tensor input, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None
cross: Tensor input, Tensor other, int? dim=None, *, out
ctc_loss: Tensor log_probs, Tensor targets, ints input_lengths, ints target_lengths, int blank=0, int reduction=1, bool zero_infinity=False | Tensor
    log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False
diag: Tensor input, int diagonal=0, *, out
diag_embed: Tensor input, int offset=0, int dim1=-2, int dim2=-1
diagflat: Tensor input, int offset=0
diagonal: Tensor input, int offset=0, int dim1=0, int dim2=1
diagonal_copy: Tensor input, int offset=0, int dim1=0, int dim2=1, *, out
diagonal_scatter: Tensor input, Tensor src, int offset=0, int dim1=0, int dim2=1
diff: Tensor input, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None, *, out
dist: Tensor input, Tensor other, Number p=2
div: Tensor input, Tensor other, *, out | Tensor input, Tensor other, *, str? rounding_mode, out | Tensor input, Number other, *, str? rounding_mode
divide: Tensor input, Tensor other, *, out | Tensor input, Tensor other, *, str? rounding_mode, out | Tensor input, Number other | Tensor input,
    Number other, *, str? rounding_mode
dot: Tensor input, Tensor tensor, *, out
elu: Tensor input, Number alpha=1, Number scale=1, Number input_scale=1, *, out
elu_: Tensor input, Number alpha=1, Number scale=1, Number input_scale=1
embedding: Tensor weight, Tensor indices, index padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False
embedding_bag: Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool
    include_last_offset, int? padding_idx | Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool
    sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False
embedding_renorm_: Tensor input, Tensor indices, float max_norm, float norm_type
empty: ints size, *, memory_format? memory_format=None, out, factory
empty_permuted: ints size, ints physical_layout, *, factory
empty_strided: ints size, ints stride, *, factory
equal: Tensor input, Tensor other
expand_copy: Tensor input, ints size, *, bool implicit=False, out
eye: index n, *, out, factory | index n, index m, *, out, factory
flatten: Tensor input, int start_dim=0, int end_dim=-1
fractional_max_pool2d: Tensor input, ints2 kernel_size, ints2 output_size, Tensor random_samples, *, outs
fractional_max_pool3d: Tensor input, ints3 kernel_size, ints3 output_size, Tensor random_samples, *, outs
frombuffer: object buffer, *, dtype dtype, int count=-1, int offset=0, bool requires_grad=False
full: ints size, Number fill_value, *, out, factory
full_like: Tensor input, Number fill_value, *, memory_format? memory_format=None, factory
gather: Tensor input, int dim, Tensor index, *, bool sparse_grad=False, out
gelu: Tensor input, *, str approximate="none", out
glu: Tensor input, int dim=-1, *, out
gradient: Tensor input, *, ints dim, int edge_order=1 | Tensor input, *, Number spacing, ints dim, int edge_order=1 | Tensor input, *, Number?
    spacing=None, int? dim=None, int edge_order=1 | Tensor input, *, Numbers spacing, int dim=None, int edge_order=1 | Tensor input, *, Numbers
    spacing, ints dim, int edge_order=1 | Tensor input, *, Tensors spacing, int? dim=None, int edge_order=1 | Tensor input, *, Tensors spacing, ints
    dim, int edge_order=1
group_norm: Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True
hamming_window: int window_length, *, factory | int window_length, bool periodic, *, factory | int window_length, bool periodic, float alpha, *,
    factory | int window_length, bool periodic, float alpha, float beta, *, factory
hardtanh: Tensor input, Number min_val=-1, Number max_val=1, *, out
hardtanh_: Tensor input, Number min_val=-1, Number max_val=1
heaviside: Tensor input, Tensor values, *, out
hinge_embedding_loss: Tensor input, Tensor target, float margin=1.0, int reduction=1
histc: Tensor input, int bins=100, Number min=0, Number max=0, *, out
histogram: Tensor input, Tensor bins, *, Tensor? weight=None, bool density=False, outs | Tensor input, int bins=100, *, floats? range=None, Tensor?
    weight=None, bool density=False, outs
histogramdd: Tensor input, int bins, floats? range=None, Tensor? weight=None, bool density=False | Tensor input, ints bins, floats? range=None,
    Tensor? weight=None, bool density=False | Tensor input, Tensors bins, floats? range=None, Tensor? weight=None, bool density=False
huber_loss: Tensor input, Tensor target, int reduction=1, float delta=1.0, *, out
index_add: Tensor input, int dim, Tensor index, Tensor source, *, Number alpha=1, out
index_copy: Tensor input, int dim, Tensor index, Tensor source, *, out
index_fill: Tensor input, int dim, Tensor index, Tensor value | Tensor input, int dim, Tensor index, Number value
index_reduce: Tensor input, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True, out
index_select: Tensor input, int dim, Tensor index, *, out
instance_norm: Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps,
    bool cudnn_enabled
isin: Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False, out | Number element, Tensor test_elements, *, bool
    assume_unique=False, bool invert=False, out | Tensor elements, Number test_element, *, bool assume_unique=False, bool invert=False, out
istft: Tensor input, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False, bool?
    onesided=None, int? length=None, bool return_complex=False
kaiser_window: int window_length, *, factory | int window_length, bool periodic, *, factory | int window_length, bool periodic, float beta, *, factory
kl_div: Tensor input, Tensor target, int reduction=1, *, bool log_target=False
kthvalue: Tensor input, index k, int dim=-1, bool keepdim=False, *, outs
l1_loss: Tensor input, Tensor target, int reduction=1
layer_norm: Tensor input, ints normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True
leaky_relu: Tensor input, Number negative_slope=0.01, *, out
leaky_relu_: Tensor input, Number negative_slope=0.01
lerp: Tensor input, Tensor end, Tensor weight, *, out | Tensor input, Tensor end, Number weight, *, out
linalg_cholesky: Tensor input, *, bool upper=False, out
linalg_cholesky_ex: Tensor input, *, bool upper=False, bool check_errors=False, outs
linalg_cond: Tensor input, Number? p=None, *, out | Tensor input, str p, *, out
linalg_cross: Tensor input, Tensor other, *, int dim=-1, out
linalg_diagonal: Tensor A, *, int offset=0, int dim1=-2, int dim2=-1
linalg_eigh: Tensor input, str UPLO="L", *, outs
linalg_eigvalsh: Tensor input, str UPLO="L", *, out
linalg_householder_product: Tensor input, Tensor tau, *, out
linalg_inv_ex: Tensor A, *, bool check_errors=False, outs
linalg_ldl_factor: Tensor input, *, bool hermitian=False, outs
linalg_ldl_factor_ex: Tensor input, *, bool hermitian=False, bool check_errors=False, outs
linalg_ldl_solve: Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False, out
linalg_lstsq: Tensor input, Tensor b, float? rcond=None, *, str? driver=None, outs
linalg_lu_factor_ex: Tensor A, *, bool pivot=True, bool check_errors=False, outs
linalg_lu_solve: Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False, out
linalg_matrix_norm: Tensor input, Number ord, ints dim=(-2,-1), bool keepdim=False, *, dtype? dtype=None, out | Tensor input, str ord="fro", ints
    dim=(-2,-1), bool keepdim=False, *, dtype? dtype=None, out
linalg_matrix_rank: Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False, out | Tensor input, *, float? atol=None, float?
    rtol=None, bool hermitian=False, out | Tensor input, Tensor tol, bool hermitian=False, *, out | Tensor input, float tol, bool hermitian=False, *,
    out
linalg_norm: Tensor input, Number? ord=None, ints1? dim=None, bool keepdim=False, *, dtype? dtype=None, out | Tensor input, str ord, ints1? dim=None,
    bool keepdim=False, *, dtype? dtype=None, out
linalg_pinv: Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False, out | Tensor input, *, float? atol=None, float? rtol=None,
    bool hermitian=False, out | Tensor input, Tensor rcond, bool hermitian=False, *, out | Tensor input, float rcond, bool hermitian=False, *, out
linalg_qr: Tensor A, str mode="reduced", *, outs
linalg_slogdet: Tensor A, *, outs
linalg_solve: Tensor A, Tensor B, *, bool left=True, out
linalg_solve_ex: Tensor A, Tensor B, *, bool left=True, bool check_errors=False, outs
linalg_solve_triangular: Tensor input, Tensor B, *, bool upper, bool left=True, bool unitriangular=False, out
linalg_svd: Tensor A, bool full_matrices=True, *, str? driver=None, outs
linalg_svdvals: Tensor A, *, str? driver=None, out
linalg_tensorinv: Tensor input, int ind=2, *, out
linalg_tensorsolve: Tensor input, Tensor other, ints? dims=None, *, out
linalg_vander: Tensor x, *, index? N=None
linalg_vecdot: Tensor x, Tensor y, *, int dim=-1, out
linalg_vector_norm: Tensor input, Number ord=2, ints1? dim=None, bool keepdim=False, *, dtype? dtype=None, out
linear: Tensor input, Tensor weight, Tensor? bias=None, *, out
linspace: Tensor start, Tensor end, int steps, *, out, factory | Number start, Tensor end, int steps, *, out, factory | Tensor start, Number end, int
    steps, *, out, factory | Number start, Number end, int steps, *, out, factory
logspace: Tensor start, Tensor end, int steps, float base=10.0, *, out, factory | Number start, Tensor end, int steps, float base=10.0, *, out,
    factory | Tensor start, Number end, int steps, float base=10.0, *, out, factory | Number start, Number end, int steps, float base=10.0, *, out,
    factory
lu_solve: Tensor input, Tensor LU_data, Tensor LU_pivots, *, out
lu_unpack: Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True, *, outs
masked_fill: Tensor input, Tensor mask, Tensor value | Tensor input, Tensor mask, Number value
masked_scatter: Tensor input, Tensor mask, Tensor source
masked_select: Tensor input, Tensor mask, *, out
max_pool2d: Tensor input, ints2 kernel_size, ints2? stride=None, ints2 padding=0, ints2 dilation=1, bool ceil_mode=False
max_pool2d_with_indices: Tensor input, ints2 kernel_size, ints2? stride=None, ints2 padding=0, ints2 dilation=1, bool ceil_mode=False, *, outs
max_pool3d: Tensor input, ints3 kernel_size, ints3? stride=None, ints3 padding=0, ints3 dilation=1, bool ceil_mode=False
max_pool3d_with_indices: Tensor input, ints3 kernel_size, ints3? stride=None, ints3 padding=0, ints3 dilation=1, bool ceil_mode=False, *, outs
max_unpool2d: Tensor input, Tensor indices, ints2 output_size, *, out
max_unpool3d: Tensor input, Tensor indices, ints3 output_size, ints3 stride, ints3 padding, *, out
mean: Tensor input, *, dtype? dtype=None, out | Tensor input, ints1? dim, bool keepdim=False, *, dtype? dtype=None, out
mode: Tensor input, int dim=-1, bool keepdim=False, *, outs
multi_margin_loss: Tensor input, Tensor target, Number p=1, Number margin=1, Tensor? weight=None, int reduction=1, *, out
multinomial: Tensor input, index num_samples, bool replacement=False, *, Generator? generator=None, out
mv: Tensor input, Tensor vec, *, out
nan_to_num: Tensor input, float? nan=None, float? posinf=None, float? neginf=None, *, out
narrow: Tensor input, int dim, Tensor start, index length | Tensor input, int dim, index start, index length
narrow_copy: Tensor input, int dim, index start, index length, *, out
nll_loss: Tensor input, Tensor target, Tensor? weight=None, int reduction=1, index ignore_index=-100, *, out
nonzero_static: Tensor input, *, index size, int fill_value=-1, out
normal: Tensor mean, Tensor std, *, Generator? generator=None, out | Tensor mean, float std=1, *, Generator? generator=None, out | float mean, Tensor
    std, *, Generator? generator=None, out | float mean, float std, ints size, *, Generator? generator=None, out, factory
one_hot: Tensor input, int num_classes=-1
orgqr: Tensor input, Tensor input2, *, out
ormqr: Tensor input, Tensor input2, Tensor input3, bool left=True, bool transpose=False, *, out
pad: Tensor input, ints pad, str mode="constant", float? value=None
pairwise_distance: Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False
pdist: Tensor input, float p=2
permute_copy: Tensor input, ints dims, *, out
pinverse: Tensor input, float rcond=1e-15
pixel_shuffle: Tensor input, int upscale_factor
pixel_unshuffle: Tensor input, int downscale_factor
poisson: Tensor input, Generator? generator=None
poisson_nll_loss: Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction
polar: Tensor abs, Tensor angle, *, out
prelu: Tensor input, Tensor weight
prod: Tensor input, *, dtype? dtype=None | Tensor input, int dim, bool keepdim=False, *, dtype? dtype=None, out
promote_types: dtype type1, dtype type2
put: Tensor input, Tensor index, Tensor source, bool accumulate=False
qr: Tensor input, bool some=True, *, outs
randint: index high, ints size, *, Generator? generator, out, factory | index high, ints size, *, out, factory | index low, index high, ints size, *,
    Generator? generator, out, factory | index low, index high, ints size, *, out, factory
randint_like: Tensor input, index low, index high, *, Generator? generator, memory_format? memory_format=None, factory | Tensor input, index low,
    index high, *, memory_format? memory_format=None, factory | Tensor input, Tensor high, *, Generator? generator, memory_format? memory_format=None,
    factory | Tensor input, Tensor high, *, memory_format? memory_format=None, factory | Tensor input, index high, *, Generator? generator,
    memory_format? memory_format=None, factory | Tensor input, index high, *, memory_format? memory_format=None, factory
randperm: index n, *, Generator? generator, out, factory | index n, *, out, factory
range: Number start, Number end, Number step=1, *, out, factory
renorm: Tensor input, Number p, int dim, Number maxnorm, *, out
repeat_interleave: Tensor input, Tensor repeats, int? dim=None, *, index? output_size=None | Tensor repeats, *, index? output_size=None | Tensor
    input, index repeats, int? dim=None, *, index? output_size=None
reshape: Tensor input, ints shape
resize_as_: Tensor input, Tensor the_template, *, memory_format? memory_format=None
result_type: Tensor tensor, Tensor other | Number scalar, Tensor tensor | Tensor tensor, Number other | Number scalar1, Number scalar2
rms_norm: Tensor input, ints normalized_shape, Tensor? weight=None, float? eps=None
roll: Tensor input, ints1 shifts, ints1? dims=None
rot90: Tensor input, int k=1, ints dims=(0,1)
round: Tensor input, *, out | Tensor input, *, int decimals, out
rsub: Tensor input, Tensor other, *, Number alpha=1 | Tensor input, Number other, Number alpha=1
scalar_tensor: Number s, *, factory
scaled_dot_product_attention: Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float?
    scale=None, bool enable_gqa=False
scatter: Tensor input, int dim, Tensor index, Tensor src, *, out | Tensor input, int dim, Tensor index, Tensor src, *, str reduce, out | Tensor input,
    int dim, Tensor index, Number value, *, out | Tensor input, int dim, Tensor index, Number value, *, str reduce, out
scatter_add: Tensor input, int dim, Tensor index, Tensor src, *, out
scatter_reduce: Tensor input, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True, out
searchsorted: Tensor sorted_sequence, Tensor input, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None, out | Tensor
    sorted_sequence, Number self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None, out
segment_reduce: Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Number?
    initial=None
select: Tensor input, int dim, index index
select_copy: Tensor input, int dim, index index, *, out
select_scatter: Tensor input, Tensor src, int dim, index index
slice_copy: Tensor input, int dim=0, index? start=None, index? end=None, index step=1, *, out
slice_scatter: Tensor input, Tensor src, int dim=0, index? start=None, index? end=None, index step=1
smooth_l1_loss: Tensor input, Tensor target, int reduction=1, float beta=1.0, *, out
softplus: Tensor input, Number beta=1, Number threshold=20, *, out
sort: Tensor input, *, bool? stable, int dim=-1, bool descending=False, outs | Tensor input, int dim=-1, bool descending=False, *, outs
special_log_softmax: Tensor input, int dim, *, dtype? dtype=None
special_round: Tensor input, *, int decimals=0, out
special_softmax: Tensor input, int dim, dtype? dtype=None
split_copy: Tensor input, index split_size, int dim=0, *, outs
split_with_sizes: Tensor input, ints split_sizes, int dim=0
split_with_sizes_copy: Tensor input, ints split_sizes, int dim=0, *, outs
squeeze: Tensor input | Tensor input, int dim | Tensor input, ints dim
squeeze_copy: Tensor input, *, out | Tensor input, int dim, *, out | Tensor input, ints dim, *, out
subtract: Tensor input, Tensor other, *, Number alpha=1, out | Tensor input, Number other, Number alpha=1
sum: Tensor input, *, dtype? dtype=None | Tensor input, ints1? dim, bool keepdim=False, *, dtype? dtype=None, out
svd: Tensor input, bool some=True, bool compute_uv=True, *, outs
swapaxes: Tensor input, int axis0, int axis1
take: Tensor input, Tensor index, *, out
take_along_dim: Tensor input, Tensor indices, int? dim=None, *, out
tensor: object data, *, dtype? dtype=None, device? device=None, bool pin_memory=False, bool requires_grad=False, names? names=None
tensor_split: Tensor input, ints indices, int dim=0 | Tensor input, Tensor tensor_indices_or_sections, int dim=0 | Tensor input, index sections, int
    dim=0
threshold: Tensor input, Number threshold, Number value, *, out
threshold_: Tensor input, Number threshold, Number value
topk: Tensor input, index k, int dim=-1, bool largest=True, bool sorted=True, *, outs
transpose_copy: Tensor input, int dim0, int dim1, *, out
trapz: Tensor y, *, float dx=1, int dim=-1 | Tensor y, Tensor x, *, int dim=-1
triangular_solve: Tensor input, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False, *, outs
triplet_margin_loss: Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, bool swap=False, int reduction=1
unbind: Tensor input, int dim=0
unbind_copy: Tensor input, int dim=0, *, outs
unflatten: Tensor input, int dim, ints sizes
unfold_copy: Tensor input, int dimension, int size, int step, *, out
unsafe_split: Tensor input, index split_size, int dim=0
unsqueeze: Tensor input, int dim
vander: Tensor x, int? N=None, bool increasing=False
view_copy: Tensor input, dtype dtype, *, out | Tensor input, ints size, *, out
native_dropout: Tensor input, float p, bool? train
norm_except_dim: Tensor v, int pow=2, int dim=0
frobenius_norm: Tensor input, ints1 dim, bool keepdim=False, *, out
nuclear_norm: Tensor input, bool keepdim=False, *, out | Tensor input, ints2 dim, bool keepdim=False, *, out
is_same_size: Tensor input, Tensor other
lstm_cell: Tensor input, Tensors hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None
gru_cell rnn_tanh_cell rnn_relu_cell: Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None
lstm: Tensor data, Tensor batch_sizes, Tensors hx, Tensors params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional |
    Tensor input, Tensors hx, Tensors params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first
gru rnn_tanh rnn_relu: Tensor data, Tensor batch_sizes, Tensor hx, Tensors params, bool has_biases, int num_layers, float dropout, bool train, bool
    bidirectional | Tensor input, Tensor hx, Tensors params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool
    batch_first
where: Tensor condition | Tensor condition, Tensor input, Tensor other, *, out | Tensor condition, Number self, Tensor other | Tensor condition,
    Tensor input, Number other | Tensor condition, Number self, Number other
"""

METHODS = """
bfloat16 bool byte cdouble cfloat char cpu double float half int long short: *, memory_format? memory_format=None
bmm mm: Tensor mat2
contiguous is_contiguous: *, memory_format memory_format=torch.contiguous_format
data_ptr detach dim element_size get_device is_inference is_signed item ndimension nelement retain_grad storage_offset tolist:
expand_as reshape_as type_as view_as: Tensor other
is_pinned pin_memory: device? device=None
new_empty new_ones new_zeros: ints size, *, factory
size stride: int? dim=None
addmm: Tensor mat1, Tensor mat2, *, Number beta=1, Number alpha=1 | ~Number beta, Number alpha, Tensor mat1, Tensor mat2 | ~Number beta, Tensor mat1,
    Tensor mat2
baddbmm: Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1 | ~Number beta, Number alpha, Tensor batch1, Tensor batch2 | ~Number beta,
    Tensor batch1, Tensor batch2
bernoulli_: Tensor p, *, Generator? generator=None | float p=0.5, *, Generator? generator=None
cauchy_: float median=0, float sigma=1, *, Generator? generator=None
copy_: Tensor other, bool non_blocking=False
cuda: device? device=None, bool non_blocking=False, *, memory_format? memory_format=None
expand: ints size, *, bool implicit=False
exponential_: float lambd=1, *, Generator? generator=None
fill_diagonal_: Number fill_value, bool wrap=False
geometric_: float p, *, Generator? generator=None
log_normal_: float mean=1, float std=2, *, Generator? generator=None
new_empty_strided: ints size, ints stride, *, factory
new_full: ints size, Number fill_value, *, factory
new_tensor: object data, *, dtype? dtype=None, device? device=None, bool requires_grad=False
nonzero: *, bool as_tuple=False
normal_: float mean=0, float std=1, *, Generator? generator=None
numpy: *, bool force=False
random_: *, Generator? generator=None | int from, int? to, *, Generator? generator=None | int to, *, Generator? generator=None
repeat: ints repeats
requires_grad_: bool requires_grad=True
resize_: ints size, *, memory_format? memory_format=None
set_: | Storage source | Storage source, index storage_offset, ints size, ints? stride=None | Tensor source | Tensor source, index storage_offset,
    ints size, ints? stride=None
sum_to_size: ints size
to: device? device=None, dtype? dtype=None, bool non_blocking=False, bool copy=False, *, memory_format? memory_format=None | dtype dtype, bool
    non_blocking=False, bool copy=False, *, memory_format? memory_format=None | Tensor tensor, bool non_blocking=False, bool copy=False, *,
    memory_format? memory_format=None
type: object? dtype=None, bool non_blocking=False, *, memory_format? memory_format=None
unfold: int dimension, int size, int step
uniform_: float from=0, float to=1, *, Generator? generator=None
view: dtype dtype | ints size
"""

INTERPRETED = """
adaptive_avg_pool2d -> adaptive_avg_pool2d: .size input, sizes2 output_size
adaptive_avg_pool3d -> adaptive_avg_pool3d: .size input, sizes3 output_size
adaptive_max_pool1d adaptive_max_pool1d_with_indices -> adaptive_max_pool1d: Tensor input, ints1 output_size
adaptive_max_pool2d adaptive_max_pool2d_with_indices -> adaptive_max_pool2d: .size input, sizes2 output_size
adaptive_max_pool3d adaptive_max_pool3d_with_indices -> adaptive_max_pool3d: .size input, sizes3 output_size
affine_grid -> affine_grid_generator: Tensor theta, ints size, bool? align_corners
alpha_dropout -> alpha_dropout: Tensor input, probability p, bool train<training
atleast_1d -> atleast_1d: Tensor tensors | Tensors tensors
atleast_2d -> atleast_2d: Tensor tensors | Tensors tensors
atleast_3d -> atleast_3d: Tensor tensors | Tensors tensors
batch_norm -> batch_norm: Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps
binary_cross_entropy -> binary_cross_entropy: .size target, .size input, .size? weight
binary_cross_entropy_with_logits -> binary_cross_entropy_with_logits: .size target, .size input, Tensor? weight, Tensor? pos_weight
block_diag -> block_diag: Tensors tensors
broadcast_tensors -> broadcast_tensors: Tensors tensors
cartesian_prod -> cartesian_prod: Tensors tensors
cdist -> cdist: Tensor x1, Tensor x2, float p
celu -> celu: Tensor input, Number alpha
cosine_embedding_loss -> cosine_embedding_loss: Tensor input1, Tensor input2, Tensor target, float margin
cross_entropy -> cross_entropy_loss: Tensor input, Tensor target, Tensor? weight
ctc_loss -> ctc_loss: Tensor log_probs, Tensor targets, ints input_lengths, ints target_lengths | Tensor log_probs, Tensor targets, Tensor input_lengths,
    Tensor target_lengths
dropout -> dropout: Tensor input, probability p, bool train<training
dropout1d -> feature_dropout: .dim input, probability p, bool train<training
dropout2d -> feature_dropout: .dim input, probability p, bool train<training
dropout3d -> feature_dropout: .dim input, probability p, bool train<training
elu -> elu: Tensor input, Number alpha
embedding -> embedding: Tensor weight, Tensor indices<input, index? padding_idx
feature_alpha_dropout -> feature_alpha_dropout: Tensor input, probability p, bool train<training
glu -> glu: .dim input, int dim
grid_sample -> grid_sampler: Tensor input, Tensor grid, object? _, object? _, bool? align_corners
group_norm -> group_norm: .dim input, int num_groups, Tensor? weight, Tensor? bias, float eps
gumbel_softmax -> empty_like: Tensor input<logits
hardsigmoid -> hardsigmoid: Tensor input
hardswish -> hardswish: Tensor input
hardtanh -> hardtanh: Tensor input, Number min_val, Number max_val
hinge_embedding_loss -> hinge_embedding_loss: Tensor input, Tensor target, float margin
huber_loss -> huber_loss: .size target, .size input
instance_norm -> instance_norm: .size input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats
interpolate -> interpolate: .dim input
kl_div -> kl_div: Tensor input, Tensor target, object? _, *, bool log_target
l1_loss -> l1_loss: .size target, .size input
layer_norm -> layer_norm: Tensor input, ints normalized_shape, Tensor? weight, Tensor? bias, float eps
leaky_relu -> leaky_relu: Tensor input, Number negative_slope
linear_cross_entropy -> linear: .dim input, .dim linear_weight
local_response_norm -> local_response_norm: .dim input
lp_pool1d -> avg_pool1d: .pow input, ints1 kernel_size, ints1? stride
lu -> _lu_with_info: Tensor input<A, *, bool pivot
margin_ranking_loss -> margin_ranking_loss: .dim input1, .dim input2, .dim target, float margin
max_pool1d -> max_pool1d: Tensor input, ints1 kernel_size, ints1? stride, ints1 padding, ints1 dilation, bool ceil_mode
max_pool2d -> max_pool2d: Tensor input, ints2 kernel_size, ints2? stride, ints2 padding, ints2 dilation, bool ceil_mode
max_pool3d -> max_pool3d: Tensor input, ints3 kernel_size, ints3? stride, ints3 padding, ints3 dilation, bool ceil_mode
meshgrid -> meshgrid: Tensors tensors, *, str? indexing
mish -> mish: Tensor input
mse_loss -> mse_loss: .size target, .size input
multi_margin_loss -> multi_margin_loss: Tensor input, Tensor target, Number p, Number margin
multilabel_margin_loss -> multilabel_margin_loss: Tensor input, Tensor target
multilabel_soft_margin_loss -> log_sigmoid: Tensor input
nll_loss -> nll_loss_nd: Tensor input, Tensor target, Tensor? weight, object? _, int ignore_index
norm -> linalg_vector_norm: .layout input, object? p, ints1? dim, bool keepdim, *, dtype? dtype
pad -> pad: Tensor input, ints pad, str mode, float? value
poisson_nll_loss -> poisson_nll_loss: Tensor input, Tensor target, bool log_input, bool full, float eps
relu -> relu: Tensor input
relu6 -> relu6: Tensor input
rms_norm -> rms_norm: Tensor input, ints normalized_shape, Tensor? weight, float? eps
rrelu -> rrelu: Tensor input, Number lower, Number upper, bool training
selu -> selu: Tensor input
silu -> silu: Tensor input
smooth_l1_loss -> smooth_l1_loss: .size target, .size input
sigmoid -> sigmoid: .sigmoid input
softmax -> softmax: int? dim, *, dtype? dtype
log_softmax -> log_softmax: int? dim, *, dtype? dtype
soft_margin_loss -> soft_margin_loss: Tensor input, Tensor target
stft -> stft: Tensor input, int n_fft, int? hop_length, int? win_length, Tensor? window, bool normalized, bool? onesided, bool? return_complex,
    bool? align_to_window
istft -> istft: Tensor input, int n_fft, int? hop_length, int? win_length, Tensor? window, bool center, bool normalized, bool? onesided, int? length,
    bool return_complex
tanh -> tanh: .tanh input
tensordot -> tensordot: .dim a, .dim b
threshold -> threshold: Tensor input, Number threshold, Number value
triplet_margin_loss -> triplet_margin_loss: Tensor anchor, Tensor positive, Tensor negative, float margin
triplet_margin_with_distance_loss -> pairwise_distance: Tensor x1<anchor, Tensor x2<positive
unfold -> im2col: Tensor input, pair2 kernel_size, pair2 dilation, pair2 padding, pair2 stride
fold -> col2im: Tensor input, pair2 output_size, pair2 kernel_size, pair2 dilation, pair2 padding, pair2 stride
max_pool1d_with_indices -> max_pool1d_with_indices: Tensor input, ints1 kernel_size, ints1? stride, ints1 padding, ints1 dilation, bool ceil_mode
max_pool2d_with_indices -> max_pool2d_with_indices: Tensor input, ints2 kernel_size, ints2? stride, ints2 padding, ints2 dilation, bool ceil_mode
max_pool3d_with_indices -> max_pool3d_with_indices: Tensor input, ints3 kernel_size, ints3? stride, ints3 padding, ints3 dilation, bool ceil_mode
rrelu_ -> rrelu_: Tensor input, Number lower, Number upper, bool training
unique -> _unique2: Tensor input, *, bool sorted, bool return_inverse, bool return_counts
unique_consecutive -> unique_consecutive: Tensor input, *, bool return_inverse, bool return_counts, int? dim
upsample_bilinear -> interpolate: .dim input
upsample_nearest -> interpolate: .dim input
"""
