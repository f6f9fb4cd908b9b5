"""Statistics of a device's memory. https://pytorch.org/docs/stable/cuda.html#memory-management

On simulated devices, whose memory is the host's, every array is counted. On real ones, CuPy's memory pool knows the
bytes in use and in reserve, but no peak: the peak is the greatest value that a query has found.
"""
from __future__ import annotations

import gc
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from ..storage.cuda import import_cupy, simulated_count
from ..storage.out_of_memory import in_units
from .devices import backend_at, host_memory, init, is_available, is_initialized

__all__ = ["empty_cache", "ipc_collect", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
           "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_stats",
           "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_memory_stats",
           "reset_max_memory_allocated", "reset_max_memory_cached",
           "reset_peak_memory_stats",
           "get_per_process_memory_fraction",
           "set_per_process_memory_fraction"]

_peaks: dict[int, list[int]] = {}       # per real device: the most bytes seen in use, and in the pool
_fractions: dict[int, float] = {}


def _simulated(index: int) -> Any:
    from ..storage.simulated import memory_of
    return memory_of(index)


def _pool(index: int) -> Any:
    cupy = import_cupy()
    with cupy.cuda.Device(index):
        return cupy.get_default_memory_pool()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return statistics of the device's memory, as nested dicts.

    https://pytorch.org/docs → torch.cuda.memory_stats_as_nested_dict
    """
    if not is_initialized():
        return {}
    index = backend_at(device).index
    if simulated_count():
        memory = _simulated(index)
        held = {"current": memory.current, "peak": memory.peak, "allocated": memory.allocated,
                "freed": memory.allocated - memory.current}
        blocks = {"current": len(memory.live), "allocated": memory.blocks, "freed": memory.blocks - len(memory.live)}
        return {"allocated_bytes": {"all": held}, "reserved_bytes": {"all": dict(held)}, "allocation": {"all": blocks},
                "num_ooms": memory.full}
    cupy, pool = import_cupy(), _pool(index)
    with cupy.cuda.Device(index):
        now = [int(pool.used_bytes()), int(pool.total_bytes())]
    most = _peaks[index] = [max(pair) for pair in zip(now, _peaks.get(index, now), strict=True)]
    return {name: {"all": {"current": current, "peak": peak}}
            for name, current, peak in zip(("allocated_bytes", "reserved_bytes"), now, most, strict=True)}


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return statistics of the device's memory: {"allocated_bytes.all.peak": 1024, …}.

    https://pytorch.org/docs → torch.cuda.memory_stats
    """
    return OrderedDict(sorted(_flat("", memory_stats_as_nested_dict(device))))


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _flat(f"{prefix}.{name}" if prefix else name, part)
    else:
        yield prefix, value


def _figure(device: Any, name: str) -> int:
    return memory_stats(device).get(name, 0)  # type: ignore[no-any-return]


def memory_allocated(device: Any = None) -> int:
    """Bytes that arrays occupy on the device. https://pytorch.org/docs → torch.cuda.memory_allocated"""
    return _figure(device, "allocated_bytes.all.current")


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that arrays occupied since the peak was reset.

    https://pytorch.org/docs → torch.cuda.max_memory_allocated
    """
    return _figure(device, "allocated_bytes.all.peak")


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that the memory pool holds; without a pool, on simulated devices, the bytes of arrays.

    https://pytorch.org/docs → torch.cuda.memory_reserved
    """
    return _figure(device, "reserved_bytes.all.current")


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the memory pool held since the peak was reset.

    https://pytorch.org/docs → torch.cuda.max_memory_reserved
    """
    return _figure(device, "reserved_bytes.all.peak")


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the peaks to the bytes now in use. https://pytorch.org/docs → torch.cuda.reset_peak_memory_stats"""
    index = backend_at(device).index
    if simulated_count():
        memory = _simulated(index)
        memory.peak = memory.current
    else:
        _peaks.pop(index, None)
        memory_stats_as_nested_dict(device)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Reset the counts of allocated and freed memory.

    https://pytorch.org/docs → torch.cuda.reset_accumulated_memory_stats
    """
    index = backend_at(device).index
    if simulated_count():
        memory = _simulated(index)
        memory.allocated, memory.blocks, memory.full = memory.current, len(memory.live), 0


def _renamed(old: str, new: Any) -> Any:
    def call(device: Any = None) -> int:
        warnings.warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new.__name__}`", FutureWarning,
                      stacklevel=2)
        return new(device)  # type: ignore[no-any-return]
    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"The old name of `{new.__name__}`."
    return call


memory_cached, max_memory_cached = (_renamed("memory_cached", memory_reserved),
                                    _renamed("max_memory_cached", max_memory_reserved))


def _resetting(name: str) -> Any:
    def call(device: Any = None) -> None:
        warnings.warn(f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory "
                      f"stats.",
                      FutureWarning, stacklevel=2)
        reset_peak_memory_stats(device)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "An old name of `reset_peak_memory_stats`."
    return call


reset_max_memory_allocated, reset_max_memory_cached = (_resetting("reset_max_memory_allocated"),
                                                       _resetting("reset_max_memory_cached"))


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return statistics of the device's memory as a table. https://pytorch.org/docs → torch.cuda.memory_summary"""
    init()
    index, stats = backend_at(device).index, memory_stats(device)
    columns = ("current", "peak") if abbreviated else ("current", "peak", "allocated", "freed")
    rows: list[Any] = [("allocated_bytes", "Allocated memory", in_units),
                       ("reserved_bytes", "Reserved memory", in_units), ("allocation", "Allocations", str)]
    lines = [f"memory of device {index}" + (f", {stats['num_ooms']} times full" if "num_ooms" in stats else ""),
             " " * 18 + "".join(f"| {column:>12} " for column in columns)]
    lines.insert(1, "-" * len(lines[1]))
    for key, title, shown in rows:
        figures = [stats.get(f"{key}.all.{column}") for column in columns]
        if any(figure is not None for figure in figures):
            lines.append(f"{title:<18}" + "".join(f"| {'' if figure is None else shown(figure):>12} "
                                                  for figure in figures))
    return "\n".join(lines)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return (free bytes, all bytes) of the device; for a simulated one, those of the host.

    https://pytorch.org/docs → torch.cuda.mem_get_info
    """
    index = backend_at(device).index
    if simulated_count():
        return host_memory()
    with import_cupy().cuda.Device(index) as chosen:
        return chosen.mem_info  # type: ignore[no-any-return]


def empty_cache() -> None:
    """Give memory that no array occupies back to the device. https://pytorch.org/docs → torch.cuda.empty_cache"""
    if is_available() and not simulated_count() and is_initialized():
        _pool(backend_at(None).index).free_all_blocks()


def ipc_collect() -> None:
    """Free memory that other processes have released."""
    init()
    gc.collect()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Allow arrays a part of the device's memory: more of it raises OutOfMemoryError.

    https://pytorch.org/docs → torch.cuda.set_per_process_memory_fraction
    """
    index = backend_at(device).index
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _fractions[index] = fraction
    if simulated_count():
        _simulated(index).limit = None if fraction == 1 else int(fraction * host_memory()[1])
    else:
        with import_cupy().cuda.Device(index):
            _pool(index).set_limit(fraction=fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of the device's memory that arrays are allowed.

    https://pytorch.org/docs → torch.cuda.get_per_process_memory_fraction
    """
    return _fractions.get(backend_at(device).index, 1.0)
