"""The chapters of the guide run, and print the output that they show.

A block ```python starts a scope, ```py goes on in it. The block ```text after it is what it prints; an error is shown
by its class and message.
"""
import contextlib
import io
import re
import warnings
from dataclasses import dataclass, replace

import pytest
from support import ROOT

import tensorgrad as torch
from tensorgrad.symbolic import config

FOLDER = ROOT / "examples" / "symbolic_guide"
CHAPTERS = sorted(FOLDER.glob("[0-9]*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """Code, the line that it starts in, whether it starts a scope, and what it should print."""

    code: str
    line: int
    starts: bool
    shown: str = ""


def blocks(text):
    """The blocks of code in a text."""
    found = []
    for match in FENCE.finditer(text):
        kind, content = match.groups()
        if kind == "text":
            assert found and not found[-1].shown, f"no code before what is shown:\n{content}"
            found[-1] = replace(found[-1], shown=content)
        else:
            assert kind in ("python", "py"), f"a block of another kind: {kind!r}"
            found.append(Block(content, text.count("\n", 0, match.start()) + 1, kind == "python"))
    assert found and found[0].starts, "a text begins with a block that starts a scope"
    return found


def printed(block, name, scope):
    """Run a block, and return its output; an error that ends it is the last line."""
    out = io.StringIO()
    # the lines of a traceback are those of the text
    code = compile("\n" * block.line + block.code, name, "exec", dont_inherit=True)
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            exec(code, scope)
        except Exception as error:
            if not block.shown.rpartition("\n\n")[2].startswith(f"{type(error).__name__}: "):
                raise
            print(f"{type(error).__name__}: {error}")
    # an editor takes the spaces off that a table ends with
    return re.sub(" +$", "", out.getvalue(), flags=re.MULTILINE)


def run(text, name):
    """Run all blocks of a text, and compare."""
    scope = {}
    for block in blocks(text):
        if block.starts:
            scope = {"__name__": "guide"}
        assert printed(block, name, scope) == block.shown, f"{name}, line {block.line}"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder to run in; random numbers and settings as they were."""
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng():
        yield
    config.enable_symbolic_api_2()


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_runs(chapter, elsewhere):
    run(chapter.read_text(encoding="utf-8"), str(chapter))


def test_the_index_lists_the_chapters():
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^(\d)\. \[(.+)\]\((.+)\)$", index, re.MULTILINE)
    assert [name for _, _, name in listed] == [chapter.name for chapter in CHAPTERS] and len(listed) == 9
    for (number, title, _), chapter in zip(listed, CHAPTERS, strict=True):
        text = chapter.read_text(encoding="utf-8")
        assert text.startswith(f"# {number}. {title}\n\nWe want ") and "## What goes wrong\n" in text


@pytest.mark.parametrize("text", [*CHAPTERS, FOLDER / "README.md"], ids=lambda path: path.stem)
def test_links_lead_somewhere(text):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", FENCE.sub("", text.read_text(encoding="utf-8"))):
        assert (FOLDER / target).exists(), target


@pytest.mark.parametrize("text, fails", [
    ("```python\nprint(1)\n```\n```text\n1\n```\n", None),
    # prints, and nothing is shown
    ("```python\nprint(1)\n```\n", AssertionError),
    ("```python\nprint(1)\n```\n```text\n2\n```\n", AssertionError),
    ("```python\nx = 1\n```\n```py\nprint(x)\n```\n```text\n1\n```\n", None),                       # goes on
    ("```python\nx = 1\n```\n```python\nx\n```\n", NameError),                                      # begins anew
    ("```python\n1 / 0\n```\n", ZeroDivisionError),
    ("```python\n1 / 0\n```\n```text\nZeroDivisionError: division by zero\n```\n", None),
    ("```python\n1 / 0\n```\n```text\nZeroDivisionError: or another\n```\n", AssertionError),
    # an error that does not come
    ("```python\n1 / 1\n```\n```text\nZeroDivisionError: division by zero\n```\n", AssertionError),
    ("```python\nimport warnings; warnings.warn('x')\n```\n", UserWarning),
    ("```py\n1\n```\n", AssertionError),
    ("```text\n1\n```\n", AssertionError),
])
def test_a_wrong_text_is_found_out(text, fails, elsewhere):
    if fails is None:
        run(text, "text")
    else:
        with pytest.raises(fails):
            run(text, "text")
