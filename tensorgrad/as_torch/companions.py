"""`import functorch`, `import torchx` and `import pytorch_symbolic` as other names of `_functorch`, `layers` and
`symbolic`, for programs that use this package as torch.

Where such a package is installed, it is the installed one. Modules below `pytorch_symbolic`, and those below `torchx`
that have one place here, are the very
modules of this package: `torchx.layers is tensorgrad.layers`.
"""
from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

PACKAGE = "tensorgrad"
NAMES = "torchx", "pytorch_symbolic", "functorch"
# Modules of this package under another name: their submodules are found below them.
PLACES = {
    "functorch.experimental": "_functorch.experimental", "functorch.einops": "_functorch.einops",
    "pytorch_symbolic": "symbolic", "pytorch_symbolic.symbolic_data": "symbolic.data",
    "pytorch_symbolic.symbolic_model": "symbolic.model", "pytorch_symbolic.symbolic_tensor": "symbolic.data",
    "pytorch_symbolic.code_generator": "symbolic.codegen", "pytorch_symbolic.symbolic_api_2": "symbolic.config",
    "pytorch_symbolic.layers": "symbolic.useful_layers", "torchx.layers": "layers", "torchx.utils": "layers.utils",
    "torchx.device": "layers.scope", "torchx.utils.nested": "layers.structures", "torchx.utils.shape": "layers.shapes",
    "torchx.utils.common": "layers.utils.general", "torchx.utils.tracker": "layers.utils.trackers",
    "torchx.utils.numpy_utils": "layers.utils.numeric", "torchx.nn.module": "layers.module",
    "torchx.nn.init": "layers.initializers", "torchx.nn.compute": "layers.tensors",
    "torchx.nn.hyper_scheduler": "layers.schedule",
}
# Modules that have the names of several.
GATHERED = {
    "functorch": "_functorch.functorch", "torchx": "layers.scope layers.parallel layers.manager",
    "torchx.distributed": "layers.parallel layers.manager",
    "torchx.nn": "layers.module layers.tensors layers.initializers layers.schedule",
}
BELOW = {"functorch": ("experimental", "einops"), "torchx": ("layers", "nn", "utils", "device", "distributed"),
         "pytorch_symbolic": ("layers", "symbolic_data", "symbolic_model")}


class Gathered(ModuleType):
    """A module with the names of several modules of this package; submodules are imported on first access."""

    def __getattr__(self, name: str) -> Any:
        if name in BELOW.get(self.__name__, ()):
            return import_module(f"{self.__name__}.{name}")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class Loader:
    """The loader of the modules below `torchx` and `pytorch_symbolic`."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        if spec.name not in GATHERED:
            return None
        module = Gathered(spec.name)
        for part in GATHERED[spec.name].split():
            found = import_module(f"{PACKAGE}.{part}")
            vars(module).update((name, getattr(found, name)) for name in found.__all__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ not in GATHERED:
            own = sys.modules[module.__name__] = import_module(own_name(module.__name__))
            vars(own).setdefault("__path__", [])
            for name in BELOW.get(module.__name__, ()):
                if not hasattr(own, name):
                    setattr(own, name, import_module(own_name(f"{module.__name__}.{name}")))


def own_name(name: str) -> str:
    """Return the name of a module in this package."""
    above, dot, last = name.rpartition(".")
    return f"{PACKAGE}.{PLACES[name]}" if name in PLACES else f"{own_name(above)}.{last}" if dot else name


class Companions:
    """Finds these packages, and all below them, in this package; among the first on sys.meta_path."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        top, dot, _ = name.partition(".")
        if top not in NAMES or not self.stands_in(top, bool(dot)):
            return None
        if name in GATHERED:
            return ModuleSpec(name, Loader(), is_package=True)          # type: ignore[arg-type]
        own = (None if name not in PLACES and name.rpartition(".")[0] in GATHERED
               else find_spec(own_name(name)))
        return None if own is None else ModuleSpec(name, Loader(), origin=own.origin, is_package=True)      # type: ignore[arg-type]

    def stands_in(self, top: str, below: bool) -> bool:
        """Return True if the name is a package that this one replaces, and no such package is installed."""
        if below:
            return is_ours(sys.modules.get(top))
        others = (finder for finder in sys.meta_path if type(finder).__module__.partition(".")[0] != PACKAGE
                  and hasattr(finder, "find_spec"))
        return all(finder.find_spec(top, None) is None for finder in others)


def is_ours(module: Any) -> bool:
    """Return True if the module belongs to this package, under either name."""
    return isinstance(module, Gathered) or getattr(module, "__name__", "").partition(".")[0] == PACKAGE


def forget() -> None:
    """Let nothing be imported under these names any more."""
    for name in [name for name, module in sys.modules.items() if name.partition(".")[0] in NAMES and is_ours(module)]:
        del sys.modules[name]
