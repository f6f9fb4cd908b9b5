"""CONTRIBUTING.md and docs/architecture.md are correct: their steps are executed, their names looked up."""
import ast
import os
import re
import shutil
import subprocess
import sys

import pytest
from support import ROOT, fresh_process

from tensorgrad.ops.base import Op

FIRST = "Your first op in ten minutes"
CONTRIBUTING, ARCHITECTURE = (ROOT / name for name in ("CONTRIBUTING.md", "docs/architecture.md"))


def chapter(title):
    """The text of a chapter of CONTRIBUTING.md."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE)[1]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def copied(tmp_path):
    """A copy of the package and of what its tests of ops need."""
    shutil.copytree(ROOT / "tensorgrad", tmp_path / "tensorgrad")
    shutil.copytree(ROOT / "tests" / "common", tmp_path / "tests" / "common")
    for name in ("conftest.py", "pyproject.toml", "tests/conftest.py",
                 *re.findall(r"tests/\w+/test_\w+\.py", chapter(FIRST))):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    return tmp_path


def done(command, folder):
    """Run a command in a folder, which must succeed, and return its output."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    ran = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=300)
    assert not ran.returncode, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.mark.long
def test_the_first_op_is_added_as_the_chapter_says(copied):
    text = chapter(FIRST)
    additions = re.findall(r"^Append to `([^`]+)`:\n\n```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert [name.partition("/")[0] for name, _ in additions] == ["tensorgrad", "tests", "tensorgrad"]
    for name, code in additions:
        with open(copied / name, "a", encoding="utf-8") as file:
            file.write(code)
    (commands,) = blocks(text, "sh")
    for command in commands.splitlines():
        python, *arguments = command.split()
        assert python == "python"
        assert re.search(r"[1-9]\d* passed",
                         done([sys.executable, *arguments, "-p", "no:cacheprovider"], copied)), command
    (use,) = (code for code in blocks(text, "python") if code.startswith("import tensorgrad"))
    assert done([sys.executable, "-W", "error", "-c", f"{use}\nprint(torch.__file__)"], copied).startswith(str(copied))


def test_the_attributes_of_an_op_that_the_chapter_lists_are_there():
    rows = re.findall(r"^\| (`.*?) \|", chapter(FIRST), flags=re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(names) > 7 and not [name for name in names if name not in Op.__annotations__]


def test_what_the_guides_point_at_is_there():
    """Files and folders, and the functions and classes that links to a file name."""
    for guide in (CONTRIBUTING, ARCHITECTURE):
        text = guide.read_text(encoding="utf-8")
        missing = [path for _, path in links(text) if not (guide.parent / path).exists()]
        assert not missing, f"{guide.name} points at {missing}"
        unknown = [(name, path) for name, path in links(text) if re.fullmatch(r"[\w.]+", name) and "." in path
                   and not name.endswith(".md")
                   and name.rpartition(".")[2] not in defined(guide.parent / path)]
        assert not unknown, f"{guide.name} names {unknown}"
    folders = re.findall(r"`([\w.]+/)`", CONTRIBUTING.read_text(encoding="utf-8"))
    assert not [name for name in folders if not any((root / name).is_dir()
                                                    for root in (ROOT, ROOT / "tensorgrad", ROOT / "tests"))]


def links(text):
    """(text without backquotes, path) of each link to a file."""
    return [(name.strip("`"), path) for name, path in re.findall(r"\[([^\]]+)\]\(([^)#]+)\)", text)
            if "://" not in path]


def defined(path):
    """The names that a file defines, functions inside of classes and functions too."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return set(re.findall(r"^\w[\w *]*?(\w+)\(", text, flags=re.MULTILINE))
    nodes = list(ast.walk(ast.parse(text)))
    return {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))} | \
        {target.id for node in nodes if isinstance(node, (ast.Assign, ast.AnnAssign))
         for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
         if isinstance(target, ast.Name)}


def test_the_walk_of_a_product_is_as_the_map_says():
    """Its program runs; in Python the forward is three calls in three files, those that are named, and with the
    compiled fast path none.
    """
    text = ARCHITECTURE.read_text(encoding="utf-8")
    (walk,) = blocks(text, "python")
    forward = re.search(r"\*\*Forward\*\*(.*?)\*\*The kernel\*\*", text, flags=re.DOTALL)[1]
    traced = walk + """
import sys
from tensorgrad.core.fast_path import compiled
calls = []
def note(frame, event, argument):
    if event == "call" and "tensorgrad/" in (path := frame.f_code.co_filename.replace("\\\\", "/")):
        calls.append((path.rpartition("tensorgrad/")[2], frame.f_code.co_qualname.partition(".")[0]))
sys.setprofile(note)
x * y
sys.setprofile(None)
print([] if compiled else calls)
if compiled: assert not calls, calls
"""
    assert fresh_process(traced, TENSORGRAD_KERNELS="").strip() == "[]" or not has_fast_path()
    calls = ast.literal_eval(fresh_process(traced, TENSORGRAD_KERNELS="numpy"))
    assert [(name, path.removeprefix("../tensorgrad/")) for name, path in links(forward)
            if (path.removeprefix("../tensorgrad/"), name) in calls] == [(name, path) for path, name in calls]
    assert len(calls) == len({path for path, _ in calls}) == 3


def has_fast_path():
    from tensorgrad.core.fast_path import compiled
    return compiled is not None
