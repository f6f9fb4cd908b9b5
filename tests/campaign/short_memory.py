"""Calls while memory is short: the n-th request for it fails, for some n.

They raise MemoryError, or their results are those of enough memory.
"""
import numpy as np
import workers

import tensorgrad as tg
from tensorgrad.runtime.native import native

REQUESTS = (1, 2, 3, 5, 8)
RUNS = 2 + len(REQUESTS)        # of each program


def numbers(program, names):
    """All numbers that a program ends with, by their names; and the error it ended with."""
    tg.manual_seed(0)
    found = dict(names)
    try:
        exec(compile(program, "<call>", "exec"), found)
    except Exception as error:
        return {}, error
    arrays = {name: value.detach().numpy(force=True) for name, value in found.items()
              if isinstance(value, tg.Tensor) and value.dtype is not tg.bfloat16}
    return arrays, None


def run(program, names):
    expected, error = numbers(program, names)
    if error is not None:
        return None, True
    again, _ = numbers(program, names)
    if any(not same(value, again[name]) for name, value in expected.items()):       # of memory that nobody wrote to
        return None, False
    raised = False
    for n in REQUESTS:
        native.fail_allocation(n)
        found, error = numbers(program, names)
        native.fail_allocation(0)
        if isinstance(error, MemoryError):
            raised = True
        elif error is not None:
            return f"request {n} fails, and then {workers.described(error)}", True
        elif any(not same(expected[name], value) for name, value in found.items()):
            return f"request {n} fails, and results differ", False
    return None, raised


def same(a, b):
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")

