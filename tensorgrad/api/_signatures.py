"""The signatures of PyTorch's compiled functions, as its argument parser has them. Errors quote them.

The module is imported when a call has failed. The annotations of our own functions say most signatures (see `_kinds`).
`OVERLOADS` and `METHODS` have what these cannot say: calls that differ in more than the kinds of arguments, and
deprecated orders of arguments. A row is `names: signature; signature …`. A parameter without kind is that of our
function, with `!` it has no default; `…` stands for the annotated signature; `~` marks a deprecated one, which errors
do not show; `out`, `outs` and `factory` abbreviate common keywords.
A method has the signatures of the function without its `input`, an in-place method those of the method, unless METHODS
has its own.

`INTERPRETED` lists functions that PyTorch writes in Python, with their calls of compiled ones, `functions -> compiled:
arguments` (the name "same" stands for the function's own): `a=b` passes the function's argument `b` as `a`, `a.size`
means that the argument must have this attribute, and `_` is filled in by the function. Without a list all arguments are
handed on, but for those in FILLED_IN. A `Probability` is checked before the call; in `Sizes`, None means the input's
size. `PYTHON` names the others, which have no parser.
"""
from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from .._tensor import Tensor

SHORTHANDS = {
    "out": "out: Tensor | None = None",
    "outs": "out: Tensors | None = None",
    "factory": "dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None, "
               "pin_memory: bool | None = False, requires_grad: bool | None = False",
}

