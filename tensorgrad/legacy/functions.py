"""Functions that take the tensor of their result first: `add(r, a, b)` is r = a + b in r's memory, and r takes the
result's shape.

Lua Torch and the first PyTorch used this form. Every function of the root has it here: if today's form refuses the
arguments, the first one, or the first two, are results.

>>> import tensorgrad as torch
>>> from tensorgrad import legacy
>>> a, b = torch.tensor([1., 2.]), torch.tensor([10., 20.])
>>> legacy.add(a, a, b) is a, a
(True, tensor([11., 22.]))
>>> values, indices = torch.Tensor(), torch.LongTensor()
>>> legacy.max(values, indices, torch.tensor([[1., 5.], [7., 2.]]), 1)
(tensor([5., 7.]), tensor([1, 0]))
"""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .. import api as tg

__all__ = ["result_first"]


def result_first(today: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a present function to take the tensors of its results first.

    Errors: those of the present form, TypeError for arguments that neither form takes.
    """
    @wraps(today)
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            return today(*args, **kwargs)
        except TypeError:
            for count in 1, 2:
                if len(args) > count and all(isinstance(a, tg.Tensor) for a in args[:count]):
                    try:
                        found = today(*args[count:], **kwargs)
                    except TypeError:
                        continue
                    if len(values := found if isinstance(found, tuple) else (found,)) == count:
                        return _written(args[:count], values)
            raise
    return function


def _written(results: tuple[Any, ...], values: Any) -> Any:
    """Write values to the results, and return these."""
    for result, value in zip(results, values):
        with tg.no_grad():
            result.resize_(value.shape).copy_(value)
    return results[0] if len(results) == 1 else results
