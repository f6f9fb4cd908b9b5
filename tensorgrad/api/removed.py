"""In-place functions of the root package, and removed names whose error says what replaced them."""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ._register import FUNCTIONS

# `torch.exp_(x)` is `x.exp_()`; PyTorch has such a function for these.
IN_PLACE = ("abs acos acosh addmv arccos arccosh arcsin arcsinh arctan arctanh as_strided asin asinh atan atanh ceil "
            "clamp clamp_max clamp_min clip conj_physical cos cosh deg2rad detach erf erfc exp exp2 expm1 fill fix "
            "floor frac gcd i0 lcm ldexp log log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal relu "
            "resize_as round rsqrt sigmoid sin sinc sinh sqrt square squeeze tan tanh trunc xlogy zero").split()

for _name in IN_PLACE:
    FUNCTIONS.setdefault(f"{_name}_", getattr(Tensor, f"{_name}_"))

SUCCESSORS = {
    "eig": "`torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors "
           "mimicking complex tensors.",
    "lstsq": "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.",
    "matrix_rank": "Please use the `torch.linalg.matrix_rank` function instead.",
    "solve": "`torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments "
             "reversed and does not return the LU factorization.",
    "symeig": "The default behavior has changed from using the upper triangular portion of the matrix by default to "
              "using the lower triangular portion: use `torch.linalg.eigh`.",
}


def _gone(name: str, successor: str) -> Any:
    def function(*args: Tensor, **kwargs: Any) -> None:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. {successor}")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"Gone: RuntimeError names what took its place. https://pytorch.org/docs → "
                        f"torch.linalg.{name if name != 'symeig' else 'eigh'}")
    return function


for _name, _successor in SUCCESSORS.items():
    FUNCTIONS[_name] = _gone(_name, _successor)
    if _name != "matrix_rank":
        setattr(Tensor, _name, FUNCTIONS[_name])
