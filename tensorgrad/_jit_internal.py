"""Marks that packages import from where PyTorch keeps them."""
from typing import Final

from .jit import _itself as _copy_to_script_wrapper
from .jit import _overload, _overload_method, export, ignore, is_scripting, unused

__all__ = ["Final", "_copy_to_script_wrapper", "_overload", "_overload_method", "boolean_dispatch", "export", "ignore",
           "is_scripting", "unused"]


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """Return a function that calls one of two functions, chosen by one argument."""
    def call(*args, **kwargs):
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)
    return call
