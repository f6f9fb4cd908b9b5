"""torch.utils.cpp_extension: extensions in C++ are compiled against PyTorch, which is not here."""
from .._unsupported import unsupported

_NAMES = "BuildExtension CUDAExtension CppExtension SyclExtension include_paths library_paths load load_inline"
globals().update(unsupported(_NAMES, "torch.utils.cpp_extension", "extensions in C++ need PyTorch's own library"))
CUDA_HOME = ROCM_HOME = None
__all__ = ["CUDA_HOME", "ROCM_HOME", *_NAMES.split()]
