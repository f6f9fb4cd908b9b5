"""Open a step of a backward: run its op's definition once more on the step's own numbers, op by op, to explain the
parts.

The definition comes from the op table, or from `teaching.DEFINITIONS` where the table has a kernel or computes in
another way than courses do. Parts get the definition's local names and source lines; each round of a loop is a group.
"""
from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..core.dispatch import namespace, wrap
from ..core.engine import starts
from ..core.mode import enable_grad, mode
from ..core.tape import Leaf, Output, TensorBase, node_of, show
from ..core.unbroadcast import added
from ..runtime.numpy_state import Region
from .naming import placed
from .notes import NOTES, Note
from .tape import Tape, behind
from .text import host
from .textbook_gradients import DEFINITIONS
from .torch_names import title

LARGEST = 1 << 22       # numbers of all steps that are kept to be opened
SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
# units in the last place, relative to the largest number, by which the parts' gradients may differ from the step's
SLACK = 1e4
DEFINED = f"{__package__.rpartition('.')[0]}.ops.", f"{__package__}.textbook_gradients"      # modules with definitions


class Kept(NamedTuple):
    """The operands and gradients of a step back, copied: later writes to the tensors do not reach them."""

    op: Any
    params: dict[str, Any]
    inputs: tuple[tuple[str, Any, Any], ...]        # (name, place or None, value)
    incoming: tuple[Any, ...]                       # of each result, its gradient or None
    given: dict[Any, Any]                           # {place: what the step gives to it}
    results: tuple[str, ...]
    backend: Any


class Parts(NamedTuple):
    """The arguments of `explain.Explanation` for the parts, and the definition that made them."""

    loss: Any
    gradient: Any
    tensors: dict[str, tuple[Any, Any]]
    definition: Any
    leaves: dict[Any, Any]          # {place in the step's explanation: leaf of the parts}


# ── what is kept of a tape ────────────────────────────────────────────────────────────────────────────────────────────


def openable(tape: Tape, names: Mapping[Any, str]) -> list[Kept | str]:
    """Return, for each step back, its copies, or the reason why it cannot be opened."""
    copier, found = Copier(), list[Kept | str]()
    for back in tape.back:
        try:
            found.append(kept(back, tape, names, copier))
        except ValueError as error:
            found.append(str(error))
    return found


def kept(back: Any, tape: Tape, names: Mapping[Any, str], copier: Copier) -> Kept:
    node, step = back.node, tape.steps[back.node]
    if step.op is None:
        raise ValueError("its backward is a function of the program's own")
    inputs, given = [], tape.given[node]
    for o in step.inputs:
        if (o.edge is not None and o.edge not in tape.values or o.edge is None and o.position not in given
                and not optional(step.op, o)):
            raise ValueError(f"the tape does not keep its input {o.name}")
        value = tape.values[o.edge] if o.edge is not None else given.get(o.position)
        name = names.get(o.edge if o.edge is not None else id(getattr(value, "array", None)), o.name)
        inputs.append((name, o.edge, copier(value)))
    gives: dict[Any, Any] = {}
    for share in back.shares:
        gives[share.edge] = (added(node._storage.xp, gives[share.edge], share.gradient) if share.edge in gives
                             else copier(share.gradient))
    params = dict(node.params or {})
    if "written" in params:
        raise ValueError("a write in place has no parts")
    places = tuple(None if g is None else copier(g) for g in back.incoming)
    results = tuple(names.get(place, "") for place in step.results)
    return Kept(step.op, params, tuple(inputs), places, gives, results, type(node._storage))


def optional(op: Any, operand: Any) -> bool:
    """Return True if an input that the step does not mention was left out: a bias, weights of a loss."""
    return bool(op.composite) or op.opname.startswith("convolution") and operand.name == "b"


class Copier:
    """Copies each array once, up to a total of LARGEST numbers."""

    def __init__(self) -> None:
        self.copies: dict[int, tuple[Any, Any]] = {}
        self.left = LARGEST

    def __call__(self, value: Any) -> Any:
        array = getattr(value, "array", value)
        if not hasattr(array, "shape"):
            return array
        if id(array) not in self.copies:
            self.left -= prod(array.shape)
            if self.left < 0:
                raise ValueError(f"its numbers were not kept: the steps before it have more than {LARGEST} of them")
            self.copies[id(array)] = array, array.copy()        # the array itself is held, so that its id stays its own
        return self.copies[id(array)][1]


