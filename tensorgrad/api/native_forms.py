"""Functions of PyTorch's root that PyTorch and generated code call: this package's functions with other arguments."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._tensor import Tensor
from .._tensor.torch_function import namespaced
from . import FUNCTIONS as f

__all__ = ["_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_", "_conj", "_conj_physical",
           "_convolution", "_dim_arange", "_euclidean_dist", "_is_all_true", "_is_any_true", "_log_softmax",
           "_masked_softmax", "_safe_softmax", "_shape_as_tensor", "_softmax", "_stack", "_trilinear", "_unique",
           "_unique2", "_weight_norm", "convolution", "_functional_assert_async", "_conj_copy", "_neg_view_copy",
           "_reshape_alias_copy", "_indices_copy", "_values_copy", "_sym_acos", "_sym_asin", "_sym_atan", "_sym_cos",
           "_sym_cosh", "_sym_log2", "_sym_sin", "_sym_sinh", "_sym_sqrt", "_sym_tan", "_sym_tanh", "sym_sqrt"]


def _softmax(input: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """`softmax`, whose result has the input's dtype."""
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")
    return f["softmax"](input, dim)  # type: ignore[no-any-return]


def _log_softmax(input: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """`log_softmax`, whose result has the input's dtype."""
    if half_to_float:
        raise RuntimeError("log_softmax with half to float conversion is not supported on CPU")
    return f["log_softmax"](input, dim)  # type: ignore[no-any-return]


def _safe_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`softmax`, but 0 along a dimension where all is −∞."""
    nothing = (input == float("-inf")).all(dim, keepdim=True)
    return f["softmax"](input, dim, dtype=dtype).masked_fill(nothing, 0)  # type: ignore[no-any-return]


def _masked_softmax(input: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None) -> Tensor:
    """`softmax` of the elements at which the mask is false."""
    dim = input.dim() - 1 if dim is None else dim
    return f["softmax"](input.masked_fill(mask, float("-inf")), dim)  # type: ignore[no-any-return]


def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
                dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int) -> Tensor:
    """A convolution of any number of dimensions, or a transposed one.

    >>> import tensorgrad as torch
    >>> x, w = torch.arange(4.).reshape(1, 1, 4), torch.ones(1, 1, 2)
    >>> torch.convolution(x, w, None, [1], [0], [1], False, [0], 1)
    tensor([[[1., 3., 5.]]])
    """
    n = weight.dim() - 2
    if transposed:
        return f[f"conv_transpose{n}d"](input, weight, bias, stride, padding,  # type: ignore[no-any-return]
                                        output_padding, groups, dilation)
    return f[f"conv{n}d"](input, weight, bias, stride, padding, dilation, groups)  # type: ignore[no-any-return]


def _convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
                 dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
                 *backends: bool) -> Tensor:
    """`convolution`; the flags of cuDNN that follow change nothing."""
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """`stack`."""
    return f["stack"](tensors, dim)  # type: ignore[no-any-return]


def _conj(input: Tensor) -> Tensor:
    """`conj` of a complex tensor."""
    return f["conj"](input)  # type: ignore[no-any-return]


def _conj_physical(input: Tensor) -> Tensor:
    """`conj_physical`."""
    return f["conj_physical"](input)  # type: ignore[no-any-return]


def _is_all_true(input: Tensor) -> Tensor:
    """`all`, of bools."""
    return f["all"](input)  # type: ignore[no-any-return]


def _is_any_true(input: Tensor) -> Tensor:
    """`any`, of bools."""
    return f["any"](input)  # type: ignore[no-any-return]


def _unique(input: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, Tensor]:
    """`unique` with the inverse, which is empty unless it is asked for."""
    return _unique2(input, sorted, return_inverse)[:2]


def _unique2(input: Tensor, sorted: bool = True, return_inverse: bool = False,
             return_counts: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """`unique` with the inverse and the counts, which are empty unless they are asked for."""
    values, inverse, counts = f["unique"](input, sorted, True, True)
    nothing = counts.new_empty(0)
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


def _dim_arange(like: Tensor, dim: int) -> Tensor:
    """The indices along a dimension."""
    return f["arange"](like.size(dim), device=like.device)  # type: ignore[no-any-return]


def _shape_as_tensor(input: Tensor) -> Tensor:
    """The lengths of the dimensions."""
    return f["tensor"](list(input.shape), dtype=f["arange"](0).dtype)  # type: ignore[no-any-return]


def _euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """`cdist` with p = 2."""
    return f["cdist"](x1, x2)  # type: ignore[no-any-return]


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """v · g / ‖v‖, with the norms over all dimensions but one."""
    others = [k for k in range(v.dim()) if k != dim % v.dim()]
    return v * (g / v.norm(2, others, keepdim=True))


def _trilinear(i1: Tensor, i2: Tensor, i3: Tensor, expand1: Sequence[int], expand2: Sequence[int],
               expand3: Sequence[int], sumdim: Sequence[int], unroll_dim: int = 1) -> Tensor:
    """The product of three tensors, with dimensions of length 1 put in at `expand`, summed over `sumdim`."""
    factors = []
    for factor, places in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for place in sorted(places):
            factor = factor.unsqueeze(place)
        factors.append(factor)
    product = factors[0] * factors[1] * factors[2]
    return product.sum(list(sumdim)) if sumdim else product


def _amp_foreach_non_finite_check_and_unscale_(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply gradients by inv_scale, in place, and set found_inf to 1 if an element is infinite or NaN."""
    for name, flag in (("found_inf", found_inf), ("inv_scale", inv_scale)):
        if flag.numel() != 1:
            raise RuntimeError(f"{name} must be a 1-element tensor.")
    for gradient in self:
        if not bool(f["isfinite"](gradient).all()):
            found_inf.fill_(1.0)
        gradient.mul_(inv_scale)


def _amp_update_scale_(self: Tensor, growth_tracker: Tensor, found_inf: Tensor, scale_growth_factor: float,
                       scale_backoff_factor: float, growth_interval: int) -> Tensor:
    """Shrink the scale after infinities, and let it grow after `growth_interval` steps without; count the steps."""
    if bool(found_inf):
        self.mul_(scale_backoff_factor)
        growth_tracker.zero_()
    elif int(growth_tracker) + 1 == growth_interval:
        if bool(f["isfinite"](self * scale_growth_factor)):
            self.mul_(scale_growth_factor)
        growth_tracker.zero_()
    else:
        growth_tracker.add_(1)
    return self


def _functional_assert_async(self: Tensor, assert_msg: str, dep_token: Tensor) -> Tensor:
    """RuntimeError unless the only element is nonzero; a copy of the token, on which later steps can depend."""
    if not bool(self):
        raise RuntimeError(assert_msg)
    return dep_token.clone()


def _conj_copy(input: Tensor) -> Tensor:
    """The conjugate, in memory of its own."""
    return f["conj_physical"](input).clone()  # type: ignore[no-any-return]


def _neg_view_copy(input: Tensor) -> Tensor:
    """−x, in memory of its own."""
    return -input


def _reshape_alias_copy(input: Tensor, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    """`as_strided` from the tensor's first element, in memory of its own."""
    return f["as_strided_copy"](input, size, stride, input.storage_offset())  # type: ignore[no-any-return]


def _indices_copy(input: Tensor) -> Tensor:
    """The coordinates of a sparse tensor, in memory of their own."""
    return input._indices().clone()


def _values_copy(input: Tensor) -> Tensor:
    """The values of a sparse tensor, in memory of their own."""
    return input._values().clone()


def _of_number(name: str) -> Any:
    compute = getattr(math, name)

    def function(a: Any) -> float:
        return compute(a)  # type: ignore[no-any-return]
    function.__name__ = function.__qualname__ = f"_sym_{name}"
    function.__doc__ = f"`math.{name}` of a number, which may be the size of a tensor."
    return function


_sym_acos, _sym_asin, _sym_atan, _sym_cos, _sym_cosh, _sym_log2, _sym_sin, _sym_sinh, _sym_sqrt, _sym_tan, _sym_tanh = (
    _of_number(_name) for _name in "acos asin atan cos cosh log2 sin sinh sqrt tan tanh".split())
sym_sqrt = _sym_sqrt
_ASKING = ("sym_sqrt", "convolution", "_functional_assert_async", "_conj_copy", "_neg_view_copy", "_reshape_alias_copy",
           "_indices_copy", "_values_copy", *(_name for _name in __all__ if _name.startswith("_sym_")))
globals().update(namespaced({_name: globals()[_name] for _name in _ASKING}, __name__.partition(".")[0]))
