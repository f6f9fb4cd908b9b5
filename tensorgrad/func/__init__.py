"""Transforms of functions: derivatives and batches. https://pytorch.org/docs/stable/func.html

>>> import tensorgrad as torch
>>> from tensorgrad.func import grad, vmap
>>> loss = lambda w, x: torch.tanh(w @ x)
>>> vmap(grad(loss), in_dims=(None, 0))(torch.zeros(2), torch.tensor([[1., 2.], [3., 4.]]))      # a gradient for each example
tensor([[1., 2.],
        [3., 4.]])
"""  # noqa: E501
from ..messages.missing_names import missing as _missing
from .batching import vmap
from .forward import hessian, jacfwd, jvp, linearize
from .gradients import grad, grad_and_value, jacrev, vjp
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .rearranging import rearrange
from .unwrapping import debug_unwrap, functionalize

__all__ = ["debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev",
           "jvp", "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap"]
__getattr__ = _missing(__name__)