# ── opening ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def opened(step: Kept | str) -> Parts:
    """Return the parts of a step, on their own tape.

    ValueError if it has none, or if they do not give the step's own gradient.
    """
    if isinstance(step, str):
        raise ValueError(f"the step cannot be opened: {step}")
    op, leaves = step.op, dict[Any, Any]()
    with Region(), enable_grad():
        arguments = [tensor_of(edge, value, step.backend, leaves) for _, edge, value in step.inputs]
        definition = DEFINITIONS.get(op.opname, op.forward)
        with Listening() as heard:
            try:
                found = definition(namespace(step.backend), *([arguments] if op.sequence else arguments), **step.params)
            except Exception:           # a numerical method
                raise ValueError(f"{title(op.opname, step.params)} is a single step: its definition computes with bare "
                                 f"arrays") from None
            results = list(found) if op.several else [found]
            incoming = {f"g{i}".translate(SUBSCRIPT): wrap(g, step.backend())
                        for i, g in enumerate(step.incoming) if g is not None}
            loss, gradient = ending(results, step, list(incoming.values()))
    refuse_single(step, loss)
    check(step, leaves, loss, gradient)
    names = named(step, arguments, results, heard, loss) | ({} if gradient is not None else incoming)
    return Parts(loss, gradient, placed(names), definition, {edge: node_of(leaf) for edge, leaf in leaves.items()})


def named(step: Kept, arguments: list[Any], results: list[Any], heard: Listening, loss: Any) -> dict[str, Any]:
    """Return {name: tensor}: inputs and results by their names in the step's explanation, then the definition's locals,
    then parts without a name.
    """
    found: dict[str, Any] = {}
    known: set[int] = set()

    def call(name: str, tensor: Any) -> None:
        if isinstance(tensor, TensorBase) and id(tensor) not in known:
            while name in found:
                name += "′"
            found[name] = tensor
            known.add(id(tensor))
    for (name, _, _), argument in zip(step.inputs, arguments, strict=True):
        call(name, argument)
    for name, result in zip(step.results, results, strict=False):
        if name:
            call(name, result)
    for name, tensor in heard.names():
        call(name, tensor)
    call("L", loss)
    letter = next(letter for letter in ("p", "q", "part")
                  if not any(name.startswith(letter) and name[len(letter):].isdecimal() for name in found))
    parts = [tensor for tensor in heard.made if id(tensor) not in known]
    for number, tensor in enumerate(parts, 1):
        call(f"{letter}{number}", tensor)
    return found


def tensor_of(edge: Any, value: Any, backend: Any, leaves: dict[Any, Any]) -> Any:
    """Return an input as a tensor: a leaf if it gets a gradient, and the same leaf for all uses of a place."""
    if edge is not None:
        if edge not in leaves:
            leaves[edge] = wrap(value, backend()).requires_grad_()
        return leaves[edge]
    return wrap(value, backend()) if hasattr(value, "shape") else value


def ending(results: list[Any], step: Kept, incoming: list[Any]) -> tuple[Any, Any]:
    """Return the start of the way back through the parts: the only result that has a gradient, or the sum of results
    times their gradients.
    """
    reached = [result for result, g in zip(results, step.incoming, strict=True) if g is not None]
    terms = ([(result * g).sum() for result, g in zip(reached, incoming, strict=True) if node_of(result) is not None]
             if len(reached) > 1 else [])
    if not terms:
        return reached[0], incoming[0]
    return sum(terms[1:], terms[0]), None


def refuse_single(step: Kept, loss: Any) -> None:
    root = node_of(loss)
    steps = [] if root is None else [node for node in behind([root]) if type(node) not in (Leaf, Output)]
    if not steps or len(steps) == 1 and steps[0].op is step.op:
        raise ValueError(f"{title(step.op.opname, step.params)} is a single step: it has no parts")


