"""The objects that `torch.compile` returns: they call the original, since nothing is compiled."""
from __future__ import annotations

from collections.abc import Callable, Sized
from functools import WRAPPER_ASSIGNMENTS, wraps
from types import FunctionType
from typing import Any

from ..nn.modules.module import Module

__all__ = ["OptimizedModule", "compiled", "disabled", "innermost_fn"]


class OptimizedModule(Module):
    """A module from `torch.compile`: its only child is the original, to which attributes and calls go.

    Names of parameters begin with `_orig_mod.`, as in PyTorch's files.

    >>> import tensorgrad as torch
    >>> model = torch.compile(torch.nn.Linear(2, 1))
    >>> list(model.state_dict()), model.in_features
    (['_orig_mod.weight', '_orig_mod.bias'], 2)
    """

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        own = vars(self)
        del own["training"]                         # the original's is the only one
        own["dynamo_ctx"] = dynamo_ctx
        own["_modules"]["_orig_mod"] = mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._orig_mod(*args, **kwargs)

    @property
    def training(self) -> bool:                     # type: ignore[override]
        return self._orig_mod.training              # type: ignore[no-any-return]

    @training.setter
    def training(self, mode: bool) -> None:
        self._orig_mod.training = mode

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return vars(self)["_modules"][name]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod":
            vars(self)["_modules"][name] = value
        elif name in vars(self) or name == "training":
            object.__setattr__(self, name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._orig_mod), *vars(self), "_orig_mod"})

    def __len__(self) -> int:
        if isinstance(self._orig_mod, Sized):
            return len(self._orig_mod)
        raise TypeError(f"{type(self._orig_mod).__name__} does not support len()")

    def __reduce__(self) -> Any:
        return type(self), (self._orig_mod, self.dynamo_ctx)


def innermost_fn(fn: Any, unaltered_fn_attr: str = "_torchdynamo_orig_callable") -> Any:
    """Return the function that `torch.compile` or `torch.compiler.disable` was called with, through any number of
    calls.
    """
    while hasattr(fn, unaltered_fn_attr):
        fn = getattr(fn, unaltered_fn_attr)
    return fn


def compiled(fn: Callable[..., Any]) -> Any:
    """Return an `OptimizedModule` for a module, and for another callable a function that calls it; classes as they
    are.
    """
    if isinstance(fn, Module):
        return fn if isinstance(fn, OptimizedModule) else OptimizedModule(fn)
    if isinstance(fn, type):
        return fn
    wrapper = _calling(fn)
    wrapper.get_compiler_config = lambda: None
    return wrapper


def disabled(fn: Callable[..., Any], recursive: bool = True) -> Any:
    """Return an `OptimizedModule` for a module, and for another callable a function with the mark of those that are
    never compiled; classes as they are.
    """
    if isinstance(fn, Module):
        return OptimizedModule(fn)
    if isinstance(fn, type):
        return fn
    wrapper = _calling(fn)
    wrapper._torchdynamo_disable, wrapper._torchdynamo_disable_recursive = True, recursive
    return wrapper


def _calling(fn: Any) -> Any:
    """Return a function that calls `fn`, under its name and with its attributes."""
    fn = innermost_fn(fn)

    @wraps(fn, WRAPPER_ASSIGNMENTS, ("__dict__",) if isinstance(fn, FunctionType) else ())
    def compile_wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)
    compile_wrapper._torchdynamo_orig_callable = fn             # type: ignore[attr-defined]
    return compile_wrapper


def is_dynamo_supported() -> bool:
    """Return False: nothing is compiled."""
    return False
