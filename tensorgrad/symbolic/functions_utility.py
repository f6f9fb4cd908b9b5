"""Add calls of arbitrary functions to a graph."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .data import join


def add_to_graph(func: Callable[..., Any], /, *args: Any, custom_name: str | None = None, **kwds: Any) -> Any:
    """Return the node of `func(*args, **kwds)`.

    Nodes may be nested in lists, tuples and dictionaries among the arguments; all else is constant.

    The function is called while the graph is built: with fake tensors, or, if it reads values, with examples. The
    function is called again with another size of the batch, if that is unknown, when the shape of the result is
    requested. AssertionError if there is no node.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic import Input, add_to_graph
    >>> x, y = Input((2, 3)), Input((4, 3))
    >>> add_to_graph(torch.cat, tensors=(x, y), dim=1).shape
    (None, 6, 3)
    """
    return join(func, *args, custom_name=custom_name, **kwds)


add_to_model = add_to_graph

__all__ = ["add_to_graph", "add_to_model"]
