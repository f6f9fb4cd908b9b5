"""A reader of a package that was unpacked to a directory."""
from __future__ import annotations

import os
from pathlib import Path

from ..serialization._zip_files import PyTorchFileReader


class _Files:
    """The files below a directory, as `Archive` has the records of a file."""

    def __init__(self, directory: str) -> None:
        self._top = Path(directory)

    def has(self, name: str) -> bool:
        return (self._top / name).is_file()

    def size(self, name: str) -> int:
        return (self._top / name).stat().st_size

    def names(self) -> list[str]:
        return [file.relative_to(self._top).as_posix() for file in sorted(self._top.rglob("*")) if file.is_file()]

    def read(self, name: str) -> bytearray:
        return bytearray((self._top / name).read_bytes())

    memory = read


class DirectoryReader(PyTorchFileReader):
    """Reads the records of a package from the files below a directory."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = os.fspath(directory)
        self._archive = _Files(self.directory)      # type: ignore[assignment]
