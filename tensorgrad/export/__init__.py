"""torch.export: modules as graphs of ops, without Python. https://pytorch.org/docs/stable/export.html"""
from __future__ import annotations

from typing import Any

from ..messages.unsupported import unsupported
from .dynamic_shapes import Dim, dims

_NAMES = "draft_export"
_LATER = {"ExportedProgram": "exported_program", "export": "_trace", "ExportGraphSignature": "graph_signature",
          "load": "_saving", "save": "_saving",
          **dict.fromkeys(["FlatArgsAdapter", "UnflattenedModule", "unflatten"], "_unflatten"),
          **dict.fromkeys(["AdditionalInputs", "ShapesCollection", "register_dataclass"], "dynamic_shapes"),
          **dict.fromkeys(["ModuleCallEntry", "ModuleCallSignature"], "exported_program"),
          "ExportBackwardSignature": "graph_signature"}
__all__ = ["AdditionalInputs", "Dim", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram",
           "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature", "ShapesCollection", "UnflattenedModule", "dims",
           "export", "load", "register_dataclass", "save", "unflatten", *_NAMES.split()]

globals().update(unsupported(_NAMES, "torch.export", "torch.export.export records programs that can be recorded"))


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
