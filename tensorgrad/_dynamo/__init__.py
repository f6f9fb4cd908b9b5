"""torch._dynamo: PyTorch's other names for `torch.compile` and what belongs to it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import compiler
from .._tensor import Tensor
from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset
from ..compiler.state import Reason, Stopped, state
from ..graph.lines import user_line
from . import config, exc, utils
from .eval_frame import OptimizedModule

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
           "exc", "explain", "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_supported", "list_backends",
           "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize", "reset", "run",
           "utils"]

disallow_in_graph = forbid_in_graph = run = allow_in_graph


def is_dynamo_supported() -> bool:
    """Return True: `torch.compile` serves every platform that the package runs on."""
    return True


def optimize(backend: Any = "inductor", *, nopython: bool = False, dynamic: Any = None, **others: Any) -> Any:
    """Return `torch.compile` as a decorator."""
    return compiler.compile(backend=backend, fullgraph=nopython, dynamic=dynamic)


def explain(f: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Return a function that calls `f` compiled, and returns a report: graphs, operations, graph breaks.

    Called with arguments after `f`, it does so at once. https://pytorch.org/docs → torch._dynamo.explain

    >>> import tensorgrad as torch
    >>> told = torch._dynamo.explain(lambda x: x + x if x.sum() > 0 else x)(torch.ones(2))
    >>> told.graph_count, told.break_reasons[0].text
    (0, 'a tensor that depends on the inputs is read')
    """
    from ..compiler.compiled import Compiled
    from ..compiler.explain import ExplainOutput
    from .eval_frame import innermost_fn

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        compiled = Compiled(f._orig_mod if isinstance(f, OptimizedModule) else innermost_fn(f))
        compiled(args, kwargs)
        return ExplainOutput(compiled)
    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


def graph_break(msg: str = "") -> None:
    """Make the compiled function that calls this run eagerly: graphs are whole or not at all."""
    if state.trace is not None:
        raise Stopped(Reason(f"calls graph_break(){f': {msg}' if msg else ''}", user_line(), breaks=True))


def mark_dynamic(t: Any, index: Any, *, hint_override: Any = None, min: Any = None, max: Any = None,
                 specialize_on: Any = None) -> None:
    """Note that a size may change: one graph serves all its sizes, and compiling fails if the program fixes it.

    https://pytorch.org/docs → torch._dynamo.mark_dynamic
    """
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_dynamic expects a tensor but received {type(t)}")
    _mark(t, index, "_dynamo_dynamic_indices")


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Note that a size may change: one graph serves all its sizes, unless the program fixes it.

    https://pytorch.org/docs → torch._dynamo.maybe_mark_dynamic
    """
    _mark(t, index, "_dynamo_weak_dynamic_indices")


def _mark(t: Any, index: Any, name: str) -> None:
    axes = [axis % t.ndim for axis in (index if isinstance(index, (list, tuple, range)) else [index])]
    setattr(t, name, {*getattr(t, name, ()), *axes})


def mark_static(t: Any, index: Any = None) -> None:
    """Note that a size does not change: each has a graph of its own. Without `index`, those of all axes."""
    if isinstance(t, Tensor):
        _mark(t, range(t.ndim) if index is None else index, "_dynamo_static_indices")


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Note on a tensor that its memory stays where it is: a compiler may rely on it; this one does not.

    TypeError for anything but a tensor.
    """
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"  # type: ignore[attr-defined]
