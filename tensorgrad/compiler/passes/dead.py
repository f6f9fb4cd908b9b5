"""Dead code: calls that nothing uses."""
from __future__ import annotations

from ...graph.lowered import Lowered
from ...graph.steps import Draw


def drop_unused(graph: Lowered) -> None:
    """Erase calls and constants without users. Random numbers are still drawn, since later ones depend on it."""
    for node in reversed(graph.nodes):
        if not node.users and node.op in ("call_function", "get_attr") and not isinstance(node.target, Draw):
            graph.erase_node(node)
