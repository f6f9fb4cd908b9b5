"""Schemas from the annotations of functions."""
from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from functools import reduce
from inspect import Parameter, Signature, signature
from operator import or_
from types import NoneType, UnionType
from typing import Any, NoReturn

from .._tensor import Tensor
from ..device import device
from ..dtype import dtype

__all__ = ["infer_schema", "tuple_to_list"]
Number = int | float | bool
BASES: dict[Any, str] = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", Number: "Scalar",
                         dtype: "ScalarType", device: "Device"}
# {type: the forms of it that arguments, and results, may have}
LISTS = {"[]", "?"}
FORMS = {"Tensor": LISTS | {"?[]"}, "SymInt": LISTS | {"[]?"}, "float": LISTS | {"[]?"}, "bool": LISTS | {"[]?"},
         "Scalar": LISTS, "str": {"?"}, "ScalarType": {"?"}, "Device": {"?"}}
RESULTS = {"Tensor": {"[]"}, "SymInt": set[str](), "float": set[str](), "bool": set[str](), "Scalar": set[str]()}
VALID = ", ".join(f"{base}{form}" for base, forms in FORMS.items() for form in ("", *sorted(forms)))


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None,
                 tags: Any = ()) -> str:
    """Return the schema that a function's annotations say.

    Input: mutates_args: the names of arguments that the function writes to, or 'unknown': all tensors; op_name: a name
        to put before the schema
    Errors: ValueError for a missing annotation, or one that no schema has
    https://pytorch.org/docs → torch.library.infer_schema

    >>> import tensorgrad as torch
    >>> def scale_(x: torch.Tensor, factor: float = 2.0) -> None: ...
    >>> torch.library.infer_schema(scale_, op_name="scale_", mutates_args={"x"})
    'scale_(Tensor(a0!) x, float factor=2.0) -> ()'
    """
    found = signature(prototype_function)
    reader = _Reader(found, prototype_function.__globals__)
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError("mutates_args must either be a sequence of the names of the arguments that are mutated or the "
                         "string 'unknown'. ")
    words: list[str] = []
    for place, (name, parameter) in enumerate(found.parameters.items()):
        if parameter.kind not in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
            reader.refuse("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is Parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        text = reader.argument(name, parameter)
        if name in mutates_args if not isinstance(mutates_args, str) else text.startswith("Tensor"):
            if not text.startswith("Tensor"):
                reader.refuse(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be "
                              f"mutated")
            text = f"Tensor(a{place}!){text.removeprefix('Tensor')}"
        words.append(f"{text} {name}{reader.default(name, parameter.default)}")
    if not isinstance(mutates_args, str) and (unseen := set(mutates_args) - set(found.parameters)):
        reader.refuse(f"{unseen} in mutates_args were not found in the custom op's signature. mutates_args should "
                      f"contain the names of all args that the custom op mutates, or just the string 'unknown' if you "
                      f"don't know.")
    return f"{op_name or ''}({', '.join(words)}) -> {reader.results(found.return_annotation)}"


class _Reader:
    """Reads annotations, and names the function's signature in errors."""

    def __init__(self, found: Signature, names: dict[str, Any]) -> None:
        self.found, self.names = found, names

    def refuse(self, what: str) -> NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {self.found})")

    def evaluated(self, annotation: Any) -> Any:
        """Return the type that an annotation names, which may be a text, or hold texts."""
        if isinstance(annotation, typing.ForwardRef):
            annotation = annotation.__forward_arg__
        if not isinstance(annotation, str):
            return annotation
        try:
            return eval(annotation, self.names)
        except NameError as error:
            self.refuse(f"Unsupported type annotation {annotation}. It is not a type. ({error}). If you are using "
                        f"'from __future__ import annotations', note that annotations are evaluated lazily as strings; "
                        f"make sure all types referenced in annotations are importable at module scope, not only "
                        f"inside a local function.")
        except Exception as error:
            self.refuse(f"Unsupported type annotation {annotation}. It is not a type. ({type(error).__name__}: "
                        f"{error})")

    def text(self, annotation: Any) -> str:
        """Return the schema's text of a type; '' if it has none."""
        annotation = self.evaluated(annotation)
        try:
            if annotation in BASES:
                return BASES[annotation]
        except TypeError:               # which has no hash
            return ""
        origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (list, Sequence) and len(parts) == 1:
            return (inner := self.text(parts[0])) and f"{inner}[]"
        if origin in (typing.Union, UnionType) and NoneType in parts:
            rest = reduce(or_, (part for part in parts if part is not NoneType))
            return (inner := self.text(rest)) and f"{inner}?"
        return ""

    def argument(self, name: str, parameter: Parameter) -> str:
        if parameter.annotation is Parameter.empty:
            self.refuse(f"Parameter {name} must have a type annotation.")
        if is_valid(text := self.text(parameter.annotation), FORMS):
            return text
        kind, example = self.evaluated(parameter.annotation), ""
        if typing.get_origin(kind) is tuple:
            instead = tuple_to_list(kind)
            if is_valid(self.text(instead), FORMS):
                example = f"For example, {instead}.\n\n"
            self.refuse(f"Parameter {name} has unsupported type {parameter.annotation}. We do not support Tuple inputs "
                        f"in schema. As a workaround, please try to use List instead. {example}The valid types are: "
                        f"{VALID}.")
        self.refuse(f"Parameter {name} has unsupported type {parameter.annotation}. The valid types are: {VALID}.")

    def default(self, name: str, value: Any) -> str:
        if value is Parameter.empty:
            return ""
        if value is None or isinstance(value, (int, float, bool)):
            return f"={value}"
        if isinstance(value, (str, device)):
            return f'="{value}"'
        if isinstance(value, dtype):
            return f"={str(value).removeprefix('torch.')}"
        self.refuse(f"Parameter {name} has an unsupported default value type {type(value)}. Please file an issue on "
                    f"GitHub so we can prioritize this.")

    def results(self, annotation: Any) -> str:
        if annotation is Signature.empty:
            self.refuse("No return type annotation was provided. Please add one.")
        annotation = self.evaluated(annotation)
        if annotation is None or annotation is NoneType:
            return "()"
        several = typing.get_origin(annotation) is tuple
        parts = typing.get_args(annotation) if several else (annotation,)
        texts = [self.text(part) for part in parts]
        if not all(is_valid(text, RESULTS) for text in texts):
            self.refuse(f"Return has unsupported type {annotation}. The valid types are: {', '.join(RESULTS)}, "
                        f"Tensor[].")
        return f"({', '.join(texts)})" if len(texts) > 1 else texts[0]


