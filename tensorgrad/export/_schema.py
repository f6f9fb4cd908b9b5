"""Facts of PyTorch's files of exported programs: numbers of dtypes, names of operators' arguments, trees of arguments.

https://pytorch.org/docs/stable/export/pt2_archive.html
"""
from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from ..dtype import (
    bfloat16,
    bool,
    channels_last,
    channels_last_3d,
    complex64,
    complex128,
    contiguous_format,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    preserve_format,
    uint8,
    uint16,
)
from ..interpret.aten_rules import POLYNOMIALS
from ..utils._pytree import TreeSpec

DTYPES = {1: uint8, 2: int8, 3: int16, 4: int32, 5: int64, 6: float16, 7: float32, 8: float64, 10: complex64,
          11: complex128, 12: bool, 13: bfloat16, 28: uint16, 29: float8_e4m3fn, 30: float8_e5m2}
NUMBERS = {kind: number for number, kind in DTYPES.items()}
FORMATS = {1: contiguous_format, 2: channels_last, 3: channels_last_3d, 4: preserve_format}
STRIDED = 7

# The names of operators' arguments. Operators that are not here have the names `self` and `other`.
ARGUMENTS = {operator: names.split() for names, operators in {
    "self dim keepdim": "all.dim all.dims amax.default amin.default any.dim any.dims argmax.default argmin.default "
                        "logsumexp.default max.dim median.dim min.dim mode.default nanmedian.dim",
    "self dim dtype": "cumprod.default cumsum.default log_softmax.int softmax.int cummax.default cummin.default "
                      "glu.default logcumsumexp.default squeeze.dim squeeze.dims unbind.int unsqueeze.default",
    "self dim keepdim dtype": "mean.dim prod.dim_int sum.dim_IntList", "self exponent": "pow.Scalar pow.Tensor_Scalar "
    "pow.Tensor_Tensor", "condition self other": "where.Scalar where.ScalarOther where.ScalarSelf where.self",
    "x": "special_airy_ai.default special_scaled_modified_bessel_k0.default special_scaled_modified_bessel_k1.default "
         "special_spherical_bessel_j0.default",
    "self kernel_size stride padding dilation ceil_mode": "max_pool1d.default max_pool2d.default max_pool3d.default",
    "tensors dim": "cat.default stack.default", "self min max": "clamp.Tensor clamp.default",
    "self dims": "flip.default permute.default", "self lambd": "hardshrink.default softshrink.default",
    "self dim index": "index_select.default select.int", "self end weight": "lerp.Scalar lerp.Tensor",
    "self mask value": "masked_fill.Scalar masked_fill.Tensor",
    "self target reduction": "mse_loss.default soft_margin_loss.default",
    "self dim index src": "scatter.src scatter_add.default", "self dim index value": "scatter.value",
    "self dim": "std.correction var.correction sym_size.int", "self diagonal": "tril.default triu.default",
    "input weight bias running_mean running_var training momentum eps cudnn_enabled": "batch_norm.default",
    "self target weight reduction": "binary_cross_entropy.default",
    "self target weight pos_weight reduction": "binary_cross_entropy_with_logits.default",
    "self alpha": "celu.default", "real imag": "complex.default", "self pad value": "constant_pad_nd.default",
    "input weight bias stride padding dilation transposed output_padding groups": "convolution.default",
    "self target weight reduction ignore_index label_smoothing": "cross_entropy_loss.default",
    "self offset dim1 dim2": "diagonal.default", "self alpha scale input_scale": "elu.default",
    "weight indices padding_idx scale_grad_by_freq sparse": "embedding.default", "self size": "expand.default",
    "self dim index sparse_grad": "gather.default", "self min_val max_val": "hardtanh.default",
    "self values": "heaviside.default", "self target reduction delta": "huber_loss.default",
    "self indices": "index.Tensor", "self indices values accumulate": "index_put.default",
    "self k dim keepdim": "kthvalue.default", "self negative_slope": "leaky_relu.default",
    "self ord dim keepdim dtype": "linalg_vector_norm.default", "input weight bias": "linear.default",
    "self eps": "logit.default", "self nan posinf neginf": "nan_to_num.default",
    "input normalized_shape weight bias eps": "layer_norm.default",
    "self target weight reduction ignore_index": "nll_loss_nd.default", "n self": "polygamma.default",
    "self weight": "prelu.default", "self shape": "reshape.default",
    "input normalized_shape weight eps": "rms_norm.default", "self shifts dims": "roll.default",
    "query key value attn_mask dropout_p is_causal": "scaled_dot_product_attention.default",
    "sorted_sequence self": "searchsorted.Tensor", "self dim start end step": "slice.Tensor",
    "self target reduction beta": "smooth_l1_loss.default", "self beta threshold": "softplus.default",
    "self dim descending": "argsort.default sort.default", "self split_size dim": "split.Tensor",
    "A": "linalg_det.default",
    "grad_output output": "sigmoid_backward.default tanh_backward.default",
    "grad_output self threshold": "threshold_backward.default",
    "x n": " ".join(f"special_{name}.default" for name in POLYNOMIALS),
    "self split_sizes dim": "split_with_sizes.default",
    "self threshold value": "threshold.default", "self k dim largest sorted": "topk.default",
    "size": "ones.default rand.default randn.default zeros.default", "size fill_value": "full.default",
    "end": "arange.default", "start end": "arange.start", "start end step": "arange.start_step",
    "s": "scalar_tensor.default", "n": "eye.default randperm.default", "n m": "eye.m", "low high size": "randint.low",
    "self src": "copy_.default",
    "input p train": "dropout.default",
    "self dim0 dim1": "transpose.int", "self dimension size step": "unfold.default",
}.items() for operator in operators.split()}