def check(step: Kept, leaves: Mapping[Any, Any], loss: Any, gradient: Any) -> None:
    """Raise ValueError unless the parts give the step's gradients."""
    roots = starts((loss,), None if gradient is None else (gradient,), False)
    tape = Tape(roots, starts=roots)
    largest = max([size_of(g) for back in tape.back
                   for g in (*back.incoming, *(share.gradient for share in back.shares))], default=0)
    for edge, expected in step.given.items():
        got, expected = tape.arrived.get(node_of(leaves[edge])), host(expected)
        # bfloat16 is seen as float32
        eps = np.finfo(expected.dtype).eps if getattr(loss.array, "dtype", None) == expected.dtype else 2.0 ** -8
        with np.errstate(invalid="ignore"):
            if (got is None or got.shape != expected.shape
                    or not np.allclose(host(got), expected, 0, SLACK * eps * max(largest, size_of(expected)),
                                       equal_nan=True)):
                raise ValueError(f"the step cannot be opened: the parts of {title(step.op.opname, step.params)} do not "
                                 f"give its gradient here")


def size_of(gradient: Any) -> float:
    """Return the largest magnitude among the finite numbers."""
    values = np.abs(host(gradient)) if gradient is not None else np.empty(0)
    return float(np.max(values, initial=0, where=np.isfinite(values)))


class Listening:
    """Notes, while a definition runs, the line and the round of the loop that make each step, and the tensors behind
    local names.
    """

    def __init__(self) -> None:
        self.rounds: dict[Any, int] = {}            # {frame of a loop's body: its number}
        self.calls: dict[Any, int] = {}             # {code: how often it returned}
        self.heard: list[tuple[Any, int, str, Any]] = []
        self.made: list[Any] = []                   # results on the tape, in the order of time

    def __enter__(self) -> Listening:
        self.before = sys.getprofile()
        mode.watch(self.note)
        sys.setprofile(self.returned)
        return self

    def __exit__(self, *error: Any) -> None:
        if hasattr(self.before, "enable"):          # cProfile's
            self.before.enable()
        else:
            sys.setprofile(self.before)
        mode.watch(self.note, False)

    def note(self, step: Any) -> None:
        """Note where a new step is made."""
        frames = list(outward(sys._getframe(1)))
        if not frames:
            return
        body = next((f for f in frames if is_body(f.f_code)), None)
        where, turn = frames[0], None if body is None else self.rounds.setdefault(body, len(self.rounds))
        group, calls = ((), ()) if turn is None else ((f"t = {turn}",), (turn + 1,))
        NOTES[step] = Note(0, where.f_code.co_filename, where.f_lineno, group, calls, where.f_code, where.f_lasti)

    def returned(self, frame: Any, event: str, value: Any) -> None:
        """Note the local names of a definition's function that returns, and the results that `show` sees."""
        if event != "return":
            return
        if frame.f_code is show.__code__:
            self.made += [out for out in frame.f_locals["outs"] if out._node is not None]
        if not defines(frame):
            return
        code = frame.f_code
        number = self.calls[code] = self.calls.get(code, -1) + 1
        count, values = code.co_argcount + code.co_kwonlyargcount, frame.f_locals
        for name in code.co_varnames[0 if is_body(code) else count:]:
            if isinstance(tensor := values.get(name), TensorBase):
                self.heard.append((code, number, name, tensor))

    def names(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, tensor). Locals of functions that ran several times are numbered."""
        for code, number, name, tensor in self.heard:
            yield name + (str(number).translate(SUBSCRIPT) if self.calls[code] else ""), tensor


def is_body(code: Any) -> bool:
    """Return True for the body of a loop along a sequence."""
    return code.co_name == "step" and "<locals>" in code.co_qualname


def defines(frame: Any) -> bool:
    """Return True if a frame runs a function of a definition."""
    return frame.f_globals.get("__name__", "").startswith(DEFINED) and not frame.f_code.co_name.startswith("<")


def outward(frame: Any) -> Iterator[Any]:
    """Yield the frames of definitions, from the innermost."""
    while frame is not None:
        if defines(frame):
            yield frame
        frame = frame.f_back


__all__ = ["Kept", "Parts", "openable", "opened"]