def is_valid(text: str, forms: dict[str, set[str]]) -> bool:
    """Return True if a schema may have the type."""
    base = text.rstrip("[]?")
    return base in forms and text.removeprefix(base) in {"", *forms[base]}


def _supported(base: Any, form: str) -> list[Any]:
    """Return the annotations of one form of a type: as typing and as collections.abc write it."""
    inner = typing.Optional[base] if form.startswith("?") else base          # noqa: UP045
    lists = ([list[inner], typing.List[inner], Sequence[inner], typing.Sequence[inner]]         # noqa: UP006
             if "[]" in form else [inner])
    return [typing.Optional[kind] for kind in lists] if form == "[]?" else lists     # noqa: UP045


# {annotation: type in a schema}, of arguments and of results
SUPPORTED_PARAM_TYPES = {kind: f"{base}{form}" for of, base in BASES.items() for form in ("", *sorted(FORMS[base]))
                         for kind in _supported(of, form)}
SUPPORTED_RETURN_TYPES = {kind: f"{base}{form}" for of, base in BASES.items() if base in RESULTS
                          for form in ("", *RESULTS[base]) for kind in _supported(of, form)[:2]}


def tuple_to_list(tuple_type: Any) -> Any:
    """Return the type of lists of what a type of tuples holds.

    >>> tuple_to_list(tuple[int, int])
    list[int]
    """
    parts = typing.get_args(tuple_type)
    if not parts:
        return list
    if len(parts) == 1 or len(parts) == 2 and parts[1] is Ellipsis:
        return list[parts[0]]           # type: ignore[valid-type]
    return list[reduce(or_, parts)]     # type: ignore[misc]
