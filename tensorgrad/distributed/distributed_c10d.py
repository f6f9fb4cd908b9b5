"""torch.distributed.distributed_c10d: where PyTorch has the functions of `torch.distributed`, and some that packages
reach for.
"""
from __future__ import annotations

import sys
from typing import Any

from . import world
from .collectives import _all_gather_base, _coalescing_manager, _CoalescingManager, _reduce_scatter_base  # noqa: F401
from .objects import _device as _get_object_coll_device  # noqa: F401
from .operations import _OldNames as _reduce_op  # noqa: F401
from .options import *  # noqa: F403
from .world import _abort_process_group, _group, _outside, _place, _registered, _world  # noqa: F401
from .world import _warn_outside as _warn_not_in_group  # noqa: F401

_rank_not_in_group = _outside
_canonicalize_group_rank = _place


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(sys.modules[__package__], name)


def _get_default_group() -> Any:
    """Return the default group. Errors: ValueError if there is none."""
    return _group(None)


def _get_default_store() -> Any:
    """Return the store of the default group."""
    return _group(None).store


def _get_group_size(group: Any) -> int:
    """Return the number of ranks in a group."""
    return _group(group).size()  # type: ignore[no-any-return]


def _get_pg_default_device(group: Any = None) -> Any:
    """Return the device that messages of a group are on."""
    from ..device import device
    return device(_get_object_coll_device(group))


def _get_process_group_name(pg: Any) -> str:
    """Return the name of a group."""
    return _registered(pg).group_name


def _resolve_process_group(group_name: str) -> Any:
    """Return the group of a name. Errors: RuntimeError if there is none."""
    if group_name not in world._world.groups:
        raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")
    return world._world.groups[group_name]
