"""A reader of pickles that runs no code: it knows only the opcodes and names that files of tensors need.

A name that is not on the list is refused, and never imported. Only lists are appended to, only dicts get items, and
only OrderedDicts and the program's own classes get a state. Nothing recurses into the file's objects, and time and
memory are at most proportional to its length: keys are small, and few keys collide.
"""
from __future__ import annotations

import pickle
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from .._tensor.states import restore
from ..api import Tensor
from ..nn.parameter import Parameter
from ._allowed import BLOCKED, Name, Passed, Refused, Unlisted, modern, trusting, user_classes
from ._keys import Keys
from ._names import missing
from ._options import own
from ._rebuild import (
    CALLABLE,
    COPYING,
    LEAST_ATTRIBUTE,
    STATEFUL,
    VALUES,
    attributes_of,
    counter,
    new_parameter,
    ordered,
    set_of,
    size_of,
)

MOST_MEMOS = 10_000_000


def unsafe_names(data: bytes) -> list[str]:
    """Return the names in a pickle that are refused."""
    import pickletools
    names: set[tuple[str, str]] = set()
    texts: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "GLOBAL":
                module, _, name = str(argument).partition(" ")
                names.add(modern(module, name))
            elif opcode.name == "STACK_GLOBAL" and len(texts) > 1:
                names.add(modern(texts[-2], texts[-1]))
            elif isinstance(argument, str):
                texts = [*texts[-1:], argument]
    except ValueError as error:
        raise pickle.UnpicklingError(f"the pickle is malformed: {error!s:.200}") from None
    return sorted(".".join(key) for key in names if key not in CALLABLE and key not in VALUES
                  and ".".join(key) not in user_classes)


