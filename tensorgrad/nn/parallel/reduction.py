"""Reduce gradients while backward is still under way."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..modules.module import Module

__all__ = ["reduce_early"]


def reduce_early(module: Module, reduce: Any) -> Any:
    """Call `reduce(parameter)` once backward has accumulated a parameter's whole gradient; return handles to undo it.

    Each parameter has its turn once in a backward, however often the module was called or the parameter is used, right
    after its last use: while gradients of earlier layers are still to be found, those of later ones can already travel
        to other processes.

    >>> import tensorgrad as torch
    >>> from tensorgrad.nn.parallel import reduce_early
    >>> model, seen = torch.nn.Linear(2, 2), []
    >>> handles = reduce_early(model, lambda p: seen.append(tuple(p.shape)))
    >>> (model(torch.ones(1, 2)) + model(torch.zeros(1, 2))).sum().backward()
    >>> sorted(seen)
    [(2,), (2, 2)]
    """
    return [parameter.register_post_accumulate_grad_hook(reduce) for parameter in module.parameters()
            if parameter.requires_grad]