OVERLOADS = """
add sub: …; ~input, alpha!, other, *, out
addbmm: …; ~beta!, input, alpha!, batch1, batch2, *, out; ~beta!, input, batch1, batch2, *, out
addcdiv addcmul: …; ~input, value!, tensor1, tensor2, *, out
addmm: input, mat1, mat2, *, beta, alpha, out; input, mat1, mat2, out_dtype: Dtype, *, beta, alpha, out;
    ~beta!, input, alpha!, mat1, mat2, *, out; ~beta!, input, mat1, mat2, *, out
addmv: …; ~beta!, input, alpha!, mat, vec, *, out; ~beta!, input, mat, vec, *, out
addr: …; ~beta!, input, alpha!, vec1, vec2, *, out; ~beta!, input, vec1, vec2, *, out
all any: input, *, out; input, dim: Ints | None = None, keepdim, *, out; input, dim: int, keepdim, *, out
arange: end: Number, *, out, factory; start: Number, end: Number, *, factory;
    start: Number, end: Number, step, *, out, factory
argsort: input, *, stable!, dim, descending, out; input, dim, descending
baddbmm: input, batch1, batch2, *, beta, alpha, out; input, batch1, batch2, out_dtype: Dtype, *, beta, alpha, out;
    ~beta!, input, alpha!, batch1, batch2, *, out; ~beta!, input, batch1, batch2, *, out
bartlett_window blackman_window hann_window: window_length, *, factory; window_length, periodic!, *, factory
bernoulli: input, *, generator, out; input, p: float, *, generator
bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor remainder: input: Tensor, other: Tensor, *,
    out; self: Number, other: Tensor; input: Tensor, other: Number, *, out
bmm mm: input, mat2, *, out; input, mat2, out_dtype: Dtype, *, out
bucketize: input: Tensor, boundaries, *, out_int32, right, out; self: Number, boundaries, *, out_int32, right
conv1d conv2d conv3d: input, weight, bias, stride, padding: Ints1 = 0, dilation, groups;
    input, weight, bias, stride, padding: str = "valid", dilation, groups
count_nonzero: input, dim: int | None = None; input, dim: Ints
ctc_loss: log_probs, targets, input_lengths: Ints, target_lengths: Ints, blank, reduction: int = at::Reduction::Mean,
    zero_infinity; log_probs, targets, input_lengths: Tensor, target_lengths: Tensor, blank,
    reduction: int = at::Reduction::Mean, zero_infinity
cumulative_trapezoid trapezoid: y, x: Tensor, *, dim; y, *, dx: Number = 1, dim
dequantize: input; tensors: Tensors
div: input, other, *, out; input, other, *, rounding_mode!, out; input, other: Number, *, rounding_mode!
divide: input, other, *, out; input, other, *, rounding_mode!, out; input, other: Number;
    input, other: Number, *, rounding_mode!
dsplit hsplit vsplit: input, sections: int; input, indices: Ints
embedding_bag: weight, indices, offsets, scale_grad_by_freq!, mode!, sparse!, per_sample_weights!,
    include_last_offset!, padding_idx!; weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
    include_last_offset
eye: n, *, out, factory; n, m: Index, *, out, factory
float_power pow: input: Tensor, exponent: Tensor, *, out; self: Number, exponent: Tensor, *, out;
    input: Tensor, exponent: Number, *, out
floor_divide multiply true_divide: input, other, *, out; input, other: Number
fractional_max_pool2d fractional_max_pool3d: input: Tensor, kernel_size: Ints1, output_size: Ints1,
    random_samples: Tensor, *, outs
gradient: input, *, dim: Ints, edge_order; input, *, spacing: Number, dim: Ints, edge_order;
    input, *, spacing: Number | None = None, dim: int | None = None, edge_order;
    input, *, spacing: Numbers, dim: int = None, edge_order; input, *, spacing: Numbers, dim: Ints, edge_order;
    input, *, spacing: Tensors, dim: int | None = None, edge_order; input, *, spacing: Tensors, dim: Ints, edge_order
gru rnn_relu rnn_tanh: data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Tensors, has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool; input: Tensor, hx: Tensor, params: Tensors,
    has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool
gru_cell rnn_relu_cell rnn_tanh_cell: input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor,
    b_ih: Tensor | None = None, b_hh: Tensor | None = None
hamming_window: window_length, *, factory; window_length, periodic!, *, factory;
    window_length, periodic!, alpha!, *, factory; window_length, periodic!, alpha!, beta!, *, factory
histogram: input, bins: Tensor, *, weight, density, outs; input, bins: int = 100, *, range, weight, density, outs
histogramdd: input, bins: int, range, weight, density; input, bins: Ints, range, weight, density;
    input, bins: Tensors, range, weight, density
isin: elements: Tensor, test_elements: Tensor, *, assume_unique, invert, out;
    element: Number, test_elements: Tensor, *, assume_unique, invert, out;
    elements: Tensor, test_element: Number, *, assume_unique, invert, out
kaiser_window: window_length, *, factory; window_length, periodic!, *, factory;
    window_length, periodic!, beta!, *, factory
linalg_cond: input, p: Number | None = None, *, out; input, p: str, *, out
linalg_matrix_norm: input, ord: Number, dim: Ints = {-2,-1}, keepdim, *, dtype, out;
    input, ord: str = "fro", dim: Ints = {-2,-1}, keepdim, *, dtype, out
linalg_matrix_rank: input, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian, out;
    input, *, atol: float | None = None, rtol: float | None = None, hermitian, out;
    input, tol: Tensor, hermitian, *, out; input, tol: float, hermitian, *, out
linalg_norm: input, ord: Number | None = None, dim, keepdim, *, dtype, out; input, ord: str, dim, keepdim, *, dtype, out
linalg_pinv: input, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian, out;
    input, *, atol: float | None = None, rtol: float | None = None, hermitian, out;
    input, rcond: Tensor, hermitian, *, out; input, rcond: float, hermitian, *, out
linspace: start: Tensor, end: Tensor, steps, *, out, factory; start: Number, end: Tensor, steps, *, out, factory;
    start: Tensor, end: Number, steps, *, out, factory; start: Number, end: Number, steps, *, out, factory
logspace: start: Tensor, end: Tensor, steps, base, *, out, factory; start: Number, end: Tensor, steps, base, *, out,
    factory; start: Tensor, end: Number, steps, base, *, out, factory; start: Number, end: Number, steps, base, *, out,
    factory
lstm: data: Tensor, batch_sizes: Tensor, hx: Tensors, params: Tensors, has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool; input: Tensor, hx: Tensors, params: Tensors, has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool
lstm_cell: input: Tensor, hx: Tensors, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None
max min: input, *, out; input, other: Tensor, *, out; input, dim: int, keepdim, *, outs
mean: input, *, dtype, out; input, dim!, keepdim, *, dtype, out
median nanmedian: input; input, dim: int, keepdim, *, outs
normal: mean: Tensor, std: Tensor, *, generator, out; mean: Tensor, std: float = 1, *, generator, out;
    mean: float, std: Tensor, *, generator, out; mean: float, std: float, size: Ints, *, generator, out, factory
nuclear_norm: input, dim: Ints1, keepdim, *, out; input, keepdim, *, out
prod: input, *, dtype; input, dim: int, keepdim, *, dtype, out
rand randn: size: Ints, *, generator!, out, factory; size: Ints, *, out, factory
rand_like randn_like: input, *, generator!, memory_format, factory; input, *, memory_format, factory
randint: high: Index, size: Ints, *, generator!, out, factory; high: Index, size: Ints, *, out, factory;
    low: Index, high: Index, size: Ints, *, generator!, out, factory;
    low: Index, high: Index, size: Ints, *, out, factory
randint_like: input, low: Index, high: Index, *, generator!, memory_format, factory;
    input, low: Index, high: Index, *, memory_format, factory;
    input, high: Tensor, *, generator!, memory_format, factory; input, high: Tensor, *, memory_format, factory;
    input, high: Index, *, generator!, memory_format, factory; input, high: Index, *, memory_format, factory
randperm: n, *, generator!, out, factory; n, *, out, factory
repeat_interleave: input, repeats: Tensor, dim, *, output_size; repeats: Tensor, *, output_size;
    input, repeats: Index, dim, *, output_size
round: input, *, out; input, *, decimals!, out
rsub: input, other: Tensor, *, alpha; input, other: Number, alpha
scatter: input, dim, index, src: Tensor, *, out; input, dim, index, src: Tensor, *, reduce: str, out;
    input, dim, index, value: Number, *, out; input, dim, index, value: Number, *, reduce: str, out
searchsorted: sorted_sequence, input: Tensor, *, out_int32, right, side, sorter, out;
    sorted_sequence, self: Number, *, out_int32, right, side, sorter, out
sort: input, *, stable: bool | None, dim, descending, outs; input, dim, descending, *, outs
sparse_bsc_tensor sparse_csc_tensor:
    ccol_indices, row_indices, values, size: Ints, *, dtype, layout, device, pin_memory, requires_grad,
    check_invariants;
    ccol_indices, row_indices, values, *, dtype, layout, device, pin_memory, requires_grad,
    check_invariants
sparse_bsr_tensor sparse_csr_tensor:
    crow_indices, col_indices, values, size: Ints, *, dtype, layout, device, pin_memory, requires_grad,
    check_invariants;
    crow_indices, col_indices, values, *, dtype, layout, device, pin_memory, requires_grad,
    check_invariants
sparse_compressed_tensor:
    compressed_indices, plain_indices, values, size: Ints, *, dtype, layout, device, pin_memory, requires_grad,
    check_invariants;
    compressed_indices, plain_indices, values, *, dtype, layout, device, pin_memory, requires_grad,
    check_invariants
sparse_coo_tensor: indices!, values!, *, dtype, device, pin_memory, requires_grad, check_invariants, is_coalesced;
    indices!, values!, size: Ints, *, dtype, device, pin_memory, requires_grad, check_invariants, is_coalesced;
    size: Ints, *, dtype, device, requires_grad, check_invariants
special_airy_ai special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0:
    x: Tensor, *, out
special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
    special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he
    special_laguerre_polynomial_l special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t
    special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
    special_shifted_chebyshev_polynomial_w: x: Tensor, n: Tensor, *, out; x: Number, n: Tensor, *, out;
    x: Tensor, n: Number, *, out
special_xlog1py special_xlogy special_zeta xlogy: input: Tensor, other: Tensor, *, out; self: Number, other: Tensor, *,
    out; input: Tensor, other: Number, *, out
squeeze: input; input, dim: int; input, dim: Ints
squeeze_copy: input, *, out; input, dim: int, *, out; input, dim: Ints, *, out
sspaddmm: input, mat1, mat2, *, beta, alpha, out; ~beta!, input, alpha!, mat1, mat2, *, out;
    ~beta!, input, mat1, mat2, *, out
std var: input, dim!, unbiased: bool = True, keepdim, *, out; input, dim, *, correction, keepdim, out;
    input, unbiased: bool = True
std_mean var_mean: input, dim!, unbiased: bool = True, keepdim; input, dim, *, correction, keepdim;
    input, unbiased: bool = True
subtract: input, other, *, alpha, out; input, other: Number, alpha
sum: input, *, dtype; input, dim!, keepdim, *, dtype, out
tensor_split: input, indices: Ints, dim; input, tensor_indices_or_sections: Tensor, dim; input, sections: Index, dim
trapz: y, *, dx: float = 1, dim; y, x: Tensor, *, dim
view_copy: input, dtype: Dtype, *, out; input, size: Ints, *, out
where: condition; condition, input: Tensor, other: Tensor, *, out; condition, self: Number, other: Tensor;
    condition, input: Tensor, other: Number; condition, self: Number, other: Number
"""

