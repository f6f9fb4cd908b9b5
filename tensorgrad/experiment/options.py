"""Check and convert options of a Trainer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from .. import device as _device

__all__ = ["choice", "devices_of", "limit", "naming_nearest", "seconds", "whole"]

Function = TypeVar("Function", bound=Callable[..., Any])


def naming_nearest(init: Function) -> Function:
    """Wrap a constructor so that its TypeError for an unknown option names the nearest one."""
    names = list(inspect.signature(init).parameters)[1:]

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **options: Any) -> None:
        for name in options:
            if name not in names:
                from .registry import nearest

                near = nearest(name, names)
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}"
                    + (f"; the nearest is {near!r}" if near else f"; there are: {', '.join(names)}")
                )
        init(self, *args, **options)

    return checked  # type: ignore[return-value]


def whole(name: str, value: Any, least: int = 0) -> int:
    """Return an int that is at least `least`. TypeError or ValueError for others."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"Trainer({name}=…) is an int, not {value!r}")
    if value < least:
        raise ValueError(f"Trainer({name}=…) is at least {least}, not {value}")
    return value


def choice(name: str, value: Any, allowed: Any) -> Any:
    """Return an allowed value. ValueError for others."""
    if value not in allowed:
        raise ValueError(f"Trainer({name}=…) is one of {', '.join(map(repr, allowed))}, not {value!r}")
    return value


def limit(name: str, value: Any) -> int | float:
    """Return a number of batches (int) or a fraction of them (float from 0 to 1); None means all."""
    if value is None:
        return 1.0
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"Trainer({name}=…) is an int (batches) or a float (a part of them), not {value!r}")
    if value < 0 or isinstance(value, float) and value > 1:
        raise ValueError(f"Trainer({name}=…) is a number of batches from 0 or a part from 0.0 to 1.0, not {value!r}")
    return value


def seconds(given: Any) -> float | None:
    """Convert a time to seconds: "days:hours:minutes:seconds", a timedelta, or a mapping of its arguments.

    >>> seconds("00:01:00:05"), seconds({"minutes": 2})
    (3605.0, 120.0)
    """
    if given is None:
        return None
    if isinstance(given, timedelta):
        return given.total_seconds()
    if isinstance(given, Mapping):
        return timedelta(**given).total_seconds()
    parts = str(given).split(":")
    if len(parts) != 4 or not all(part.isdigit() for part in parts):
        raise ValueError(
            f"Trainer(max_time=…) is 'DD:HH:MM:SS', a timedelta or a mapping of its arguments, not {given!r}"
        )
    days, hours, minutes, rest = map(int, parts)
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=rest).total_seconds()


def devices_of(accelerator: str, devices: Any) -> list[Any]:
    """Return the devices to train on, one for each process: the CPU any number of times, or existing GPUs.

    "auto" is the first GPU if there is one, else the CPU.
    """
    choice("accelerator", accelerator, ("auto", "cpu", "gpu", "cuda"))
    from .. import cuda

    on_gpu = accelerator in ("gpu", "cuda") or accelerator == "auto" and cuda.is_available()
    if not on_gpu:
        return [_device("cpu")] * _count(devices)
    there = cuda.device_count()
    if not there:
        raise RuntimeError(f"Trainer(accelerator={accelerator!r}): there is no GPU that can be used")
    numbers = _numbers(devices, there)
    if wrong := [n for n in numbers if not 0 <= n < there]:
        raise ValueError(
            f"Trainer(devices={devices!r}): there {'is' if there == 1 else 'are'} {there} GPU{'s' * (there > 1)}, "
            f"and none with number {wrong[0]}"
        )
    return [_device("cuda", n) for n in numbers]


def _count(devices: Any) -> int:
    if devices in ("auto", None):
        return 1
    if isinstance(devices, str) and devices.lstrip("-").isdigit():
        devices = int(devices)
    if isinstance(devices, (list, tuple)):
        return max(1, len(devices))
    return whole("devices", devices, 1)


def _numbers(devices: Any, there: int) -> list[int]:
    if devices in ("auto", None):
        return [0]
    if isinstance(devices, str) and "," in devices:
        return [int(part) for part in devices.split(",") if part.strip()]
    if isinstance(devices, (list, tuple)):
        return [int(n) for n in devices]
    count = int(devices)
    return list(range(there if count == -1 else whole("devices", count, 1)))
