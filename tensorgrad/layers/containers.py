"""Layers made of layers, and layers made of functions."""
from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from functools import partial
from inspect import signature
from typing import Any

from .. import nn
from ..nn.modules.module import _addindent
from . import _nesting
from .base import Layer, hollow, input_dtype, shapes_of_result
from .dense import Linear
from .dropout import Dropout
from .native import native_layer
from .spec import as_sequence, layers_in

__all__ = ["Lambda", "MLP", "Sequential", "TimeDistributed"]


class Lambda(Layer):
    """A function as a layer.

    `get_output_shape`, a function of the input's shape, is optional if running the function on fake tensors tells it.

    Errors: TypeError for what cannot be called. A spec cannot hold a function: `to_spec` raises SpecError.

    >>> import tensorgrad as torch
    >>> torch.layers.Lambda(lambda x: x * 2)(torch.ones(1, 2)).tolist()
    [[2.0, 2.0]]
    """

    def __init__(self, function: Callable[..., Any], get_output_shape: Callable[[Any], Any] | None = None) -> None:
        super().__init__()
        if not callable(function):
            raise TypeError(f"function must be callable, not a {type(function).__name__}")
        self.function, self._shape_function = function, get_output_shape

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def _takes_several(self) -> bool:
        try:
            parameters = signature(self.function).parameters.values()
        except (TypeError, ValueError):             # some functions in C have no signature
            return False
        return (len([p for p in parameters if p.default is p.empty]) > 1
                or any(p.kind is p.VAR_POSITIONAL for p in parameters))

    def get_output_shape(self, input_shape: Any) -> Any:
        if self._shape_function is None:
            return super().get_output_shape(input_shape)
        return self._shape_function(_nesting.checked(input_shape))

    @staticmethod
    def wrap_same_shape_class(cls: type[nn.Module], cls_name: str | None = None) -> type[Layer]:
        """Make and register a class of layers from a class of modules, by default under its name.

        >>> import tensorgrad as torch
        >>> Smooth = torch.layers.Lambda.wrap_same_shape_class(torch.nn.SiLU, "Smooth")
        >>> torch.layers.Layer.from_spec({"type": "Smooth"})
        Smooth()
        """
        return native_layer(cls, cls_name)


