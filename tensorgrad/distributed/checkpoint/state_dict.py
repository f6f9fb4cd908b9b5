"""State dicts of models and optimizers under the names that parameters have without any wrapper, fit for any number of
ranks.

https://pytorch.org/docs → torch.distributed.checkpoint.state_dict

A model is whole on each rank. An optimizer's state is too, except that of a `ZeroRedundancyOptimizer`: each rank's
state dict has its own part of it, under the names of the parameters, so `save` writes all parts, and `load` reads the
part of whichever rank asks, on any number of them.

>>> import tensorgrad as torch
>>> from tensorgrad.distributed.checkpoint.state_dict import get_state_dict
>>> model = torch.nn.Linear(2, 1)
>>> of_model, of_optimizer = get_state_dict(model, torch.optim.Adam(model.parameters()))
>>> list(of_model), list(of_optimizer["state"]["bias"]), of_optimizer["param_groups"][0]["params"]
(['weight', 'bias'], ['step', 'exp_avg', 'exp_avg_sq'], ['weight', 'bias'])
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ... import api as tg
from ... import distributed as dist
from ...nn import Module
from ...nn.modules.module import _IncompatibleKeys
from ...nn.parallel import DistributedDataParallel
from ...optim import Optimizer
from ..optim import ZeroRedundancyOptimizer
from ._nested_dict import flatten_state_dict, set_element
from .staging import staged

__all__ = ["DictValueType", "FQNS_T", "ListDictValueType", "OptimizerStateType", "PrimitiveType", "StateDictOptions",
           "ValueType", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
           "set_optimizer_state_dict", "set_state_dict"]

FQNS_T = set[str]
PrimitiveType = tg.Tensor | int | float | str
ValueType = DictValueType = ListDictValueType = OptimizerStateType = Any        # nested dicts and lists of these
# names that wrappers put into those of parameters, wherever they are
WRAPPERS = ("_checkpoint_wrapped_module", "_orig_mod")


@dataclass
class StateDictOptions:
    """Options of `get_state_dict` and `set_state_dict`.

    https://pytorch.org/docs → torch.distributed.checkpoint.state_dict.StateDictOptions

    full_state_dict: all of the state of a ZeroRedundancyOptimizer on each rank; with cpu_offload on rank 0 only, and
        empty dicts elsewhere.
    cpu_offload: tensors on the CPU. ignore_frozen_params: leave parameters out that need no gradient. strict: errors
        for what is missing.
    broadcast_from_rank0: rank 0 has a full state dict, the others get theirs from it. flatten_optimizer_state_dict:
        keys such as
    "state.weight.exp_avg" and "param_groups.weight.lr" instead of nested dicts.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self) -> None:
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")

    def elsewhere(self) -> bool:
        """Return True if rank 0 has the state dict and this is another rank."""
        return self.full_state_dict and self.cpu_offload and dist.is_initialized() and dist.get_rank() != 0


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def canonical(model: Any, name: str) -> str:
    """Return the name of a parameter or buffer without what DistributedDataParallel and other wrappers put into it."""
    here, kept = model, []
    for part in name.split("."):
        if part not in WRAPPERS and not (isinstance(here, DistributedDataParallel) and part == "module"):
            kept.append(part)
        here = getattr(here, part, None)
    return ".".join(kept)


def _names(model: Module) -> dict[Any, str]:
    """Return the canonical name of each parameter."""
    return {param: canonical(model, name) for name, param in model.named_parameters()}


# ── of models ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def get_model_state_dict(model: Module, *, options: StateDictOptions | None = None) -> dict[str, Any]:
    """Return the state dict of a model under canonical names. https://pytorch.org/docs → get_model_state_dict"""
    options = options or StateDictOptions()
    if options.elsewhere():
        return {}
    found = {canonical(model, name): value for name, value in model.state_dict().items()}
    if options.ignore_frozen_params:
        for name, param in model.named_parameters():
            if not param.requires_grad:
                found.pop(canonical(model, name), None)
    return staged(found) if options.cpu_offload else found


def set_model_state_dict(model: Module, model_state_dict: dict[str, Any], *,
                         options: StateDictOptions | None = None) -> Any:
    """Load a state dict with canonical names into a model.

    Returns (missing_keys, unexpected_keys). https://pytorch.org/docs → set_model_state_dict
    """
    options = options or StateDictOptions()
    if options.broadcast_from_rank0:
        model_state_dict = _from_rank_0(model_state_dict, flat=True)
    if not model_state_dict:
        if options.strict:
            raise RuntimeError("The option indicates that model state_dict is required to save or load, but model "
                               "state_dict is empty.")
        return _IncompatibleKeys([], [])
    wrapped = {canonical(model, name): name for name in model.state_dict()}
    return model.load_state_dict({wrapped.get(name, name): value for name, value in model_state_dict.items()},
                                 strict=options.strict)


