"""The current CUDA device, and properties of devices. https://pytorch.org/docs/stable/cuda.html"""
from __future__ import annotations

import os
from typing import Any, NamedTuple

from ..device import defaults
from ..device import device as _Device
from ..storage.base import Storage
from ..storage.cuda import CudaStorage, cuda_backend, device_count, import_cupy, simulated_count

__all__ = ["can_device_access_peer", "current_device", "device", "device_count", "device_of", "get_arch_list",
           "get_device_capability", "get_device_name", "get_device_properties", "get_gencode_flags", "init",
           "is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported", "set_device", "synchronize"]


def is_available() -> bool:
    """Return True if there is a CUDA device to compute on. https://pytorch.org/docs → torch.cuda.is_available"""
    return device_count() > 0


def init() -> None:
    """Initialize CUDA. Raises an error that says what is missing. https://pytorch.org/docs → torch.cuda.init"""
    cuda_backend(defaults.current_cuda)


def is_initialized() -> bool:
    """Return True if a CUDA device has been used. https://pytorch.org/docs → torch.cuda.is_initialized"""
    return any(issubclass(backend, CudaStorage) for backend in Storage.by_device.values())


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return True if devices store bfloat16 tensors, by emulation: they compute in float32.

    https://pytorch.org/docs → torch.cuda.is_bf16_supported
    """
    return is_available() and including_emulation


def is_tf32_supported() -> bool:
    """Return True if matrix products can use TensorFloat-32. https://pytorch.org/docs → torch.cuda.is_tf32_supported"""
    return is_available() and get_device_capability() >= (8, 0)


# ── the current device ────────────────────────────────────────────────────────────────────────────────────────────────


def index_of(spec: Any, optional: bool = True) -> int:
    """Return the number of a device, given in any form; with `optional`, None and 'cuda' mean the current one."""
    if isinstance(spec, int):
        return spec
    if isinstance(spec, device):
        return spec.idx
    found = None if spec is None else _Device(spec)
    if found is not None and found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {spec}")
    if found is not None and found.index is not None:
        return found.index
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{spec}")
    return current_device()


def backend_at(spec: Any) -> type[CudaStorage]:
    """Return the storage class of a device; an error says what is missing."""
    init()
    index = index_of(spec)
    return cuda_backend(index if index >= 0 else defaults.current_cuda)


def current_device() -> int:
    """Return the number of the device that 'cuda' means. https://pytorch.org/docs → torch.cuda.current_device"""
    init()
    return defaults.current_cuda


def set_device(device: Any) -> None:
    """Choose the device that 'cuda' means in this thread. https://pytorch.org/docs → torch.cuda.set_device"""
    index = index_of(device, optional=False)
    if index >= 0:
        cuda_backend(index)
        defaults.current_cuda = index


class device:
    """Make 'cuda' mean this device inside a `with` block; a negative number changes nothing.

    https://pytorch.org/docs → torch.cuda.device
    """

    def __init__(self, device: Any) -> None:
        self.idx = index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = defaults.current_cuda
        set_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        defaults.current_cuda = self.prev_idx


class device_of(device):
    """Make 'cuda' mean a tensor's device inside a `with` block; a tensor on the CPU changes nothing.

    https://pytorch.org/docs → torch.cuda.device_of
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def synchronize(device: Any = None) -> None:
    """Wait until the device has finished its work so far. https://pytorch.org/docs → torch.cuda.synchronize"""
    backend = backend_at(device)
    if not simulated_count():
        import_cupy().cuda.Device(backend.index).synchronize()


# ── properties ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _CudaDeviceProperties(NamedTuple):
    """The properties of a device; a simulated one has those of the host."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    L2_cache_size: int
    max_threads_per_multi_processor: int

    def __repr__(self) -> str:
        return (f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
                f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
                f"L2_cache_size={self.L2_cache_size >> 20}MB)")


def get_device_properties(device: Any = None) -> _CudaDeviceProperties:
    """Name, version, memory and processors of a device. https://pytorch.org/docs → torch.cuda.get_device_properties"""
    init()
    index = index_of(device)
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    if simulated_count():
        return _CudaDeviceProperties(f"simulated device {index}", 0, 0, host_memory()[1], os.cpu_count() or 1, 1, 0, 1)
    found = import_cupy().cuda.runtime.getDeviceProperties(index)
    name = found["name"]
    return _CudaDeviceProperties(name.decode() if isinstance(name, bytes) else str(name), found["major"],
                                 found["minor"], found["totalGlobalMem"], found["multiProcessorCount"],
                                 found["warpSize"], found["l2CacheSize"],
                                 found["maxThreadsPerMultiProcessor"])


def get_device_name(device: Any = None) -> str:
    """Return the device's name. https://pytorch.org/docs → torch.cuda.get_device_name"""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the device's compute capability (major, minor); (0, 0) for a simulated one."""
    found = get_device_properties(device)
    return found.major, found.minor


def host_memory() -> tuple[int, int]:
    """Bytes of main memory that are free, and that there are."""
    page = os.sysconf("SC_PAGE_SIZE")
    return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page


def get_arch_list() -> list[str]:
    """Return the architectures of the devices, for which kernels are compiled on first use."""
    return sorted({"sm_{}{}".format(*get_device_capability(i)) for i in range(device_count())} - {"sm_00"})


def get_gencode_flags() -> str:
    """Return `get_arch_list()` as flags of the CUDA compiler."""
    return " ".join(f"-gencode compute=compute_{arch[3:]},code={arch}" for arch in get_arch_list())


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Return True if one device can read another's memory.

    https://pytorch.org/docs → torch.cuda.can_device_access_peer
    """
    init()
    here, there = index_of(device), index_of(peer_device)
    for index, what in (here, "device"), (there, "peer device"):
        if not 0 <= index < device_count():
            raise AssertionError(f"Invalid {what} id")
    return False if simulated_count() else bool(import_cupy().cuda.runtime.deviceCanAccessPeer(here, there))
