"""torch.export: modules as graphs of ops, without Python. https://pytorch.org/docs/stable/export.html"""
from __future__ import annotations

from typing import Any

from ..messages.unsupported import unsupported
from .dynamic_shapes import Dim, dims

_NAMES = "draft_export load save"
_LATER = {"ExportedProgram": "exported_program", "export": "_trace", "ExportGraphSignature": "graph_signature"}
__all__ = ["Dim", "ExportGraphSignature", "ExportedProgram", "dims", "export", *_NAMES.split()]

globals().update(unsupported(_NAMES, "torch.export", "torch.save(program.module(), file) keeps an exported program"))


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