# ── of optimizers ─────────────────────────────────────────────────────────────────────────────────────────────────────


def get_optimizer_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *,
                             options: StateDictOptions | None = None) -> dict[str, Any]:
    """Return the state of optimizers under the canonical names of the model's parameters.

    https://pytorch.org/docs → get_optimizer_state_dict

    An optimizer without a state gets one first, as of a step with gradients of 0; the parameters stay as they are. Of a
    `ZeroRedundancyOptimizer`, the part of this rank; full_state_dict=True gives all of it, and all ranks have to ask.
    """
    options, names = options or StateDictOptions(), _names(model)
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _several(optimizers):
        _init_optim_state(optimizer)
        found = _numbered(optimizer, options)
        if found is None:
            continue
        params = [param for group in optimizer.param_groups for param in group["params"]]
        strangers = [i for i, param in enumerate(params) if param not in names]
        if strangers:
            raise KeyError(f"the optimizer has parameters that the model has not: those with the numbers {strangers}")
        state |= {names[params[key]] if isinstance(key, int) else key: value for key, value in found["state"].items()}
        groups += [group | {"params": [names[params[number]] for number in group["params"]]}
                   for group in found["param_groups"]]
    if options.elsewhere():
        return {}
    whole = _flat(state, groups) if options.flatten_optimizer_state_dict else {"state": state, "param_groups": groups}
    return staged(whole) if options.cpu_offload else whole


def set_optimizer_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer],
                             optim_state_dict: dict[str, Any], *,
                             options: StateDictOptions | None = None) -> None:
    """Load what `get_optimizer_state_dict` gave, on any number of ranks, before `backward` or after `step`.

    https://pytorch.org/docs → set_optimizer_state_dict
    """
    options, names = options or StateDictOptions(), _names(model)
    if options.broadcast_from_rank0:
        optim_state_dict = _from_rank_0(optim_state_dict, flat=not {"state", "param_groups"} >= optim_state_dict.keys())
    if not optim_state_dict:
        raise RuntimeError(f"The option indicates that model state_dict is required to save, or load but optim "
                           f"state_dict is empty. {optim_state_dict}")
    for optimizer in _several(optimizers):
        _init_optim_state(optimizer)
        if optim_state_dict.keys() <= {"state", "param_groups"}:
            part = _part(optimizer, names, optim_state_dict.get("state", {}), optim_state_dict["param_groups"],
                         options.strict)
        else:
            part = _nested(optimizer, names, optim_state_dict)
        optimizer.load_state_dict(part)


def get_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *,
                   options: StateDictOptions | None = None) -> tuple[Any, Any]:
    """Return (`get_model_state_dict`, `get_optimizer_state_dict`). https://pytorch.org/docs → get_state_dict"""
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *, model_state_dict: dict[str, Any],
                   optim_state_dict: dict[str, Any],
                   options: StateDictOptions | None = None) -> Any:
    """Call `set_optimizer_state_dict`, then `set_model_state_dict`, whose result is returned.

    https://pytorch.org/docs → set_state_dict
    """
    if _several(optimizers):
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def _several(optimizers: Any) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _init_optim_state(optimizer: Any) -> None:
    """Give an optimizer the state that its first step makes, unless it has one, or gradients wait for a step."""
    inner = optimizer.optim if isinstance(optimizer, ZeroRedundancyOptimizer) else optimizer
    params = [param for group in inner.param_groups for param in group["params"]]
    if inner.state or any(param.grad is not None for param in params):
        return
    needing = [param for param in params if param.requires_grad]
    values = [param.detach().clone() for param in needing]
    for param in needing:
        param.grad = tg.zeros_like(param)
    inner.step(closure=None)
    inner.zero_grad(set_to_none=True)
    with tg.no_grad():
        for param, value in zip(needing, values, strict=True):
            param.copy_(value)


def _numbered(optimizer: Any, options: StateDictOptions) -> dict[str, Any] | None:
    """Return the state dict of an optimizer, its own part of it if it is spread over ranks; None where rank 0 alone
    gets it.
    """
    if not isinstance(optimizer, ZeroRedundancyOptimizer):
        return optimizer.state_dict()  # type: ignore[no-any-return]
    if not options.full_state_dict:
        return optimizer.own_state_dict()
    for rank in (0,) if options.cpu_offload else range(optimizer.world_size):
        optimizer.consolidate_state_dict(rank)
    return None if options.cpu_offload and optimizer.rank != 0 else optimizer.state_dict()


