"""Random numbers of the CUDA devices. https://pytorch.org/docs/stable/cuda.html#random-number-generator

Each device has a generator on the host, whose numbers are copied to it: they are reproducible, but differ from
PyTorch's on CUDA.
"""
from __future__ import annotations

from typing import Any

from ..api.random import cuda_generator, generator_of, seed_cuda
from ..device import defaults
from .devices import backend_at, device_count, index_of

__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
           "set_rng_state",
           "set_rng_state_all"]


def _generator(device: Any = None) -> Any:
    return generator_of(backend_at(device), None)


def manual_seed(seed: int) -> None:
    """Seed the generator of the current device. https://pytorch.org/docs → torch.cuda.manual_seed"""
    seed_cuda(int(seed), defaults.current_cuda)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices. https://pytorch.org/docs → torch.cuda.manual_seed_all"""
    seed_cuda(int(seed))


def seed() -> None:
    """Seed the generator of the current device with a number from the system.

    https://pytorch.org/docs → torch.cuda.seed
    """
    seed_cuda(cuda_generator(defaults.current_cuda).seed(), defaults.current_cuda)


def seed_all() -> None:
    """Seed all devices with one number from the system's entropy. https://pytorch.org/docs → torch.cuda.seed_all"""
    seed_cuda(cuda_generator(defaults.current_cuda).seed())


def initial_seed() -> int:
    """Return the seed of the current device's generator. https://pytorch.org/docs → torch.cuda.initial_seed"""
    return int(_generator().initial_seed())


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a device's generator, a tensor of bytes. https://pytorch.org/docs → torch.cuda.get_rng_state"""
    return _generator(device).get_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of a device's generator; without devices there is nothing to set.

    https://pytorch.org/docs → torch.cuda.set_rng_state
    """
    if device_count():
        _generator(index_of(device)).set_state(new_state)


def get_rng_state_all() -> list[Any]:
    """The states of all devices' generators. https://pytorch.org/docs → torch.cuda.get_rng_state_all"""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of all devices' generators. https://pytorch.org/docs → torch.cuda.set_rng_state_all"""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)
