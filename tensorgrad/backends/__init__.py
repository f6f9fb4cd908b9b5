"""Libraries behind the operations. Here that is NumPy, or CuPy, and the package's own compiled kernels (`compiled`):
PyTorch's switches can be set and read, and none of its libraries is there.

https://pytorch.org/docs/stable/backends.html

>>> import tensorgrad as torch
>>> torch.backends.cudnn.benchmark = True
>>> torch.backends.cudnn.is_available(), torch.backends.mps.is_available()
(False, False)
"""
from . import (
           compiled,
           cpu,
           cuda,
           cudnn,
           cusparselt,
           kleidiai,
           mha,
           miopen,
           mkl,
           mkldnn,
           mps,
           nnpack,
           openmp,
           opt_einsum,
           quantized,
           xnnpack,
)
from ._switches import allow_mutation as __allow_nonbracketed_mutation  # noqa: F401  as MONAI and others call it
from ._switches import disable_global_flags, flags_frozen

__all__ = ["compiled", "cpu", "cuda", "cudnn", "cusparselt", "kleidiai", "mha", "miopen", "mkl", "mkldnn", "mps",
           "nnpack", "openmp", "opt_einsum", "quantized", "xnnpack", "disable_global_flags", "flags_frozen"]


def former_switch(name: str) -> bool:
    """Return what `torch.has_NAME` says, which is deprecated in favour of a function of `torch.backends.NAME`."""
    from ..messages.warn_once import warn
    asked = "is_built" if name in ("cuda", "mps") else "is_available"
    warn(f"'has_{name}' is deprecated, please use 'torch.backends.{name}.{asked}()'", again=True)
    return bool(getattr(globals()[name], asked)())
