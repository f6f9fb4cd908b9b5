"""Modules as functions of tuples of their parameters and buffers. https://pytorch.org/functorch

`torch.func.functional_call` does this with dictionaries, without a copy of the module.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from .. import api
from ..nn import Module
from ..nn.utils.stateless import _reparametrize_module

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functional_init",
           "functional_init_with_buffers", "make_functional", "make_functional_with_buffers"]


class FunctionalModuleWithBuffers(Module):
    """A module without tensors of its own: a function of parameters, buffers and the module's arguments."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], buffer_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, param_names, buffer_names

    def forward(self, params: Iterable[Any], buffers: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Return the module's result with these parameters and buffers."""
        return _run(self.stateless_model, (*self.param_names, *self.buffer_names), (*params, *buffers), args, kwargs)


class FunctionalModule(Module):
    """A module without tensors of its own: a function of parameters and the module's arguments."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model, self.param_names = stateless_model, param_names

    def forward(self, params: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Return the module's result with these parameters."""
        return _run(self.stateless_model, self.param_names, tuple(params), args, kwargs)


def _run(model: Module, names: tuple[str, ...], tensors: tuple[Any, ...], args: Any, kwargs: Any) -> Any:
    if len(names) != len(tensors):
        raise AssertionError(f"len(names) ({len(names)}) != len(tensors) ({len(tensors)})")
    with _reparametrize_module(model, dict(zip(names, tensors, strict=True)), tie_weights=True):
        return model(*args, **kwargs)


def _parts(model: Module, disable_autograd_tracking: bool) -> tuple[Module, dict[str, Any], dict[str, Any]]:
    """Return a copy of a model without values, its parameters and its buffers by name."""
    model = deepcopy(model)
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    empty = {id(tensor): api.empty_like(tensor, device="meta", requires_grad=tensor.requires_grad)
             for tensor in (*parameters.values(), *buffers.values())}
    for module in model.modules():
        for table in (module._parameters, module._buffers):
            table.update((name, empty[id(tensor)]) for name, tensor in table.items() if tensor is not None)
    if disable_autograd_tracking:
        for parameter in parameters.values():
            parameter.requires_grad_(False)
    return model, parameters, buffers


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Any]:
    """Return (function, parameters): function(parameters, *args) is the model's result. The model is not changed.

    RuntimeError for a model with buffers.

    >>> import tensorgrad as torch
    >>> function, (weight,) = make_functional(torch.nn.Linear(2, 1, bias=False))
    >>> function((torch.ones_like(weight),), torch.tensor([3., 4.])).detach()
    tensor([7.])
    """
    if next(iter(model.buffers()), None) is not None:
        raise RuntimeError("make_functional(model): `model` has buffers. Please use "
                           "make_functional_with_buffers(model) instead.")
    model, parameters, _ = _parts(model, disable_autograd_tracking)
    return FunctionalModule(model, tuple(parameters)), tuple(parameters.values())


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False
                                 ) -> tuple[FunctionalModuleWithBuffers, Any, Any]:
    """Return (function, parameters, buffers): function(parameters, buffers, *args) is the model's result.

    >>> import tensorgrad as torch
    >>> _, parameters, buffers = make_functional_with_buffers(torch.nn.BatchNorm1d(2))
    >>> len(parameters), len(buffers)
    (2, 3)
    """
    model, parameters, buffers = _parts(model, disable_autograd_tracking)
    return (FunctionalModuleWithBuffers(model, tuple(parameters), tuple(buffers)), tuple(parameters.values()),
            tuple(buffers.values()))


def _stacked(states: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(api.stack(shards).detach() for shards in zip(*states, strict=True))  # type: ignore[attr-defined]


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[FunctionalModuleWithBuffers, Any, Any]:
    """Return (function, parameters, buffers) of models of one class, whose tensors are stacked: map it with vmap.

    RuntimeError unless all models have one class and mode.
    """
    name = "combine_state_for_ensemble"
    if not models:
        raise RuntimeError(f"{name}: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(f"{name}: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError(f"{name}: Expected all models to be of the same class.")
    functions, parameters, buffers = zip(*map(make_functional_with_buffers, models), strict=True)
    return functions[0], _stacked(parameters), _stacked(buffers)


def _models(model_class: type[Module], ensemble_shape: Sequence[int], device: Any, args: Any,
            kwargs: Any) -> list[Module]:
    if len(ensemble_shape) > 1:
        raise ValueError("NYI: ensemble_shape with more than 1 element")
    if ensemble_shape and ensemble_shape[0] <= 0:
        raise ValueError(f"num_models {ensemble_shape[0]} should be > 0")
    return [model_class(*args, **kwargs).to(device) for _ in range(ensemble_shape[0] if ensemble_shape else 1)]


def functional_init(model_class: type[Module], ensemble_shape: Sequence[int] = (), device: Any = "cpu"
                    ) -> Callable[..., Any]:
    """Return a function that makes (parameters, function, names) of a new model, or of as many as the shape says."""
    def made(*args: Any, **kwargs: Any) -> Any:
        models = _models(model_class, ensemble_shape, device, args, kwargs)
        function, parameters = make_functional(models[0])
        if ensemble_shape:
            parameters = _stacked([tuple(model.parameters()) for model in models])
        return parameters, _of_data(function), function.param_names
    return made


def functional_init_with_buffers(model_class: type[Module], ensemble_shape: Sequence[int] = (), device: Any = "cpu"
                                 ) -> Callable[..., Any]:
    """Return a function that makes (parameters, buffers, function, names of parameters, names of buffers)."""
    def made(*args: Any, **kwargs: Any) -> Any:
        models = _models(model_class, ensemble_shape, device, args, kwargs)
        function, parameters, buffers = make_functional_with_buffers(models[0])
        if ensemble_shape:
            parameters = _stacked([tuple(model.parameters()) for model in models])
            buffers = _stacked([tuple(model.buffers()) for model in models])
        return parameters, buffers, _of_data(function), function.param_names, function.buffer_names
    return made


def _of_data(function: Any) -> Callable[..., Any]:
    """Return a function that takes the module's arguments as a tuple."""
    return lambda *state_and_data: function(*state_and_data[:-1], *state_and_data[-1])