def _part(optimizer: Any, names: dict[Any, str], state: dict[str, Any], groups: list[dict[str, Any]],
          strict: bool) -> dict[str, Any]:
    """Return the part of a state dict that is one optimizer's, its groups in its order."""
    if (all(isinstance(key, int) for key in state) and not all(isinstance(name, str) for group in groups
                                                               for name in group["params"])):
        return {"state": state, "param_groups": groups}
    of_param = {name: group for group in groups for name in group["params"]}
    empty = [group for group in groups if not group["params"]]
    part: dict[str, Any] = {"state": {}, "param_groups": []}
    for own in optimizer.param_groups:
        known = [names[param] for param in own["params"]]
        group = (next((of_param[name] for name in known if name in of_param), None)
                 or (empty.pop(0) if not known and empty else {}))
        part["param_groups"].append(group | {"params": known})
        for param in own["params"]:
            name = names[param]
            if name in state:
                part["state"][name] = state[name]
            elif (strict and state and param.requires_grad
                  and (not isinstance(optimizer, ZeroRedundancyOptimizer) or optimizer.owns(param))):
                raise RuntimeError(f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter "
                                   "requires gradients but has no saved optimizer state. To load anyway, use "
                                   "StateDictOptions(strict=False).")
    return part


def _flat(state: dict[str, Any], groups: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the state and the options of each parameter under keys that begin with its name."""
    flat = {}

    def visit(prefix: str, values: dict[Any, Any]) -> None:
        for key, value in values.items():
            if isinstance(value, dict):
                visit(f"{prefix}.{key}", value)
            elif isinstance(value, (tg.Tensor, int, float)):
                flat[f"{prefix}.{key}"] = value
            else:
                raise NotImplementedError(f"Flattening optimizer state_dict only supports tensor, int, float, dict "
                                          f"states now. Type is {type(value)}.")
    for name, values in state.items():
        visit(f"state.{name}", values)
    return flat | {f"param_groups.{name}.{key}": value for group in groups for name in group["params"]
                   for key, value in group.items()
                   if key not in ("params", "param_names")}


def _nested(optimizer: Any, names: dict[Any, str], flat: dict[str, Any]) -> dict[str, Any]:
    """Undo `_flat` for the parameters of one optimizer."""
    nested: dict[str, Any] = {"state": {}, "param_groups": []}
    for own in optimizer.param_groups:
        known = [names[param] for param in own["params"]]
        options: dict[str, Any] = {}
        for name in known:
            for key in (key for key in own if key not in ("params", "param_names")):
                value = flat[f"param_groups.{name}.{key}"]
                if options.setdefault(key, value) != value:
                    raise RuntimeError("All the parameters in the same parameter group should have the same saved "
                                       f"param_group value. But {name}.{key} is {value} while other(s) is "
                                       f"{options[key]}.")
        nested["param_groups"].append(options | {"params": known})
        for param, name in zip(own["params"], known, strict=True):
            for key in optimizer.state.get(param, {}):
                start = f"state.{name}.{key}"
                if start in flat:
                    nested["state"].setdefault(name, {})[key] = flat[start]
                for longer in flat:
                    if longer.startswith(start + "."):
                        set_element(nested["state"], (name, key, *longer[len(start) + 1:].split(".")), flat[longer])
    return nested


def _from_rank_0(state: dict[str, Any], flat: bool) -> dict[str, Any]:
    """Bring the state dict of rank 0 to all ranks: its structure as an object, then one tensor after the other."""
    values, paths = (state, {}) if flat else flatten_state_dict(state)
    first = dist.get_rank() == 0
    outline: list[Any] = [[(key, paths.get(key), (tuple(value.shape), value.dtype) if isinstance(value, tg.Tensor)
                            else None,
                            None if isinstance(value, tg.Tensor) else value) for key, value in values.items()] if first
                          else None]
    dist.broadcast_object_list(outline, 0)
    whole: dict[str, Any] = {}
    for key, path, kind, value in outline[0]:
        if kind is not None:
            value = values[key].detach() if first else tg.empty(kind[0], dtype=kind[1])
            dist.broadcast(value, 0)
        set_element(whole, path or (key,), value)
    return state if first else whole
