"""DOCS.md: the index of the guide and of the reference."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .pages import GENERATED, Page

# The chapters of docs/guide/, which are written by hand.
GUIDE = ["getting-started", "from-pytorch", "packages", "debugging", "teaching", "building-networks", "experiments",
         "distributed", "devices", "threads", "compiling", "benchmarking", "sparse", "files", "fx", "onnx", "extending",
         "legacy", "compared"]


def chapter(folder: Path, name: str) -> tuple[str, str]:
    """Return the title of a chapter and its first paragraph, which says what it is for."""
    text = (folder / "docs" / "guide" / f"{name}.md").read_text(encoding="utf-8")
    title, about = text.split("\n\n")[:2]
    return title.removeprefix("# "), " ".join(about.split())


def index(folder: Path, pages: Iterable[Page]) -> str:
    """Return the text of DOCS.md: a line for each page."""
    lines = [GENERATED, "", "# tensorgrad: documentation", "",
             "A function takes PyTorch's arguments and gives PyTorch's results unless its entry says otherwise.", "",
             "## Guide", ""]
    for name in GUIDE:
        title, about = chapter(folder, name)
        lines.append(f"- [{title}](docs/guide/{name}.md): {about}")
    lines += ["- [Architecture](docs/architecture.md): how the package is built, on one page.",
              "- [Contributing](CONTRIBUTING.md): how to add an op in ten minutes, and the rules of the house.", "",
              "## Reference", ""]
    lines += [f"- [{page.title}](docs/reference/{page.path}): {page.about}" for page in pages]
    return "\n".join(lines) + "\n"
