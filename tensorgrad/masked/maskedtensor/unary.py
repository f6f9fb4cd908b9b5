"""PyTorch's import path of the names of functions of each element that MaskedTensors take."""
from ..._ops import ops
from .operations import UNARY

UNARY_NAMES = sorted(UNARY)
INPLACE_UNARY_NAMES = [f"{name}_" for name in UNARY_NAMES if name not in ("angle", "isnan", "positive", "signbit")]
NATIVE_UNARY_FNS = [getattr(ops.aten, name) for name in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [getattr(ops.aten, name) for name in INPLACE_UNARY_NAMES]
