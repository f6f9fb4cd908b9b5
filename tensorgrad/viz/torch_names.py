"""PyTorch's names for the ops of the table, and indices and parameters as programs write them.

The table names what the engine computes: `max_dim`, `place_slice`. People read `max` and `g at [0, 1:3], 0 elsewhere`.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ops.indexing import ARRAY
from .text import shown

# opname → the function or method of PyTorch that records it; of an op that only a backward records, the one that
# computes it.
PUBLIC = {
    "add_axis": "index_add", "affine_by_channel": "batch_norm", "attention": "scaled_dot_product_attention",
    "average": "adaptive_avg_pool", "border": "pad", "cast": "to", "cholesky_factor": "cholesky", "columns": "unfold",
    "columns_added": "fold", "concat": "cat", "copied": "copy_", "count_norm": "vector_norm",
    "ctc_posterior": "ctc_loss", "determinant": "det", "deviation": "std", "diagonal_place": "diag_embed",
    "channels_last": "contiguous",
    "dirichlet_grad": "_dirichlet_grad", "distinct": "unique", "distinct_slices": "unique", "eig_pairs": "eig",
    "eig_values": "eigvals", "eigh_pairs": "eigh", "eigh_values": "eigvalsh", "embedding_add": "index_add",
    "embedding_sparse": "embedding",
    "euclidean_distance": "cdist", "expand_dims": "unsqueeze", "filled": "fill_", "fourier_transform": "fftn",
    "from_half_spectrum": "irfft", "gather_sparse": "gather", "gelu_tanh": "gelu", "get_item": "select",
    "get_slice": "slice",
    "greatest_of_all": "max", "gru_layer": "gru", "half_spectrum": "rfft", "householder_factors": "geqrf",
    "in_columns": "contiguous", "index_add_into": "index_put", "inverse_matrix": "inv", "least_of_all": "min",
    "left_shift": "bitwise_left_shift", "linear_without_bias": "linear", "log_determinant": "slogdet",
    "log_sigmoid": "logsigmoid", "lstm_layer": "lstm", "make_complex": "complex", "matrix_exponential": "matrix_exp",
    "max_dim": "max", "median_dim": "median", "median_of_all": "median", "min_dim": "min",
    "nanmedian_dim": "nanmedian", "nanmedian_of_all": "nanmedian", "native_batch_norm": "batch_norm",
    "native_group_norm": "group_norm", "native_layer_norm": "layer_norm", "order": "argsort", "pad_constant": "pad",
    "permute_dims": "permute", "pivot_order": "lu_unpack", "place_along_axis": "scatter",
    "place_slice": "slice_scatter", "power": "pow", "pseudo_inverse": "pinv", "qr_factor": "qr",
    "region_max": "fractional_max_pool", "relu_gradient": "threshold_backward", "resample": "interpolate",
    "restride": "as_strided", "right_shift": "bitwise_right_shift", "rnn_layer": "rnn_tanh",
    "rrelu_with_noise": "rrelu", "sampled_matmul": "sparse_sampled_addmm", "scatter_extreme": "scatter_reduce",
    "search_sorted": "searchsorted",
    "set_view": "copy_", "sigmoid_gradient": "sigmoid_backward", "singular_values": "svdvals", "solve_linear": "solve",
    "sort_dim": "sort", "sparse_matmul": "mm", "sparse_tensor": "sparse_coo_tensor", "sparse_to_dense": "to_dense",
    "sparse_values": "values", "split_sizes": "split", "standard_gamma": "_standard_gamma",
    "standard_gamma_grad": "_standard_gamma_grad", "svd_factor": "svd", "take_along_axis": "take_along_dim",
    "take_axis": "index_select", "tanh_gradient": "tanh_backward", "to_device": "to", "trunc_divide": "div",
    "upsample_nearest": "interpolate",
    "unfold_add": "unfold_backward",
    "variance": "var",
}
# Ops whose name in PyTorch has the number of axes that a window slides along, and the parameter that tells it.
SLIDING = {"convolution": ("conv{}", "stride"), "convolution_input": ("conv_transpose{}", "stride"),
           "convolution_weight": ("conv{}_weight", "stride"), "max_pool": ("max_pool{}", "kernel"),
           "window_max": ("max_pool{}", "kernel"),
           "window_sum": ("avg_pool{}", "kernel"),
           "window_spread": ("avg_pool{}_backward", "kernel")}
AXES = {"axis": "dim", "axes": "dims", "axis1": "dim1", "axis2": "dim2", "keepdims": "keepdim"}
# parameters that say how memory is arranged
UNSAID = {"view", "order", "written", "template", "source", "target", "widths", "sizes"}
FULL = slice(None)


def public(opname: str) -> str:
    """PyTorch's name for an op of the table, or for a function of its formulas.

    >>> public("permute_dims"), public("exp")
    ('permute', 'exp')
    """
    return SLIDING[opname][0].format("") if opname in SLIDING else PUBLIC.get(opname, opname)


def title(opname: str, params: Mapping[str, Any] | None = None) -> str:
    """PyTorch's name for a step: for windows with the number of axes that they slide along.

    >>> title("convolution", {"stride": (1, 1)}), title("get_slice", {"index": (None,)})
    ('conv2d', 'unsqueeze')
    """
    params = params or {}
    if opname in SLIDING:
        name, parameter = SLIDING[opname]
        along = params.get(parameter)
        return name.format(f"{len(along)}d" if isinstance(along, Sequence) else "")
    if opname == "rnn_layer" and params.get("relu"):
        return "rnn_relu"
    parts = ([part for part in params.get("index", ()) if part is not Ellipsis and part != FULL]
             if opname == "get_slice" else [])
    return "unsqueeze" if parts and all(part is None for part in parts) else public(opname)


def subscript(index: Sequence[Any], arrays: Sequence[str] = ()) -> str:
    """An index between its brackets: each ARRAY in it is the next of `arrays`.

    >>> subscript((0, slice(None), slice(1, None, 2))), subscript((slice(None), ARRAY), ["i"])
    ('[0, :, 1::2]', '[:, i]')
    """
    rest = iter(arrays)
    parts = [next(rest, "…") if part is ARRAY else place(part) for part in index]
    while len(parts) > 1 and parts[-1] in (":", "…") and index[len(parts) - 1] is not ARRAY:
        parts.pop()
    return f"[{', '.join(parts)}]"


def place(part: Any) -> str:
    """A part of an index.

    >>> [place(part) for part in (3, slice(None, 2, 1), None, ...)]
    ['3', ':2', 'None', '…']
    """
    if isinstance(part, slice):
        ends = ":".join("" if end is None else str(end) for end in (part.start, part.stop))
        return ends if part.step in (None, 1) else f"{ends}:{part.step}"
    return "…" if part is Ellipsis else str(part)


def viewed(view: Sequence[tuple[Any, Mapping[str, Any]]]) -> str:
    """The way from a tensor to a view of it, to be written behind the tensor's name.

    >>> import tensorgrad as torch
    >>> x = torch.ones(2, 3, requires_grad=True) * 1
    >>> x[0].mul_(2).shape, viewed(x.grad_fn.params["view"])
    (torch.Size([3]), '[0]')
    """
    def link(op: Any, params: Mapping[str, Any]) -> str:
        if "index" in params:
            return subscript(params["index"])
        return f".{title(op.opname, params)}({', '.join(details(op.opname, params).values())})"
    return "".join(link(op, params) for op, params in view)


def details(opname: str, params: Mapping[str, Any] | None, arrays: Sequence[str] = ()) -> dict[str, str]:
    """The parameters of a step as text, by the names that formulas have for them; an index as its program writes it.

    >>> details("get_item", {"index": (0,)}), details("sum", {"axis": (1,), "keepdims": False})
    ({'index': '[0]'}, {'axis': '(1,)', 'keepdims': 'False'})
    """
    params = params or {}
    found = {name: shown(value) for name, value in params.items() if name not in UNSAID and name != "index"}
    if "index" in params:
        found["index"] = subscript(params["index"])
    elif "template" in params:
        found["index"] = subscript(params["template"], arrays)
    elif "view" in params:
        found["index"] = viewed(params["view"])
    return found


def arguments(opname: str, params: Mapping[str, Any] | None) -> str:
    """The parameters of a step as a caller of PyTorch's function writes them.

    >>> arguments("sum", {"axis": (1,), "keepdims": True}), arguments("get_item", {"index": (0,)})
    ('dim=(1,), keepdim=True', '[0]')
    """
    found = details(opname, params)
    index = found.pop("index", "")
    return ", ".join([*([index] if index else []), *[f"{AXES.get(name, name)}={text}" for name, text in found.items()]])


__all__ = ["arguments", "details", "public", "subscript", "title", "viewed"]
