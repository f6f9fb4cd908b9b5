"""A loop whose body is a function."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph.recorder import here
from .recording import recorded_while_loop


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Replace the carried values by `body_fn(*values)` as long as `cond_fn(*values)` holds.

    Input: carried_inputs, a tuple or list of tensors and numbers
    Output: the last values
    Errors: RuntimeError if a function cannot be called
    https://pytorch.org/docs → torch.while_loop

    >>> import tensorgrad as torch
    >>> from tensorgrad._higher_order_ops import while_loop
    >>> while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(2)))
    (tensor(3), tensor([8., 8.]))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError("Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that only consists "
                           f"of tensor leaves or int leaves, but got {carried_inputs}")
    recorder = here.recorder
    if recorder is not None and recorder.branches and recorder.reading is None:
        return type(carried_inputs)(recorded_while_loop(cond_fn, body_fn, carried_inputs))
    values = carried_inputs
    while cond_fn(*values):
        result = body_fn(*values)
        values = result if isinstance(result, (tuple, list)) else (result,)
    return type(carried_inputs)(values) if type(carried_inputs) in (tuple, list) else values
