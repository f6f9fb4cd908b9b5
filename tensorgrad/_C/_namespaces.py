"""The functions of this package under the names that PyTorch's compiled module has for them, such as
`torch._C._linalg.linalg_det`.
"""
from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from .._tensor import Tensor
from .._tensor.torch_function import namespaced

PACKAGE = __name__.partition(".")[0]


class Functions(ModuleType):
    """The functions of a namespace, whose names may begin with that of the namespace.

    >>> import tensorgrad as torch
    >>> torch._C._linalg.linalg_det is torch.linalg.det, torch._C._VariableFunctions.add is torch.add
    (True, True)
    """

    def __init__(self, name: str, namespace: str, prefix: str = "", **own: Any) -> None:
        super().__init__(f"torch._C.{name}")
        vars(self).update(own, _namespace=namespace, _prefix=prefix)

    def __getattr__(self, name: str) -> Any:
        if name in OPERATORS and not self._prefix:
            return getattr(Tensor, name)
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if self is _nn and name in (images := import_module(f"{PACKAGE}._aten_images").IMAGES):
            return images[name]
        return getattr(import_module(PACKAGE + self._namespace), RENAMED.get(name, name.removeprefix(self._prefix)))


RENAMED = {"log_sigmoid": "logsigmoid"}
OPERATORS = {"__and__", "__or__", "__xor__", "__lshift__", "__rshift__"}


def _parse_to(*args: Any, **kwargs: Any) -> Any:
    """(device, dtype, non_blocking, memory_format) of the arguments of `to`."""
    from ..nn.modules._convert import parse_to
    return parse_to(*args, **kwargs)


_VariableFunctions = Functions("_VariableFunctions", "")
_nn = Functions("_nn", ".nn.functional", **namespaced({"_parse_to": _parse_to}, "torch._C._nn"))
_linalg, _fft, _special = (Functions(f"_{name}", f".{name}", f"{name}_") for name in ("linalg", "fft", "special"))
