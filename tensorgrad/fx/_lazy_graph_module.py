"""PyTorch's internal names for modules of graphs, which packages use. Code is generated at once."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .graph_module import GraphModule


class _LazyGraphModule(GraphModule):
    """A GraphModule."""

    @classmethod
    def force_recompile(cls, gm: Any) -> None:
        """Do nothing: the code is always there."""

    def real_recompile(self) -> None:
        """Do nothing: the code is always there."""


def _make_graph_module(*args: Any, graph_module_cls: Any = None, **kwargs: Any) -> GraphModule:
    """Return a GraphModule, or an object of a class derived from it."""
    made: GraphModule = (graph_module_cls or GraphModule)(*args, **kwargs)
    return made


@contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Change nothing in the block."""
    yield
