"""Names of PyTorch that can be imported, and raise an error that says what is missing when they are called."""
from __future__ import annotations

from typing import Any


def unsupported(names: str, module: str, reason: str) -> dict[str, Any]:
    """{name: a function that raises NotImplementedError and says why} of names in a string.

    >>> unsupported("export", "torch.onnx", "ONNX files are not written")["export"]()
    Traceback (most recent call last):
    NotImplementedError: tensorgrad has no torch.onnx.export: ONNX files are not written
    """
    return {name: _refusal(name, module, reason) for name in names.split()}


def _refusal(name: str, module: str, reason: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"tensorgrad has no {module}.{name}: {reason}")
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Not there: {reason}. https://pytorch.org/docs → {module}.{name}"
    return refuse


def unavailable(name: str, kind: type[Exception], message: str) -> Any:
    """A function of a device that is not there: it raises PyTorch's error."""
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise kind(message)
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Not there: {message}"
    return refuse
