"""The dtypes that `out=` may have, function by function, and PyTorch's errors for others.

Other functions take an `out` that the result can be cast to, or, if they are registered so, an `out` of its dtype.
Names are those of PyTorch's compiled functions: `linalg_inv`, `fft_rfft`. In messages {0} and {1} are the C names of
the result's dtype and of the given one, {2} and {3} PyTorch's scalar types, and {4} is the function.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from ..dtype import SCALAR_TYPES, can_cast
from ._arguments import C_NAMES

EXPECTED = "Expected out tensor to have dtype {0}, but got {1} instead"
SAFELY = "Expected {5} to be safely castable from {2} dtype, but got {5} with dtype {3}"
# rule | names | message. Several results have a message each; "both" has that of "cast", and then that of "same"
TABLE = f"""
same | bitwise_not ceil conj_physical floor frac neg negative round sgn sign trunc fix
     | Found dtype {{3}} but expected {{2}}
same | linalg_cholesky linalg_cholesky_ex linalg_cross linalg_det linalg_eigh linalg_eigvalsh linalg_inv linalg_inv_ex
       linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve linalg_lu linalg_lu_factor linalg_lu_factor_ex
       linalg_lu_solve linalg_qr linalg_slogdet linalg_solve linalg_solve_ex linalg_svd linalg_svdvals
       linalg_vector_norm lu_solve lu_unpack qr svd triangular_solve slice_scatter | {EXPECTED}
same | linalg_norm linalg_matrix_norm | {{4}} expected out tensor dtype {{2}} but got: {{3}}
same | linalg_vecdot | {{4}}: Expected out of dtype{{2}} but found {{3}}
same | linalg_multi_dot | multi_dot(): expected out tensor to have dtype {{0}} but got {{1}}
same | linalg_solve_triangular | expected scalar type {{2}} but found {{3}}
same | cummax cummin logcumsumexp | expected scalar_type {{2}} but found {{3}}
same | float_power | the output given to float_power has dtype {{3}} but the operation's result requires dtype {{2}}
same | where | Expected out type to be {{2}} but got {{3}}
same | mode | expected scalar type '{{2}}' but got '{{3}}' for values output
            ; expected scalar type '{{2}}' but got '{{3}}' for indices output
same | kthvalue | output values must be of same type as input ; output indices must be of scalar type Long
same | frexp | torch.frexp() expects mantissa to have dtype {{0}} but got {{1}}
             ; torch.frexp() expects exponent to have int dtype but got {{1}}
same | narrow_copy | Expected self.dtype() == output.dtype() to be true, but got false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)
same | ormqr | torch.ormqr: Expected input and result to have the same dtype, but input has dtype{{2}} and result has dtype {{3}}
same | hash_tensor | Expected result to be of dtype uint64, but got {{3}}
same | nan_to_num | nan_to_num: dtype of out: {{3}} should be same as input: {{2}}
same | heaviside | heaviside is not yet implemented for tensors with different dtypes.
same | quantile nanquantile | quantile() out tensor must be same dtype as the input tensor
same | histogram | torch.histogram: input tensor and hist tensor should have the same dtype, but got input {{0}} and hist {{1}}
same | histc | torch.histogram: input tensor and hist tensor should have the same dtype, but got input {{0}} and hist {{1}}
same | take | take(): self and out expected to have the same dtype, but got self.dtype = {{2}} and out.dtype = {{3}}
same | index_select | index_select(): self and result must have the same scalar type
same | masked_select | masked_select(): self and result must have the same scalar type
same | nonzero | nonzero: Expected out tensor to have scalar type {{2}} but got scalar type{{3}}
same | multinomial | multinomial expects {{2}} tensor out, got: {{3}}
same | tensordot inner | tensordot: Expected the output tensor to have dtype {{2}}, but got an output tensor with dtype {{3}}
same | dot vdot | result dtype {{3}} does not match input dtype {{2}}
same | amax amin
     | Expected the dtype for input and out to match, but got {{2}} for input's dtype and {{3}} for out's dtype.
