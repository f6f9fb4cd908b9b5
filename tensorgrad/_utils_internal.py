"""Paths and switches of PyTorch's internal builds, of which packages read a few. Nothing is logged."""
from __future__ import annotations

import os
from typing import Any

__all__ = ["get_file_path", "get_file_path_2", "get_writable_path", "is_fb_unit_test", "justknobs_check",
           "justknobs_getval_int", "log_export_usage", "resolve_library_path", "signpost_event"]

TEST_MASTER_ADDR, TEST_MASTER_PORT = "127.0.0.1", 29500
USE_GLOBAL_DEPS, USE_RTLD_GLOBAL_WITH_LIBTORCH, REQUIRES_SET_PYTHON_MODULE = True, False, False


def get_file_path(*path_components: str) -> str:
    """Return a path below the directory that the package is in."""
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), *path_components)


def get_file_path_2(*path_components: str) -> str:
    """Return the path that its components make."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """Return the path, or a new directory for temporary files if it cannot be written to."""
    if os.access(path, os.W_OK):
        return path
    import tempfile
    return tempfile.mkdtemp(suffix=os.path.basename(path))


def resolve_library_path(path: str) -> str:
    """Return the path without symbolic links."""
    return os.path.realpath(path)


def is_fb_unit_test() -> bool:
    """Return False."""
    return False


def justknobs_check(name: str, default: bool = True) -> bool:
    """Return the default: there is no service that sets switches."""
    return default


def justknobs_getval_int(name: str) -> int:
    """Return 0: there is no service that sets numbers."""
    return 0


def log_export_usage(**kwargs: Any) -> None:
    """Do nothing."""


def signpost_event(category: str, name: str, parameters: dict[str, Any]) -> None:
    """Do nothing."""


def _running_with_deploy() -> bool:
    """Return False: no program runs in several interpreters of one process."""
    return False
