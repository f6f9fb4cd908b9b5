"""The lessons run, as scripts and as notebooks; what they work out by hand they assert themselves.

The notebooks are those of the scripts.
"""
import contextlib
import io
import json
import re
import runpy
import sys

import pytest
from support import ROOT

from examples.learn import notebooks

LESSONS = [path.stem for path in notebooks.scripts()]
FOLDER = ROOT / "examples" / "learn"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder to run in, and the random numbers as they were."""
    monkeypatch.chdir(tmp_path)
    import tensorgrad as torch
    with torch.random.fork_rng():
        yield tmp_path


def code_cells(name):
    document = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]


def test_there_are_five():
    assert [re.sub(r"^lesson(\d)_.*", r"\1", name) for name in LESSONS] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("name", LESSONS)
def test_a_script_runs_and_ends_with_a_page(name, elsewhere, capsys):
    names = runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    page = (elsewhere / "out" / f"{name}.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html") and "step by step" in page
    assert len(names["explanation"]) >= 3
    assert f"open out/{name}.html" in capsys.readouterr().out.replace("\\", "/")


@pytest.mark.parametrize("name", LESSONS)
def test_a_notebook_runs_cell_by_cell(name, elsewhere):
    names = {"__name__": "__main__"}
    cells = code_cells(name)
    with contextlib.redirect_stdout(io.StringIO()):
        for number, cell in enumerate(cells):
            exec(compile(cell, f"cell {number} of {name}", "exec"), names)
    assert cells[-1].splitlines()[-1] == "explanation", "the last line shows itself"
    assert names["explanation"]._repr_html_()
    assert (elsewhere / "out" / f"{name}.html").exists()


@pytest.mark.parametrize("name", LESSONS)
def test_what_is_worked_out_by_hand_is_checked(name):
    """A lesson whose numbers are wrong fails: every one asserts, several times."""
    assert (FOLDER / f"{name}.py").read_text(encoding="utf-8").count("\nassert ") + 1 >= 3


def test_a_wrong_sum_by_hand_fails(elsewhere):
    source = (FOLDER / "lesson1_expression.py").read_text(encoding="utf-8").replace('"y": -4.0', '"y": -5.0')
    with pytest.raises(AssertionError), contextlib.redirect_stdout(io.StringIO()):
        exec(source, {"__name__": "__main__"})


# ── the notebooks ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_notebooks_are_up_to_date(capsys):
    assert notebooks.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", LESSONS)
def test_notebooks_are_notebooks(name):
    """Notebooks follow nbformat 4.5."""
    document = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert ((document["nbformat"], document["nbformat_minor"]) == (4, 5)
            and set(document) == {"cells", "metadata", "nbformat", "nbformat_minor"})
    ids = [cell["id"] for cell in document["cells"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", i) for i in ids)
    for cell in document["cells"]:
        keys = ({"cell_type", "id", "metadata", "source"}
                | ({"execution_count", "outputs"} if cell["cell_type"] == "code" else set()))
        assert set(cell) == keys and "".join(cell["source"]).strip()
        assert all(line.endswith("\n") for line in cell["source"][:-1]) and not cell["source"][-1].endswith("\n")
    assert (document["cells"][0]["cell_type"] == "markdown"
            and document["cells"][0]["source"][0].startswith(f"# Lesson {name[6]}: "))
    with contextlib.suppress(ImportError):
        import nbformat
        nbformat.validate(nbformat.from_dict(document))


def test_a_stale_notebook_is_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "HERE", tmp_path)
    (tmp_path / "lesson1_x.py").write_text("# %% [markdown]\n# # Lesson\n#\n# text\n\n# %%\na = 1   # a\n\n\nb = 2\n",
                                           encoding="utf-8")
    assert notebooks.main(["--check"]) == 1 and "lesson1_x.ipynb is out of date" in capsys.readouterr().out
    assert notebooks.main([]) == 0 and notebooks.main(["--check"]) == 0
    cells = json.loads((tmp_path / "lesson1_x.ipynb").read_text(encoding="utf-8"))["cells"]
    assert ([(c["cell_type"], "".join(c["source"])) for c in cells]
            == [("markdown", "# Lesson\n\ntext"), ("code", "a = 1   # a\n\n\nb = 2")])
    with pytest.raises(ValueError, match="begins with a cell"):
        notebooks.cells("a = 1\n# %%\n")


def test_the_page_about_them_lists_each():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([^)]+)\)", text)
    assert all((FOLDER / target).exists() for target in linked)
    assert {f"{name}.{suffix}" for name in LESSONS for suffix in ("py", "ipynb")} == set(linked)
    assert re.findall(r"python -m examples\.learn\.(lesson\w+)", text) == LESSONS


def test_lessons_need_no_more_than_the_package():
    for name in LESSONS:
        imported = re.findall(r"^\s*(?:import|from) (\w+)", (FOLDER / f"{name}.py").read_text(encoding="utf-8"),
                              re.MULTILINE)
        assert set(imported) <= {"tensorgrad", *sys.stdlib_module_names}