METHODS = """
addmm: mat1, mat2, *, beta, alpha; ~beta!, alpha!, mat1, mat2; ~beta!, mat1, mat2
baddbmm: batch1, batch2, *, beta, alpha; ~beta!, alpha!, batch1, batch2; ~beta!, batch1, batch2
bernoulli_: p: Tensor, *, generator; p: float = 0.5, *, generator
bmm mm: mat2
cauchy_: median: float = 0, sigma: float = 1, *, generator
copy_: other: Operand, non_blocking
exponential_: lambd: float = 1, *, generator
geometric_: p: float, *, generator
log_normal_: mean: float = 1, std: float = 2, *, generator
new_empty new_ones new_zeros: size: Ints, *, factory
new_full: size: Ints, fill_value: Number, *, factory
new_tensor: data: object, *, dtype, device, requires_grad: bool = False
normal_: mean: float = 0, std: float = 1, *, generator
random_: *, generator; from: int, to: int | None, *, generator; to: int, *, generator
set_: ; source: Storage; source: Storage, storage_offset: Index, size: Ints, stride; source: Tensor;
    source: Tensor, storage_offset: Index, size: Ints, stride
to_sparse: *, layout, blocksize, dense_dim; sparse_dim: int
to: device, dtype, non_blocking, copy, *, memory_format; dtype: Dtype, non_blocking, copy, *, memory_format;
    tensor: Tensor, non_blocking, copy, *, memory_format
type: dtype: object | None = None, non_blocking, *, memory_format: MemoryFormat | None = None
uniform_: from: float = 0, to: float = 1, *, generator
view: dtype: Dtype; size: Ints
"""

