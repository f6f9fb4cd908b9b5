"""PyTorch's argument parser, for calls that have failed: its error for the arguments, or another way to read them.

Functions do not check in advance; nothing here runs until one of them raises. Then the call is compared with the
signatures in `_signatures`, by PyTorch's rules: if it fits none of them, the error is PyTorch's TypeError; if it fits
one, and only Python could not bind it (a deprecated order of arguments, numbers in place of a list), the function is
called again with the arguments in its order.
"""
from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from .._tensor.torch_function import Answer
from ..core.casting import result_type
from ..core.dispatch import SCALAR_TYPES, fresh
from ..core.tape import TensorBase
from ..device import device
from ..dtype import can_cast, dtype, layout, memory_format
from ..generator import Generator
from ..size import shape_together, whole
from ..storage.base import NoValues, backend_of
from ._arguments import typename, warn
from ._nested import array_of
from ._signatures import ALIASES, COMPILED, EXPECTED, PREFIXES, Parameter, Signature, handed_on, signatures

SYNONYMS = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
OF_NUMBERS = frozenset("add sub mul div".split())      # take two numbers, and return a tensor of the result
UNCAST = frozenset("""ge_ greater_ greater_equal_ gt_ le_ less_ less_equal_ lt_ bernoulli_ cauchy_ celu_ cumprod_
    cumsum_ elu_ exponential_ geometric_
    leaky_relu_ lerp_ log_normal_ normal_ random_ rrelu_ selu_ threshold_
    uniform_""".split())    # methods that write in place, their kernel looked for first


# ── checks of one argument ────────────────────────────────────────────────────────────────────────────────────────────


def _scalar_tensor(value: Any, kinds: str) -> bool:
    return (isinstance(value, TensorBase) and not value.array.ndim and value.array.dtype.kind in kinds
            and not value.requires_grad)  # type: ignore[attr-defined]


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) or _scalar_tensor(value, "iu")


