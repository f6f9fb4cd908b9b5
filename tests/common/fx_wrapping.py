"""A module that wraps functions for tracing."""
import math

from tensorgrad.fx import wrap


@wrap
def doubled(x):
    return x + x


wrap("len")


def uses_wrapped(x, y):
    return doubled(x) + doubled(3) + len(y) + math.sqrt(y)
