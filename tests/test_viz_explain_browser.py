"""The pages of viz.explain in a browser: the slider, the keys, playing, the exercise; at a desktop's and a phone's width."""
import re

import numpy as np
import pytest
from browser import DESKTOP, PHONE, opened, overlaps, scrolls_sideways, widths

import tensorgrad as torch
from tensorgrad.viz import explain

nn, F = torch.nn, torch.nn.functional


def scalars():
    x, w, b = (torch.tensor(v, requires_grad=True) for v in (2.0, -3.0, 1.0))
    h = w * x + b
    loss = h ** 2 + x * x
    return explain(loss, names={"x": x, "w": w, "b": b, "h": h, "loss": loss})


def network():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 3))
    return explain(F.cross_entropy(model(torch.randn(5, 3)), torch.tensor([0, 1, 2, 0, 1])), module=model, names={})


def results():
    x = torch.tensor([[3.0, 1.0], [2.0, 5.0]], requires_grad=True)
    a, b = x.unbind(0)
    values, _ = torch.stack([a, b * 2]).max(0)
    return explain((values * a).sum(), names={"x": x, "a": a, "b": b})


def long():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(2000):
        y = y * 1.001 + 0.1
    return explain(y, names={"x": x})


PAGES = [scalars, network, results, long]


def at(page):
    return int(page.input_value("#step"))


def lit(page, kind="node"):
    return page.eval_on_selector_all(f"svg .{kind}.lit", "all => all.map(e => e.querySelector('.title, .name')?.textContent ?? e.dataset.from + e.dataset.to)")


def told(page):
    return page.inner_text(".frame:not([hidden])")


