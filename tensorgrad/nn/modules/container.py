"""Modules and parameters in lists and dictionaries."""
from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Self

from ... import api as tg
from ..parameter import Parameter
from .module import Module, _addindent, in_parentheses

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


class Container(Module):
    """Deprecated: any Module can have children."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. "
            "Subclass that instead.", FutureWarning, stacklevel=2)
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Numbered(Module):
    """Base of Sequential and ModuleList: children named '0', '1', …"""

    def _key(self, index):
        """The name of the child at an index, which may count from the end."""
        names = list(self._modules)
        index = operator.index(index)
        if not -len(names) <= index < len(names):
            raise IndexError(f"index {index} is out of range")
        return names[index]

    def _renumber(self, modules):
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for name in names:
            delattr(self, name)
        self._renumber(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module: Module) -> Self:
        """Add a module at the end; returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Module:
        """Take out the module at an index (or those of a slice) and return it."""
        module = self[key]
        del self[key]
        return module

    def _insert(self, index, module):
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)


class Sequential(_Numbered):
    """Modules in a chain: each takes the result of the one before. See PyTorch's `torch.nn.Sequential`.

    Takes modules, or one OrderedDict that also names them.

    >>> import tensorgrad as torch
    >>> torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Flatten())
    Sequential(
      (0): ReLU()
      (1): Flatten(start_dim=1, end_dim=-1)
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named = args[0].items()
        else:
            named = ((str(i), module) for i, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input: Any) -> Tensor:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx: slice | int) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def insert(self, index: int, module: Module) -> Self:
        """Add a module before the one at an index; returns the container."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._insert(index, module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add several modules at the end; returns the container."""
        for module in sequential:
            self.append(module)
        return self

    def __add__(self, other: Any) -> Self:
        return Sequential(*self, *_sequential(other))

    def __iadd__(self, other: Any) -> Self:
        return self.extend(list(_sequential(other)))

    def __mul__(self, other: int) -> Self:
        return Sequential(*list(self) * self._factor(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(list(self) * (self._factor(other) - 1))

    def _factor(self, factor):
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")
        return factor


def _sequential(other):
    if not isinstance(other, Sequential):
        raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
    return other


class ModuleList(_Numbered):
    """A list of modules that are found as children. See PyTorch's `torch.nn.ModuleList`.

    >>> import tensorgrad as torch
    >>> torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.ReLU()])
    ModuleList(
      (0-1): 2 x ReLU()
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _key(self, index):
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._key(idx)]

    def insert(self, index: int, module: Module) -> None:
        """Add a module before the one at an index."""
        self._insert(index, module)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add several modules at the end; returns the list."""
        if not isinstance(modules, Iterable):
            raise TypeError("ModuleList.extend should be called with an iterable, but got " + type(modules).__name__)
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> Self:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """Show equal neighbours once, with their number."""
        lines, start = [], 0
        for text, equals in groupby(map(repr, self)):
            count = len(list(equals))
            shown = f"({start}): {text}" if count == 1 else f"({start}-{start + count - 1}): {count} x {text}"
            lines.append(_addindent(shown, 2))
            start += count
        return in_parentheses(self._get_name(), lines)


class ModuleDict(Module):
    """A dictionary of modules that are found as children. See PyTorch's `torch.nn.ModuleDict`.

    >>> import tensorgrad as torch
    >>> torch.nn.ModuleDict({"act": torch.nn.ReLU()})["act"]
    ReLU()
    """

    _keeps_names = True

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take out all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take out a module and return it."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add the modules of a mapping, or of (name, module) pairs."""
        for key, module in _pairs(modules, "ModuleDict", "ModuleDict"):
            self[key] = module


class ParameterList(Module):
    """A list whose tensors are parameters; it may hold other things too. See PyTorch's `torch.nn.ParameterList`.

    >>> import tensorgrad as torch
    >>> torch.nn.ParameterList([torch.zeros(2), "label"])
    ParameterList(
        (0): Parameter containing: [torch.float32 of size 2]
        (1): Object of type: str
    )
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _key(self, index):
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(getattr(self, str(i)) for i in range(*idx.indices(len(self))))
        return getattr(self, self._key(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, self._key(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(len(self))])

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> Self:
        """Add a value at the end; returns the list."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add several values at the end; returns the list."""
        if not isinstance(values, Iterable) or isinstance(values, tg.Tensor):
            raise TypeError("ParameterList.extend should be called with an iterable, but got " + type(values).__name__)
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_describe(value, lambda tensor: tensor.dtype)}" for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary whose tensors are parameters; it may hold other things too. See PyTorch's `torch.nn.ParameterDict`.

    >>> import tensorgrad as torch
    >>> [name for name, _ in torch.nn.ParameterDict({"left": torch.zeros(1)}).named_parameters()]
    ['left']
    """

    _keeps_names = True

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys = {}                             # an ordered set
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys.")
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, self._attribute(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> Self:
        """Another dictionary of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any | None = None) -> Any:
        """The value of a key, which is added if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take out everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take out a value and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take out the last (key, value) and return them."""
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any | None = None) -> Any:
        """The value of a key, or the default."""
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any | None = None) -> Any:
        """Another dictionary with these keys, all with the same value."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Iterable[str]:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Keys and values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add the values of a mapping, or of (key, value) pairs; a plain dict's in the order of their keys."""
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            parameters = sorted(parameters.items())
        for key, value in _pairs(parameters, "ParametersDict", "ParameterDict"):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_describe(value, tg.typename)}" for key, value in self.items())

    def __call__(self, input: Tensor) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> Any:
        union = self.copy()
        union.update(other)
        return union

    def __ror__(self, other: Any) -> Any:
        union = other.copy()
        union.update(self)
        return union

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self


def _as_parameter(value):
    if isinstance(value, tg.Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _describe(value, kind):
    """Return a line about an entry of a ParameterList or ParameterDict."""
    if not isinstance(value, tg.Tensor):
        return "Object of type: " + type(value).__name__
    size = "x".join(map(str, value.size()))
    device = f" ({value.device})" if value.device.type == "cuda" else ""
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{name} containing: [{kind(value)} of size {size}{device}]"


def _pairs(items, who, element_of):
    """Yield the argument of `update` as (key, value) pairs. TypeError or ValueError if it is none."""
    if not isinstance(items, Iterable):
        raise TypeError(f"{who}.update should be called with an iterable of key/value pairs, but got "
                        + type(items).__name__)
    if isinstance(items, (Mapping, ModuleDict, ParameterDict)):
        yield from items.items()
        return
    for i, pair in enumerate(items):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{element_of} update sequence element #{i} should be Iterable; is{type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{element_of} update sequence element #{i} has length {len(pair)}; 2 is required")
        yield pair[0], pair[1]
