"""Backends for `torch.compile` that count what they compile (PyTorch: ``torch._dynamo.testing``)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["CompileCounter", "CompileCounterWithBackend"]


class CompileCounter:
    """A backend that counts graphs and their calls, and returns each graph as it is."""

    def __init__(self) -> None:
        self.clear()

    def __call__(self, gm: Any, example_inputs: Any) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        return gm.forward  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Set the counts to zero."""
        self.frame_count = self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """A counter that also keeps the graphs. The backend's name is kept too, and means nothing here."""

    def __init__(self, backend: str) -> None:
        super().__init__()
        self.backend = backend

    def __call__(self, gm: Any, example_inputs: Any) -> Callable[..., Any]:
        self.graphs.append(gm)
        return super().__call__(gm, example_inputs)

    def clear(self) -> None:
        """Set the counts to zero, and forget the graphs."""
        super().clear()
        self.graphs: list[Any] = []
