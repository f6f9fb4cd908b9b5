"""Pipes of files: their names, their streams, what is in them."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import get_file_binaries_from_pathnames, get_file_pathnames_from_root
from .utils import IterableWrapperIterDataPipe

__all__ = ['FileListerIterDataPipe', 'FileOpenerIterDataPipe', 'StreamReaderIterDataPipe']


class _OfGivenLength(IterDataPipe):
    """A pipe that is told its length; −1: unknown."""

    length = -1

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe('list_files')
class FileListerIterDataPipe(_OfGivenLength):
    """The paths of files in folders, that match patterns."""

    def __init__(self, root: str | Sequence[str] | IterDataPipe = '.', masks: str | list[str] = '', *,
                 recursive: bool = False, abspath: bool = False, non_deterministic: bool = False,
                 length: int = -1) -> None:
        roots = [root] if isinstance(root, str) else root
        self.datapipe = roots if isinstance(roots, IterDataPipe) else IterableWrapperIterDataPipe(roots)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(path, self.masks, self.recursive, self.abspath,
                                                    self.non_deterministic)


@functional_datapipe('open_files')
class FileOpenerIterDataPipe(_OfGivenLength):
    """Paths with their files, opened."""

    def __init__(self, datapipe: Iterable[str], mode: str = 'r', encoding: str | None = None,
                 length: int = -1) -> None:
        if mode not in ('b', 't', 'rb', 'rt', 'r'):
            raise ValueError(f'Invalid mode {mode}')
        if 'b' in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[Any]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)


@functional_datapipe('read_from_stream')
class StreamReaderIterDataPipe(IterDataPipe):
    """Paths with what is in their streams, in pieces of ``chunk`` bytes or characters (None: whole)."""

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for path, stream in self.datapipe:
            while piece := stream.read(self.chunk):
                yield path, piece
                if self.chunk is None:
                    break
            stream.close()