# Operators that files may call: those that ops become here, and others that PyTorch's programs consist of.
CALLABLE = frozenset("""
    abs acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d add addbmm
    addcdiv addcmul addmm addmv alias alpha_dropout amax amin aminmax angle any all arange argmax argmin argsort
    as_strided asin asinh atan atan2 atanh avg_pool1d avg_pool2d avg_pool3d baddbmm batch_norm bernoulli
    binary_cross_entropy binary_cross_entropy_with_logits bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor bmm bucketize cat cdist ceil celu chunk clamp clamp_max clamp_min clone complex
    conj constant_pad_nd contiguous conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    convolution copy copysign cos cosh cosine_similarity cross_entropy_loss cummax cummin cumprod cumsum deg2rad detach
    diag diag_embed diagonal diff digamma div dot dropout einsum elu embedding empty eq erf erfc erfinv exp exp2
    expand expand_as expm1 eye feature_dropout flatten flip floor floor_divide fmax fmin fmod frac full full_like
    gather gcd ge gelu glu group_norm gru gt hardshrink hardsigmoid hardswish hardtanh heaviside huber_loss hypot i0
    igamma igammac im2col imag index index_add index_copy index_fill index_put index_select instance_norm isclose
    isfinite isinf isnan kthvalue l1_loss layer_norm lcm le leaky_relu lerp lgamma lift_fresh lift_fresh_copy
    linalg_matrix_exp linalg_norm linalg_vector_norm linear linspace log log10 log1p log2 log_sigmoid log_softmax
    logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp lstm lt
    masked_fill masked_scatter matmul max max_pool1d max_pool2d max_pool3d maximum mean median meshgrid min minimum
    mish mm mode movedim mse_loss mul mv nan_to_num nanmedian narrow native_dropout native_layer_norm ne neg
    new_empty new_full new_ones new_zeros nextafter nll_loss_nd nonzero norm one_hot ones ones_like outer pad
    permute pixel_shuffle pixel_unshuffle polar polygamma pow prelu prod rad2deg rand rand_like randint randn randn_like
    randperm real reciprocal relu relu6 remainder repeat repeat_interleave reshape rms_norm roll round rsqrt rsub
    scalar_tensor scaled_dot_product_attention scatter scatter_add scatter_reduce searchsorted select selu sgn
    sigmoid sign signbit silu sin sinc sinh slice smooth_l1_loss soft_margin_loss softmax softplus softshrink sort
    split split_with_sizes sqrt square squeeze stack std sub sum swapaxes sym_numel sym_size sym_stride t take tan
    tanh tensor_split threshold tile to topk transpose tril triu true_divide trunc unbind unflatten unfold unsqueeze
    var view view_as view_as_complex view_as_real where xlogy zeros zeros_like _native_batch_norm_legit_no_training
    max_pool2d_with_indices native_group_norm _assert_tensor_metadata _log_softmax _softmax _to_copy _unsafe_view
    linalg_cross linalg_det sigmoid_backward tanh_backward threshold_backward special_airy_ai special_bessel_j0
    special_bessel_j1 special_bessel_y0 special_bessel_y1 special_entr special_erfcx special_i0e special_i1 special_i1e
    special_log_ndtr special_modified_bessel_k0 special_modified_bessel_k1 special_ndtr special_ndtri
    special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0 special_xlog1py
    special_zeta
    """.split()) | {f"special_{name}" for name in POLYNOMIALS}


def dumped(spec: TreeSpec) -> str:
    """Return PyTorch's text of a tree of arguments. NotImplementedError for a container that has none."""
    return json.dumps([1, _dumped(spec)])


KINDS = {tuple: "builtins.tuple", list: "builtins.list", dict: "builtins.dict", OrderedDict: "collections.OrderedDict"}
BY_NAME = {name: kind for kind, name in KINDS.items()}


def _dumped(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    if spec.type not in KINDS:
        raise NotImplementedError(f"torch.export.save: programs with arguments or results in a {spec.type} are not "
                                  f"written; tuples, lists and dictionaries are")
    keys = list(spec.context) if spec.type in (dict, OrderedDict) else None
    if keys is not None and not all(isinstance(key, (str, int)) for key in keys):
        raise NotImplementedError("torch.export.save: keys of dictionaries are strings or integers")
    return {"type": KINDS[spec.type], "context": json.dumps(keys), "children_spec": [*map(_dumped, spec.children())]}


def loaded(text: str) -> TreeSpec:
    """Return the tree of arguments of PyTorch's text. ValueError for other text."""
    version, spec = json.loads(text)
    if version != 1:
        raise ValueError(f"the version {version!r} of a tree of arguments is not known")
    return _loaded(spec)


def _loaded(spec: dict[str, Any]) -> TreeSpec:
    if spec["type"] is None:
        return TreeSpec(None, None, [])
    if spec["type"] not in BY_NAME:
        raise ValueError(f"containers of the type {spec['type']!r:.80} are not read")
    kind, keys = BY_NAME[spec["type"]], json.loads(spec["context"])
    children = [*map(_loaded, spec["children_spec"])]
    if kind in (dict, OrderedDict) and (not isinstance(keys, list) or len(keys) != len(children)
                                        or not all(isinstance(key, (str, int)) for key in keys)):
        raise ValueError("the keys of a dictionary do not fit its values")
    return TreeSpec(kind, keys, children)
