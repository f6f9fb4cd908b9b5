"""The usual types of arguments. PyTorch refuses some others that Python code would accept, such as `keepdim=1`."""
from __future__ import annotations

from sys import maxsize
from typing import Any

from .device import device
from .dtype import dtype
from .size import Size

FLAGS = """
    cudnn_enabled density enable_gqa some sparse swap unsafe wrap
    accumulate adjoint align_corners as_tuple assume_unique ceil_mode center check_errors compute_uv copy count_include_pad descending
    equal_nan full_matrices hermitian implicit include_last_offset include_self increasing invert is_causal keepdim keepdims largest left
    log_input log_target non_blocking normalized onesided out_int32 periodic pin_memory pivot replacement requires_grad return_complex
    return_counts return_inverse right scale_grad_by_freq sorted sparse_grad stable train training transpose unbiased unitriangular
    unpack_data unpack_pivots with_replacement zero_infinity
    batch_first bidirectional full has_biases
"""
INTEGERS = """
    N axis0 axis1 blank dimension divisor_override ind padding_idx r window_length
    chunks col decimals diagonal dim0 dim1 dim2 edge_order end_dim groups hop_length ignore_index k length low m minlength n n_fft num_classes
    num_groups num_layers num_samples offset row sections split_size start_dim steps storage_offset
    upscale_factor downscale_factor win_length
"""
LISTS = """dilation dims kernel_size normalized_shape output_padding output_size pad padding repeats s shifts size sizes split_size_or_sections split_sizes
    stride"""
NUMBERS = """
    alpha atol base beta correction d delta dropout_p dx eps fill_value initial input_scale lambd lower margin max_norm maxnorm median
    momentum nan neginf norm_type p posinf rcond rtol sigma threshold value
"""
WORDS = "approximate compute_mode driver indexing mode norm padding_mode reduce reduction rounding_mode side"
NONE = type(None)
USUAL: dict[str, frozenset[type]] = {
    **dict.fromkeys(FLAGS.split(), frozenset((bool,))),
    **dict.fromkeys(INTEGERS.split(), frozenset((int, NONE))),
    **dict.fromkeys(LISTS.split(), frozenset((int, tuple, list, str, Size, NONE))),
    **dict.fromkeys(NUMBERS.split(), frozenset((int, float, bool, complex, NONE))),
    **dict.fromkeys(WORDS.split(), frozenset((str, NONE))),
    **dict.fromkeys(("dim", "axis"), frozenset((int, tuple, list, Size, NONE))),
    "dtype": frozenset((dtype, str, NONE)),      # names of dtypes are taken, too
    "device": frozenset((str, device, NONE)),
}
WITH_DIM: tuple[int, frozenset[type]] = maxsize, frozenset()       # among the places of a function: it has a keyword keepdim= only beside dim=
COUNTED = frozenset(" ".join((FLAGS, INTEGERS, LISTS, NUMBERS)).split())


def places(function: Any) -> tuple[tuple[int, frozenset[type]], ...]:
    """Return the positions at which a function takes flags and counts, with the usual types there."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = function.__code__
    names = code.co_varnames[:code.co_argcount]
    found = tuple((i, USUAL[name]) for i, name in enumerate(names) if name in COUNTED and not (name == "value" and "key" in names))    # a tensor beside a key
    return (*found, WITH_DIM) if getattr(function, "keeps_with_dim", False) else found


def odd(args: Any, kwargs: Any, places: Any) -> bool:
    """Return True if an argument has an unusual type, so that the parser of PyTorch's signatures must check it."""
    for place, usual in places:
        if place < len(args) and type(args[place]) not in usual:
            return True
    for name in kwargs:
        if name in USUAL and type(kwargs[name]) not in USUAL[name]:
            return True
        if name in ("keepdim", "keepdims") and len(args) < 2 and "dim" not in kwargs and "axis" not in kwargs and WITH_DIM in places:
            return True
    return False