FILLED_IN = frozenset("inplace reduce reduction return_indices size_average".split())
INTERPRETED = """
adaptive_avg_pool2d adaptive_avg_pool3d -> same: input.size, output_size: Sizes
adaptive_max_pool1d adaptive_max_pool1d_with_indices -> adaptive_max_pool1d
adaptive_max_pool2d adaptive_max_pool2d_with_indices -> adaptive_max_pool2d: input.size, output_size: Sizes
adaptive_max_pool3d adaptive_max_pool3d_with_indices -> adaptive_max_pool3d: input.size, output_size: Sizes
affine_grid -> affine_grid_generator
alpha_dropout dropout feature_alpha_dropout -> same: input, p: Probability, train=training
atleast_1d atleast_2d atleast_3d -> same: tensors: Tensor | Tensors
batch_norm -> same: input, weight, bias, running_mean, running_var, training, momentum, eps
binary_cross_entropy -> same: target.size, input.size, weight.size
binary_cross_entropy_with_logits -> same: target.size, input.size, weight, pos_weight
block_diag broadcast_tensors cartesian_prod -> same: tensors: Tensors
cdist -> same: x1, x2, p
celu cosine_embedding_loss elu hardsigmoid hardswish hardtanh hinge_embedding_loss istft layer_norm leaky_relu mish
    multi_margin_loss multilabel_margin_loss pad relu relu6 rms_norm rrelu selu silu soft_margin_loss threshold
    triplet_margin_loss -> same
cross_entropy -> cross_entropy_loss: input, target, weight
ctc_loss -> same: log_probs, targets, input_lengths, target_lengths
dropout1d dropout2d dropout3d -> feature_dropout: input.dim, p: Probability, train=training
embedding -> same: weight, indices=input, padding_idx
fold -> col2im: input, output_size: Pair, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair
glu -> same: input.dim, dim
grid_sample -> grid_sampler: input, grid, _, _, align_corners
group_norm -> same: input.dim, num_groups, weight, bias, eps
gumbel_softmax -> empty_like: input=logits
huber_loss l1_loss mse_loss smooth_l1_loss -> same: target.size, input.size
instance_norm -> same: input.size, weight, bias, running_mean, running_var, use_input_stats
interpolate upsample_bilinear upsample_nearest -> interpolate: input.dim
kl_div -> same: input, target, _, *, log_target
linear_cross_entropy -> linear: input.dim, linear_weight.dim
local_response_norm -> same: input.dim
log_softmax softmax -> same: dim, *, dtype
lp_pool1d -> avg_pool1d: input.pow, kernel_size, stride
lu -> _lu_with_info: input=A, *, pivot
margin_ranking_loss -> same: input1.dim, input2.dim, target.dim, margin
max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices -> same
meshgrid -> same: tensors: Tensors, *, indexing
multilabel_soft_margin_loss -> log_sigmoid: input
nll_loss -> nll_loss_nd: input, target, weight, _, ignore_index
norm -> linalg_vector_norm: input.layout, _, dim, keepdim, *, dtype
poisson_nll_loss -> same: input, target, log_input, full, eps
sigmoid -> same: input.sigmoid
stft -> same: input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window
tanh -> same: input.tanh
tensordot -> same: a.dim, b.dim
triplet_margin_with_distance_loss -> pairwise_distance: x1=anchor, x2=positive
unfold -> im2col: input, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair
unique -> _unique2: input, *, sorted, return_inverse, return_counts
unique_consecutive -> same: input, *, return_inverse, return_counts, dim
"""

