"""torch.compiler and torch.compile: nothing is compiled; functions and modules run as they are.

https://pytorch.org/docs/stable/torch.compiler.html
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
           "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "nested_compile_region", "reset",
           "set_enable_guard_collectives", "set_stance",
           "substitute_in_graph", "wrap_numpy"]


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: Any = None, backend: Any = None, mode: Any = None,
            options: Any = None, name: str | None = None, disable: bool = False, **others: Any) -> Any:
    """Return a function that calls the given one, or a module around the given one; without either, a decorator.

    Nothing is compiled, but programs meet PyTorch's objects: the module is an `OptimizedModule`, whose only child
    `_orig_mod` is the original, and the function has the original as `_torchdynamo_orig_callable`.
    Classes, and anything with `disable=True`, are returned as they are. https://pytorch.org/docs → torch.compile

    >>> import tensorgrad as torch
    >>> @torch.compile(mode="reduce-overhead")
    ... def double(x):
    ...     return x + x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs",
                                         "lite"):
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: default, lite, reduce-overhead, "
                           f"max-autotune-no-cudagraphs, max-autotune")
    if isinstance(backend, str) and backend not in BACKENDS:
        from .._dynamo.exc import InvalidBackend
        raise InvalidBackend(f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available "
                             f"backends.")
    if model is None:
        return _compile_later(disable)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    from .._dynamo.eval_frame import compiled
    return compiled(model)


def _compile_later(disable: bool) -> Callable[[Any], Any]:
    """Return the decorator that `compile` without a model is."""
    def fn(model: Any) -> Any:
        if model is None:
            raise RuntimeError("Model can't be None")
        return compile(model, disable=disable)
    return fn


BACKENDS = frozenset("aot_eager aot_eager_decomp_partition aot_eager_default_partitioner aot_ts cudagraphs eager "
                     "eager_debug eager_noexcept inductor invoke_subgraph onnxrt openxla openxla_eval "
                     "pre_dispatch_eager tensorrt torch_tensorrt ts tvm".split())


def _itself(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Return `fn`."""
    return fn


allow_in_graph = assume_constant_result = nested_compile_region = wrap_numpy = _itself


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the callable under the mark of functions that are not compiled, or a decorator that does.

    https://pytorch.org/docs → torch.compiler.disable
    """
    from .._dynamo.eval_frame import disabled
    return disabled(fn, recursive) if fn is not None else lambda fn: disabled(fn, recursive)


def substitute_in_graph(original_fn: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Return a decorator that returns its function."""
    return _itself


def reset() -> None:
    """Do nothing: there is no compiled code to drop."""


class set_stance:
    """Accept a stance for compiled functions, in a `with` block or from now on: it has no effect.

    https://pytorch.org/docs → torch.compiler.set_stance
    """

    def __init__(self, stance: str = "default", **options: Any) -> None:
        self.stance = stance

    def __call__(self, fn: Any) -> Any:
        return fn

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        pass


def cudagraph_mark_step_begin() -> None:
    """The start of a step; there are no CUDA graphs."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Return False: the switch is for compiled programs."""
    return False


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The compilers: none."""
    return []


def is_compiling() -> bool:
    """Return False: nothing is compiled. https://pytorch.org/docs → torch.compiler.is_compiling"""
    return False


is_dynamo_compiling = is_exporting = is_compiling
