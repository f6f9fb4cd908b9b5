"""Functions of any kind as steps of a graph."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .data import join


def add_to_graph(func: Callable[..., Any], /, *args: Any, custom_name: str | None = None, **kwds: Any) -> Any:
    """The node of `func(*args, **kwds)`, where nodes stand anywhere in lists, tuples and dictionaries among the arguments; all else is constant.

    The function is called while the graph is built: with tensors that have only a shape, or, if it reads values, with examples. It is called once, and
    once more for another size of the batch if that is unknown and somebody asks for the shape of the result. AssertionError if there is no node.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic import Input, add_to_graph
    >>> x, y = Input((2, 3)), Input((4, 3))
    >>> add_to_graph(torch.cat, tensors=(x, y), dim=1).shape
    (None, 6, 3)
    """
    return join(func, *args, custom_name=custom_name, **kwds)


add_to_model = add_to_graph

__all__ = ["add_to_graph", "add_to_model"]