def _is_index(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    try:
        whole(value)
    except Exception:
        return False
    return not isinstance(value, np.ndarray) or not value.ndim


def _is_float(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) or _scalar_tensor(value, "biufVc")


def _is_number(value: Any) -> bool:
    return isinstance(value, complex) or _is_float(value)


CHECKS: dict[str, Any] = {
    "Tensor": lambda v: isinstance(v, TensorBase),
    "Number": _is_number,
    "int": _is_int,
    "Index": _is_index,
    "Operand": lambda v: isinstance(v, TensorBase) or _is_number(v),
    "float": _is_float,
    "Probability": _is_float,
    "bool": lambda v: isinstance(v, bool),
    "str": lambda v: isinstance(v, (str, bytes)),
    "Dtype": lambda v: isinstance(v, dtype) or any(v is t for t in (float, int, bool, complex)),
    "Device": lambda v: isinstance(v, (str, bytes, device)) or _is_int(v) and not isinstance(v, TensorBase),
    "Generator": lambda v: isinstance(v, Generator),
    "Layout": lambda v: isinstance(v, layout),
    "MemoryFormat": lambda v: isinstance(v, memory_format),
    "Storage": lambda v: hasattr(v, "_as_tensor"),
    "object": lambda v: True,
}
ELEMENTS: dict[str, Any] = {**dict.fromkeys(("Ints", "Ints1", "Sizes", "Pair"), _is_index),
                            "Floats": lambda v: isinstance(v, (int, float, np.number)),
                            "Numbers": lambda v: _is_number(v) and not isinstance(v, TensorBase)}


def _fits(parameter: Parameter, value: Any) -> tuple[bool, int]:
    """Check a value against a parameter: (True, -1), or (False, the position of the first bad element, or -1)."""
    if isinstance(value, (tuple, list)):
        if parameter.kind == "Tensors":
            for place, element in enumerate(value):
                if not isinstance(element, TensorBase):
                    raise _NoTensor(place, element)
            return True, -1
        if parameter.kind == "Indices":
            return all(v is None or isinstance(v, TensorBase) for v in value), -1
        if parameter.kind in ELEMENTS:
            return (True, -1) if not value or ELEMENTS[parameter.kind](value[0]) else (False, 0)
    if parameter.kind in ELEMENTS:
        return parameter.kind in ("Ints1", "Sizes", "Pair") and _is_index(value), -1
    if parameter.kind.startswith("."):
        return True, -1
    check = CHECKS.get(parameter.kind)
    return value is not None and check is not None and bool(check(value)) or parameter.kind == "object", -1


class _NoTensor(Exception):
    """A list of tensors holds something else: refused on the spot, whichever signature is tried."""


# ── one signature ─────────────────────────────────────────────────────────────────────────────────────────────────────


def bind(signature: Signature, name: str, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments by parameter; PyTorch's TypeError if they do not fit."""
    if len(args) > signature.positional and not (signature.variadic and _is_index(args[0])):
        raise _too_many(signature, name, args)
    bound: dict[str, Any] = {}
    place, left = 0, len(kwargs)
    for position, p in enumerate(signature.parameters):
        named = place >= len(args)
        if not named and p.keyword_only:
            raise _too_many(signature, name, args)
        spelled = next((n for n in (p.name, *SYNONYMS.get(p.name, ())) if n in kwargs), None) if named else None
        given = not named or spelled is not None
        value = None if not given else args[place] if not named else kwargs[spelled]
        if not given:
            if p.default is None:
                raise _missing(signature, name, position)
            continue
        if value is None and p.nullable:
            bound[p.name] = value
        else:
            fits, element = _fits(p, value)
            if not fits and signature.variadic and not named and _is_index(value):
                bound[p.name], place = args, len(args)
                continue
            if not fits:
                raise _refused(p, name, value, element, None if named else place + 1)
            bound[p.name] = value
        if named:
            left -= 1
        else:
            place += 1
    if place < len(args):
        raise _too_many(signature, name, args)
    if left:
        raise _unknown(signature, name, kwargs, len(args))
    return bound


def _too_many(signature: Signature, name: str, args: Any) -> TypeError:
    least, most, n = signature.required, signature.positional, len(args)
    takes = (f"from {least} to {most} positional arguments" if least != most
             else f"{most} positional argument{'' if most == 1 else 's'}")
    return TypeError(f"{name}() takes {takes} but {n} {'was' if n == 1 else 'were'} given")


def _missing(signature: Signature, name: str, position: int) -> TypeError:
    names = [f'"{p.name}"' for p in signature.parameters[position:] if p.default is None]
    return TypeError(f"{name}() missing {len(names)} required positional argument{'s' if len(names) == 1 else ''}: "
                     f"{', '.join(names)}")


def _refused(p: Parameter, name: str, value: Any, element: int, position: int | None) -> TypeError:
    where = "" if position is None else f" (position {position})"
    got = (f"not {typename(value)}" if element < 0 or position is None
           else f"but found element of type {typename(value[element])} at pos {element}")
    return TypeError(f"{name}(): argument '{p.name}'{where} must be {EXPECTED.get(p.kind, p.kind)}, {got}")


def _unknown(signature: Signature, name: str, kwargs: Any, positional: int) -> TypeError:
    places = {p.name: i for i, p in enumerate(signature.parameters)}
    for key in kwargs:
        if key not in places:
            return TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        if places[key] < positional:
            return TypeError(f"{name}() got multiple values for argument '{key}'")
    return TypeError("invalid keyword arguments")


# ── several ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def parse(known: tuple[Signature, ...], name: str, args: Any, kwargs: Any) -> tuple[Signature, dict[str, Any]]:
    """The first signature that the arguments fit, and they by parameter; PyTorch's TypeError if they fit none."""
    try:
        if len(known) == 1:
            return known[0], bind(known[0], name, args, kwargs)
        for signature in known:
            try:
                return signature, bind(signature, name, args, kwargs)
            except TypeError:
                pass
        shown = [s for s in known if not s.hidden]
        plausible = [s for s in shown if s.required <= len(args) + len(kwargs) <= len(s.parameters)]
        if len(plausible) == 1:
            bind(plausible[0], name, args, kwargs)
    except _NoTensor as refusal:
        place, element = refusal.args
        raise TypeError(f"expected Tensor as element {place} in argument {_place_of_list(args)}, but got "
                        f"{typename(element)}") from None
    raise TypeError(f"{name}() received an invalid combination of arguments - {_combination(shown, args, kwargs)}")


def _later_element(signature: Signature, bound: dict[str, Any], name: str) -> TypeError | None:
    """Return the error for a bad element after the first in a list of integers.

    PyTorch selects the signature by the first element alone. Later elements may be bools.
    """
    kinds = {p.name: p.kind for p in signature.parameters}
    for argument, value in bound.items():
        if isinstance(value, (tuple, list)) and kinds[argument] in ("Ints", "Ints1", "Sizes"):
            for place, element in enumerate(value, 1):
                if type(element) is int and not -1 << 63 <= element < 1 << 63:
                    return TypeError(f"{name}(): argument '{argument}' failed to unpack the object at pos {place} with "
                                     f"error "
                                     '"Overflow when unpacking long long')
                if not isinstance(element, (bool, np.bool_)) and not _is_index(element):
                    return TypeError(f"{name}(): argument '{argument}' failed to unpack the object at pos {place} with "
                                     f"error "
                                     f'"type must be tuple of ints,but got {typename(element)}"')
    return None


def _unfit(signature: Signature, bound: dict[str, Any], name: str) -> Exception | None:
    """Return the error for a value of the right kind that exceeds 64 bits, or whose elements are bad."""
    if (later := _later_element(signature, bound, name)) is not None:
        return later
    whole = (bound.get(p.name) for p in signature.parameters if p.kind in ("int", "Index", "Ints", "Ints1", "Sizes"))
    if any(type(v) is int and not -1 << 63 <= v < 1 << 63 for v in whole):
        return ValueError("Overflow when unpacking long long")
    return None


def _place_of_list(args: Any) -> int:
    return next((i for i, a in enumerate(args) if isinstance(a, (tuple, list))), 0)


def _combination(shown: list[Signature], args: Any, kwargs: Any) -> str:
    words = [typename(a) for a in args]
    named = [f"{k}={typename(v)}" for k, v in reversed(kwargs.items())]
    got = ", ".join(words + named) + ("" if words or not named else ", ")
    if len(shown) > 1:
        return f"got ({got}), but expected one of:\n" + "".join(f" * {s}\n" for s in shown)
    plain = {p.name for p in shown[0].parameters[-len(kwargs):] if p.default is None}
    if unknown := [k for k in reversed(kwargs) if k not in plain]:
        return f"got unrecognized keyword arguments: {', '.join(unknown)}"
    return f"got ({got}), but expected {shown[0]}"


# ── after a failure ───────────────────────────────────────────────────────────────────────────────────────────────────


def answer(error: Exception | None, function: Any, namespace: str | None, name: str, args: Any,
           kwargs: Any) -> Answer | None:
    """Return the result or error that replaces the error of a function, or of a method if `namespace` is None."""
    if isinstance(error, NoValues):
        return None
    # an uninitialized parameter refuses, before anything else does
    _ = [value.array for value in (*args, *kwargs.values()) if isinstance(value, TensorBase)]
    if namespace is None:
        return _answer_of_method(error, function, name, args, kwargs)
    return _answer_of_function(error, function, namespace, name, args, kwargs)


def _answer_of_function(error: Exception | None, function: Any, namespace: str, name: str, args: Any,
                        kwargs: Any) -> Answer | None:
    inner = namespace.partition(".")[2]
    name = name if inner else ALIASES.get(name, name)
    if not inner and name in OF_NUMBERS and len(args) > 1 and all(
            a.__class__ in (bool, int, float, complex) for a in args[:2]):
        numbers = (fresh(array_of(number, None), backend_of("cpu")) for number in args[:2])
        return Answer(function(*numbers, *args[2:], **kwargs))
    if inner in PREFIXES or inner == "nn.functional" and name in COMPILED:
        known = signatures(full := PREFIXES.get(inner, "") + name)
        if known is not None:
            return _instead(error, function, known, full, args, kwargs)
    return _handed_on(error, function, name, args, kwargs) if inner in ("", "nn.functional") else None


def check_call(name: str, *args: Any) -> None:
    """Raise PyTorch's error for arguments of its compiled function that its Python code would check first."""
    known = signatures(name)
    assert known is not None
    signature, bound = parse(known, name, args, {})
    if (unfit := _unfit(signature, bound, name)) is not None:
        raise unfit


def _handed_on(error: Exception | None, function: Any, name: str, args: Any, kwargs: Any) -> Answer | None:
    """Return the error of the compiled function that PyTorch's Python function calls, if it gets that far."""
    if _comes_first(error) or (inner := handed_on(name, function)) is None:
        return None
    try:
        call = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None
    call.apply_defaults()
    refusal = _inner_refusal(*inner, args, call.arguments)
    unseen = error is None and function.__module__.startswith("tensorgrad.nn.")
    if refusal and unseen and not call.arguments.get("inplace") and not call.arguments.get("training"):
        try:
            function(*args, **kwargs)
        except Exception as own:
            return None if _comes_first(own) else refusal
    return refusal


def _inner_refusal(compiled: str, known: tuple[Signature, ...], sources: dict[str, str], args: Any,
                   arguments: Any) -> Answer | None:
    """Return the error of a compiled function for the arguments of the Python function that calls it."""
    parameters = known[0].parameters
    given = {p.name: arguments.get(sources.get(p.name, p.name)) for p in parameters}
    if parameters[0].name == "tensors" and len(args) == 1 and (len(known) > 1 or isinstance(args[0], (tuple, list))):
        given["tensors"] = args[0]
    try:
        for p in sorted(parameters, key=lambda p: p.kind != "Probability"):
            given[p.name] = _looked_at(p, given[p.name])
        signature, bound = parse(known, compiled, [given[p.name] for p in parameters if not p.keyword_only],
                                 {p.name: given[p.name] for p in parameters if p.keyword_only})
    except _Unlikely:
        return None
    except (AttributeError, TypeError) as refusal:
        return Answer(error=refusal.with_traceback(None))
    unfit = _unfit(signature, bound, compiled)
    return None if unfit is None else Answer(error=unfit)


def _comes_first(error: Exception | None) -> bool:
    """Return True if PyTorch's Python code raises this error before it calls a compiled function."""
    return (isinstance(error, (ValueError, IndexError)) and _frame(error).startswith("tensorgrad.nn.")
            or isinstance(error, RuntimeError) and str(error).startswith("Boolean value of Tensor"))


class _Unlikely(Exception):
    """A probability that is none: PyTorch's Python code says so before it calls anything."""


def _looked_at(p: Parameter, value: Any) -> Any:
    """An argument as PyTorch's Python code hands it on, after a look at it."""
    if p.kind.startswith(".") and not hasattr(value, p.kind[1:]) and not (p.nullable and value is None):
        subject = f"type object '{value.__name__}'" if isinstance(value, type) else f"'{typename(value)}' object"
        raise AttributeError(f"{subject} has no attribute '{p.kind[1:]}'")
    if p.kind == "Probability" and (value < 0 or value > 1):
        raise _Unlikely
    if p.kind == "Sizes" and not isinstance(value, int):
        return [1 if v is None else v for v in value[:len(value)]]      # None means the input's size
    return tuple(value) if p.kind == "Pair" and isinstance(value, Iterable) else value


def _answer_of_method(error: Exception | None, function: Any, name: str, args: Any, kwargs: Any) -> Answer | None:
    if kwargs.get("inplace"):        # PyTorch's signatures have no `inplace`
        return None
    known = signatures(name, True)
    if not args or not isinstance(args[0], TensorBase):
        return None
    if known is None:
        return _handed_on(error, function, name, args, kwargs)
    instance, *rest = args
    if len(known) == 1 and not known[0].parameters and len(args) + len(kwargs) > 1:
        return Answer(error=TypeError(f"TensorBase.{name}() takes no "
                                      + ("keyword arguments" if kwargs else f"arguments ({len(rest)} given)")))
    found = _instead(error, partial(function, instance), known, name, rest, kwargs)
    if found is None and isinstance(error, NotImplementedError) and name.endswith("_") and name not in UNCAST:
        return does_not_fit(instance, [*rest, *kwargs.values()])
    return found


def does_not_fit(instance: Any, others: list[Any]) -> Answer | None:
    """A method that writes in place minds the dtype of its result before it looks for a kernel of that dtype."""
    operands = [o for place, o in enumerate(others) if isinstance(o, TensorBase) or not place and _is_number(o)]
    shapes = [tuple(o.array.shape) for o in (instance, *operands) if isinstance(o, TensorBase)]
    try:
        if (shape := shape_together(*shapes)) != shapes[0]:
            return Answer(error=RuntimeError(f"output with shape {list(shapes[0])} doesn't match the broadcast shape "
                                             f"{list(shape)}"))
    except ValueError:
        return None
    target = result_type(instance, *operands)
    if can_cast(target, instance.dtype):
        return None
    return Answer(error=RuntimeError(f"result type {SCALAR_TYPES[target.name]} can't be cast to the desired output "
                                     f"type {SCALAR_TYPES[instance.dtype.name]}"))


def _instead(error: Exception | None, function: Any, known: Any, name: str, args: Any, kwargs: Any) -> Answer | None:
    try:
        signature, bound = parse(known, name, args := tuple(args), kwargs)
    except TypeError as refusal:
        return Answer(error=refusal.with_traceback(None))
    if (unfit := _unfit(signature, bound, name)) is not None:
        return Answer(error=unfit)
    if not isinstance(error, (TypeError, AttributeError)):
        return None
    if signature.hidden:
        warn(_deprecated(name, signature, known), "deprecated overload")
    plain = {p.name: _plain(p.kind, bound[p.name]) for p in signature.parameters if p.name in bound}
    if not _unbound(error) and all(plain[n] is v and v is not args for n, v in bound.items()):
        return None
    first = tuple(plain.pop(name) for name in ("input", "self") if name in plain)[:1]
    try:
        return Answer(function(*first, **plain))
    except TypeError:
        return None


def _deprecated(name: str, signature: Signature, known: Any) -> str:
    better = "".join(f"\n\t{name}{s}" for s in known if not s.hidden)
    return (f"This overload of {name} is deprecated:\n\t{name}{signature}\nConsider using one of the following "
            f"signatures instead:{better}")


def _plain(kind: str, value: Any) -> Any:
    """An argument as Python's own numbers."""
    if kind in ("Ints", "Ints1") and value is not None:
        if not isinstance(value, (tuple, list)):
            return value if type(value) is int else whole(value)
        return value if all(type(v) is int for v in value) else tuple(map(whole, value))
    if kind == "Index":
        return value if value is None else whole(value)
    if kind in ("int", "float", "Number") and isinstance(value, (TensorBase, np.generic)):
        value = value.item()  # type: ignore[union-attr]
    return value.real if kind in ("float", "Number") and isinstance(value, complex) and not value.imag else value


def _unbound(error: Exception | None) -> bool:
    """Return True if Python could not bind the arguments: the error comes from one of our wrappers."""
    return _frame(error).endswith(("_register", "torch_function", ".inplace", ".step_names"))


def _frame(error: Exception | None) -> str:
    """The module that an error comes from."""
    trace = error.__traceback__ if error is not None else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
