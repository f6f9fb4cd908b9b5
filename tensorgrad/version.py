"""The version of PyTorch's interface that this package has, as `torch.version` tells it; its own is `tensorgrad.__version__`."""
from .torch_version import TorchVersion

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__ = TorchVersion("2.13.0+tensorgrad")
cuda = hip = rocm = xpu = None          # what PyTorch would have been compiled with
debug, git_version = False, "Unknown"
