"""Names of backends: which devices they serve, whether they are installed, what makes their transports.

https://pytorch.org/docs → torch.distributed.Backend
"""
from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from ..messages.extras import install

__all__ = ["Backend", "BackendConfig", "get_default_backend_for_device", "is_available", "is_backend_available",
           "is_gloo_available", "is_mpi_available", "is_nccl_available", "is_ucc_available", "is_xccl_available"]

OLD_NAMES = {"tcp": "gloo"}                                     # what older programs call them
MODULES = {"gloo": "shared_memory", "mpi": "mpi", "nccl": "nccl"}      # in transport/
MISSING = {"mpi": f"Distributed package doesn't have MPI built in\nInstall it with: {install('mpi')}",
           "nccl": f"Distributed package doesn't have NCCL built in\nIt needs CuPy with NCCL: {install('cuda12')}, or "
                   f"cupy-cuda13x",
           "xccl": "Distributed package doesn't have XCCL built in"}
Plugin = namedtuple("Plugin", ["creator_fn", "extended_api"])


class Backend(str):
    """The name of a way to communicate, in lower case. https://pytorch.org/docs → torch.distributed.Backend

    >>> from tensorgrad.distributed import Backend
    >>> Backend("GLOO"), Backend.MPI
    ('gloo', 'mpi')
    """

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    backend_capability: ClassVar[dict[str, list[str]]] = {GLOO: ["cpu", "cuda"], NCCL: ["cuda"], XCCL: ["xpu"],
                                                          UCC: ["cpu", "cuda"], MPI: ["cpu", "cuda"],
                                                          FAKE: ["cpu", "cuda", "hpu", "xpu"]}
    _plugins: ClassVar[dict[str, Plugin]] = {}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, OLD_NAMES.get(name.lower(), name.lower()))

    @classmethod
    def register_backend(cls, name: str, func: Callable[..., Any], extended_api: bool = False,
                         devices: str | list[str] | None = None) -> None:
        """Register a backend of one's own: `func(store, rank, world_size, timeout)` gives its Transport, or an object
        with the methods of ProcessGroup.

        https://pytorch.org/docs → torch.distributed.Backend.register_backend
        """
        lower = name.lower()
        if not hasattr(cls, name.upper()):
            setattr(cls, name.upper(), lower)
        if lower not in cls.backend_list:
            cls.backend_list.append(lower)
        if devices is None:
            warnings.warn(f"Device capability of {name} unspecified, assuming `cpu` and `cuda` or `xpu`. Please "
                          "specify it via the `devices` argument of `register_backend`.", stacklevel=2)
        known = ["cpu", "cuda"] if devices is None else [devices] if isinstance(devices, str) else list(devices)
        for device in known if devices is not None else ():
            cls.default_device_backend_map.setdefault(device, lower)
        cls.backend_capability[lower] = known
        cls._plugins[name.upper()] = Plugin(func, extended_api)


FORMAT = """ The custom backend string argument is invalid: {}.
                Custom backend string is an experimental feature where the backend string must be in the format:
                "<device_type1>:<backend1>,<device_type2>:<backend2>...". e.g. 'cpu:gloo,cuda:nccl'"""


class BackendConfig:
    """Which backend serves which kind of device. https://pytorch.org/docs → torch.distributed.BackendConfig

    >>> from tensorgrad.distributed import Backend, BackendConfig
    >>> BackendConfig(Backend("gloo")), BackendConfig(Backend("cpu:mpi,cuda:nccl"))
    (cpu:gloo,cuda:gloo, cpu:mpi,cuda:nccl)
    """

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, Backend] = {}
        backend = str(backend)
        if backend == Backend.UNDEFINED:
            self.device_backend_map = ({"cpu": Backend(Backend.GLOO)}
                                       | ({"cuda": Backend(Backend.NCCL)} if is_nccl_available() else {}))
        elif backend in Backend.backend_list:
            self.device_backend_map = dict.fromkeys(Backend.backend_capability[backend], Backend(backend))
        elif ":" in backend:
            for part in backend.split(","):
                pair = part.split(":")
                if len(pair) != 2:
                    raise ValueError(f"Invalid device:backend pairing: {part}.{FORMAT.format(backend)}")
                device, name = pair[0].strip(), pair[1].strip()
                if device in self.device_backend_map:
                    raise ValueError(f"Duplicate device type {device} in backend string: "
                                     f"{name}.{FORMAT.format(backend)}")
                self.device_backend_map[device] = Backend(name)
        else:
            warnings.warn(f"Device capability of {backend} unknown, assuming `cpu` and `cuda`. You can specify it in "
                          "`device:backend` format in `init_process_group` call.", stacklevel=2)
            self.device_backend_map = dict.fromkeys(("cpu", "cuda", "xpu"), Backend(backend))

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, Backend]:
        """Return {kind of device: backend}."""
        return self.device_backend_map


def is_available() -> bool:
    """Return True: ranks can work together. https://pytorch.org/docs → torch.distributed.is_available"""
    return True


def is_gloo_available() -> bool:
    """Return True: it needs nothing installed. https://pytorch.org/docs → torch.distributed.is_gloo_available"""
    return True


def is_mpi_available() -> bool:
    """Return True if mpi4py is installed. https://pytorch.org/docs → torch.distributed.is_mpi_available"""
    return find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """Return True if CuPy is installed with NCCL. https://pytorch.org/docs → torch.distributed.is_nccl_available"""
    found = find_spec("cupy_backends")
    return found is not None and any(True for place in found.submodule_search_locations or ()
                                     for _ in (Path(place) / "cuda" / "libs").glob("nccl.*.so"))


def is_ucc_available() -> bool:
    """Return False: there is no UCC here. https://pytorch.org/docs → torch.distributed.is_ucc_available"""
    return False


def is_xccl_available() -> bool:
    """Return False: there is no XCCL here. https://pytorch.org/docs → torch.distributed.is_xccl_available"""
    return False


def _is_installed(name: str) -> bool:
    known = {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available, "ucc": is_ucc_available,
             "xccl": is_xccl_available}
    return known[name]() if name in known else name.upper() in Backend._plugins


def is_backend_available(backend: str) -> bool:
    """Return True if all backends that a string names are installed.

    https://pytorch.org/docs → torch.distributed.is_backend_available
    """
    if ":" in backend:
        return all(_is_installed(name) for name in BackendConfig(Backend(backend)).device_backend_map.values())
    return _is_installed(Backend(backend))


def get_default_backend_for_device(device: Any) -> str:
    """Return the backend that a device has by default.

    https://pytorch.org/docs → torch.distributed.get_default_backend_for_device
    """
    from ..device import device as Device
    kind = Device(device).type if isinstance(device, str) else device.type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def check(config: BackendConfig) -> None:
    """Check that all backends are there.

    Errors: AssertionError for an unknown name, RuntimeError for one that is not installed.
    """
    for name in config.device_backend_map.values():
        if name in MISSING and not _is_installed(name):
            raise RuntimeError(MISSING[name])
        if name not in MODULES and name.upper() not in Backend._plugins:
            raise AssertionError(f"Unknown c10d backend type {name.upper()}")


def creator(name: str) -> Callable[..., Any]:
    """Return the function `create(store, rank, size, timeout, name, ranks)` of a backend."""
    if name.upper() in Backend._plugins:
        plugin = Backend._plugins[name.upper()]
        return lambda store, rank, size, timeout, name, ranks=None: plugin.creator_fn(store, rank, size, timeout)
    return import_module(f"{__package__}.transport.{MODULES[name]}").create
