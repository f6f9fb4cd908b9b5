"""`torch.export.save` and `load`. https://pytorch.org/docs/stable/export.html#serialization"""
from __future__ import annotations

from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

from ..serialization._atomic import replacing
from .exported_program import ExportedProgram

__all__ = ["load", "save"]


def save(ep: ExportedProgram, f: Any, *, extra_files: dict[str, Any] | None = None,
         opset_version: dict[str, int] | None = None, pickle_protocol: int = 2) -> None:
    """Write an exported program to a file, in PyTorch's format (`.pt2`).

    PyTorch can read the file if each op has an operator of PyTorch; other ops are written under their names here.

    Input: a program, and a path or a file that is open for writing
    Errors: TypeError for other things than programs; NotImplementedError for containers and arguments that files do
        not have
    https://pytorch.org/docs → torch.export.save

    >>> import tensorgrad as torch
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
    >>> torch.export.load(file).module()(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' "
                        f"instead.")
    from ._writing import write
    if extra_files:
        raise NotImplementedError("torch.export.save: extra_files are not written")
    data = BytesIO()
    write(ep, data, Path(f).stem if isinstance(f, (str, PathLike)) else "archive")
    if isinstance(f, (str, PathLike)):
        with replacing(f) as file:
            file.write(data.getvalue())
    else:
        f.write(data.getvalue())


def load(f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: dict[str, int] | None = None
         ) -> ExportedProgram:
    """Return the exported program in a file that `save` or PyTorch wrote.

    No code from the file runs: it may call the operators of a fixed list, and its tensors are bytes.

    Input: a path, or a file that is open for reading
    Errors: ValueError for a file that is no such archive, malformed, or goes beyond what is read: operators not on the
        list, writes to buffers, pickled tensors; RuntimeError for a damaged archive
    https://pytorch.org/docs → torch.export.load
    """
    from ._reading import read
    if extra_files:
        raise NotImplementedError("torch.export.load: extra_files are not read")
    if isinstance(f, (str, PathLike)):
        with Path(f).open("rb") as file:
            return read(file)
    f.seek(0)
    return read(BytesIO(f.read()))
