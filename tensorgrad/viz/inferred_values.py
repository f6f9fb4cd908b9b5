"""Constants that steps did not keep, since no gradient asks for them: seen in the results, where these are known."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..storage.base import backend_of
from .expression_trees import Unable, copied
from .tape import Tape

SLACK = 1e-6           # relative to the numbers, by which a constant may differ from a round one
# their gradients undo them
INVERTED = {"reshape", "permute_dims", "swapaxes", "t", "expand_dims", "squeeze", "channels_last", "contiguous", "flip"}
TERMS = {("add", 0): lambda y, t: y - t, ("add", 1): lambda y, t: y - t, ("subtract", 0): lambda y, t: y + t,
         ("subtract", 1): lambda y, t: t - y,
         ("rsub", 0): lambda y, t: t - y, ("rsub", 1): lambda y, t: y + t}


UNDONE = {"tanh": np.arctanh, "exp": np.log, "sigmoid": lambda y: np.log(y) - np.log1p(-y), "negative": np.negative,
          "sqrt": np.square, "arctan": np.tan,
          "expm1": np.log1p, "log": np.exp, "log1p": np.expm1, "sinh": np.arcsinh, "reciprocal": np.reciprocal}
# of two operands, the one that is not known, made from the result and the other one
OTHER = {**TERMS, ("multiply", 0): np.divide, ("multiply", 1): np.divide, ("divide", 0): np.multiply,
         ("divide", 1): lambda y, t: t / y}


def known_values(tape: Tape) -> dict[Any, Any]:
    """The values of a tape's places, and of those that are seen through the steps that were taken from there."""
    known = dict(tape.values)
    for node, step in reversed(tape.steps.items()):
        if node not in known or step.op is None:            # a function of the program's own
            continue
        at = 1 if step.op.opname == "set_view" else 0
        sources = [i for i, o in enumerate(step.inputs) if o.edge is not None and o.edge not in known]
        if sources == [at] or len(sources) == 1 and (step.op.opname, sources[0]) in OTHER:
            source = step.inputs[sources[0]].edge
            with np.errstate(all="ignore"):
                found = before(node, step, sources[0], tape, known)
            if found is not None and found.shape == source.shape and bool(np.isfinite(found).all()):
                known[source] = found
    return known


def before(node: Any, step: Any, at: int, tape: Tape, known: Mapping[Any, Any]) -> Any:
    """The input of a step that its result shows, or None."""
    name, params, source, xp = step.op.opname, node.params or {}, step.inputs[at].edge, backend_of("cpu").xp
    try:
        y = copied(known[node])
    except Unable:
        return None
    if name == "set_view":
        return xp.view(y, view=params["view"], order=params.get("order"))
    if name in INVERTED:
        asked = {"x_shape": source.shape, **params}
        names = step.op.grad_x.__code__.co_varnames[2:step.op.grad_x.__code__.co_argcount]
        return step.op.grad_x(xp, y, *[asked[n] for n in names])
    if name in UNDONE:
        return UNDONE[name](y)
    if (name, at) in OTHER and len(step.inputs) == 2:
        o = step.inputs[1 - at]
        other = known.get(o.edge) if o.edge is not None else tape.given[node].get(o.position)
        return None if other is None else OTHER[name, at](y, copied(other))
    return None


def unseen(name: str, at: int, values: Sequence[Any], params: Mapping[str, Any], y: Any) -> Any:
    """The constant at a position that an op did not keep, as far as its result y shows it: elsewhere it makes no
    difference.

    `values` are its inputs, with None for that one. Unable if the result is not known, or does not show it.
    """
    if (name, at) in TERMS and y is not None:
        return rounded(TERMS[name, at](y, values[1 - at]),
                       max(np.abs(y).max(initial=0), np.abs(values[1 - at]).max(initial=0)))
    if name == "copied" and y is not None:
        return y
    if name == "set_view" and at == 1 and y is not None:
        return backend_of("cpu").xp.view(y, view=params["view"], order=params.get("order"))
    if name == "where" and at and y is not None:
        return np.where(values[0], y, 0) if at == 1 else np.where(values[0], 0, y)
    if name == "masked_fill" and at == 1 and y is not None:
        filled = rounded(np.extract(np.broadcast_to(values[2], y.shape), y),
                         np.abs(y).max(initial=0, where=np.isfinite(y)))
        return filled if isinstance(filled, float) else filled[:1].sum()
    raise Unable("the tape does not keep")


def rounded(term: Any, largest: float) -> Any:
    """A constant, as a number of three digits if it is one but for rounding where numbers were as large as this."""
    simple = float(f"{term.mean():.3g}") if term.size else 0.0
    with np.errstate(invalid="ignore"):         # of infinities, no number is left
        return simple if np.abs(term - simple).max(initial=0) <= SLACK * largest else term
