"""PyTorch's class of traced modules, and a helper that packages use with them, under their names."""
from ..nn.modules.module import Module
from ._absent import absent

__all__ = ["GraphModule"]
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_CodeOnlyModule = absent("graph_module._CodeOnlyModule")


class GraphModule(Module):
    """PyTorch's class of traced modules; no object is an instance."""


def _copy_attr(from_module, to_module, target):
    """Copy the attribute at a dotted path to another module; modules in the path are made."""
    *path, name = target.split(".")
    for step in path:
        from_module = getattr(from_module, step)
        if not hasattr(to_module, step):
            setattr(to_module, step, Module())
        to_module = getattr(to_module, step)
    setattr(to_module, name, getattr(from_module, name))
