"""Layers made from modules of `nn`: `class Linear(Native, nn.Linear)` infers its sizes from the first input."""
from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from inspect import BoundArguments, Signature, signature
from typing import Any

from .. import api as tg
from ..nn.modules.module import Module
from ..nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from . import _nesting
from .base import Layer

BARE = frozenset(vars(Module()))                    # attributes of every module, kept when it takes another's settings


class Native(Layer, abstract=True):
    """A layer that is a module of `nn`, without the constructor's arguments that follow from its input.

    A subclass names the arguments (`_inferred`) and computes them from the shapes of its first `_inputs` inputs
    (`_sizes`). All others are the module's. Until the first call the parameters are uninitialised; they keep their
    identity when they get their shapes, so an optimizer may be made, and a state_dict loaded, before.
    """

    _inferred: tuple[str, ...] = ()
    _inputs = 1
    # for the docstring: arguments, the shape of an input (or the text of several inputs), and the result's shape
    _example: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._twin = next((base for base in cls.__mro__ if issubclass(base, Module) and not issubclass(base, Layer)),
                         Module)
        cls._arguments = _without(signature(cls._twin), cls._inferred)
        cls.__signature__ = (cls._arguments if cls.__init__ is Native.__init__
                             else _without(signature(cls.__init__), ["self"]))
        if cls.__doc__ is None and "_example" in vars(cls):
            cls.__doc__ = _doc(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self._inferred:
            self._twin.__init__(self, *args, **kwargs)
            return
        try:
            arguments = self._arguments.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}.__init__() {error}") from None
        self._begin(arguments)

    def _begin(self, arguments: dict[str, Any]) -> None:
        """Become the module of the smallest possible sizes, made on the meta device, with uninitialised tensors.

        Hence the module itself checks the arguments and names the parameters. Parameters of its submodules belong to
        the layer, under their full names, until the submodules are made.
        """
        device, dtype = arguments.get("device"), arguments.get("dtype")
        sketch = self._twin(**{**self._least(arguments), **arguments, "device": "meta"})
        own = self.__dict__
        own.update((name, value) for name, value in vars(sketch).items() if name != "_arguments_given")
        own["_native_arguments"] = dict(arguments)

        def parameter() -> Any:
            return UninitializedParameter(device=device, dtype=dtype)

        def buffer(like: Any) -> Any:                           # a counter has no sizes to wait for
            return (UninitializedBuffer(device=device, dtype=dtype) if like.ndim
                    else tg.zeros((), dtype=like.dtype, device=device))

        own["_parameters"] = {name: None if p is None else parameter() for name, p in _all(sketch, "_parameters")}
        own["_buffers"] = {name: None if b is None else buffer(b) for name, b in _all(sketch, "_buffers")}
        own["_modules"] = {}

    def _least(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the smallest sizes that the other arguments allow."""
        return dict.fromkeys(self._inferred, 1)

    def _sizes(self, *shapes: Any) -> dict[str, Any]:
        """Return the arguments in `_inferred`, from the shapes of the first inputs."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to find {', '.join(self._inferred)}")

    def _shape_of_call(self, bound: BoundArguments) -> Any:
        """Return the shapes of the inputs that determine the module's sizes; others, such as masks and states, are
        optional."""
        return self._deciding([_nesting.shape_of(value) for value in bound.args[1:] if _nesting.has_shape(value)])

    def _deciding(self, shape: Any) -> Any:
        if _nesting.is_simple(shape):
            return shape
        shapes = list(shape.values() if isinstance(shape, dict) else shape)[:self._inputs]
        return shapes[0] if len(shapes) == 1 else shapes

    def _size(self, shape: Any, axis: int, what: str) -> int:
        """Return a size of a shape. AssertionError if there is no such axis or its size is unknown."""
        if not (_nesting.is_simple(shape) and -len(shape) <= axis < len(shape) and shape[axis] is not None):
            raise AssertionError(f"{type(self).__name__} cannot infer {what} from an input of shape {shape}: that is "
                                 f"the size of axis {axis}")
        return shape[axis]

    # ── building ──────────────────────────────────────────────────────────────────────────────
    def _build(self, input_shape: Any) -> None:
        if not self._inferred:
            return
        shapes = [input_shape] if _nesting.is_simple(input_shape) else input_shape
        arguments = {**self._native_arguments, **self._sizes(*shapes)}
        for tensor in (*self._parameters.values(), *self._buffers.values()):
            if tensor is not None and tensor.dtype.is_floating_point:
                arguments |= {"device": tensor.device, "dtype": tensor.dtype}
                break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")         # the module's warnings were shown for the sketch already
            module = self._twin(**arguments)
        self._become(module.train(self.training))

    def _become(self, module: Module) -> None:
        """Copy the settings of a module of the right sizes, and its tensors into the layer's own."""
        tables = {table: {name: tensor for name, tensor in _all(module, table)}
                  for table in ("_parameters", "_buffers")}
        pairs = [(name, getattr(self, table).get(name), tensor) for table, tensors in tables.items()
                 for name, tensor in tensors.items()]
        for name, mine, tensor in pairs:
            if (mine is None) != (tensor is None):
                raise RuntimeError(f"{type(self).__name__} has a parameter {name} for some sizes of the input only, "
                                   f"and not for these: {module!r}")
            if mine is not None and not is_lazy(mine) and mine.shape != tensor.shape:
                raise RuntimeError(f"{type(self).__name__}: {name} was loaded with shape {tuple(mine.shape)}; this "
                                   f"input asks for {tuple(tensor.shape)}")
        with tg.no_grad():
            for _, mine, tensor in pairs:
                if is_lazy(mine):
                    mine.materialize(tensor.shape, tensor.device, tensor.dtype)
                    mine.data = tensor
        for table in tables:
            for owner, name, full in _places(module, table):
                getattr(owner, table)[name] = getattr(self, table).pop(full)
            getattr(self, table).update(getattr(module, table))
        own = self.__dict__
        own["_modules"].update(module._modules)
        own.update((name, value) for name, value in vars(module).items() if name not in BARE)

    def native_module(self) -> Any:
        """Return the plain module of `nn`, which shares attributes, parameters and buffers.

        None without parameters and buffers, or before the first call.

        >>> import tensorgrad as torch
        >>> layer = torch.layers.Linear(3)
        >>> layer.native_module()
        >>> layer.build((None, 2)).native_module()
        Linear(in_features=2, out_features=3, bias=True)
        """
        return (self._plain() if self.is_built and next(iter((*self.parameters(), *self.buffers())), None) is not None
                else None)

    def _plain(self) -> Any:
        """Return the equivalent module of `nn`, with or without state; None before the layer is built."""
        if self._inferred and not self.is_built:
            return None
        module = self._twin.__new__(self._twin)
        module.__dict__ = self.__dict__
        return module


