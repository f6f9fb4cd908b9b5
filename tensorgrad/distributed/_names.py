"""Modules of torch.distributed that packages import names from wherever there is a torch.distributed: to annotate, and
to ask what is an instance.

Their classes can be named and derived from, not made; their functions say what is missing when they are called.
"""
from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..messages.unsupported import unsupported

_REASON = "a model is whole in each process; torch.nn.parallel.DistributedDataParallel trains copies of it"
MODULES = """tensor tensor.placement_types tensor.parallel tensor.experimental tensor._utils _tensor
fsdp fsdp.fully_sharded_data_parallel fsdp.wrap fsdp.api fsdp.sharded_grad_scaler _composable
_composable.fsdp""".split()


class Names(ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        public = self.__name__.replace(__package__.partition(".")[0], "torch", 1)
        found = _class(public, name) if name.lstrip("_")[:1].isupper() else unsupported(name, public, _REASON)[name]
        setattr(self, name, found)
        return found


PLACEMENTS = ("Partial", "Replicate", "Shard")          # plain values, which packages make when they are imported


def _class(module: str, name: str) -> type:
    if name in PLACEMENTS:
        return type(name, (), {"__init__": lambda self, *args: vars(self).update(args=args), "__module__": module,
                               "__doc__": "Where a tensor would lie."})

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"tensorgrad has no {module}.{name}: {_REASON}")
    return type(name, (), {"__init__": __init__, "__module__": module, "__doc__": f"Not there: {_REASON}."})


def make() -> None:
    """Put the modules where imports find them."""
    for name in MODULES:
        full = f"{__package__}.{name}"
        module = sys.modules[full] = Names(full, f"Names of torch.distributed.{name}: {_REASON}.")
        module.__spec__, module.__path__ = ModuleSpec(full, None, is_package=True), []
        parent, _, last = full.rpartition(".")
        setattr(sys.modules[parent], last, module)
