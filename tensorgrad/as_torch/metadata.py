"""The facts that `importlib.metadata` reports for the distribution `torch` while this package is torch.

The version is that of PyTorch's interface; requirements, files and the summary are this package's own.
"""
from __future__ import annotations

import re
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any

from ..version import __version__

PACKAGE = "tensorgrad"
PLACE = Path(__file__).resolve().parents[2]


class Torch(metadata.Distribution):
    """The distribution that programs find under the name `torch`."""

    def __init__(self) -> None:
        # absent where the package is run from a checkout
        self._own = next(iter(metadata.Distribution.discover(name="tensorgrad-engine")), None)

    def read_text(self, filename: str) -> str | None:
        if filename == "top_level.txt":
            return "torch\n"
        return self._metadata().as_string() if filename in ("METADATA", "PKG-INFO") else None

    def _metadata(self) -> Message:
        found = Message()
        found["Metadata-Version"], found["Name"], found["Version"] = "2.1", "torch", __version__
        if self._own is not None:
            for name in ("Summary", "Requires-Python"):
                if value := self._own.metadata[name]:
                    found[name] = value
            for requirement in self._own.requires or ():
                if "extra ==" not in requirement:
                    found["Requires-Dist"] = requirement
        return found

    @property
    def files(self) -> list[metadata.PackagePath] | None:
        """The files of this package; None, as for other distributions, where no list of them was installed."""
        found = [] if self._own is None else [file for file in self._own.files or () if file.parts[0] == PACKAGE]
        return found or None

    def locate_file(self, path: Any) -> Any:
        return PLACE / path

    def places(self) -> set[Path]:
        """Return the directories where this package, and its metadata, are."""
        return {PLACE} if self._own is None else {PLACE, Path(str(self._own.locate_file(""))).resolve()}


def distributions(context: Any) -> list[metadata.Distribution]:
    """Return what a finder's `find_distributions` returns: `torch`, for its name or none, on the paths it is on."""
    if context.name is not None and re.sub(r"[-_.]+", "-", context.name).lower() != "torch":
        return []
    found = Torch()
    if "path" in vars(context):
        if not any(Path(entry).resolve() in found.places() for entry in context.path):
            return []
    return [found]
