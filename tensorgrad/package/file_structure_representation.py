"""A tree of the files in a package. https://pytorch.org/docs → torch.package.Directory"""
from __future__ import annotations

from collections.abc import Iterable, Iterator

from .glob_group import GlobGroup, GlobPattern


class Directory:
    """A directory, or a file if it has no children; it prints as a tree."""

    def __init__(self, name: str, is_dir: bool) -> None:
        self.name, self.is_dir = name, is_dir
        self.children: dict[str, Directory] = {}

    def _add_file(self, path: str) -> None:
        *folders, last = path.split("/")
        place = self
        for folder in folders:
            place = place.children.setdefault(folder, Directory(folder, True))
        place.children[last] = Directory(last, False)

    def has_file(self, filename: str) -> bool:
        """Return True if there is a file, or a directory, of this path."""
        first, _, rest = filename.partition("/")
        return first in self.children and (not rest or self.children[first].has_file(rest))

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in (f"─── {self.name}", *self._lines("    ")))

    def _lines(self, before: str) -> Iterator[str]:
        children = sorted(self.children.values(), key=lambda child: (not child.is_dir, child.name))
        for child in children:
            last = child is children[-1]
            yield f"{before}{'└' if last else '├'}── {child.name}"
            yield from child._lines(before + ("    " if last else "│   "))


def _create_directory_from_file_list(filename: str, file_list: Iterable[str], include: GlobPattern = "**",
                                     exclude: GlobPattern = ()) -> Directory:
    """Return the tree of the paths that match."""
    top, group = Directory(filename, True), GlobGroup(include, exclude=exclude, separator="/")
    for path in file_list:
        if group.matches(path):
            top._add_file(path)
    return top
