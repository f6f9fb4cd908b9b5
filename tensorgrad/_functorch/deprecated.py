"""The functions of `functorch`, each with PyTorch's warning that names its successor.

https://pytorch.org/docs/stable/func.migrating.html
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import func
from . import make_functional as _modules

_SUCCESSORS = {"vmap": "torch.vmap", "make_functional": "torch.func.functional_call",
               "make_functional_with_buffers": "torch.func.functional_call",
               "combine_state_for_ensemble": "torch.func.stack_module_state"}


def _deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    name = function.__name__
    text = (f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{name}` is "
            f"deprecated as of PyTorch 2.0 and will be deleted in a future version of PyTorch >= 2.3. Please use "
            f"`{_SUCCESSORS.get(name, f'torch.func.{name}')}` instead; see the PyTorch 2.0 release notes and/or the "
            f"`torch.func` migration guide for more details https://pytorch.org/docs/main/func.migrating.html")

    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)
    call.__name__, call.__qualname__, call.__doc__ = name, name, function.__doc__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap = map(_deprecated, (
    func.functionalize, func.grad, func.grad_and_value, func.hessian, func.jacfwd, func.jacrev, func.jvp, func.vjp,
    func.vmap))
make_functional, make_functional_with_buffers, combine_state_for_ensemble = map(_deprecated, (
    _modules.make_functional, _modules.make_functional_with_buffers, _modules.combine_state_for_ensemble))

__all__ = ["combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev",
           "jvp", "make_functional", "make_functional_with_buffers", "vjp", "vmap"]
