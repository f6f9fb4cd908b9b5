"""PyTorch's queries about symbolic sizes; sizes are always numbers here."""

from ..._dynamo.exc import ConstraintViolationError
from ...graph.lines import ReadsValues

__all__ = ["ConstraintViolationError", "GuardOnDataDependentSymNode", "free_symbols", "free_unbacked_symbols",
           "guard_or_false", "guard_or_true",
           "is_concrete_bool", "is_concrete_int",
           "statically_known_true"]


GuardOnDataDependentSymNode = ReadsValues       # raised for a program whose steps depend on unknown values


def guard_or_false(a):
    """Return the condition as a bool."""
    return bool(a)


guard_or_true = statically_known_true = guard_or_false


def is_concrete_int(a):
    """Return True: every size is known."""
    return True


is_concrete_bool = is_concrete_int


def free_symbols(val):
    """Return an empty set: sizes have no symbols."""
    return set()


free_unbacked_symbols = free_symbols
