"""Switches of the compiler, under PyTorch's names.

`disable` makes compiled functions run as they are; `recompile_limit` bounds the number of graphs per function. The
others, and any further name that a program sets, have no effect.
"""
import sys

from ..utils._config_module import install_config_module

suppress_errors, verbose, disable, capture_scalar_outputs, capture_dynamic_output_shape_ops = (False, False, False,
                                                                                               False, False)
recompile_limit, accumulated_recompile_limit = 8, 256
_aliases = {"cache_size_limit": "recompile_limit",
            "accumulated_cache_size_limit": "accumulated_recompile_limit"}
automatic_dynamic_shapes, assume_static_by_default, optimize_ddp, inline_inbuilt_nn_modules = True, True, True, True

install_config_module(sys.modules[__name__])
