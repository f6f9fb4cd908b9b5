"""An op, then a residual and an activation in the memory of its result."""
from __future__ import annotations

from typing import Any

from ..targets import Joined
from . import emits
from .elementwise import two


@emits(Joined)
def joined(build: Any, node: Any, *operands: Any, **params: Any) -> Any:
    target: Joined = node.target
    own, rest = (operands[:-1], operands[-1:]) if target.residual else (operands, ())
    with build.keeping(*rest):
        found = build.emit(target.opname, node, *own, **params)
    for other in rest:
        if found is not NotImplemented:
            found = two(build, node, "two_add", found, other)
    if found is NotImplemented or target.activation is None:
        return found
    return build.emit(target.activation.opname, node, found, **dict(target.activation.params))
