"""The kinds of the inputs and outputs of an exported program's graph.

https://pytorch.org/docs/stable/export.html#torch.export.graph_signature.ExportGraphSignature
"""
from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

__all__ = ["ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind",
           "InputSpec", "OutputKind", "OutputSpec", "SymBoolArgument", "SymFloatArgument", "SymIntArgument",
           "TensorArgument"]


@dataclass
class TensorArgument:
    """A tensor, by its node's name."""

    name: str


@dataclass
class SymIntArgument:
    """A size that may vary, by its node's name."""

    name: str


@dataclass
class SymFloatArgument:
    """A number that varies, by its node's name."""

    name: str


@dataclass
class SymBoolArgument:
    """A condition that varies, by its node's name."""

    name: str


@dataclass
class CustomObjArgument:
    """An object of a class of the program, by its node's name."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclass
class ExportBackwardSignature:
    """The results of a graph that computes gradients: {name: parameter}, {name: input}, and the name of the loss."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclass
class ConstantArgument:
    """A value that is no tensor: the program is that for this value."""

    name: str
    value: Any


class InputKind(Enum):
    """The kinds of inputs of a graph."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """The kinds of outputs of a graph."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclass
class InputSpec:
    """An input: `target` is the name of a parameter, buffer or constant; `persistent` is True for a saved buffer."""

    kind: InputKind
    arg: Any
    target: str | None = None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}" + (
            "" if self.persistent is None else f" persistent={self.persistent}")


@dataclass
class OutputSpec:
    """An output."""

    kind: OutputKind
    arg: Any
    target: str | None = None

    def __str__(self) -> str:
        return f"{self.arg.name}: {self.kind.name}" + ("" if self.target is None else f" target='{self.target}'")


def _shown(arg: Any) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of a graph, in order.

    >>> import tensorgrad as torch
    >>> program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(4, 2),))
    >>> print(program.graph_signature)
    <BLANKLINE>
    # inputs
    p_weight: PARAMETER target='weight'
    p_bias: PARAMETER target='bias'
    input_1: USER_INPUT
    <BLANKLINE>
    # outputs
    linear: USER_OUTPUT
    <BLANKLINE>
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _inputs(self, kind: InputKind) -> list[InputSpec]:
        return [spec for spec in self.input_specs if spec.kind is kind]

    parameters = property(lambda self: tuple(spec.target for spec in self._inputs(InputKind.PARAMETER)))
    buffers = property(lambda self: tuple(spec.target for spec in self._inputs(InputKind.BUFFER)))
    non_persistent_buffers = property(lambda self: tuple(spec.target for spec in self._inputs(InputKind.BUFFER)
                                                         if not spec.persistent))
    lifted_tensor_constants = property(lambda self: tuple(spec.target for spec
                                                          in self._inputs(InputKind.CONSTANT_TENSOR)))

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The names of the program's own tensors, and its other arguments."""
        return tuple(_shown(spec.arg) for spec in self._inputs(InputKind.USER_INPUT))

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The names of the results."""
        return tuple(_shown(spec.arg) for spec in self.output_specs if spec.kind is OutputKind.USER_OUTPUT)

    def _named(self, kind: InputKind) -> dict[str, str]:
        return {spec.arg.name: str(spec.target) for spec in self._inputs(kind)}

    inputs_to_parameters = property(lambda self: self._named(InputKind.PARAMETER))
    inputs_to_buffers = property(lambda self: self._named(InputKind.BUFFER))
    inputs_to_lifted_tensor_constants = property(lambda self: self._named(InputKind.CONSTANT_TENSOR))
    buffers_to_mutate = property(lambda self: self._written(OutputKind.BUFFER_MUTATION))
    user_inputs_to_mutate = property(lambda self: self._written(OutputKind.USER_INPUT_MUTATION))
    parameters_to_mutate = property(lambda self: self._written(OutputKind.PARAMETER_MUTATION))
    backward_signature = None
    assertion_dep_token = None

    def _written(self, kind: OutputKind) -> dict[str, str]:
        """Return {name of the output: what it is the new value of}."""
        return {spec.arg.name: str(spec.target) for spec in self.output_specs if spec.kind is kind}

    def __str__(self) -> str:
        return "\n".join(["", "# inputs", *map(str, self.input_specs), "", "# outputs", *map(str, self.output_specs),
                          ""])
