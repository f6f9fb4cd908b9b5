"""Names of PyTorch's exporter that packages use in functions of their own."""
from __future__ import annotations

from typing import Any

from .._unsupported import unsupported


def __getattr__(name: str) -> Any:
    if name.startswith(("__", "pytest")):       # what a reader of modules asks of each
        raise AttributeError(f"module has no attribute {name!r}")
    return unsupported(name, "torch.onnx.symbolic_opset", "an ONNX operator is written by a function given to register_custom_op_symbolic")[name]
