"""The objects that `torch.compile` returns."""
from __future__ import annotations

import copy
from collections.abc import Callable, Sized
from functools import WRAPPER_ASSIGNMENTS, wraps
from types import FunctionType
from typing import Any

from ..compiler.state import Reason, Stopped, state
from ..graph.lines import user_line
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
        own["dynamo_ctx"] = dynamo_ctx              # the settings; None for a module that is not to be compiled
        own["_modules"]["_orig_mod"] = mod
        own["_compiled"] = None if dynamo_ctx is None else call_of(mod, dynamo_ctx)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return (vars(self)["_modules"]["_orig_mod"](*args, **kwargs) if self._compiled is None
                else self._compiled(args, kwargs))

    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """Return a report on the calls so far; with arguments, call the module first."""
        from ..compiler.explain import explained
        return explained(self._compiled, self, args, kwargs)

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

    def __deepcopy__(self, memo: Any) -> Any:
        memo[id(self)] = made = type(self)(copy.deepcopy(self._orig_mod, memo), self.dynamo_ctx)
        return made


def innermost_fn(fn: Any, unaltered_fn_attr: str = "_torchdynamo_orig_callable") -> Any:
    """Return the function that `torch.compile` or `torch.compiler.disable` was called with, through any number of
    calls.
    """
    while hasattr(fn, unaltered_fn_attr):
        fn = getattr(fn, unaltered_fn_attr)
    return fn


def compiled(fn: Callable[..., Any], settings: dict[str, Any]) -> Any:
    """Return an `OptimizedModule` for a module, and for another callable a function that runs it compiled; classes as
    they are.
    """
    if isinstance(fn, Module):
        return OptimizedModule(fn._orig_mod if isinstance(fn, OptimizedModule) else fn, settings)
    if isinstance(fn, type):
        return fn
    fn = innermost_fn(fn)
    run = call_of(fn, settings)

    @wraps(fn, WRAPPER_ASSIGNMENTS, ("__dict__",) if isinstance(fn, FunctionType) else ())
    def compile_wrapper(*args: Any, **kwargs: Any) -> Any:
        return run(args, kwargs)

    def explain(*args: Any, **kwargs: Any) -> Any:
        from ..compiler.explain import explained
        return explained(run, compile_wrapper, args, kwargs)
    compile_wrapper._torchdynamo_orig_callable = fn             # type: ignore[attr-defined]
    compile_wrapper.get_compiler_config = lambda: None          # type: ignore[attr-defined]
    compile_wrapper.explain = explain                           # type: ignore[attr-defined]
    return compile_wrapper


def call_of(fn: Any, settings: dict[str, Any]) -> Callable[[Any, Any], Any]:
    """Return the function of (arguments, keyword arguments) that runs a program with a backend."""
    backend = settings["backend"]
    if isinstance(backend, str) and backend in EAGER:
        return lambda args, kwargs: fn(*args, **kwargs)
    from ..compiler.compiled import Compiled
    build = None
    if not isinstance(backend, str):                # a program's own, which takes a GraphModule
        from ..compiler.backends import builder
        build = builder(backend)
    return Compiled(fn, fullgraph=settings["fullgraph"], dynamic=settings["dynamic"], build=build,
                    freeze=settings["freeze"])


# backends that run programs as they are
EAGER = frozenset({"eager", "aot_eager", "eager_noexcept", "eager_debug", "aot_eager_decomp_partition",
                   "aot_eager_default_partitioner", "pre_dispatch_eager", "invoke_subgraph"})


def disabled(fn: Callable[..., Any], recursive: bool = True) -> Any:
    """Return an `OptimizedModule` for a module, and for another callable a function marked as never compiled; classes
    as they are.
    """
    if isinstance(fn, Module):
        return OptimizedModule(fn)
    if isinstance(fn, type):
        return fn
    fn = innermost_fn(fn)

    @wraps(fn, WRAPPER_ASSIGNMENTS, ("__dict__",) if isinstance(fn, FunctionType) else ())
    def compile_wrapper(*args: Any, **kwargs: Any) -> Any:
        if state.trace is not None:
            raise Stopped(Reason(f"calls {getattr(fn, '__qualname__', fn)}, which torch.compiler.disable excludes",
                                 user_line(), breaks=True))
        return fn(*args, **kwargs)
    compile_wrapper._torchdynamo_orig_callable = fn             # type: ignore[attr-defined]
    compile_wrapper._torchdynamo_disable = True                 # type: ignore[attr-defined]
    compile_wrapper._torchdynamo_disable_recursive = recursive  # type: ignore[attr-defined]
    return compile_wrapper


def is_dynamo_supported() -> bool:
    """Return True."""
    return True
