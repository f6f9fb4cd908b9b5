"""Note the values of a graph's nodes, as fake tensors."""
from __future__ import annotations

from typing import Any

from ..._subclasses.fake_tensor import FakeTensorMode
from ..._tensor import Tensor
from ...graph.node import Node
from ...utils._pytree import tree_map
from ..interpreter import Interpreter

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a module's graph on fake tensors, and gives each node its value, as `meta["val"]`.

    The module's own tensors are taken as fakes while it runs.

    >>> import tensorgrad as torch
    >>> traced = torch.fx.symbolic_trace(torch.nn.Linear(2, 3))
    >>> FakeTensorProp(traced).propagate(torch.ones(4, 2))
    FakeTensor(..., size=(4, 3), grad_fn=<AddmmBackward0>)
    >>> [tuple(node.meta["val"].shape) for node in traced.graph.nodes][-1]
    (4, 3)
    """

    def __init__(self, module: Any, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, and note it."""
        result = super().run_node(n)
        n.meta["val"] = result
        return result

    def fetch_attr(self, target: str) -> Any:
        """Return a tensor of the module, as a fake."""
        return self._faked(super().fetch_attr(target))

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a module, whose tensors are fakes meanwhile."""
        from ...func import functional_call
        module = super().fetch_attr(target)
        tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        return functional_call(module, {name: self._faked(value) for name, value in tensors.items()}, args, kwargs)

    def propagate(self, *args: Any) -> Any:
        """Run the graph on fakes of the arguments; return its result."""
        return self.propagate_dont_convert_inputs(*map(self._faked, args))

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph on the arguments, which are fake tensors."""
        with self._mode:
            return super().run(*args)

    def _faked(self, value: Any) -> Any:
        return tree_map(lambda v: self._mode.from_tensor(v) if isinstance(v, Tensor) else v, value)
