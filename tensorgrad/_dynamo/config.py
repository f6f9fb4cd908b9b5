"""Switches of the compiler, under PyTorch's names.

`disable` makes compiled functions run as they are; `recompile_limit`, or `cache_size_limit`, bounds the number of
graphs per function. The others have no effect.
"""
suppress_errors, verbose, disable, capture_scalar_outputs, capture_dynamic_output_shape_ops = (False, False, False,
                                                                                               False, False)
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
automatic_dynamic_shapes, assume_static_by_default, optimize_ddp, inline_inbuilt_nn_modules = True, True, True, True


class patch:
    """Changes settings for a block, or for a decorated function."""

    def __init__(self, name=None, value=None, **changes):
        self.changes = {name: value} if isinstance(name, str) else {**(name or {}), **changes}

    def __enter__(self):
        self.before = {name: globals()[name] for name in self.changes if name in globals()}
        globals().update(self.changes)
        return self

    def __exit__(self, *exception):
        globals().update(self.before)

    def __call__(self, function):
        return function
