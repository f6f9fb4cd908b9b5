"""Queries about the inputs of an exported program's graph."""
from __future__ import annotations

from typing import Any

from ..export.dynamic_shapes import register_dataclass
from ..export.exported_program import ExportedProgram
from ..graph.node import Node

__all__ = ["get_buffer", "get_lifted_tensor_constant", "get_param", "is_buffer", "is_lifted_tensor_constant",
           "is_param", "register_dataclass_as_pytree_node"]
register_dataclass_as_pytree_node = register_dataclass


def is_param(program: ExportedProgram, node: Node) -> bool:
    """Return True for the input of a parameter."""
    return node.name in program.graph_signature.inputs_to_parameters


def get_param(program: ExportedProgram, node: Node) -> Any:
    """Return the parameter of an input; None for another node."""
    return program.state_dict[program.graph_signature.inputs_to_parameters[node.name]] if is_param(
        program, node) else None


def is_buffer(program: ExportedProgram, node: Node) -> bool:
    """Return True for the input of a buffer."""
    return node.name in program.graph_signature.inputs_to_buffers


def get_buffer(program: ExportedProgram, node: Node) -> Any:
    """Return the buffer of an input; None for another node."""
    if not is_buffer(program, node):
        return None
    name = program.graph_signature.inputs_to_buffers[node.name]
    return program.state_dict[name] if name in program.state_dict else program.constants[name]


def is_lifted_tensor_constant(program: ExportedProgram, node: Node) -> bool:
    """Return True for the input of a constant."""
    return node.name in program.graph_signature.inputs_to_lifted_tensor_constants


def get_lifted_tensor_constant(program: ExportedProgram, node: Node) -> Any:
    """Return the constant of an input; None for another node."""
    return program.constants[program.graph_signature.inputs_to_lifted_tensor_constants[node.name]] if (
        is_lifted_tensor_constant(program, node)) else None
