"""Hooks for classes of tensors that run their ops themselves, by `__torch_dispatch__`.

The dispatcher asks whether an operand is of such a class; interpret/class_dispatch.py, which calls the method,
registers the functions. Without such a class nothing is asked.
"""
from __future__ import annotations

import threading
from typing import Any

CLASSES: set[type] = set()          # the classes that define `__torch_dispatch__`


class State(threading.local):
    """The settings of one thread."""

    off = False         # True inside of `_DisableTorchDispatch`: ops run on the tensors as they are


state = State()


class DisableTorchDispatch:
    """A `with` block in which ops run on tensors of all classes as they are."""

    def __enter__(self) -> None:
        self.before, state.off = state.off, True

    def __exit__(self, *exception: object) -> None:
        state.off = self.before


def disabled_dispatch(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The `__torch_dispatch__` of classes that define none: run the operator on the tensors as they are."""
    with DisableTorchDispatch():
        return func(*args, **(kwargs or {}))


class ClassHooks:
    """The registered functions."""

    __slots__ = ("run", "like", "written", "into", "detached", "relinked", "number", "back", "note",
                 "wrapper", "ask")

    run: Any            # run(op, args, params): apply an op of the table
    like: Any           # like(name, tensor, …): `zeros_like` and its kin
    written: Any        # written(target, function, args, kwargs): run an in-place method
    into: Any           # into(function, args, out, kwargs): run a function with `out=`
    detached: Any       # detached(tensor): an alias without history
    relinked: Any       # relinked(tensor, edge): an alias with another place on the tape
    number: Any         # number(tensor): the only element, as a Python number
    back: Any           # back(order, grads): the gradients as Tensors, if a step of a backward is of such a class
    wrapper: Any        # wrapper(cls, size, strides, dtype, device, requires_grad): a tensor without memory
    ask: Any            # ask(operator, args, kwargs): call the method for an operator that a program defines
    note: Any           # note(node): remember a step that such a class takes part in

    def register(self, **answers: Any) -> None:
        for name, answer in answers.items():
            setattr(self, name, answer)


hooks = ClassHooks()


def among(args: Any) -> bool:
    """Return True if an operand, or one in a list, is of such a class, and the method is to be called."""
    for a in args:
        kind = type(a)
        if kind in CLASSES or (kind is list or kind is tuple) and among(a):
            return not state.off
    return False


def is_own(tensor: Any) -> bool:
    """Return True for a tensor of such a class."""
    return type(tensor) in CLASSES and not state.off
