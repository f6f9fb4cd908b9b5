"""The state of the compiler: PyTorch's `set_stance`, `reset` and `counters`."""
from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any
from weakref import WeakSet

NAMES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile",
         "fail_on_recompile")

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)     # torch._dynamo.utils.counters


ALL: WeakSet[Any] = WeakSet()           # all compiled functions


class Stance:
    """The stance of all threads. `eager` is True if everything runs as it is."""

    name, eager = "default", False

    def set(self, name: str) -> None:
        self.name, self.eager = name, name == "force_eager"


stance = Stance()


class set_stance:
    """Set what compiled functions do: in a `with` block, in a decorated function, or from now on.

    default: compile. force_eager: run all as it is. eager_on_recompile: run signatures that are new as they are.
    fail_on_recompile: RuntimeError for them, once a function has been compiled. eager_then_compile: run the first call
    of a signature as it is, and compile the second. https://pytorch.org/docs → torch.compiler.set_stance

    >>> import tensorgrad as torch
    >>> double = torch.compile(lambda x: x + x)
    >>> with torch.compiler.set_stance("force_eager"):
    ...     double(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
                 ) -> None:
        if stance not in NAMES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}: it may be {', '.join(NAMES)}")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        self.stance, self.before = stance, _stance.name
        _stance.set(stance)

    def __call__(self, fn: Any) -> Any:
        from functools import wraps
        _stance.set(self.before)

        @wraps(fn)
        def under_stance(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return fn(*args, **kwargs)
        return under_stance

    def __enter__(self) -> None:
        _stance.set(self.stance)

    def __exit__(self, *exception: object) -> None:
        _stance.set(self.before)


_stance = stance


def reset() -> None:
    """Drop everything that was compiled, and the counts. https://pytorch.org/docs → torch.compiler.reset"""
    for each in list(ALL):
        each.forget()
    counters.clear()
