"""A lowered program: its graph, the tensors that the graph names, and how it runs."""
from __future__ import annotations

from typing import Any

from ..core.tape import TensorBase
from ..utils._pytree import tree_flatten
from .graph import Graph
from .running import Runner


class Lowered(Graph):
    """The graph that `lower` makes.

    Called like the program, it computes the program's results; gradients reach the program's parameters.

    `tensors` are the tensors of the `get_attr` nodes: the program's own, and constants. `written` names the buffers
    that the program wrote to; the graph does not write to them. `relied` names the tensors whose values the program
    read, or that decided on shapes: the graph is the program's while they hold these values.

    >>> import tensorgrad as torch
    >>> from tensorgrad.graph import lower
    >>> graph = lower(lambda x, scale: {"y": x.t() * scale["by"]}, (torch.ones(2, 3), {"by": torch.ones(2)}))
    >>> graph(torch.ones(2, 3), {"by": torch.tensor([1., 2.])})["y"][0]
    tensor([1., 2.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.tensors: dict[str, Any] = {}
        self.written: tuple[str, ...] = ()
        self.relied: tuple[str, ...] = ()
        self.spec: Any = None                 # how the arguments were nested
        self.sizes: Any = None                # of a graph with symbolic sizes, what is known of these
        self.simplified = False               # True once the passes that serve all sizes have run
        self.postponed: set[str] = set()      # names of those that want to know sizes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the steps on tensors. TypeError for arguments nested in another way than at lowering."""
        leaves, spec = tree_flatten((args, kwargs))
        if spec != self.spec:
            raise TypeError(f"the arguments are not nested as those that the program was lowered with: {spec}, not "
                            f"{self.spec}")
        return Runner(self)(self.tensors, [leaf for leaf in leaves if isinstance(leaf, TensorBase)])
