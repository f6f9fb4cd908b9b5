"""Sizes are numbers here, never symbols: what is asked of them has an answer."""

__all__ = ["GuardOnDataDependentSymNode", "free_symbols", "free_unbacked_symbols", "guard_or_false", "guard_or_true", "is_concrete_bool", "is_concrete_int",
           "statically_known_true"]


class GuardOnDataDependentSymNode(RuntimeError):
    """PyTorch's error for a condition on a size that is not known: never raised."""


def guard_or_false(a):
    """The condition."""
    return bool(a)


guard_or_true = statically_known_true = guard_or_false


def is_concrete_int(a):
    """Whether a size is known: it is."""
    return True


is_concrete_bool = is_concrete_int


def free_symbols(val):
    """The symbols in sizes: none."""
    return set()


free_unbacked_symbols = free_symbols
