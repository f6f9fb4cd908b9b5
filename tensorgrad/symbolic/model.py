"""Models made of graphs."""
from __future__ import annotations

from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any

from ..nn import Module
from . import config
from .codegen import Interpreted, Runnable, compiled
from .data import SymbolicData, SymbolicTensor
from .nesting import leaves
from .program import Builder, Program

GENERATED = "_run", "_generated_forward_source"


class GraphModule(Module):
    """Base of models that are made of graphs: a module that owns the layers of a program, and runs it."""

    _program: Program
    _run: Any
    _codegen: bool
    _form: Any
    # attributes that belong to the graph, and are dropped in copies and pickles
    GRAPH: tuple[str, ...] = ("_builder",)

    def _grow(self, inputs: Any, outputs: Any, codegen: bool) -> None:
        """Extend the model by the part of a graph between these nodes; `outputs` is a structure of them."""
        self._codegen = codegen
        self._input_dtypes = [node.dtype if isinstance(node, SymbolicTensor) else None for node in inputs]
        # the structure of the inputs, with their indices as leaves
        self._form = self.__dict__.get("_form", list(range(len(self._input_dtypes))))
        self._builder = Builder(inputs, outputs, self)
        self._program = self._builder.program
        self._generate()

    def _generate(self) -> None:
        """Regenerate `forward` from the program."""
        if self._codegen:
            writer = Runnable(self._program, self._modules, config.CODEGEN_MIN_LOOP_LENGTH)
            self._generated_forward_source: str | None = writer.source()
            self._run = compiled(self._generated_forward_source, writer.namespace)
        else:
            self._generated_forward_source, self._run = None, Interpreted(self._program)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(self, *args, **kwargs)

    def _flat(self, args: Any, kwargs: Any) -> list[Any]:
        """Return the inputs of a call as a flat list."""
        return [*args, *kwargs.values()]

    def _give_also(self, node: Any, outputs: Any) -> None:
        """Let the model return these outputs, which include an additional node."""
        assert isinstance(node, SymbolicData), "Only SymbolicData allowed in outputs!"
        assert node not in list(leaves(self.inputs)), "Node is an input."
        try:
            self._builder.add(outputs)
        except AssertionError as error:
            raise AssertionError(f"Node is out of reach of the inputs. {error}") from None
        self._generate()

    def detach_from_graph(self) -> Any:
        """Return a copy of the model and its layers that does not keep the graph alive."""
        return deepcopy(self)

    @property
    def _execution_order_layers(self) -> list[Any]:
        return list(self._modules.values())

    def __getstate__(self) -> Any:
        self._described()
        return {name: value for name, value in super().__getstate__().items()
                if name not in self.GRAPH and name not in GENERATED}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._generate()

    # ── as plain data ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _spec_parts(self) -> tuple[str, dict[str | None, Any]]:
        """Return the type in the spec, and the other entries."""
        from ..layers.graph_spec import described
        return "SymbolicModel", described(self)

    @classmethod
    def _arguments_from_spec(cls, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Convert arguments in a spec to the constructor's."""
        from ..layers.graph_spec import rebuilt
        return rebuilt(args, kwargs), {}

    def to_spec(self) -> dict[str | None, Any]:
        """Return the model as plain data, from which `from_spec` makes an equal one with new weights.

        ValueError if a step is no data.

        >>> import tensorgrad as torch
        >>> from tensorgrad.symbolic import Input, SymbolicModel
        >>> x = Input((3,))
        >>> spec = SymbolicModel(x, torch.nn.Linear(3, 2)(x)).to_spec()
        >>> spec["type"], spec["steps"][0]["layer"]
        ('SymbolicModel', {'type': 'nn.Linear', 'in_features': 3, 'out_features': 2})
        """
        from ..layers.spec import described
        return described(self)

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_spec` as JSON, which `layers.from_json` and `from_spec(json.loads(text))` read."""
        from ..layers.spec import to_json
        return to_json(self, indent)

    @classmethod
    def from_spec(cls, spec: Any) -> Any:
        """Make the model that a spec describes; see `to_spec`. ValueError names the path of a mistake in the spec."""
        from ..layers.spec import SpecError, build
        model = build(spec)
        if not isinstance(model, cls):
            raise SpecError(f"type: {spec['type']!r} is not a {cls.__name__}")
        return model

    # ── what is known of it ───────────────────────────────────────────────────────────────────────────────────────────

    def _described(self) -> Program:
        """Return the program, with the shapes of all its values."""
        if "_builder" in self.__dict__:
            for value, node in self._builder.nodes.items():
                if "shape" not in node.meta:
                    node.meta["shape"] = (tuple(value.shape) if isinstance(value, SymbolicTensor)
                                          else type(value._in_world(0)).__name__)
        return self._program

    def _of_graph(self, name: str) -> Any:
        if name not in self.__dict__:
            raise RuntimeError(f"this {type(self).__name__} is a copy, which has no graph: look at the nodes of the "
                               f"model that was copied")
        return self.__dict__[name]

    @property
    def nodes(self) -> dict[str, SymbolicData]:
        """All nodes, inputs first, by the names that `summary` shows."""
        return {name: node for node, name in self._of_graph("_builder").names.items()}

    def get_node(self, name: str) -> SymbolicData:
        """Return the node of a layer's output, by the name of the layer: 'Conv2d_1'.

        KeyError, with similar names, if there is none.
        """
        nodes = self.nodes
        if name not in nodes:
            from difflib import get_close_matches
            like = get_close_matches(name, nodes) or list(nodes)[:5]
            raise KeyError(f"the model has no node {name!r}; there are {', '.join(like)}")
        return nodes[name]

    @property
    def input_shape(self) -> Any:
        """The shape of the input, or a tuple of shapes if there are several; None for a value that is no tensor."""
        return _shapes(self._described().inputs)

    @property
    def output_shape(self) -> Any:
        """The shape of the output, or a tuple of shapes if there are several; None for a value that is no tensor."""
        return _shapes(leaves(self._described().outputs))

    def summary(self, return_string: bool = False) -> str | None:
        """Print a table of all values, with shapes, parameters and parents, and count the parameters; or return it as a
        string.
        """
        from .summary import summary
        text = summary(self)
        if return_string:
            return text
        print(text)
        return None

    def source(self, name: str = "Model") -> str:
        """Return a Python file that defines the model as a class of this name, which runs here and under PyTorch, and
        loads this model's state_dict.

        Layers of `nn` are constructed in it; others are arguments of the class. ValueError for a step that has no
        source, such as a call of a lambda.
        """
        from .exporting import source_of
        return source_of(self, name)

    def save_source(self, path: str | PathLike[str], name: str = "Model") -> Path:
        """Write `source()` to a file, and return its path."""
        path, text = Path(path), self.source(name)
        path.write_text(text, encoding="utf-8")
        return path


class DetachedSymbolicModel(GraphModule):
    """A model without its graph: made by `detach_from_graph`, by copying and by unpickling."""


class SymbolicModel(GraphModule):
    """A module that computes the outputs of a graph from its inputs.

    `inputs` and `outputs` are nodes, or lists or tuples of them; one output is a value, several are a tuple. Inputs may
    be any nodes of the graph. Layers are owned as `<Class>_<k>`, in the order in which they were added to the graph, or
    under their `custom_name`; several models may share a graph and its layers.

    Copies and pickles have no graph: they are DetachedSymbolicModels, or of the class itself if that inherits from
        SymbolicModel.
    AssertionError if an output depends on anything but the inputs, or an argument is no node.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic import Input, SymbolicModel
    >>> x = Input((784,))
    >>> h = torch.nn.Linear(784, 64)(x).relu()
    >>> model = SymbolicModel(x, torch.nn.Linear(64, 10)(h))
    >>> model(torch.zeros(5, 784)).shape, model.output_shape, model.get_node("Linear_2").parents == (h,)
    (torch.Size([5, 10]), (None, 10), True)
    """

    GRAPH = "_builder", "_inputs", "_outputs", "_single"

    def __init__(self, inputs: Any, outputs: Any, enable_forward_codegen: bool | None = None, *,
                 enable_cuda_graphs: bool = False) -> None:
        super().__init__()
        if enable_cuda_graphs:
            raise RuntimeError("SymbolicModel: CUDA graphs need a backend that can record the kernels it launches, and "
                               "there is none: leave enable_cuda_graphs=False")
        self._inputs, self._outputs = _nodes(inputs, "inputs"), _nodes(outputs, "outputs")
        self._single = len(self._outputs) == 1
        self._grow(self._inputs, self._structure(), config.CODEGEN_BY_DEFAULT if enable_forward_codegen is None
                   else enable_forward_codegen)

    def _structure(self) -> Any:
        return self._outputs[0] if self._single else self._outputs

    # ── the graph ─────────────────────────────────────────────────────────────────────────────────────────────────────

    inputs = property(lambda self: self._of_graph("_inputs"),
                      doc="The nodes that the model is called with the values of.")
    outputs = property(lambda self: self._of_graph("_outputs"), doc="The nodes whose values the model returns.")

    def add_output(self, node: SymbolicData) -> None:
        """Add the value of a node, which must depend on the inputs, to the outputs, which are then a tuple."""
        outputs = (*self.outputs, node)
        self._give_also(node, outputs)
        self._outputs, self._single = outputs, False

    def __reduce_ex__(self, protocol: Any) -> Any:
        kind = DetachedSymbolicModel if type(self) is SymbolicModel else type(self)
        return kind.__new__, (kind,), self.__getstate__()


def _nodes(given: Any, what: str) -> tuple[SymbolicData, ...]:
    nodes = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    assert nodes and all(isinstance(node, SymbolicData) for node in nodes), f"Only SymbolicData allowed in {what}!"
    return nodes


def _shapes(nodes: Any) -> Any:
    shapes = tuple(shape if isinstance(shape := node.meta["shape"], tuple) else None for node in nodes)
    return shapes[0] if len(shapes) == 1 else shapes


__all__ = ["DetachedSymbolicModel", "GraphModule", "SymbolicModel"]
