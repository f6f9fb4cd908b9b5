"""torch.compile and torch.compiler: run programs without Python, for inference; other calls run eagerly.

https://pytorch.org/docs/stable/torch.compiler.html
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..messages.missing_names import MissingName
from .stances import reset, set_stance
from .state import state

# ruff: noqa: F822  save and load are imported when they are first asked for
__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
           "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "load",
           "nested_compile_region", "reset", "save", "set_default_backend", "set_enable_guard_collectives",
           "set_stance", "substitute_in_graph", "wrap_numpy"]


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: Any = None, backend: Any = None, mode: Any = None,
            options: Any = None, name: str | None = None, disable: bool = False, freeze: bool = False,
            **others: Any) -> Any:
    """Return a function or module that computes what the given one does, without running its Python each time.

    The first call with inputs of some shapes and dtypes records the ops of the program as a graph, which is optimized;
    later calls run it. A call runs the program as it is while gradients are recorded, and if a graph cannot hold the
    program: `explain()` of the result says why.

    A module becomes an `OptimizedModule`, whose only child `_orig_mod` is the original; a function has the original as
    `_torchdynamo_orig_callable`. Without either, a decorator is returned. Classes, and anything with `disable=True`,
    are returned as they are.

    Parameters: fullgraph: Unsupported is raised where a graph cannot hold the program. dynamic: one graph for all
        sizes of the inputs from the start (True), for those that have had two values (None), or for none (False).
        backend: "inductor", this package's executable; "eager" and "aot_eager" run the program as it is; a function is
        called with a GraphModule and example inputs, and returns what runs in its place. freeze: let go of the
        originals of packed parameters.
    Raises: InvalidBackend for another name; RuntimeError for mode and options together, or an unknown mode
    https://pytorch.org/docs → torch.compile

    >>> import tensorgrad as torch
    >>> @torch.compile(mode="reduce-overhead")
    ... def double(x):
    ...     return x + x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    settings = settings_of(fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                           freeze=freeze)
    if model is None:
        return _compile_later(disable, settings)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    from .._dynamo.eval_frame import compiled
    return compiled(model, settings)


def settings_of(*, fullgraph: bool = False, dynamic: Any = None, backend: Any = None, mode: Any = None,
                options: Any = None, freeze: bool = False, **others: Any) -> dict[str, Any]:
    """Return the checked settings of `compile`."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: default, lite, reduce-overhead, "
                           f"max-autotune-no-cudagraphs, max-autotune")
    backend = _default.backend if backend is None else backend
    if isinstance(backend, str) and backend not in BACKENDS:
        from .._dynamo.exc import InvalidBackend
        raise InvalidBackend(f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available "
                             f"backends.")
    return {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend, "freeze": freeze}


def compiled_call(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the function of (arguments, keyword arguments) that calls `fn` compiled (`Module.compile`)."""
    from .._dynamo.eval_frame import call_of
    return call_of(fn, settings_of(*args, **kwargs))


def _compile_later(disable: bool, settings: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the decorator that `compile` without a model is."""
    def fn(model: Any) -> Any:
        if model is None:
            raise RuntimeError("Model can't be None")
        return compile(model, disable=disable, **settings)
    return fn


class _default:
    """The backend of `compile` without `backend=`."""

    backend: Any = "inductor"


MODES = "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite"
BACKENDS = frozenset("aot_eager aot_eager_decomp_partition aot_eager_default_partitioner aot_ts cudagraphs eager "
                     "eager_debug eager_noexcept inductor invoke_subgraph onnxrt openxla openxla_eval "
                     "pre_dispatch_eager tensorrt torch_tensorrt ts tvm".split())


def _itself(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Return `fn`."""
    return fn


allow_in_graph = assume_constant_result = nested_compile_region = wrap_numpy = _itself


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Mark a callable as one that is never compiled; without a callable, return a decorator.

    https://pytorch.org/docs → torch.compiler.disable
    """
    from .._dynamo.eval_frame import disabled
    return disabled(fn, recursive) if fn is not None else lambda fn: disabled(fn, recursive)


def substitute_in_graph(original_fn: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Return a decorator that returns its function."""
    return _itself


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no CUDA graphs."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Return False: processes do not agree on compiling."""
    return False


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of the compilers. https://pytorch.org/docs → torch.compiler.list_backends"""
    return ["inductor"]


def get_default_backend() -> Any:
    """Return the backend of `torch.compile` without `backend=`."""
    return _default.backend


def set_default_backend(backend: Any) -> None:
    """Set the backend of `torch.compile` without `backend=`: a name or a function."""
    _default.backend = backend


def is_compiling() -> bool:
    """Return True while `torch.compile` or `torch.export` traces a program.

    https://pytorch.org/docs → torch.compiler.is_compiling

    >>> import tensorgrad as torch
    >>> seen = []
    >>> @torch.compile
    ... def double(x):
    ...     return x + (x if torch.compiler.is_compiling() else 0)
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    return state.trace is not None or state.exporting


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Return True while `torch.export` records a program."""
    return state.exporting


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name in ("save", "load"):
        from . import artefacts
        return getattr(artefacts, name)
    raise MissingName(__name__, name)
