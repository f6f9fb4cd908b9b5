"""CUDA devices: CuPy arrays, or the pretend devices of `simulated.py` where the environment asks for them.

Each device has a separate storage class, so that equal dispatch keys mean equal devices. All of them
inherit from CudaStorage: a kernel registered for 'cuda' serves them all.
"""
from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from ..dtype import FROM_NUMPY, holds_complex
from ..messages.extras import install
from ..runtime.small_floats import converted, fill, known
from .base import Storage
from .out_of_memory import OutOfMemoryError


class CudaStorage(Storage):
    """The base class of all CUDA devices' storages."""

    index = 0


class MissingCuda(ImportError, AssertionError):
    """CuPy is not installed: an ImportError, and as well the AssertionError that a PyTorch built without CUDA
    raises.
    """


def simulated_count() -> int:
    return int(os.environ.get("TENSORGRAD_SIMULATED_CUDA") or 0)


def import_cupy() -> Any:
    try:
        import cupy  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingCuda(
            f"CUDA tensors need CuPy, which is not installed: {install('cuda13')}, or cupy-cuda12x, to match the "
            "driver. Without a GPU, TENSORGRAD_SIMULATED_CUDA=1 gives a pretend device. (Torch not compiled with CUDA "
            "enabled.)") from error
    return cupy


@functools.cache
def device_count() -> int:
    """Return the number of CUDA devices, simulated ones included; 0 without CuPy or a driver."""
    if simulated_count():
        return simulated_count()
    try:
        return int(import_cupy().cuda.runtime.getDeviceCount())
    except Exception:  # without CuPy, a driver or a device there are none
        return 0


def cuda_backend(index: int) -> type[CudaStorage]:
    """The storage class of CUDA device `index`, made on first use."""
    if not simulated_count():
        import_cupy()
    if device_count() == 0:
        raise RuntimeError("No CUDA GPUs are available")
    if index >= device_count():
        raise RuntimeError(f"CUDA error: invalid device ordinal\ncuda:{index} is not among the {device_count()} "
                           f"devices that there are")
    name = f"cuda:{index}"
    if name not in Storage.by_device:
        (_simulated_backend if simulated_count() else _cupy_backend)(name, index)
    return Storage.by_device[name]  # type: ignore[return-value]


Storage.makers["cuda"] = cuda_backend


def _simulated_backend(name: str, index_: int) -> None:
    from . import simulated

    class SimulatedCudaStorage(CudaStorage):
        device = name
        index = index_
        module = simulated.module_of(index_)
        array_type = simulated.SimulatedArray

        @classmethod
        def asarray(cls, data: Any, dtype: Any = None) -> Any:
            if isinstance(data, simulated.SimulatedArray):
                if data.index != cls.index:
                    simulated.transfers["between"] += 1
                    data = simulated.SimulatedArray(data.values.copy(), cls.index)
                return data if dtype is None else data.astype(dtype, copy=False)
            return simulated.send(np.asarray(data, dtype), cls.index)

        @classmethod
        def host(cls, array: Any) -> np.ndarray[Any, Any]:
            return simulated.fetch(array)

        @classmethod
        def cast(cls, array: Any, dtype: Any) -> Any:
            found = converted(array.values, np.dtype(dtype))
            return array if found is array.values else simulated.SimulatedArray(found, array.index)

        @staticmethod
        def assign(array: Any, values: Any) -> None:
            if array.dtype.kind == "V" or getattr(values, "dtype", array.dtype).kind == "V":
                fill(array.values, getattr(values, "values", values))
            else:
                array[...] = values

        @classmethod
        def aliases(cls, a: Any, b: Any) -> bool:
            return Storage.aliases.__func__(cls, a.values, b.values)  # type: ignore[attr-defined,no-any-return]


def _cupy_backend(name: str, index_: int) -> None:
    cupy = import_cupy()
    if not any(issubclass(backend, CudaStorage) for backend in Storage.by_device.values()):
        report_full_memory(cupy)

    class CupyStorage(CudaStorage):
        device = name
        index = index_
        module = cupy
        array_type = cupy.ndarray

        @classmethod
        def asarray(cls, data: Any, dtype: Any = None) -> Any:
            if isinstance(data, np.ndarray) and data.dtype.kind == "V":
                data = data.view(cls.held(data.dtype))
            with cupy.cuda.Device(cls.index):
                return cupy.asarray(data, None if dtype is None else cls.held(dtype))

        @classmethod
        def host(cls, array: Any) -> np.ndarray[Any, Any]:
            return known(cupy.asnumpy(array))  # type: ignore[no-any-return]

        @classmethod
        def held(cls, dtype: Any) -> Any:
            return of_ml_dtypes(np.dtype(dtype))

    def guard(function: Any) -> Any:
        def on_this_device(*args: Any, **kwargs: Any) -> Any:
            with cupy.cuda.Device(index_):
                return function(*args, **kwargs)
        return on_this_device
    if device_count() > 1:
        CupyStorage.guard = staticmethod(guard)


@functools.cache
def of_ml_dtypes(dtype: Any) -> Any:
    """Return the dtype under which CuPy computes with the values of a NumPy dtype: one of ml_dtypes' for bfloat16."""
    if dtype.kind != "V":
        return dtype
    if holds_complex(dtype):
        raise NotImplementedError("complex32 on CUDA: CuPy has no dtype for pairs of halves; use complex64")
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"{FROM_NUMPY[dtype].name} on CUDA needs the package ml_dtypes: "
                          f"{install('bfloat16')}") from error
    return np.dtype(getattr(ml_dtypes, FROM_NUMPY[dtype].name))


def report_full_memory(cupy: Any) -> None:
    """Let CuPy's allocator raise PyTorch's error where there is no memory left."""
    allocate = cupy.cuda.get_allocator()

    def allocated(size: int) -> Any:
        try:
            return allocate(size)
        except cupy.cuda.memory.OutOfMemoryError as error:
            free, total = cupy.cuda.Device().mem_info
            raise OutOfMemoryError.on(cupy.cuda.Device().id, size, total, free) from error
    cupy.cuda.set_allocator(allocated)
