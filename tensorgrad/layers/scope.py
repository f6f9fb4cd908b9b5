"""Device scopes: blocks that set the device and precision in which a thread makes tensors and runs modules.

A scope sets PyTorch's default device and default dtype, and restores them: scopes and `torch.device` blocks nest like
`torch.device` blocks alone. Besides, a `layers.Module` moves to the scope it is called in.
"""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from .. import api as tg
from ..device import defaults
from ..dtype import float32, float64, thread
from ..messages.warn_once import warn
from .structures import is_sequence

__all__ = ["CPU_DEVICE", "CUDA_DEVICE", "cuda_count", "cuda_memory", "device_scope", "device_to_int",
           "get_default_device_dtype", "get_scope_device_dtype", "get_torchx_device_dtype", "gpu_count", "has_cuda",
           "has_gpu", "id_to_device", "ids_to_devices", "in_device_scope", "new_tensor",
           "set_default_device_dtype"]

CPU_DEVICE, CUDA_DEVICE = tg.device("cpu"), tg.device("cuda")
ALL = ("cuda:all", "gpu:all")
UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}


class _Scopes(threading.local):
    """The open scopes of a thread: for each the number of default devices set when it began, its own included, and
    its devices."""

    open: tuple[tuple[int, tuple[Any, ...]], ...] = ()


_scopes = _Scopes()


# ── devices by their numbers ──────────────────────────────────────────────────────────────────────────────────────────


def cuda_count() -> int:
    """Return the number of CUDA devices."""
    from ..cuda import device_count
    return device_count()


def has_cuda() -> bool:
    """Return True if there is a CUDA device."""
    return cuda_count() > 0


gpu_count, has_gpu = cuda_count, has_cuda


def id_to_device(id: Any) -> Any:
    """Return the device of a number (-1: the CPU), None (the CPU), a name ('cpu', 'cuda:1', 'gpu:1') or a device.

    The device need not exist: `device_scope` checks that. TypeError for anything else.

    >>> id_to_device(-1), id_to_device("gpu:4")
    (device(type='cpu'), device(type='cuda', index=4))
    """
    if isinstance(id, bool) or not (id is None or isinstance(id, (int, str, tg.device))):
        raise TypeError(f"a device is a number, a name, a torch.device or None for the CPU, not {type(id).__name__}")
    if id is None or isinstance(id, int) and id == -1:
        return CPU_DEVICE
    return tg.device(id.replace("gpu", "cuda", 1) if isinstance(id, str) and id.startswith("gpu") else id)


def ids_to_devices(ids: Any) -> list[Any]:
    """Return the devices of an argument of `id_to_device`, or of a list of them.

    'cuda:all' means all CUDA devices, or the CPU if there are none.

    AssertionError for an empty list, and for 'cuda:all' in a list.

    >>> ids_to_devices("cuda:4"), ids_to_devices([-1])
    ([device(type='cuda', index=4)], [device(type='cpu')])
    """
    if isinstance(ids, str) and ids in ALL:
        return [tg.device("cuda", i) for i in range(cuda_count())] or [CPU_DEVICE]
    if not is_sequence(ids):
        return [id_to_device(ids)]
    if not ids or any(isinstance(id, str) and id in ALL for id in ids):
        raise AssertionError("a list of devices has one device at least; 'cuda:all' is used alone" if ids
                             else "a list of devices has one device at least")
    return list(map(id_to_device, ids))


def devices_there(ids: Any) -> list[Any]:
    """Return the distinct devices of `ids_to_devices`, after checking that they exist and can be combined; the CPU,
    with a warning, without CUDA."""
    devices = ids_to_devices(ids)
    if len({device.type for device in devices}) > 1:
        raise AssertionError(f"the CPU does not work together with CUDA devices: {list(ids)}")
    if len(devices) > 1 and devices[0].type == "cpu":
        raise AssertionError(f"the CPU is one device: {list(ids)}")
    return list(dict.fromkeys(map(device_there, devices)))


def device_there(device: Any) -> Any:
    """Return a device with its number.

    RuntimeError if there are CUDA devices, but not this one; the CPU, with a warning, if there is none.
    """
    if device.type != "cuda":
        return device
    count = cuda_count()
    if not count:
        warn(f"there is no CUDA device: the CPU takes the place of {device}")
        return CPU_DEVICE
    from ..cuda import current_device
    device = tg.device("cuda", current_device() if device.index is None else device.index)
    if device.index >= count:
        raise RuntimeError(f"there is no device {device}: there {'is one' if count == 1 else f'are {count}'}")
    return device


def device_to_int(device: Any) -> int:
    """The number of a CUDA device, given in any way; -1 for the CPU.

    >>> device_to_int("cpu"), device_to_int("cuda:1"), device_to_int(None)
    (-1, 1, -1)
    """
    if device is None or isinstance(device, int):
        return -1 if device is None else device
    found = tg.device(device.replace("gpu", "cuda", 1) if isinstance(device, str) and device.startswith("gpu")
                      else device)
    return -1 if found.type != "cuda" else found.index or 0


