"""The arguments of an operator's call, checked and converted by its schema as PyTorch does."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ..api import Tensor, device, dtype, layout, memory_format
from ..types import SymBool, SymFloat, SymInt
from .schemas import Argument, Schema

# what stands for a whole number in a schema's type
NAMED = {"ScalarType": dtype, "Layout": layout, "MemoryFormat": memory_format}
FIXED = re.compile(r"\[(\d+)\]")
WRONG: Any = object()


def checked(schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments by position, up to the last that is given, and those by name alone.

    Errors: RuntimeError for a missing argument, one too many, an unknown name, and a value of another type
    """
    schema.bound(args, kwargs)
    given = [_converted(argument, value, schema) for argument, value in zip(schema.arguments, args)]
    left = {a.name: (a, _converted(a, kwargs[a.name], schema)) for a in schema.arguments if a.name in kwargs}
    places = [place for place, a in enumerate(schema.arguments) if a.name in left and not a.kwarg_only]
    for argument in schema.arguments[len(args):max(places, default=0) + 1]:
        given.append(left[argument.name][1] if argument.name in left else argument.default_value)
    return tuple(given), {name: value for name, (argument, value) in left.items() if argument.kwarg_only}


def takes(schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if an operator takes the arguments."""
    try:
        checked(schema, args, kwargs)
    except RuntimeError:
        return False
    return True


def _converted(argument: Argument, value: Any, schema: Schema) -> Any:
    found = _of_type(argument.kind, argument.text, value)
    if found is WRONG:
        raise RuntimeError(f"{schema.name}() Expected a value of type '{argument.kind}' for argument '{argument.name}' "
                           f"but instead found type '{type(value).__name__}'.")
    return found


def _of_type(kind: str, text: str, value: Any) -> Any:
    """Return a value as one of a schema's type; WRONG if it is none."""
    if kind.startswith("Optional["):
        return None if value is None else _of_type(kind[9:-1], text, value)
    if kind.startswith("List["):
        inner = kind[5:-1]
        if isinstance(value, Sequence) and not isinstance(value, str):
            parts = [WRONG if part is None and inner == "Tensor" else _of_type(inner, text, part) for part in value]
            return WRONG if any(part is WRONG for part in parts) else parts
        part = _of_type(inner, text, value) if (size := FIXED.search(text)) and not isinstance(value, Tensor) else WRONG
        return WRONG if part is WRONG else [part] * int(size[1])  # type: ignore[index]
    if kind in PLAIN:
        return PLAIN[kind](value, text)
    return value


def _whole(value: Any, text: str) -> Any:
    named = NAMED.get(text.rstrip("?"))
    if named is not None and isinstance(value, named) or isinstance(value, SymInt):
        return value
    if isinstance(value, Tensor):
        return _item(value, ("integral",))
    return int(value) if isinstance(value, bool) else value if hasattr(value, "__index__") else WRONG


def _real(value: Any, text: str) -> Any:
    if isinstance(value, Tensor):
        found = _item(value, ("integral", "real"))
        return found if found is WRONG else float(found)
    return value if isinstance(value, (float, SymFloat, SymInt)) else float(value) if _is_whole(value) else WRONG


def _number(value: Any, text: str) -> Any:
    if isinstance(value, Tensor):
        return _item(value, ("integral", "real", "complex"))
    return value if isinstance(value, (float, complex, SymFloat)) or _is_whole(value) else WRONG


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, Tensor)


def _item(tensor: Any, kinds: tuple[str, ...]) -> Any:
    """Return the number in a tensor of one element."""
    kind = "complex" if tensor.is_complex() else "real" if tensor.is_floating_point() else "integral"
    return tensor.item() if kind in kinds and tensor.numel() == 1 else WRONG


def _bool(value: Any, text: str) -> Any:
    return value if isinstance(value, SymBool) else bool(value) if value is None or _is_whole(value) else WRONG


# {a schema's type in Python: value, text of the type → value of it, or WRONG}
PLAIN: dict[str, Callable[[Any, str], Any]] = {
    "Tensor": lambda value, text: value if value is None or isinstance(value, Tensor) else WRONG,
    "int": _whole, "float": _real, "number": _number, "bool": _bool,
    "str": lambda value, text: value if isinstance(value, str) else WRONG,
    "Device": lambda value, text: value if isinstance(value, (device, str)) or _is_whole(value) else WRONG,
}
