"""Examples in docstrings run where the functions are written; the namespaces that show the same functions again do not
repeat them.
"""
from tensorgrad.runtime.native import native

# they read functions off it
collect_ignore_glob = [] if native is not None else ["tensorgrad/kernels/*_compiled.py"]


def pytest_collection_modifyitems(config, items):
    repeated = [item for item in items if type(item).__name__ == "DoctestItem" and _is_shown_again(item)]
    if repeated:
        config.hook.pytest_deselected(items=repeated)
        items[:] = [item for item in items if item not in set(repeated)]


def _is_shown_again(item):
    import importlib
    import inspect
    module, _, name = item.name.rpartition(".")
    try:
        function = inspect.unwrap(getattr(importlib.import_module(module), name))
        return inspect.isfunction(function) and function.__module__ != module
    except (ImportError, AttributeError, ValueError):
        return False
