"""torch.onnx: models as ONNX files. https://pytorch.org/docs/stable/onnx.html"""
from __future__ import annotations

from typing import Any

from . import errors
from .errors import OnnxExporterError

_HERE = {"export": "_export", "TrainingMode": "_export", "OperatorExportTypes": "_export", "ONNXProgram": "_program",
         "load": "reading.loading", "OnnxModel": "reading.model"}
__all__ = ["ONNXProgram", "OnnxExporterError", "errors", "export", "is_in_onnx_export", "load",
           "register_custom_op_symbolic", "unregister_custom_op_symbolic"]


def __getattr__(name: str) -> Any:
    if name not in _HERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from ..runtime.collecting import Paused
    with Paused():
        return getattr(import_module(f"{__name__}.{_HERE[name]}"), name)


def is_in_onnx_export() -> bool:
    """Return True while a model is being exported. https://pytorch.org/docs → torch.onnx.is_in_onnx_export"""
    import sys
    export = sys.modules.get(f"{__name__}._whole")
    return export is not None and bool(export.here.exporting)


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Let `symbolic_fn(g, *inputs, **params)` export an op of the table ('…::name'); in it `g.Operator(…)` adds
    nodes.
    """
    from ._rules import load
    load()[symbolic_name.rpartition("::")[2]] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Remove the op's registered function, or its rule."""
    from ._rules import load
    load().pop(symbolic_name.rpartition("::")[2], None)
