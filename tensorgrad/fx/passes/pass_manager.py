"""Run functions of modules one after another. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import Any

__all__ = ["PassManager", "inplace_wrapper", "log_hook", "loop_pass", "these_before_those_pass_constraint",
           "this_before_that_pass_constraint"]
logger = logging.getLogger(__name__)


def inplace_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pass that returns its first argument, of a function that changes it."""
    @wraps(fn)
    def wrapped_fn(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm
    return wrapped_fn


def log_hook(fn: Callable[..., Any], level: int = logging.INFO) -> Callable[..., Any]:
    """Return a pass that logs its result."""
    @wraps(fn)
    def wrapped_fn(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result
    return wrapped_fn


def loop_pass(base_pass: Callable[[Any], Any], n_iter: int | None = None,
              predicate: Callable[[Any], bool] | None = None) -> Callable[[Any], Any]:
    """Return a pass that repeats another one, a number of times or while a predicate of its result holds.

    >>> loop_pass(lambda x: x * 2, n_iter=3)(1), loop_pass(lambda x: x * 2, predicate=lambda x: x < 100)(1)
    (8, 128)
    """
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @wraps(base_pass)
    def new_pass(source: Any) -> Any:
        if predicate is not None:
            while predicate(source):
                source = base_pass(source)
            return source
        if n_iter <= 0:                         # type: ignore[operator]
            raise RuntimeError(f"loop_pass must be given positive int n_iter (given {n_iter}) xor predicate (given "
                               f"{predicate})")
        for _ in range(n_iter):                 # type: ignore[arg-type]
            source = base_pass(source)
        return source
    return new_pass


def check_order(constraint: Callable[[Any, Any], bool], passes: list[Any]) -> None:
    """Raise RuntimeError unless a constraint holds for all pairs of passes."""
    for i, a in enumerate(passes):
        for j, b in enumerate(passes[i + 1:]):
            if not constraint(a, b):
                raise RuntimeError(f"pass schedule constraint violated. Expected {a} before {b} but found {a} at index "
                                   f"{i} and {b} at index{j} in pass list.")


def this_before_that_pass_constraint(this: Any, that: Any) -> Callable[[Any, Any], bool]:
    """Return the constraint that a pass comes before another.

    >>> constraint = this_before_that_pass_constraint(len, max)
    >>> constraint(len, max), constraint(max, len)
    (True, False)
    """
    return lambda a, b: a != that or b != this


def these_before_those_pass_constraint(these: Any, those: Any) -> Callable[[Any, Any], bool]:
    """Return the constraint that a pass comes before another, whatever wrappers they have."""
    return lambda a, b: unwrap(a) != those or unwrap(b) != these


class PassManager:
    """Runs passes in their order, which must keep the constraints."""

    def __init__(self, passes: list[Any] | None = None,
                 constraints: list[Callable[[Any, Any], bool]] | None = None) -> None:
        self.passes, self.constraints, self._validated = passes or [], constraints or [], False

    @classmethod
    def build_from_passlist(cls, passes: list[Any]) -> PassManager:
        """Return a manager of these passes."""
        return cls(passes)

    def add_pass(self, _pass: Any) -> None:
        """Add a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[[Any, Any], bool]) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: list[str]) -> None:
        """Remove the passes of these names."""
        if _passes is not None:
            self.passes = [each for each in self.passes if each.__name__ not in _passes]
            self._validated = False

    def replace_pass(self, _target: Any, _replacement: Any) -> None:
        """Replace the passes of another's name."""
        self.passes = [_replacement if each.__name__ == _target.__name__ else each for each in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Raise RuntimeError unless the order keeps the constraints."""
        if not self._validated:
            for constraint in self.constraints:
                check_order(constraint, self.passes)
            self._validated = True

    def __call__(self, source: Any) -> Any:
        self.validate()
        for each in self.passes:
            source = each(source)
        return source
