"""Names of PyTorch's exporter that packages use in their own functions."""
from __future__ import annotations

from typing import Any

from ..messages.unsupported import unsupported


def __getattr__(name: str) -> Any:
    if name.startswith(("__", "pytest")):       # attributes that tools read from every module
        raise AttributeError(f"module has no attribute {name!r}")
    return unsupported(name, "torch.onnx.symbolic_opset",
                       "an ONNX operator is written by a function given to register_custom_op_symbolic")[name]
