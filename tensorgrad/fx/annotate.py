"""Give a traced value a type. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

from typing import Any

from .proxy import Proxy


def annotate(val: Any, type: Any) -> Any:
    """Return the value; a traced one gets a type, which generated code shows. RuntimeError if it has one already."""
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(f"Tried to annotate a value that already had a type on it! Existing type is "
                               f"{val.node.type} and new type is {type}. This could happen if you tried to annotate a "
                               f"function parameter value (in which case you should use the type slot on the function "
                               f"signature) or you called annotate on the same value twice")
        val.node.type = type
    return val


__all__ = ["annotate"]
