"""The stubs of modules that gather names."""
from __future__ import annotations

from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from .definitions import Definitions
from .names import PACKAGE, Names, defined_in, home_of, wrapped_imports
from .results import HEAD

GATHERING = """
    fft functional linalg return_types special signal.windows nn nn.functional nn.modules nn.utils optim utils func
    autograd cuda distributions distributed distributed.checkpoint distributed.nn distributed.optim experiment
    experiment.callbacks
    experiment.models experiment.wrappers graph layers layers.utils legacy legacy.nn onnx viz""".split()
# Our names in `_signatures` for functions of namespaces.
PREFIXES = {"linalg": "linalg_", "fft": "fft_", "special": "special_"}


def gathering_modules() -> dict[str, str]:
    """Return {path of the stub: module}."""
    found = {}
    for name in [PACKAGE, *(f"{PACKAGE}.{name}" for name in GATHERING)]:
        file = str(import_module(name).__file__)
        path = name.replace(".", "/") + ("/__init__.pyi" if file.endswith("__init__.py") else ".pyi")
        found[path] = name
    return found


def public_names(module: ModuleType) -> list[str]:
    """Return the names that a module offers, those included that it imports at their first access."""
    listed = {n for table in ("__all__", "_LAZY", "_ELSEWHERE") for n in getattr(module, table, ())}
    names = {n for n in {*dir(module), *listed} if not n.startswith("_") or n in ("__version__", "__config__")}
    return sorted(n for n in names if n in listed or _is_public(module, n))


def _is_public(module: ModuleType, name: str) -> bool:
    """True for a name that no list of the module has, but that belongs to the package."""
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        return value.__name__.startswith(f"{PACKAGE}.") and name in defined_in(module.__name__)
    if isinstance(value, (type, FunctionType)):
        return value.__module__.startswith(PACKAGE)
    return name.islower()


def module_stub(module_name: str) -> str:
    """Return the stub of a module."""
    module = import_module(module_name)
    members = public_names(module)
    names = Names(module_name, str(module.__file__).endswith("__init__.py"), frozenset(members))
    write = Definitions(names)
    reexports: dict[str, list[str]] = {}
    body: list[str] = []
    for name in members:
        value = getattr(module, name)
        home = None if isinstance(value, ModuleType) else home_of(value, name)
        if isinstance(value, ModuleType):
            home = value.__name__.rpartition(".")[::2]
        if home is not None and home[0] != module_name or isinstance(value, ModuleType):
            reexports.setdefault(f"from {names.relative(home[0])}", []).append(f"{home[1]} as {name}")
        elif isinstance(value, FunctionType):
            body += write.lines(name, value, PREFIXES.get(module_name.rpartition(".")[2], "") + name)
        else:
            body.append(f"{name}: {_kind(names, value)}")
    listed = [n for n in getattr(module, "__all__", ()) if n in members]
    every = ["", "__all__ = [", *(f'    "{n}",' for n in listed), "]"] if listed else []
    return "\n".join([HEAD, *names.imports(), *wrapped_imports(reexports), "", *body, *every]) + "\n"


def _kind(names: Names, value: Any) -> str:
    """Return the annotation of a value that is no class and no function."""
    if value is None:
        return "None"
    kind = type(value)
    if kind.__module__ == "builtins" and kind.__name__ in ("int", "float", "str", "bool"):
        return names.use("builtins", kind.__name__)
    if kind.__module__.startswith(PACKAGE) and (home := home_of(kind, kind.__name__)) is not None:
        return names.use(*home)
    return names.use("typing", "Any")
