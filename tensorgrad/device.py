"""Devices: a kind of machine and an index. https://pytorch.org/docs/stable/tensor_attributes.html#torch.device"""
from __future__ import annotations

import threading
from typing import Any

from .runtime.decorating import decorated

KINDS = {"cpu", "cuda", "meta"}  # Storage subclasses add the names of their devices
ACCEPTED = ("cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, "
            "hpu, mtia, privateuseone")


class _Defaults(threading.local):
    stack: tuple[device, ...] = ()
    current_cuda = 0


defaults = _Defaults()
_global_default: list[device] = []


class device:
    """The device of a tensor, which equals its spelling. As a context manager, the device of new tensors.

    >>> import tensorgrad as torch
    >>> torch.device('cuda', 1), torch.device('cpu') == 'cpu'
    (device(type='cuda', index=1), True)
    """

    __slots__ = ("type", "index", "_text")

    def __init__(self, type: Any = None, index: int | None = None, *, device: Any = None) -> None:
        spec = type if device is None else device
        if isinstance(spec, int) and not isinstance(spec, bool):
            kind, index = "cuda", spec
        elif isinstance(spec, str):
            kind, colon, number = spec.partition(":")
            if not spec:
                raise RuntimeError("Device string must not be empty")
            if (not kind.isascii() or not kind.replace("_", "a").isalpha()
                    or colon and (not number.isdigit() or number[0] == "0" != number)):
                raise RuntimeError(f"Invalid device string: '{spec}'")
            # all of PyTorch's kinds make devices, if only for comparisons
            if kind not in KINDS and f" {kind}," not in f" {ACCEPTED},":
                raise RuntimeError(f"Expected one of {ACCEPTED} device type at start of device string: {spec}")
            if colon:
                if index is not None:
                    raise RuntimeError("type (string) must not include an index because index was passed "
                                       f"explicitly: {spec}")
                index = int(number)
        elif hasattr(spec, "type") and hasattr(spec, "index"):
            kind, index = spec.type, spec.index
        else:
            raise TypeError(f"device(): argument 'type' must be str, not {spec.__class__.__name__}")
        if index is not None and index < 0:
            raise RuntimeError(f"Device index must be non-negative, got {index}")
        self.type: str = kind
        self.index: int | None = index
        self._text = kind if index is None else f"{kind}:{index}"

    @property
    def value(self) -> str:
        return self._text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, device):
            return self._text == other._text
        return self._text == other if isinstance(other, str) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> Any:
        return rebuild, (self.type, self.index)

    def __enter__(self) -> device:
        defaults.stack = (*defaults.stack, self)
        return self

    def __exit__(self, *exception: object) -> None:
        defaults.stack = defaults.stack[:-1]

    def __call__(self, function: Any) -> Any:
        return decorated(function, lambda: self)


CPU = device("cpu")


def rebuild(type: str, index: int | None) -> device:
    """Return the device of a pickle. Pickles name this function, because the class may be renamed `torch.device`."""
    return device(type, index)


def get_default_device() -> device:
    """The device that new tensors are made on. https://pytorch.org/docs → get_default_device"""
    if defaults.stack:
        return defaults.stack[-1]
    return _global_default[0] if _global_default else CPU


_Device = device


def set_default_device(device: Any) -> None:
    """Choose the device that new tensors are made on; None means the CPU."""
    _global_default[:] = [] if device is None else [_Device(device)]
