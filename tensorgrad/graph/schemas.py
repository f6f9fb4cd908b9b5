"""Arguments of calls in the form of a function's signature. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Union, get_args, get_origin

NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY


class ArgsKwargsPair(NamedTuple):
    """The positional arguments of a call, and those by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def bound(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any],
          only_kwargs: bool) -> ArgsKwargsPair | None:
    """Return the arguments with defaults, in the signature's order; None if they do not fit or cannot be named."""
    parameters = signature.parameters
    if any(parameter.kind not in NAMED for parameter in parameters.values()):
        return None
    try:
        found = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    found.apply_defaults()
    names = list(parameters)
    split = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(tuple(found.arguments[name] for name in names[:split]),
                          {name: found.arguments[name] for name in names[split:]})


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a function; None if it has none."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def normalize_function(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
                       arg_types: Any = None, kwarg_types: Any = None,
                       normalize_to_only_use_kwargs: bool = False) -> ArgsKwargsPair | None:
    """Return a function's arguments in the order of its signature, with defaults; None if they do not fit.

    >>> import tensorgrad as torch
    >>> normalize_function(torch.nn.functional.elu, (1,), {}, normalize_to_only_use_kwargs=True).kwargs
    {'input': 1, 'alpha': 1.0, 'inplace': False}
    """
    signature = signature_of(target)
    return None if signature is None else bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(root: Any, target: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
                     normalize_to_only_use_kwargs: bool = False) -> ArgsKwargsPair | None:
    """Return the arguments of a layer's `forward` in the order of its signature, with defaults; None if they do not
    fit. RuntimeError if the root has no layer of this name."""
    try:
        layer = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(f"Tried to normalize node with target {target} but root did not have that "
                           f"target!") from error
    signature = signature_of(layer.forward)
    return None if signature is None else bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def create_type_hint(x: Any) -> Any:
    """Return the annotation of a nested list or tuple of types: `list[int]` for [int, int].

    A UserWarning, and the argument itself, if it contains other values.

    >>> create_type_hint([int, int]), create_type_hint((int, str)), create_type_hint([])
    (list[int], tuple[typing.Any, ...], list[typing.Any])
    """
    if not isinstance(x, (list, tuple)):
        return x
    parts = [create_type_hint(part) for part in x]
    if not all(isinstance(part, type) or get_origin(part) for part in parts):
        warnings.warn(f"We were not able to successfully create type hint from the type {x}", stacklevel=2)
        return x

    def covers(kind: Any) -> bool:
        return all(kind is other or isinstance(kind, type) and isinstance(other, type) and issubclass(other, kind)
                   for other in parts)
    inner: Any = next(filter(covers, parts), Any)
    return list[inner] if isinstance(x, list) else tuple[inner, ...]


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Return True if values of a type may be given where a signature has another.

    >>> type_matches(float, int), type_matches(int, str), type_matches(list[int], list[int])
    (True, False, True)
    """
    if signature_type is argument_type or signature_type is Any:
        return True
    origin = get_origin(signature_type)
    if origin is Union:
        return any(type_matches(kind, argument_type) for kind in get_args(signature_type))
    if origin is list and get_origin(argument_type) in (list, tuple):
        (inner,) = get_args(signature_type)
        return all(part is ... or type_matches(inner, part) for part in get_args(argument_type))
    if signature_type is float and argument_type is int:
        return True
    return (isinstance(signature_type, type) and isinstance(argument_type, type)
            and issubclass(argument_type, signature_type))


__all__ = ["ArgsKwargsPair", "bound", "create_type_hint", "normalize_function", "normalize_module", "type_matches"]
