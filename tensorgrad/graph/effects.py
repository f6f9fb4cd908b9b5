"""Functions with side effects, whose calls are kept even if no node uses the result."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

from .. import api as tg
from ..api import checks

F = TypeVar("F", bound=Callable[..., Any])

SIDE_EFFECTS: list[Any] = [operator.setitem, checks._assert, checks._assert_async]
NAMES = "bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like randperm".split()
RANDOM: list[Any] = [getattr(tg, name) for name in NAMES]
DRAWING = {*NAMES, "alpha_dropout", "dropout", "feature_dropout", "native_dropout", "rrelu"}    # operators


def has_side_effect(fn: F) -> F:
    """Keep calls of the function in graphs even if no node uses the result.

    >>> from tensorgrad.graph import Graph
    >>> graph = Graph()
    >>> graph.call_function(has_side_effect(lambda: None)).is_impure()
    True
    """
    SIDE_EFFECTS.append(fn)
    return fn


def among(target: Any, functions: list[Any]) -> bool:
    """Return True if the target is one of these functions, or a public wrapper of one."""
    inner = getattr(target, "__wrapped__", target)
    return any(function is target or function is inner for function in functions)