same | complex polar | Expected object of scalar type {{2}} but got scalar type {{3}} for argument 'out'
same | searchsorted bucketize | torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether out_int32 flag is True, but we got output tensor's dtype {{3}} and out_int32 flag is {{6}}
any | bernoulli |
bool | all any | {{4}} only supports bool tensor for result, got: {{3}}
bool | isneginf isposinf signbit | {{4}} does not support non-boolean outputs.
complex | fft_fft fft_ifft fft_rfft fft_ihfft | {{4}} expects a complex output tensor, but got {{3}}
complex | fft_fft2 fft_fftn fft_ifft2 fft_ifftn | fftn expects a complex output tensor, but got {{3}}
complex | fft_rfft2 fft_rfftn | rfftn expects a complex output tensor, but got {{3}}
complex | fft_ihfft2 fft_ihfftn | ihfftn expects a complex output tensor, but got {{3}}
floating | fft_hfft fft_irfft | {{4}} expects a floating point output tensor, but got {{3}}
floating | fft_hfft2 fft_hfftn | hfftn expects a floating point output tensor, but got {{3}}
floating | fft_irfft2 fft_irfftn | irfftn expects a floating point output tensor, but got {{3}}
floats | logsumexp | logsumexp(): Expected floating point type for result tensor, but got: {{3}}
cast | cholesky cholesky_inverse cholesky_solve linalg_cond linalg_pinv | {{4}}: {SAFELY.replace("{5}", "result")}
cast | linalg_tensorinv | tensorinv: {SAFELY.replace("{5}", "result")}
cast | linalg_tensorsolve | tensorsolve: {SAFELY.replace("{5}", "result")}
both | linalg_matrix_power | matrix_power: {SAFELY.replace("{5}", "result")} ; {EXPECTED}
cast | linalg_householder_product linalg_matrix_rank | torch.{{4}}: {SAFELY.replace("{5}", "result")}
cast | linalg_eig linalg_eigvals | torch.{{4}}: {SAFELY.replace("{5}", "eigenvalues")}
     ; torch.{{4}}: {SAFELY.replace("{5}", "eigenvectors")}
cast | linalg_lstsq | torch.{{4}}: {SAFELY.replace("{5}", "solution")}
cast | geqrf | torch.{{4}}: {SAFELY.replace("{5}", "a")} ; torch.{{4}}: {SAFELY.replace("{5}", "tau")}
cast | mvlgamma | mvlgamma: result type {{2}} can't be cast to the desired output type {{2}}
cast | ldexp | ldexp can't be cast to the desired output type {{3}}
"""  # noqa: E501
FITS: dict[str, Callable[[Any, Any], bool]] = {
    "any": lambda made, out: True, "same": lambda made, out: made is out, "cast": can_cast,
    "bool": lambda made, out: out.name in ("bool", "uint8"), "complex": lambda made, out: out.is_complex,
    "floating": lambda made, out: out.is_floating_point,
    "floats": lambda made, out: out.is_floating_point or out.is_complex}


@cache
def _rows() -> dict[str, tuple[str, list[str]]]:
    rows: dict[str, tuple[str, list[str]]] = {}
    for line in re.sub(r"\n\s+", " ", TABLE).strip().splitlines():
        rule, names, message = (part.strip() for part in line.split("|", 2))
        messages = [part.strip() for part in message.split(" ; ")]
        rows.update({name: (rule, messages) for name in names.split()})
    return rows


def check_out_dtype(name: str, result: Any, out: Any, exact: bool, place: int = 0) -> bool:
    """RuntimeError unless `out` may take the result of a function; return True if that was decided here.

    exact: True if `out` must have the result's dtype unless the table says otherwise; place: which of several results
    """
    row = _rows().get(name)
    if row is None and not exact:
        return False
    rule, messages = row or ("same", [EXPECTED])
    made, given = result.dtype, out.dtype
    if rule == "both":
        rule, place = ("same", 1) if can_cast(made, given) else ("cast", 0)
    if not FITS[rule](made, given):
        text = messages[min(place, len(messages) - 1)]
        shown = name.replace("_", ".", 1) if name.startswith("linalg_") else name.removeprefix("fft_")
        raise RuntimeError(text.format(C_NAMES.get(made.name, made.name), C_NAMES.get(given.name, given.name),
                                       SCALAR_TYPES[made.name], SCALAR_TYPES[given.name], shown, "",
                                       made.name == "int32"))
    return True
