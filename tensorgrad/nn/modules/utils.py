"""Helpers of layers: sizes as tuples, settings as attributes, parameters by shape, text between brackets."""
from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from inspect import Parameter as Argument
from inspect import Signature
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ... import api as tg
from .. import init
from ..parameter import Parameter
from .module import Module

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["consume_prefix_in_state_dict_if_present"]


# ── sizes ─────────────────────────────────────────────────────────────────────────────────────
def _ntuple(n):
    """Return a function that repeats a number `n` times, and turns a sequence into a tuple."""
    return lambda size: tuple(size) if isinstance(size, Iterable) else (size,) * n


_single, _pair, _triple, _quadruple = map(_ntuple, (1, 2, 3, 4))


def _reverse_repeat_tuple(sizes, times):
    """(1, 2) -> (2, 2, 1, 1): padding per axis as `F.pad` takes it, last axis first, each side."""
    return tuple(size for size in reversed(sizes) for _ in range(times))


def _list_with_default(out_size, defaults):
    """Return the sizes, None replaced by the input's."""
    if isinstance(out_size, (int, tg.Size)):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [default if size is None else size for size, default in zip(out_size, defaults[-len(out_size):])]


def check_dims(input: Tensor, allowed: Any) -> None:
    if input.dim() not in allowed:
        wanted = " or ".join(f"{n}D" for n in allowed)
        raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")


# ── constructors ──────────────────────────────────────────────────────────────────────────────
DEPRECATED = {"size_average", "reduce", "min_value", "max_value"}  # deprecated names of arguments


@lru_cache(typed=True)
def argument(name: str, kind: Any = Argument.POSITIONAL_OR_KEYWORD, default: Any = Argument.empty) -> Any:
    """Return a parameter of a signature; cached, because layers share most of them."""
    return Argument(name, kind, default=default)


class settings:
    """`__init__ = settings("size", alpha=1e-4)`: a constructor that hands its arguments, by name, to `_keep`.

    Names without a default come first; a "*" after them makes those with a default keyword-only.
    """

    def __init__(self, *required: Any, **defaults: Any) -> None:
        positional, keyword = Argument.POSITIONAL_OR_KEYWORD, Argument.KEYWORD_ONLY
        self.names = [name for name in (*required, *defaults) if name != "*"]
        self.signature = Signature([
            argument("self", Argument.POSITIONAL_ONLY),
            *(argument(name) for name in required if name != "*"),
            *(argument(name, keyword if "*" in required else positional, v) for name, v in defaults.items()),
        ])

    def __set_name__(self, owner: Any, name: str) -> None:
        signature = self.signature

        def __init__(self, /, *args, **kwargs):
            try:
                bound = signature.bind(self, *args, **kwargs)
            except TypeError:
                call_like_python(type(self) if owner.__name__.startswith("_") else owner, signature, self, args, kwargs)
                raise
            bound.apply_defaults()
            Module.__init__(self)
            del bound.arguments["self"]
            self._keep(**bound.arguments)

        __init__.__signature__ = signature
        __init__.__qualname__ = f"{owner.__qualname__}.__init__"
        owner.__init__ = __init__
        if "__constants__" not in vars(owner):
            owner.__constants__ = [name for name in self.names if name not in DEPRECATED]


def call_like_python(owner: Any, signature: Any, self: Any, args: Any, kwargs: Any) -> None:
    """Call an empty function of this signature, to raise Python's own TypeError for wrong arguments."""
    marks = [f"{p.name}{'' if p.default is p.empty else '=None'}" for p in signature.parameters.values()]
    keyword_only = [p.kind is p.KEYWORD_ONLY for p in signature.parameters.values()]
    if any(keyword_only):
        marks.insert(keyword_only.index(True), "*")
    names = {}
    exec(f"def __init__({', '.join(marks)}): pass", names)
    names["__init__"].__qualname__ = f"{owner.__name__}.__init__"
    names["__init__"](self, *args, **kwargs)


class Functional(Module):
    """A module that calls a function with its settings."""

    __constants__: list[str] = []

    def _keep(self, **values):
        for name, value in values.items():
            setattr(self, name, value)

    def extra_repr(self) -> str:
        return named(self, *(name for name in self.__constants__ if name != "inplace" or self.inplace))


class PerDimension:
    """A family that differs in the number of spatial dimensions only.

    `class Conv2d(_Conv, dims=2)` gets `_dims` and a docstring, made from the family's `_doc`: there `{cls}` is
    the class, `{name}` its name, `{n}` the number, `{axes}` the axes, and `{each:9}` says "9" for each of them.
    """

    _dims: int
    _doc: str

    def __init_subclass__(cls, dims: Any = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if dims is not None:
            cls._dims = dims
            # so that errors in calls name the class
            if isinstance(cls.__init__, FunctionType) and cls.__init__.__qualname__.startswith("_"):
                cls.__init__ = renamed(cls.__init__, f"{cls.__name__}.__init__")
            axes = ("L", "H, W", "D, H, W")[dims - 1]
            cls.__doc__ = cls._doc.format(cls=cls, name=cls.__name__, n=dims, axes=axes, each=_ForEach(dims))


def renamed(function: Any, name: str) -> Any:
    """Return a copy of a function under another `__qualname__`."""
    twin = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__,
                        function.__closure__)
    twin.__kwdefaults__, twin.__qualname__, twin.__doc__ = function.__kwdefaults__, name, function.__doc__
    vars(twin).update(vars(function))
    return twin


class _ForEach(int):
    def __format__(self, what: Any) -> Any:
        return ", ".join([what] * self)


# ── parameters ────────────────────────────────────────────────────────────────────────────────
def declare(module: Module, device: Any, dtype: Any, **shapes: Any) -> None:
    """Register uninitialized parameters in this order; a shape of None registers the name without a parameter."""
    for name, shape in shapes.items():
        value = None if shape is None else Parameter(tg.empty(shape, device=device, dtype=dtype))
        module.register_parameter(name, value)


def reset_by_fan_in(weight: Any, bias: Any) -> None:
    """Draw weight and bias uniformly from ±1/sqrt(fan_in), fan_in being the number of weights per output."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in = init._calculate_fan_in_and_fan_out(weight)[0]
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


# ── printing ──────────────────────────────────────────────────────────────────────────────────
def named(module: Module, *names: Any) -> Any:
    """`alpha=1.0, beta=2`: settings by name."""
    return ", ".join(f"{name}={getattr(module, name)}" for name in names)


def changed(module: Module, **defaults: Any) -> Any:
    """`, stride=2`: those settings that are not at their defaults, each after a comma."""
    return "".join(f", {name}={getattr(module, name)}" for name, value in defaults.items()
                   if getattr(module, name) != value)


# ── state ─────────────────────────────────────────────────────────────────────────────────────
def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take `prefix` off the names in a state_dict, in place: `module.` where a parallel wrapper has saved it.

    >>> from tensorgrad.nn.modules.utils import consume_prefix_in_state_dict_if_present
    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'bias': 2, 'weight': 1}
    """
    for name in [name for name in state_dict if name.startswith(prefix)]:
        state_dict[name.removeprefix(prefix)] = state_dict.pop(name)
    versions = getattr(state_dict, "_metadata", {})
    for name in [name for name in versions if name and (name.startswith(prefix) or name == prefix.rstrip("."))]:
        versions[name[len(prefix):]] = versions.pop(name)
