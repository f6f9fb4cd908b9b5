"""A project's folder: write a new one, and import the registrations in one."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from ..messages.escaping import escaped

PACKAGES = ("models", "datasets", "losses", "callbacks")
TEMPLATES = Path(__file__).with_name("scaffold")
ENDING = ".txt"  # the ending of templates, which are no modules of this package


class ProjectError(Exception):
    """A project that cannot be written or used."""


def find(config: Path) -> Path | None:
    """Return the project of a configuration: the folder above its own, or else the working directory, if that has
    one of the packages."""
    for folder in (config.resolve().parent.parent, Path.cwd()):
        if any((folder / name / "__init__.py").is_file() for name in PACKAGES):
            return folder
    return None


def activate(folder: Path) -> None:
    """Import the packages models, datasets, losses and callbacks of a project, which register their classes.

    ProjectError if another package of such a name is imported already; errors of the project's code are raised
    unchanged."""
    folder = folder.resolve()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    for name in PACKAGES:
        if (folder / name / "__init__.py").is_file():
            module = importlib.import_module(name)
            if not module.__file__ or Path(module.__file__).resolve() != folder / name / "__init__.py":
                raise ProjectError(
                    f"{escaped(folder)}/{name} cannot be imported: {name} is already {escaped(module.__file__)}"
                )


def write(target: Path) -> list[str]:
    """Write a project into a new or empty directory, completely or not at all; return the names of its files.

    ProjectError for a directory that is not empty; OSError if it cannot be written.
    """
    target = Path(os.path.abspath(target))
    if os.path.lexists(target) and (not target.is_dir() or target.is_symlink() or any(target.iterdir())):
        raise ProjectError(f"{escaped(target)} exists and is not an empty directory; nothing was written")
    target.parent.mkdir(parents=True, exist_ok=True)
    whole = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}-", dir=target.parent))
    try:
        names = []
        for template in sorted(TEMPLATES.rglob(f"*{ENDING}")):
            name = template.relative_to(TEMPLATES).as_posix().removesuffix(ENDING)
            file = whole / name.replace("dot-", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(template.read_bytes())
            names.append(file.relative_to(whole).as_posix())
        umask = os.umask(0)
        os.umask(umask)
        whole.chmod(0o777 & ~umask)
        if target.is_dir():
            target.rmdir()
        os.rename(whole, target)
        return names
    finally:
        shutil.rmtree(whole, ignore_errors=True)