PYTHON = frozenset("""
    _typed_storage apply_ atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod
    cdist chain_matmul copy dim_order eig einsum from_data from_dlpack from_numpy get_file_path get_rng_state
    initial_seed is_storage is_tensor lobpcg lookup lstsq lu manual_seed map2_ map_ matrix_rank meshgrid module_load new
    norm pca_lowrank record_stream reinforce resize resize_as seed set_flush_denormal set_rng_state share_memory_ solve
    split stft storage storage_type svd_lowrank sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum symeig
    tensordot to_device to_dlpack typename unique unique_consecutive unravel_index""".split())
# functions of nn.functional that PyTorch compiles
COMPILED = frozenset("""
    adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity elu_ gelu hardshrink hardtanh_ leaky_relu_
    linear logsigmoid native_channel_shuffle one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_
    rrelu_
    scaled_dot_product_attention selu_ softplus softshrink threshold_""".split())
# further names of compiled functions: errors say the function's own
ALIASES = {"dsmm": "mm", "spmm": "mm", "hsmm": "hspmm", "saddmm": "sspaddmm"}
PREFIXES = {"": "", "linalg": "linalg_", "fft": "fft_", "special": "special_"}
EXPECTED = {"Operand": "Tensor", "Index": "int", "Probability": "float", "Floats": "tuple of floats",
            "Tensors": "tuple of Tensors", "Indices": "tuple of Tensors", "Numbers": "tuple of Scalars",
            "Names": "tuple of names", "Dtype": "torch.dtype", "Device": "torch.device", "Layout": "torch.layout",
            "MemoryFormat": "torch.memory_format", "Generator": "torch.Generator", "Storage": "torch.Storage",
            **dict.fromkeys(("Ints", "Ints1", "Sizes", "Pair"), "tuple of ints")}


class Parameter(NamedTuple):
    kind: str                # a name of `_kinds`, or of a class; ".size" for an argument that must have this attribute
    name: str
    default: str | None
    nullable: bool
    keyword_only: bool = False

    def __str__(self) -> str:
        default = "" if self.default is None else f" = {self.default}"
        return f"{EXPECTED.get(self.kind, self.kind)} {self.name}{default}"


