"""The pages of exercises in a browser: what they take for right, hints, what is kept over a reload, what is handed in.

One browser opens them all.
"""
import json
import time
from contextlib import contextmanager

import numpy as np
from browser import PHONE, keep, opened, scrolls_sideways

import tensorgrad as torch
from tensorgrad.viz.exercises.generation import exercise
from tensorgrad.viz.exercises.questions import LEVELS
from tests.viz.test_exercises import FORMULAS, NO_FORMULAS, RIGHT, WRONG, G, W, X, explanations, marked, texts

SEEDS = (0, 1, 2, "Ada")


def own_programs():
    """Exercises about programs with layers, a loss, a write in place, and a corner that a number is on."""
    layers, product = explanations()
    corner = torch.tensor([0.0, 1.0, -1.0], requires_grad=True)
    for found, levels in ((layers, ("number", "rule", "whole")), (product, ("number", "whole", "wrong")),
                          (torch.viz.explain(torch.relu(corner).sum()), ("number", "whole"))):
        yield from (found.exercise(level) for level in levels)


ANSWER = """given => Object.entries(given).map(([key, texts]) => {
  const card = document.getElementById(key), radios = [...card.querySelectorAll("[type=radio]")];
  if (radios.length) radios[texts[0] - 1].click();
  card.querySelectorAll(".blanks input").forEach((field, i) => {
    field.value = texts[i + (radios.length ? 1 : 0)];
    field.dispatchEvent(new Event("input", {bubbles: true}));
  });
  card.querySelector(".check").click();
  return card.querySelector(".verdict").textContent;
})"""


def answer(page, given):
    """Type answers, {key: texts}, and check them; returns the verdicts."""
    return page.evaluate(ANSWER, given)


def written(made, folder, name):
    path = folder / f"{name}.html"
    path.write_text(made.html(), encoding="utf-8")
    return path


def test_pages_and_grading_agree(tmp_path):
    made = [exercise(level, seed) for level in LEVELS for seed in SEEDS] + list(own_programs())
    paths = [written(one, tmp_path, i) for i, one in enumerate(made)]
    with opened(paths[0]) as page:
        readings_and_formulas(page)
        for one, path in zip(made, paths, strict=True):
            page.goto(path.as_uri())
            given = {question.key: texts(question) for question in one.questions}
            assert set(answer(page, given)) == {"✓ right"}, (one, given)
            count = len(one.questions)
            assert page.inner_text(".score") == f"{count} of {count} right"
            if one.level in ("number", "whole"):
                assert "grad ?" not in (page.locator(".graph").text_content() if page.locator(".graph").count() else "")
                assert page.locator("[data-gradient]", has_text="?").count() == 0


def readings_and_formulas(page):
    """The page reads numbers and formulas as Python does."""
    def number(x):
        return f"Number({json.dumps(str(x).replace('inf', 'Infinity'))})"
    for table, expected in ((RIGHT, True), (WRONG, False)):
        for value, typed in table.items():
            found = page.evaluate(f"typed => typed.map(text => right(text, {number(value)}))", typed)
            assert found == [expected] * len(typed), (value, list(zip(typed, found, strict=True)))
    values = {name: {"shape": list(np.shape(x)), "data": np.ravel(x).tolist()}
              for name, x in {"g": G, "x": X, "w": W, "v.1": 3.0}.items()}
    compute = ("([text, values]) => { try { return Grammar.computed(Grammar.parsed(text, Object.keys(values)), "
               "values); } catch { return null; } }")
    for text, expected in FORMULAS.items():
        found = page.evaluate(compute, [text, values])
        assert found["shape"] == list(np.shape(expected)) and np.allclose(found["data"], np.ravel(expected)), text
    assert not [text for text in NO_FORMULAS if page.evaluate(compute, [text, values]) is not None]


