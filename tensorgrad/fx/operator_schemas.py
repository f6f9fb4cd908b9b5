"""Arguments of calls in the form of a function's signature, under PyTorch's names."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph.names import in_c
from ..graph.schemas import (
    ArgsKwargsPair,
    create_type_hint,
    normalize_function,
    normalize_module,
    signature_of,
    type_matches,
)

__all__ = ["ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint", "get_signature_for_torch_op",
           "normalize_function", "normalize_module", "type_matches"]


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """Return a list with the signature of a function, or None; with `return_schemas` (the list, None): functions have
    no schemas here."""
    signature = signature_of(op)
    found = None if signature is None else [signature]
    return (found, None) if return_schemas else found


def check_for_mutable_operation(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise RuntimeError for a function of PyTorch's C library that writes to an argument: its name ends with an
    underscore, or it is given `out`."""
    name = getattr(target, "__name__", "")
    written = name.endswith("_") and not name.endswith("__") and target.__module__ != "_operator"
    if written or kwargs.get("out") is not None and in_c(target):
        raise RuntimeError(f"Tried to trace mutable operation aten::{name}{'' if written else '.out'}. FX only "
                           f"supports functional code, so operations that mutate operands in-place (e.g. via `out` "
                           f"arguments) are not supported")
