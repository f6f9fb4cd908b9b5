"""The reference and the stub are up to date with the code; code in the documents runs, and their links lead
somewhere.
"""
import ast
import functools
import re
import types

import pytest
from support import ROOT, fresh_process

import tensorgrad
from tensorgrad.docs.command import differences, main
from tensorgrad.docs.decisions import DECISIONS
from tensorgrad.docs.docstrings import first_paragraph, markdown, source
from tensorgrad.docs.families import FUNCTIONAL, FUNCTIONS, LAYERS
from tensorgrad.docs.index import GUIDE
from tensorgrad.docs.names import absent
from tensorgrad.docs.pages import Anchors

PAGES = ["README.md", "DOCS.md", "CONTRIBUTING.md", "BENCHMARK.md", "CHANGELOG.md",
         *(path.relative_to(ROOT).as_posix() for folder in ("docs", "examples")
           for path in sorted((ROOT / folder).rglob("*.md")))]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


# ── what is generated ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_generated_is_up_to_date():
    fresh_process("from tensorgrad.docs.command import main\nassert main(['--check']) == 0, 'run python -m "
                  "tensorgrad.docs'")


def test_help_writes_nothing(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["-h", str(tmp_path)])
    assert ended.value.code == 0 and "--check" in capsys.readouterr().out and not list(tmp_path.iterdir())


def test_a_folder_that_is_no_repository_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "docs/guide" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_check_names_what_differs(tmp_path):
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    for name, text in {"docs/reference/a.md": "one\ntwo\n", "docs/reference/gone.md": "", "DOCS.md": "same\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    generated = {"docs/reference/a.md": "one\n2\n", "docs/reference/b.md": "new", "DOCS.md": "same\n"}
    assert differences(tmp_path, generated) == ["docs/reference/a.md is out of date from line 2 on",
                                                "docs/reference/b.md is missing",
                                                "docs/reference/gone.md is generated no more"]


def test_families_name_files_that_are_there():
    for family in (*FUNCTIONS, *FUNCTIONAL, *LAYERS):
        for file in family.files:
            assert list((ROOT / "tensorgrad").rglob(f"{file}.py")), f"{family.title}: there is no {file}.py"


def test_every_function_and_layer_is_on_a_page():
    names = [*(f"{name}" for name in tensorgrad.api.FUNCTIONS if not name.startswith("_")),
             *(f"nn.{n}" for n in tensorgrad.nn.__all__)]
    pages = [*(ROOT / "docs" / "reference" / "functions").glob("*.md"),
             *(ROOT / "docs" / "reference" / "nn").glob("*.md")]
    text = "".join(path.read_text(encoding="utf-8") for path in pages)
    headings, in_place = (set(re.findall(r"^### (\S+)$", text, flags=re.MULTILINE)),
                          set(re.findall(r"`torch\.(\w+_)`", text)))
    missing = [name for name in names if name not in headings | in_place and (
                   "." not in name or isinstance(getattr(tensorgrad.nn, name[3:]), type))]
    assert not missing


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_chapters_of_the_guide_are_in_the_index():
    assert sorted(path.stem for path in (ROOT / "docs" / "guide").glob("*.md")) == sorted(GUIDE)


@pytest.mark.parametrize("name", ["README.md", *(f"docs/guide/{name}.md" for name in GUIDE)])
def test_chapters_open_with_a_title_and_a_sentence(name):
    title, about = text_of(name).split("\n\n")[:2]
    assert (title.startswith("# ") and "\n" not in title
            and about.rstrip("*").endswith((".", "alone."))), f"{name}: the index shows its first paragraph"


def test_code_blocks_run_one_after_the_other():
    """Each page has names of its own. One process runs them all, in a folder of its own, where their pictures go."""
    pages = [(name, found) for name in ["README.md", *(f"docs/guide/{name}.md" for name in GUIDE)]
             if (found := re.findall(r"^```python\n(.*?)^```", text_of(name), flags=re.DOTALL | re.MULTILINE))]
    assert len(pages) > 10
    fresh_process(RUN.format(pages=pages))


RUN = """
import os, tempfile
os.chdir(tempfile.mkdtemp())
for page, blocks in {pages!r}:
    names = {{"__name__": page}}
    for i, block in enumerate(blocks, 1):
        try:
            exec(compile(block, f"{{page}}, block {{i}}", "exec"), names)
        except BaseException as error:
            raise AssertionError(f"{{page}}, block {{i}}: {{error!r}}") from error
"""


def anchors_of(text):
    anchors = Anchors()
    headings = re.findall(r"^#{1,6} (.*)$", without_code(text), flags=re.MULTILINE)
    return {anchors.of(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)) for heading in headings}


