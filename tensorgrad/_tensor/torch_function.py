"""`__torch_function__`: how classes of a program's own answer for the functions of this package.

https://pytorch.org/docs → Extending PyTorch

Plain tensors pay nothing for it. Functions of the namespaces pass through `overridable`; Tensor's methods, operators
and properties do not, until a
class that overrides them, or a mode, is first seen: then `arm` puts forms of them in place that ask.
"""
from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from ..core.dispatch import PLAIN
from ..core.fast_path import FUNCTIONS
from ..runtime.numpy_state import outside
from ..storage.out_of_memory import beyond, check_error
from .usual_types import odd, usual


class State(threading.local):
    """The overrides that are active in this thread: classes of arguments, and modes, the innermost last."""

    classes = True
    disabled = False        # True inside of `DisableTorchFunction`
    skips = False           # True if the next function of a program's own is to answer itself
    modes: tuple[Any, ...] = ()


state = State()
ASKING: list[Any] = []      # not empty if functions ask for overrides before they run
ARMED: list[Any] = []       # [Tensor], once something overrides its methods: these ask, too
LASTING: list[bool] = []    # not empty if ARMED is to last until the program ends
# classes of placeholders for values: modules and functions that are called with one become part of the graph being
#     built
NODES: set[type] = set()
# NODES, other classes whose functions are asked for before they run, and the classes of containers that may hold one
CONTAINERS: set[type] = set()
PASSING: set[type] = set()          # the classes that `forget_passing` removes

PACKAGE = __name__.partition(".")[0]
FUNCTIONAL = f"{PACKAGE}.nn.functional"
# Attributes that are never overridden: those that make and inspect objects.
NEVER = frozenset("__class__ __class_getitem__ __delattr__ __dict__ __dir__ __doc__ __getattribute__ __hash__ __init__ "
                  "__init_subclass__ __iter__ __module__ __new__ __setattr__ __slots__ __subclasshook__ "
                  "__torch_function__ _make_subclass as_subclass".split())
# Others that PyTorch's lists of overridable functions leave out.
UNLISTED = NEVER.union("new new_empty new_empty_strided new_full new_ones new_tensor new_zeros stride "
                       "unflatten".split())
# Operators that PyTorch names after their method.
METHODS = {f"__{sign}__": name for sign, name in (
    ("add", "add"), ("radd", "add"), ("iadd", "add_"), ("sub", "sub"), ("isub", "sub_"), ("mul", "mul"),
    ("rmul", "mul"), ("imul", "mul_"), ("truediv", "div"), ("itruediv", "div_"), ("ifloordiv", "floor_divide_"),
    ("mod", "remainder"), ("imod", "remainder_"), ("matmul", "matmul"), ("ne", "ne"), ("lt", "lt"), ("le", "le"),
    ("gt", "gt"), ("ge", "ge"), ("rand", "bitwise_and"), ("ror", "bitwise_or"), ("rxor", "bitwise_xor"), ("neg", "neg"),
    ("pos", "positive"),
    ("abs", "abs"), ("div", "div"), ("idiv", "div_"), ("rdiv", "__rtruediv__"))}
METHODS.update(nelement="numel", ndimension="dim")
BINARY = frozenset(f"__{r}{sign}__" for sign in "add sub mul truediv floordiv mod pow matmul and or xor lshift "
                                                "rshift".split() for r in ("", "r", "i"))
OPERATORS = BINARY | {f"__{sign}__" for sign in "eq ne lt le gt ge".split()}


class DisableTorchFunctionSubclass:
    """A `with` block in which overrides of classes are off."""

    def __enter__(self) -> None:
        self.before, state.classes = state.classes, False

    def __exit__(self, *exception: object) -> None:
        state.classes = self.before


