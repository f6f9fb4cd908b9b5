"""The version of PyTorch's interface, for `torch.version`; the package's own version is `tensorgrad.__version__`."""
from .torch_version import TorchVersion

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__ = TorchVersion("2.13.0+tensorgrad")
cuda = hip = rocm = xpu = None          # PyTorch's compilers and libraries
debug, git_version = False, "Unknown"
