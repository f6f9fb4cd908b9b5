"""Copies of state dicts that training does not change, for saves that go on behind it."""
from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from ... import api as tg

__all__ = ["staged"]


def staged(value: Any) -> Any:
    """A copy of nested dicts, lists and tuples, their tensors on the CPU. Tensors that are one tensor stay one.

    >>> import tensorgrad as torch
    >>> x = torch.ones(2)
    >>> copy = staged({"x": x})
    >>> x.zero_(), copy
    (tensor([0., 0.]), {'x': tensor([1., 1.])})
    """
    return _staged(value, {})


def _staged(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, tg.Tensor):
        if id(value) not in known:
            known[id(value)] = value.detach().to("cpu", copy=True)
        return known[id(value)]
    if isinstance(value, Mapping):
        return {key: _staged(item, known) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_staged(item, known) for item in value])
    return deepcopy(value)
