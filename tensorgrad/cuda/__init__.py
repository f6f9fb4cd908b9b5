"""CUDA devices: CuPy's, or simulated ones (TENSORGRAD_SIMULATED_CUDA=2). https://pytorch.org/docs/stable/cuda.html

Without CuPy, a driver or a GPU, `is_available()` is False and everything else that needs a device says what is missing.
"""
from __future__ import annotations

from typing import Any

from ..api.random import cuda_generator, seed_cuda
from ..device import defaults
from ..device import device as _Device
from ..storage.cuda import cuda_backend, device_count, import_cupy, simulated_count

__all__ = ["current_device", "device", "device_count", "device_of", "empty_cache", "get_device_capability", "get_device_name", "get_rng_state",
           "get_rng_state_all", "init", "initial_seed", "is_available", "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all",
           "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved", "reset_peak_memory_stats", "seed",
           "seed_all", "set_device", "set_rng_state", "set_rng_state_all", "synchronize", "transfers"]


def is_available() -> bool:
    """Whether there is a CUDA device to compute on. https://pytorch.org/docs → torch.cuda.is_available"""
    return device_count() > 0


def init() -> None:
    """Prepare CUDA: an error here says what is missing."""
    cuda_backend(current_device())


def is_initialized() -> bool:
    """Whether a CUDA device has been used."""
    from ..storage.base import Storage
    return any(name.startswith("cuda") for name in Storage.by_device)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 tensors can live there."""
    return is_available()


def index_of(spec: Any) -> int:
    """The number of a device given as a number, a name, a device, or None for the current one."""
    if spec is None:
        return current_device()
    if isinstance(spec, int):
        return spec if spec >= 0 else current_device()
    found = _Device(spec)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {spec}")
    return current_device() if found.index is None else found.index


def current_device() -> int:
    """The number of the device that 'cuda' stands for."""
    return defaults.current_cuda


def set_device(device: Any) -> None:
    """Choose the device that 'cuda' stands for."""
    index = index_of(device)
    cuda_backend(index)
    defaults.current_cuda = index


class device:
    """'cuda' stands for this device inside the block. https://pytorch.org/docs → torch.cuda.device"""

    def __init__(self, device: Any) -> None:
        self.idx = index_of(device)

    def __enter__(self) -> None:
        self.before = defaults.current_cuda
        set_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        defaults.current_cuda = self.before


class device_of(device):
    """'cuda' stands for the device of a tensor inside the block; nothing changes if that is the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)

    def __enter__(self) -> None:
        self.before = defaults.current_cuda
        defaults.current_cuda = self.idx


def synchronize(device: Any = None) -> None:
    """Wait until the device has done what was asked of it."""
    index = index_of(device)
    cuda_backend(index)
    if not simulated_count():
        cupy = import_cupy()
        with cupy.cuda.Device(index):
            cupy.cuda.Device(index).synchronize()


def get_device_name(device: Any = None) -> str:
    """What the device is called."""
    index = index_of(device)
    cuda_backend(index)
    if simulated_count():
        return f"simulated device {index}"
    name = import_cupy().cuda.runtime.getDeviceProperties(index)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The (major, minor) version of what the device can do; (0, 0) for a simulated one."""
    index = index_of(device)
    cuda_backend(index)
    if simulated_count():
        return 0, 0
    text = import_cupy().cuda.Device(index).compute_capability
    return int(text[:-1]), int(text[-1])


# ── random numbers ────────────────────────────────────────────────────────────────────────────────────────────────────


def manual_seed(seed: int) -> None:
    """Seed the generator of the current device."""
    seed_cuda(int(seed), current_device())


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices."""
    seed_cuda(int(seed))


def seed() -> None:
    """Seed the generator of the current device with a number from the system."""
    cuda_generator(current_device()).seed()


def seed_all() -> None:
    """Seed all devices with one number from the system."""
    seed_cuda(cuda_generator(current_device()).seed())


def initial_seed() -> int:
    """What the generator of the current device was seeded with."""
    return cuda_generator(current_device()).initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a device's generator."""
    return cuda_generator(index_of(device)).get_state()  # type: ignore[attr-defined]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of a device's generator."""
    cuda_generator(index_of(device)).set_state(new_state)  # type: ignore[attr-defined]


def get_rng_state_all() -> list[Any]:
    """The states of all devices' generators."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of all devices' generators."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_peak: dict[int, int] = {}


def _pool(device: Any) -> tuple[int, Any]:
    """The device's number and CuPy's memory pool; None where devices are simulated, whose memory is the host's."""
    index = index_of(device)
    if not is_available() or simulated_count():
        return index, None
    cupy = import_cupy()
    with cupy.cuda.Device(index):
        return index, cupy.get_default_memory_pool()


def memory_allocated(device: Any = None) -> int:
    """Bytes that arrays occupy on the device."""
    index, pool = _pool(device)
    used = 0 if pool is None else int(pool.used_bytes())
    _peak[index] = max(_peak.get(index, 0), used)
    return used


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that memory_allocated has reported since the peak was reset."""
    memory_allocated(device)
    return _peak[index_of(device)]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Start counting the peak anew."""
    _peak.pop(index_of(device), None)


def memory_reserved(device: Any = None) -> int:
    """Bytes that CuPy's pool holds on the device."""
    _, pool = _pool(device)
    return 0 if pool is None else int(pool.total_bytes())


max_memory_reserved = memory_reserved


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free on the device, and bytes that it has."""
    index = index_of(device)
    cuda_backend(index)
    if simulated_count():
        raise RuntimeError("simulated devices have no memory of their own")
    with import_cupy().cuda.Device(index) as chosen:
        return chosen.mem_info  # type: ignore[no-any-return]


def empty_cache() -> None:
    """Give memory that no array occupies back to the device."""
    _, pool = _pool(None)
    if pool is not None:
        pool.free_all_blocks()


def transfers() -> dict[str, int]:
    """How many copies the simulated devices have made: to a device, to the host, between devices."""
    from ..storage import simulated
    return dict(simulated.transfers)