@widths
@pytest.mark.parametrize("made", PAGES, ids=[p.__name__ for p in PAGES])
def test_every_frame(made, width):
    """Each place of the slider shows one text, lights up its step, and fits on the screen."""
    found = made()
    with opened(found.html(), width=width) as page:
        last = int(page.get_attribute("#step", "max"))
        assert last == (len(found.forward) + len(found.steps) + 2 if made is not long else last)
        for frame in range(last + 1) if last < 40 else (0, 1, last // 2, last):
            page.evaluate("to => { const s = document.getElementById('step'); s.value = to; s.dispatchEvent(new Event('input')); }", frame)
            assert page.locator(".frame:visible").count() == 1 and at(page) == frame
            assert len(told(page)) > 10 and page.get_attribute("#step", "aria-valuetext").startswith(f"{frame + 1} of {last + 1}")
            if page.get_attribute(".lesson", "data-phase"):
                assert len(lit(page)) == 1
            assert not scrolls_sideways(page)
            assert frame % 5 or page.locator("#next").bounding_box()["y"] < width[1] - 40          # the buttons are always at hand
        if made is not long:
            assert not overlaps(page)


@widths
def test_forward_then_back(width):
    with opened(scalars().html(), width=width) as page:
        def numbers(kind):
            seen = "all => all.filter(e => getComputedStyle(e).visibility == 'visible').map(e => e.textContent)"
            return page.eval_on_selector_all(f"svg .node .{kind}", seen)
        assert page.get_attribute(".lesson", "data-phase") == "" and sorted(numbers("value")) == ["= 1", "= 2", "= −3"]
        page.click("#next")
        assert lit(page) == ["multiply"] and len(lit(page, "edge")) == 2
        assert re.sub(r"\s+", " ", told(page)) == "↓ forward multiply v1 = w · x = −3 · 2 = −6"
        assert "= −6" in numbers("value") and not numbers("gradient")
        page.keyboard.press("End")
        for _ in range(5):
            page.keyboard.press("ArrowLeft")
        assert page.get_attribute(".lesson", "data-phase") == "back" and lit(page) == ["add"]
        assert sorted(numbers("gradient")) == ["grad 1"] * 3
        page.keyboard.press("ArrowRight")
        assert lit(page) == ["multiply"] and "2 + 2 = 4" not in told(page)
        assert re.search(r"∂L/∂x\s*=\s*2 \+ 2\s*=\s*4", told(page)) and "grad 4" in numbers("gradient")
        page.keyboard.press("End")
        assert "grad 34" in numbers("gradient") and "x.grad" in told(page) and not numbers("gradient").count("grad 4")


@widths
def test_the_keys(width):
    with opened(scalars().html(), width=width) as page:
        last = int(page.get_attribute("#step", "max"))
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert at(page) == 2
        page.keyboard.press("ArrowLeft")
        assert at(page) == 1
        page.keyboard.press("End")
        assert at(page) == last and page.is_disabled("#next") and page.is_enabled("#back")
        page.keyboard.press("ArrowRight")
        assert at(page) == last
        page.keyboard.press("Home")
        assert at(page) == 0 and page.is_disabled("#back")
        page.focus("#step")
        page.keyboard.press("ArrowRight")
        assert at(page) == 1
        page.keyboard.press("PageDown")
        assert at(page) == 11


def test_dragging_the_slider():
    with opened(scalars().html()) as page:
        box = page.locator("#step").bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert at(page) == 6 and page.get_attribute(".lesson", "data-phase") == "back"


def test_playing():
    """Playing advances by itself, until it is stopped or at the end. The test controls the clock."""
    with opened("<p>") as page:
        page.clock.install()
        page.set_content(scalars().html())
        assert page.get_attribute("#play", "aria-label") == "Play"
        page.click("#play")
        assert page.get_attribute("#play", "aria-label") == "Pause"
        page.clock.run_for(3500)
        assert at(page) == 2
        page.keyboard.press("Escape")
        page.click("#play")
        page.clock.run_for(10_000)
        assert at(page) == 2 and page.get_attribute("#play", "aria-label") == "Play"
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(" ")
        page.clock.run_for(60_000)
        assert at(page) == int(page.get_attribute("#step", "max")) and page.get_attribute("#play", "aria-label") == "Play"


def test_motion_and_darkness_as_the_reader_wants_them():
    edge = "getComputedStyle(document.querySelector('svg .edge.lit')).animationName"
    for motion, name in ("no-preference", "flow"), ("reduce", "none"):
        with opened(scalars().html(), reduced_motion=motion, dark=True) as page:
            page.keyboard.press("End")
            page.keyboard.press("ArrowLeft")
            assert page.evaluate(edge) == name
            light = page.evaluate("getComputedStyle(document.querySelector('.panel')).backgroundColor.match(/\\d+/g).slice(0, 3).every(n => n > 128)")
            assert not light


def test_names_for_those_who_do_not_see():
    with opened(scalars().html()) as page:
        for name in "One step back", "Play", "One step on":
            assert page.get_by_role("button", name=name, exact=True).count() == 1
        assert page.get_by_role("slider", name="Step").count() == 1 and page.locator(".panel[aria-live=polite]").count() == 1
        assert page.get_by_role("img", name="The graph behind loss").count() == 1


@pytest.mark.parametrize("exercise", [False, True])
def test_programs_of_all_kinds(exercise):
    from test_viz_explain import PROGRAMS
    with opened("<p>", width=PHONE) as page:
        for program in PROGRAMS:
            loss, _ = program(torch)
            page.set_content(explain(loss).html(exercise))
            page.keyboard.press("End")
            assert at(page) == int(page.get_attribute("#step", "max")) and "What has arrived" in told(page), program.__name__
            assert not scrolls_sideways(page), program.__name__


def test_a_long_graph_shows_its_end():
    found = long()
    html = found.html()
    assert len(html) < 300_000 and html.count('class="node') < 200
    with opened(html) as page:
        assert "4000 steps back are more than a page can show" in page.inner_text("header")
        page.keyboard.press("End")
        assert "back, step 120 of 4000" in page.inner_text("#where")


HOSTILE = ["<script>document.title = 'hacked'</script>", "</script><img src=x onerror=\"document.title='hacked'\">", "x" * 10_000, "🦊" * 30,
           "עברית \u202egnp.exe", "a\0b\x1b\r\n", "\"'><b>", "\ud800"]


@pytest.mark.parametrize("exercise", [False, True])
def test_hostile_names(exercise):
    leaves = {name: torch.tensor(1.0 + i, requires_grad=True) for i, name in enumerate(HOSTILE)}
    loss = torch.stack(list(leaves.values())).prod()
    with opened(explain(loss, names=leaves).html(exercise), width=PHONE) as page:
        assert page.title() == "Backprop of L, step by step"
        for _ in range(int(page.get_attribute("#step", "max"))):
            assert not scrolls_sideways(page)
            page.keyboard.press("ArrowRight")
        assert page.locator(".lesson img, .lesson b").count() == 0 and page.title() == "Backprop of L, step by step"


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


def test_the_table_in_a_notebook():
    with opened(f"<!doctype html><meta charset=utf-8><title>t</title>{network()._repr_html_()}") as page:
        assert page.locator("tbody tr").count() == sum(len(step.gives) for step in network())
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
    path = scalars().save(tmp_path / "deep" / "lesson.html")
    with opened(path, width=DESKTOP) as page:
        assert page.inner_text("h1") == "Backprop of loss, step by step"
    assert "class=\"lesson exercise\"" in scalars().exercise().save(str(tmp_path / "e.html")).read_text(encoding="utf-8")
