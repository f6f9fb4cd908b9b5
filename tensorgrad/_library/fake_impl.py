"""The context of functions that compute the shapes of an operator's results: `torch.library.get_ctx`."""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

__all__ = ["set_ctx_getter", "without_context"]


class _State(threading.local):
    getter: Callable[[], Any] = staticmethod(lambda: None)


state = _State()


@contextmanager
def set_ctx_getter(ctx_getter: Callable[[], Any]) -> Iterator[None]:
    """Let `get_ctx` call a function, in a `with` block."""
    before, state.getter = state.getter, ctx_getter
    try:
        yield
    finally:
        state.getter = before


def without_context(name: str, function: Callable[..., Any], source: str) -> Callable[..., Any]:
    """Return a kernel for device 'meta', in which `get_ctx` raises: sizes that depend on values are unknown."""
    def refuse() -> Any:
        raise RuntimeError(f"{name} ({source}): You're trying to run this operator with meta Tensors (as opposed to "
                           f"FakeTensors), but this operator may return an output Tensor with data-dependent shape. "
                           f"Here no size depends on values, of FakeTensors neither: leave out torch.library.get_ctx()")

    @wraps(function)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with set_ctx_getter(refuse):
            return function(*args, **kwargs)
    return kernel
