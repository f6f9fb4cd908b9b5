"""The API of the first PyTorch, of 2016, and of Lua Torch before it, on the present engine.

`legacy.nn` has the modules with `output` and `gradInput`, `legacy.optim` the functions `(opfunc, x, config, state)`,
`legacy.nngraph` graphs of modules that are called on nodes. `legacy.Variable` and `legacy.Container` are the classes of
the first autograd. Every function of the root is here as well, in the form that takes its result first.
`legacy.convert` converts old modules to present ones.

The package itself never imports it: a program does, by `import tensorgrad.legacy` or, in place of PyTorch, `import
torch.legacy`.

>>> import tensorgrad as torch
>>> from tensorgrad import legacy
>>> r = torch.Tensor()
>>> legacy.mul(r, torch.tensor([1., 2.]), 3)
tensor([3., 6.])
"""
from __future__ import annotations

from importlib import import_module
from typing import Any

_PLACES = {"nn": "nn", "optim": "optim", "nngraph": "nngraph", "cunn": "cunn", "Variable": "variable",
           "Container": "variable", "convert": "conversion",
           "load_lua": "t7"}

__all__ = ["Container", "Variable", "convert", "cunn", "load_lua", "nn", "nngraph", "optim"]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        module = import_module(f"{__name__}.{_PLACES[name]}")
        found = module if name == _PLACES[name] else getattr(module, name)
    else:
        root = import_module(__name__.rpartition(".")[0])
        found = getattr(root, name, None) if not name.startswith("_") else None
        if not callable(found) or isinstance(found, type):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from .functions import result_first
        found = result_first(found)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
