"""Map classes and functions of this package to PyTorch's names in files, and back."""
from __future__ import annotations

import re
from types import FunctionType
from typing import Any

from ..api import DTYPES, Size, Tensor, device, dtype
from ..api.storage_objects import ELEMENTS, TypedStorage, UntypedStorage
from ..api.tensor_types import tensortype
from ..generator import Generator
from ..nn.parameter import Parameter
from ..ops.linalg import LinAlgError

PACKAGE = __package__.partition(".")[0]


class StorageType:
    """A storage class of PyTorch, as files name it: the dtype of the elements; None: bytes."""

    def __init__(self, module: str, name: str, element: str | None) -> None:
        self.module, self.name, self.element = module, name, element


BY_DTYPE = {element: StorageType("torch", name, element) for name, element in ELEMENTS.items()}
UNTYPED = StorageType("torch.storage", "UntypedStorage", None)
STORAGE_TYPES = ({("torch", t.name): t for t in BY_DTYPE.values()}
                 | {("torch.storage", "UntypedStorage"): UNTYPED, ("torch", "UntypedStorage"): UNTYPED})

CLASSES: dict[Any, tuple[str, str]] = {
    Tensor: ("torch", "Tensor"), Size: ("torch", "Size"), device: ("torch", "device"), dtype: ("torch", "dtype"),
    Parameter: ("torch.nn.parameter", "Parameter"), Generator: ("torch._C", "Generator"),
    LinAlgError: ("torch._C", "_LinAlgError")}


MISSING = {"_rebuild_qtensor": "there are no quantized tensors: write `x.dequantize()`",
           "_rebuild_wrapper_subclass": "tensors other than those of the device meta have a storage"}
ODD_DTYPES = re.compile("float[48]_|q?u?int[1-7]$|qu?int|bits[0-9]|ComplexHalfStorage$|QU?Int")


def missing(module: str, name: str) -> str | None:
    """Return the reason why a name of PyTorch is absent here; None if there is none."""
    if module == "torch._utils" and name in MISSING:
        return f"The file holds a tensor that is made by torch._utils.{name}, and {MISSING[name]}"
    if module == "torch" and name.isascii() and len(name) < 40 and ODD_DTYPES.match(name) and name not in DTYPES:
        return (f"The file names torch.{name}, and there is no such dtype: write the tensor in another one, such as "
                f"`x.float()`")
    return None


def torch_name(thing: Any) -> tuple[str, str] | None:
    """Return PyTorch's (module, name) of a class or function of this package; None for others."""
    if isinstance(thing, (type, FunctionType)) and thing in CLASSES:
        return CLASSES[thing]
    if isinstance(thing, tensortype) or isinstance(thing, type) and issubclass(thing, (TypedStorage, UntypedStorage)):
        return thing.__module__, thing.__name__
    module = getattr(thing, "__module__", None) or ""
    if module != PACKAGE and not module.startswith(f"{PACKAGE}."):
        return None
    return f"torch{module.removeprefix(PACKAGE)}", thing.__qualname__
