"""The transforms of torch.func, at the path that PyTorch defines them. https://pytorch.org/docs/stable/func.html"""
from ..func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ..func.gradients import chosen_args

__all__ = ["functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


def _slice_argnums(args, argnums, as_tuple=True):
    """Return the arguments at one or several positions; a single one as a tuple, if asked for."""
    found = chosen_args(args, argnums)
    return (found,) if as_tuple and isinstance(argnums, int) else found