# ── the scope ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def device_scope(device: Any, dtype: Any = float32, override_parent: bool = True) -> AbstractContextManager[Any]:
    """In a `with` block, make tensors on a device and in a dtype; gives the (first) device.

    device: a number, -1 or None for the CPU, 'cpu', 'cuda:1', 'gpu:1', a `torch.device`, a list of these (modules may
        then be replicated on them), or
    'cuda:all'. dtype: torch.float32 or torch.float64. override_parent: if not, a scope or `torch.device` block around
    this one stays in force.
    Errors: AssertionError for other dtypes, and for lists with the CPU among other devices. Without any CUDA device
        there is a warning, and the CPU.

    >>> import tensorgrad as torch
    >>> with device_scope("cpu", torch.float64) as device:
    ...     print(device, torch.zeros(1).dtype, torch.tensor([0.5]).dtype)
    cpu torch.float64 torch.float64
    """
    if dtype not in (float32, float64):
        raise AssertionError(f"the dtype of a scope is torch.float32 or torch.float64, not {dtype}")
    return _scope(tuple(devices_there(device)), dtype, override_parent)


@contextmanager
def _scope(devices: tuple[Any, ...], dtype: Any, override_parent: bool) -> Iterator[Any]:
    if defaults.stack and not override_parent:
        yield defaults.stack[-1]
        return
    before = thread.default, _scopes.open
    with devices[0]:
        try:
            thread.default, _scopes.open = dtype, (*_scopes.open, (len(defaults.stack), devices))
            yield devices[0]
        finally:
            thread.default, _scopes.open = before


def in_device_scope() -> bool:
    """Return True if this thread is inside a `device_scope`."""
    return bool(_scopes.open)


def get_scope_device_dtype() -> tuple[list[Any], Any]:
    """The devices and the dtype in force: a scope's, or else a list with the default device, and the default dtype.

    >>> get_scope_device_dtype()
    ([device(type='cpu')], torch.float32)
    """
    if _scopes.open and _scopes.open[-1][0] == len(defaults.stack):
        return list(_scopes.open[-1][1]), tg.get_default_dtype()
    return [tg.get_default_device()], tg.get_default_dtype()


get_torchx_device_dtype = get_scope_device_dtype        # its former name


def get_default_device_dtype() -> tuple[Any, Any]:
    """Return the device and dtype of new tensors."""
    return tg.get_default_device(), tg.get_default_dtype()


def set_default_device_dtype(device: Any, dtype: Any = float32) -> None:
    """Set the device and dtype of new tensors outside of scopes, for the whole program.

    >>> import tensorgrad as torch
    >>> set_default_device_dtype("cpu", torch.float64); torch.zeros(1).dtype
    torch.float64
    >>> set_default_device_dtype(None)
    """
    if dtype not in (float32, float64):
        raise AssertionError(f"the default dtype is torch.float32 or torch.float64, not {dtype}")
    tg.set_default_device(device_there(id_to_device(device)))
    tg.set_default_dtype(dtype)


def new_tensor(data: Any, dtype: Any = None) -> Any:
    """A tensor of the data on the device of the scope and, unless a dtype is given, in its dtype.

    >>> new_tensor([1, 2])
    tensor([1., 2.])
    """
    return tg.tensor(data, dtype=tg.get_default_dtype() if dtype is None else dtype, device=tg.get_default_device())


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def cuda_memory(ids: Any, unit: str = "b", mode: str = "alloc", is_max: bool = False) -> Any:
    """How much memory arrays occupy ('alloc'), or the memory pool holds ('cache'), on CUDA devices; with `is_max`, the
    most it has been.

    ids: a number, a list of numbers or 'all'. unit: 'b', 'kb', 'mb' or 'gb'. A number for one device, a list for
        several.
    Errors: ValueError for another unit or mode; those of torch.cuda without CUDA.

    >>> len(cuda_memory("all")) == cuda_count()
    True
    """
    if unit.lower() not in UNITS:
        raise ValueError(f"unit must be one of {', '.join(UNITS)}, got {unit!r}")
    if mode not in ("alloc", "cache"):
        raise ValueError(f"mode must be 'alloc' or 'cache', got {mode!r}")
    from .. import cuda
    read = {("alloc", False): cuda.memory_allocated, ("alloc", True): cuda.max_memory_allocated,
            ("cache", False): cuda.memory_reserved, ("cache", True): cuda.max_memory_reserved}[mode, bool(is_max)]
    if not is_sequence(ids) and ids != "all":
        return read(device_to_int(ids)) / UNITS[unit.lower()]
    return [read(device_to_int(id)) / UNITS[unit.lower()]
            for id in (range(cuda_count()) if isinstance(ids, str) else ids)]
