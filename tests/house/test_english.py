"""Docstrings open with a subject or a verb, and their first paragraphs are sentences."""
import re
from importlib import import_module

from support import ROOT

import tensorgrad
from tensorgrad.docs.docstrings import first_paragraph
from tensorgrad.docs.entries import is_ours, members, tensor_members
from tensorgrad.docs.reference import MODULES

FOLDERS = ("tensorgrad", "tests", "benchmarks", "examples", "native", "scripts")
OPENING = re.compile(r'^\s*r?"""(What|That|It|One|Whether|The same)\b.*', flags=re.MULTILINE)
DOCSTRING = re.compile(r'^\s*r?"""(.*?)"""', flags=re.DOTALL | re.MULTILINE)
LATER = re.compile(r"[.:] (What|That|It|One|Whether|The same) .{0,50}")
ENDS = (".", "?", "!", "…", ":", ".)")


def test_docstrings_open_with_a_subject_or_a_verb():
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    found = [f"{path.relative_to(ROOT)}: {match[0].strip()}"
             for path in paths for match in OPENING.finditer(path.read_text(encoding="utf-8"))]
    assert not found


def test_sentences_open_with_a_subject():
    """The first sentence is above; this is about those that follow in docstrings of the package."""
    texts = ((path, text) for path in sorted((ROOT / "tensorgrad").rglob("*.py"))
             for text in DOCSTRING.findall(path.read_text(encoding="utf-8")))
    found = [f"{path.relative_to(ROOT)}: {match[0]}" for path, text in texts
             for match in LATER.finditer(" ".join(text.partition(">>>")[0].split()))]
    assert not found


def public():
    """Yield (name, object) of everything that the reference documents."""
    yield from ((f"torch.{name}", f) for name, f in tensorgrad.api.FUNCTIONS.items() if not name.startswith("_"))
    yield from ((f"Tensor.{name}", member) for name, member in tensor_members())
    for name in (*(name for names in MODULES for name in names), "nn", "nn.functional"):
        module = import_module(f"tensorgrad.{name}")
        yield name, module
        for thing in (getattr(module, n) for n in module.__all__ if callable(getattr(module, n))):
            home = f"{name}.{getattr(thing, '__name__', '?')}"
            yield home, thing
            if isinstance(thing, type):
                yield from ((f"{home}.{member}", value) for member, value, _ in members(thing))


def test_first_paragraphs_end_a_sentence():
    """A page of the reference shows the first paragraph in its tables, and nothing of the rest."""
    texts = ((name, first_paragraph(thing)) for name, thing in public() if is_ours(thing))
    assert not {name: text for name, text in texts if text and not text.endswith(ENDS)}
