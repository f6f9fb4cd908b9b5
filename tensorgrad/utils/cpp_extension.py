"""torch.utils.cpp_extension: unsupported, because C++ extensions are compiled against PyTorch."""
from ..messages.unsupported import unsupported

_NAMES = "BuildExtension CUDAExtension CppExtension SyclExtension include_paths library_paths load load_inline"
globals().update(unsupported(_NAMES, "torch.utils.cpp_extension", "extensions in C++ need PyTorch's own library"))
CUDA_HOME = ROCM_HOME = None
__all__ = ["CUDA_HOME", "ROCM_HOME", *_NAMES.split()]
