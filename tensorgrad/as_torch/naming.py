"""PyTorch's full names of classes while this package is `torch`, as in `<class 'torch.optim.adam.Adam'>`.

Programs print and compare them, and pickles hold them.
"""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

PACKAGE = "tensorgrad"
# the parts of the package whose classes PyTorch defines in modules of equal names
ALIKE = ("amp.", "autograd.function", "cuda.amp.", "distributions.", "nn.", "optim.", "utils.data.")
UNLIKE = ("nn._", "optim.lr_scheduler.", "utils.data.datapipes.", "utils.data._")
# and classes that it defines in others
HOMES = {f"{PACKAGE}.{module}": (home, names.split()) for module, home, names in (
    ("core.mode", "torch.autograd.grad_mode", "no_grad enable_grad set_grad_enabled inference_mode"),
    ("core.node", "torch.utils.hooks", "RemovableHandle"),
    ("dtype", "torch", "finfo iinfo"))}        # pickles of layouts are read without torch, too

OWN_MODULES: dict[Any, str] = {}


def name_classes(module: ModuleType) -> None:
    """Give the classes that a module of this package defines PyTorch's full names."""
    own = module.__name__
    home, names = HOMES.get(own, ("", None))
    place = own.removeprefix(f"{PACKAGE}.")
    if names is None:
        if place.startswith("optim.lr_scheduler."):
            home = "torch.optim.lr_scheduler"
        elif place == "api.return_types":
            home = "torch.return_types"
        elif place.startswith(ALIKE) and not place.startswith(UNLIKE):
            home = f"torch.{place}"
        else:
            return
    for name, cls in list(vars(module).items()):
        if isinstance(cls, type) and cls.__module__ == own and (names is None or name in names):
            name_class(cls, home)


def name_class(cls: Any, home: str) -> None:
    OWN_MODULES.setdefault(cls, cls.__module__)
    cls.__module__ = home


def name_loaded_classes() -> None:
    """Give PyTorch's full names to the classes of all modules that are loaded."""
    from ..serialization._names import CLASSES
    for cls, (home, _) in CLASSES.items():
        name_class(cls, home)
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{PACKAGE}.") and module is not None:
            name_classes(module)


def give_back_names() -> None:
    """Give classes their own full names again."""
    for cls, module in OWN_MODULES.items():
        cls.__module__ = module


def naming(loader: Any) -> Any:
    """Return a module's loader that names the module's classes, too."""
    run = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        run(module)
        name_classes(module)
    loader.exec_module = exec_module
    return loader
