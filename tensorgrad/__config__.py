"""The versions of Python, NumPy and BLAS in use, under the name where programs ask PyTorch for its build."""


def show() -> str:
    """The versions, as a few lines. https://pytorch.org/docs → torch.__config__"""
    from sys import version_info

    from numpy import __version__ as numpy

    from . import __version__
    from .kernels.compiled import enabled
    from .runtime.blas import blas_name
    from .runtime.native import native
    from .runtime.threads import get_num_threads
    kernels = "none" if native is None else f"{native.instructions}{'' if enabled() else ', not in use'}"
    parts = {"Python": ".".join(map(str, version_info[:3])), "NumPy": numpy, "tensorgrad": __version__,
             "compiled kernels:": kernels,
             "BLAS:": blas_name(), "threads:": get_num_threads()}
    return "tensorgrad built with:\n" + "".join(f"  - {name} {value}\n" for name, value in parts.items())


def show_config() -> None:
    """Print `show()`.

    >>> import tensorgrad as torch
    >>> torch.show_config()
    tensorgrad built with:
      - Python ...
    """
    print(show(), end="")


def parallel_info() -> str:
    """Describe how many threads compute. https://pytorch.org/docs → torch.__config__.parallel_info"""
    from .runtime.threads import get_num_interop_threads, get_num_threads
    return f"get_num_threads() : {get_num_threads()}\nget_num_interop_threads() : {get_num_interop_threads()}\n"
