"""The class of traced modules, and what packages build such modules with, in PyTorch's place for them."""
from ..nn.modules.module import Module
from ._absent import absent

__all__ = ["GraphModule"]
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_CodeOnlyModule = absent("graph_module._CodeOnlyModule")


class GraphModule(Module):
    """The class of PyTorch's traced modules: nothing here is one."""


def _copy_attr(from_module, to_module, target):
    """Let a module have what another has at a dotted path; modules on the way are made."""
    *path, name = target.split(".")
    for step in path:
        from_module = getattr(from_module, step)
        if not hasattr(to_module, step):
            setattr(to_module, step, Module())
        to_module = getattr(to_module, step)
    setattr(to_module, name, getattr(from_module, name))
