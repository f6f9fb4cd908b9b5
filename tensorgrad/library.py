"""torch.library: operators of a program's own, which there is no registry for. https://pytorch.org/docs/stable/library.html"""
from ._unsupported import unsupported

_NAMES = "Library custom_op define get_ctx impl impl_abstract opcheck register_autograd register_fake register_kernel register_vmap triton_op wrap_triton"
globals().update(unsupported(_NAMES, "torch.library", "there is no registry of operators; torch.autograd.Function has gradients of a program's own"))
__all__ = _NAMES.split()