class RestrictedUnpickler:
    """Reads a pickle from a file. longest: the length of the file; names: allowed names besides those for any file."""

    def __init__(self, file: Any, persistent_load: Callable[[Any], Any], longest: int,
                 names: dict[tuple[str, str], Any] | None = None) -> None:
        self._read, self._readline, self._persistent_load, self._longest, self._names = (file.read, file.readline,
                                                                                         persistent_load, longest,
                                                                                         names or {})
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []       # the stack below each mark
        self._memo: dict[int, Any] = {}
        self._keys = Keys()
        self._encoding = own.encoding
        self._copied = 0

    def load(self) -> Any:
        """Read the object."""
        opcodes = self._opcodes
        try:
            while True:
                code = self._read(1)
                if not code:
                    raise EOFError("Ran out of input")
                if code == b".":
                    return self._stack.pop()
                run = opcodes.get(code)
                if run is None:
                    raise Refused(f"Unsupported operand {code[0]}: this opcode has no place in a file of tensors")
                run(self)
        except (IndexError, struct.error, UnicodeDecodeError, KeyError, OverflowError, RecursionError) as error:
            raise pickle.UnpicklingError(f"the pickle is malformed: {type(error).__name__} {error!s:.200}") from None
        except MemoryError:
            raise pickle.UnpicklingError("the file asks for more memory than there is") from None
        except (TypeError, ValueError) as error:
            if isinstance(error, pickle.UnpicklingError):
                raise
            raise pickle.UnpicklingError(f"the pickle is malformed: {error!s:.200}") from None

    def _bytes(self, n: int) -> bytes:
        if not 0 <= n <= self._longest:
            raise pickle.UnpicklingError("pickle data was truncated")
        data: bytes = self._read(n)
        if len(data) < n:
            raise pickle.UnpicklingError("pickle data was truncated")
        return data

    def _line(self) -> str:
        line: bytes = self._readline()
        if not line.endswith(b"\n"):
            raise pickle.UnpicklingError("pickle data was truncated")
        return line[:-1].decode("utf-8")

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _marked(self) -> list[Any]:
        if not self._below:
            raise pickle.UnpicklingError("could not find MARK")
        items, self._stack = self._stack, self._below.pop()
        return items

    def _mark(self) -> None:
        self._below.append(self._stack)
        self._stack = []

    # names and calls

    def _global(self, module: str, name: str) -> Any:
        key = module, name = modern(module, name)
        full = f"{module}.{name}"
        if module in BLOCKED:
            raise Refused(f"Trying to load unsupported GLOBAL {full:.200} whose module {module} is blocked.")
        if key in CALLABLE:
            return Name(full, CALLABLE[key])
        if key in VALUES:
            return VALUES[key]
        if full in user_classes:
            return user_classes[full]
        if key in self._names:
            return self._names[key]
        if reason := missing(module, name):
            raise Refused(reason)
        full = full.removeprefix("builtins.")[:200]
        said = f"Unsupported global: GLOBAL {full} was not an allowed global by default."
        # do not quote code of the file, which somebody might paste into a program
        if not all(map(str.isidentifier, full.split("."))):
            raise Refused(said)
        raise Unlisted(f"{said} Please use `torch.serialization.add_safe_globals([{full}])` or the "
                       f"`torch.serialization.safe_globals([{full}])` context manager to allowlist this global if you "
                       "trust this class/function.")

    def _reduce(self) -> None:
        arguments = self._stack.pop()
        function = self._stack.pop()
        if type(arguments) is not tuple:
            raise Refused("a call's arguments are a tuple")
        if isinstance(function, Name):
            self._push(self._called(function.function, arguments))
        elif function is Parameter:
            self._push(new_parameter(*arguments))
        elif any(function is allowed for allowed in user_classes.values()):
            self._push(trusting(function, *arguments))
        else:
            raise Refused(f"Trying to execute an unsupported function: {_called(function)}")

    def _called(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """Return the result of a call."""
        if function in COPYING and arguments:
            self._charge(arguments[0])
        recipe, given = function, arguments
        while recipe in STATEFUL and len(given) > 3:        # a recipe may contain another with its own state
            self._charge(given[3], LEAST_ATTRIBUTE)
            inner = isinstance(given[0], Name) and type(given[2]) is tuple
            recipe, given = (given[0].function, given[2]) if inner else (None, ())
        return function(*arguments)

    def _charge(self, copied: Any, nbytes: int = 1) -> None:
        """Refuse a file whose calls copy more than twice its length in all, since it may refer to a text many times.

        nbytes: the least size of an item.
        """
        for part in copied if type(copied) is tuple and len(copied) == 2 else (copied,):
            self._copied += len(part) * nbytes if isinstance(part, (str, bytes, list, tuple, dict)) else 0
        if self._copied > 2 * self._longest:
            raise Refused("it makes more than it holds")

    def _new(self) -> None:
        arguments = self._stack.pop()
        cls = self._stack.pop()
        if isinstance(cls, Name) and cls.function in (ordered, counter, size_of, set_of) and type(arguments) is tuple:
            self._push(self._called(cls.function, arguments))
        elif cls is Parameter and type(arguments) is tuple:
            self._push(new_parameter(*arguments))
        elif any(cls is allowed for allowed in user_classes.values()) and type(arguments) is tuple:
            self._push(trusting(cls.__new__, cls, *arguments))
        else:
            raise Refused(f"Trying to call `__new__` of an unsupported class: {_called(cls)}")

    def _build(self) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        if type(target) is OrderedDict:
            self._charge(state, LEAST_ATTRIBUTE)
            target.__dict__.update(attributes_of(state))
        elif any(type(target) is allowed for allowed in user_classes.values()):
            trusting(restore, target, state)
        elif isinstance(target, Tensor):
            raise Refused("a tensor gets its attributes from the recipe that makes it, and no state after that")
        else:
            raise Refused(f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
                          f"but got {type(target)}")

    # containers

    def _append(self) -> None:
        item = self._stack.pop()
        self._list().append(item)

    def _appends(self) -> None:
        items = self._marked()
        self._list().extend(items)

    def _list(self) -> list[Any]:
        target = self._stack[-1]
        if type(target) is not list:
            raise Refused(f"Can only append to lists, but got {type(target)}")
        return target

    def _setitem(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._dict()[self._keys.checked(key)] = value

    def _setitems(self) -> None:
        items = self._marked()
        target = self._dict()
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[self._keys.checked(key)] = value

    def _dict(self) -> Any:
        target = self._stack[-1]
        if type(target) not in (dict, OrderedDict, Counter):
            raise Refused(f"Can only set items of dicts, but got {type(target)}")
        return target

    def _additems(self) -> None:
        items = self._marked()
        if type(self._stack[-1]) is not set:
            raise Refused("Can only add items to sets")
        self._stack[-1].update(map(self._keys.checked, items))

    # numbers and texts

    def _int(self) -> None:
        text = self._line()
        self._push({"00": False, "01": True}.get(text, None) if text in ("00", "01") else int(text))

    def _long(self, length: int) -> None:
        if not 0 <= length <= 1 << 16:
            raise Refused("an integer is too long")
        self._push(int.from_bytes(self._bytes(length), "little", signed=True))

    def _text(self, length: int) -> None:
        self._push(self._bytes(length).decode("utf-8", "surrogatepass"))

    def _old_text(self, length: int) -> None:
        """Push a text of Python 2, which may be one of bytes."""
        data = self._bytes(length)
        try:
            self._push(data if self._encoding == "bytes" else data.decode(self._encoding))
        except (UnicodeDecodeError, LookupError) as error:
            error.add_note("the file has texts of Python 2: load(..., encoding=\"latin1\") reads any of them, and "
                           "encoding=\"bytes\" keeps their bytes")
            raise Passed(error) from None

    def _memoize(self, index: int) -> None:
        if len(self._memo) > MOST_MEMOS:
            raise Refused("the memo is too long")
        self._memo[index] = self._stack[-1]

    def _persistent(self) -> None:
        self._push(self._persistent_load(self._stack.pop()))

    def _protocol(self) -> None:
        version = self._bytes(1)[0]
        if version not in (2, 3, 4, 5):
            raise Refused(f"unsupported pickle protocol: {version}")

    _opcodes: dict[bytes, Callable[[Any], None]] = {}


def _number(self: Any, layout: str) -> Any:
    return struct.unpack(layout, self._bytes(struct.calcsize(layout)))[0]


def _called(thing: Any) -> str:
    """Return an object's name or type for messages, not its repr, which the file may have made very large."""
    name: str = (thing.name if isinstance(thing, Name) else thing.__qualname__ if isinstance(thing, type)
                 else f"a {type(thing).__name__}")
    return name


def _tuple_of(n: int) -> Callable[[Any], None]:
    def make(self: Any) -> None:
        if len(self._stack) < n:
            raise IndexError("the stack is too short")
        items = tuple(self._stack[-n:])
        del self._stack[-n:]
        self._push(items)
    return make


def _dict_of(self: Any) -> None:
    items = self._marked()
    self._push(dict(zip(map(self._keys.checked, items[::2]), items[1::2], strict=True)))


def _frozen(self: Any) -> None:
    self._push(frozenset(map(self._keys.checked, self._marked())))


def _stack_global(self: Any) -> None:
    name, module = self._stack.pop(), self._stack.pop()
    if type(name) is not str or type(module) is not str:
        raise Refused("a name is a text")
    self._push(self._global(module, name))


def _frame(self: Any) -> None:
    self._bytes(8)


R = RestrictedUnpickler
R._opcodes = {
    b"\x80": R._protocol, b"\x95": _frame, b"(": R._mark, b"0": lambda s: s._stack.pop(), b"1": lambda s: s._marked(),
    b"2": lambda s: s._push(s._stack[-1]),
    b"N": lambda s: s._push(None), b"\x88": lambda s: s._push(True), b"\x89": lambda s: s._push(False),
    b"I": R._int, b"J": lambda s: s._push(_number(s, "<i")), b"K": lambda s: s._push(s._bytes(1)[0]),
    b"M": lambda s: s._push(_number(s, "<H")),
    b"\x8a": lambda s: s._long(s._bytes(1)[0]), b"\x8b": lambda s: s._long(_number(s, "<i")),
    b"G": lambda s: s._push(_number(s, ">d")),
    b"X": lambda s: s._text(_number(s, "<I")), b"\x8c": lambda s: s._text(s._bytes(1)[0]),
    b"\x8d": lambda s: s._text(_number(s, "<Q")),
    b"U": lambda s: s._old_text(s._bytes(1)[0]), b"T": lambda s: s._old_text(_number(s, "<I")),
    b"\x96": lambda s: s._push(bytearray(s._bytes(_number(s, "<Q")))),
    b"C": lambda s: s._push(s._bytes(s._bytes(1)[0])), b"B": lambda s: s._push(s._bytes(_number(s, "<I"))),
    b")": lambda s: s._push(()), b"]": lambda s: s._push([]), b"}": lambda s: s._push({}),
    b"\x8f": lambda s: s._push(set()),
    b"t": lambda s: s._push(tuple(s._marked())), b"\x85": _tuple_of(1), b"\x86": _tuple_of(2), b"\x87": _tuple_of(3),
    b"l": lambda s: s._push(s._marked()), b"d": _dict_of, b"\x91": _frozen,
    b"a": R._append, b"e": R._appends, b"s": R._setitem, b"u": R._setitems, b"\x90": R._additems,
    b"q": lambda s: s._memoize(s._bytes(1)[0]), b"r": lambda s: s._memoize(_number(s, "<I")),
    b"\x94": lambda s: s._memoize(len(s._memo)),
    b"h": lambda s: s._push(s._memo[s._bytes(1)[0]]), b"j": lambda s: s._push(s._memo[_number(s, "<I")]),
    b"c": lambda s: s._push(s._global(s._line(), s._line())), b"\x93": _stack_global,
    b"R": R._reduce, b"\x81": R._new, b"b": R._build, b"Q": R._persistent,
}
