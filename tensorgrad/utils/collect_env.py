"""Information about the environment for bug reports: `python -m tensorgrad.utils.collect_env`."""
from __future__ import annotations

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info() -> str:
    """Return versions and properties of the machine as lines of text.
    https://pytorch.org/docs → torch.utils.collect_env
    """
    import os
    import platform
    import sys

    import numpy

    from .. import __version__, backends, cuda
    from ..runtime.threads import get_num_threads
    from ..version import __version__ as interface
    on_cuda = cuda.is_available()
    lines = {
        "tensorgrad version": __version__, "PyTorch version": f"{interface} (the interface)", "Is debug build": "False",
        "NumPy version": numpy.__version__, "": "", "OS": platform.platform(),
        "Python version": f"{sys.version} ({platform.architecture()[0]} runtime)",
        "Is CUDA available": on_cuda, "GPU models": ", ".join(cuda.get_device_name(i)
                                                              for i in range(cuda.device_count())) if on_cuda
        else "None",
        "CPU capability": backends.cpu.get_cpu_capability(), "CPU count": os.cpu_count(), "Threads": get_num_threads(),
    }
    for package in ("cupy", "ml_dtypes", "scipy"):
        lines[f"{package} version"] = _version(package)
    return "\n".join(f"{name}: {value}" if name else "" for name, value in lines.items())


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def main() -> None:
    """Print the information."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
