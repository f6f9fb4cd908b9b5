"""Exercises of viz.explain in a browser, at a desktop's and a phone's width."""
import re

import numpy as np
from browser import opened, scrolls_sideways, widths

import tensorgrad as torch
from tensorgrad.viz import explain


def scalars():
    x, w, b = (torch.tensor(v, requires_grad=True) for v in (2.0, -3.0, 1.0))
    h = w * x + b
    loss = h ** 2 + x * x
    return explain(loss, names={"x": x, "w": w, "b": b, "h": h, "loss": loss})


# ── the exercise ──────────────────────────────────────────────────────────────────────────────────────────────────────


def to_step(page, number):
    """Go to a step back, and return its section."""
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Home")
    while f"back, step {number} of" not in page.inner_text("#where"):
        page.keyboard.press("ArrowRight")
    return page.locator(".frame:visible")


@widths
def test_right_and_wrong_answers(width):
    with opened(scalars().exercise().html(), width=width) as page:
        assert page.inner_text(".score") == "0 of 11 right"
        step = to_step(page, 1)
        assert "grad ?" in page.text_content(".graph") and step.locator("input").count() == 2
        first, second = step.locator("input").all()
        first.fill("7")
        step.get_by_text("Check").click()
        assert "not right" in step.locator(".verdict").inner_text() and first.get_attribute("aria-invalid") == "true"
        assert page.inner_text(".score") == "0 of 11 right" and first.input_value() == "7"
        first.fill("1")
        assert step.locator(".verdict").inner_text() == ""
        first.press("Enter")
        assert page.inner_text(".score") == "1 of 11 right" and step.locator(".verdict").inner_text() == "go on …"
        second.fill(" 1,0 ")
        second.press("Enter")
        assert step.locator(".verdict").inner_text() == "✓ right" and page.inner_text(".score") == "2 of 11 right"
        assert not scrolls_sideways(page)
        step = to_step(page, 3)
        assert re.search(r"\bg\s*1", step.inner_text())          # found above
        step.locator("input").fill("−10")
        step.locator("input").press("Enter")
        assert step.locator(".verdict").inner_text() == "✓ right"
        step = to_step(page, 2)
        step.get_by_text("Reveal").click()
        assert [i.input_value() for i in step.locator("input").all()] == ["2", "2", "4"]
        assert page.inner_text(".score") == "3 of 11 right, 3 revealed"


def test_nothing_is_given_away():
    with opened(scalars().html(exercise=True)) as page:
        step = to_step(page, 3)
        assert "−10" not in step.inner_text() and re.search(r"\bg\s*\?", step.inner_text())
        page.keyboard.press("End")
        assert "34" not in page.inner_text(".frame:not([hidden])") and page.text_content(".graph").count("grad ?") == 7
        assert "grad 34" not in page.text_content(".graph") and not page.locator("svg .node title", has_text="34").count()


RIGHT = {"0.3333333": ["0.3333", "0,3333", " .3333 ", "1/3", "0.333", "0.33333333", "3.333e-1", "+0.3333"],
         "-12345.678": ["−12345.68", "-12,345.678", "–12345.7", "- 12 345.678", "-1.2346e4", "-12346"],
         "0.0": ["0", "-0", "0.0", "0,000"], "1e-07": ["1e-7", "0.0000001", "1,0e−7"], "2.0": ["2", "2.000", "4/2"], "inf": ["inf", "∞", "Infinity"],
         "nan": ["nan", "NaN"], "1+2j": ["1+2j", "1 + 2j"], "1234.0": ["1,234", "1234"]}
WRONG = {"0.3333333": ["0.3", "0.34", "3333", "0.3337", "", "-0.3333", "a", "1/4", "1/0"], "-12345.678": ["12345.678", "-12300", "-12", "-123.45"],
         "0.0": ["1", "0.001", "nan", "zero", "-"], "1e-07": ["0", "1e-6"], "2.0": ["2.1", "-2", "2.0.0", "2 3"], "inf": ["-inf", "1e9"], "nan": ["0"],
         "1+2j": ["1", "2j"], "1234.0": ["12,34", "1.3"]}


def test_readings_of_numbers():
    """Rounding, commas, spaces, signs and fractions: what is meant counts."""
    with opened(scalars().html(exercise=True)) as page:
        step = to_step(page, 3)

        def verdict(answer, text):
            page.evaluate("""([answer, text]) => {
              const input = document.querySelector('.frame:not([hidden]) .blank input');
              input.classList.remove('right', 'wrong'); input.readOnly = false; input.dataset.answer = answer; input.value = text;
              document.querySelector('.frame:not([hidden]) .check').click(); }""", [answer, text])
            return step.locator(".verdict").inner_text()
        for answer, texts in RIGHT.items():
            for text in texts:
                assert verdict(answer, text) == "✓ right", (answer, text)
        for answer, texts in WRONG.items():
            for text in texts:
                assert verdict(answer, text) != "✓ right", (answer, text)


@widths
def test_arrays_have_a_blank_for_each_element(width):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = torch.tensor(np.arange(40.0), requires_grad=True)
    found = explain((x * x).sum() + (y * 2).sum(), names={"x": x, "y": y})
    with opened(found.html(exercise=True), width=width) as page:
        for number, step in enumerate(found, 1):
            section = to_step(page, number)
            for field in section.locator("input").all():
                field.fill(field.get_attribute("data-shown"))
            section.get_by_text("Check").click()
            assert section.locator(".verdict").inner_text() == "✓ right"
            count = sum((told.value.elements if told.value.elements < 10 else 2) * (1 if told.before is None else 2) for told in step.gives)
            assert section.locator("input").count() == count and not scrolls_sideways(page)
        total = page.locator(".blank input").count()
        assert page.inner_text(".score") == f"{total} of {total} right"
        page.keyboard.press("End")
        assert page.locator(".frame:visible .known:visible").count() == 2


def test_the_exercise_in_a_notebook():
    with opened(f"<!doctype html><meta charset=utf-8><title>t</title>{scalars().exercise()._repr_html_()}") as page:
        frame = page.frame_locator("iframe")
        frame.locator("#next").click()
        assert frame.locator("#step").input_value() == "1"


def test_shown(tmp_path, monkeypatch):
    opened_at = []
    monkeypatch.setattr("webbrowser.open", opened_at.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = scalars().exercise().show()
    assert opened_at == [path.as_uri()] and path.read_text(encoding="utf-8") == scalars().html(exercise=True)


def test_saved(tmp_path):
    assert "class=\"lesson exercise\"" in scalars().exercise().save(str(tmp_path / "e.html")).read_text(encoding="utf-8")
