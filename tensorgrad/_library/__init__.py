"""torch._library: the parts of `torch.library`, at the paths that programs import them from."""
from importlib import import_module as _import_module
from typing import Any as _Any

_MODULES = ("dispatcher", "fake_impl", "infer_schema", "opcheck", "schemas", "simple_registry", "tags", "types",
            "utils")


def __getattr__(name: str) -> _Any:
    """Submodules are imported when they are first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module(f"{__name__}.{name}")