class DisableTorchFunction:
    """A `with` block in which overrides of classes and modes are off."""

    def __enter__(self) -> None:
        self.before = state.classes, state.modes, state.disabled
        state.classes, state.modes, state.disabled = False, (), True

    def __exit__(self, *exception: object) -> None:
        state.classes, state.modes, state.disabled = self.before


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The `__torch_function__` of subclasses of Tensor that are treated as Tensor itself."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def overriding(args: Any) -> list[Any]:
    """Return one argument per class that overrides functions: from left to right, subclasses before their bases."""
    found: list[Any] = []
    for a in args:
        kind = type(a)
        if kind in PLAIN or kind in ORDINARY:
            continue
        if kind is tuple or kind is list:
            for inner in overriding(a):
                _place(found, inner)
        elif getattr(kind, "__torch_function__", disabled) is not disabled:
            _place(found, a)
    return found


ORDINARY = {int, float, bool, str, complex, type(None)}


def answer_of_method(name: str, args: Any, kwargs: Any) -> Any:
    """Ask the overriding classes among the arguments for a method that failed; NotImplemented if none answers."""
    found = overriding((*args, *kwargs.values())) if state.classes and not ARMED else []
    if not found:
        return NotImplemented
    from ..core import dispatch
    return asked(getattr(dispatch.Tensor, name), found, args, kwargs)


def node_among(args: Any, kwargs: Any) -> Any:
    """Return the first graph node among the arguments, or in lists, tuples and dicts among them; None if there is
    none.
    """
    waiting, seen = [*args, *kwargs.values()], set()
    for value in waiting:
        kind = type(value)
        if kind in NODES:
            return value
        if kind in CONTAINERS and id(value) not in seen:        # containers may be cyclic
            seen.add(id(value))
            waiting += value.values() if kind is dict else value
    return None


def watch_for(kind: type, modules: bool = True, lasting: bool = True) -> None:
    """From now on functions, and modules unless `modules` is false, that are called with an instance of this class hand
    the call to it: until `forget_passing`, unless it is lasting.
    """
    if not CONTAINERS:
        ASKING.append(list)
        CONTAINERS.update((list, tuple, dict))
    if modules:
        NODES.add(kind)
    if not lasting:
        PASSING.add(kind)
    CONTAINERS.add(kind)


def forget_passing() -> None:
    """End the watch for the classes that are not lasting."""
    CONTAINERS.difference_update(PASSING)
    PASSING.clear()
    if len(CONTAINERS) == 3:            # list, tuple, dict
        CONTAINERS.clear()
        ASKING.remove(list)


def _place(found: list[Any], value: Any) -> None:
    kind = type(value)
    if all(type(other) is not kind for other in found):
        place = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(place, value)


