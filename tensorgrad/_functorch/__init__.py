"""functorch: `torch.func` under its first names, and modules as functions of tuples of tensors.

Programs import it as `functorch`, and parts of it as `torch._functorch`. https://pytorch.org/functorch
"""
from __future__ import annotations

from importlib import import_module
from typing import Any

from ..version import __version__

_WHERE = {name: module for module, names in {
    "deprecated": "combine_state_for_ensemble functionalize grad grad_and_value hessian jacfwd jacrev jvp "
                  "make_functional make_functional_with_buffers vjp vmap",
    "make_functional": "FunctionalModule FunctionalModuleWithBuffers", "python_key": "make_fx"}.items()
    for name in names.split()}
__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # `make_functional` is a module of this package, and a function that replaces it
    found = globals()[name] = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    return found
