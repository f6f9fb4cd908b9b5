"""Means of parameters over processes."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .... import api as tg
from ....nn import processes
from ....nn.parameter import Parameter

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterable[Any], process_group: Any) -> None:
    """Replace parameters by their means over the processes of a group; those of one dtype and device travel together.

    Others leave theirs as they are.
    """
    group = processes.default_group if process_group is None else process_group
    # what stands for a group that this process is not in
    if not hasattr(group, "allreduce") or group.rank() < 0:
        return
    kinds: dict[Any, list[Any]] = {}
    for p in params:
        kinds.setdefault((p.dtype, p.device), []).append(p)
    with tg.no_grad():
        for lot in kinds.values():
            flat = tg.cat([p.detach().flatten() for p in lot]).div_(group.size())
            processes.at_once(group.allreduce, flat)
            for p, found in zip(lot, flat.split([p.numel() for p in lot]), strict=True):
                p.copy_(found.view(p.shape))


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """Return the parameters that have gradients, of parameters or of an optimizer's groups.

    Errors: NotImplementedError for anything else.
    """
    found = []
    for item in params:
        if isinstance(item, dict):
            found += [p for p in item["params"] if p.grad is not None]
        elif not isinstance(item, Parameter):
            raise NotImplementedError(f"Parameter input of type {type(item)} is not supported")
        elif item.grad is not None:
            found.append(item)
    return found


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """Replace parameters that have gradients, of parameters or of an optimizer's groups, by their means."""
    average_parameters(get_params_to_average(params), process_group)
