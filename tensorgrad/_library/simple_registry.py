"""Registrations of operators other than kernels of devices, under PyTorch's names."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._ops import OPERATORS

__all__ = ["singleton"]


class Kernel(NamedTuple):
    """A function, and the place in the program that registered it."""

    func: Callable[..., Any]
    source: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)


class FakeImplHolder(NamedTuple):
    """The function that computes the shapes of results, if there is one."""

    qualname: str
    kernel: Kernel | None


class SimpleOperatorEntry:
    """The registrations of one operator."""

    def __init__(self, qualname: str) -> None:
        self.qualname = qualname

    @property
    def fake_impl(self) -> FakeImplHolder:
        """The function that computes shapes."""
        operator = OPERATORS.get(self.qualname)
        source = None if operator is None else operator.sources.get("Meta")
        return FakeImplHolder(self.qualname, None if operator is None or source is None
                              else Kernel(operator.kernels["Meta"], source))

    abstract_impl = fake_impl


class SimpleLibraryRegistry:
    """The entries of all operators.

    >>> import tensorgrad as torch
    >>> torch._library.simple_registry.singleton.find("doc::unknown").fake_impl.kernel is None
    True
    """

    def find(self, qualname: str) -> SimpleOperatorEntry:
        """Return the entry of an operator `namespace::name`, which need not be defined."""
        return SimpleOperatorEntry(qualname)


singleton = SimpleLibraryRegistry()
