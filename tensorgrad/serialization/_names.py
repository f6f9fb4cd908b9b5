"""Whose name is whose: PyTorch's name of each class and function of this package, for files, and back."""
from __future__ import annotations

from importlib import import_module
from typing import Any

from ..api import DTYPES, Size, Tensor, device, dtype
from ..nn.parameter import Parameter
from ..storages import ELEMENTS, TypedStorage, UntypedStorage

PACKAGE = __package__.partition(".")[0]


class StorageType:
    """A storage class of PyTorch, as files name it: the dtype of the elements; None: bytes."""

    def __init__(self, module: str, name: str, element: str | None) -> None:
        self.module, self.name, self.element = module, name, element


BY_DTYPE = {element: StorageType("torch", name, element) for name, element in ELEMENTS.items()}
UNTYPED = StorageType("torch.storage", "UntypedStorage", None)
STORAGE_TYPES = {("torch", t.name): t for t in BY_DTYPE.values()} | {("torch.storage", "UntypedStorage"): UNTYPED, ("torch", "UntypedStorage"): UNTYPED}

CLASSES = {Tensor: ("torch", "Tensor"), Size: ("torch", "Size"), device: ("torch", "device"), dtype: ("torch", "dtype"),
           Parameter: ("torch.nn.parameter", "Parameter")}


def torch_name(thing: Any) -> tuple[str, str] | None:
    """(module, name) of a class or function of this package in PyTorch; None for those of others."""
    if isinstance(thing, type) and thing in CLASSES:
        return CLASSES[thing]
    if isinstance(thing, type) and issubclass(thing, (TypedStorage, UntypedStorage)):
        return thing.__module__, thing.__name__
    module = getattr(thing, "__module__", None) or ""
    if module != PACKAGE and not module.startswith(f"{PACKAGE}."):
        return None
    return f"torch{module.removeprefix(PACKAGE)}", thing.__qualname__


def module_of(module: str, name: str) -> Any:
    """The class or function of this package that PyTorch's (module, name) stands for; None if it is not PyTorch's."""
    if module != "torch" and not module.startswith("torch."):
        return None
    from ._unpickler import ALLOWED
    if (module, name) in ALLOWED:
        return ALLOWED[module, name]
    if module == "torch" and name in DTYPES:
        return DTYPES[name]
    found: Any = import_module(f"{PACKAGE}{module.removeprefix('torch')}")
    for part in name.split("."):
        found = getattr(found, part)
    return found
