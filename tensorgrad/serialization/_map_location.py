"""Devices of the storages in a file: `map_location`, and devices that a program registers."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api import device
from ..api.storage_objects import TypedStorage, UntypedStorage
from ..device import device as Device
from ..storage.base import Storage
from ._allowed import Passed, trusting

NO_CUDA = ("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
           "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
           "storages to the CPU.")


def validate_cuda_device(location: Any) -> int:
    """Return the index of a CUDA device. RuntimeError if it does not exist.
    https://pytorch.org/docs → torch.serialization.validate_cuda_device
    """
    from .. import cuda
    index = Device(location).index or 0
    if not cuda.is_available():
        raise RuntimeError(NO_CUDA)
    if index >= (count := cuda.device_count()):
        raise RuntimeError(f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is "
                           f"{count}. Please use torch.load with map_location to map your storages to an existing "
                           f"device.")
    return index


def _tag(storage: Any) -> str | None:
    where = storage.device
    return f"cuda:{where.index or 0}" if where.type == "cuda" else str(where)


def _restored(storage: Any, location: str) -> Any:
    try:
        where = Device(location)
    except (RuntimeError, ValueError):
        return None
    if where.type == "cuda":
        validate_cuda_device(where)
    elif (where.type not in ("cpu", "meta") and str(where) not in Storage.by_device
          and where.type not in Storage.by_device):
        return None
    return storage.to(where)


registry: list[tuple[Any, Callable[[Any], str | None], Callable[[Any, str], Any]]] = [(20, _tag, _restored)]


def register_package(priority: int, tagger: Callable[[Any], str | None],
                     deserializer: Callable[[Any, str], Any]) -> None:
    """Register how files name storages of a kind of device, and how those are moved to it; lower priorities are
    tried first. https://pytorch.org/docs → torch.serialization.register_package"""
    registry.append((priority, tagger, deserializer))
    registry.sort(key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """Return the name of a storage's device in files. https://pytorch.org/docs → torch.serialization.location_tag"""
    for _, tagger, _ in registry:
        place = tagger(storage)
        if place:
            return place
    raise RuntimeError(f"don't know how to determine data location of torch.storage.{type(storage).__name__}")


def default_restore_location(storage: Any, location: str) -> Any:
    """Move a storage to the device that a file names.
    https://pytorch.org/docs → torch.serialization.default_restore_location
    """
    for _, _, deserializer in registry:
        placed = deserializer(storage, location)
        if placed is not None:
            return placed
    raise RuntimeError(f"don't know how to restore data location of torch.storage.{type(storage).__name__} (tagged "
                       f"with {location:.80})")


class Location:
    """Applies `map_location` to storages."""

    def __init__(self, given: Any) -> None:
        if given is not None and not isinstance(given, (str, Device, dict)) and not callable(given):
            raise TypeError(f"'{type(given).__name__}' object is not callable")
        self.given = given

    def place(self, storage: UntypedStorage, place: str) -> UntypedStorage:
        """Return the storage on its device."""
        given = self.given
        if callable(given) and not isinstance(given, (str, Device)):
            moved = trusting(given, storage, place)
            if moved is None:
                moved = default_restore_location(storage, place)
        else:
            target = place if given is None else given.get(place, place) if isinstance(given, dict) else given
            moved = default_restore_location(storage, target if isinstance(target, str) else str(device(target)))
        if isinstance(moved, TypedStorage):
            moved = moved._untyped_storage
        if not isinstance(moved, UntypedStorage) or moved.nbytes() != storage.nbytes():
            raise Passed(TypeError(f"map_location gave {type(moved).__name__} for a storage, and not a storage of the "
                                   f"same size"))
        return moved