def ask(function: Any, found: list[Any], args: Any, kwargs: Any) -> Any:
    """Call the innermost mode, or else each overriding class in turn, until the result is not NotImplemented."""
    types = tuple(type(a) for a in found)
    if modes := state.modes:
        override = modes[-1].__torch_function__
        if isinstance(getattr(override, "__self__", None), type):
            raise RuntimeError("Defining your mode's `__torch_function__` as a classmethod is not supported, please "
                               "make it a plain method")
        state.modes = modes[:-1]
        try:
            answer = outside(override, function, types, args, kwargs)
        finally:
            state.modes = modes
        if answer is not NotImplemented:
            return answer
    for value in found:
        override = value.__torch_function__
        if getattr(override, "__self__", None) is value:
            name, kind = ("`__torch_function__", DeprecationWarning) if function.__module__ == FUNCTIONAL else (
                "`__torch_function__`", UserWarning)
            warnings.warn(f"Defining your {name} as a plain method is deprecated and will be an error in future, "
                          "please define it as a classmethod.", kind, stacklevel=4)
        answer = outside(override, function, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    return NotImplemented


def asked(function: Any, found: list[Any], args: Any, kwargs: Any) -> Any:
    """Call `ask`; raise PyTorch's TypeError if no override answers."""
    answer = ask(function, found, args, kwargs)
    if answer is NotImplemented:
        refusals = ([f"  - mode object {mode!r}" for mode in state.modes[-1:]]
                    + [f"  - tensor subclass {type(a)!r}" for a in found])
        module = (function.__module__ or "").partition(".")[2]
        name = (f"Tensor.{function.__name__}" if module.startswith(("api", "_tensor"))
                else ".".join(filter(None, (module, function.__name__))))
        raise TypeError(f"Multiple dispatch failed for 'torch.{name}'; all __torch_function__ handlers returned "
                        f"NotImplemented:\n\n" + "\n".join(refusals))
    return answer


# Functions of objects of any class, which modes override, but classes do not.
OF_ANYTHING = frozenset("as_tensor asarray from_dlpack from_numpy frombuffer is_storage is_tensor save tensor "
                        "typename".split())


PREFIXED = frozenset(("fft", "linalg", "special"))
# Functions of the root package that PyTorch has, as objects, in its module `torch.functional`.
OF_FUNCTIONAL = frozenset("atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors "
                          "cartesian_prod cdist chain_matmul einsum lu meshgrid norm split stft tensordot unique "
                          "unique_consecutive unravel_index".split())
HOMES = {**dict.fromkeys(OF_FUNCTIONAL, "functional"), "lobpcg": "_lobpcg",
         **dict.fromkeys(("pca_lowrank", "svd_lowrank"), "_lowrank")}


def overridable(function: Any, namespace: str, name: str) -> Any:
    """Wrap a function of a namespace so that overrides of its arguments' classes, and modes, are called.

Overrides of a class that is no subclass of Tensor are called once the plain function has failed with it.
    """
    classes = name not in OF_ANYTHING
    bare = getattr(function, "bare", function)      # calls without keywords skip the wrapper
    first: Any = None           # looked up at the first call, with what follows
    positions: Any = None
    named: Any = None

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal first, positions, named
        if first is None:
            first, positions, named = usual(function)
        if ASKING and (ARMED or kwargs or not CONTAINERS.isdisjoint(map(type, args))):
            found = overriding((*args, *kwargs.values())) if classes and state.classes else []
            if found or state.modes:
                if not ARMED and not all(type(a) in CONTAINERS for a in found):
                    arm()
                return asked(call, found, args, kwargs)
        try:
            if (kwargs or len(args) > first) and odd(args, kwargs, positions, named) and (
                    better := instead(None, function, namespace, name, args, kwargs)):
                return better.result()
            return function(*args, **kwargs) if kwargs else bare(*args)
        except Exception as error:
            found = overriding((*args, *kwargs.values())) if classes and state.classes and not ARMED else []
            if not found:
                better = instead(error, function, namespace, name, args, kwargs)
                if better is None:
                    raise
                return better.result()
        arm()
        return asked(call, found, args, kwargs)
    prefix = namespace.rpartition(".")[2]           # PyTorch's own name of torch.linalg.inv is linalg_inv
    home = f"{namespace}.{HOMES[name]}" if namespace == PACKAGE and name in HOMES else namespace
    call.__module__, call.__qualname__, call.__doc__ = home, name, function.__doc__
    call.__name__ = f"{prefix}_{name}" if prefix in PREFIXED else name
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


PARSER: list[Callable[..., Any]] = []       # of PyTorch's signatures: the API registers it


class Answer(NamedTuple):
    """The result of a call whose arguments are read as PyTorch reads them, or PyTorch's error for them."""

    value: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error from None
        return self.value


def instead(error: Exception | None, function: Any, namespace: str | None, name: str, args: Any,
            kwargs: Any) -> Answer | None:
    """Return the answer that replaces an error where PyTorch's differs; None to keep the error.

    error: None for arguments of an unusual type, which may still be right
    namespace: None for a method; overriding classes among its arguments are asked first
    """
    if not beyond(error) and check_error(error, name):
        return None
    if namespace is None and error is not None:
        answer = answer_of_method(name, args, kwargs)
        if answer is not NotImplemented:
            return Answer(answer)
    better: Answer | None = PARSER[0](error, function, namespace, name, args, kwargs)
    if better is None:
        check_error(error, name)
    return better


PUBLIC: dict[str, Any] = {}         # the root package's functions, for modules that overrides are to see call them


def namespaced(functions: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The functions of a namespace in the form that asks; classes and other values as they are."""
    found = {name: overridable(value, namespace, name) if type(value) is FunctionType else value
             for name, value in functions.items()}
    if "." not in namespace:
        PUBLIC.update(found)
    return found


# ── methods ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class AskingProperty(property):
    """A property of Tensor that classes may override: they get `Tensor.shape.__get__` as the function."""

    __name__: str
    __qualname__: str

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        found = _found((instance,), {})
        return super().__get__(instance, owner) if found is None else asked(self.__get__, found, (instance,), {})

    def __set__(self, instance: Any, value: Any) -> None:
        found = _found((instance, value), {})
        if found is None:
            super().__set__(instance, value)
        else:
            asked(self.__set__, found, (instance, value), {})


def _found(args: Any, kwargs: Any) -> list[Any] | None:
    """Return the overriding arguments; None if there is neither one nor a mode."""
    found = overriding((*args, *kwargs.values()) if kwargs else args) if state.classes else []
    return found if found or state.modes else None


class AskingMethod:
    """A method of Tensor that classes may override.

    The method equals the plain one, which programs may have looked up before, but no alias of another name.
    """

    def __init__(self, method: Any, name: str, owner: Any) -> None:
        self.__wrapped__, self._owner = method, owner
        self.__module__, self.__name__, self.__qualname__, self.__doc__ = (method.__module__, name, f"Tensor.{name}",
                                                                           method.__doc__)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found, name = _found(args, kwargs), self.__name__
        if found is None:
            return self.__wrapped__(*args, **kwargs)
        function = getattr(self._owner, METHODS.get(name, name))
        if name not in OPERATORS:
            return asked(function, found, args, kwargs)
        try:
            return (ask if name in BINARY else asked)(function, found, args, kwargs)
        except TypeError:       # the other operand may know how
            return NotImplemented

    def __eq__(self, other: Any) -> bool:
        if type(other) is AskingMethod and self.__name__ != other.__name__:
            return False
        return self.__wrapped__ is getattr(other, "__wrapped__", other) or self.__wrapped__ is other

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __reduce__(self) -> str:
        return self.__qualname__


def arm(lasting: bool = True) -> None:
    """From now on Tensor's methods ask the classes of their arguments, and the modes."""
    if lasting and not LASTING:
        LASTING.append(True)
    if ARMED:
        return
    from ..core import dispatch
    Tensor = dispatch.Tensor
    ARMED.append(Tensor)
    ASKING.append(Tensor)
    for name, value in list(vars(Tensor).items()):
        if name in NEVER:
            continue
        if type(value) is property and _is_ours(value.fget):
            asking = AskingProperty(value.fget, value.fset, value.fdel, value.__doc__)
            asking.__name__, asking.__qualname__ = name, f"TensorBase.{name}"
            setattr(Tensor, name, asking)
        elif type(value) in FUNCTIONS and _is_ours(value):
            setattr(Tensor, name, AskingMethod(value, name, Tensor))


def _is_ours(function: Any) -> bool:
    """Return False for a function that a program put on Tensor: it runs as it is, and what it calls asks."""
    if type(function) is not FunctionType:
        return type(function) in FUNCTIONS
    module = function.__globals__["__name__"]       # __module__ may be copied from the function that it calls
    return module.partition(".")[0] == PACKAGE and module != __name__


@contextmanager
def armed() -> Iterator[None]:
    """Let Tensor's methods call overrides inside a `with` block; afterwards only if another class overrides them."""
    arm(lasting=False)
    try:
        yield
    finally:
        if ARMED and not LASTING:
            Tensor = ARMED.pop()
            ASKING.remove(Tensor)
            for name, value in list(vars(Tensor).items()):
                if type(value) is AskingProperty:
                    setattr(Tensor, name, property(value.fget, value.fset, value.fdel, value.__doc__))
                elif type(value) is AskingMethod:
                    setattr(Tensor, name, value.__wrapped__)


# ── the default override of Tensor's subclasses ───────────────────────────────────────────────────────────────────────


def answer(cls: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Run the function without overrides, and make Tensors among its results instances of the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    Tensor = ARMED[0] if ARMED else cls
    return result if func in (Tensor._base.__get__, Tensor.grad.__get__) else _converted(result, cls, Tensor)


def _converted(result: Any, cls: Any, Tensor: Any) -> Any:
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts = [_converted(part, cls, Tensor) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result