class Signature(NamedTuple):
    parameters: tuple[Parameter, ...]
    hidden: bool = False

    @property
    def positional(self) -> int:
        return sum(not p.keyword_only for p in self.parameters)

    @property
    def required(self) -> int:
        return sum(p.default is None for p in self.parameters)

    @property
    def variadic(self) -> bool:
        """True if the only parameter is a list whose numbers may be given as separate arguments."""
        return self.positional == 1 and self.parameters[0].kind == "Ints"

    @property
    def takes_input(self) -> bool:
        return any(p.name == "input" and p.kind == "Tensor" for p in self.parameters)

    def without(self, *names: str) -> Signature:
        return self._replace(parameters=tuple(p for p in self.parameters if p.name not in names))

    def __str__(self) -> str:
        shown = [str(p) for p in self.parameters]
        if self.positional < len(shown):
            shown.insert(self.positional, "*")
        return f"({', '.join(shown)})"


# ── annotations ───────────────────────────────────────────────────────────────────────────────────────────────────────

SEVERAL = {"Ints1": "Ints", "Tensor": "Tensors"}        # what `*size: Ints1` collects


def _alternatives(name: str, annotation: str, default: str | None, keyword_only: bool = False) -> list[Parameter]:
    """Return the parameter once for each kind that its annotation allows."""
    kinds = annotation.split(" | ")
    return [Parameter(kind, name, default, "None" in kinds, keyword_only) for kind in kinds if kind != "None"]


def _text(default: Any) -> str | None:
    """Return a default as PyTorch writes it."""
    if default is inspect.Parameter.empty:
        return None
    return f'"{default}"' if isinstance(default, str) else str(default).replace(", ", ",")


def annotated(function: Any, self: str = "self") -> list[list[Parameter]]:
    """Return the alternatives of each parameter of a function, with `out` if a wrapper takes it.

    self: what PyTorch calls a parameter that we call self
    """
    gives_out = False
    while hasattr(function, "__wrapped__"):
        code = function.__code__ if hasattr(function, "__code__") else None
        gives_out |= code is not None and "out" in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        function = function.__wrapped__
    function = getattr(function, "like", function)      # `f_copy` has the arguments of `f`
    function = inspect.unwrap(function)
    found = []
    for p in inspect.signature(function).parameters.values():
        name, kind = self if p.name == "self" else p.name, "object" if p.annotation is p.empty else p.annotation
        if p.kind is p.VAR_POSITIONAL:
            kinds = dict.fromkeys(SEVERAL.get(k, k) for k in kind.split(" | "))
            found.append(_alternatives(name, " | ".join(kinds), None))
        elif p.kind is not p.VAR_KEYWORD:
            found.append(_alternatives(name, kind, _text(p.default), p.kind is p.KEYWORD_ONLY))
    if gives_out:
        several = str(function.__annotations__.get("return")).startswith(("tuple", "return_types"))
        found.append([Parameter("Tensors" if several else "Tensor", "out", "None", True, True)])
    return found


def _aligned(parameters: list[list[Parameter]]) -> tuple[Signature, ...]:
    """Return one signature with the first alternative of each parameter, one with the second, …"""
    return tuple(Signature(tuple(each[min(i, len(each) - 1)] for each in parameters))
                 for i in range(max(map(len, parameters), default=1)))


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rows(table: str) -> Iterator[tuple[list[str], str]]:
    for row in table.replace("\n    ", " ").strip().splitlines():
        names, _, rest = row.partition(":")
        yield names.split(), rest.strip()


@cache
def _table(kind: str) -> dict[str, str]:
    return {name: row for names, row in _rows({"METHODS": METHODS, "OVERLOADS": OVERLOADS}[kind]) for name in names}


