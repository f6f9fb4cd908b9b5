"""PyTorch's import path of the names of functions of two tensors that MaskedTensors take."""
from ..._ops import ops
from .operations import BINARY

BINARY_NAMES = sorted(BINARY - {"rsub", "rtruediv"})
INPLACE_BINARY_NAMES = [f"{name}_" for name in BINARY_NAMES
                        if name not in ("logaddexp", "logaddexp2", "fmin", "fmax", "minimum", "maximum")]
NATIVE_BINARY_FNS = [getattr(ops.aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(ops.aten, name) for name in INPLACE_BINARY_NAMES]
