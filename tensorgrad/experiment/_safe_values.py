"""Values that load without running code: numbers, strings and tensors in Python's containers."""
from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Any

import numpy as np

from ..api import Size, Tensor, device, dtype, layout
from ..nn.parameter import Parameter

PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, Size, device, dtype, layout)
ADVICE = {np.generic: "`x.item()` is a number that can be saved", np.ndarray: "`tensorgrad.tensor(x)` can be saved"}


def check_plain(value: Any, path: str) -> None:
    """Raise TypeError, with the path to the value, for anything that `load(..., weights_only=True)` would refuse.

    ValueError for a container that contains itself.
    """
    _check(value, path, ())


def _check(value: Any, path: str, around: tuple[int, ...]) -> None:
    kind = type(value)
    if kind in PLAIN:
        return
    if id(value) in around:
        raise ValueError(f"{path} holds itself")
    around = (*around, id(value))
    if kind in (list, tuple, set):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", around)
    elif kind in (dict, OrderedDict, Counter):
        for key, item in value.items():
            _check(key, f"the key {key!r:.80} of {path}", around)
            _check(item, f"{path}[{key!r:.80}]", around)
        _check_attributes(value, path, around)
    elif kind in (Tensor, Parameter):
        _check_attributes(value, path, around)
    else:
        advice = next((f": {text}" for base, text in ADVICE.items() if isinstance(value, base)), "")
        raise TypeError(f"{path} is of the type {kind.__module__}.{kind.__qualname__}, which no file can hold that is "
                        f"read without running code{advice}")


def _check_attributes(value: Any, path: str, around: tuple[int, ...]) -> None:
    for name, attribute in getattr(value, "__dict__", {}).items():
        _check(attribute, f"{path}.{name}", around)