class Sequential(Layer, nn.Sequential):
    """Layers in a chain: each takes the result of the one before. Plain modules may be among them.

    Takes layers as arguments, or as a single list. AssertionError without any; TypeError for an object that is no
    module.

    >>> import tensorgrad as torch
    >>> from tensorgrad.layers import Conv2d, Flatten, Linear, Sequential
    >>> cnn = Sequential(Conv2d(4, 3), torch.nn.ReLU(), Flatten(), Linear(10))
    >>> cnn.get_output_shape((None, 3, 8, 8))
    (None, 10)
    >>> cnn
    Sequential[
      Conv2d(4, 3)
      ReLU()
      Flatten()
      Linear(10)
    ]
    """

    def __init__(self, *layers: Any) -> None:
        Layer.__init__(self)
        layers = self._checked(as_sequence(layers))
        if not layers:
            raise AssertionError(f"{type(self).__name__} needs at least one layer")
        self.extend(layers)

    def _checked(self, layers: list[Any]) -> list[Any]:
        for layer in layers:
            if not isinstance(layer, nn.Module):
                raise TypeError(f"{type(self).__name__} takes layers and modules, not a {type(layer).__name__}")
        return layers

    def add(self, *layers: Any) -> Sequential:
        """Append layers, given as arguments or as a single list; a built container builds them too.

        Returns the container.

        >>> import tensorgrad as torch
        >>> model = torch.layers.Sequential(torch.layers.Linear(3)).build((None, 2))
        >>> model.add(torch.layers.Linear(4))[1].input_shape
        (None, 3)
        """
        layers = self._checked(as_sequence(layers))
        if self.is_built:
            _build_all(layers, _output_shape(self, self._shape_inside(self._input_shape)))
        return self.extend(layers)

    def __getitem__(self, index: Any) -> Any:
        return Sequential(*list(self)[index]) if isinstance(index, slice) else nn.Sequential.__getitem__(self, index)

    def _shape_inside(self, shape: Any) -> Any:
        """Return the shape of the first layer's input."""
        return shape

    def _shape_outside(self, shape: Any, input_shape: Any) -> Any:
        """Return the shape of the result, from the shape of the last layer's."""
        return shape

    def _build(self, input_shape: Any) -> None:
        _build_all(self, self._shape_inside(input_shape))

    def _prepare(self, shape: Any) -> None:
        """Do nothing: the layers build themselves when they are called."""

    def get_output_shape(self, input_shape: Any) -> Any:
        shape = _nesting.checked(input_shape)
        return self._shape_outside(_output_shape(self, self._shape_inside(shape)), shape)

    def native_module(self) -> list[Any]:
        """Return the plain modules of the layers, in a list."""
        return [layer.native_module() if isinstance(layer, Layer) else layer for layer in self]

    def _plain(self) -> Any:
        if type(self).forward is not nn.Sequential.forward:
            return None
        parts = [layer._plain() if isinstance(layer, Layer) else layer for layer in self]
        return None if None in parts else nn.Sequential(*parts)

    def _spec_parts(self) -> tuple[str, dict[str | None, Any]]:
        """Return the type and the layers; a subclass that makes its layers from other arguments returns those."""
        return ((type(self).__name__, {"layers": list(self)}) if type(self).__init__ is Sequential.__init__
                else super()._spec_parts())

    @classmethod
    def _arguments_from_spec(cls, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return (layers_in(args, kwargs), {}) if cls.__init__ is Sequential.__init__ else (args, kwargs)

    def _as_call(self) -> str:
        return f"{self._get_name()}[" + "".join(f"\n  {_addindent(repr(layer), 2)}" for layer in self) + "\n]"


def _output_shape(layers: Iterable[Any], shape: Any) -> Any:
    """Return the shape after all these layers."""
    for layer in layers:
        if isinstance(layer, Layer):
            shape = layer.get_output_shape(shape)
        else:
            shape = shapes_of_result(hollow(layer), shape, dtype=input_dtype(layer))
    return shape


def _build_all(layers: Iterable[Any], shape: Any) -> None:
    for layer in layers:
        if isinstance(layer, Layer):
            layer.build(shape)
        shape = _output_shape([layer], shape)


class TimeDistributed(Sequential):
    """Layers applied to each step of a sequence: batch and time, the first two axes, are joined for them.

    AssertionError for inputs of less than three axes.

    >>> import tensorgrad as torch
    >>> from tensorgrad.layers import Conv2d, Flatten, TimeDistributed
    >>> video = torch.ones(2, 5, 3, 8, 8)
    >>> TimeDistributed(Conv2d(4, 3), Flatten())(video).shape
    torch.Size([2, 5, 144])
    """

    def forward(self, input: Any) -> Any:
        self._shape_inside(tuple(input.shape))
        result = nn.Sequential.forward(self, input.flatten(0, 1))
        return _of_tensors(lambda part: part.unflatten(0, input.shape[:2]), result)

    def _shape_inside(self, shape: Any) -> Any:
        if not _nesting.is_simple(shape) or len(shape) < 3:
            raise AssertionError(f"TimeDistributed takes (batch, time, …), three axes at least; this has shape {shape}")
        batch, time, *rest = shape
        return (None if batch is None or time is None else batch * time, *rest)

    def _shape_outside(self, shape: Any, input_shape: Any) -> Any:
        return _of_shapes(lambda part: (*input_shape[:2], *part[1:]), shape)


def _of_tensors(function: Callable[[Any], Any], result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)(_of_tensors(function, part) for part in result)
    return function(result)


def _of_shapes(function: Callable[[Any], Any], shape: Any) -> Any:
    return function(shape) if _nesting.is_simple(shape) else type(shape)(_of_shapes(function, part) for part in shape)


class MLP(Sequential):
    """A multi-layer perceptron: linear layers of these sizes with an activation between them, and a last one.

    `activation` is a layer or the name of one, which is copied for each position. `dropout` follows every activation.

    >>> import tensorgrad as torch
    >>> torch.layers.MLP([64, 32], 10, activation="Tanh")(torch.ones(2, 5)).shape
    torch.Size([2, 10])
    """

    def __init__(self, hiddens: Iterable[int], out: int, activation: str | nn.Module = "ReLU", dropout: float = 0.0,
                 bias: bool = True) -> None:
        made = ((lambda: Layer.from_spec({"type": activation})) if isinstance(activation, str)
                else partial(copy.deepcopy, activation))
        between = [[Linear(n, bias=bias), made(), *([Dropout(dropout)] if dropout else [])] for n in hiddens]
        super().__init__(*[layer for group in between for layer in group], Linear(out, bias=bias))
        self._planned = len(self)

    def _spec_parts(self) -> tuple[str, dict[str | None, Any]]:
        """Return the arguments, or a Sequential's spec if layers were added or removed."""
        return super()._spec_parts() if len(self) == self._planned else ("Sequential", {"layers": list(self)})
