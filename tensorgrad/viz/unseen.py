"""Constants that steps did not keep, since no gradient asks for them: seen in the results, where these are known."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..storage.base import backend_of
from .evaluable import Unable, copied
from .tape import Tape

SLACK = 1e-6           # relative to the numbers, by which a constant may differ from a round one
INVERTED = {"reshape", "permute_dims", "swapaxes", "t", "expand_dims", "squeeze", "contiguous", "flip"}      # their gradients undo them
TERMS = {("add", 0): lambda y, t: y - t, ("add", 1): lambda y, t: y - t, ("subtract", 0): lambda y, t: y + t, ("subtract", 1): lambda y, t: t - y,
         ("rsub", 0): lambda y, t: t - y, ("rsub", 1): lambda y, t: y + t}


def known_values(tape: Tape) -> dict[Any, Any]:
    """The values of a tape's places, and of those whose elements are seen, moved, in a value that it has."""
    known, xp = dict(tape.values), backend_of("cpu").xp
    for node, step in reversed(tape.steps.items()):
        name = getattr(step.op, "opname", "")           # a function of the program's own has no op
        if node not in known or name != "set_view" and name not in INVERTED:
            continue
        y, params = copied(known[node]), node.params or {}
        source = step.inputs[1 if name == "set_view" else 0].edge
        if source is None or source in known:
            continue
        if name == "set_view":
            known[source] = xp.view(y, view=params["view"], order=params.get("order"))
        else:
            asked = {"x_shape": source.shape, **params}
            names = step.op.grad_x.__code__.co_varnames[2:step.op.grad_x.__code__.co_argcount]
            known[source] = step.op.grad_x(xp, y, *[asked[n] for n in names])
    return known


def unseen(name: str, at: int, values: Sequence[Any], params: Mapping[str, Any], y: Any) -> Any:
    """The constant at a position that an op did not keep, as far as its result y shows it: elsewhere it makes no difference.

    `values` are its inputs, with None for that one. Unable if the result is not known, or does not show it.
    """
    if (name, at) in TERMS and y is not None:
        term = TERMS[name, at](y, values[1 - at])
        simple = float(f"{term.mean():.3g}") if term.size else 0.0
        largest = max(np.abs(y).max(initial=0), np.abs(values[1 - at]).max(initial=0))
        return simple if np.abs(term - simple).max(initial=0) <= SLACK * largest else term
    if name == "copied" and y is not None:
        return y
    if name == "set_view" and at == 1 and y is not None:
        return backend_of("cpu").xp.view(y, view=params["view"], order=params.get("order"))
    if name == "where" and at and y is not None:
        return np.where(values[0], y, 0) if at == 1 else np.where(values[0], 0, y)
    if name == "masked_fill" and at == 1 and y is not None:
        return np.extract(np.broadcast_to(values[2], y.shape), y)[:1].sum()
    raise Unable("the tape does not keep")
