"""Containers of modules: in a chain, in parallel on one input, on the entries of a table, or on the slices of a
tensor.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ... import api as tg
from ...nn import functional as F
from .module import Module
from .tape import Tape

__all__ = ["Concat", "ConcatTable", "Container", "DepthConcat", "Parallel", "ParallelTable", "Sequential"]


class Container(Module):
    """Base of containers: `add` appends a module, `get(i)` and indexing return one."""

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        self.modules = list(modules)

    def children(self) -> list[Module]:
        return self.modules

    def add(self, module: Any) -> Any:
        """Append a module, and return the container."""
        self.modules.append(module)
        return self

    def get(self, index: int) -> Any:
        """Return the module at an index."""
        return self.modules[index]

    def size(self) -> int:
        """Return the number of modules."""
        return len(self.modules)

    def __len__(self) -> int:
        return len(self.modules)

    def __getitem__(self, index: int) -> Any:
        return self.modules[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.modules)

    def insert(self, module: Any, index: int) -> Any:
        """Insert a module at an index, and return the container."""
        if not 0 <= index <= len(self.modules):
            raise IndexError(f"index should be between 0 and {len(self.modules)}, got {index}")
        self.modules.insert(index, module)
        return self

    def remove(self, index: int) -> None:
        """Remove the module at an index."""
        del self.modules[index]

    def _replace_children(self, made: Callable[[Module], Any]) -> None:
        self.modules = [made(m) for m in self.modules]

    def __repr__(self) -> str:
        lines = [f"  ({i}): {str(m).replace(chr(10), chr(10) + '  ')}" for i, m in enumerate(self.modules)]
        return "\n".join([f"nn.{type(self).__name__}{self._arguments()} {{", *self._heading(), *lines, "}"])

    def _heading(self) -> list[str]:
        return []


class Sequential(Container):
    """Modules in a chain.

    >>> import tensorgrad as torch
    >>> from tensorgrad.legacy import nn
    >>> nn.Sequential().add(nn.Linear(10, 25)).add(nn.Tanh())
    nn.Sequential {
      [input -> (0) -> (1) -> output]
      (0): nn.Linear(10, 25)
      (1): nn.Tanh
    }
    """

    def compute(self, tape: Tape, input: Any) -> Any:
        for module in self.modules:
            input = module.record(tape, input)
        return input

    def _heading(self) -> list[str]:
        return [f"  [input -> {''.join(f'({i}) -> ' for i in range(len(self.modules)))}output]"]


class ConcatTable(Container):
    """Applies each module to the input; returns the table of their outputs."""

    def compute(self, tape: Tape, input: Any) -> Any:
        return [module.record(tape, input) for module in self.modules]


class ParallelTable(Container):
    """Applies a module to each entry of a table; returns the table of their outputs."""

    def compute(self, tape: Tape, input: Any) -> Any:
        return [module.record(tape, x) for module, x in zip(self.modules, input)]


class Concat(Container):
    """Applies each module to the input, and concatenates their outputs along an axis."""

    def __init__(self, dimension: int, *modules: Any) -> None:
        super().__init__(*modules)
        self.dimension = dimension

    def compute(self, tape: Tape, input: Any) -> Any:
        return tg.cat(self._aligned([module.record(tape, input) for module in self.modules]), self.dimension)

    def _aligned(self, outputs: list[Any]) -> list[Any]:
        return outputs

    def _arguments(self) -> str:
        return f"({self.dimension})"


class DepthConcat(Concat):
    """`Concat` of outputs of different sizes: the smaller ones are centred and padded with zeros."""

    def _aligned(self, outputs: list[Any]) -> list[Any]:
        sizes = [max(o.shape[i] for o in outputs) for i in range(outputs[0].dim())]

        def grown(o: Any) -> Any:
            pads = []
            for axis in reversed(range(o.dim())):
                missing = 0 if axis == self.dimension % o.dim() else sizes[axis] - o.shape[axis]
                pads += [missing // 2, missing - missing // 2]
            return F.pad(o, pads)
        return [grown(o) for o in outputs]


class Parallel(Container):
    """Applies a module to each slice of the input along an axis, and concatenates their outputs along another."""

    def __init__(self, inputDimension: int, outputDimension: int, *modules: Any) -> None:
        super().__init__(*modules)
        self.inputDimension, self.outputDimension = inputDimension, outputDimension

    def compute(self, tape: Tape, input: Any) -> Any:
        slices = input.unbind(self.inputDimension)
        return tg.cat([module.record(tape, x) for module, x in zip(self.modules, slices)], self.outputDimension)

    def _arguments(self) -> str:
        return f"({self.inputDimension}, {self.outputDimension})"
