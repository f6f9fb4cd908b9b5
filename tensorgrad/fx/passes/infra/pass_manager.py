"""Run passes in an order that keeps constraints. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from ....nn import Module
from ...graph_module import GraphModule
from ..pass_manager import check_order, this_before_that_pass_constraint
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn: Any) -> Any:
    """Return a pass that gives a PassResult, of a function that returns a module, or changes its argument."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped_fn(gm: Any) -> PassResult | None:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, PassResult):
            return result
        return PassResult(result, True) if isinstance(result, Module) else None
    if not inspect.isfunction(fn):
        wrapped_fn.__name__ = type(fn).__name__
    return wrapped_fn


def _topological_sort_passes(passes: list[Any], constraints: list[Callable[..., bool]]) -> list[Any]:
    """Return passes in an order that keeps constraints. RuntimeError if there is none."""
    if not constraints:
        return passes
    after: dict[Any, list[Any]] = {each: [] for each in passes}
    missing = dict.fromkeys(passes, 0)
    for a in passes:
        for b in passes:
            broken = 0 if a == b else sum(not constraint(a, b) for constraint in constraints)
            after[b] += [a] * broken
            missing[a] += broken
    ready = [each for each in passes if not missing[each]]
    for each in ready:                          # grows meanwhile
        for other in after[each]:
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    if len(ready) < len(passes):
        raise RuntimeError(f"Circular dependency detected within the following passes: "
                           f"{[each for each in passes if missing[each]]}")
    return ready


def _name(fn: Any) -> str:
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__


class PassManager:
    """Runs passes in an order that keeps constraints, `steps` times or until none changes the module.

    `constraints` are functions of two passes: False if the first may not come before the second.
    """

    def __init__(self, passes: list[Any] | None = None, constraints: list[Callable[..., bool]] | None = None,
                 steps: int | None = None, run_checks_after_each_pass: bool = False,
                 suppress_check_failures: bool = False) -> None:
        self.passes, self.constraints, self.steps = passes or [], constraints or [], steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Any) -> None:
        """Add a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[..., bool]) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raise RuntimeError unless the passes are in an order that keeps the constraints."""
        if not self._validated:
            for constraint in self.constraints:
                check_order(constraint, self.passes)
            self._validated = True

    def solve_constraints(self) -> None:
        """Put the passes into an order that keeps the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Any], None]) -> None:
        """Set a function of a module that raises an error if a pass made it invalid."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check                      # type: ignore[method-assign]

    def check(self, module: Any) -> None:
        """Accept all modules, until `add_checks`."""

    def __call__(self, module: Any) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            modified = False
            for i, fn in enumerate(self.passes):
                try:
                    module, each = self._run(fn, module)
                except Exception as error:
                    raise Exception(f"An error occurred when running the '{_name(fn)}' pass after the following "
                                    f"passes: {list(map(_name, self.passes[:i]))}") from error
                modified |= each
            changed |= modified
            if not modified:
                break
        return PassResult(module, changed)

    def _run(self, fn: Any, module: Any) -> tuple[Any, bool]:
        result = fn(module)
        if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
            raise TypeError(f"The result of the pass {_name(fn)} should be type PassResult.Please wrap it with "
                            f"pass_result_wrapper()")
        if isinstance(result.graph_module, GraphModule):
            result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self.check(result.graph_module)
        return result.graph_module, result.modified
