"""`import torch` as another name of this package, for programs that are to run unchanged.

`torch` is a separate module with all names of this package, because its `__version__` is the version of PyTorch's
interface. Modules below it are the modules of this package: `torch.nn.functional is tensorgrad.nn.functional`.
"""
from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

from ..api.miscellaneous import offer_standard
from ..messages.missing_names import MissingName, hint
from .companions import Companions, forget
from .hiding import HIDDEN, asks_for_metadata, hide_from, show_again
from .naming import give_back_names, name_loaded_classes
from .paths import directories, share, unshare

PACKAGE = "tensorgrad"
# PyTorch's modules whose names are in another module here.
ELSEWHERE = {name: module for module, names in {
    "accelerator": "accelerator.memory", "cuda.amp": "cuda.amp.autocast_mode cuda.amp.common cuda.amp.grad_scaler",
    "jit": "jit._script jit._trace", "multiprocessing": "multiprocessing.pool multiprocessing.queue",
    "optim.adafactor": "optim._adafactor",
    "optim.muon": "optim._muon",
    "profiler": "profiler.profiler", "autograd.profiler": "autograd.profiler_util autograd.profiler_legacy",
    "signal.windows": "signal.windows.windows",
    "testing.comparison": "testing._comparison", "testing.creation": "testing._creation",
}.items() for name in names.split()}

# Names that PyTorch's modules merely import; editors still write `from torch.functional import Tensor` into programs.
BY_THE_WAY = {name: module for module, names in {
    PACKAGE: "Tensor nn", f"{PACKAGE}.nn": "Module Parameter functional init",
    "typing": "Any Callable Dict Iterable Iterator List Optional Sequence Tuple "
    "TypeVar Union", "collections": "OrderedDict"}.items() for name in names.split()} | {"F": f"{PACKAGE}.nn"}


class Torch(ModuleType):
    """The module `torch`: the names of this package."""

    def __init__(self, package: ModuleType) -> None:
        super().__init__("torch", package.__doc__)
        from ..version import __version__
        vars(self).update({name: value for name, value in vars(package).items()
                           if name not in vars(self) and name not in ("__getattr__", "__dir__")})
        self.__version__, self._package, self.torch = __version__, package, self
        # a program's torch.ops are operators by name; this package's `ops` is how it is built
        vars(self).pop("ops", None)

    def __getattr__(self, name: str) -> Any:
        if name == "ops":
            return self._package._ops.ops
        try:
            return getattr(self._package, name)
        except MissingName:
            raise MissingName("torch", name) from None

    def __dir__(self) -> list[str]:
        return dir(self._package)


class Loader:
    """Loads `torch.x` as the module `x` of this package."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return Torch(sys.modules[PACKAGE]) if spec.name == "torch" else None

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == "torch":
            module.__path__ = list(sys.modules[PACKAGE].__path__)       # the spec has the directory
        else:
            # import returns the entry of sys.modules
            own = sys.modules[module.__name__] = import_module(own_name(module.__name__))
            vars(own).setdefault("__path__", [])        # a package: the finders below are called for missing names
            # a function that hides the module of its name must not be replaced when that is imported
            for child, held in list(vars(own).items()):
                hidden = sys.modules.get(f"{own.__name__}.{child}")
                if hidden is not None and hidden is not held:
                    sys.modules.setdefault(f"{module.__name__}.{child}", hidden)

    def get_code(self, name: str) -> CodeType | None:
        """The code of `torch.x`, for `-m torch.x`."""
        found: Any = find_spec(own_name(name))
        code: CodeType | None = found.loader.get_code(found.name)
        return code


def own_name(name: str) -> str:
    """Return the name of `torch.x` in this package."""
    top, _, rest = name.partition(".")
    return name if top not in ("torch", PACKAGE) else f"{PACKAGE}.{ELSEWHERE.get(rest, rest)}" if rest else PACKAGE


def alias(name: str) -> ModuleSpec | None:
    """Return the spec by which `torch`, or `torch.x`, loads as a name of this package; None if there is no `x`."""
    own = find_spec(own_name(name))
    if own is None:
        return None
    spec = ModuleSpec(name, Loader(), origin=own.origin, is_package=own.submodule_search_locations is not None)  # type: ignore[arg-type]
    if name == "torch":
        spec.submodule_search_locations = directories(own.submodule_search_locations)
        spec.has_location = True                # torch.__file__
    return spec


class Finder:
    """Finds `torch` and all below it in this package; among the first on sys.meta_path."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "torch" and not name.startswith("torch."):
            return None
        spec = alias(name)
        if spec is None:
            _explain(name)
        return spec

    def find_distributions(self, context: Any) -> list[Any]:
        """Return the distribution `torch` for `importlib.metadata`, unless it is hidden from the package that asks."""
        from .metadata import distributions, metadata
        found: list[Any] = distributions(context)
        if not found or not HIDDEN or not asks_for_metadata():
            return found
        if context.name is not None:        # no other finder is asked, which would find an installed PyTorch
            raise metadata.PackageNotFoundError(context.name)
        return []


