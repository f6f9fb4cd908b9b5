"""Networks as functions of placeholders."""
from __future__ import annotations

from typing import Any

from ..symbolic.data import SymbolicTensor, index_of_call
from ..symbolic.model import GraphModule
from . import graph_spec
from .base import Layer
from .structures import recursive_combine, recursive_flatten, recursive_map

__all__ = ["Functional"]


class Functional(Layer, GraphModule):
    """A network that computes `outputs` from `inputs`: placeholders, or lists, tuples and dictionaries of them, nested
    to any depth.

    Inputs may be any nodes of the graph. All layers are built, and their parameters registered, when the network is
    made. The network is called with one argument for each input, with one structure, or by keyword if `inputs` is a
    dictionary, and returns the structure of `outputs`.

    AssertionError if there is no placeholder, or an output depends on anything but the inputs; StructureMismatch for a
    call in another structure.

    >>> import tensorgrad as torch
    >>> from tensorgrad import layers as L
    >>> x, y = L.Placeholder((None, 4)), L.Placeholder((None, 3))
    >>> h = L.Concat()([L.Linear(5)(x), y])
    >>> net = L.Functional({"x": x, "y": y}, [h, L.Linear(2)(h)])
    >>> len(list(net.parameters())), [out.shape for out in net(x=torch.ones(7, 4), y=torch.ones(7, 3))]
    (4, [torch.Size([7, 8]), torch.Size([7, 2])])
    """

    GRAPH = "_builder", "_ends", "_arguments_given"

    def __init__(self, inputs: Any, outputs: Any) -> None:
        super().__init__()
        nodes = recursive_flatten(inputs)
        for given, what in (nodes, "inputs"), (recursive_flatten(outputs), "outputs"):
            assert given and all(isinstance(node, SymbolicTensor)
                                 for node in given), f"the {what} of a Functional are placeholders, in any structure"
        self._ends = inputs, outputs
        numbers = iter(range(len(nodes)))
        self._form = recursive_map(inputs, lambda node: next(numbers))
        self.__dict__["_input_shape"] = recursive_map(inputs, lambda node: tuple(node.shape))
        self._grow(nodes, outputs, codegen=True)

    inputs = property(lambda self: self._of_graph("_ends")[0],
                      doc="The placeholders that the network is called with the values of, in their structure.")
    outputs = property(lambda self: self._of_graph("_ends")[1],
                       doc="The placeholders whose values the network returns, in their structure.")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(self, *self._flat(args, kwargs))

    def _flat(self, args: Any, kwargs: Any) -> list[Any]:
        """Return the inputs of a call as a flat list."""
        form = self._form
        if kwargs or not isinstance(form, (list, tuple)):
            given = kwargs or (args[0] if len(args) == 1 else args)
        else:       # f(x, y) or f([x, y]); f([x]) may be either if the only input is itself a list
            one = (len(args) == 1 and isinstance(args[0], (list, tuple))
                   and not (len(form) == 1 and isinstance(form[0], (list, tuple))))
            given = args[0] if one else args
        flat: list[Any] = [None] * len(self._input_dtypes)
        recursive_combine(form, given, combinator=flat.__setitem__)
        return flat

    def _shape_of_call(self, bound: Any) -> Any:
        flat = self._flat(bound.arguments.get("args", ()), bound.arguments.get("kwargs", {}))
        return recursive_map(self._form, lambda k: tuple(flat[k].shape))

    def native_module(self) -> list[Any]:
        """Return the plain modules behind its layers, in the order in which they run."""
        return [layer.native_module() if isinstance(layer, Layer) else layer for layer in self._execution_order_layers]

    def add_output(self, node: Any, name: str | None = None) -> None:
        """Add the value of a node, which must depend on the inputs, to the outputs: a single output becomes a tuple, a
        list or tuple gets longer, and a dictionary gets it under `name`, by default the name of its layer.

        >>> import tensorgrad as torch
        >>> from tensorgrad import layers as L
        >>> x = L.Placeholder((None, 3))
        >>> h = L.Linear(4)(x)
        >>> net = L.Functional(x, {"y": L.Linear(2)(h)})
        >>> net.add_output(h)
        >>> {key: value.shape for key, value in net(torch.ones(5, 3)).items()}
        {'y': torch.Size([5, 2]), 'Linear_1': torch.Size([5, 4])}
        """
        inputs, outputs = self.inputs, self.outputs
        if isinstance(outputs, dict):
            name = name or self._builder.names.get(node) or getattr(node, "custom_name", None)
            assert name, "name: what the output is called in the dictionary of outputs"
            assert name not in outputs, f"there is an output {name!r} already"
        several = ({**outputs, name: node} if isinstance(outputs, dict) else [*outputs, node]
                   if isinstance(outputs, list) else (*outputs, node) if isinstance(outputs, tuple)
                   else (outputs, node))
        self._give_also(node, several)
        self._ends = inputs, several

    def postorder_traverse(self) -> list[tuple[Any, int | None]]:
        """Return (layer or function, index of its call) in topological order, the outputs' last.

        >>> import tensorgrad as torch
        >>> from tensorgrad import layers as L
        >>> x, shared = L.Placeholder((8, 3)), L.Linear(3)
        >>> L.Functional(x, shared(shared(x))).postorder_traverse()
        [(Linear(3), 0), (Linear(3), 1)]
        """
        done, waiting, found = set(recursive_flatten(self.inputs)), recursive_flatten(self.outputs)[::-1], []
        while waiting:
            node = waiting[-1]
            if node not in done and (before := [parent for parent in node.parents if parent not in done]):
                waiting.extend(reversed(before))
                continue
            waiting.pop()
            if node not in done:
                done.add(node)
                found.append((node.layer, index_of_call(node)))
        return found

    def _as_call(self) -> str:
        return GraphModule.__repr__(self)

    def _spec_parts(self) -> tuple[str, dict[str | None, Any]]:
        return type(self).__name__, graph_spec.described(self)

    @classmethod
    def _arguments_from_spec(cls, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return graph_spec.rebuilt(args, kwargs), {}
