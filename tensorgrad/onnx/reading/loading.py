"""Load ONNX files."""
from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ...runtime.collecting import Paused
from ..errors import InvalidModelError
from .building import Builder
from .model import OnnxModel
from .tensors import Files
from .wire import read

NEWEST = 23         # version of ONNX's operators


def load(f: str | os.PathLike[str] | bytes | BinaryIO, *,
         operators: Mapping[str, Callable[..., Any]] | None = None) -> OnnxModel:
    """Return the module that an ONNX file describes. https://onnx.ai/onnx/repo-docs/IR.html

    The file is a path, an open file, or bytes; tensors in other files must be below the folder of the path. Nothing in
    a file is run but ONNX's operators. `operators`, {"domain::Name": function of the inputs and attributes}, adds some.
    The module can be trained, and saved by `torch.onnx.export`.

    Errors: InvalidModelError for a file that is damaged, or asks for files elsewhere; UnsupportedModelError, which
    lists the operators that are missing; FileNotFoundError.

    >>> import tensorgrad as torch
    >>> model = torch.onnx.load("model.onnx")  # doctest: +SKIP
    >>> model(torch.ones(1, 3, 224, 224)).shape  # doctest: +SKIP
    torch.Size([1, 1000])
    """
    with Paused():
        if isinstance(f, (bytes, bytearray, memoryview)):
            return _load(io.BytesIO(f), None, operators or {})
        if hasattr(f, "read"):
            return _load(f, None, operators or {})
        path = Path(f)
        with path.open("rb") as file:
            return _load(file, path.resolve().parent, operators or {})


def _load(file: Any, folder: Path | None, operators: Mapping[str, Callable[..., Any]]) -> OnnxModel:
    model = read(file, "Model")
    if model.graph is None or not (model.opset_import or model.ir_version < 3):
        raise InvalidModelError("this is no ONNX model: it has no graph, or does not say the version of its operators")
    builder = Builder(model, Files(file, folder), operators)
    if builder.versions.get("", 1) > NEWEST:
        raise InvalidModelError(f"the model uses version {builder.versions['']} of ONNX's operators; versions up to "
                                f"{NEWEST} are supported")
    return builder.build(model.graph)
