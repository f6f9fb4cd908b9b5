"""Modules as functions of their parameters, and as ensembles. https://pytorch.org/docs/stable/func.api.html"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import api
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.utils.stateless import _functional_call


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, *,
                    tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """The module's result with other parameters and buffers, given by name in a dict, or several.

    https://pytorch.org/docs → torch.func.functional_call

    >>> import tensorgrad as torch
    >>> double = torch.nn.Linear(2, 1, bias=False)
    >>> torch.func.functional_call(double, {"weight": torch.ones(1, 2)}, torch.tensor([3., 4.]))
    tensor([7.])
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        if not isinstance(given, Sequence):
            raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
                             f"{type(given)}")
        if not all(isinstance(d, dict) for d in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in given for name in d]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: value for d in given for name, value in d.items()}
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of models of one class, stacked by name: an ensemble to vmap over. The parameters
    are new leaves. https://pytorch.org/docs → torch.func.stack_module_state

    >>> import tensorgrad as torch
    >>> models = [torch.nn.Linear(3, 2) for _ in range(5)]
    >>> params, buffers = torch.func.stack_module_state(models)
    >>> run = lambda p, b, x: torch.func.functional_call(models[0], (p, b), (x,))
    >>> torch.vmap(run, in_dims=(0, 0, None))(params, buffers, torch.ones(4, 3)).shape
    torch.Size([5, 4, 2])
    """
    if not len(models):
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters, buffers = [dict(m.named_parameters()) for m in models], [dict(m.named_buffers()) for m in models]
    return stacked(parameters), stacked(buffers)


def stacked(states: list[dict[str, Any]]) -> dict[str, Any]:
    found = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        if len({t.requires_grad for t in tensors}) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        together = api.stack(tensors)
        found[name] = together.detach().requires_grad_() if tensors[0].requires_grad else together  # type: ignore[attr-defined]
    return found


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let batch normalisations, in place, have no running statistics: those are written to, which no function may do.
    https://pytorch.org/docs → torch.func.replace_all_batch_norm_modules_
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