class Afterword:
    """The last finder on sys.meta_path: resolves PyTorch's modules that have no file here, or raises a hint.

    An example is `from torch.nn import X`, where X is a module in PyTorch.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.startswith(f"{PACKAGE}."):
            if own_name(name) != name:
                return ModuleSpec(name, Loader())                               # type: ignore[arg-type]
            above, _, last = name.rpartition(".")
            if last in BY_THE_WAY and not sys.modules[above].__path__:
                setattr(sys.modules[above], last,
                        getattr(import_module(BY_THE_WAY[last]), "functional" if last == "F" else last))
                return None
            _explain(name)
        return None


def _explain(name: str) -> None:
    """Raise ImportError with a hint if a program imports the name.

    Do nothing if a program only asks whether there is such a module: the frames tell one from the other.
    """
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_name in IMPORTING and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    module, _, last = own_name(name).rpartition(".")
    if frame is None or "importlib" not in frame.f_code.co_filename:
        if name.startswith("torch"):
            raise ModuleNotFoundError(f"No module named "
                                      f"{name!r}"
                                      f"{hint(module, last) or ' (tensorgrad, in the place of torch, has none)'}",
                                      name=name)
    elif frame.f_code.co_name == "_handle_fromlist":
        raise ImportError(f"cannot import name {last!r} from {module!r}{hint(module, last)}", name=module)


IMPORTING = {"_find_spec", "_find_and_load", "_find_and_load_unlocked", "_call_with_frames_removed", "_gcd_import",
             "import_module"}


class Installed:
    """An object pickled to child processes ahead of their work: loading it makes `torch` this package there, too."""

    def __reduce__(self) -> Any:
        return exec, (f"import sys; sys.path[:] = {sys.path!r}\nimport {PACKAGE}\n"
                      f"{PACKAGE}.install_as_torch(hidden_from={sorted(HIDDEN)!r})",)


def install_as_torch(hidden_from: Iterable[str] = ()) -> None:
    """Make `import torch`, and all that is below it, mean this package: in this process and the ones that
    `multiprocessing` starts.

    So do `torchx` and `pytorch_symbolic`, which are `layers` and `symbolic` here, unless they are installed.
    `importlib.metadata` reports a distribution `torch`, with the version of PyTorch's interface.

    Packages named in `hidden_from` find no torch, by import statements, `importlib` and its `metadata`, and so run as
    where PyTorch is not installed: name those whose use of PyTorch goes beyond what this package has. Call it before
    they are imported. A later call adds names.

    RuntimeError if PyTorch itself is already imported: both cannot be `torch`. Source: `python -m tensorgrad
        program.py` does this, then runs the program.

    >>> import tensorgrad
    >>> tensorgrad.install_as_torch()       # doctest: +SKIP
    >>> import torch.nn.functional as F     # doctest: +SKIP
    >>> F is tensorgrad.nn.functional       # doctest: +SKIP
    True
    """
    there = sys.modules.get("torch")
    if isinstance(there, Torch):
        hide_from(hidden_from)
        return
    if there is not None:
        raise RuntimeError(f"cannot install tensorgrad as torch: the module 'torch' is already imported, from "
                           f"{getattr(there, '__file__', None)}. Call install_as_torch() before anything imports "
                           f"torch.")
    hide_from(hidden_from)
    share(alias)
    sys.meta_path[:0] = [Finder(), Companions()]        # type: ignore[list-item]
    sys.meta_path.append(Afterword())           # type: ignore[arg-type]
    import_module("torch")
    name_loaded_classes()
    offer_standard(False)
    _tell_children(True)


def uninstall_as_torch() -> None:
    """Undo `install_as_torch`: `import torch` means PyTorch again.

    Modules that programs have imported keep their names.
    """
    if not isinstance(sys.modules.get("torch"), Torch):
        return
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, (Finder, Companions, Afterword))]
    for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
        del sys.modules[name]
    forget()
    show_again()
    unshare()
    offer_standard(True)
    give_back_names()
    _tell_children(False)


def _tell_children(wanted: bool) -> None:
    """Add `Installed` to the data that `multiprocessing` sends to spawned children; forked ones inherit the modules."""
    from multiprocessing import spawn
    plain = getattr(spawn.get_preparation_data, "__wrapped__", spawn.get_preparation_data)

    def get_preparation_data(name: str) -> dict[str, Any]:
        data: dict[str, Any] = plain(name)
        if name == "ignore":                # the fork server, which would import the program in advance, and without us
            data.pop("init_main_from_path", None)
        return {"tensorgrad": Installed(), **data}
    get_preparation_data.__wrapped__ = plain                                # type: ignore[attr-defined]
    spawn.get_preparation_data = get_preparation_data if wanted else plain
