"""The command `python -m tensorgrad.docs`."""
from __future__ import annotations

import argparse
from pathlib import Path

from ..runtime.collecting import Paused
from . import architecture, backward
from .index import index
from .reference import pages
from .stubs import stubs


def files(folder: Path) -> dict[str, str]:
    """Return the text of each generated file, by its path relative to `folder`."""
    reference = list(pages())
    return {"DOCS.md": index(folder, reference), **{f"docs/reference/{page.path}": page.text for page in reference},
            "docs/architecture.svg": architecture.draw(), "docs/backward.svg": backward.draw(), **stubs()}


def differences(folder: Path, generated: dict[str, str]) -> list[str]:
    """Return a line for each file that differs from what is generated, is missing, or belongs to no page any more."""
    found = []
    for name, text in generated.items():
        path = folder / name
        if not path.exists():
            found.append(f"{name} is missing")
        elif (old := path.read_text(encoding="utf-8")) != text:
            line = next((i for i, (a, b) in enumerate(zip(old.split("\n"), text.split("\n")), 1) if a != b), "the end")
            found.append(f"{name} is out of date from line {line} on")
    return [*found, *(f"{name} is generated no more" for name in leftover(folder, generated))]


def leftover(folder: Path, generated: dict[str, str]) -> list[str]:
    """Return the pages in docs/reference/ that no module has."""
    present = (path.relative_to(folder).as_posix() for path in sorted((folder / "docs" / "reference").rglob("*.md")))
    return [name for name in present if name not in generated]


def main(arguments: list[str] | None = None) -> int:
    """Write the generated files, or with `--check` say which differ. The status is 1 if some do."""
    parser = argparse.ArgumentParser(prog="python -m tensorgrad.docs",
                                     description="Write the reference in docs/reference/, its index DOCS.md, the "
                                     "pictures in docs/ and the type stubs from the code.")
    parser.add_argument("--check", action="store_true",
                        help="write nothing; list the files that differ, and exit with status 1 if there are any")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(),
                        help="the root of the repository (default: the working directory)")
    options = parser.parse_args(arguments)
    if not (options.folder / "docs" / "guide").is_dir():
        parser.error(f"{options.folder.resolve()} has no docs/guide: it is not the root of the repository")
    with Paused():                      # collections would take a third of the time: syntax trees are many objects
        generated = files(options.folder)
    if options.check:
        found = differences(options.folder, generated)
        print(*found, *(["Run python -m tensorgrad.docs"] if found else []), sep="\n", end="\n" if found else "")
        return int(bool(found))
    for name, text in generated.items():
        path = options.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in leftover(options.folder, generated):
        (options.folder / name).unlink()
    return 0
