"""Columns of samples, names of files, streams that close themselves."""
from __future__ import annotations

import fnmatch
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ['StreamWrapper', 'get_file_binaries_from_pathnames', 'get_file_pathnames_from_root', 'match_masks',
           'validate_input_col', 'validate_pathname_binary_tuple']


def column(data: Any, name: Any) -> Any:
    """Return the part of a sample at an index or a key."""
    return data[name]


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """Raise ValueError unless the function takes as many arguments as there are columns."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except ValueError:              # a function of C without a signature
        return
    several = isinstance(input_col, (list, tuple))
    given = len(input_col) if several else 1
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is p.empty]
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    name = getattr(fn, '__name__', type(fn).__name__)
    if keywords:
        raise ValueError(f'The function {name} takes {len(keywords)} non-default keyword-only parameters, which is not '
                         'allowed.')
    if given < len(needed):
        raise ValueError(f'The function {name} takes {len(needed)} positional parameters, but {given} are required.')
    if given > len(positional) and not any_number:
        raise ValueError(f'The function {name} takes {len(positional)} parameters, but {given} are required.')


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Return True if a name matches a pattern, or one of several; none matches every name."""
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False,
                                 non_deterministic: bool = False) -> Iterator[str]:
    """Yield the paths of the files in a folder, in order, or the path itself if it is a file."""
    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return

    def failed(error: OSError) -> None:
        raise error
    for place, folders, files in os.walk(os.path.abspath(root) if abspath else root, onerror=failed):
        if not non_deterministic:
            folders.sort()
            files.sort()
        for name in files:
            if match_masks(name, masks):
                yield os.path.join(place, name)
        if not recursive:
            return


def get_file_binaries_from_pathnames(pathnames: Iterable[str], mode: str,
                                     encoding: str | None = None) -> Iterator[tuple[str, StreamWrapper]]:
    """Yield each path with its file, opened; "b" and "t" as modes read."""
    if isinstance(pathnames, str):
        pathnames = [pathnames]
    mode = f'r{mode}' if mode in ('b', 't') else mode
    for pathname in pathnames:
        if not isinstance(pathname, str):
            raise TypeError(f'Expected string type for pathname, but got {type(pathname)}')
        yield pathname, StreamWrapper(open(pathname, mode, encoding=encoding))     # noqa: SIM115


def validate_pathname_binary_tuple(data: Any) -> None:
    """Raise an error unless the sample is a path with a stream."""
    if not isinstance(data, tuple):
        raise TypeError(f'pathname binary data should be tuple type, but it is type {type(data)}')
    if len(data) != 2:
        raise TypeError(f'pathname binary stream tuple length should be 2, but got {len(data)}')
    if not isinstance(data[0], str):
        raise TypeError(f'pathname within the tuple should have string type pathname, but it is type {type(data[0])}')
    if not hasattr(data[1], 'read'):
        raise TypeError('binary stream within the tuple should have IOBase or its subclasses as type, but it is type '
                        f'{type(data[1])}')


class StreamWrapper:
    """An open file that is closed when nothing refers to it."""

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj, self.parent_stream, self.name, self.closed = file_obj, parent_stream, name, False

    def __getattr__(self, name: str) -> Any:
        if name == 'file_obj':
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.file_obj)})

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def close(self, *arguments: Any, **options: Any) -> None:
        """Close the file."""
        if not self.closed:
            self.file_obj.close(*arguments, **options)
            self.closed = True

    def __del__(self) -> None:
        if 'file_obj' in vars(self):
            self.close()

    def __repr__(self) -> str:
        return f'StreamWrapper<{self.name or repr(self.file_obj)}>'
