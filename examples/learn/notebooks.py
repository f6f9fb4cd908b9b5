"""Write the notebooks of the lessons from their scripts: `python -m examples.learn.notebooks [--check]`.

A script is cut at its lines `# %%`, and `# %% [markdown]` where what follows is prose in comments.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent


def scripts():
    """The lessons, in order."""
    return sorted(HERE.glob("lesson*.py"))


def cells(script):
    """The cells of a script: [(is it prose?, text)]."""
    found = []
    for line in script.splitlines():
        if line.startswith("# %%"):
            found.append((line == "# %% [markdown]", []))
        elif found:
            found[-1][1].append(line.removeprefix("#").removeprefix(" ") if found[-1][0] else line)
        elif line.strip():
            raise ValueError(f"a script begins with a cell, not with {line!r}")
    return [(prose, "\n".join(lines).strip("\n")) for prose, lines in found]


def notebook(script):
    """A script as a notebook: JSON of nbformat 4."""
    out = []
    for number, (prose, text) in enumerate(cells(script)):
        common = {"id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        out.append({"cell_type": "markdown", **common} if prose
                   else {"cell_type": "code", "execution_count": None, **common, "outputs": []})
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                "language_info": {"name": "python"}}
    return json.dumps({"cells": out, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1,
                      ensure_ascii=False, sort_keys=True) + "\n"


def main(arguments):
    stale = []
    for script in scripts():
        text, path = notebook(script.read_text(encoding="utf-8")), script.with_suffix(".ipynb")
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
    for name in stale:
        print(f"{name} is out of date: run python -m examples.learn.notebooks")
    return bool(stale)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
