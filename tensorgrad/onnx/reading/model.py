"""Modules that run the graphs of ONNX files."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...api import Tensor, mean, no_grad, var
from ...dtype import dtype as Dtype
from ...graph.graph import Graph
from ...graph.running import Runner
from ...nn import Module
from ...nn import functional as F


class Body(Module):
    """A graph with its tensors: the main graph of a model, or one that an operator runs.

    `graph` is the program; its inputs are the graph's own, then values that it takes from graphs around it.
    """

    def __init__(self, graph: Graph, outputs: Sequence[str]) -> None:
        super().__init__()
        self.graph, self.outputs = graph, tuple(outputs)
        self._runner: Any = None

    def complete(self) -> None:
        """Take the graph as it is now, for all calls: a call changes nothing of the module."""
        self._runner = Runner(self.graph)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Run the graph on values of all its inputs, and return the list of its outputs."""
        return list(self._runner(self, values))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_runner": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.complete()


class Bound:
    """A body with the values that it takes from the graph around it: what operators such as `If` call."""

    def __init__(self, body: Body, *values: Any) -> None:
        self.body, self.values, self.outputs = body, values, body.outputs

    def __call__(self, *values: Any) -> list[Any]:
        return self.body.run((*values, *self.values))


class OnnxModel(Body):
    """A model that was read from an ONNX file. https://onnx.ai/onnx/repo-docs/IR.html

    Called with the graph's inputs, in order or by name, it returns the output, or a tuple of the outputs.
    Weights are parameters, under their names in the file; statistics of batch norms are buffers. Batch norms and
    dropouts are active in training mode only: a model is loaded in evaluation mode.

    Errors: TypeError for missing or unknown inputs; ValueError for an input of another dtype or shape than the file
    says.
    """

    def __init__(self, graph: Graph, inputs: Sequence[Signature], outputs: Sequence[str]) -> None:
        super().__init__(graph, outputs)
        self.inputs = tuple(inputs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        values = list(args)
        for signature in self.inputs[len(args):]:
            if signature.name in kwargs:
                values.append(kwargs.pop(signature.name))
            elif signature.optional:
                values.append(None)
            else:
                raise TypeError(f"the model needs the inputs {', '.join(each.name for each in self.inputs)}: "
                                f"{signature.name!r} is missing")
        if kwargs or len(values) > len(self.inputs):
            raise TypeError(f"the model has the inputs {', '.join(each.name for each in self.inputs)}, and was given "
                            f"{', '.join(kwargs) or f'{len(values)} values'}")
        for signature, value in zip(self.inputs, values, strict=True):
            signature.check(value)
        found = self.run(values)
        return found[0] if len(found) == 1 else tuple(found)

    def extra_repr(self) -> str:
        lines = [f"inputs: {', '.join(map(str, self.inputs))}", f"outputs: {', '.join(self.outputs)}"]
        return "\n".join([*lines, f"{sum(node.op.startswith('call') for node in self.graph.nodes)} operators"])


class Signature:
    """An input of a model: its name, dtype and shape. A size is a number, or a name for any number."""

    def __init__(self, name: str, dtype: Dtype | None, shape: tuple[Any, ...] | None, optional: bool) -> None:
        self.name, self.dtype, self.shape, self.optional = name, dtype, shape, optional

    def __str__(self) -> str:
        sizes = "" if self.shape is None else f"[{', '.join(map(str, self.shape))}]"
        return f"{self.name}: {str(self.dtype).removeprefix('torch.')}{sizes}" if self.dtype else self.name

    def check(self, value: Any) -> None:
        """Raise ValueError for a tensor of another dtype or shape."""
        if self.dtype is None or value is None and self.optional:
            return
        if not isinstance(value, Tensor):
            raise TypeError(f"the input {self.name!r} must be a tensor, not {type(value).__name__}")
        if value.dtype != self.dtype:
            raise ValueError(f"the input {self} was given a tensor of {value.dtype}")
        if self.shape is not None and (len(self.shape) != value.ndim or any(
                isinstance(n, int) and n != m for n, m in zip(self.shape, value.shape, strict=True))):
            raise ValueError(f"the input {self} was given a tensor of shape {list(value.shape)}")


class BatchNorm(Module):
    """The operator BatchNormalization. In training mode, it normalizes by the batch's statistics and updates the
    running ones, which keep the share `momentum`.
    """

    def __init__(self, epsilon: float = 1e-5, momentum: float = 0.9, **_: Any) -> None:
        super().__init__()
        self.epsilon, self.momentum = epsilon, momentum

    def forward(self, x: Any, scale: Any, b: Any, running_mean: Any, running_variance: Any) -> Any:
        if not self.training:
            return F.batch_norm(x, running_mean, running_variance, scale, b, False, 0.0, self.epsilon)
        axes = [i for i in range(x.ndim) if i != 1]
        with no_grad():
            for running, now in ((running_mean, mean(x, axes)), (running_variance, var(x, axes))):
                running.mul_(self.momentum).add_(now, alpha=1 - self.momentum)
        return F.batch_norm(x, None, None, scale, b, True, 0.0, self.epsilon)


class Dropout(Module):
    """The operator Dropout, which drops elements in training mode only."""

    def __init__(self, ratio: float = 0.5, **_: Any) -> None:
        super().__init__()
        self.ratio = ratio

    def forward(self, x: Any, ratio: Any = None, training: Any = None) -> Any:
        share = self.ratio if ratio is None else float(ratio)
        return F.dropout(x, share, self.training)
