"""Neural networks: modules, parameters, functions, initialization, utilities. See PyTorch's `torch.nn`."""
from importlib import import_module as _import_module

from ..messages.missing_names import MissingName as _MissingName
from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "factory_kwargs",
           "functional", "init", "modules", "parameter", "utils", *modules.__all__]

_LAZY = ("attention", "common_types", "grad", "parallel")


def __getattr__(name):
    """Import rarely used parts on first access."""
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    if name == "DataParallel":
        return _import_module(f"{__name__}.parallel").DataParallel
    raise _MissingName(__name__, name)


def factory_kwargs(kwargs):
    """Return the keywords `device`, `dtype`, `memory_format`, merged with a dict of these under `factory_kwargs`.

    >>> import tensorgrad as torch
    >>> torch.nn.factory_kwargs({"dtype": torch.float64})
    {'dtype': torch.float64}
    """
    known = ("device", "dtype", "memory_format")
    given = dict(kwargs or {})
    merged = dict(given.pop("factory_kwargs", {}))
    if unexpected := given.keys() - set(known):
        raise TypeError(f"unexpected kwargs {unexpected}")
    for name in known:
        if name in given and name in merged:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
    return {**merged, **given}
