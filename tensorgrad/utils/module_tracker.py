"""Track which modules of a model run, forward or backward.

https://pytorch.org/docs → torch.utils.module_tracker
"""
from __future__ import annotations

import logging
import weakref
from functools import partial
from typing import Any

from .._tensor import Tensor
from ..autograd.graph import register_multi_grad_hook
from ..core.engine import ExecutionEngine
from ..core.mode import mode
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]
logger = logging.getLogger(__name__)


class ModuleTracker:
    """A `with` block that knows the names of the modules that run: `parents` always contains "Global".

    >>> import tensorgrad as torch
    >>> from tensorgrad.utils.module_tracker import ModuleTracker
    >>> class Twice(torch.nn.Module):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents), tracker.is_bw)
    ...         return 2 * x
    >>> with ModuleTracker() as tracker:
    ...     y = torch.nn.Sequential(Twice())(torch.ones(1))
    ['Global', 'Sequential', 'Sequential.0'] False
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._waits = False         # True if a callback ends the backward
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """True while a backward runs."""
        return mode.sweep is not None

    def __enter__(self) -> ModuleTracker:
        self._handles = [register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after)]
        return self

    def __exit__(self, *exception: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _name(self, module: Any) -> str:
        """Return the name of a module: its class, or its path below the first module that was called."""
        name = self._names.setdefault(module, type(module).__name__)
        if module not in self._seen:
            self._seen.add(module)
            for child, inner in module.named_children():
                self._names[inner] = f"{name}.{child}"
                self._name(inner)
        return name

    def _before(self, module: Any, given: Any) -> None:
        name = self._name(module)
        self._begin(name, False)
        self._watch(given, partial(self._end, name, True))

    def _after(self, module: Any, given: Any, output: Any) -> None:
        name = self._name(module)
        self._end(name, False)
        self._watch(output, partial(self._begin, name, True))

    def _watch(self, values: Any, function: Any) -> None:
        """Call a function when the gradients of the tensors among values are known."""
        tensors = [t for t in tree_leaves(values) if isinstance(t, Tensor) and t.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, function))

    def _begin(self, name: str, backward: bool, *gradients: Any) -> None:
        if backward and not self._waits:
            self._waits = True
            ExecutionEngine.queue_callback(self._forget)
        if name in self.parents:
            logger.info("%s begins again, in the %s, before it ended", name, "backward" if backward else "forward")
        self.parents.add(name)

    def _end(self, name: str, backward: bool, *gradients: Any) -> None:
        if name not in self.parents:
            logger.info("%s ends, in the %s, though it never began", name, "backward" if backward else "forward")
        self.parents.discard(name)

    def _forget(self) -> None:
        self.parents, self._waits = {"Global"}, False