@contextmanager
def seen_beside(page, field, value):
    """Wait until another page of the browser shows what this one keeps, which stays open meanwhile.

    Chromium hands what a page keeps to another process, behind its back: a page that is loaded at once may miss it.
    """
    beside = page.context.new_page()
    end = time.monotonic() + 30
    beside.goto(page.url)
    while beside.input_value(field) != value and time.monotonic() < end:
        beside.reload()
    yield
    beside.close()


def test_hints_reveal_progress_and_handing_in(tmp_path):
    made = {level: exercise(level, 7) for level in LEVELS}
    paths = {level: written(one, tmp_path, level) for level, one in made.items()}
    with opened(paths["whole"], width=PHONE, dark=True, accept_downloads=True) as page:
        for level, one in made.items():
            page.goto(paths[level].as_uri())
            first, second, *rest = one.questions
            card = page.locator(f"#{second.key}")
            hint, reveal = card.locator(".hint"), card.locator(".reveal")
            assert hint.is_disabled() and reveal.is_disabled() and not scrolls_sideways(page)
            nonsense = (["99"] * (1 if level == "rule" else second.parts) if level != "wrong"
                        else [texts(second)[0], "-98765"])
            assert (answer(page, {second.key: nonsense})[0].startswith("✗") and not hint.is_disabled()
                    and reveal.is_disabled())
            hint.click()
            hint.click()
            assert (hint.is_disabled() and card.locator(".hints li").count() == 2
                    and all(card.locator(".hints li").all_inner_texts()))
            assert not reveal.is_disabled()
            assert answer(page, {first.key: texts(first)}) == ["✓ right"]
            reveal.click()
            assert card.locator(".verdict").inner_text() == "revealed"
            total = len(one.questions)
            assert page.inner_text(".score") == f"1 of {total} right, 1 revealed"
            other = nonsense[:1] if level == "rule" else ["1", "-98765"] if level == "wrong" else ["99"] * rest[0].parts
            assert answer(page, {rest[0].key: other})[0].startswith("✗")
            page.fill("#name", "Ada Lovelace")
            keep(page, PHONE, f"exercise {level}")
            with seen_beside(page, "#name", "Ada Lovelace"):
                page.reload()
            assert (page.inner_text(".score") == f"1 of {total} right, 1 revealed"
                    and page.input_value("#name") == "Ada Lovelace")
            assert (page.locator(f"#{second.key} .hints li").count() == 2
                    and page.locator(f"#{first.key}").get_attribute("class") == "card done")
            shown = page.locator(f"#{second.key} .blanks input").evaluate_all("fields => fields.map(field => "
                                                                              "field.value)")
            with page.expect_download() as download:
                page.click("#hand-in")
            assert download.value.suggested_filename == f"Ada-Lovelace-{level}-7.json"
            file = tmp_path / download.value.suggested_filename
            download.value.save_as(file)
            marks = marked(file)
            assert not marks.why and marks.name == "Ada Lovelace" and marks.count("hints") >= 2
            lucky = int(level == "wrong" and rest[0].answer[0] == 0)
            assert ((marks.marks[0].right, marks.marks[1].revealed, marks.marks[2].right)
                    == (first.parts, second.parts, lucky))
            handed = json.loads(file.read_text(encoding="utf-8"))
            honest = tmp_path / "revealed.json"         # what is revealed would be right
            honest.write_text(json.dumps(handed | {"revealed": []}), encoding="utf-8")
            assert marked(honest).marks[1].right == second.parts, (shown, marked(honest).marks[1])
        page.once("dialog", lambda dialog: dialog.accept())
        page.click("#again")
        page.wait_for_function("document.querySelector('.score')?.textContent.startsWith('0 of')")
        assert page.input_value("#name") == ""
        notebook = tmp_path / "notebook.html"
        notebook.write_text(f"<!doctype html><meta charset=utf-8><title>t</title>{exercise('number', 8)._repr_html_()}",
                            encoding="utf-8")
        page.goto(notebook.as_uri())
        frame = page.frame_locator("iframe")
        frame.locator(".check").first.click()
        assert frame.locator(".verdict").first.inner_text() == "Type an answer first."