def test_links_lead_somewhere():
    """Relative links of all documents, and their anchors."""
    known, broken = {}, []
    for name in PAGES:
        folder = (ROOT / name).parent
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", without_code(text_of(name)))):
            path, _, anchor = target.partition("#")
            if re.match(r"\w+:", target):
                continue
            place = (folder / path).resolve() if path else ROOT / name
            if not place.exists():
                broken.append(f"{name}: {target}")
            elif anchor and place.suffix == ".md":
                if place not in known:
                    known[place] = anchors_of(place.read_text(encoding="utf-8"))
                if anchor not in known[place]:
                    broken.append(f"{name}: {target}")
    assert not broken


def test_pages_are_short_enough_to_be_read():
    large = {name: (ROOT / name).stat().st_size for name in PAGES if (ROOT / name).stat().st_size > 100_000}
    assert not large, "a page over 100 KB is slow to render: split it"


def test_docstrings_become_markdown():
    def f():
        """The first
        paragraph of <f>. https://pytorch.org/docs → torch.f

        Text with a*b and `a*b`:
            drawn | so

        Parameters:
            x: Tensor: the input,
                any shape
        Raises: ValueError for
            all else

        >>> f()
        """
    assert first_paragraph(f) == "The first paragraph of <f>."
    assert source(f) == "[torch.f](https://docs.pytorch.org/docs/stable/generated/torch.f.html)"
    assert markdown(f).split("\n\n") == [
        "The first\nparagraph of &lt;f>.", "Text with a\\*b and `a*b`:", "```text\ndrawn | so\n```",
        "- **Parameters**:\n  - `x`: Tensor: the input, any shape\n- **Raises**: ValueError for all else",
        "```pycon\n>>> f()\n```"]


def test_the_stub_is_python_and_knows_every_public_method():
    tree = ast.parse((ROOT / "tensorgrad" / "_tensor" / "tensor.pyi").read_text(encoding="utf-8"))
    (stub,) = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    named = {n.name if isinstance(n, ast.FunctionDef) else n.target.id for n in stub.body}
    assert {n for n in dir(tensorgrad.Tensor) if not n.startswith("_")} <= named


def test_public_functions_say_what_they_do():
    silent = [name for name, f in tensorgrad.api.FUNCTIONS.items() if not (f.__doc__ or "").strip()]
    assert not silent


def test_modules_say_what_they_take_and_give():
    nn = tensorgrad.nn
    families = {"Module", "Container", "Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"}
    layers = {n: c for n, c in vars(nn).items() if isinstance(c, type) and issubclass(c, nn.Module)
              and n not in families}
    assert len(layers) > 140
    missing = {n: [b for b in ("Parameters:", "Input:", "Output:", "Weights:") if b not in (c.__doc__ or "")]
               for n, c in layers.items()}
    containers = {"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "DataParallel"}
    assert not {n: m for n, m in missing.items() if m and n not in containers}


# ── the list of what is not there ─────────────────────────────────────────────────────────────────────────────────────


NAMESPACES = ("", "Tensor", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize",
              "nn.utils.parametrizations", "optim", "optim.lr_scheduler", "linalg", "fft", "special", "signal.windows",
              "distributions", "autograd.functional", "func", "cuda", "amp", "random")


def public_names(home):
    """Names of functions and classes that belong to PyTorch: those that it lists, or those that it defines."""
    listed = (home.__all__ if hasattr(home, "__all__") and home.__name__ != "torch"
              else [n for n in dir(home) if not n.startswith("_")])
    return [n for n in listed if callable(value := getattr(home, n)) and not isinstance(value, types.ModuleType)
            and n != "Tensor"
            and str(getattr(value, "__module__", None) or "torch").startswith(("torch", "builtins"))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_names_of_pytorch_are_there_or_listed(namespace):
    torch = pytest.importorskip("torch")
    home, ours = (functools.reduce(getattr, filter(None, namespace.split(".")), library)
                  for library in (torch, tensorgrad))
    missing = [f"{namespace}.{n}".lstrip(".") for n in public_names(home) if not hasattr(ours, n)]
    assert not [name for name in missing if absent(name) is None]


def test_names_that_are_there_are_not_listed_as_absent():
    torch = pytest.importorskip("torch")
    listed = [n for n in public_names(torch) if absent(n) and hasattr(tensorgrad, n)]
    assert not [n for n in listed if not n.endswith("Type")]


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_decisions_have_an_id_each():
    """A5, A86, A88 among them; no id is decided twice."""
    ids = [name for row in DECISIONS for name in re.findall(r"[AKSTX]\d+", row[0])]
    assert len(ids) == len(set(ids)) and {"A5", "A53", "A55", "A58", "A86", "A88"} <= set(ids)
    text = text_of("docs/reference/decisions.md")
    assert all(f"| {row[0]} |" in text for row in DECISIONS)