def read(row: str, own: list[list[Parameter]]) -> tuple[Signature, ...]:
    """Return the signatures of a row of OVERLOADS or METHODS."""
    found: list[Signature] = []
    for text in row.split(";"):
        if (text := text.strip()) == "…":
            found += _aligned(own)
            continue
        hidden, text = text.startswith("~"), text.removeprefix("~")
        text = ", ".join(SHORTHANDS.get(part, part) for part in text.split(", "))
        parameters, keyword_only = [], False
        for part in text.split(", ") if text else ():
            if part == "*":
                keyword_only = True
            else:
                parameters.append(_parameter(part, own)[0]._replace(keyword_only=keyword_only))
        found.append(Signature(tuple(parameters), hidden))
    return tuple(found)


def _named(name: str, own: list[list[Parameter]]) -> list[Parameter]:
    return next(each for each in own if each[0].name == name)


def _parameter(text: str, own: list[list[Parameter]]) -> list[Parameter]:
    """Read `name: annotation = default`, or `name` or `name!` of a parameter that the function has, too."""
    name, colon, rest = text.partition(": ")
    if colon:
        annotation, equals, default = rest.partition(" = ")
        return _alternatives(name, annotation, default if equals else None)
    mine = _named(name.rstrip("!"), own)
    return [p._replace(default=None) for p in mine] if name.endswith("!") else mine


# ── functions by name ─────────────────────────────────────────────────────────────────────────────────────────────────


def function_of(name: str) -> Any:
    """Return our function for a compiled one of PyTorch; None if there is none."""
    for module, prefix in PREFIXES.items():
        if prefix and name.startswith(prefix):
            return getattr(import_module(f"...{module}", __name__), name.removeprefix(prefix), None)
    if name in COMPILED:
        return getattr(import_module("...nn.functional", __name__), name, None)
    return import_module("._register", __package__).FUNCTIONS.get(name)


@cache
def signatures(name: str, method: bool = False) -> tuple[Signature, ...] | None:
    """Return the signatures of a compiled function or method of PyTorch; None if there is none of that name."""
    overloads, methods = _table("OVERLOADS"), _table("METHODS")
    if name in PYTHON or method and name == "istft":
        return None
    if not method:
        function = function_of(name)
        if name in overloads:
            return read(overloads[name], [] if function is None else annotated(function))
        if name.endswith("_") and name[:-1] in overloads:           # a function that writes into its input
            return tuple(s.without("out") for s in signatures(name[:-1]) or () if s.takes_input)
        return None if function is None else _aligned(annotated(function, "input"))
    function = vars(Tensor).get(name)
    own = [] if function is None else annotated(function)
    if name in methods:
        return read(methods[name], own)
    if name in overloads:
        return tuple(s.without("input", "out") for s in signatures(name) or () if s.takes_input)
    if name.endswith("_") and (name[:-1] in methods or name[:-1] in overloads):
        return signatures(name[:-1], True)
    return None if function is None else _aligned(own[1:])


# ── functions that PyTorch writes in Python ───────────────────────────────────────────────────────────────────────────


@cache
def _interpreted() -> dict[str, tuple[str, str]]:
    found = {}
    for row in INTERPRETED.replace("\n    ", " ").strip().splitlines():
        names, _, rest = row.partition(" -> ")
        compiled, _, arguments = rest.partition(": ")
        found.update({name: (name if compiled == "same" else compiled, arguments) for name in names.split()})
    return found


def handed_on(name: str, function: Any) -> tuple[str, tuple[Signature, ...], dict[str, str]] | None:
    """Return the compiled function that a function of INTERPRETED calls, its signatures, and {its parameter: ours}."""
    if name not in (rows := _interpreted()):
        return None
    compiled, row = rows[name]
    own = annotated(function)
    if not row:
        return compiled, _aligned([each for each in own if each[0].name not in FILLED_IN]), {}
    parameters, sources, keyword_only = [], {}, False
    for part in row.split(", "):
        if part == "*":
            keyword_only = True
            continue
        if part == "_":
            found = [Parameter("object", part, None, True)]
        elif ": " in part:
            found = _parameter(part, own)
        else:
            target, _, source = part.partition("=")
            target, _, attribute = target.partition(".")
            sources[target] = source or target
            found = [p._replace(name=target, kind=f".{attribute}" if attribute else p.kind)
                     for p in _named(source or target, own)]
        parameters.append([p._replace(default=None, keyword_only=keyword_only) for p in found])
    return compiled, _aligned(parameters), sources