def _places(module: Module, table: str) -> Iterator[tuple[Module, str, str]]:
    """Yield (owner, name there, full name) of each parameter or buffer of a module, including None."""
    for prefix, owner in module.named_modules():
        for name in getattr(owner, table):
            yield owner, name, f"{prefix}.{name}" if prefix else name


def _all(module: Module, table: str) -> list[tuple[str, Any]]:
    return [(full, getattr(owner, table)[name]) for owner, name, full in _places(module, table)]


def _without(signature: Signature, names: Collection[str]) -> Signature:
    return signature.replace(parameters=[p for p in signature.parameters.values() if p.name not in names])


def _doc(cls: type[Native]) -> str:
    twin = cls._twin
    told = f", with {' and '.join(cls._inferred)} read off the first input" if cls._inferred else ""
    first = " ".join((twin.__doc__ or twin.__name__).strip().split("\n\n")[0].split()).partition(
        " (torch.")[0].partition(": see")[0].rstrip(".:")
    arguments, inputs, result = cls._example
    inputs = inputs if isinstance(inputs, str) else f"torch.ones{inputs}"
    return f"""{first}.

    `nn.{twin.__name__}` as a layer{told}; the other arguments are the same.

    >>> import tensorgrad as torch
    >>> torch.layers.{cls.__name__}({arguments})({inputs}).shape
    torch.Size({list(result)})
    """


def native_layer(module_class: type[Module], name: str | None = None) -> Any:
    """Return a class of layers made from a class of modules, by default under its name."""
    return type(Native)(name or module_class.__name__, (Native, module_class), {"__module__": module_class.__module__})
