"""The names of the package `functorch`: `torch.func` under its first names, and modules as functions of tuples.

https://pytorch.org/functorch
"""
from ..version import __version__
from .deprecated import (
    combine_state_for_ensemble,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    make_functional,
    make_functional_with_buffers,
    vjp,
    vmap,
)
from .make_functional import FunctionalModule, FunctionalModuleWithBuffers
from .python_key import make_fx

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "__version__", "combine_state_for_ensemble",
           "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional",
           "make_functional_with_buffers", "make_fx", "vjp", "vmap"]
